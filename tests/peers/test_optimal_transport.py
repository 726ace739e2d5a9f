"""OTDD against known answers, an assignment solver, and its own limit."""

import math

import numpy as np
import pytest
from scipy import optimize
from scipy.spatial.distance import cdist

from sotdd import peers


def test_otdd_against_an_assignment_solver(rng):
    """For equal sizes transport is an assignment, which SciPy solves by another algorithm."""
    a, b = rng.normal(size=(2, 40, 3))
    labels = np.arange(40) % 2, np.arange(40) // 20
    groups = [[x[y == c] for c in (0, 1)] for x, y in zip((a, b), labels, strict=True)]
    between = np.zeros((2, 2))
    for i in range(2):
        for j in range(2):
            cost = cdist(groups[0][i], groups[1][j], "sqeuclidean")
            between[i, j] = cost[optimize.linear_sum_assignment(cost)].mean()
    cost = cdist(a, b, "sqeuclidean") + between[labels[0]][:, labels[1]]
    expected = cost[optimize.linear_sum_assignment(cost)].mean()
    result = peers.otdd((a, labels[0]), (b, labels[1]))
    np.testing.assert_allclose(result.label_distances, between)
    assert result.value == pytest.approx(math.sqrt(expected))


@pytest.mark.parametrize("p", [1, 2, 3])
def test_otdd_of_two_points(p):
    """One point each at distance 5: feature cost 5^p, and label cost the same."""
    result = peers.otdd(([[0.0, 0.0]], ["a"]), ([[3.0, 4.0]], ["b"]), p=p)
    assert result.value == pytest.approx((2 * 5**p) ** (1 / p))


@pytest.mark.parametrize("settings", [{}, {"inner": "gaussian"}, {"max_points": 30}])
def test_otdd_of_a_dataset_with_itself(pair, settings):
    assert peers.otdd(pair[0], pair[0], **settings).value == pytest.approx(0, abs=1e-5)
