"""The quantile label term: against a brute force, on every engine, and what it stands for."""

from itertools import pairwise as neighbours

import numpy as np
import pytest
import torch

import reference
import sotdd
from sotdd.compute.comparison import compare
from sotdd.compute.cpu.engine import CpuEngine
from sotdd.compute.cpu.rows import find_class_terms, sort_classes
from sotdd.compute.torch.engine import TorchEngine
from sotdd.projections import Directions, Quantiles

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
    for engine in (CpuEngine(), TorchEngine("cpu")):
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


# ---------------------------------------------------------------- the loss


def tensors(rng, n, classes, d=3):
    x, y = blobs(rng, n, classes, d)
    return torch.tensor(x), torch.tensor(y)


@pytest.mark.parametrize(("n", "m"), [(30, 30), (41, 27)])
def test_the_loss_agrees_with_the_brute_force(rng, n, m):
    (x, y), (x2, y2) = tensors(rng, n, 4), tensors(rng, m, 3)
    projections = sotdd.Projections.fit([x, x2], n_projections=70, label_law="quantiles", scale=None)
    expected = (
        brute_force((x.numpy(), y.numpy()), (x2.numpy(), y2.numpy()), projections, 2)
        @ projections.draw(0, 70).importance
        / 70
    )
    found = sotdd.gradients.sotdd_loss(x, y, x2, y2, projections)
    np.testing.assert_allclose(found.item(), expected, rtol=1e-6)
    soft = [torch.nn.functional.one_hot(labels, 5).double().requires_grad_() for labels in (y, y2)]
    by_soft = sotdd.gradients.sotdd_loss(x, soft[0], x2, soft[1], projections)  # with empty classes
    np.testing.assert_allclose(by_soft.item(), expected, rtol=1e-6)


def test_soft_labels_by_their_definition(rng):
    """A class is its quantile function weighted by membership; a point is shifted by its expected term."""
    x, x2 = rng.normal(size=(6, 2)), rng.normal(size=(6, 2))
    parts = rng.integers(1, 5, size=(6, 2))
    members = parts / parts.sum(axis=1, keepdims=True)
    projections = sotdd.Projections.fit(
        [x, x2], n_projections=10, label_law=sotdd.projections.ClassQuantiles(5), scale=None
    )
    block = projections.draw(0, 10)
    expected = []
    for theta, c in zip(block.features.theta.astype(np.float64), block.terms.coefficients, strict=True):
        t, order = x @ theta, np.argsort(x @ theta)
        terms = [reference.bin_means(t[order], 5, members[order, label]) @ c for label in (0, 1)]
        plain = reference.quantile_projections(x2, [0] * 6, theta, 1.0, c)
        expected.append(reference.wasserstein(t + members @ terms, plain, 2))
    found = sotdd.gradients.sotdd_loss(
        torch.tensor(x), torch.tensor(members), torch.tensor(x2), torch.zeros(6, dtype=torch.int64), projections
    )
    np.testing.assert_allclose(found.item(), np.mean(block.importance * expected), rtol=1e-9)


@pytest.mark.parametrize("soft", [False, True])
def test_gradients_are_those_of_finite_differences(rng, soft):
    (x, y), (x2, y2) = tensors(rng, 9, 2), tensors(rng, 7, 3)
    law = sotdd.projections.ClassQuantiles(4)
    projections = sotdd.Projections.fit([x, x2], n_projections=8, label_law=law, scale=None)
    x.requires_grad_()
    if not soft:
        assert torch.autograd.gradcheck(lambda x: sotdd.gradients.sotdd_loss(x, y, x2, y2, projections), [x])
        return
    logits = torch.tensor(rng.normal(size=(9, 2)), requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda x, logits: sotdd.gradients.sotdd_loss(x, logits.softmax(1), x2, y2, projections), [x, logits]
    )
