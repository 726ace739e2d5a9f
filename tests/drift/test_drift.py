"""A stored reference against batches, one by one and as a series."""

import json

import numpy as np
import pandas as pd
import pytest

import sotdd
from sotdd.drift.gate import append_lines, describe_state, resume_monitor
from sotdd.drift.monitor import find_limit, find_run_length, score
from sotdd.measure.changes import TwoSampleTest


def sample(rng, n, shift=0.0):
    labels = rng.integers(3, size=n)
    return rng.normal(size=(n, 6)) + 2 * np.eye(3, 6)[labels] + shift, labels


@pytest.fixture
def fitted(rng):
    data = sample(rng, 400)
    return data, sotdd.DriftReference.fit(data)


# ------------------------------------------------------------------ one batch


@pytest.mark.parametrize("settings", [{}, {"label_law": "quantiles"}, {"scale": None}, {"label_directions": "own"}])
def test_the_distance_is_that_of_the_raw_data(rng, settings):
    data, batch = sample(rng, 400), sample(rng, 50)
    reference = sotdd.DriftReference.fit(data, **settings)
    wanted = sotdd.distance(data, batch, projections=reference.projections, estimator="plain")
    plain = reference.distance(batch)
    assert (plain.value, plain.stderr) == (pytest.approx(wanted.value), pytest.approx(wanted.stderr))
    fine = sotdd.DriftReference.fit(data, with_sketch=True, **settings).distance(batch)
    known = sotdd.distance(data, batch, projections=sotdd.Projections.fit([data], **settings))
    assert fine.value == pytest.approx(known.value, rel=0.03)


def test_engines_agree(rng, monkeypatch):
    """What explains a distance, and what tests a batch, on the processor and by torch."""
    torch = pytest.importorskip("torch")
    from sotdd.compute.torch.engine import TorchEngine

    device = "cuda" if torch.cuda.is_available() else "cpu"
    data, batch = sample(rng, 200), sample(rng, 90, shift=0.3)

    def measure():
        why, reference = sotdd.explain(data, batch, n_projections=64), sotdd.DriftReference.fit(data, n_projections=64)
        test, known = reference.test(batch, n_permutations=39), why.by_class
        numbers = why.distance.value, why.distance.noise.value, why.unlabelled.value, why.features, test.p_value
        costs = known.distances, known.costs, known.coupling, why.resampled, test.null_distances, test.null
        return np.concatenate([*map(np.ravel, costs), [*numbers, reference.distance(batch).value]])

    ours = measure()
    for module in ("measure.explain", "measure.comparison"):
        monkeypatch.setattr(f"sotdd.{module}.choose_engine", lambda *_: TorchEngine(device))
    np.testing.assert_allclose(measure(), ours, rtol=2e-3, atol=1e-6)


# Rows of the reference and of the batch; runs; and alarms at most, which 5 % exceed once in 230 times, or in 1,000.
LAWS = {
    "t3": (120, 60, 60, 9, lambda rng, n: (rng.standard_t(3, size=(n, 6)), rng.integers(3, size=n))),
    "log-normal": (120, 60, 60, 9, lambda rng, n: (np.exp(rng.normal(size=(n, 4))), rng.integers(3, size=n))),
    "imbalanced": (120, 60, 60, 9, lambda rng, n: (rng.normal(size=(n, 4)), (rng.random(n) < 0.08).astype(int))),
    "50 classes": (120, 60, 60, 9, lambda rng, n: (rng.normal(size=(n, 4)), rng.integers(50, size=n))),
    "rare counts": (150, 150, 100, 11, lambda rng, n: rng.poisson(0.03, (n, 200)).astype(float)),
    "flags": (400, 400, 100, 11, lambda rng, n: (rng.random((n, 20)) < 0.01).astype(float)),
    "many values": (1000, 1000, 100, 11, lambda rng, n: pd.DataFrame(rng.integers(40, size=(n, 3)).astype(str))),
}


def test_a_level_decides_what_is_named_and_leaves_the_p_value_alone(fitted, rng):
    reference, batch = fitted[1], sample(rng, 60, shift=0.4)
    strict, lax = (reference.test(batch, n_permutations=199, level=level) for level in (1e-320, 0.19))
    np.testing.assert_array_equal(strict.null, lax.null)
    assert (strict.verdict, lax.verdict) == ("passed", "drift")
    assert strict.p_value == lax.p_value
    assert not strict.changes.changed
    assert lax.changes.changed


@pytest.mark.slow
def test_the_level_is_kept_by_a_test_that_ends_early():
    """400 at 5 %: 20 alarms expected; fewer than 8 or more than 35 have a chance of 0.2 %."""
    alarms = 0
    for seed in range(400):
        rng = np.random.default_rng([seed, 3])
        reference = sotdd.DriftReference.fit(sample(rng, 40), n_projections=8, seed=seed)
        alarms += reference.test(sample(rng, 20), n_permutations=400, level=0.05).rejects(0.05)
    assert 8 <= alarms <= 35


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_the_level_is_kept_for_large_batches_of_any_law(name):
    """Where more than its rows is kept of the reference, 10 to 100 % are alarms."""
    (n, m, runs, most, draw), alarms = LAWS[name], 0
    for seed in range(runs):
        rng = np.random.default_rng([seed, n, m])
        reading = {"label": None} if name == "many values" else {}
        reference = sotdd.DriftReference.fit(draw(rng, n), seed=seed, **reading)
        alarms += reference.test(draw(rng, m), level=0.05).rejects(0.05)
    assert alarms <= most


def test_drift_however_large_is_drift(fitted, rng):
    """Beyond the range of float32 products, and of float64 squares."""
    reference = fitted[1]
    x, y = sample(rng, 40)
    for factor in (1e6, 1e30, 1e300):
        found = reference.test((x * factor, y), n_permutations=99)
        assert found.rejects(0.05)
        assert np.isfinite(found.distance)
    scaled = x.copy()
    scaled[:, 0] *= 30
    assert reference.test((scaled, y), n_permutations=99).rejects(0.05)


def test_names_count_where_that_is_asked_for(rng):
    (x, y), (other, of) = sample(rng, 500), sample(rng, 100)
    swapped = np.array([1, 0, 2])[of]
    blind = sotdd.DriftReference.fit((x, y)).test((other, swapped), n_permutations=199)
    named = sotdd.DriftReference.fit((x, y), label_names="match").test((other, swapped), n_permutations=199)
    assert named.p_value <= 0.01 < blind.p_value
    assert named.aspects["classes by name"].p_value == 0.005


def test_a_large_reference_is_sampled_and_says_so(rng):
    reference = sotdd.DriftReference.fit(sample(rng, 3000), max_points=500)
    assert reference.n_points == 500
    assert "500 points in 3 classes, 128 projections" in repr(reference)
    assert "500 of the 3,000 points" in repr(reference)
    whole = sotdd.DriftReference.fit(sample(rng, 3000))
    assert whole.test(sample(rng, 20), n_permutations=9).n_points == (1000, 20)  # as much as the batch needs
    assert whole.test(sample(rng, 100), n_permutations=9).n_points == (2000, 100)


@pytest.mark.parametrize(
    "settings",
    [{"max_points": 0}, {"p": 0}, {"label_names": "yes"}, {"projections": 5}, {"n_projection": 5}, {"with_sketch": 2}],
    ids=str,
)
def test_odd_settings_are_refused_by_name(rng, settings):
    with pytest.raises(sotdd.SotddError, match=next(iter(settings))):
        sotdd.DriftReference.fit(sample(rng, 9), **settings)


def test_batches_that_do_not_fit_are_refused(fitted, rng):
    reference = fitted[1]
    for call, said in [
        (lambda: reference.test(sample(rng, 9), n_permutations=0), "n_permutations is 0"),
        (lambda: reference.test((np.zeros((50, 2)), np.arange(50) % 3)), "2 features"),
        (lambda: reference.monitor(1), "run_length is 1"),
        (lambda: reference.monitor().after(sample(rng, 90), n_permutations=9), "at least 5 times a batch, 450 points"),
    ]:
        with pytest.raises(sotdd.SotddError, match=said):
            call()


# ------------------------------------------------------------------ a series


def test_run_lengths_are_those_of_the_textbook():
    """A one-sided sum with an allowance of one half, as tables of such sums have it."""
    for limit, known in ((3.0, 117.6), (4.0, 335.4), (5.0, 930.9)):
        assert find_run_length(limit) == pytest.approx(known, rel=0.005)
    rng = np.random.default_rng(0)
    lengths = []
    for _ in range(1500):
        total, count = 0.0, 0
        while total <= find_limit(50):
            total, count = max(0.0, total + rng.normal() - 0.5), count + 1
        lengths.append(count)
    assert np.mean(lengths) == pytest.approx(50, rel=0.1)
    # Where references shift scores by 0.11, alarms over all of them come as often with the limit that knows it.
    alarms = [1 / find_run_length(find_limit(200, 0.11), shift) for shift in 0.11 * rng.normal(size=100)]
    assert 1 / np.mean(alarms) == pytest.approx(200, rel=0.1)


@pytest.mark.parametrize("n_permutations", [99, 499])
def test_scores_are_normal_where_nothing_has_drifted(rng, n_permutations):
    """Beyond the farthest permutation too, whatever the law: of exponential statistics, and of largest squares."""
    for draw in (rng.exponential, lambda size: (rng.normal(size=(5, size)) ** 2).max(axis=0)):
        values = draw(size=4000 * (n_permutations + 1)).reshape(4000, -1)
        tests = (TwoSampleTest(0.0, row[1:], row[0], row[1:], "combined", 2.0, (20, 1), 1, "") for row in values)
        scores = np.array([score(one) for one in tests])
        assert abs(scores.mean()) < 0.05
        assert scores.std() == pytest.approx(1, abs=0.04)
        assert 50 <= np.count_nonzero(scores > 2) <= 140  # 91 are expected
        assert 1 <= np.count_nonzero(scores > 3) <= 14  # 5 are expected


def test_a_log_carries_a_series_on(rng, tmp_path):
    reference = sotdd.DriftReference.fit(sample(rng, 600), n_projections=16)
    batches = [sample(rng, 30, shift=0.3) for _ in range(4)]
    whole = reference.monitor(20)
    assert np.isnan(whole.expected).all()
    log = tmp_path / "log"
    assert resume_monitor(whole, log) is whole
    for batch in batches:
        whole = whole.after(batch, n_permutations=39)
        part = resume_monitor(reference.monitor(20), log).after(batch, n_permutations=39)
        append_lines(log, [json.dumps({"verdict": "passed", "monitor": describe_state(part)}) + "\n", "cut {\n"])
    assert (part.total, part.n_batches) == (whole.total, 4)
    low, high = whole.expected
    assert low < 20 < high
    other = sotdd.DriftReference.fit(sample(rng, 600), n_projections=16)
    for monitor, said in (
        (reference.monitor(50), "another run length, 20 and not 50"),
        (other.monitor(20), "another ref"),
    ):
        with pytest.raises(sotdd.SotddError, match=said):
            resume_monitor(monitor, log)


@pytest.mark.slow
def test_a_series_without_drift_is_quiet_and_a_small_drift_adds_up(rng):
    reference = sotdd.DriftReference.fit(sample(rng, 800), n_projections=64)
    monitor = reference.monitor(run_length=200)
    for _ in range(12):
        monitor = monitor.after(sample(rng, 60), n_permutations=99)
    assert not monitor.alarm
    single = [reference.test(sample(rng, 60, shift=0.15), n_permutations=99).rejects(1 / 50) for _ in range(8)]
    steps = 0
    while not monitor.alarm and steps < 15:
        monitor, steps = monitor.after(sample(rng, 60, shift=0.15), n_permutations=99), steps + 1
    assert monitor.alarm
    assert np.mean(single) < 0.9  # no batch would have told by itself
    assert "drift after" in repr(monitor)


def test_after_an_alarm_a_series_begins_anew(rng):
    monitor = sotdd.DriftReference.fit(sample(rng, 600), n_projections=64).monitor(100)
    monitor = monitor.after(sample(rng, 50, shift=3), n_permutations=99)
    assert monitor.alarm
    assert "drift after 1 batch:" in repr(monitor)
    assert not monitor.after(sample(rng, 50), n_permutations=99).alarm
