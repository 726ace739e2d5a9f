"""Explanations: against a slow reading of the definition, and on cases with a known answer."""

import json
import math

import numpy as np
import pytest
import threadpoolctl

import reference
import sotdd
from laws import Medians


def blobs(rng, n, centres, labels):
    which = np.repeat(np.arange(len(centres)), n // len(centres))
    return rng.normal(size=(len(which), centres.shape[1])) + centres[which], np.array(labels)[which]


def slow(a, b, draws, p, weights=None):
    """Class distances, coupling and costs in float64: repeat points to a common size, pair them in order.

    Row l counts by weights[l]: means of costs are over the number of rows, shares of mass over all weights.
    """
    labels = [sorted(set(y)) for _, y in (a, b)]
    common = math.lcm(len(a[0]), len(b[0]))
    counts = np.ones(len(draws["theta"])) if weights is None else weights
    between = np.zeros((len(labels[0]), len(labels[1])))
    mass, costs = np.zeros_like(between), np.zeros_like(between)
    for l, weight in enumerate(counts / len(counts)):  # noqa: E741
        drawn = draws["theta"][l], draws["psi"][l], draws["orders"][l]
        seen = [reference.data_point_projections(*data, *drawn) for data in (a, b)]
        parts = [
            [values[data[1] == label] for label in side]
            for values, data, side in zip(seen, (a, b), labels, strict=True)
        ]
        for i, x in enumerate(parts[0]):
            for j, y in enumerate(parts[1]):
                between[i, j] += weight * reference.wasserstein(x, y, p)
        long = []
        for values, data in zip(seen, (a, b), strict=True):
            order = np.argsort(values)
            repeats = common // len(values)
            long.append((np.repeat(values[order], repeats), np.repeat(np.asarray(data[1])[order], repeats)))
        for x, c, y, d in zip(*long[0], *long[1], strict=True):
            place = labels[0].index(c), labels[1].index(d)
            mass[place] += weight / common / np.mean(counts)
            costs[place] += weight * abs(x - y) ** p / common
    return between ** (1 / p), mass, costs


@pytest.mark.parametrize(("p", "m"), [(1, 24), (1, 30), (2, 24), (2.5, 30)])
def test_everything_is_what_the_definition_says(rng, p, m):
    a = rng.normal(size=(24, 3)), rng.permutation(np.repeat(["x", "y", "z"], 8))
    b = rng.normal(0.5, 1, size=(m, 3)), rng.permutation(np.repeat([3, 7], m // 2))
    draws = reference.draw(rng, 20, 3)
    why = sotdd.explain(a, b, p=p, projections=sotdd.Projections.from_arrays(**draws))
    between, mass, costs = slow(a, b, draws, p)
    np.testing.assert_allclose(why.by_class.distances, between, rtol=1e-5)
    np.testing.assert_allclose(why.by_class.coupling, mass, atol=1e-9)
    np.testing.assert_allclose(why.by_class.costs * why.distance.value**p, costs, rtol=1e-4)
    assert why.by_class.distances.shape == why.by_class.stderr.shape == (3, 2)


@pytest.mark.parametrize("p", [1, 2])
def test_projections_that_lean_count_by_their_weights(rng, p):
    """The same definitions with a weight for every projection: those that `distance` draws by default."""
    a = rng.normal(size=(24, 4)) * [5, 1, 1, 1], rng.permutation(np.repeat(["x", "y", "z"], 8))
    b = rng.normal(0.5, 1, size=(30, 4)), rng.permutation(np.repeat([3, 7], 15))
    orders = sotdd.projections.UniformOrders(2)
    tilted = sotdd.Projections.fit([a, b], n_projections=64, moments=orders, n_moments=1, scale=None, tilt=True)
    block = tilted.draw(0, 64)
    assert np.ptp(block.importance) > 0.5  # or the test shows nothing
    # One moment of order 1 or 2: the polynomial ψ t or ψ t² / 2 tells both.
    straight, squared = block.terms.coefficients[:, 1:3].T
    order = np.where(squared != 0, 2, 1)[:, None]
    psi = np.stack([block.terms.weights, np.where(squared != 0, 2 * squared, straight)], axis=1)
    draws = {"theta": block.features.theta.astype(float), "psi": psi, "orders": order}
    why = sotdd.explain(a, b, p=p, projections=tilted, estimator="plain")
    between, mass, costs = slow(a, b, draws, p, block.importance)
    np.testing.assert_allclose(why.by_class.distances, between, rtol=1e-4)
    np.testing.assert_allclose(why.by_class.coupling, mass, atol=1e-6)
    np.testing.assert_allclose(why.by_class.costs * why.distance.value**p, costs, rtol=1e-3)
    assert costs.sum() == pytest.approx(why.distance.value**p, rel=1e-4)


@pytest.mark.parametrize("estimator", ["controlled", "plain"])
def test_the_distance_is_the_distance(rng, centres, estimator):
    a, b = blobs(rng, 200, centres, list("abcd")), blobs(rng, 160, centres + 1, [1, 2, 3, 4])
    why = sotdd.explain(a, b, n_projections=300, seed=5, estimator=estimator)
    alone = sotdd.distance(a, b, n_projections=300, seed=5, estimator=estimator)
    assert why.distance.value == alone.value
    np.testing.assert_array_equal(why.distance.per_projection, alone.per_projection)
    projections = sotdd.Projections.fit([a, b], n_projections=300, seed=5, tilt=estimator == "controlled")
    forgotten = sotdd.distance(a[0], b[0], projections=projections, estimator=estimator)
    assert why.unlabelled.value == pytest.approx(forgotten.value, rel=1e-6)  # the tilt has other last bits
    assert why.features + why.labels == 1
    cell = sotdd.distance(a[0][a[1] == "c"], b[0][b[1] == 1], projections=projections, estimator="plain")
    assert why.by_class.distances[2, 0] == pytest.approx(cell.value, rel=1e-5)
    assert why.by_class.stderr[2, 0] == pytest.approx(cell.stderr, rel=1e-4)


# --------------------------------------------------------------------------- known answers


def test_one_class_missing(rng, centres):
    a, b = blobs(rng, 400, centres, list("abcd")), blobs(rng, 300, centres[:3], ["A", "B", "C"])
    why = sotdd.explain(a, b)
    first, second = (why.lines(side) for side in (0, 1))
    assert {line.label: line.counterpart for line in first} == {"a": "A", "b": "B", "c": "C", "d": None}
    assert {line.label: (line.counterpart, line.nearest) for line in second} == {
        "A": ("a", "a"), "B": ("b", "b"), "C": ("c", "c"),
    }  # fmt: skip
    assert first[0].label == "d"
    for lines in (first, second):
        assert sum(line.share for line in lines) == pytest.approx(1)
    np.testing.assert_allclose(why.by_class.coupling.sum(axis=1), np.full(4, 1 / 4))
    np.testing.assert_allclose(why.by_class.coupling.sum(axis=0), np.full(3, 1 / 3))
    text, told = why.table(limit=2), json.loads(json.dumps(why.to_dict(), allow_nan=False))
    assert "… and 2 more" in text
    assert "without a counterpart in b: d" in text
    assert told["class_distances"] == why.by_class.distances.tolist()
    assert [line["counterpart"] for line in told["classes"][1]] == [line.counterpart for line in second]


def test_labels_can_bring_datasets_nearer():
    """Points at ±1 without labels look like labels at ±1 on points at 0, under a weight of one for both."""
    projections = sotdd.Projections.from_arrays(theta=[[1.0]], psi=[[1.0, 1.0]], orders=[[1]])
    a = [[-2.0], [2.0]], ["one", "one"]
    b = [[-1.0], [1.0]], ["low", "high"]
    why = sotdd.explain(a, b, projections=projections)
    assert why.distance.value == 0
    assert why.unlabelled.value == 1
    assert math.isnan(why.features)


# --------------------------------------------------------------------------- how it is done


def test_chunks_and_threads_do_not_matter(rng, centres, monkeypatch):
    a, b = blobs(rng, 200, centres, list("abcd")), blobs(rng, 160, centres + 1, list("abcd"))
    whole = sotdd.explain(a, b, n_projections=300)
    monkeypatch.setattr("sotdd.compute.cpu_engine._TILES", 1)
    with threadpoolctl.threadpool_limits(1):
        parts = sotdd.explain(a, b, n_projections=300)
    np.testing.assert_array_equal(whole.by_class.distances, parts.by_class.distances)
    np.testing.assert_array_equal(whole.by_class.costs, parts.by_class.costs)


def test_other_laws_are_explained_too(rng, centres):
    x, y = blobs(rng, 200, centres, list("abcd"))
    why = sotdd.explain((x, y), (x, rng.permutation(y)), label_law=Medians(), n_projections=128)
    assert why.features == pytest.approx(0, abs=1e-9)


def test_the_same_dataset_twice_and_one_without_labels(rng):
    a = sotdd.LabelledData.of((rng.normal(size=(60, 2)), rng.integers(3, size=60)))
    told = []
    why = sotdd.explain(a, a, n_projections=64, progress=lambda *now: told.append(now))
    assert told == sorted(told)
    assert told[-1] == (3000, 3000)
    assert why.names == ("data", "data (2)")
    assert repr(why).startswith("data and data (2): no difference found, p = 1\ndistance 0 ± 0, by itself within noise")
    assert not why.by_class.costs.any()
    assert json.loads(json.dumps(why.to_dict(), allow_nan=False))["features"] is None
    np.testing.assert_allclose(np.diag(why.by_class.coupling), np.bincount(a.codes) / 60)
    bare = sotdd.explain(a.features, a.features + 1, n_projections=64)
    assert (bare.features, bare.labels, bare.lines(0)[0].counterpart) == (1, 0, "all")


@pytest.mark.parametrize(("setting", "bad"), [("estimator", "auto"), ("p", 0)])
def test_odd_settings_are_refused_by_name(setting, bad):
    with pytest.raises(sotdd.SotddError, match=f"{setting} is {bad!r}"):
        sotdd.explain([[0.0]], [[1.0]], **{setting: bad})


def test_too_many_classes_are_refused():
    x = np.zeros((2100, 2))
    with pytest.raises(sotdd.SotddError, match=r"2,100 and 2,100 classes, too many"):
        sotdd.explain((x, np.arange(2100)), (x, np.arange(2100)), n_projections=1)
