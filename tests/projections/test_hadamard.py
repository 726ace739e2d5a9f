"""Structured directions: the rows of Hadamard transforms and signs, in every place where `Sphere` works."""

import math
import pickle

import numpy as np
import pytest
from scipy import linalg, stats

import reference
import sotdd
from sotdd.compute.class_moments import _mean_power
from sotdd.projections import ImportanceSampled
from sotdd.projections.rotations import HadamardDirections, rotation_size, sample_rotation

HADAMARD = sotdd.projections.Hadamard()


def fitted(data, **settings):
    return sotdd.Projections.fit(data, directions=HADAMARD, **settings)


@pytest.fixture
def pair(rng):
    a = rng.normal(size=(211, 130)) * np.r_[4.0, np.ones(129)], rng.integers(3, size=211)
    b = rng.normal(0.3, 1, size=(150, 130)), rng.integers(4, size=150)
    return a, b


@pytest.mark.parametrize("d", [128, 255, 256, 784])
def test_directions_are_rows_of_the_product_that_defines_them(rng, d):
    turn = sample_rotation(rng, d)
    size = rotation_size(d)
    assert (size & (size - 1), turn.signs.shape[1]) == (0, size)
    assert size >= d
    product = np.eye(size)
    for signs in np.sign(turn.signs).astype(np.float64):
        product = linalg.hadamard(size) @ (signs[:, None] * product)
    rows = product[:, :d] / np.linalg.norm(product[:, :d], axis=1, keepdims=True)
    points = rng.normal(size=(37, d)).astype(np.float32)
    found = np.empty((size, 37), np.float32)
    turn.write(points, 0, found)
    np.testing.assert_allclose(found, rows @ points.T.astype(np.float64), atol=2e-6 * math.sqrt(d))
    for first, count in ((0, size), (size - 5, 5), (37, 40)):
        theta = HadamardDirections(((turn, first, first + count),), d).theta
        np.testing.assert_allclose(theta, rows[first : first + count], atol=2e-6)


@pytest.mark.parametrize("law", [HADAMARD, ImportanceSampled(np.eye(2, 300), np.array([3.0, 1.5]), structured=True)])
def test_directions_of_a_part_are_those_of_the_whole(rng, law):
    drawn = law.draw(rng, 700, 300)  # of two turns
    np.testing.assert_array_equal(drawn.part(slice(500, 541)).theta, drawn.theta[500:541])


def test_rows_are_of_length_one_and_those_of_a_whole_turn_orthogonal(rng):
    theta = HADAMARD.draw(rng, 1024, 1024).theta.astype(np.float64)
    np.testing.assert_allclose(theta @ theta.T, np.eye(1024), atol=2e-6)
    for d in (128, 300, 4096):
        np.testing.assert_allclose(np.linalg.norm(HADAMARD.draw(rng, 600, d).theta, axis=1), 1, rtol=1e-5)
    unmeasured = np.linalg.norm(HADAMARD.draw(rng, 8192, 4100).theta, axis=1)
    assert math.sqrt(np.mean(unmeasured**2)) == pytest.approx(1, rel=1e-4)
    assert np.std(unmeasured) < 0.01


@pytest.mark.parametrize("d", [130, 1000])
def test_single_directions_are_uniform(rng, d):
    """Even moments along an axis and along a diagonal, over many turns; and no direction twice."""
    theta = HADAMARD.draw(rng, 40 * rotation_size(d), d).theta.astype(np.float64)
    for along in (theta[:, 0], theta.sum(axis=1) / math.sqrt(d)):
        for half in (1, 2, 3):
            values = along ** (2 * half)
            error = np.std(values) / math.sqrt(len(values))
            assert np.mean(values) == pytest.approx(_mean_power(half, d), abs=4.5 * error + 1e-9)
    if d == 1000:
        assert stats.kstest(theta[:, 3] * math.sqrt(d), "norm").pvalue > 1e-3


@pytest.mark.parametrize("tilt", [False, True])
def test_few_features_are_seen_as_the_sphere_sees_them(rng, tilt):
    x, y = rng.normal(size=(2, 50, 127)) * np.r_[9.0, np.ones(126)]
    found, usual = (
        sotdd.Projections.fit([x, y], directions=law, n_projections=100, tilt=tilt)
        for law in (HADAMARD, sotdd.projections.Sphere())
    )
    np.testing.assert_array_equal(found.draw(0, 100).features.theta, usual.draw(0, 100).features.theta)
    assert found.fingerprint != usual.fingerprint


def test_any_rows_of_a_turn_have_the_bits_of_the_whole(rng):
    drawn = HADAMARD.draw(rng, 1024, 600)
    points = rng.normal(size=(45, 600)).astype(np.float32)
    whole = drawn(points)
    for first, last in [(0, 1), (5, 6), (3, 40), (64, 128), (500, 700), (512, 1024), (1000, 1024)]:
        np.testing.assert_array_equal(drawn.part(slice(first, last))(points), whole[first:last])
    for first, last in [(0, 1), (7, 30), (16, 45)]:  # whichever points stand beside a point
        np.testing.assert_array_equal(drawn(points[first:last]), whole[:, first:last])


@pytest.mark.parametrize("tilt", [False, True])
@pytest.mark.parametrize("scale", ["pooled", None])
def test_every_projection_is_what_brute_force_says(pair, tilt, scale):
    projections = fitted(
        pair, n_projections=300, tilt=tilt, scale=scale, label_law=sotdd.projections.Moments(3, cut=5.0)
    )
    block = projections.draw(0, 300)
    if scale is None:
        sides = pair
    else:
        sides = [((x - projections.scaler.centre) / projections.scaler.scale, y) for x, y in pair]
    expected = reference.cut_per_projection(*sides, block.features.theta.astype(np.float64), block.terms, cut=5.0)
    found = sotdd.distance(*pair, projections=projections, estimator="plain")
    np.testing.assert_allclose(found.per_projection, expected, rtol=2e-3, atol=1e-6 * expected.max())
    assert found.value == pytest.approx(np.mean(block.importance * expected) ** 0.5, rel=1e-3)


def test_weighted_tilted_rows_have_the_means_of_uniform_ones(rng):
    basis = np.linalg.qr(rng.normal(size=(130, 2)))[0].T
    d, count = 130, 400 * 256
    drawn = ImportanceSampled(basis, np.array([2.0, 1.3]), structured=True).draw(rng, count, 130)
    assert drawn.importance.max() <= 2.0 * 1.3 + 1e-9
    theta = drawn.theta.astype(np.float64)
    for values, known in [
        (np.ones(count), 1.0),
        ((theta @ basis[0]) ** 2, 1 / d),
        ((theta @ basis[0]) ** 4, _mean_power(2, d)),
        (theta[:, 1] ** 6, _mean_power(3, d)),
    ]:
        weighted = drawn.importance * values
        assert np.mean(weighted) == pytest.approx(known, abs=4.5 * np.std(weighted) / math.sqrt(count) + 1e-4 * known)


def test_a_tilt_is_taken_off_again(pair):
    tilted = fitted(pair, n_projections=128, tilt=True)
    assert tilted.weighted
    assert tilted.evenly().fingerprint == fitted(pair, n_projections=128, tilt=False).fingerprint
    assert tilted.fingerprint == sotdd.Projections.fit(pair, n_projections=128, tilt=True).fingerprint  # the default
    usual = sotdd.Projections.fit(pair, n_projections=128, tilt=True, directions=sotdd.projections.Sphere())
    assert tilted.fingerprint != usual.fingerprint


def test_it_is_the_default_where_there_are_many_features(rng):
    for d, law in ((127, "sphere"), (128, "hadamard")):
        x = rng.normal(size=(20, d))
        assert sotdd.Projections.fit([x], tilt=False).recipe()["directions"] == {"law": law}
        assert sotdd.Projections.fit([x]).recipe()["directions"]["law"] == f"tilted {law}"
        as_written, by_sphere = (
            sotdd.paper(x, x + 1, n_projections=64, **settings)
            for settings in ({}, {"directions": sotdd.projections.Sphere()})
        )
        assert as_written.value == by_sphere.value


def test_sketches_and_the_loss(pair):
    torch = pytest.importorskip("torch", reason="the loss is torch's")
    from sotdd.gradients import sotdd_loss

    projections = fitted(pair, n_projections=256)
    exact = sotdd.distance(*pair, projections=projections, estimator="plain")
    one, other = (sotdd.sketch(side, projections) for side in pair)
    assert one.distance(other, estimator="plain").value == pytest.approx(exact.value, rel=1e-3)
    sides = [part for x, y in pair for part in (torch.tensor(x), torch.tensor(y))]
    sides[0].requires_grad_()
    loss = sotdd_loss(*sides, projections)
    loss.backward()
    assert loss.item() == pytest.approx(exact.value**2, rel=1e-4)
    assert sides[0].grad.abs().sum() > 0


def test_what_is_drawn_travels_as_its_seed(pair):
    projections = fitted(pair, n_projections=256)
    before = projections.draw(0, 256).features.theta
    sent = pickle.dumps(projections)
    assert len(sent) < 20_000
    np.testing.assert_array_equal(pickle.loads(sent).draw(0, 256).features.theta, before)
