"""Laws of directions and of moment orders, and the polynomials that moments become."""

import math

import numpy as np
import pytest
from scipy import stats

import sotdd


@pytest.mark.parametrize(("rate", "max_order"), [(0.3, 170), (1.0, 1), (1.0, 3), (5.0, 4), (5.0, 170)])
def test_orders_up_to_the_highest_keep_their_odds(rng, rate, max_order):
    orders = sotdd.projections.ZeroTruncatedPoisson([rate], max_order).orders(rng.random((200_000, 1)))[:, 0]
    assert orders.min() == 1
    assert orders.max() <= max_order
    odds = stats.poisson.pmf(np.arange(1, max_order + 1), rate)
    observed = np.bincount(orders, minlength=max_order + 1)[1:]
    kept = odds / odds.sum() * len(orders) > 5
    expected = odds[kept] / odds[kept].sum() * observed[kept].sum()
    assert max_order == 1 or stats.chisquare(observed[kept], expected).pvalue > 1e-3
    law = sotdd.projections.ZeroTruncatedPoisson([rate], max_order)
    assert law.orders(np.array([[0.0], [np.nextafter(1.0, 0.0)]])).tolist()[0] == [1]
    assert np.all(np.diff(law.orders(np.linspace(0, 1, 999, endpoint=False)[:, None])[:, 0]) >= 0)


def test_uniform_orders_frequencies(rng):
    orders = sotdd.projections.UniformOrders(6).orders(rng.random((60_000, 2)))
    for column in orders.T:
        counts = np.bincount(column, minlength=7)
        assert counts[0] == 0
        assert stats.chisquare(counts[1:]).pvalue > 1e-3


def test_default_rates_are_one_to_k():
    recipe = sotdd.Projections.fit([np.zeros((1, 2))], n_moments=3).recipe()
    assert recipe["label"]["orders"]["rates"] == [1.0, 2.0, 3.0]
    given_rates = sotdd.Projections.fit([np.zeros((1, 2))], moments=[2.5, 0.5]).recipe()
    assert given_rates["label"]["orders"]["rates"] == [2.5, 0.5]
    assert given_rates["label"]["n_moments"] == 2
    uniform = sotdd.Projections.fit([np.zeros((1, 2))], moments=sotdd.projections.UniformOrders(4)).recipe()
    assert uniform["label"]["n_moments"] == 5


def test_moments_become_one_polynomial(rng):
    """Σ ψ_i t^λ_i / λ_i! evaluated as written, against the coefficients."""
    from sotdd.projections.labels import moment_terms

    psi, orders = rng.normal(size=(50, 6)), rng.integers(1, 12, size=(50, 5))
    terms = moment_terms(psi, orders)
    t = 1.7
    expected = [
        sum(w * t**k / math.factorial(k) for w, k in zip(p[1:], o, strict=True))
        for p, o in zip(psi, orders, strict=True)
    ]
    powers = t ** np.arange(terms.coefficients.shape[1])
    np.testing.assert_allclose(terms.coefficients @ powers, expected)
    np.testing.assert_array_equal(terms.weights, psi[:, 0])


def test_weights_are_uniform_on_their_sphere():
    block = sotdd.Projections.fit([np.zeros((1, 1))], n_moments=2, n_projections=4096).draw(0, 4096)
    beta = stats.beta(1, 1)  # a coordinate on the sphere of R³
    assert stats.kstest((1 + block.terms.weights) / 2, beta.cdf).pvalue > 1e-3


# ------------------------------------------------------------------ directions


@pytest.mark.parametrize("law", [sotdd.projections.Sphere(), sotdd.projections.Orthogonal()])
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
    theta = sotdd.Projections.fit(
        [np.zeros((1, d))], directions=sotdd.projections.Orthogonal(), n_projections=128
    ).draw(0, 128)
    for start in (0, 64):
        for first in range(start, start + 64, d):
            rows = theta.features.theta[first : min(first + d, start + 64)]
            np.testing.assert_allclose(rows @ rows.T, np.eye(len(rows)), atol=1e-6)
    signs = np.sign(sotdd.projections.Orthogonal().draw(np.random.default_rng(0), 1000, 1).theta)
    assert 400 < np.sum(signs > 0) < 600  # in one dimension Haar is a fair coin
