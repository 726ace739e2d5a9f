"""Sketches from batches: against sorted data, in any order and grouping."""

import os

import numpy as np
import pytest

import reference
import sotdd
from laws import Medians
from sketches.cases import assert_same_controls, in_batches, labelled
from sotdd.sketches import quantiles as gathering


@pytest.fixture
def data(rng):
    return labelled(rng, 6000)


@pytest.fixture
def projections(data):
    return sotdd.Projections.fit([data], n_projections=100, seed=3)


def test_any_order_and_grouping_gives_the_same(data, projections, rng):
    first = sotdd.sketch_stream(in_batches(data, [1500, 3000, 4500]), projections)
    order = rng.permutation(6000)
    shuffled = data[0][order], data[1][order]
    parts = [sotdd.SketchBuilder(projections).add(*batch) for batch in in_batches(shuffled, [10, 2000, 2001, 4000])]
    left = parts[3].merge(parts[1])
    right = parts[0].merge(parts[4]).merge(parts[2])
    second = left.merge(right).finish()
    # Counts are the same. Sums of classes differ in their last bits, which may carry a point into the next fine cell.
    np.testing.assert_allclose(first.quantiles, second.quantiles, atol=2e-5)
    assert first.distance(second).value < 1e-5
    x, y = data
    by_class = [sotdd.SketchBuilder(projections).add(x[y == label], y[y == label]) for label in range(4)]
    third = by_class[2].merge(by_class[0]).merge(by_class[3]).merge(by_class[1]).finish()
    assert third.classes == (0, 1, 2, 3)
    assert first.distance(third).value < 1e-5


def tailed(kind, rng, n=8000, d=3):
    labels = rng.integers(3, size=n)
    x = {
        "cauchy": rng.standard_cauchy((n, d)),
        "lognormal": np.exp(2 * rng.normal(size=(n, d))),
        "counts": rng.zipf(1.6, size=(n, d)).astype(float),
    }.get(kind, rng.normal(size=(n, d)) + 0.3 * labels[:, None])
    if kind == "one outlier":
        x[7] = 1e5
    if kind == "fifty outliers":
        x[rng.choice(n, 50, replace=False)] *= 1e4
    return x, labels


@pytest.mark.first(5)
@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("kind", ["one outlier", "fifty outliers", "cauchy", "lognormal", "counts"])
def test_outliers_and_heavy_tails_leave_the_others_where_they_are(rng, kind, d):
    """A stream is as good as a sorted sketch; in even bins all but the outliers would fall into one."""
    here, there = tailed(kind, rng, d=d), tailed(kind, rng, d=d)
    there = there[0] + 0.5, there[1]
    # The scale is of the points that matter, as where a reference without outliers was agreed on.
    usual = tailed("none", rng, n=500, d=d)
    projections = sotdd.Projections.fit([usual], n_projections=64, seed=3)
    batches = [in_batches(dataset, [1, 500, 5000]) for dataset in (here, there)]
    streamed = [sotdd.sketch_stream(parts, projections) for parts in batches]
    whole = [sotdd.sketch(dataset, projections) for dataset in (here, there)]
    wanted = whole[0].distance(whole[1]).value
    assert streamed[0].distance(streamed[1]).value == pytest.approx(wanted, rel=0.02)
    for made, sorted_sketch in zip(streamed, whole, strict=True):
        assert made.distance(sorted_sketch, estimator="plain").value < 0.1 * wanted


def test_one_point_more_than_are_sorted_changes_nothing(rng, monkeypatch):
    monkeypatch.setattr("sotdd.sketches.sketching._MOST_SORTED", 20_000)
    x = rng.normal(size=(20_001, 1))
    x[5] = 1e5
    projections = sotdd.Projections.fit([x[10:500]], n_projections=8, seed=3)
    other = sotdd.sketch(np.append(rng.normal(0.7, 1, size=(9_999, 1)), [[1e4]], axis=0), projections)
    counted, sorted_sketch = sotdd.sketch(x, projections), sotdd.sketch(x[:-1], projections)
    assert counted.distance(other).value == pytest.approx(sorted_sketch.distance(other).value, rel=1e-3)


@pytest.mark.parametrize(
    "settings",
    [
        {"directions": sotdd.projections.Orthogonal()},
        {"directions": sotdd.projections.Hadamard()},
        {"scale": None},
        {"label_directions": "own"},
        "arrays",
    ],
)
def test_other_laws_stream_too(rng, data, settings):
    if settings == "arrays":
        projections = sotdd.Projections.from_arrays(**reference.draw(rng, 80, 6), clamp=1.5)
    else:
        projections = sotdd.Projections.fit([data], n_projections=70, **settings)
    exact = sotdd.sketch(data, projections)
    batches = in_batches(data, [3000, 4345])
    spread = float(np.abs(exact.quantiles).max())
    assert sotdd.sketch_stream(batches, projections).distance(exact).value < 2e-3 * max(1.0, spread / 10)


def test_more_classes_than_fit_are_sorted_or_refused(rng, monkeypatch):
    monkeypatch.setattr(gathering, "CLASS_BYTES", 40 * 64 * gathering.BINS * 4)
    monkeypatch.setattr("sotdd.sketches.sketching._MOST_SORTED", 1000)
    data = labelled(rng, 5000, classes=50)
    projections = sotdd.Projections.fit([data], n_projections=64)
    assert sotdd.sketch(data, projections).lost[:, 2].max() == 0  # no bins
    with pytest.raises(sotdd.SotddError, match=r"50 classes .* fewer projections"):
        sotdd.sketch_stream(in_batches(data, [1000]), projections)


def test_parties_exchange_files(tmp_path, data):
    projections = sotdd.Projections.fit([data], n_projections=70)
    parts = [*in_batches(data, [2000]), (np.empty((0, 6)), np.empty(0))]  # the last party has no data
    expected = sotdd.sketch_stream(parts, projections)
    for k, part in enumerate(parts):
        sotdd.SketchBuilder(projections).add(*part).save(tmp_path / f"builder {k}")
    empty, second, first = (sotdd.SketchBuilder.load(tmp_path / f"builder {k}") for k in (2, 1, 0))
    found = empty.merge(second).merge(first).finish()
    np.testing.assert_allclose(found.quantiles, expected.quantiles, atol=1e-5)
    assert found.counts.tolist() == expected.counts.tolist()
    assert found.halves is not None
    assert_same_controls(found.controls, sotdd.sketch(data, projections).controls)
    more = sotdd.SketchBuilder.load(tmp_path / "builder 0", projections).add(*parts[1])
    np.testing.assert_allclose(more.finish().quantiles, expected.quantiles, atol=1e-5)


def test_what_cannot_be_is_refused(tmp_path, data, projections, monkeypatch):
    other = sotdd.Projections.fit([data], n_projections=100, seed=4)
    builder, file = sotdd.SketchBuilder(projections).add(*data), tmp_path / "builder"
    builder.save(file)
    medians = sotdd.Projections.fit([data], n_projections=64, label_law=Medians())
    monkeypatch.setattr("sotdd.sketches.sketching._MOST_SORTED", 1000)
    assert sotdd.sketch(data, medians).halves is not None  # sorted, since it cannot be counted
    for call, named in [
        (lambda: sotdd.sketch_stream([data], projections, n_quantiles=10**12), "n_quantiles is"),
        (lambda: sotdd.sketch_stream([data], None), "projections is None"),
        (lambda: sotdd.sketch_stream(np.array(4), projections), "batches is"),
        (lambda: sotdd.SketchBuilder(projections).add(data[0][:0], np.array(2)), "labels but no features"),
        (lambda: sotdd.sketch_stream([data], medians), "streams take label_law='moments'"),
        (lambda: sotdd.SketchBuilder(projections).finish(), "no points"),
        (lambda: builder.merge(sotdd.SketchBuilder(other)), "seed is 3 and 4"),
        (lambda: builder.merge(projections), "other is"),
        (lambda: sotdd.sketch_stream([data], projections, bins=3), "bins is given"),
        (lambda: sotdd.Sketch.load(file), "expected a sketch"),
        (lambda: sotdd.SketchBuilder.load(file, other), "other projections"),
        (lambda: sotdd.SketchBuilder.load(tmp_path / "missing"), "cannot read"),
        (lambda: sotdd.SketchBuilder(projections).add(data[0][:2], [(1, 2), (3, 4)]).save(tmp_path / "x"), "label"),
    ]:
        with pytest.raises(sotdd.SotddError, match=named):
            call()
    for batches in (lambda: [data], "abc", 5, b"abc", [5], [None]):
        with pytest.raises(sotdd.SotddError, match="batch"):
            sotdd.sketch_stream(batches, projections)
    assert os.listdir(tmp_path) == ["builder"]


def test_errors_of_the_batches_themselves_are_their_own(data, projections):
    def broken():
        yield data
        raise RuntimeError("the disk is on fire")

    with pytest.raises(RuntimeError, match="on fire"):
        sotdd.sketch_stream(broken(), projections)


def test_bad_batches_are_refused_and_nothing_is_lost(data, projections):
    x, y = data
    builder = sotdd.SketchBuilder(projections).add(x, y).add(x[:0], y[:0]).add(x[:0])  # the empty ones add nothing
    for features, labels, named in [
        (x[:5, :3], y[:5], "3 features .* 6"),
        (x[:5], y[:4], "labels"),
        (x[:0], y[:1], "labels"),
        (x[:5] * np.nan, y[:5], "NaN"),
        (x[:5], ["1", "2", "1", "1", "1"], "text"),
        (x[:5].astype(str), y[:5], "dtype"),
    ]:
        with pytest.raises(sotdd.SotddError, match=named):
            builder.add(features, labels)
    assert builder.n_points == 6000
    assert builder.finish().distance(sotdd.sketch(data, projections)).value < 2e-3
    with pytest.raises(sotdd.SotddError, match="too large"):
        builder.add(x * 1e39, y)
    # What was added of that batch stays in it: a later batch does not make it whole.
    whole = sotdd.SketchBuilder(projections).add(x, y)
    for call in (builder.finish, lambda: builder.add(x, y), lambda: builder.merge(whole), lambda: whole.merge(builder)):
        with pytest.raises(sotdd.SotddError, match="start again"):
            call()


def test_streams_of_real_data_are_within_one_percent(pictures):
    sets = {}
    for name in ("mnist", "fashion_mnist"):
        data = pictures(name)
        sets[name] = data["X_train"].reshape(-1, 784), data["y_train"]
    x, y = sets["mnist"]
    sets |= {"half": (x[::2], y[::2]), "other half": (x[1::2], y[1::2])}
    projections = sotdd.Projections.fit(sets, n_projections=64)
    streamed = {
        name: sotdd.sketch_stream(in_batches(data, [300]), projections, name=name) for name, data in sets.items()
    }
    found, exact = sotdd.pairwise(streamed), sotdd.pairwise(sets, projections=projections)
    np.testing.assert_allclose(found.values, exact.values, rtol=0.01)
