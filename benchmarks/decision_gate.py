"""False alarms of `sotdd check` with its own defaults: nothing changed, a fresh reference every time."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from experiments.lib.files import default_folder

import sotdd
from benchmarks.decision_data import spread
from benchmarks.decision_power import share
from sotdd.drift.gate import Gate

Rng = np.random.Generator
Sample = Callable[[Rng, int], pd.DataFrame]


def numbers(values: Any, prefix: str = "x") -> pd.DataFrame:  # noqa: ANN401  # an array (n, d)
    """Columns of numbers."""
    return pd.DataFrame(np.asarray(values, float), columns=[f"{prefix}{place}" for place in range(values.shape[1])])


def categories(rng: Rng, n: int, count: int) -> pd.DataFrame:
    """Columns of forty values that are all as frequent."""
    return pd.DataFrame({f"c{place}": np.char.mod("v%02d", rng.integers(40, size=n)) for place in range(count)})


def mixed(rng: Rng, n: int) -> pd.DataFrame:
    """Heavy tails, a category, rare counts, gaps and labels."""
    table = numbers(rng.standard_cauchy((n, 6))).assign(big=np.exp(3 * rng.normal(size=n)), rare=rng.poisson(0.1, n))
    table = table.join(categories(rng, n, 1))
    table.loc[rng.random(n) < 0.03, "x0"] = np.nan
    return table.assign(label=np.where(rng.random(n) < 0.2, "yes", "no"))


@cache
def count_words(most: int = 200) -> np.ndarray | None:
    """How often the commonest words are in each of some film reviews; None where the texts are not at hand."""
    path = default_folder() / "imdb_train2000.csv.gz"
    if not path.is_file():
        return None
    with gzip.open(path, "rt", encoding="utf-8") as file:
        texts = (
            pd.read_csv(file)
            .iloc[:, :]
            .select_dtypes("object")
            .agg(" ".join, axis=1)
            .str.lower()
            .str.findall(r"[a-z]+")
        )
    known = [word for word, _ in Counter(word for text in texts for word in set(text)).most_common(most)]
    return np.array([[text.count(word) for word in known] for text in texts], float)


def reviews(rng: Rng, n: int) -> pd.DataFrame:
    """Word counts of film reviews: both samples are halves of one shuffle, by the state of ``rng``."""
    words = count_words()
    assert words is not None
    return numbers(words[rng.choice(len(words), n, replace=False)], "w")


# Of every law, how tables are drawn, and the sizes of reference and batch.
LAWS: dict[str, tuple[Sample, tuple[tuple[int, int], ...]]] = {
    "film reviews, 200 word counts": (reviews, ((150, 150), (500, 500), (1000, 100))),
    "200 Poisson(0.03) counts": (lambda rng, n: numbers(rng.poisson(0.03, (n, 200))), ((150, 150), (1000, 100))),
    "three categories of 40 values": (lambda rng, n: categories(rng, n, 3), ((1000, 1000), (5000, 250))),
    "one category of 40 values": (lambda rng, n: categories(rng, n, 1), ((1000, 1000), (300, 100))),
    "60 flags at 1 %": (lambda rng, n: numbers(rng.random((n, 60)) < 0.01), ((300, 300), (1000, 100))),
    "ten columns of four values": (lambda rng, n: numbers(rng.integers(4, size=(n, 10))), ((200, 200), (1000, 60))),
    "six Cauchy columns": (lambda rng, n: numbers(rng.standard_cauchy((n, 6))), ((200, 200), (1500, 100))),
    "mixed, with gaps and labels": (mixed, ((300, 300), (2000, 150))),
    "one normal column": (lambda rng, n: numbers(rng.normal(size=(n, 1))), ((100, 100), (1000, 20))),
    "300 normal columns": (lambda rng, n: numbers(rng.normal(size=(n, 300))), ((150, 150), (500, 50))),
}


def gates(simulations: int) -> list[list[str]]:
    """How often a check fails, of every law and sizes; and how often anything is named."""
    lines = [["data", "reference, batch", "check fails, %", "something named, %"]]
    for name, (sample, sizes) in LAWS.items():
        if sample is reviews and count_words() is None:
            continue
        for n, m in sizes:
            found = spread(judge, [(name, n, m, number) for number in range(simulations)])
            lines.append([name, f"{n:,}, {m:,}", *(share([one[at] for one in found]) for at in range(2))])
            print(lines[-1], flush=True)
    return lines


def judge(item: tuple[str, int, int, int]) -> tuple[bool, bool]:
    """Whether one check fails, as on the command line, and whether it names anything."""
    name, n, m, number = item
    table = LAWS[name][0](np.random.default_rng([number, n, m]), n + m)
    how = {} if "label" in table else {"label": None}
    reference = sotdd.DriftReference.fit(table.iloc[:n], **how)
    gate = Gate("reference", reference)
    verdict = gate.judge(reference.open_batch(table.iloc[n:], max_points=20_000), "batch")
    changes = verdict.changes
    json.dumps(verdict.to_dict(), allow_nan=False)
    return verdict.verdict.drifted is True, bool(changes.changed or changes.pairs or changes.classes)
