"""Multidimensional scaling against known answers and scikit-learn's."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

from sotdd.basics.multidimensional_scaling import classical_scaling, euclidean_distances, raw_stress, smacof


@pytest.fixture
def unrealisable(rng):
    """Distances in six dimensions, which two cannot hold."""
    return squareform(pdist(rng.normal(size=(15, 6))))


@pytest.mark.parametrize(("count", "dimensions"), [(8, 3), (4, 3), (2, 1)])
def test_classical_scaling_recovers_distances_that_points_have(rng, count, dimensions):
    distances = squareform(pdist(rng.normal(size=(count, dimensions))))
    points = classical_scaling(distances, dimensions)
    np.testing.assert_allclose(squareform(pdist(points)), distances, atol=1e-9)
    np.testing.assert_allclose(points.mean(axis=0), 0, atol=1e-9)


def test_coordinates_beyond_the_number_of_points_are_zero():
    points = classical_scaling(np.array([[0.0, 3.0], [3.0, 0.0]]), 5)
    assert points.shape == (2, 5)
    assert not points[:, 2:].any()
    assert classical_scaling(np.zeros((1, 1)), 3).tolist() == [[0.0, 0.0, 0.0]]


def test_smacof_recovers_distances_that_points_have(rng):
    truth = rng.normal(size=(10, 3))
    distances = squareform(pdist(truth))
    points = smacof(distances, truth + 0.1 * rng.normal(size=(10, 3)), max_steps=5000)
    np.testing.assert_allclose(squareform(pdist(points)), distances, atol=1e-3)


def test_smacof_never_raises_the_stress(unrealisable, rng):
    points = rng.normal(size=(15, 2))
    stresses = [raw_stress(unrealisable, points)]
    for _ in range(30):
        points = smacof(unrealisable, points, max_steps=1)
        stresses.append(raw_stress(unrealisable, points))
    assert (np.diff(stresses) <= 1e-9 * stresses[0]).all()
    assert stresses[-1] < 0.5 * stresses[0]


def test_smacof_arrives_where_scikit_learn_does(unrealisable):
    manifold = pytest.importorskip("sklearn.manifold")
    start = classical_scaling(unrealisable, 2)
    theirs = manifold.smacof(
        unrealisable, n_components=2, init=start, n_init=1, max_iter=3000, eps=1e-12, normalized_stress=False
    )
    ours = smacof(unrealisable, start, max_steps=3000)
    np.testing.assert_allclose(ours, theirs[0], atol=1e-3)
    assert raw_stress(unrealisable, ours) / 2 == pytest.approx(theirs[1], rel=1e-6)


def test_points_that_coincide_and_a_single_point_are_no_trouble():
    assert smacof(np.zeros((3, 3)), np.zeros((3, 2))).tolist() == [[0.0, 0.0]] * 3
    assert smacof(np.zeros((1, 1)), np.zeros((1, 2))).tolist() == [[0.0, 0.0]]
    np.testing.assert_array_equal(euclidean_distances(np.array([[0.0], [3.0]])), [[0.0, 3.0], [3.0, 0.0]])
