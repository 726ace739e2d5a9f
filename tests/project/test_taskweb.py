"""TaskWeb: its statistics with holes are right, its tasks and features are what they say, its page is its tables'."""

import csv
import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("ot", reason="the comparison has OTDD: needs POT")
pytest.importorskip("sklearn", reason="the comparison fits heads: needs scikit-learn")

from experiments.files import default_folder
from experiments.taskweb import features, measures, page, report, statistics, tasks

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "experiments" / "results"
# --------------------------------------------------------------------------- statistics


def _table(rng, seeds=4, sources=9, targets=6):
    score = rng.normal(size=(sources, targets)) + 0.3 * rng.normal(size=(seeds, sources, targets))
    score[:, np.arange(targets), np.arange(targets)] = np.nan  # no task is a source for itself
    score[0, -1, 0] = np.nan  # and one run has no score
    related = np.arange(sources)[:, None] % 3 == np.arange(targets) % 3
    return statistics.Transfers(score, related, rng.normal(size=(sources, 2)))


def test_correlations_leave_out_a_task_with_itself(rng):
    table, score = _table(rng), rng.normal(size=(9, 6))
    found = statistics.within(np.where(np.isfinite(table.mean), score, np.nan)[None], table.mean)[0]
    for target in range(6):
        others = np.arange(9) != target
        expected = stats.spearmanr(score[others, target], np.nanmean(table.score[:, others, target], axis=0)).statistic
        assert found[target] == pytest.approx(expected)


def test_statistics_by_hand(rng):
    table = _table(rng)
    truth = table.mean
    perfect, noise = truth.copy(), rng.normal(size=truth.shape)
    worst = -np.where(np.isfinite(truth), truth, 0)
    found = statistics.judged(np.stack([perfect, noise, worst]), table, resamples=40, partial=True)
    assert found.rho[[0, 2]] == pytest.approx([1, -1])
    assert found.regret[0] == pytest.approx(0)
    assert found.regret[2] == pytest.approx(np.mean(np.nanmax(truth, axis=0) - np.nanmin(truth, axis=0)))
    assert found.p[0] == pytest.approx(1 / 41)
    assert found.p[2] == 1
    assert found.partial[0] == pytest.approx(1)
    assert found.blind == pytest.approx(np.mean(np.nanmax(truth, axis=0) - np.nanmean(truth, axis=0)))
    assert 0.8 < found.ceiling < 1
    assert statistics.p_of_the_best(np.stack([perfect, noise]), table, count=40) == pytest.approx(1 / 41)


def test_a_sources_mean_on_other_targets(rng):
    table = _table(rng)
    standing = table.mean - np.nanmean(table.mean, axis=0)
    for source, target in ((0, 0), (3, 1), (8, 0)):
        others = [standing[source, t] for t in range(6) if t != target and np.isfinite(standing[source, t])]
        assert table.on_others()[source, target] == pytest.approx(np.mean(others))


@pytest.mark.slow
def test_chance_is_told_from_skill(rng):
    """Under the null, p is spread over its range: no more than a few of many methods are below a twentieth."""
    table = _table(rng, sources=22, targets=21)
    scores = np.repeat(rng.normal(size=(60, 22, 1)), 21, axis=2)  # the same for all targets, so that names matter most
    p = statistics.judged(scores, table, resamples=60, partial=False).p
    assert np.mean(p < 0.05) < 0.15
    assert 0.3 < np.mean(p) < 0.7


# --------------------------------------------------------------------------- tasks and features


def test_texts_are_cut_in_two(rng):
    assert tasks.parts("snli", "A dog runs.\nAn animal moves.") == ("A dog runs.", "An animal moves.")
    assert tasks.parts("wic", "Put the light out!\nLights are on.\nlight") == (
        "light: Put the light out!",
        "light: Lights are on.",
    )
    assert tasks.parts("imdb", "A film.") == ("A film.", "")
    seen = {tasks.with_option("copa", "It rained. so\nIt is wet.\nIt is dry.", 0, rng) for _ in range(40)}
    assert seen == {("It rained. so", "It is wet.", 1), ("It rained. so", "It is dry.", 0)}
    assert len(tasks.SOURCES) == 22
    assert len(tasks.TARGETS) == 21


def test_gradients_are_those_of_the_loss(rng):
    torch = pytest.importorskip("torch", reason="compares with autograd")
    x, y = rng.normal(size=(60, 4)), np.arange(60) % 3
    x[:, 0] += 2 * y
    found = features.gradients(x, y, seed=1)
    halves = np.random.default_rng(1).permutation(60) % 2
    head, classes = features.fitted(x[halves == 1], y[halves == 1])
    assert classes.tolist() == [0, 1, 2]
    inputs = torch.tensor(x[halves == 0], requires_grad=True)
    logits = inputs @ torch.tensor(head.weights).T + torch.tensor(head.offsets)
    torch.nn.functional.cross_entropy(logits, torch.tensor(y[halves == 0]), reduction="sum").backward()
    np.testing.assert_allclose(found[halves == 0], -inputs.grad.numpy(), atol=1e-10)


def test_two_classes_have_the_probabilities_of_scikit_learn(rng):
    from sklearn.linear_model import LogisticRegression

    x, y = rng.normal(size=(50, 3)), np.arange(50) % 2
    theirs = LogisticRegression(C=1e-2, max_iter=500).fit(x, y).predict_proba(x)
    np.testing.assert_allclose(features.fitted(x, y)[0].probabilities(x), theirs, atol=1e-12)


def test_leep_by_hand():
    probabilities = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    assert measures.leep(probabilities, np.array([0, 0, 1, 1])) == pytest.approx(0)
    assert measures.leep(probabilities, np.array([0, 1, 0, 1])) == pytest.approx(np.log(0.5))


# --------------------------------------------------------------------------- the run and the page


def _write(path, rows):
    with gzip.open(path, "wt", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


@pytest.mark.slow
def test_all_of_it_runs_at_its_smallest(tmp_path, rng, monkeypatch):
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
    transfers[5]["score"] = ""
    _write(tmp_path / "taskweb_texts.csv.gz", texts)
    _write(tmp_path / "taskweb_transfer.csv.gz", transfers)
    monkeypatch.setattr(features, "_encoded", lambda part, length: rng.normal(size=(len(part), 8)).astype(np.float32))
    monkeypatch.setattr(features, "_NUMBERS", 8)
    from experiments.taskweb.__main__ import main

    folders = ["--data", str(tmp_path), "--cache", str(tmp_path), "--results", str(tmp_path)]
    main(["--size", "smallest", *folders, "--output", str(tmp_path / "page.md")])
    assert (tmp_path / "taskweb.png").stat().st_size > 5000
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "whole: s-OTDD" in text
    assert "{" not in text.replace("{class}", "").replace("{doc}", "")
    with (tmp_path / "taskweb_distances.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 22 * 21
    assert [row["whole: s-OTDD"] for row in rows if row["source"] == row["target"]] == ["0"] * 21


def test_the_committed_page_is_what_the_committed_tables_give(tmp_path):
    page.generate(RESULTS, tmp_path / "page.md")
    fresh, committed = (
        [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("![")]
        for path in (tmp_path / "page.md", page.PAGE)
    )
    assert fresh == committed


@pytest.mark.slow
@pytest.mark.skipif(
    "SOTDD_DATA" not in os.environ,
    reason="TaskWeb's scores may not be shipped: name a folder of them in SOTDD_DATA",
)
def test_the_committed_tables_are_what_the_distances_and_the_transfers_give():
    """The values that no resampling enters, for the headline."""
    table = report.tables(default_folder(), RESULTS)[report.ALL]
    scores = {**report.methods(RESULTS), report.ON_OTHERS: table.on_others()}
    with (RESULTS / "taskweb_summary.csv").open(encoding="utf-8") as file:
        rows = {row["method"]: row for row in csv.DictReader(file) if row["setting"] == report.ALL}
    assert list(rows) == list(scores)
    for name, score in scores.items():
        hidden = np.where(np.isfinite(table.mean), score, np.nan)
        assert float(rows[name]["rho"]) == pytest.approx(statistics.within(hidden[None], table.mean).mean(), abs=1e-5)
        assert float(rows[name]["regret"]) == pytest.approx(100 * statistics.regret(hidden, table.mean), abs=1e-3)
