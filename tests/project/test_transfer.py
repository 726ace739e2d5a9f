"""Which source transfers best (`studies.choosing`, `studies.taskweb`): known answers, and smallest runs."""

import math
from itertools import combinations

import numpy as np
import pandas
import pytest
from scipy import stats

pytest.importorskip("torch", reason="the comparison trains networks: needs torch")
pytest.importorskip("ot", reason="the comparison has OTDD: needs POT")

from experiments.lib.store import read
from experiments.studies.choosing import __main__ as choosing
from experiments.studies.choosing import design, pools, scores, statistics
from experiments.studies.taskweb import __main__ as on_texts
from experiments.studies.taskweb import features, tasks
from experiments.studies.taskweb import statistics as statistics_with_holes


def test_leep_and_logme_are_what_their_definitions_say(rng):
    likely, y = rng.dirichlet(np.ones(3), size=20), rng.integers(0, 2, size=20)
    joint = np.array([likely[y == label].sum(axis=0) for label in (0, 1)]) / 20
    shares = [math.log(row @ (joint[label] / joint.sum(axis=0))) for row, label in zip(likely, y, strict=True)]
    assert scores.leep(likely, y) == pytest.approx(np.mean(shares))
    y = np.repeat([0, 1], 15)
    features = rng.normal(size=(30, 4)) + y[:, None]

    def evidence(truth, alpha, beta):
        covariance = np.eye(30) / beta + features @ features.T / alpha
        return stats.multivariate_normal(np.zeros(30), covariance).logpdf(truth) / 30

    grid = np.exp(np.linspace(-6, 7, 40))
    expected = [max(evidence((y == label).astype(float), a, b) for a in grid for b in grid) for label in (0, 1)]
    assert scores.logme(features, y, rounds=200) == pytest.approx(np.mean(expected), abs=0.01)


@pytest.mark.parametrize("score", [scores.logme, scores.h_score, scores.separation])
def test_scores_are_higher_where_classes_lie_apart(score, rng):
    y = np.arange(60) % 3
    noise = rng.normal(size=(60, 8))
    assert score(noise + 3 * np.eye(8)[y], y) > score(noise + np.eye(8)[y], y) > score(noise, y)


def test_what_choosing_saves_by_hand(rng):
    accuracy = np.array([[0.9, 0.2, 0.5], [0.5, 0.6, 0.3], [0.1, 0.4, 0.7]])
    away = ~np.eye(3, dtype=bool)
    score = np.array([[[0, 1, 2], [2, 0, 2], [1, 2, 0]]], dtype=float)  # first: source 1; then 2; then 0 and 1 tie
    taken = statistics.pick(score, away)
    np.testing.assert_allclose(taken, [[0, 0, 0.5], [1, 0, 0.5], [0, 1, 0]])
    # Best 0.5, 0.4, 0.5; chosen 0.5, 0.4, 0.4; at random 0.3, 0.3, 0.4.
    assert statistics.save(taken, accuracy, away) == pytest.approx(1 - 0.1 / 0.4)
    values = rng.normal(size=8)  # the jackknife of a mean is its standard error
    one = statistics.jackknife(lambda allowed: float(values[allowed.any(axis=0)].mean()), ~np.eye(8, dtype=bool))
    assert one.high - one.value == pytest.approx(stats.t.ppf(0.975, 7) * stats.sem(values))
    assert statistics.permute(lambda order: 1.0, 3, 9) == 1
    assert statistics.holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06})
    order = rng.normal(size=(1, 9, 9))
    allowed = np.ones((9, 9), dtype=bool)
    rhos = [stats.spearmanr(order[0, :, t], order[0, :, t] ** 2).statistic for t in range(9)]
    assert statistics.correlate(order, order[0] ** 2, allowed) == pytest.approx(np.mean(rhos))


def test_shortlists_by_counting(rng):
    score, away = rng.normal(size=(2, 6, 6)), ~np.eye(6, dtype=bool)
    near = statistics.nearest(score[0], 2, away)
    for target in range(6):
        sources = [source for source in range(6) if source != target]
        assert set(np.flatnonzero(near[:, target])) == set(sorted(sources, key=lambda s: -score[0, s, target])[:2])
    expected = np.zeros((6, 6))
    for seed in range(2):
        for target in range(6):
            groups = list(combinations([source for source in range(6) if source != target], 3))
            for group in groups:
                expected[max(group, key=lambda s: score[seed, s, target]), target] += 1 / len(groups) / 2
    np.testing.assert_allclose(statistics.pick_of_random(score, 3, away), expected)


def test_no_example_is_in_two_parts(rng):
    y = rng.choice(30, p=np.arange(1, 31) / 465, size=4000)
    parts = pools.deal(y, "some", 600)
    rows = np.concatenate([chosen for chosen, _ in parts.values()])
    assert len(rows) == len(set(rows))
    source, pool = parts["source"][1], parts["pool"][1]
    assert len(source) <= 600
    assert np.bincount(source).min() >= 3
    assert len(np.bincount(source)) <= design.SOURCE_CLASSES
    assert np.bincount(pool).tolist() == [design.POOL] * design.TARGET_CLASSES


def test_statistics_with_holes_by_hand(rng):
    score = rng.normal(size=(9, 6)) + 0.3 * rng.normal(size=(4, 9, 6))
    score[:, np.arange(6), np.arange(6)] = np.nan  # no task is a source for itself
    score[0, -1, 0] = np.nan  # and one run has no score
    table = statistics_with_holes.Transfers(
        score, np.arange(9)[:, None] % 3 == np.arange(6) % 3, rng.normal(size=(9, 2))
    )
    truth, noise = table.mean, rng.normal(size=(9, 6))
    worst = -np.where(np.isfinite(truth), truth, 0)
    found = statistics_with_holes.judged(np.stack([truth, noise, worst]), table, resamples=40, partial=True)
    one = [stats.spearmanr(np.delete(noise[:, t], t), np.delete(truth[:, t], t)).statistic for t in range(6)]
    assert found.rho == pytest.approx([1, np.mean(one), -1])
    assert found.regret[0] == pytest.approx(0)
    assert found.regret[2] == pytest.approx(np.mean(np.nanmax(truth, axis=0) - np.nanmin(truth, axis=0)))
    assert found.p[[0, 2]] == pytest.approx([1 / 41, 1])
    assert found.partial[0] == pytest.approx(1)
    assert 0.8 < found.ceiling < 1


@pytest.mark.slow
def test_the_smallest_run_on_pictures(tmp_path, data_folder):
    folders = ["--data", str(data_folder), "--cache", str(tmp_path), "--results", str(tmp_path)]
    choosing.main(["--effort", "smallest", "--domains", "pictures", *folders])
    effort, folder = design.EFFORTS["smallest"], tmp_path / "choosing"
    sources = pools.sources("pictures", pools.load("pictures", tmp_path))
    assert len(sources) == 4 + 2 * len(design.VARIANTS)
    rows = read(folder / "pictures.csv")
    assert len(rows) == effort.seeds * 4 * (len(sources) + 1)
    assert all(0 <= float(row["tuned10"]) <= 1 for row in rows)
    summary = {row["method"]: row for row in read(folder / "summary.csv") if row["setting"] == "tuned10"}
    assert {"s-OTDD", "OTDD, debiased", "LogME", "most classes", "5 nearest, then LogME"} <= set(summary)
    assert {row["question"] for row in read(folder / "questions.csv")} == {"1", "2", "3"}
    before = (folder / "pictures.csv").read_bytes()
    choosing.main(["--effort", "smallest", "--domains", "pictures", "--steps", "train", "measure", *folders])
    assert (folder / "pictures.csv").read_bytes() == before  # nothing was left to do


@pytest.mark.slow
def test_the_smallest_run_on_texts(tmp_path, rng, monkeypatch):
    """On texts and transfers made up here, with embeddings that need no encoder."""
    words = [f"word{place}" for place in range(60)]
    texts, transfers = [], []
    for task in tasks.SOURCES:
        for number in range(45):
            lines = [" ".join(rng.choice(words, 6)) for _ in range(2 + tasks.OPTIONS.get(task, 1))]
            label = {"stsb": f"{5 * rng.random():.1f}"}.get(task, str(number % 2))
            texts.append({"task": task, "text": "\n".join(lines), "label": label})
        for target in set(tasks.TARGETS) - {task}:
            for seed, setting in ((s, m) for s in (10, 15) for m in ("a_model", "b_model")):
                row = {"setting": setting, "source": task, "target": target, "seed": seed, "score": rng.random()}
                transfers.append({**row, "main": 1, "kind": "transfer"})
    pandas.DataFrame(texts).to_csv(tmp_path / "taskweb_texts.csv.gz", index=False)
    pandas.DataFrame(transfers).to_csv(tmp_path / "taskweb_transfer.csv.gz", index=False)
    monkeypatch.setattr(features, "_encoded", lambda part, length: rng.normal(size=(len(part), 8)).astype(np.float32))
    monkeypatch.setattr(features, "_NUMBERS", 8)
    folders = ["--data", str(tmp_path), "--cache", str(tmp_path), "--results", str(tmp_path)]
    on_texts.main(["--size", "smallest", *folders, "--output", str(tmp_path / "page.md")])
    assert "whole: s-OTDD" in (tmp_path / "page.md").read_text(encoding="utf-8")
    rows = read(tmp_path / "taskweb_distances.csv")
    assert len(rows) == 22 * 21
    assert [row["whole: s-OTDD"] for row in rows if row["source"] == row["target"]] == ["0"] * 21
