"""The page of the experiments: verdicts allow for both samples, seeds are counted, no line is empty."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("torch", reason="the experiments train networks: needs torch")

from experiments import page, reports, verdicts
from experiments.correlate import Correlation

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("here", "paper", "pairs", "word"),
    [
        ((0.5, 0.3, 0.7), (0.4, 0.42), 20, "confirmed"),
        ((0.41, 0.3, 0.5), (0.4, 0.42), 20, "confirmed"),
        ((0.1, -0.2, 0.4), (0.4, 0.42), 20, "undecided"),
        ((0.05, -0.05, 0.15), (0.9, 0.9), 20, "weaker"),
        ((-0.3, -0.4, -0.2), (0.9, 0.9), 20, "weaker"),
        ((0.95, 0.93, 0.97), (0.2, 0.2), 20, "stronger"),
        ((-0.1, -0.7, 0.6), (-0.3, -0.3), None, "undecided"),
        ((-0.1, -0.2, 0.0), (-0.74, -0.74), None, "weaker"),
        ((-0.2, -0.3, -0.1), (0.05, 0.05), 20, "opposite"),
        ((1.0, 1.0, 1.0), (1.0, 1.0), 20, "confirmed"),
    ],
)
def test_a_word_on_two_samples(here, paper, pairs, word):
    assert verdicts.beside(Correlation(*here), paper, pairs) == word


def test_two_samples_of_one_kind_seldom_disagree(rng):
    """Twenty pairs in the paper and twenty here, of one true correlation: about one in twenty may differ."""
    truth, different = 0.4, 0
    for _ in range(300):
        coefficients = []
        for _ in range(2):
            x, y = rng.multivariate_normal([0, 0], [[1, truth], [truth, 1]], size=20).T
            coefficients.append(stats.spearmanr(x, y).statistic)
        error = np.sqrt(1.06 / 17)
        low, high = (np.tanh(np.arctanh(coefficients[0]) + side * 1.96 * error) for side in (-1, 1))
        found = verdicts.beside(Correlation(coefficients[0], low, high), (coefficients[1],) * 2, 20)
        different += found in ("weaker", "stronger")
    assert different < 0.12 * 300


def test_no_line_of_the_page_only_says_that_the_paper_drew_it():
    assert "not given as a number" not in PAGE
    for line in PAGE.splitlines():
        if line.startswith("| ") and "drawn" in line:
            assert any(character.isdigit() for character in line.rsplit("|", 3)[1])


def test_every_claim_has_a_word():
    results = ROOT / "experiments" / "results"
    for section in (part(results) for part in reports.SECTIONS):
        assert section.claims
        for line in section.claims:
            assert line.verdict in verdicts.WORDS
            assert line.here


def test_links_of_the_table_lead_to_headings():
    headings = {page.anchor(line.removeprefix("## ")) for line in PAGE.splitlines() if line.startswith("## ")}
    links = {part.split(")")[0] for part in PAGE.split("](#")[1:]}
    assert links == headings


def test_seeds_are_counted_place_by_place():
    rows = [{"seed": seed, "a": place} for seed in "012" for place in "xy"]
    assert page.seeds(rows, "a") == "3"
    assert page.seeds(rows[:-1], "a") == "2 to 3"
