"""The settings of a distance: their defaults, what is refused, numbers that leave their range, and progress."""

import inspect
import math

import numpy as np
import pytest

import sotdd

# ------------------------------------------------------------------ settings


def test_signature_shows_the_defaults():
    for call in (sotdd.distance, sotdd.pairwise):
        shown = {name: repr(argument.default) for name, argument in inspect.signature(call).parameters.items()}
        assert shown["n_projections"] == "1000"
        assert shown["n_moments"] == "None"
        assert shown["scale"] == "'auto'"
        assert shown["seed"] == "0"


def test_given_projections_exclude_drawing_arguments(three):
    (a, b, _), projections = three
    for argument in [{"n_projections": 1000}, {"seed": 0}, {"scale": None}, {"directions": sotdd.Sphere()}]:
        with pytest.raises(sotdd.SotddError, match=f"together with {next(iter(argument))}"):
            sotdd.distance(a, b, projections=projections, **argument)
    assert sotdd.distance(a, b, projections=projections, p=1).p == 1


@pytest.mark.parametrize("bad", [0, -3, 2.5, "many", True, None])
def test_n_projections_must_be_a_count(bad):
    with pytest.raises(sotdd.SotddError, match="n_projections"):
        sotdd.distance([[1.0]], [[2.0]], n_projections=bad)


@pytest.mark.parametrize("bad", [0, -1, 1.5, "5", 1000, 10**9])
def test_n_moments_must_be_a_count(bad):
    with pytest.raises(sotdd.SotddError, match="n_moments"):
        sotdd.distance([[1.0]], [[2.0]], n_moments=bad)


@pytest.mark.parametrize("bad", [0, 0.99, -2, math.nan, math.inf, "2", None, True, 10**400, 1j])
def test_p_must_be_at_least_one(bad):
    with pytest.raises(sotdd.SotddError, match="p is"):
        sotdd.distance([[1.0]], [[2.0]], p=bad)


@pytest.mark.parametrize("bad", [-1, 1.5, None, "0", True, np.random.SeedSequence(4)])
def test_seed_must_be_a_seed(bad):
    with pytest.raises(sotdd.SotddError, match="seed"):
        sotdd.distance([[1.0]], [[2.0]], seed=bad)


def test_other_settings_are_checked():
    a, b = [[1.0]], [[2.0]]
    for argument, said in [
        ({"scale": "minmax"}, "scale is 'minmax'"),
        ({"directions": "sphere"}, "directions must be .*, not 'sphere'"),
        ({"shared_directions": "no"}, "shared_directions is 'no'"),
        ({"moments": sotdd.ZeroTruncatedPoisson}, "not the class ZeroTruncatedPoisson itself"),
        ({"moments": sotdd.Moments(3)}, "moments must be"),
        ({"moments": "poisson"}, "rates"),
        ({"moments": [1.0, -2.0]}, "rates"),
        ({"moments": [1.0, 2.0], "n_moments": 3}, "2 rates for 3 moments"),
        ({"label_law": 3}, "label_law must be .*, not 3"),
        ({"label_law": sotdd.Moments(), "n_moments": 3}, "label_law is given together"),
        ({"progress": "bar"}, "progress is 'bar'"),
        ({"projections": "mine"}, "projections is a str"),
        ({"scale": sotdd.Scaler(np.zeros(3), 1.0)}, "scaler is for 3 features"),
    ]:
        with pytest.raises(sotdd.SotddError, match=said):
            sotdd.distance(a, b, **argument)


def test_projections_for_other_features_are_refused():
    projections = sotdd.Projections.fit([np.zeros((3, 2))])
    with pytest.raises(sotdd.SotddError, match="3 features but the projections are for 2"):
        sotdd.distance(np.zeros((3, 3)), np.zeros((3, 3)), projections=projections)


# ------------------------------------------------------------------ overflow


def test_overflow_of_moments_names_the_order():
    x = np.array([[0.0], [1e9]])
    with pytest.raises(sotdd.SotddError, match=r"overflow: order \d+ of projected values as large as 1e\+09.*pooled"):
        sotdd.distance(x, x, scale=None)
    assert sotdd.distance(x, x + 1e8).value > 0


def test_overflow_of_features_is_told_from_overflow_of_moments():
    x = np.array([[0.0], [1e300]])
    with pytest.raises(sotdd.SotddError, match="too large for float32"):
        sotdd.distance(x, x, scale=None)
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


def test_features_that_vanish_are_told(rng):
    x = rng.normal(size=(5, 2)) * 1e-60
    with pytest.raises(sotdd.SotddError, match="too small for float32"):
        sotdd.distance(x, 2 * x, scale=None)
    assert sotdd.distance(x, 2 * x).value > 0


def test_rounding_that_matters_is_told(rng):
    """An outlier makes moments so large that the features beside them are rounded away in float32."""
    a = rng.normal(size=(500, 5))
    a[0] = 200
    b = a.copy()
    b[1:] += 0.05 * rng.normal(size=(499, 5))
    labels = rng.integers(3, size=500)
    assert "float32 rounding" in sotdd.distance((a, labels), (b, labels), label_law="paper").remarks[0]
    assert not any("float32" in said for said in sotdd.distance((a, labels), (b, labels)).remarks)  # moments are cut
    assert sotdd.distance((a[1:], labels[1:]), (b[1:], labels[1:])).remarks == ()
    assert not any("float32" in said for said in sotdd.distance((a, labels), (a, labels)).remarks)


def test_points_that_float32_cannot_tell_apart_are_told(rng):
    a, b = rng.normal(size=(2, 50, 4)) + 1e9
    lost = sotdd.distance(a, b, scale=None, moments=sotdd.UniformOrders(1))
    assert lost.remarks
    assert sotdd.distance(a, b).remarks == ()
    assert sotdd.distance(np.full((5, 2), 3.0), np.full((5, 2), 3.0), scale=None).remarks == ()


def test_more_projections_than_memory():
    with pytest.raises(sotdd.SotddError, match="expected at most 1,000,000,000"):
        sotdd.distance([[1.0]], [[2.0]], n_projections=10**15)


# ------------------------------------------------------------------ progress


def test_progress_is_reported(rng):
    calls = []
    sotdd.distance(
        rng.normal(size=(5, 2)),
        rng.normal(size=(5, 2)),
        n_projections=1200,
        progress=lambda done, total: calls.append((done, total)),
    )
    assert calls == [(512, 1200), (1024, 1200), (1200, 1200)]


def test_progress_bar_is_drawn_on_standard_error(rng, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    sotdd.distance(rng.normal(size=(5, 2)), rng.normal(size=(5, 2)), progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Projecting" in shown.err
