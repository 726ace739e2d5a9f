"""From distances and transfers to the tables and the picture; transfers are read from the data, and not kept here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from experiments.lib.store import Row, read, write
from experiments.studies.taskweb import picture, statistics
from experiments.studies.taskweb.judgement import Judged, as_rows, difference
from experiments.studies.taskweb.measures import DEFAULT
from experiments.studies.taskweb.statistics import Floats, Transfers
from experiments.studies.taskweb.tasks import SOURCES, TARGETS, kind_of, transfers

ALL = "all settings"
BASE = f"whole: {DEFAULT}"
ON_OTHERS = "its mean on other targets"
SAME_KIND = "same kind first"
_RULES = {"most classes": "classes", "most texts": "texts", "longest texts": "words"}
RULES = (*_RULES, SAME_KIND, ON_OTHERS)


def tables(folder: Path, results: Path) -> dict[str, Transfers]:
    """By model setting, the mean over all of them first."""
    known = {row["task"]: row for row in read(results / "taskweb_tasks.csv")}
    fixed = np.array([[float(known[task][column]) for column in ("classes", "texts")] for task in SOURCES])
    related = np.array([[kind_of(s) == kind_of(t) for t in TARGETS] for s in SOURCES])
    by_setting = transfers(folder)
    # A run without a score leaves its setting out of that seed's mean.
    stacked = np.stack(list(by_setting.values()))
    there = np.isfinite(stacked)
    total = np.where(there, stacked, 0).sum(axis=0) / np.maximum(there.sum(axis=0), 1)
    mean = np.where(there.all(axis=0), total, np.nan)
    return {name: Transfers(score, related, fixed) for name, score in {ALL: mean, **by_setting}.items()}


def methods(results: Path) -> dict[str, Floats]:
    """Scores (sources, targets), higher for what a method holds for better; rules without a distance come last."""
    rows = read(results / "taskweb_distances.csv")
    shape = (len(SOURCES), len(TARGETS))
    found = {
        name: -np.array([float(row[name]) for row in rows]).reshape(shape)
        for name in rows[0]
        if name not in ("source", "target")
    }
    known = {row["task"]: row for row in read(results / "taskweb_tasks.csv")}
    for name, column in _RULES.items():
        values = np.array([float(known[task][column]) for task in SOURCES])
        found[name] = np.repeat(values[:, None], shape[1], axis=1)
    found[SAME_KIND] = np.array([[float(kind_of(s) == kind_of(t)) for t in TARGETS] for s in SOURCES])
    return found


def run(folder: Path, results: Path, resamples: int = statistics.RESAMPLES, *, draw: bool = True) -> None:
    """Write the tables and draw the picture."""
    summary: list[Row] = []
    differences: list[Row] = []
    families: list[Row] = []
    for setting, table in tables(folder, results).items():
        scores = {**methods(results), ON_OTHERS: table.on_others()}
        names, stacked = list(scores), np.stack(list(scores.values()))
        judgement = statistics.judged(stacked, table, resamples=resamples, partial=setting == ALL)
        summary += as_rows(names, judgement, setting=setting)
        if setting == ALL:
            differences += _differences(names, judgement)
        measured = np.stack([score for name, score in scores.items() if name not in RULES])
        best = statistics.p_of_the_best(measured, table, count=resamples)
        families.append({"setting": setting, "methods": len(measured), "p_of_the_best": best, **_sizes(table)})
    write(results / "taskweb_summary.csv", summary)
    write(results / "taskweb_differences.csv", differences)
    write(results / "taskweb_settings.csv", families)
    if draw:
        picture.draw(results)


def _differences(names: list[str], judgement: Judged) -> Iterator[Row]:
    """Of every method against s-OTDD of whole texts, and against sliced Wasserstein of the same feature."""
    for place, name in enumerate(names):
        others: Mapping[str, str] = {"default": BASE}
        feature, _, method = name.partition(": ")
        if method == DEFAULT:
            others = {**others, "without labels": f"{feature}: sliced Wasserstein"}
        for what, other in others.items():
            if other != name and other in names:
                value, low, high = difference(judgement, place, names.index(other))
                yield {"method": name, "less": what, "difference": value, "low": low, "high": high}


def _sizes(table: Transfers) -> dict[str, object]:
    pairs = np.isfinite(table.mean)
    return {
        "seeds": len(table.score),
        "pairs": int(pairs.sum()),
        "best": 100 * float(np.mean(np.nanmax(table.mean, axis=0))),
        "mean": 100 * float(np.mean(np.nanmean(table.mean, axis=0))),
    }
