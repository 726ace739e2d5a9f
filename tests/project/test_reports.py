"""The page of the experiments: verdicts allow for both samples, seeds are counted, no line is empty."""

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the experiments train networks: needs torch")

from experiments import page, reports, verdicts
from experiments.correlate import Correlation

ROOT = Path(__file__).parents[2]


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


def test_every_claim_has_a_word():
    for section in (part(ROOT / "experiments" / "results") for part in reports.SECTIONS):
        assert section.claims
        assert all(line.verdict in verdicts.WORDS and line.here for line in section.claims)


def test_seeds_are_counted_place_by_place():
    rows = [{"seed": seed, "a": place} for seed in "012" for place in "xy"]
    assert page.seeds(rows, "a") == "3"
    assert page.seeds(rows[:-1], "a") == "2 to 3"
