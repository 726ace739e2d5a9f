"""What a distance carries beside its value: errors, intervals, diagnostics, and how it reads."""

import json
import math

import numpy as np
import pytest
from scipy import stats

import sotdd
from sotdd.compute.estimators import estimate_distance


def test_result_carries_its_diagnostics(rng):
    a = rng.normal(size=(30, 4)), ["x"] * 10 + ["y"] * 20
    b = rng.normal(1, 1, size=(20, 4)), [True, False] * 10
    r = sotdd.distance(a, b, n_projections=300, seed=3, p=1.5, estimator="plain")
    assert r.value == pytest.approx(np.mean(r.per_projection) ** (1 / 1.5))
    assert float(r) == r.value
    assert (r.n_points, r.n_projections, r.p) == ((30, 20), 300, 1.5)
    assert set(r.classes[0]) == {"x", "y"}
    assert set(r.classes[1]) == {True, False}
    assert r.fingerprint == sotdd.Projections.fit([a, b], n_projections=300, seed=3, tilt=False).fingerprint
    assert isinstance(r.scaler, sotdd.Scaler)
    with pytest.raises(ValueError, match="read-only"):
        r.per_projection[0] = 0
    assert "(s-OTDD, p=1.5, 300 projections)" in repr(r)


@pytest.mark.slow
def test_intervals_cover(rng):
    a, b = rng.normal(size=(50, 3)), rng.normal(0.7, 1, size=(50, 3))
    truth = sotdd.distance(a, b, n_projections=200_000, seed=10**6, n_moments=2).value
    intervals = [sotdd.distance(a, b, n_projections=400, seed=seed, n_moments=2).interval(0.9) for seed in range(200)]
    covered = np.mean([low <= truth <= high for low, high in intervals])
    assert 0.82 < covered < 0.96


def test_interval_is_students(rng):
    w = np.array([1.0, 2.0, 3.0, 6.0])
    low, high = estimate_distance(w, 1.0, n_points=(1, 1), classes=((), ())).interval(0.9)
    expected = stats.t.interval(0.9, 3, loc=3, scale=stats.sem(w))
    np.testing.assert_allclose([low, high], expected)


def test_interval_widens_with_the_level_and_stays_positive(rng):
    r = sotdd.distance(rng.normal(size=(9, 2)), rng.normal(size=(9, 2)), n_projections=4)
    wide, narrow = r.interval(0.999), r.interval(0.5)
    assert 0 <= wide[0] <= narrow[0] < r.value < narrow[1] < wide[1]
    for level in [0, 1, -1, math.nan, "much"]:
        with pytest.raises(sotdd.SotddError, match="level"):
            r.interval(level)


def test_a_single_projection_has_no_error_estimate(rng):
    r = sotdd.distance(rng.normal(size=(5, 2)), rng.normal(size=(5, 2)), n_projections=1)
    assert math.isnan(r.stderr)
    assert "1 projection)" in repr(r)
    assert json.loads(json.dumps(r.to_dict(), allow_nan=False))["stderr"] is None


def test_to_dict_is_json(rng):
    labels = [("a", 1), math.inf, 2.5, np.int64(3), "x"]
    r = sotdd.distance((rng.normal(size=(5, 2)), labels), (rng.normal(size=(4, 2)), [0] * 4), n_projections=10)
    told = json.loads(json.dumps(r.to_dict(per_projection=True), allow_nan=False))
    assert told["value"] == r.value
    assert told["n_points"] == [5, 4]
    assert told["n_classes"] == [5, 1]
    assert told["per_projection"] == r.per_projection.tolist()
    assert "per_projection" not in r.to_dict()
