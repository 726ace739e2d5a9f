"""Laws of directions: uniform on the sphere, and orthogonal to their neighbours."""

import math

import numpy as np
import pytest
from scipy import stats

import sotdd


@pytest.mark.parametrize("law", [sotdd.Sphere(), sotdd.Orthogonal()])
@pytest.mark.parametrize("d", [2, 3, 100])
def test_directions_are_uniform(law, d):
    """Length one; each coordinate has the law of a uniform direction; no direction is preferred."""
    projections = sotdd.Projections.fit([np.zeros((1, d))], directions=law, n_projections=4096)
    theta = projections.draw(0, 4096).features.theta
    np.testing.assert_allclose(np.linalg.norm(theta, axis=1), 1, rtol=1e-6)
    # (1 + coordinate) / 2 of a uniform direction is Beta((d - 1) / 2, (d - 1) / 2)
    beta = stats.beta((d - 1) / 2, (d - 1) / 2)
    for coordinate in theta.T[:3]:
        assert stats.kstest((1 + coordinate[::7]) / 2, beta.cdf).pvalue > 1e-3
    assert np.linalg.norm(theta.mean(axis=0)) < 4 / math.sqrt(4096)


@pytest.mark.parametrize("d", [1, 2, 5, 63, 64, 65, 200])
def test_orthogonal_blocks(d):
    theta = sotdd.Projections.fit([np.zeros((1, d))], directions=sotdd.Orthogonal(), n_projections=128).draw(0, 128)
    for start in (0, 64):
        for first in range(start, start + 64, d):
            rows = theta.features.theta[first : min(first + d, start + 64)]
            np.testing.assert_allclose(rows @ rows.T, np.eye(len(rows)), atol=1e-6)
    signs = np.sign(sotdd.Orthogonal().draw(np.random.default_rng(0), 1000, 1).theta)
    assert 400 < np.sum(signs > 0) < 600  # in one dimension Haar is a fair coin
