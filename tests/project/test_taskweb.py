"""TaskWeb: its statistics with holes are right, all of it runs, and its page is what its tables give."""

import csv
import gzip

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("ot", reason="the comparison has OTDD: needs POT")
pytest.importorskip("sklearn", reason="the comparison fits heads: needs scikit-learn")

from experiments.options import Options
from experiments.taskweb import features, page, statistics, tasks
from experiments.taskweb.__main__ import main


def test_statistics_by_hand(rng):
    score = rng.normal(size=(9, 6)) + 0.3 * rng.normal(size=(4, 9, 6))
    score[:, np.arange(6), np.arange(6)] = np.nan  # no task is a source for itself
    score[0, -1, 0] = np.nan  # and one run has no score
    table = statistics.Transfers(score, np.arange(9)[:, None] % 3 == np.arange(6) % 3, rng.normal(size=(9, 2)))
    truth, noise = table.mean, rng.normal(size=(9, 6))
    worst = -np.where(np.isfinite(truth), truth, 0)
    found = statistics.judged(np.stack([truth, noise, worst]), table, resamples=40, partial=True)
    one = [stats.spearmanr(np.delete(noise[:, t], t), np.delete(truth[:, t], t)).statistic for t in range(6)]
    assert found.rho == pytest.approx([1, np.mean(one), -1])
    assert found.regret[0] == pytest.approx(0)
    assert found.regret[2] == pytest.approx(np.mean(np.nanmax(truth, axis=0) - np.nanmin(truth, axis=0)))
    assert found.p[[0, 2]] == pytest.approx([1 / 41, 1])
    assert found.partial[0] == pytest.approx(1)
    assert 0.8 < found.ceiling < 1


def write(path, rows):
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
    write(tmp_path / "taskweb_texts.csv.gz", texts)
    write(tmp_path / "taskweb_transfer.csv.gz", transfers)
    monkeypatch.setattr(features, "_encoded", lambda part, length: rng.normal(size=(len(part), 8)).astype(np.float32))
    monkeypatch.setattr(features, "_NUMBERS", 8)
    folders = ["--data", str(tmp_path), "--cache", str(tmp_path), "--results", str(tmp_path)]
    main(["--size", "smallest", *folders, "--output", str(tmp_path / "page.md")])
    assert "whole: s-OTDD" in (tmp_path / "page.md").read_text(encoding="utf-8")
    with (tmp_path / "taskweb_distances.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 22 * 21
    assert [row["whole: s-OTDD"] for row in rows if row["source"] == row["target"]] == ["0"] * 21


def test_the_committed_page_is_what_the_committed_tables_give(tmp_path):
    page.generate(Options.results, tmp_path / "page.md")
    fresh, committed = (
        [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("![")]
        for path in (tmp_path / "page.md", page.PAGE)
    )
    assert fresh == committed
