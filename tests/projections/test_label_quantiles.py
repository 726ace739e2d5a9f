"""The quantile label term: against a brute force, on every engine, and what it stands for."""

from itertools import pairwise as neighbours

import numpy as np
import pytest

import reference
import sotdd
from sotdd.compute.comparison import compare
from sotdd.compute.cpu_engine import CpuEngine
from sotdd.compute.numpy_engine import NumpyEngine
from sotdd.compute.torch.engine import TorchEngine
from sotdd.projections import Directions, Quantiles
from sotdd.projections.kernels import sort_classes
from sotdd.projections.labels import find_class_terms

LAWS = {
    "moments": "moments",
    "moments up to 3": sotdd.projections.Moments(orders=sotdd.projections.ZeroTruncatedPoisson(max_order=3)),
    "quantiles": "quantiles",
    "quantiles of weight 2": sotdd.projections.ClassQuantiles(levels=7, weight=2.0),
}


class Clamped:
    """Directions on the sphere whose projections are cut."""

    def describe(self):
        return {"law": "clamped sphere"}

    def draw(self, rng, n_projections, n_features):
        theta = rng.normal(size=(n_projections, n_features))
        return Directions(theta / np.linalg.norm(theta, axis=1, keepdims=True), clamp=0.8)


def blobs(rng, n, classes, d=4):
    labels = rng.integers(0, classes, size=n)
    return rng.normal(size=(n, d)) + 0.3 * labels[:, None] / classes, labels


@pytest.fixture
def pair(rng):
    """Classes of 1, 2, a few and many points; sizes that no number of levels divides."""
    sizes = (1, 2, 5, 16, 29)
    a = rng.normal(size=(sum(sizes), 4)), rng.permutation(np.repeat(list("abcde"), sizes))
    return a, blobs(rng, 37, 3)


def brute_force(a, b, projections, p, clamp=None):
    block = projections.draw(0, projections.n_projections)
    drawn = block.features.theta, block.terms.weights, block.terms.coefficients
    return reference.quantile_per_projection(a, b, *drawn, p, clamp=clamp)


# ---------------------------------------------------------------- engines


@pytest.mark.parametrize("levels", [1, 3, 16])
@pytest.mark.parametrize("settings", [{}, {"directions": Clamped()}])
def test_engines_agree_with_the_brute_force(pair, levels, settings):
    projections = sotdd.Projections.fit(
        list(pair), n_projections=40, label_law=sotdd.projections.ClassQuantiles(levels), scale=None, **settings
    )
    clamp = 0.8 if "directions" in settings else None
    expected = brute_force(*pair, projections, 2, clamp)
    data = [sotdd.LabelledData.of(side, name) for side, name in zip(pair, "ab", strict=True)]
    for engine in (CpuEngine(), TorchEngine("cpu"), NumpyEngine()):
        found = compare(data, [(0, 1)], projections, 2, engine=engine)[0, 1]
        np.testing.assert_allclose(found.per_projection, expected, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("sizes", [[1], [1, 1, 1], [1000, 3, 1500, 40, 1, 64, 65], [20] * 100])
def test_classes_are_sorted_and_summarised(rng, sizes):
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    rows = rng.normal(size=(3, offsets[-1])).astype(np.float32)
    terms = Quantiles(np.ones(3), rng.normal(size=(3, 16)))
    classes = [np.sort(rows[:, first:last], axis=1) for first, last in neighbours(offsets)]
    found = find_class_terms(rows.copy(), offsets, terms)
    bins = np.stack([reference.bin_means(values, 16) for values in classes], axis=1)
    expected = np.einsum("bck,bk->bc", bins, terms.coefficients)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    sort_classes(rows, offsets)
    np.testing.assert_array_equal(rows, np.concatenate(classes, axis=1))


# ---------------------------------------------------------------- what it stands for


def test_labelled_points_are_apart_as_otdd_has_it(rng):
    """(t − t')² + w² W_2² between the classes, on average over the coefficients."""
    a, b = rng.normal(size=16), rng.normal(1, 2, size=16)
    drawn = sotdd.projections.ClassQuantiles(16, weight=1.5).draw(rng, 200_000)
    terms = [drawn.coefficients @ reference.bin_means(np.sort(values), 16) for values in (a, b)]
    gaps = drawn.weights * (a[0] - b[0]) + terms[0] - terms[1]
    expected = (a[0] - b[0]) ** 2 + 1.5**2 * reference.wasserstein(a, b, 2)
    assert abs(np.mean(gaps**2) - expected) < 4 * np.std(gaps**2) / np.sqrt(len(gaps))


# ---------------------------------------------------------------- a metric, for fixed projections


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("p", [1, 2, 3])
def test_it_is_a_metric_for_fixed_projections(rng, law, p):
    data = {name: blobs(rng, n, classes) for name, n, classes in (("a", 60, 2), ("b", 45, 3), ("c", 80, 5))}
    values = sotdd.pairwise(data, n_projections=128, p=p, label_law=law).values
    projections = sotdd.Projections.fit(data, n_projections=128, label_law=law)
    (x, y), order = data["c"], rng.permutation(80)
    again = sotdd.distance((x, y), (x[order], [f"class {label}" for label in y[order]]), projections=projections, p=p)
    assert again.value < 1e-5  # points in another order under other names are the same dataset
    np.testing.assert_array_equal(values, values.T)
    assert np.all(values[~np.eye(3, dtype=bool)] > 0.01)
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        assert values[i, j] <= values[i, k] + values[k, j] + 1e-6


def test_without_weight_it_is_sliced_wasserstein(rng):
    a, b = blobs(rng, 50, 3), blobs(rng, 60, 4)
    found = sotdd.distance(
        a, b, label_law=sotdd.projections.ClassQuantiles(weight=0), scale=None, estimator="plain", n_projections=200
    )
    assert found.value == sotdd.peers.sliced_wasserstein(a, b, n_projections=200).value


# ---------------------------------------------------------------- settings


def test_laws_by_name():
    def mark(**settings):
        return sotdd.Projections.fit([np.eye(2)], **settings).fingerprint

    assert mark(label_law="moments") == mark(label_law=sotdd.projections.Moments()) == mark(n_moments=5)
    assert mark(label_law="moments", n_moments=3) == mark(n_moments=3)
    assert mark(label_law="paper") == mark(label_law=sotdd.projections.Moments(cut=None)) != mark(label_law="moments")
    assert mark(scale=None) == mark(scale=None, label_law="paper")  # there is no spread to cut at
    assert mark(label_law="quantiles") == mark(label_law=sotdd.projections.ClassQuantiles())
    apart = [
        sotdd.projections.ClassQuantiles(),
        sotdd.projections.ClassQuantiles(8),
        sotdd.projections.ClassQuantiles(weight=2.0),
        sotdd.projections.Moments(),
    ]
    assert len({mark(label_law=label) for label in apart}) == len(apart)
