"""Distances between classes, and where labels are put by them."""

import numpy as np
import pytest
from scipy import optimize
from scipy.linalg import sqrtm
from scipy.spatial.distance import pdist, squareform

from sotdd import peers
from sotdd.peers.embeddings import _stress, busemann, lorentz_scaling, place_labels
from sotdd.peers.features import Gaussian

# ------------------------------------------------------------------ Gaussians


@pytest.mark.parametrize(("n", "m", "d"), [(50, 60, 4), (3, 5, 20), (1, 30, 6), (1, 1, 3)])
def test_bures_distance_against_matrix_roots(rng, n, m, d):
    """More features than points, where covariances are singular, is the normal case."""
    x, y = rng.normal(size=(n, d)), rng.normal(1, 2, size=(m, d)) @ rng.normal(size=(d, d))
    first, second = (np.atleast_2d(np.cov(z.T, bias=True)) if len(z) > 1 else np.zeros((d, d)) for z in (x, y))
    root = np.real(sqrtm(first + 1e-13 * np.eye(d)))
    cross = np.linalg.eigvalsh(root @ second @ root)
    expected = (
        np.sum((x.mean(0) - y.mean(0)) ** 2)
        + np.trace(first)
        + np.trace(second)
        - 2 * np.sum(np.sqrt(np.maximum(cross, 0)))
    )
    assert Gaussian.fit(x).squared_distance(Gaussian.fit(y)) == pytest.approx(expected, rel=1e-4)


def test_frechet_of_point_masses_and_copies(rng):
    assert peers.frechet([[0.0, 0.0]], [[3.0, 4.0]]).value == pytest.approx(5)
    x = rng.normal(size=(100, 5))
    assert peers.frechet(x, x).value == pytest.approx(0, abs=1e-6)
    assert peers.frechet(x, x * 2 - x.mean(0)).value == pytest.approx(np.sqrt(np.trace(np.cov(x.T, bias=True))))


# ------------------------------------------------------------------ label placements


def test_labels_are_placed_where_their_distances_say(rng):
    places = rng.normal(size=(8, 3))
    distances = squareform(pdist(places))
    np.testing.assert_allclose(squareform(pdist(place_labels(distances, 3))), distances, atol=1e-4)
    assert place_labels(distances, 10).shape == (8, 10)


def test_the_stress_has_the_gradient_it_says(rng):
    distances = squareform(pdist(rng.normal(size=(6, 3))))
    error = optimize.check_grad(
        lambda z: _stress(z, distances, 4)[0], lambda z: _stress(z, distances, 4)[1], rng.normal(size=24)
    )
    assert error < 1e-4


def test_hyperbolic_placement_recovers_hyperbolic_distances(rng):
    z = rng.normal(size=(7, 2))
    time = np.sqrt(1 + np.sum(z**2, axis=1))
    distances = np.arccosh(np.maximum(np.outer(time, time) - z @ z.T, 1))
    placed = lorentz_scaling(distances, 2)
    np.testing.assert_allclose(-(placed[:, 0] ** 2) + np.sum(placed[:, 1:] ** 2, axis=1), -1)
    product = np.outer(placed[:, 0], placed[:, 0]) - placed[:, 1:] @ placed[:, 1:].T
    np.testing.assert_allclose(np.arccosh(np.maximum(product, 1)), distances, atol=1e-3)


def test_horospherical_coordinates_measure_along_geodesics():
    """On the geodesic in the direction v, the coordinate is minus the distance from the origin."""
    t = np.array([-1.0, 0.0, 0.5, 2.0])
    line = np.stack([np.cosh(t), np.sinh(t), np.zeros(4)], axis=1)
    np.testing.assert_allclose(busemann(line, np.array([[0.0, 1.0, 0.0]]))[0], -t, atol=1e-12)
