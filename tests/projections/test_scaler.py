"""The pooled scaler."""

import numpy as np
import pytest

import sotdd
from sotdd import LabelledData, Scaler


def fit(*arrays):
    return Scaler.fit([LabelledData.of(array) for array in arrays])


def test_it_is_the_pooled_mean_and_the_average_spread(rng):
    a, b = rng.normal(3, 2, size=(1300, 6)), rng.normal(-1, 5, size=(200, 6))
    scaler = fit(a, b)
    pooled = np.concatenate([a, b])
    np.testing.assert_allclose(scaler.centre, pooled.mean(axis=0), rtol=1e-12)
    assert scaler.scale == pytest.approx(np.sqrt(np.mean(pooled.var(axis=0))), rel=1e-12)


def test_the_average_projection_has_unit_variance(rng):
    x = rng.normal(7, [1, 10, 0.1], size=(5000, 3))
    scaler = fit(x)
    theta = sotdd.Sphere().draw(rng, 20_000, 3).theta
    variances = np.einsum("li,ij,lj->l", theta, np.cov((x - scaler.centre).T / scaler.scale, bias=True), theta)
    assert variances.mean() == pytest.approx(1, abs=0.02)


def test_far_from_zero_no_digits_are_lost(rng):
    x = rng.normal(size=(3000, 4))
    near, far = fit(x), fit(x + 1e8)
    assert far.scale == pytest.approx(near.scale, rel=1e-6)
    a, b = x[:1500], x[1500:] + 0.5
    assert sotdd.distance(a + 1e8, b + 1e8).value == pytest.approx(sotdd.distance(a, b).value, rel=1e-4)


@pytest.mark.parametrize("unit", [1e-200, 1e-30, 1e30, 1e200])
def test_the_distance_has_no_unit(rng, unit):
    a, b = rng.normal(size=(50, 4)), rng.normal(1, 1, size=(60, 4))
    assert sotdd.distance(a * unit, b * unit).value == pytest.approx(sotdd.distance(a, b).value, rel=1e-5)


@pytest.mark.parametrize("constant", [1e13, 1e15, 1.7e18, -3e300])
def test_a_constant_feature_changes_the_unit_and_nothing_else(rng, constant):
    """Such as a time stamp or an identifier that is the same everywhere, however large."""
    a, b = rng.normal(size=(300, 3)), rng.normal(0.2, 1, size=(200, 3))
    wide = [np.column_stack([x, np.full(len(x), constant)]) for x in (a, b)]
    zero = [np.column_stack([x, np.zeros(len(x))]) for x in (a, b)]
    assert fit(*wide).scale == pytest.approx(fit(*zero).scale, rel=1e-9)
    assert sotdd.distance(*wide).value == pytest.approx(sotdd.distance(*zero).value, rel=1e-5)


def test_numbers_next_to_each_other_are_not_constant():
    assert fit(np.array([[1e13], [1e13 + 1]])).scale == pytest.approx(0.5)


def test_fit_takes_what_distance_takes(rng):
    x = rng.normal(size=(20, 2))
    assert Scaler.fit([(x, [0] * 20)]).scale == Scaler.fit({"x": x}).scale
    with pytest.raises(sotdd.SotddError, match="same features"):
        Scaler.fit([x, x[:, :1]])
    with pytest.raises(sotdd.SotddError, match="no datasets"):
        Scaler.fit([])


def test_constant_data_are_left_alone():
    x = np.full((5, 2), 3.0)
    assert fit(x).scale == 1
    assert sotdd.distance(x, x).value == 0


def test_a_scaler_is_reused(rng):
    a, b, c = rng.normal(size=(3, 40, 5)) * np.array([1, 2, 30])[:, None, None]
    first = sotdd.distance(a, b)
    again = sotdd.distance(a, b, scale=first.scaler)
    np.testing.assert_array_equal(first.per_projection, again.per_projection)
    assert sotdd.distance(a, c, scale=first.scaler).scaler is first.scaler
    assert sotdd.distance(a, c, scale=None).scaler is None


@pytest.mark.parametrize(
    ("centre", "scale"),
    [
        ([0.0], 0),
        ([0.0], -1),
        ([0.0], np.nan),
        ([0.0], "x"),
        ([np.inf], 1),
        ([[0.0]], 1),
        ("x", 1),
        ([0.0], 1e-320),
        ([1j], 1),
        ([0.0], 10**400),
    ],
)
def test_numbers_that_make_no_scaler(centre, scale):
    with pytest.raises(sotdd.SotddError, match="Scaler"):
        Scaler(centre, scale)


def test_the_largest_numbers_are_refused_with_a_reason():
    x = np.array([[1.7e308], [-1.7e308], [-1.7e308]])
    with pytest.raises(sotdd.SotddError, match="cannot be scaled in float64"):
        sotdd.distance(x, x)
    assert sotdd.distance(x / 4, -x / 4).value > 0


def test_it_is_frozen(rng):
    scaler = fit(rng.normal(size=(5, 2)))
    with pytest.raises(ValueError, match="read-only"):
        scaler.centre[0] = 1
