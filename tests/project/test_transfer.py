"""Which source transfers best (`experiments.foretell`, `experiments.taskweb`): known answers, and smallest runs."""

import math

import numpy as np
import pandas
import pytest
from scipy import stats

pytest.importorskip("torch", reason="the comparison trains networks: needs torch")
pytest.importorskip("ot", reason="the comparison has OTDD: needs POT")

from experiments.foretell import __main__ as foretell
from experiments.foretell import design, directed, scores, statistics
from experiments.store import read
from experiments.taskweb import __main__ as on_texts
from experiments.taskweb import features, tasks
from experiments.taskweb import statistics as statistics_with_holes


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


@pytest.mark.parametrize("score", [scores.logme, scores.h_score, scores.nearest_mean, directed.separation])
def test_scores_are_higher_where_classes_lie_apart(score, rng):
    y = np.arange(60) % 3
    noise = rng.normal(size=(60, 8))
    assert score(noise + 3 * np.eye(8)[y], y) > score(noise + np.eye(8)[y], y) > score(noise, y)


def test_statistics_agree_with_scipy_and_by_hand(rng):
    accuracy = rng.normal(size=(12, 7)) + rng.normal(size=(12, 1)) + 0.5 * rng.normal(size=(5, 12, 7))
    known = np.column_stack([rng.integers(2, 6, size=12), rng.integers(1, 4, size=12)]).astype(float)
    table = statistics.Table(accuracy, rng.random((12, 7)) < 0.3, known)
    score = np.stack([np.round(table.mean + rng.normal(size=(12, 7)), 1), np.ones((12, 7)), table.mean])
    found = statistics.judged(score, table, resamples=50)
    one = [stats.spearmanr(score[0, :, t], table.mean[:, t]).statistic for t in range(7)]
    assert found.rho == pytest.approx([np.mean(one), 0, 1])  # a constant says nothing
    assert found.p[1] == 1
    assert found.interval[0, 0] < found.rho[0] < found.interval[0, 1]
    assert statistics.difference(found, 2, 0)[0] == pytest.approx(1 - found.rho[0])
    others = table.on_others()
    left = statistics.partial(np.stack([score[0], others]), table.mean, known, others)
    np.testing.assert_allclose(left[1], 0, atol=1e-9)  # nothing beyond what is given
    few = np.array([[0.9, 0.2], [0.5, 0.6], [0.1, 0.4]])
    assert statistics.regret(few, few) == 0
    assert statistics.regret(-few, few) == pytest.approx((0.8 + 0.4) / 2)


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
    asked = ["--size", "smallest", "--family", "grey", "--data", str(data_folder), "--results", str(tmp_path)]
    foretell.main(asked)
    size = design.SIZES["smallest"]
    sources, targets = design.sources("grey", size), design.targets("grey", size)
    rows = read(tmp_path / "foretell_grey.csv")
    assert len(rows) == size.seeds * len(targets) * (len(sources) + 1)
    assert all(0 <= float(row["tuned5"]) <= 1 for row in rows)
    summary = {row["method"]: row for row in read(tmp_path / "foretell_summary.csv") if row["setting"] == "tuned5"}
    assert {"s-OTDD", "OTDD, debiased", "LogME", "most classes"} <= set(summary)
    before = (tmp_path / "foretell_grey.csv").read_bytes()
    foretell.main([*asked, "--steps", "train", "measure"])  # nothing is left to do
    assert (tmp_path / "foretell_grey.csv").read_bytes() == before


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
