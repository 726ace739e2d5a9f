"""The transfer benchmark: its statistics and scores have known answers, and all of it runs at its smallest."""

import math

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("torch", reason="the benchmark trains networks: needs torch")
pytest.importorskip("ot", reason="the benchmark compares OTDD: needs POT")

from experiments.foretell import __main__ as command
from experiments.foretell import design, directed, page, scores, statistics
from experiments.options import Options
from experiments.store import read


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


@pytest.mark.slow
def test_the_smallest_run_from_data_to_page(tmp_path, rng):
    for number, name in enumerate(("mnist", "fashion_mnist", "kmnist", "usps", "emnist_letters")):
        parts = {}  # each with a look of its own, one bright square per class
        for part, points in (("train", 500), ("test", 200)):
            y = np.arange(points) % 6
            x = rng.integers(0, 40 + 30 * number, size=(points, 28, 28))
            for row, label in enumerate(y):
                x[row, 4 * label : 4 * label + 4, 3 * number : 3 * number + 8] += 140
            parts |= {f"X_{part}": np.minimum(x, 255).astype(np.uint8), f"y_{part}": y}
        np.savez(tmp_path / f"{name}.npz", **parts)
    asked = ["--size", "smallest", "--family", "grey", "--data", str(tmp_path), "--results", str(tmp_path)]
    command.main(asked)
    size = design.SIZES["smallest"]
    sources, targets = design.sources("grey", size), design.targets("grey", size)
    rows = read(tmp_path / "foretell_grey.csv")
    assert len(rows) == size.seeds * len(targets) * (len(sources) + 1)
    assert all(0 <= float(row["tuned5"]) <= 1 for row in rows)
    summary = {row["method"]: row for row in read(tmp_path / "foretell_summary.csv") if row["setting"] == "tuned5"}
    assert {"s-OTDD", "OTDD, debiased", "LogME", "most classes"} <= set(summary)
    before = (tmp_path / "foretell_grey.csv").read_bytes()
    command.main([*asked, "--steps", "train", "measure"])  # nothing is left to do
    assert (tmp_path / "foretell_grey.csv").read_bytes() == before


def test_the_committed_page_is_what_the_committed_tables_give():
    committed = page.PAGE.read_text(encoding="utf-8")
    assert page.filled(committed, Options.results) == committed
