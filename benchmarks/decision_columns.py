"""Whether a reference names the column that changed, and none where nothing did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import sotdd
from benchmarks.decision_data import Source, laws, spread
from benchmarks.decision_power import share

# Columns are compared by their own scores: the projections of the joint test may be few.
_PROJECTIONS = 8


def false_names(simulations: int, n: int = 400, batches: tuple[int, ...] = (10, 50, 200)) -> list[list[str]]:
    """Two samples of one law: how often any column is named, and any pair or class."""
    lines = [["law", *(f"batch of {m}: {what}" for m in batches for what in ("a column", "a pair or class"))]]
    for name in (*laws(), *TABLES):
        line = [name]
        for m in batches:
            found = spread(name_falsely, [(name, n, m, simulation) for simulation in range(simulations)])
            line += [share([one[at] for one in found]) for at in range(2)]
        lines.append(line)
        print(line, flush=True)
    return lines


def name_falsely(item: tuple[str, int, int, int]) -> tuple[bool, bool]:
    """Whether a column is named, and a pair or class, in one simulation."""
    name, n, m, simulation = item
    source = TABLES[name]() if name in TABLES else laws()[name]
    rows = 200 if name == "breast cancer" else n  # which has 569
    data, batch = source.pair(np.random.default_rng([simulation, m]), (rows, m))
    how = {"label": "label", "one_hot": 100} if data[0].dtype.kind == "U" else {}
    reference = sotdd.DriftReference.fit(as_table(data), n_projections=_PROJECTIONS, seed=simulation, **how)
    found = reference.find_changes(as_table(batch))
    return bool(found.changed), bool(found.pairs or found.classes)


def as_table(data: Any) -> Any:  # noqa: ANN401  # what the call takes
    """Texts as columns of categories; numbers as they are."""
    features, labels = data
    if features.dtype.kind != "U":
        return data
    return pd.DataFrame({f"c{number}": column for number, column in enumerate(features.T)}).assign(label=labels)


def one_hot() -> Source:
    """A hundred marks, from 1 in 1,000 to 1 in 2."""
    rates = np.geomspace(0.001, 0.5, 100)
    return Source(np.ones(1), lambda rng, labels: (rng.random((len(labels), 100)) < rates).astype(float))


def source_of_categories() -> Source:
    """Twenty columns of fifty values each, the second half as frequent as the first, and so on."""
    shares = 1 / np.arange(1, 51)
    names = np.array([f"v{number}" for number in range(50)])
    return Source(np.ones(1), lambda rng, labels: names[rng.choice(50, (len(labels), 20), p=shares / shares.sum())])


TABLES: dict[str, Callable[[], Source]] = {
    "100 one-hot columns": one_hot,
    "20 categories, Zipf": source_of_categories,
}


# ------------------------------------------------------------------ the right column


def sample(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """A table of twelve columns: related and heavy-tailed numbers, counts, categories and gaps."""
    factor = rng.normal(size=n)
    table = pd.DataFrame({f"x{number}": rng.normal(size=n) + 0.7 * factor for number in range(5)})
    table = table.assign(income=np.exp(rng.normal(10, 0.6, n)), visits=rng.poisson(2, n), age=rng.normal(40, 10, n))
    table = table.assign(city=rng.choice(["Oslo", "Rome", "Lima", "Kyiv"], n, p=[0.4, 0.3, 0.2, 0.1]))
    table = table.assign(plan=rng.choice(["a", "b", "c"], n), member=rng.choice(["yes", "no"], n))
    table["score"] = np.where(rng.random(n) < 0.01, np.nan, rng.normal(size=n))
    return table


def new_city(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """One row in twenty has a city that there was not."""
    return table.assign(city=np.where(rng.random(len(table)) < 0.05, "Cairo", table["city"]))


def more_gaps(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """One value in ten is missing, not one in a hundred."""
    return table.assign(score=np.where(rng.random(len(table)) < 0.0909, np.nan, table["score"]))


def far_values(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """One row in twenty is eight standard deviations off."""
    return table.assign(age=np.where(rng.random(len(table)) < 0.05, 120.0, table["age"]))


# What changes, and in which column.
CAUSES: dict[str, tuple[str, Callable[[pd.DataFrame, np.random.Generator], pd.DataFrame]]] = {
    "moved by 0.5 sd": ("age", lambda table, _: table.assign(age=table["age"] + 5)),
    "scaled 1.5 ×": ("age", lambda table, _: table.assign(age=40 + 1.5 * (table["age"] - 40))),
    "a new category at 5 %": ("city", new_city),
    "gaps from 1 to 10 %": ("score", more_gaps),
    "5 % at 8 sd": ("age", far_values),
}


def changed_columns(simulations: int, sizes: tuple[int, ...] = (500, 2000)) -> list[list[str]]:
    """How often the column that changed is named first, and how often another is named as well."""
    lines = [["what changed", *(f"n = {n:,}: {what}" for n in sizes for what in ("first", "another named"))]]
    for name in CAUSES:
        line = [name]
        for n in sizes:
            found = spread(name_changed, [(name, n, simulation) for simulation in range(simulations)])
            line += [share([one[at] for one in found]) for at in range(2)]
        lines.append(line)
        print(line, flush=True)
    return lines


def name_changed(item: tuple[str, int, int]) -> tuple[bool, bool]:
    """Whether the column that changed is named first, and whether another is named, in one simulation."""
    name, n, simulation = item
    column, change = CAUSES[name]
    rng = np.random.default_rng([simulation, n])
    before = sotdd.open_dataset(sample(rng, n), label=None)
    reference = sotdd.DriftReference.fit(before, n_projections=_PROJECTIONS, seed=simulation)
    after = sotdd.open_dataset(change(sample(rng, n), rng), label=None)
    named = [one.column for one in reference.find_changes(after).changed]
    return named[:1] == [column], bool(set(named) - {column})
