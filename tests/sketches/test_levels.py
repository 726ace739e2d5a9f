"""Quantile functions cut into parts and put together again: against float64, and within the stated bound."""

import numpy as np
import pytest

import sotdd
from sotdd.demo import digits
from sotdd.kernels.quantiles import compare_functions, row_losses
from sotdd.sketches.levels import QUANTILES, Levels, places_of_points

LEVELS = [Levels(1), Levels(2), Levels(7), Levels(40), Levels(40, "even"), Levels(96)]


def mixed_rows(rng, lines=6, n=90):
    """Normal values, ties, two groups far apart, an outlier, one value, and counts."""
    rows = rng.normal(size=(lines, n))
    rows[1] = rng.integers(4, size=n)
    rows[2] += 10 * (rng.random(n) < 0.3)
    rows[3, 0] = 1e4
    rows[4] = 3.0
    rows[5] = rng.poisson(0.4, size=n)
    return np.sort(rows, axis=1).astype(np.float32)


def function_at(means, levels, places):
    """One quantile function, put together from its means, at some places; written down without regard to speed."""
    edges, widths = levels.edges, levels.shares
    values = []
    for place in places:
        q = min(int(np.searchsorted(edges, place, side="right")) - 1, levels.count - 1)
        mean, share = float(means[q]), (place - edges[q]) / widths[q]
        if not levels.smooth or q in (0, levels.count - 1):
            values.append(mean)
            continue
        before, after = float(means[q - 1]), float(means[q + 1])
        rise_before = before - float(means[max(q - 2, 0)])
        rise_after = float(means[min(q + 2, levels.count - 1)]) - after
        low, high = min(before + rise_before, mean), max(after - rise_after, mean)
        if high - low > 8 * max(rise_before, rise_after):
            jump = (high - mean) / (high - low)
            reach = min(1 / 32, jump, 1 - jump)  # it rises over a little of the part
            values.append(np.interp(share, [jump - reach, jump + reach], [low, high]) if reach else mean)
            continue
        # The value at an edge lies on the line through the middles of its two parts.
        at_begin = before + (mean - before) * widths[q - 1] / (widths[q - 1] + widths[q])
        at_end = mean + (after - mean) * widths[q] / (widths[q] + widths[q + 1])
        rise = max(min(mean - at_begin, at_end - mean), 0.0)
        values.append(mean + rise * (2 * share - 1))
    return np.array(values)


def middles(levels):
    """Places within every part, and what each of them counts by."""
    each = max(400, 18_000 // levels.count)
    inside = (np.arange(each) + 0.5) / each
    places = (levels.edges[:-1, None] + levels.shares[:, None] * inside).ravel()
    return places, np.repeat(levels.shares / each, each)


@pytest.mark.parametrize("levels", LEVELS)
def test_means_are_what_the_definition_says(rng, levels):
    rows = mixed_rows(rng)
    means = levels.means(rows)
    for row, found in zip(rows, means, strict=True):
        sums = np.concatenate([[0], np.cumsum(row.astype(np.float64))]) / row.size
        expected = np.diff(np.interp(levels.edges, places_of_points(row.size), sums)) / levels.shares
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(row).max())


def test_parts_are_finer_towards_both_ends_and_nested():
    edges = Levels(256).edges
    np.testing.assert_allclose(edges + edges[::-1], 1, atol=1e-14)
    assert (np.diff(edges) > 0).all()
    assert edges[1] < 1e-6
    assert np.diff(edges).max() < 1 / 128  # never more than twice as coarse as parts of equal probability
    np.testing.assert_array_equal(edges[::4], Levels(64).edges)
    means = Levels(256).means(mixed_rows(np.random.default_rng(0), n=3000))
    twice = Levels(64).means(means, Levels(256).edges)
    np.testing.assert_allclose(
        twice, Levels(64).means(mixed_rows(np.random.default_rng(0), n=3000)), rtol=1e-5, atol=1e-5
    )


@pytest.mark.first(6)
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("levels", LEVELS)
def test_functions_are_compared_as_they_are(rng, levels, p):
    a, b = mixed_rows(rng), mixed_rows(rng, n=130)
    means_a, means_b = levels.means(a), levels.means(b)
    costs, within = np.empty(6), np.empty(6)
    compare_functions(means_a, means_b, levels.edges, levels.smooth, p, costs, within)
    places, weights = middles(levels)
    for line in range(6):
        gap = function_at(means_a[line], levels, places) - function_at(means_b[line], levels, places)
        # Samples at 400 places of a part, some of which jumps: off by one place in the part that counts most.
        assert costs[line] == pytest.approx(np.sum(weights * np.abs(gap) ** p), rel=0.01, abs=1e-6)
    if p == 2:
        between = (means_a.astype(float) - means_b) ** 2 @ levels.shares
        np.testing.assert_allclose(between + within, costs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("levels", LEVELS)
def test_what_is_lost_is_what_the_definition_says(rng, levels):
    rows = mixed_rows(rng)
    means, lost = levels.means(rows), np.empty((6, 2))
    row_losses(rows, places_of_points(90), means, levels.edges, levels.smooth, lost)
    places, weights = middles(levels)
    for line, row in enumerate(rows):
        gap = row[np.minimum((places * 90).astype(int), 89)] - function_at(means[line], levels, places)
        # Of the first, an upper bound: a gap that changes sign within a point counts as if it did not.
        assert (
            0.97 * np.sum(weights * np.abs(gap)) - 1e-4 <= lost[line, 0] <= 1.5 * np.sum(weights * np.abs(gap)) + 1e-3
        )
        off_by_a_place = float(np.ptp(row)) * np.sqrt(weights.max())  # where the function jumps
        assert lost[line, 1] == pytest.approx(np.sqrt(np.sum(weights * gap**2)), rel=0.03, abs=off_by_a_place)


# --------------------------------------------------------------------------- the promise


def digit_halves(rng):
    images, labels = digits()
    first, second = np.array_split(rng.permutation(len(images)), 2)
    return (images[first], labels[first]), (images[second], labels[second])


def far_classes(rng):
    """Label terms that lie far apart: quantile functions jump where the classes meet."""
    x, y = rng.normal(size=(8000, 5)), rng.choice(6, size=8000, p=[0.3, 0.25, 0.2, 0.15, 0.06, 0.04])
    x += 3 * rng.normal(size=(6, 5))[y]
    return (x[:4000], y[:4000]), (x[4000:], y[4000:])


def many_classes(rng):
    x, y = rng.integers(4, size=(4000, 8)).astype(float), rng.integers(200, size=4000)
    return (x[:2000], y[:2000]), (x[2000:], y[2000:])


def heavy(rng):
    x = rng.standard_t(2, size=(10_000, 4))
    return x[:5000], x[5000:] + 0.5


def one_outlier(rng):
    x = rng.normal(size=(10_000, 4))
    x[3] = 1e3
    return x[:5000], x[5000:] + 0.5


def one_feature(rng):
    x = np.exp(1.5 * rng.normal(size=(12_000, 1)))
    return x[:6000], x[6000:]


CASES = [digit_halves, far_classes, many_classes, heavy, one_outlier, one_feature]


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_sketches_are_within_one_percent(rng, case, p):
    """Halves of one set, and heavy tails: 512 parts of equal probability lose up to 68 percent of these."""
    a, b = case(rng)
    projections = sotdd.Projections.fit([a, b], n_projections=128)
    whole, cut = (
        [sotdd.sketch(data, projections, n_quantiles=count) for data in (a, b)] for count in (None, QUANTILES)
    )
    assert cut[0].distance(cut[1], p).value == pytest.approx(whole[0].distance(whole[1], p).value, rel=0.01)


# --------------------------------------------------------------------------- how far off distances may be


def normal_halves(rng):
    x = rng.normal(size=(10_000, 6))
    return x[:5000], x[5000:]


def moved(rng):
    x = rng.normal(size=(6000, 6))
    return x[:3000], x[3000:] + 0.6


def sketched(data, projections, way, n_quantiles):
    if way == "whole":
        return sotdd.sketch(data, projections, n_quantiles=n_quantiles)
    builder = sotdd.SketchBuilder(projections, n_quantiles=n_quantiles)
    if way == "two passes":
        statistics = sotdd.ClassStatistics(projections)
        statistics.add(*data) if isinstance(data, tuple) else statistics.add(data)
        builder = sotdd.SketchBuilder(projections, statistics, n_quantiles=n_quantiles)
    return (builder.add(*data) if isinstance(data, tuple) else builder.add(data)).finish()


@pytest.mark.first(8)
@pytest.mark.parametrize("label", ["moments", "quantiles"])
@pytest.mark.parametrize(
    "ways", [("whole", "whole"), ("stream", "stream"), ("stream", "whole"), ("two passes", "stream")]
)
@pytest.mark.parametrize(
    "case", [normal_halves, digit_halves, heavy, one_outlier, one_feature, moved], ids=lambda case: case.__name__
)
def test_the_bound_holds(rng, case, ways, label):
    a, b = case(rng)
    settings = {"label_law": label} if label == "quantiles" else {"moments": sotdd.projections.UniformOrders(2)}
    projections = sotdd.Projections.fit([a, b], n_projections=128, **settings)
    for p in (1, 1.3, 2):
        true = sotdd.distance(a, b, projections=projections, p=p)
        for kept in (16, 256):
            one, other = (sketched(*what, kept) for what in zip((a, b), [projections] * 2, ways, strict=True))
            found = one.distance(other, p)
            assert abs(found.value - true.value) <= found.sketch_error * (1 + 1e-6)


@pytest.mark.parametrize("case", [normal_halves, heavy], ids=lambda case: case.__name__)
@pytest.mark.parametrize("way", ["whole", "stream"])
def test_nearly_identical_sets_come_with_a_remark(rng, case, way):
    a, b = case(rng)
    projections = sotdd.Projections.fit([a, b], n_projections=128, label_law="quantiles")
    found = sketched(a, projections, way, 24).distance(sketched(b, projections, way, 24))
    assert found.sketch_error > 0.05 * found.value
    said = found.remarks[-1]
    assert f"may be off by up to {found.sketch_error:.2g}" in said
    assert said in repr(found)
    assert found.to_dict()["sketch_error"] == found.sketch_error


@pytest.mark.parametrize("way", ["whole", "stream"])
@pytest.mark.parametrize("p", [1, 2])
def test_sets_that_differ_come_without(rng, way, p):
    a, b = moved(rng)
    projections = sotdd.Projections.fit([a, b], n_projections=128)
    found = sketched(a, projections, way, 512).distance(sketched(b, projections, way, 512), p)
    assert found.remarks == ()
    assert 0 < found.sketch_error < 0.05 * found.value


def test_nothing_is_lost_where_every_value_is_kept(rng):
    a, b = (rng.normal(size=(n, 3)) for n in (400, 600))
    projections = sotdd.Projections.fit([a, b], n_projections=64)
    one, other = (sotdd.sketch(data, projections, n_quantiles=None) for data in (a, b))
    found = one.distance(other)
    assert (found.sketch_error, found.remarks) == (0.0, ())
    assert found.value == pytest.approx(sotdd.distance(a, b, projections=projections).value, rel=1e-7)


@pytest.mark.parametrize("levels", [Levels(48), Levels(256), Levels(48, "even")])
def test_both_engines_find_the_same_loss(rng, levels):
    pytest.importorskip("torch")
    from sotdd.engines.cpu.engine import CpuEngine
    from sotdd.engines.torch.engine import TorchEngine

    data = sotdd.LabelledData.of(rng.normal(size=(700, 4)))
    projections = sotdd.Projections.fit([data], n_projections=64)
    found = []
    for engine in (CpuEngine(), TorchEngine("cpu")):
        with engine as active:
            (view,) = active.views([data], projections)
            means = active.quantiles(view.rows[0], levels.edges)
            found.append((means, active.losses(view.rows[0], means, levels.edges, levels.smooth)))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=1e-4, atol=1e-5)


def test_powers_above_two_have_no_bound(rng):
    a, b = normal_halves(rng)
    projections = sotdd.Projections.fit([a, b], n_projections=64)
    found = sotdd.sketch(a, projections).distance(sotdd.sketch(b, projections), 3)
    assert found.sketch_error is None
    assert "sketch_error" not in found.to_dict()


# --------------------------------------------------------------------------- files


def test_a_file_keeps_what_was_lost(rng, tmp_path):
    a, b = normal_halves(rng)
    projections = sotdd.Projections.fit([a, b], n_projections=64)
    one, other = (sotdd.sketch(data, projections) for data in (a, b))
    one.save(tmp_path / "whole")
    one.save(tmp_path / "half", half=True)
    whole, half = (sotdd.Sketch.load(tmp_path / name) for name in ("whole", "half"))
    assert whole.distance(other).sketch_error == one.distance(other).sketch_error
    rounded = half.distance(other)
    assert rounded.sketch_error > one.distance(other).sketch_error
    assert abs(rounded.value - sotdd.distance(a, b, projections=projections).value) <= rounded.sketch_error
