"""The settings of a distance: their defaults, what is refused, numbers that leave their range, and progress."""

import math

import numpy as np
import pytest

import sotdd

# ------------------------------------------------------------------ settings


ODD = {
    "n_projections": [0, 2.5, "many", True, None, 10**15],
    "n_moments": [0, 1.5, "5", 10**9],
    "p": [0, 0.99, math.nan, math.inf, "2", None, True, 10**400, 1j],
    "seed": [-1, 1.5, None, "0", True, np.random.SeedSequence(4)],
    "scale": ["minmax", sotdd.Scaler(np.zeros(3), 1.0)],
    "directions": ["sphere"],
    "moments": [sotdd.projections.ZeroTruncatedPoisson, sotdd.projections.Moments(3), "poisson", [1.0, -2.0]],
    "label_law": [3, "mean"],
    "label_names": ["both"],
    "noise_floor": [1, 0, -3, 2.5, "yes", None],
    "progress": ["bar"],
    "projections": ["mine", sotdd.Projections.fit([np.zeros((3, 2))])],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in ODD.items() for value in values])
def test_odd_settings_are_refused_by_name(name, value):
    """The name of the setting, or what it is about: rates of moments, features of a scaler or of projections."""
    with pytest.raises(sotdd.SotddError, match=f"{name}|rates|scaler|features"):
        sotdd.distance([[1.0]], [[2.0]], **{name: value})


def test_settings_that_exclude_each_other():
    for settings in (
        {"moments": [1.0, 2.0], "n_moments": 3},
        {"label_law": sotdd.projections.Moments(), "n_moments": 3},
    ):
        with pytest.raises(sotdd.SotddError, match=r"2 rates for 3 moments|label_law is given together"):
            sotdd.distance([[1.0]], [[2.0]], **settings)


def test_given_projections_exclude_drawing_arguments(three):
    (a, b, _), projections = three
    for argument in [{"n_projections": 1000}, {"seed": 0}, {"scale": None}, {"directions": sotdd.projections.Sphere()}]:
        with pytest.raises(sotdd.SotddError, match=f"together with {next(iter(argument))}"):
            sotdd.distance(a, b, projections=projections, **argument)
    assert sotdd.distance(a, b, projections=projections, p=1).p == 1
    with pytest.raises(sotdd.SotddError, match="rel_tol is given together with projections"):
        sotdd.distance(a, b, projections=projections, rel_tol=0.1)
    with pytest.raises(sotdd.SotddError, match="a sketch, which has no points for method 'otdd'"):
        sotdd.distance(sotdd.sketch(a, projections), b, method="otdd")


# ------------------------------------------------------------------ overflow


@pytest.mark.parametrize(
    ("far", "said"),
    [(1e9, r"overflow: order \d+"), (1e300, "too large for float32"), (1e-60, "too small")],
)
def test_features_out_of_range_are_told_unless_they_are_scaled(far, said):
    x = np.array([[0.0], [far]])
    with pytest.raises(sotdd.SotddError, match=said):
        sotdd.distance(x, 2 * x, scale=None)
    assert sotdd.distance(x, x / 2).value > 0


def test_powers_that_leave_float64_are_told():
    one = sotdd.Projections.from_arrays(theta=[[1.0]], psi=[[1.0, 0.0]], orders=[[1]])
    x = np.array([[0.0], [1e30]])
    with pytest.raises(sotdd.SotddError, match="p=20 overflows"):
        sotdd.distance(x, -x, projections=one, p=20)
    with pytest.raises(sotdd.SotddError, match="p=100 underflows"):
        sotdd.distance([[0.0]], [[1e-4]], projections=one, p=100)


def test_large_powers_keep_their_error():
    """Squares of W_p^p would leave float64 here."""
    two = sotdd.Projections.from_arrays(theta=[[1.0], [0.9]], psi=[[1.0, 0.0]] * 2, orders=[[1], [1]])
    for size in (3e-4, 3e4):
        result = sotdd.distance([[0.0]], [[size]], projections=two, p=50)
        assert 0.9 * size < result.value <= size
        assert 0 < result.stderr < size
        assert str(result)


def test_rounding_that_matters_is_told(rng):
    """An outlier makes moments so large that the features beside them are rounded away in float32."""
    a = rng.normal(size=(500, 5))
    a[0] = 200
    b = a.copy()
    b[1:] += 0.05 * rng.normal(size=(499, 5))
    labels = rng.integers(3, size=500)
    assert sotdd.distance((a, labels), (b, labels), label_law="paper").remarks[0].kind == "rounding"
    assert not any(
        one.kind == "rounding" for one in sotdd.distance((a, labels), (b, labels)).remarks
    )  # moments are cut
    assert sotdd.distance((a[1:], labels[1:]), (b[1:], labels[1:])).remarks == ()
    assert not any(one.kind == "rounding" for one in sotdd.distance((a, labels), (a, labels)).remarks)


# ------------------------------------------------------------------ progress


def test_progress_is_reported(rng):
    calls = []
    sotdd.distance(
        rng.normal(size=(5, 2)),
        rng.normal(size=(5, 2)),
        n_projections=1200,
        progress=lambda done, total: calls.append((done, total)),
    )
    assert calls == [(1024, 1200), (1200, 1200)]
    assert sotdd.distance([[1.0]], [[2.0]], n_projections=64, progress=True).value > 0  # a bar, on standard error
