"""Laws of a user's own: directions that are not linear, labels by any summary, and promises held to."""

import math

import numpy as np
import pytest

import reference
import sotdd
from laws import Circles, Medians
from sotdd import Projections, Scaler, SotddError
from sotdd.projections import (
    Convolution,
    Directions,
    ImportanceSampled,
    Moments,
    Polynomials,
    Summaries,
)


def test_a_law_that_is_not_linear(rng):
    """Through the public protocol, against the same thing done by hand."""
    a, b = rng.normal(size=(30, 3)), rng.normal(1, 1, size=(20, 3))
    labels = rng.integers(0, 3, size=30), rng.integers(0, 2, size=20)
    settings = {"directions": Circles(2.0), "n_projections": 100, "scale": None}
    projections = sotdd.Projections.fit([a, b], **settings)
    result = sotdd.distance((a, labels[0]), (b, labels[1]), **settings)
    block = projections.draw(0, 100)
    sides = []
    for x, y in ((a, labels[0]), (b, labels[1])):
        t = block.features(x.astype(np.float32))
        powers = t[..., None] ** np.arange(block.terms.coefficients.shape[1])
        f = np.einsum("lnk,lk->ln", powers, block.terms.coefficients)
        means = np.stack([f[:, y == label].mean(axis=1) for label in y], axis=1)
        sides.append(block.terms.weights[:, None] * t + means)
    expected = [reference.wasserstein(sides[0][i], sides[1][i], 2) for i in range(100)]
    np.testing.assert_allclose(result.per_projection, expected, rtol=1e-4)
    assert result.fingerprint == projections.fingerprint
    assert result.fingerprint != sotdd.Projections.fit([a, b], **{**settings, "directions": Circles(3.0)}).fingerprint
    assert sotdd.distance((a, labels[0]), (a, labels[0]), **settings).value == 0


def test_a_label_law_of_ones_own(rng):
    a = rng.normal(size=(1100, 3)), rng.integers(0, 3, size=1100)
    b = rng.normal(1, 1, size=(50, 3)), rng.integers(0, 2, size=50)
    settings = {"label_law": Medians(), "n_projections": 70, "scale": None}
    result = sotdd.distance(a, b, **settings, estimator="plain")
    block = sotdd.Projections.fit([a, b], **settings, tilt=False).draw(0, 70)
    sides = []
    for x, y in (a, b):
        t = block.features.theta @ x.T
        medians = np.stack([np.median(t[:, y == label], axis=1) for label in y], axis=1)
        sides.append(block.terms.weights[:, None] * t + block.terms.coefficients * medians)
    expected = [reference.wasserstein(sides[0][i], sides[1][i], 2) for i in range(70)]
    np.testing.assert_allclose(result.per_projection, expected, rtol=1e-4)


def law(draw, describe=lambda: {"law": "mine"}):
    return type("Mine", (), {"describe": staticmethod(describe), "draw": staticmethod(draw)})()


def test_the_fingerprint_hashes_what_is_drawn():
    """Two laws that describe themselves alike but draw differently."""
    laws = [law(lambda rng, n, d, fill=fill: Directions(np.full((n, d), fill))) for fill in (1.0, 2.0)]
    assert len({Projections.fit([np.zeros((1, 2))], directions=one).fingerprint for one in laws}) == 2


def alternating(*drawn):
    """A law that draws one thing and then another."""
    turns = iter(drawn * 1000)
    return law(lambda rng, n, d: next(turns)(n, d))


@pytest.mark.parametrize(
    ("directions", "said"),
    [
        (law(lambda rng, n, d: Directions(np.zeros((n, d + 1)))), "shape"),
        (law(lambda rng, n, d: Directions(np.full((n, d), np.nan))), "finite"),
        (law(lambda rng, n, d: Directions(np.full((n, d), "x"))), "numbers"),
        (law(lambda rng, n, d: Directions(np.ones((n, d)), -1.0)), "clamp is -1.0"),
        (law(lambda rng, n, d: "left"), "Mine drew a str"),
        (law(lambda rng, n, d: lambda points: np.zeros(3)), r"shape \(3,\).* \(64, 1\)"),
        (law(lambda rng, n, d: lambda points: points.fill(0)), "read-only"),
        (law(lambda rng, n, d: Directions(np.ones((n, d))), lambda: {"law": object()}), "JSON"),
        (law(lambda rng, n, d: Directions(np.ones((n, d))), lambda: ["mine"]), "JSON"),
        (
            alternating(lambda n, d: Directions(np.ones((n, d)), 1.0), lambda n, d: Directions(np.ones((n, d)), 2.0)),
            "the same clamp",
        ),
        (
            alternating(
                lambda n, d: Directions(np.ones((n, d))), lambda n, d: Directions(np.ones((n, d)), None, np.ones(n))
            ),
            "importance",
        ),
        (sotdd.projections.Orthogonal, "the class Orthogonal itself"),
        (sotdd.projections.Moments(), "directions must be"),
    ],
)
def test_laws_are_held_to_their_promises(directions, said):
    with pytest.raises((sotdd.SotddError, ValueError), match=said):
        sotdd.distance([[1.0, 2.0]], [[2.0, 1.0]], directions=directions)


def by_summary(summary):
    return law(lambda rng, n: Summaries(np.zeros(n), np.zeros((n, 1)), summary))


@pytest.mark.parametrize(
    ("label", "said"),
    [
        (law(lambda rng, n: None), "must draw"),
        (law(lambda rng, n: Polynomials(np.zeros(n - 1), np.zeros((n - 1, 1)))), "must draw"),
        (law(lambda rng, n: Polynomials(np.zeros(n), np.zeros((n, 0)))), "one row per projection"),
        (law(lambda rng, n: Polynomials(np.full(n, np.nan), np.zeros((n, 1)))), "finite numbers"),
        (law(lambda rng, n: Summaries(np.zeros(n), np.zeros((n, 1)), lambda v, q: v[:, 0])), "the same kind"),
        (by_summary("mean"), "expected a function"),
        (by_summary(lambda v, q: v[:, 0] * np.nan), "law Mine returned NaN"),
        (by_summary(lambda v, q: v[:, :1]), r"shape \(\d+, 1\)"),
        (by_summary(lambda v, q: np.full(len(v), "1")), "expected real numbers"),
        (by_summary(lambda v, q: v.sort()), "read-only"),
        (sotdd.projections.Sphere(), "label_law must be"),
    ],
)
def test_label_laws_are_held_to_their_promises(label, said):
    with pytest.raises((sotdd.SotddError, ValueError), match=said):
        sotdd.distance([[1.0, 2.0]], [[2.0, 1.0]], label_law=label)


# ------------------------------------------------------------------ what forms no law

X = np.random.default_rng(0).normal(size=(6, 2))
FITTED = Projections.fit([X], n_projections=100)
RNG = np.random.default_rng(0)


@pytest.mark.parametrize(("start", "stop"), [(0, math.nan), ("x", 4), (True, 4), (1, 4), (-64, 4), (128, 200), (0, 0)])
def test_projections_are_drawn_by_integers(start, stop):
    with pytest.raises(SotddError, match="expected"):
        FITTED.draw(start, stop)
    assert len(FITTED.draw(np.int64(64), 10**30)) == 36


@pytest.mark.parametrize(
    "make",
    [
        lambda: ImportanceSampled(np.eye(1, 2), [math.inf]),
        lambda: ImportanceSampled(np.eye(1, 3), [2.0]).draw(RNG, 4, 5),
        lambda: Scaler([[1], [1, 2]], 1.0),
        lambda: Scaler([0.0], [[1], [1, 2]]),
        lambda: Moments(2, sotdd.projections.ZeroTruncatedPoisson([10**400])),
        lambda: Moments(65),
        lambda: sotdd.projections.UniformOrders(171),
        lambda: sotdd.projections.ZeroTruncatedPoisson([65.0]),
        lambda: sotdd.projections.ZeroTruncatedPoisson(max_order=0),
        lambda: Moments(2, sotdd.projections.ZeroTruncatedPoisson([1.0])),
        lambda: sotdd.projections.ClassQuantiles(4, weight=np.array([1, 2])),
        lambda: sotdd.projections.ClassQuantiles(10**30),
        lambda: Convolution((X, X)),
        lambda: Projections.fit([X], tilt="x"),
        lambda: Projections.fit([X], moments=[10**400]),
    ],
)
def test_what_forms_no_law_is_refused_in_one_line(make):
    with pytest.raises(SotddError, match=r"expected|give|but the data have") as refused:
        make()
    assert "\n" not in str(refused.value)
