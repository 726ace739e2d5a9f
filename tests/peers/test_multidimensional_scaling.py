"""Multidimensional scaling against known answers and scikit-learn's."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

from sotdd.peers.embeddings import classical_scaling, raw_stress, smacof


@pytest.mark.parametrize(("count", "dimensions"), [(8, 3), (4, 3), (2, 1)])
def test_both_recover_distances_that_points_have(rng, count, dimensions):
    truth = rng.normal(size=(count, dimensions))
    distances = squareform(pdist(truth))
    np.testing.assert_allclose(squareform(pdist(classical_scaling(distances, dimensions))), distances, atol=1e-9)
    points = smacof(distances, truth + 0.1 * rng.normal(size=truth.shape), max_steps=5000)
    np.testing.assert_allclose(squareform(pdist(points)), distances, atol=1e-3)


def test_smacof_lowers_the_stress_to_where_scikit_learn_does(rng):
    manifold = pytest.importorskip("sklearn.manifold")
    distances = squareform(pdist(rng.normal(size=(15, 6))))  # which two dimensions cannot hold
    start = classical_scaling(distances, 2)
    theirs = manifold.smacof(
        distances, n_components=2, init=start, n_init=1, max_iter=3000, eps=1e-12, normalized_stress=False
    )
    ours = smacof(distances, start, max_steps=3000)
    np.testing.assert_allclose(ours, theirs[0], atol=1e-3)
    assert raw_stress(distances, ours) / 2 == pytest.approx(theirs[1], rel=1e-6)
    assert raw_stress(distances, ours) < raw_stress(distances, start)


def test_few_points_and_points_that_coincide():
    points = classical_scaling(np.array([[0.0, 3.0], [3.0, 0.0]]), 5)
    assert points.shape == (2, 5)
    assert not points[:, 2:].any()
    assert classical_scaling(np.zeros((1, 1)), 3).tolist() == [[0.0, 0.0, 0.0]]
    assert smacof(np.zeros((3, 3)), np.zeros((3, 2))).tolist() == [[0.0, 0.0]] * 3
    assert smacof(np.zeros((1, 1)), np.zeros((1, 2))).tolist() == [[0.0, 0.0]]
