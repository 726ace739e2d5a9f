"""Differential privacy: what one row can change, how much noise that takes, and that nothing exact leaves."""

import copy
import math

import numpy as np
import pandas
import pytest
from safetensors.numpy import load_file
from scipy import stats

import sotdd
from sketches.cases import labelled
from sotdd.sketches.private import (
    STEP,
    ExactCounts,
    Noise,
    estimate_masses,
    find_mass_quantiles,
    load_opendp,
    release_terms,
    unit_scale,
)
from sotdd.sketches.quantiles import Levels

pytest.importorskip("opendp")


@pytest.fixture
def projections(rng):
    return sotdd.Projections.fit([labelled(rng, 800)], n_projections=80, seed=1)


def counting(projections, data, classes=range(4), **settings):
    return sotdd.PrivateBuilder(projections, classes=classes, **settings).add(*data)


def released(projections, data, classes=range(4), epsilon=1.0, delta=1e-6, name="data", **settings):
    return counting(projections, data, classes, **settings).release(epsilon=epsilon, delta=delta, name=name)


def rows_of(kind, rng, n, d):
    """Ordinary rows, rows with heavy tails, and rows that somebody made to break the bounds."""
    if kind == "normal":
        return rng.normal(size=(n, d))
    if kind == "heavy":
        return rng.standard_cauchy((n, d)) * 10.0 ** rng.uniform(-3, 6, size=(n, 1))
    if kind == "huge":
        return rng.choice([-1e300, 1e300, 1e38, -1e30, 0.0, 1e-30], size=(n, d))
    return 1e4 * np.eye(d)[rng.integers(d, size=n)] * rng.choice([-1, 1], size=(n, 1))


@pytest.mark.parametrize("kind", ["normal", "heavy", "huge", "one feature"])
@pytest.mark.parametrize("d", [1, 6])
@pytest.mark.parametrize("made", ["fitted", "tilted", "paper", "own", "arcsinh"])
def test_one_row_changes_no_more_than_is_claimed(rng, kind, d, made):
    """And OpenDP says that noise on such changes costs no more than the budget."""
    public = rng.normal(size=(300, d)), rng.integers(4, size=300)
    settings = {
        "paper": {"label_law": "paper"}, "own": {"label_directions": "own"}, "arcsinh": {"scale": "arcsinh"},
    }.get(made, {})  # fmt: skip
    projections = sotdd.Projections.fit([public], n_projections=80, tilt=made == "tilted", **settings)
    base = ExactCounts(projections, range(4), 2.0 if made == "paper" else 6.0)
    base.add(sotdd.LabelledData.of((rng.normal(size=(40, d)), np.arange(40) % 4)))
    claimed, terms = base.lengths(), rng.normal(size=(80, 4))
    edges = np.sort(rng.normal(0, 3, size=(80, 2)), axis=1) @ np.stack([1 - np.linspace(0, 1, 9), np.linspace(0, 1, 9)])
    before = base.place(terms, edges)
    noise = {name: Noise(0.8, 1e-6).mechanism(name, length) for name, length in claimed.items()}
    for row in rows_of(kind, rng, 12, d):
        more = copy.deepcopy(base)
        more.add(sotdd.LabelledData.of((row[None], [2])))
        changes = {
            "sizes": more.sizes - base.sizes,
            "sums": more.sums - base.sums,
            "bins": more.place(terms, edges) - before,
        }
        assert (changes["sums"][[0, 1, 3]] == 0).all()
        assert (changes["bins"].sum(axis=1) == 1).all()
        costs = 0.0
        for name, change in changes.items():
            assert change.dtype == np.int64
            length = math.sqrt(int((change.astype(object) ** 2).sum()))
            assert length <= claimed[name]
            costs += noise[name].map(length)
        assert math.sqrt(1 / (2 * costs)) >= unit_scale(0.8, 1e-6) * (1 - 1e-12)


def test_the_bounds_are_reached_so_that_no_noise_is_wasted(projections):
    """A row far out has label sums just as long as is claimed, and every row changes bins by just that."""
    one = ExactCounts(projections, range(4))
    one.add(sotdd.LabelledData.of((1e5 * np.ones((1, 6)), [1])))
    assert np.linalg.norm(one.sums) == pytest.approx(one.lengths()["sums"], rel=1e-4)
    assert one.fine.sum() == 80


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-6, 0.1), (0.1, 1e-12), (1.0, 1e-6), (100.0, 1e-12), (100.0, 0.1)])
def test_noise_is_the_least_that_keeps_to_the_budget(epsilon, delta):
    dp = load_opendp()

    def spent(scale):
        one = dp.m.make_gaussian(dp.atom_domain(T="i64"), dp.absolute_distance(T="f64"), scale=scale)
        return dp.c.make_zCDP_to_approxDP(one).map(1.0).epsilon(delta)

    scale = unit_scale(epsilon, delta)
    assert spent(scale) <= epsilon < spent(scale * 0.999)


def test_noise_has_the_law_and_the_scale_that_it_should_have():
    noise = Noise(1.0, 1e-6)
    noisy, variance = noise.add("bins", np.full((100, 100), 1000), 100.0)
    assert noisy.dtype == np.int64
    assert stats.kstest((noisy - 1000).ravel(), stats.norm(scale=noise.scale("bins", 100.0)).cdf).pvalue > 1e-5
    assert np.var(noisy) == pytest.approx(variance, rel=0.15)


def test_no_file_holds_anything_exact(rng, projections, tmp_path):
    data = labelled(rng, 4000)
    sketch, again = (released(projections, data) for _ in range(2))
    sketch.save(tmp_path / "sketch")
    found, plain = load_file(tmp_path / "sketch"), sotdd.sketch(data, projections)
    public = {"centre", "scale", "basis", "stretch", "weights"}
    assert set(found) - public == {"counts", "class_terms", "quantiles"}
    for name in ("counts", "class_terms", "quantiles"):
        assert np.mean(found[name] == getattr(plain, name)) < 0.3  # counts may agree by chance
    assert sketch.controls is sketch.halves is sketch.lost is None
    assert (sketch.quantiles != again.quantiles).mean() > 0.9  # noise differs from release to release


def test_a_batch_that_fails_half_way_spoils_the_builder(rng, projections, monkeypatch):
    """Its rows would count twice once it is added again, and twice is more than the bound."""
    builder = counting(projections, labelled(rng, 50))

    def fails(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(builder._counts, "_count", fails)
    with pytest.raises(KeyboardInterrupt):
        builder.add(*labelled(rng, 50))
    for call in (lambda: builder.add(*labelled(rng, 50)), lambda: builder.release(epsilon=1, delta=1e-6)):
        with pytest.raises(sotdd.SotddError, match="failed half way"):
            call()


def test_with_much_budget_distances_are_those_without_noise(rng, monkeypatch):
    monkeypatch.setattr("sotdd.sketches.private._BINS", 128)
    monkeypatch.setattr("sotdd.sketches.private.REACH", 8.0)
    a, b = labelled(rng, 40_000), labelled(rng, 30_000, shift=0.6)
    projections = sotdd.Projections.fit([labelled(rng, 800)], n_projections=16, seed=1)
    settings = {"epsilon": 100.0, "max_label": 20.0}
    one, two = (released(projections, data, **settings) for data in (a, b))
    plain = [sotdd.sketch(data, projections) for data in (a, b)]
    for p in (1, 2):
        true = plain[0].distance(plain[1], p, estimator="plain").value
        assert one.distance(two, p).value == pytest.approx(true, rel=0.02)
        assert one.distance(plain[1], p).value == pytest.approx(true, rel=0.02)
        assert one.distance(plain[0], p).value < 0.03 * true
    assert np.abs(one.counts - plain[0].counts).max() <= 5


def test_less_budget_is_more_error_and_the_remark_says_how_much(rng):
    public, data = labelled(rng, 800), labelled(rng, 20_000)
    projections = sotdd.Projections.fit([public], n_projections=32)
    plain = sotdd.sketch(data, projections)
    off = []
    for epsilon in (0.1, 1.0, 10.0):
        result = released(projections, data, epsilon=epsilon, name="mine").distance(plain)
        off.append(result.value)
        (facts,) = [remark.facts for remark in result.remarks if getattr(remark, "kind", "") == "private"]
        assert (facts["name"], facts["epsilon"], facts["delta"]) == ("mine", epsilon, 1e-6)
        assert 0.3 * off[-1] < facts["off"] < 3 * off[-1]
        assert result.sketch_error is None
    assert off[0] > off[1] > off[2]


@pytest.mark.parametrize(
    ("n", "d", "classes"), [(20, 4, 3), (0, 4, 3), (1000, 4, 200), (1000, 4, 1), (1000, 1, 3), (1000, 150, 3)]
)
def test_odd_data_still_give_a_sketch(rng, n, d, classes, tmp_path):
    data = rng.normal(size=(n, d)), rng.integers(classes, size=n)
    projections = sotdd.Projections.fit([rng.normal(size=(100, d))], n_projections=70)
    sketch = released(projections, data, classes=range(classes))
    assert np.isfinite(sketch.quantiles).all()
    assert (np.diff(sketch.quantiles, axis=1) >= 0).all()
    assert len(sketch.classes) == classes
    sketch.save(tmp_path / "sketch")
    assert sotdd.Sketch.load(tmp_path / "sketch").distance(sketch).value == 0
    assert math.isfinite(sketch.distance(sotdd.sketch(rng.normal(size=(50, d)), projections)).value)


def test_batches_add_up_in_any_portion(rng, projections):
    x, y = labelled(rng, 300)
    whole = counting(projections, (x, y))._counts
    builder = counting(projections, (x[:1], y[:1])).add(x[1:100], y[1:100]).add(x[:0], y[:0])
    parts = builder.add(x[100:], y[100:])._counts
    np.testing.assert_array_equal(whole.sizes, parts.sizes)
    assert np.abs(whole.fine - parts.fine).sum() <= 4  # a product may round otherwise beside other rows
    np.testing.assert_allclose(whole.sums, parts.sums, atol=300)


def test_terms_of_small_classes_are_drawn_towards_that_of_all_points(rng, projections):
    """Terms of classes with hardly any points are noise; they end near the term of all points, not far out."""
    data = rng.normal(size=(5000, 6)), np.where(rng.random(5000) < 0.99, 0, rng.integers(1, 4, size=5000))
    exact, noise = counting(projections, data)._counts, Noise(0.5, 1e-6)
    plain = sotdd.sketch(data, projections).class_terms[:, 1:]
    sizes, terms, _ = release_terms(exact, noise)
    raw = noise.add("sums", exact.sums, exact.lengths()["sums"])[0] * STEP * exact.spreads
    raw = (raw / np.maximum(sizes, 1)[:, None]).T[:, 1:]
    assert np.abs(terms[:, 1:] - plain).mean() < 0.3 * np.abs(raw - plain).mean()


def test_noise_in_empty_bins_is_taken_away(rng):
    truth = np.zeros((200, 64))
    truth[:, 28:36] = 2000
    np.testing.assert_allclose(estimate_masses(truth.astype(int), 0.0, 16_000), truth)
    noisy = np.rint(truth + rng.normal(0, 60, size=truth.shape)).astype(int)
    masses = estimate_masses(noisy, 3600.0, 16_000)
    np.testing.assert_allclose(masses.sum(axis=1), 16_000)
    assert (masses >= 0).all()
    cut = np.clip(noisy, 0, None)
    outside = np.delete(masses, np.s_[28:36], axis=1).sum(), np.delete(cut, np.s_[28:36], axis=1).sum()
    assert outside[0] < 0.1 * outside[1]


def test_quantiles_of_masses_are_means_over_parts(rng):
    masses = rng.random((3, 20))
    masses[0, 5:9] = 0
    edges = np.sort(rng.normal(size=(3, 21)), axis=1)
    levels = Levels(16)
    found = find_mass_quantiles(masses, edges, levels)
    fine = (np.arange(100_000) + 0.5) / 100_000
    for row, places, means in zip(masses, edges, found, strict=True):
        values = np.interp(fine, np.concatenate([[0], np.cumsum(row)]) / row.sum(), places)
        part = np.searchsorted(levels.edges, fine) - 1
        slow = np.bincount(part, values) / np.bincount(part)
        np.testing.assert_allclose(means, slow, atol=2e-3)


def test_tails_that_count_by_their_logarithm_are_released_so(rng):
    """Heavy tails lie within the bins then, and take no larger bound."""
    sides = [(np.exp(2 * rng.normal(shift, 1, size=(20_000, 3))), rng.integers(2, size=20_000)) for shift in (0, 0.5)]
    projections = sotdd.Projections.fit([sides[0][0][:2000], sides[1][0][:2000]], n_projections=32, scale="arcsinh")
    one, other = (released(projections, side, classes=[0, 1], epsilon=20) for side in sides)
    expected = sotdd.distance(*sides, projections=projections, estimator="plain").value
    assert one.distance(other).value == pytest.approx(expected, rel=0.1)


def test_what_cannot_be_private_is_refused(rng, projections, monkeypatch):
    monkeypatch.setattr("sotdd.basics.resources.available_bytes", lambda: 1 << 30)
    data = x, y = labelled(rng, 3000)
    done = counting(projections, data)
    assert "3000" not in repr(done).replace(",", "")
    done.release(epsilon=1, delta=1e-6)
    table = pandas.DataFrame(x)

    def fit(**settings):
        return sotdd.Projections.fit([data], n_projections=8, **settings)

    released(fit(), (x[:1500], y[:1500]))  # not the very rows that the projections were fitted on
    for call, named in [
        (lambda: released(fit(), data), "public data"),
        (lambda: done.add(*data), "released"),
        (lambda: done.release(epsilon=1, delta=1e-6), "released"),
        (lambda: sotdd.PrivateBuilder(fit(label_law="quantiles"), classes=[0]), "label_law='moments'"),
        (lambda: sotdd.PrivateBuilder(5, classes=[0]), "projections is 5"),
        (lambda: sotdd.PrivateBuilder(fit(scale=None), classes=[0]), "do not scale features"),
        (lambda: counting(projections, (x, np.full(3000, 7)), classes=[0, 1]), "class 7"),
        (lambda: counting(projections, data, classes=[]), "classes"),
        (lambda: counting(projections, data, classes=np.array(2)), "classes is a ndarray"),
        (lambda: counting(projections, [sotdd.open_dataset((x, x[:, 0]), bins=2)]), "LabelledData is read by"),
        (lambda: counting(projections, (table, y)), "DataFrame is read by what all of its rows have in common"),
        (lambda: counting(projections, data, classes=range(5000)), "5,000 classes"),
        (lambda: counting(projections, data, max_label=1e6), "max_label is .*10000"),
        (lambda: released(projections, data, epsilon=1e7), "epsilon is .*100"),
        (lambda: released(projections, data, delta=0.5), "delta is 0.5"),
    ]:
        with pytest.raises(sotdd.SotddError, match=named):
            call()
