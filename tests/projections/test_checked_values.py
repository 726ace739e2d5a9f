"""Laws, draws and helpers refuse in one line what they cannot use; each of these raised something foreign once."""

import math
from decimal import Decimal

import numpy as np
import pytest

import sotdd
from sotdd import Convolution, Hadamard, Moments, Orthogonal, Projections, Scaler, SotddError, Sphere
from sotdd.projections import Directions, Polynomials, Quantiles, Summaries, Tilted, bin_means

X = np.random.default_rng(0).normal(size=(6, 2))
FITTED = Projections.fit([X], n_projections=100)
LAWS = [Sphere(), Hadamard(), Orthogonal(), Tilted(np.eye(1, 2), np.array([2.0])), Convolution((2, 1), "stride")]
LABEL_LAWS = [Moments(2), sotdd.ClassQuantiles(3)]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    ("rng", "n_projections", "n_features"),
    [
        (None, 3, 2),
        (0, 3, 2),
        (np.random.RandomState(0), 3, 2),
        (np.random.default_rng(0), Decimal(3), 2),
        (np.random.default_rng(0), -1, 2),
        (np.random.default_rng(0), 3, 0),
        (np.random.default_rng(0), 3, 2.5),
        (np.random.default_rng(0), 10**18, 2),
        (np.random.default_rng(0), 3, 10**30),
    ],
)
def test_laws_of_directions_draw_from_generators_and_counts(law, rng, n_projections, n_features):
    with pytest.raises(SotddError, match=r"^(rng|n_projections|n_features) is "):
        law.draw(rng, n_projections, n_features)


@pytest.mark.parametrize("law", LABEL_LAWS)
@pytest.mark.parametrize(("rng", "n_projections"), [(0, 3), (np.random.default_rng(0), 0), (None, 3)])
def test_label_laws_too(law, rng, n_projections):
    with pytest.raises(SotddError, match=r"^(rng|n_projections) is "):
        law.draw(rng, n_projections)


@pytest.mark.parametrize(
    ("start", "stop"), [(0, math.nan), ("x", 4), (0.0, 4), (True, 4), (0, None), (1, 4), (-64, 4), (128, 200), (0, 0)]
)
def test_projections_are_drawn_by_integers(start, stop):
    with pytest.raises(SotddError, match="expected"):
        FITTED.draw(start, stop)
    assert len(FITTED.draw(np.int64(64), 10**30)) == 36


@pytest.mark.parametrize(
    ("values", "levels", "masses"),
    [
        (5, 3, None),
        (None, 3, None),
        ("x", 3, None),
        (np.zeros((2, 0)), 3, None),
        ([math.nan, 1], 3, None),
        ([2, 1], 3, None),
        ([[1], [1, 2]], 3, None),
        ([1, 2], 2.0, None),
        ([1, 2], 10**30, None),
        ([1, 2], "3", None),
        ([1, 2], 3, [0, 0]),
        ([1, 2], 3, [1, -1]),
        ([1, 2], 3, [1, 1, 1]),
        ([1, 2], 3, [1, math.inf]),
    ],
)
def test_bin_means_say_what_they_are_made_of(values, levels, masses):
    with pytest.raises(SotddError, match="expected"):
        bin_means(values, levels, masses)


def test_bin_means_of_masses_of_any_unit():
    """Their sum overflowed."""
    masses = np.array([2.0, 1.0, 1.0])
    for unit in (1.0, 1e308 / 2, 1e-300):
        np.testing.assert_allclose(bin_means([0.0, 3.0, 6.0], 2, unit * masses), [0.0, 4.5])


@pytest.mark.parametrize(
    "make",
    [
        lambda: Directions([[1, 2], [3]]),
        lambda: Directions(X, importance=["a"] * 6),
        lambda: Tilted([["a"]], [1.0]),
        lambda: Tilted(np.eye(1, 2), [math.inf]),
        lambda: Tilted(np.eye(1, 2), [2.0], ambient="x"),
        lambda: Summaries(None, [[1, 2], [3]], len),
        lambda: Polynomials([1, [2]], [[1]]),
        lambda: Quantiles(np.ones(2), np.ones((2, 3))).terms(5),
        lambda: Quantiles(np.ones(2), np.ones((2, 3))).terms(np.ones((2, 4, 5))),
        lambda: Scaler([], 1.0),
        lambda: Scaler([[1], [1, 2]], 1.0),
        lambda: Scaler([0.0], [[1], [1, 2]]),
        lambda: Moments(2, sotdd.ZeroTruncatedPoisson([10**400])),
        lambda: sotdd.ZeroTruncatedPoisson().describe(None),
        lambda: sotdd.ZeroTruncatedPoisson().orders(5),
        lambda: sotdd.UniformOrders(3).orders(np.ones((2, 2))),
        lambda: sotdd.UniformOrders(3).describe(-1),
        lambda: sotdd.ClassQuantiles(4, weight=np.array([1, 2])),
        lambda: sotdd.ClassQuantiles(10**30),
        lambda: Convolution((10**30, 2)),
        lambda: Convolution((X, X)),
        lambda: Convolution((4, 4), channels=[]),
        lambda: Projections.fit([X], tilt="x"),
        lambda: Projections.fit([X], n_projections=10**30),
        lambda: Projections.fit([X], moments=[10**400]),
    ],
)
def test_what_forms_no_law_is_refused_in_one_line(make):
    with pytest.raises(SotddError, match="expected") as refused:
        make()
    assert "\n" not in str(refused.value)


def test_tensors_make_explicit_projections_without_a_warning():
    torch = pytest.importorskip("torch")
    given = {"theta": torch.eye(2), "psi": torch.eye(2), "orders": torch.ones(2, 1)}
    assert Projections.from_arrays(**given).n_projections == 2
    assert Scaler(torch.zeros(2), torch.ones(2)).kind == "features"
