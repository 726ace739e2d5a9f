"""The tasks: their texts cut into two parts, their labels, and the scores of transfers between them."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.lib.files import at_hand

Floats = NDArray[np.float64]

TEXTS, TRANSFERS = "taskweb_texts", "taskweb_transfer"
# What a reader would call alike: as the authors group them, but for the two tasks that read a passage.
KINDS: dict[str, tuple[str, ...]] = {
    "inference": ("anli_r3", "cb", "qnli", "rte", "scitail", "snli"),
    "paraphrase": ("mrpc", "qqp", "stsb"),
    "sentiment": ("imdb", "rotten_tomatoes"),
    "common sense": ("copa", "cosmosqa", "hellaswag", "piqa", "quartz", "socialiqa", "winogrande"),
    "meaning of words": ("wic", "wsc"),
    "reading": ("boolq", "squad_v2"),
}
SOURCES = tuple(sorted(task for kind in KINDS.values() for task in kind))
TARGETS = tuple(task for task in SOURCES if task != "squad_v2")  # which has no score as a target
OPTIONS = {"cosmosqa": 4, "socialiqa": 3, "piqa": 2, "hellaswag": 4, "copa": 2, "winogrande": 2, "quartz": 2}
_SCORE_BINS = 5  # of a similarity from 0 to 5


@dataclass(frozen=True, eq=False)
class Task:
    """Examples of a task: what comes first, what is judged against it (empty where there is one text), the label."""

    first: Sequence[str]
    second: Sequence[str]
    labels: NDArray[np.int64]

    @property
    def whole(self) -> list[str]:
        """Both parts as one text."""
        return [f"{a}\n{b}".strip() for a, b in zip(self.first, self.second, strict=True)]


def parts(task: str, text: str) -> tuple[str, str]:
    """Cut the text of a task without options in two."""
    lines = text.split("\n")
    if task == "wic":  # two sentences, and a word that may mean the same in both
        return f"{lines[2]}: {lines[0]}", f"{lines[2]}: {lines[1]}"
    if task == "wsc":  # a sentence, a pronoun, and what it may stand for
        return lines[0], f"{lines[-2]} is {lines[-1]}"
    return lines[0], " ".join(lines[1:])


def with_option(task: str, text: str, right: int, rng: np.random.Generator) -> tuple[str, str, int]:
    """A question with its right answer (1) or with one of the wrong ones (0), by the toss of a coin."""
    lines = text.split("\n")
    count = OPTIONS[task]
    context, options = " ".join(lines[:-count]), lines[-count:]
    if rng.random() < 0.5:
        return context, options[right], 1
    wrong = [option for place, option in enumerate(options) if place != right]
    return context, wrong[rng.integers(len(wrong))], 0


def load(folder: Path, most: int, seed: int = 0) -> dict[str, Task]:
    """At most so many examples of each task, drawn at random."""
    rows: dict[str, list[dict[str, str]]] = {task: [] for task in SOURCES}
    with gzip.open(at_hand(TEXTS, folder), "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            rows[row["task"]].append(row)
    found = {}
    for number, task in enumerate(SOURCES):
        rng = np.random.default_rng((seed, number))
        chosen = [rows[task][place] for place in rng.permutation(len(rows[task]))[:most]]
        found[task] = _made(task, chosen, rng)
    return found


def _made(task: str, rows: Sequence[Mapping[str, str]], rng: np.random.Generator) -> Task:
    if task in OPTIONS:
        drawn = [with_option(task, row["text"], int(row["label"]), rng) for row in rows]
        first, second, labels = (list(column) for column in zip(*drawn, strict=True))
        return Task(first, second, np.array(labels))
    first, second = (list(column) for column in zip(*(parts(task, row["text"]) for row in rows), strict=True))
    if task == "stsb":
        scores = np.array([float(row["label"]) for row in rows])
        return Task(first, second, np.minimum(scores.astype(np.int64), _SCORE_BINS - 1))
    return Task(first, second, np.unique([row["label"] for row in rows], return_inverse=True)[1].astype(np.int64))


def transfers(folder: Path) -> dict[str, Floats]:
    """By model setting: scores (seeds, sources, targets); NaN for a task with itself and for runs without a score."""
    with gzip.open(at_hand(TRANSFERS, folder), "rt", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["main"] == "1" and row["kind"] == "transfer"]
    seeds = sorted({row["seed"] for row in rows})
    found: dict[str, Floats] = {}
    for row in rows:
        table = found.setdefault(row["setting"], np.full((len(seeds), len(SOURCES), len(TARGETS)), np.nan))
        if row["score"]:
            place = seeds.index(row["seed"]), SOURCES.index(row["source"]), TARGETS.index(row["target"])
            table[place] = float(row["score"])
    return dict(sorted(found.items()))


def kind_of(task: str) -> str:
    """The group that a task is in."""
    return next(kind for kind, tasks in KINDS.items() if task in tasks)
