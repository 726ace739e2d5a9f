"""Laws of directions, of orders and of labels, and the draws made from them."""

import math

import numpy as np
import pytest
from scipy import stats

import sotdd
from sotdd.projections import Directions, Polynomials, Summaries

LAWS = {"sphere": sotdd.Sphere(), "orthogonal": sotdd.Orthogonal(), "convolution": sotdd.Convolution((2, 6))}


def drawn(projections, start=0, stop=None):
    return projections.draw(start, stop or projections.n_projections)


# ------------------------------------------------------------------ directions


@pytest.mark.parametrize("law", [sotdd.Sphere(), sotdd.Orthogonal()])
@pytest.mark.parametrize("d", [2, 3, 100])
def test_directions_are_uniform(law, d):
    """Length one; each coordinate has the law of a uniform direction; no direction is preferred."""
    projections = sotdd.Projections.fit([np.zeros((1, d))], directions=law, n_projections=4096)
    theta = drawn(projections).features.theta
    np.testing.assert_allclose(np.linalg.norm(theta, axis=1), 1, rtol=1e-6)
    # (1 + coordinate) / 2 of a uniform direction is Beta((d - 1) / 2, (d - 1) / 2)
    beta = stats.beta((d - 1) / 2, (d - 1) / 2)
    for coordinate in theta.T[:3]:
        assert stats.kstest((1 + coordinate[::7]) / 2, beta.cdf).pvalue > 1e-3
    assert np.linalg.norm(theta.mean(axis=0)) < 4 / math.sqrt(4096)


@pytest.mark.parametrize("d", [1, 2, 5, 63, 64, 65, 200])
def test_orthogonal_blocks(d):
    theta = drawn(sotdd.Projections.fit([np.zeros((1, d))], directions=sotdd.Orthogonal(), n_projections=128))
    for start in (0, 64):
        for first in range(start, start + 64, d):
            rows = theta.features.theta[first : min(first + d, start + 64)]
            np.testing.assert_allclose(rows @ rows.T, np.eye(len(rows)), atol=1e-6)
    signs = np.sign(drawn(sotdd.Projections.fit([np.zeros((1, 1))], directions=sotdd.Orthogonal())).features.theta)
    assert 400 < np.sum(signs > 0) < 600  # in one dimension Haar is a fair coin


def test_orthogonal_directions_cover_more_evenly(rng):
    """The point of them: the same distance with less spread between seeds."""
    a, b = rng.normal(size=(60, 8)), rng.normal(0.5, 1, size=(60, 8)) * np.linspace(0.5, 2, 8)

    def spread(law):
        settings = {"n_projections": 256, "n_moments": 1, "moments": sotdd.UniformOrders(1), "directions": law}
        return np.std([sotdd.distance(a, b, seed=seed, estimator="plain", **settings).value for seed in range(60)])

    assert spread(sotdd.Orthogonal()) < spread(sotdd.Sphere())


# ------------------------------------------------------------------ orders


@pytest.mark.parametrize("rate", [0.3, 1.0, 3.0, 5.0, 20.0])
def test_zero_truncated_poisson_frequencies(rng, rate):
    orders = sotdd.ZeroTruncatedPoisson([rate]).orders(rng.random((200_000, 1)))[:, 0]
    assert orders.min() >= 1
    highest = int(stats.poisson.ppf(1 - 1e-4, rate)) + 1
    probabilities = stats.poisson.pmf(np.arange(1, highest + 1), rate) / -math.expm1(-rate)
    observed = np.bincount(np.minimum(orders, highest), minlength=highest + 1)[1:]
    probabilities[-1] = 1 - probabilities[:-1].sum()
    kept = probabilities * len(orders) > 5
    assert (
        stats.chisquare(observed[kept], probabilities[kept] / probabilities[kept].sum() * observed[kept].sum()).pvalue
        > 1e-3
    )


@pytest.mark.parametrize(("rate", "max_order"), [(1.0, 1), (1.0, 3), (5.0, 4), (5.0, 170)])
def test_orders_up_to_the_highest_keep_their_odds(rng, rate, max_order):
    orders = sotdd.ZeroTruncatedPoisson([rate], max_order).orders(rng.random((200_000, 1)))[:, 0]
    assert orders.min() == 1
    assert orders.max() <= max_order
    odds = stats.poisson.pmf(np.arange(1, max_order + 1), rate)
    observed = np.bincount(orders, minlength=max_order + 1)[1:]
    kept = odds / odds.sum() * len(orders) > 5
    expected = odds[kept] / odds[kept].sum() * observed[kept].sum()
    assert max_order == 1 or stats.chisquare(observed[kept], expected).pvalue > 1e-3
    law = sotdd.ZeroTruncatedPoisson([rate], max_order)
    assert law.orders(np.array([[0.0], [np.nextafter(1.0, 0.0)]])).tolist()[0] == [1]
    assert np.all(np.diff(law.orders(np.linspace(0, 1, 999, endpoint=False)[:, None])[:, 0]) >= 0)


def test_uniform_orders_frequencies(rng):
    orders = sotdd.UniformOrders(6).orders(rng.random((60_000, 2)))
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
    uniform = sotdd.Projections.fit([np.zeros((1, 2))], moments=sotdd.UniformOrders(4)).recipe()
    assert uniform["label"]["n_moments"] == 5


def test_moments_become_one_polynomial(rng):
    """Σ ψ_i t^λ_i / λ_i! evaluated as written, against the coefficients."""
    from sotdd.projections.moments import moment_terms

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
    block = drawn(sotdd.Projections.fit([np.zeros((1, 1))], n_moments=2, n_projections=4096))
    beta = stats.beta(1, 1)  # a coordinate on the sphere of R³
    assert stats.kstest((1 + block.terms.weights) / 2, beta.cdf).pvalue > 1e-3


@pytest.mark.parametrize("bad", [0, -1, 2.5, 171, True, "4"])
def test_max_order_is_checked(bad):
    with pytest.raises(sotdd.SotddError, match="max_order"):
        sotdd.UniformOrders(bad)
    with pytest.raises(sotdd.SotddError, match="max_order"):
        sotdd.ZeroTruncatedPoisson(max_order=bad)


@pytest.mark.parametrize("bad", [[], [0.0], [65.0], ["x"], 3, [math.nan]])
def test_rates_are_checked(bad):
    with pytest.raises(sotdd.SotddError, match="rates"):
        sotdd.ZeroTruncatedPoisson(bad)


# ------------------------------------------------------------------ draws are values


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_a_projection_is_the_same_in_any_portion(law):
    many = sotdd.Projections.fit([np.zeros((1, 12))], directions=law, n_projections=300, shared_directions=False)
    few = sotdd.Projections.fit([np.zeros((1, 12))], directions=law, n_projections=100, shared_directions=False)
    whole = drawn(many)
    assert len(whole) == 300
    for start, stop in [(0, 64), (64, 192), (192, 300), (256, 1000)]:
        part, rows = many.draw(start, stop), slice(start, stop)
        np.testing.assert_array_equal(part.features.theta, whole.features.theta[rows])
        np.testing.assert_array_equal(part.label_features.theta, whole.label_features.theta[rows])
        np.testing.assert_array_equal(part.terms.weights, whole.terms.weights[rows])
        columns = part.terms.coefficients.shape[1]
        np.testing.assert_array_equal(part.terms.coefficients, whole.terms.coefficients[rows, :columns])
        assert not whole.terms.coefficients[rows, columns:].any()
    np.testing.assert_array_equal(drawn(few).features.theta, whole.features.theta[:100])


def test_streams_are_independent():
    block = drawn(sotdd.Projections.fit([np.zeros((1, 30))], shared_directions=False))
    theta, phi = block.features.theta, block.label_features.theta
    assert abs(np.corrcoef(theta.ravel(), phi.ravel())[0, 1]) < 0.02
    assert len(np.unique(theta[:, 0])) == len(theta)


def test_seeds():
    def theta(seed):
        return drawn(sotdd.Projections.fit([np.zeros((1, 3))], seed=seed)).features.theta

    np.testing.assert_array_equal(theta(5), theta(5))
    np.testing.assert_array_equal(theta(5), theta(np.int64(5)))
    assert not np.array_equal(theta(5), theta(6))
    np.testing.assert_array_equal(theta(np.random.default_rng(1)), theta(np.random.default_rng(1)))
    one = np.random.default_rng(1)
    assert not np.array_equal(theta(one), theta(one))
    assert theta(2**200).shape == (1000, 3)


def test_fingerprints_tell_settings_apart(rng):
    x = rng.normal(size=(20, 4))

    def mark(**settings):
        return sotdd.Projections.fit([x], **settings).fingerprint

    marks = [
        mark(),
        mark(seed=1),
        mark(n_projections=999),
        mark(n_moments=4),
        mark(label_law="quantiles"),
        mark(moments=sotdd.ZeroTruncatedPoisson(max_order=4)),
        mark(moments=sotdd.UniformOrders(4)),
        mark(directions=sotdd.Orthogonal()),
        mark(directions=sotdd.Convolution((2, 2))),
        mark(directions=sotdd.Convolution((2, 2), clamp=None)),
        mark(shared_directions=False),
        mark(scale=None),
        mark(scale=sotdd.Scaler(np.zeros(4), 2.0)),
    ]
    assert len(set(marks)) == len(marks)
    assert mark() == mark()


def test_fingerprints_of_given_arrays_tell_the_numbers_apart():
    def mark(**change):
        arrays = {"theta": [[1.0, 0.0]], "psi": [[0.6, 0.8]], "orders": [[2]], **change}
        return sotdd.Projections.from_arrays(**arrays).fingerprint

    marks = [
        mark(),
        mark(theta=[[0.0, 1.0]]),
        mark(psi=[[0.8, 0.6]]),
        mark(orders=[[3]]),
        mark(clamp=1),
        mark(phi=[[1.0, 0.0]]),
    ]
    assert len(set(marks)) == len(marks)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"theta": [1.0]}, "theta has shape"),
        ({"theta": [[math.nan]]}, "theta holds NaN"),
        ({"theta": [["x"]]}, "theta has shape"),
        ({"theta": [[1.0], [1.0, 2.0]]}, "theta does not form"),
        ({"psi": [[1.0, 0.0, 0.0]]}, "do not fit"),
        ({"psi": [[1.0, 0.0], [1.0, 0.0]]}, "do not fit"),
        ({"orders": [[0]]}, "whole numbers"),
        ({"orders": [[171]]}, "from 1 to 170"),
        ({"orders": [[10**19]]}, "from 1 to 170"),
        ({"clamp": "5"}, "clamp is '5'"),
        ({"clamp": 10**400}, "clamp is 1000"),
        ({"orders": [[1.5]]}, "whole numbers"),
        ({"phi": [[1.0, 2.0]]}, "phi has shape"),
        ({"clamp": 0}, "clamp"),
        ({"clamp": math.nan}, "clamp"),
    ],
)
def test_given_arrays_are_checked(change, said):
    with pytest.raises(sotdd.SotddError, match=said):
        sotdd.Projections.from_arrays(**{"theta": [[1.0]], "psi": [[1.0, 0.0]], "orders": [[1]], **change})


# ------------------------------------------------------------------ laws of one's own


class Circles:
    """A law that is not linear: distances from random centres (a spherical Radon transform)."""

    def __init__(self, spread=1.0):
        self.spread = spread

    def describe(self):
        return {"law": "circles", "spread": self.spread}

    def draw(self, rng, n_projections, n_features):
        centres = rng.normal(0, self.spread, size=(n_projections, n_features))
        return lambda points: np.linalg.norm(points[None] - centres[:, None], axis=2)


def test_a_law_that_is_not_linear(rng):
    """Through the public protocol, against the same thing done by hand."""
    import reference

    a, b = rng.normal(size=(30, 3)), rng.normal(1, 1, size=(20, 3))
    labels = rng.integers(0, 3, size=30), rng.integers(0, 2, size=20)
    settings = {"directions": Circles(2.0), "n_projections": 100, "scale": None}
    projections = sotdd.Projections.fit([a, b], **settings)
    result = sotdd.distance((a, labels[0]), (b, labels[1]), **settings)
    block = projections.draw(0, 100)
    sides = []
    for x, y in ((a, labels[0]), (b, labels[1])):
        t = np.concatenate([projections.source.block(i).features(x.astype(np.float32)) for i in (0, 1)])[:100]
        powers = t[..., None] ** np.arange(block.terms.coefficients.shape[1])
        f = np.einsum("lnk,lk->ln", powers, block.terms.coefficients)
        means = np.stack([f[:, y == label].mean(axis=1) for label in y], axis=1)
        sides.append(block.terms.weights[:, None] * t + means)
    expected = [reference.wasserstein(sides[0][i], sides[1][i], 2) for i in range(100)]
    np.testing.assert_allclose(result.per_projection, expected, rtol=1e-4)
    assert result.fingerprint == projections.fingerprint
    assert result.fingerprint != sotdd.Projections.fit([a, b], **{**settings, "directions": Circles(3.0)}).fingerprint
    assert sotdd.distance((a, labels[0]), (a, labels[0]), **settings).value == 0


class Medians:
    """A label law of one's own: a class is its median."""

    def describe(self):
        return {"law": "medians"}

    def draw(self, rng, n_projections):
        angle = rng.uniform(0, 2 * np.pi, n_projections)
        return Summaries(np.cos(angle), np.sin(angle)[:, None], self.summary)

    @staticmethod
    def summary(values, parameters):
        return parameters[:, 0] * np.median(values, axis=1)


@pytest.mark.parametrize("shared", [True, False])
def test_a_label_law_of_ones_own(rng, shared):
    import reference

    a = rng.normal(size=(1100, 3)), rng.integers(0, 3, size=1100)
    b = rng.normal(1, 1, size=(50, 3)), rng.integers(0, 2, size=50)
    settings = {"label_law": Medians(), "n_projections": 70, "scale": None, "shared_directions": shared}
    result = sotdd.distance(a, b, **settings, estimator="plain")
    block = sotdd.Projections.fit([a, b], **settings).draw(0, 70)
    sides = []
    for x, y in (a, b):
        t = block.features.theta @ x.T
        u = t if shared else block.label_features.theta @ x.T
        medians = np.stack([np.median(u[:, y == label], axis=1) for label in y], axis=1)
        sides.append(block.terms.weights[:, None] * t + block.terms.parameters * medians)
    expected = [reference.wasserstein(sides[0][i], sides[1][i], 2) for i in range(70)]
    np.testing.assert_allclose(result.per_projection, expected, rtol=1e-4)


def law(draw, describe=lambda: {"law": "mine"}):
    return type("Mine", (), {"describe": staticmethod(describe), "draw": staticmethod(draw)})()


def alternating(*drawn):
    """A law that draws one thing and then another."""
    turns = iter(drawn * 1000)
    return law(lambda rng, n, d: next(turns)(n, d))


@pytest.mark.parametrize(
    ("directions", "said"),
    [
        (law(lambda rng, n, d: Directions(np.zeros((n, d + 1)))), "Mine drew directions of shape"),
        (law(lambda rng, n, d: Directions(np.full((n, d), np.nan))), "finite"),
        (law(lambda rng, n, d: Directions(np.full((n, d), "x"))), "matrix of numbers"),
        (law(lambda rng, n, d: Directions(np.ones((n, d)), -1.0)), "clamp is -1.0"),
        (law(lambda rng, n, d: "left"), "Mine drew a str"),
        (
            law(lambda rng, n, d: lambda points: np.zeros(3)),
            r"Mine mapped 1 point to float64 of shape \(3,\): expected real numbers of shape \(64, 1\)",
        ),
        (law(lambda rng, n, d: lambda points: np.full((n, len(points)), "x")), "expected real numbers"),
        (law(lambda rng, n, d: lambda points: points.fill(0)), "read-only"),
        (law(lambda rng, n, d: Directions(np.ones((n, d))), lambda: {"law": object()}), "JSON"),
        (law(lambda rng, n, d: Directions(np.ones((n, d))), lambda: ["mine"]), "mapping of JSON values"),
        (
            alternating(lambda n, d: Directions(np.ones((n, d)), 1.0), lambda n, d: Directions(np.ones((n, d)), 2.0)),
            "the same clamp",
        ),
        (
            alternating(lambda n, d: Directions(np.ones((n, d))), lambda n, d: lambda x: np.ones((n, len(x)))),
            "the same kind",
        ),
        (object(), "directions must be Sphere.*, not a object"),
        (sotdd.Orthogonal, "not the class Orthogonal itself"),
        (sotdd.Moments(), "directions must be"),
        ("sphere", "not 'sphere'"),
    ],
)
def test_laws_are_held_to_their_promises(directions, said):
    with pytest.raises((sotdd.SotddError, ValueError), match=said):
        sotdd.distance([[1.0, 2.0]], [[2.0, 1.0]], directions=directions)


@pytest.mark.parametrize(
    ("label", "said"),
    [
        (law(lambda rng, n: None), "must draw Polynomials, Quantiles or Summaries"),
        (
            law(lambda rng, n: Polynomials(np.zeros(n - 1), np.zeros((n - 1, 1)))),
            "must draw Polynomials, Quantiles or Summaries",
        ),
        (law(lambda rng, n: Polynomials(np.zeros(n), np.zeros((n, 0)))), "one weight and one row per projection"),
        (law(lambda rng, n: Polynomials(np.full(n, np.nan), np.zeros((n, 1)))), "finite numbers"),
        (law(lambda rng, n: Summaries(np.zeros(n), np.zeros((n, 1)), "mean")), "expected a function"),
        (law(lambda rng, n: Summaries(np.zeros(n), np.zeros((n, 1)), len)), "takes exactly one argument"),
        (
            law(lambda rng, n: Summaries(np.zeros(n), np.zeros((n, 1)), lambda v, q: v[:, 0])),
            "same cut or summary function",
        ),
        (sotdd.Moments, "not the class Moments itself"),
        (sotdd.Sphere(), "label_law must be"),
    ],
)
def test_label_laws_are_held_to_their_promises(label, said):
    with pytest.raises((sotdd.SotddError, TypeError), match=said):
        sotdd.distance([[1.0, 2.0]], [[2.0, 1.0]], label_law=label)


@pytest.mark.parametrize(
    ("summary", "said"),
    [
        (lambda v, q: v[:, 0] * np.nan, "not finite"),
        (lambda v, q: 1.0, r"shape \(\)"),
        (lambda v, q: v[:, :1], r"shape \(\d+, 1\)"),
        (lambda v, q: np.full(len(v), "1"), "expected real numbers"),
        (lambda v, q: v.sort(), "read-only"),
    ],
)
def test_summaries_are_held_to_their_promises(summary, said):
    label = law(lambda rng, n: Summaries(np.zeros(n), np.zeros((n, 1)), summary))
    with pytest.raises((sotdd.SotddError, ValueError), match=said):
        sotdd.distance([[1.0, 2.0]], [[2.0, 1.0]], label_law=label)


@pytest.mark.parametrize("bad", [0, -1, 171, 1.5, 10**9])
def test_orders_of_a_law_of_ones_own_are_checked(bad):
    class Mine:
        def describe(self, n_moments):
            return {"law": "mine", "n_moments": n_moments}

        def orders(self, uniforms):
            return np.where(uniforms < 0.5, 1, bad)

    with pytest.raises(sotdd.SotddError, match="whole numbers from 1 to 170"):
        sotdd.distance([[1.0]], [[2.0]], moments=Mine())


def test_the_fingerprint_hashes_what_is_drawn():
    """Two laws that describe themselves alike but draw differently."""
    laws = [law(lambda rng, n, d, fill=fill: Directions(np.full((n, d), fill))) for fill in (1.0, 2.0)]
    marks = {sotdd.Projections.fit([np.zeros((1, 2))], directions=one).fingerprint for one in laws}
    assert len(marks) == 2


def test_the_fingerprint_forgives_last_bits(rng):
    centre = rng.normal(size=5)
    marks = {
        sotdd.Projections.fit([np.zeros((1, 5))], scale=sotdd.Scaler(centre * (1 + error), 2.0 + error)).fingerprint
        for error in (0, 1e-14)
    }
    assert len(marks) == 1


def test_draws_start_at_blocks():
    with pytest.raises(sotdd.SotddError, match="multiple of 64"):
        sotdd.Projections.fit([np.zeros((1, 2))]).draw(1, 65)


def test_kept_draws_cannot_be_written_to():
    projections = sotdd.Projections.fit([np.zeros((1, 2))], n_projections=64)
    with pytest.raises(ValueError, match="read-only"):
        projections.draw(0, 64).features.theta[:] = 0
    with pytest.raises(ValueError, match="read-only"):
        projections.draw(0, 64).terms.weights[:] = 0
