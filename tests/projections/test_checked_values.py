"""Laws, draws and scalers refuse in one line what they cannot use; each of these raised something foreign once."""

import math

import numpy as np
import pytest

import sotdd
from sotdd import Convolution, Hadamard, Moments, Orthogonal, Projections, Scaler, SotddError, Sphere
from sotdd.projections import Directions, Polynomials, Summaries, Tilted

X = np.random.default_rng(0).normal(size=(6, 2))
FITTED = Projections.fit([X], n_projections=100)
RNG = np.random.default_rng(0)


@pytest.mark.parametrize("law", [Sphere(), Hadamard(), Orthogonal(), Tilted(np.eye(1, 2), np.array([2.0]))])
def test_laws_draw_from_generators_and_counts(law):
    for arguments in ((None, 3, 2), (RNG, 10**18, 2), (RNG, 3, 2.5)):
        with pytest.raises(SotddError, match=r"^(rng|n_projections|n_features) is "):
            law.draw(*arguments)


@pytest.mark.parametrize(("start", "stop"), [(0, math.nan), ("x", 4), (True, 4), (1, 4), (-64, 4), (128, 200), (0, 0)])
def test_projections_are_drawn_by_integers(start, stop):
    with pytest.raises(SotddError, match="expected"):
        FITTED.draw(start, stop)
    assert len(FITTED.draw(np.int64(64), 10**30)) == 36


@pytest.mark.parametrize(
    "make",
    [
        lambda: Directions([[1, 2], [3]]),
        lambda: Directions(X, importance=["a"] * 6),
        lambda: Tilted(np.eye(1, 2), [math.inf]),
        lambda: Tilted(np.eye(1, 3), [2.0]).draw(RNG, 4, 5),
        lambda: Summaries(None, [[1, 2], [3]], len),
        lambda: Polynomials([1, [2]], [[1]]),
        lambda: Scaler([[1], [1, 2]], 1.0),
        lambda: Scaler([0.0], [[1], [1, 2]]),
        lambda: Moments(2, sotdd.ZeroTruncatedPoisson([10**400])),
        lambda: Moments(65),
        lambda: Moments(2, sotdd.ZeroTruncatedPoisson([1.0])),
        lambda: sotdd.ZeroTruncatedPoisson().orders(5),
        lambda: sotdd.UniformOrders(3).orders(np.ones((2, 2))),
        lambda: sotdd.ClassQuantiles(4, weight=np.array([1, 2])),
        lambda: sotdd.ClassQuantiles(10**30),
        lambda: Convolution((X, X)),
        lambda: Projections.fit([X], tilt="x"),
        lambda: Projections.fit([X], moments=[10**400]),
    ],
)
def test_what_forms_no_law_is_refused_in_one_line(make):
    with pytest.raises(SotddError, match=r"expected|give|but the data have") as refused:
        make()
    assert "\n" not in str(refused.value)


def test_tensors_make_explicit_projections_without_a_warning():
    torch = pytest.importorskip("torch")
    given = {"theta": torch.eye(2), "psi": torch.eye(2), "orders": torch.ones(2, 1)}
    assert Projections.from_arrays(**given).n_projections == 2
    assert Scaler(torch.zeros(2), torch.ones(2)).kind == "features"
