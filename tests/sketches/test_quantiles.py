"""Quantile functions cut into parts and put together again: against float64, and within the stated bound."""

import numpy as np
import pytest

import sotdd
from sotdd.compute.kernels.quantiles import compare_functions, row_losses
from sotdd.compute.numpy_engine import NumpyEngine
from sotdd.demo import digits
from sotdd.sketches.quantiles import QUANTILES, Levels, place_points

LEVELS = [Levels(1), Levels(2), Levels(7), Levels(40), Levels(40, smooth=False), Levels(96)]


def mixed_rows(rng, lines=6, n=90):
    """Normal values, ties, two groups far apart, an outlier, one value, and counts."""
    rows = rng.normal(size=(lines, n))
    rows[1] = rng.integers(4, size=n)
    rows[2] += 10 * (rng.random(n) < 0.3)
    rows[3, 0] = 1e4
    rows[4] = 3.0
    rows[5] = rng.poisson(0.4, size=n)
    return np.sort(rows, axis=1).astype(np.float32)


def function_at(means, levels, share):
    """One quantile function, put together from its means, at the same shares of every part; a row for each part."""
    widths, last = levels.shares, levels.count - 1
    values = np.empty((levels.count, share.size))
    for q, mean in enumerate(means.astype(float)):
        values[q] = mean
        if not levels.smooth or q in (0, last):
            continue
        before, after = float(means[q - 1]), float(means[q + 1])
        rise_before = before - float(means[max(q - 2, 0)])
        rise_after = float(means[min(q + 2, last)]) - after
        low, high = min(before + rise_before, mean), max(after - rise_after, mean)
        if high - low > 8 * max(rise_before, rise_after):
            jump = (high - mean) / (high - low)
            if reach := min(1 / 32, jump, 1 - jump):  # it rises over a little of the part
                values[q] = np.interp(share, [jump - reach, jump + reach], [low, high])
            continue
        # The value at an edge lies on the line through the middles of its two parts.
        at_begin = before + (mean - before) * widths[q - 1] / (widths[q - 1] + widths[q])
        at_end = mean + (after - mean) * widths[q] / (widths[q] + widths[q + 1])
        values[q] = mean + max(min(mean - at_begin, at_end - mean), 0.0) * (2 * share - 1)
    return values


def places_within(levels):
    """Shares of a part at which functions are compared: more of them where there are few parts."""
    each = max(400, 18_000 // levels.count)
    return (np.arange(each) + 0.5) / each


@pytest.mark.parametrize("n", [1, 7, 90, 513])
@pytest.mark.parametrize("levels", LEVELS)
def test_means_are_what_the_definition_says(rng, levels, n):
    rows = mixed_rows(rng, n=n)
    means = levels.means(rows)
    for row, found in zip(rows, means, strict=True):
        sums = np.concatenate([[0], np.cumsum(row.astype(np.float64))]) / row.size
        expected = np.diff(np.interp(levels.edges, place_points(row.size), sums)) / levels.shares
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(row).max())
    torch = pytest.importorskip("torch")
    from sotdd.compute.torch import rows as verbs

    for others in (
        verbs.average_parts(torch.from_numpy(rows), levels.edges),
        NumpyEngine().average_parts(rows, levels.edges),
    ):
        np.testing.assert_allclose(others, means, rtol=1e-4, atol=1e-2)


def test_parts_are_finer_towards_both_ends_and_nested(rng):
    edges = Levels(256).edges
    np.testing.assert_allclose(edges + edges[::-1], 1, atol=1e-14)
    assert (np.diff(edges) > 0).all()
    assert edges[1] < 1e-6
    assert np.diff(edges).max() < 1 / 128  # never more than twice as coarse as parts of equal probability
    np.testing.assert_array_equal(edges[::4], Levels(64).edges)
    rows = mixed_rows(rng, n=3000)
    twice = Levels(64).means(Levels(256).means(rows), edges)
    np.testing.assert_allclose(twice, Levels(64).means(rows), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("levels", LEVELS)
def test_functions_are_compared_as_they_are(rng, levels, p):
    means_a, means_b = levels.means(mixed_rows(rng)), levels.means(mixed_rows(rng, n=130))
    costs, within, share = np.empty(6), np.empty(6), places_within(levels)
    compare_functions(means_a, means_b, levels.edges, levels.smooth, p, costs, within)
    for line in range(6):
        gap = function_at(means_a[line], levels, share) - function_at(means_b[line], levels, share)
        # Samples within a part, some of which jumps: off by one place in the part that counts most.
        assert costs[line] == pytest.approx(np.mean(np.abs(gap) ** p, axis=1) @ levels.shares, rel=0.01, abs=1e-6)
    if p == 2:
        between = (means_a.astype(float) - means_b) ** 2 @ levels.shares
        np.testing.assert_allclose(between + within, costs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("levels", LEVELS)
def test_what_is_lost_is_what_the_definition_says(rng, levels):
    rows = mixed_rows(rng)
    means, lost = levels.means(rows), np.empty((6, 2))
    row_losses(rows, place_points(90), means, levels.edges, levels.smooth, lost)
    share = places_within(levels)
    places = levels.edges[:-1, None] + levels.shares[:, None] * share
    for line, row in enumerate(rows):
        gap = row[np.minimum((places * 90).astype(int), 89)] - function_at(means[line], levels, share)
        size = np.mean(np.abs(gap), axis=1) @ levels.shares
        # Of the first, an upper bound: a gap that changes sign within a point counts as if it did not.
        assert 0.97 * size - 1e-4 <= lost[line, 0] <= 1.5 * size + 1e-3
        off_by_a_place = float(np.ptp(row)) * np.sqrt(levels.shares.max() / share.size)  # where the function jumps
        root = np.sqrt(np.mean(gap**2, axis=1) @ levels.shares)
        assert lost[line, 1] == pytest.approx(root, rel=0.03, abs=off_by_a_place)


def halves(x, y=None, shift=0.0):
    """Two datasets of half the points each, the second moved."""
    y = np.zeros(len(x), int) if y is None else y
    middle = len(x) // 2
    return (x[:middle], y[:middle]), (x[middle:] + shift, y[middle:])


def digit_halves(rng):
    images, labels = digits()
    order = rng.permutation(len(images))
    return halves(images[order], labels[order])


def far_classes(rng):
    """Label terms that lie far apart: quantile functions jump where the classes meet."""
    x, y = rng.normal(size=(8000, 5)), rng.choice(6, size=8000, p=[0.3, 0.25, 0.2, 0.15, 0.06, 0.04])
    return halves(x + 3 * rng.normal(size=(6, 5))[y], y)


CASES = {
    "normal": lambda rng: halves(rng.normal(size=(6000, 6))),
    "heavy": lambda rng: halves(rng.standard_t(2, size=(10_000, 4)), shift=0.5),
    "digits": digit_halves,
    "far classes": far_classes,
    "one outlier": lambda rng: halves(np.vstack([np.full(4, 1e3), rng.normal(size=(7999, 4))]), shift=0.5),
    "one feature": lambda rng: halves(np.exp(1.5 * rng.normal(size=(12_000, 1)))),
    "many classes": lambda rng: halves(1.0 * rng.integers(4, size=(4000, 8)), rng.integers(200, size=4000)),
}


def sketch_by(way, data, projections, n_quantiles):
    """A sketch of sorted values, or of a stream."""
    if way == "whole":
        return sotdd.sketch(data, projections, n_quantiles=n_quantiles)
    return sotdd.SketchBuilder(projections, n_quantiles=n_quantiles).add(*data).finish()


@pytest.mark.parametrize("case", CASES)
def test_sketches_are_within_one_percent(rng, case):
    """Halves of one set, and heavy tails: 512 parts of equal probability lose up to 68 percent of these."""
    a, b = CASES[case](rng)
    projections = sotdd.Projections.fit([a, b], n_projections=64)
    one, other = (sotdd.sketch(data, projections, n_quantiles=QUANTILES) for data in (a, b))
    for p in (1, 2):
        exact = sotdd.distance(a, b, projections=projections, p=p)
        assert one.distance(other, p).value == pytest.approx(exact.value, rel=0.01)


@pytest.mark.first(12)
@pytest.mark.parametrize("ways", [("whole", "whole"), ("stream", "stream"), ("stream", "whole")])
@pytest.mark.parametrize("case", list(CASES)[:-1])  # streams of many classes take long
def test_the_bound_holds(rng, case, ways):
    a, b = CASES[case](rng)
    projections = sotdd.Projections.fit([a, b], n_projections=32, moments=sotdd.projections.UniformOrders(2))
    true = {p: sotdd.distance(a, b, projections=projections, p=p).value for p in (1, 1.3, 2)}
    for kept in (16, 256):
        one, other = (sketch_by(way, data, projections, kept) for way, data in zip(ways, (a, b), strict=True))
        for p, value in true.items():
            found = one.distance(other, p)
            assert abs(found.value - value) <= found.sketch_error * (1 + 1e-6)
            remarked = any(getattr(remark, "kind", "") == "coarse sketch" for remark in found.remarks)
            assert remarked == (found.sketch_error > 0.05 * found.value)
        assert one.distance(other, 3).sketch_error is None
