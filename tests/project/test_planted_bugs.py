"""Bugs that were planted and that no fast test saw: public numbers beside an independent computation of each."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtri

import sotdd


def test_errors_of_a_large_matrix_are_those_of_its_single_distances(rng):
    """A standard error is of the mean over projections, however many pairs are estimated together."""
    datasets = {str(k): (rng.normal(k / 4, 1, size=(30, 3)), rng.integers(2, size=30)) for k in range(8)}
    projections = sotdd.Projections.fit(datasets, n_projections=64)
    matrix = sotdd.pairwise(datasets, projections=projections, estimator="plain")
    for i, j in zip(*np.triu_indices(8, 1), strict=True):
        costs = matrix[str(i), str(j)].per_projection * matrix[str(i), str(j)].weights
        by_hand = costs.std(ddof=1) / math.sqrt(64) / (2 * matrix.values[i, j])
        assert matrix.stderr[i, j] == pytest.approx(by_hand, rel=1e-9)


def test_coefficients_of_controls_are_fitted_on_other_projections(rng):
    """Fitted on the same ones, what is left is uncorrelated with what was taken, to the last digit."""
    a, b = ((rng.normal(size=(60, 6)) * 3, rng.integers(3, size=60)) for _ in range(2))
    correlations = []
    for seed in range(4):
        found = sotdd.distance(a, b, n_projections=256, seed=seed)
        assert found.estimator == "controlled (labels and directions)"
        costs = found.per_projection if found.weights is None else found.per_projection * found.weights
        correlations.append(np.corrcoef(found.contributions, costs - found.contributions)[0, 1])
    assert np.abs(correlations).min() > 1e-4


def test_controls_of_labels_have_mean_zero(rng):
    """What they take is the cost between two Gaussians less its mean over the label law; it was 3 % off."""
    a, b = ((rng.normal(k, 1 + k, size=(12, 2)), np.arange(12) % 2) for k in range(2))
    settings = {"directions": sotdd.projections.Orthogonal(), "n_projections": 60_000}
    found = sotdd.distance(a, b, **settings)
    assert found.estimator == "controlled (labels)"
    taken = found.per_projection - found.contributions
    assert abs(taken.mean()) < 4 * taken.std() / math.sqrt(len(taken))
    assert taken.std() / math.sqrt(len(taken)) < 0.006 * found.per_projection.mean()  # so that 3 % would be seen


def test_the_error_of_an_excess_has_both_its_parts(rng):
    a, b = ((rng.normal(k, 1, size=(40, 3)), rng.integers(2, size=40)) for k in range(2))
    found = sotdd.distance(a, b, n_projections=64, noise_floor=True, estimator="plain")
    splits = found.noise.distances**2
    by_splits = splits.std(ddof=1) * math.sqrt(1 + 1 / len(splits))
    by_projections = 2 * found.value * found.stderr
    assert found.excess_stderr == pytest.approx(math.hypot(by_splits, by_projections), rel=1e-9)
    assert by_projections > 0.3 * by_splits


def test_the_evidence_of_a_batch_is_its_normal_score_less_half(rng):
    """Beyond the largest tenth, n of N permutations, chance is (n + 1) / (N + 1) times that of their excesses."""
    monitor = sotdd.DriftReference.fit(rng.normal(size=(300, 3)), n_projections=16).monitor(10)
    moved = monitor.after(rng.normal(1, 1, size=(40, 3)), n_permutations=99)
    null = np.sort(moved.last.null)[::-1]
    excesses, excess = null[:9] - null[9], moved.last.statistic - null[9]
    assert excess > 0
    chance = 10 / 100 * (1 + excess / excesses.sum()) ** -9
    assert moved.total == pytest.approx(-ndtri(chance) - 0.5, rel=1e-9)


@pytest.mark.parametrize("option", ["--report", "--junit"])
def test_drift_is_exit_code_1_though_a_file_cannot_be_written(tmp_path, monkeypatch, run, rng, option):
    """Whoever waits for drift learns of it; a batch that passes with a file missing is exit code 2."""
    monkeypatch.chdir(tmp_path)
    for name, shift in (("train", 0), ("same", 0), ("gone", 5)):
        np.savez(f"{name}.npz", X=rng.normal(shift, 1, size=(60, 2)))

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    for batch, verdict, ended in (("gone", "drift", 1), ("same", "passed", 2)):
        line = "check", "train.npz", f"{batch}.npz", option, "new.html", "--n-permutations", "39", "--json"
        code, said, errors = run(*line)
        assert (json.loads(said)["verdict"], code) == (verdict, ended)
        assert "no space left" in errors
        assert not Path("new.html").exists()
