"""Every method between all sources and all targets, a column for each feature and method; small means near."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import sotdd
from experiments.lib.store import read, write
from experiments.studies.taskweb.features import FEATURES, fitted
from experiments.studies.taskweb.tasks import SOURCES, TARGETS, Task

Floats = NDArray[np.float64]
Labelled: TypeAlias = tuple[Floats, NDArray[np.int64]]

DEFAULT = "s-OTDD"


@dataclass(frozen=True)
class Sizes:
    """How much is done."""

    texts: int  # of each task
    points: int  # for the methods whose time grows fast
    n_projections: int
    resamples: int
    features: tuple[str, ...] = FEATURES
    left_out: tuple[str, ...] = ()  # of the methods


SIZES = {
    "full": Sizes(600, 200, 1000, 400),
    "smallest": Sizes(
        40, 10, 32, 10, ("whole", "gradient"),
        ("s-OTDD, paper's law", "s-OTDD, quantiles × 3", "OTDD, debiased", "OTDD, Gaussian", "CHSW", "Fréchet", "MMD"),
    ),
}  # fmt: skip

Measure: TypeAlias = Callable[[Mapping[str, Labelled], Sizes], Floats]


def _pairwise(*, slow: bool = False, **settings: Any) -> Measure:
    """A call of the package on all tasks, so that they share one scale and one set of projections."""

    def measured(tasks: Mapping[str, Labelled], sizes: Sizes) -> Floats:
        given = dict(settings)
        if given.get("method") in (None, "sw", "chsw"):
            given["n_projections"] = sizes.n_projections
        if "method" not in given:
            given["device"] = "cpu"
        if slow:
            tasks = {name: (x[: sizes.points], y[: sizes.points]) for name, (x, y) in tasks.items()}
        matrix = sotdd.pairwise(dict(tasks), seed=0, **given)
        return np.array([[0.0 if s == t else matrix[s, t].value for t in TARGETS] for s in SOURCES])

    return measured


def _cosine(values: Callable[[Floats], Floats]) -> Measure:
    """One less the cosine between one vector of each task."""

    def measured(tasks: Mapping[str, Labelled], sizes: Sizes) -> Floats:
        vectors = {name: values(x) for name, (x, _) in tasks.items()}
        units = {name: vector / max(float(np.linalg.norm(vector)), 1e-300) for name, vector in vectors.items()}
        return np.array([[1 - float(units[s] @ units[t]) for t in TARGETS] for s in SOURCES])

    return measured


def _mean(x: Floats) -> Floats:
    return np.asarray(x.mean(axis=0))


def _squares(x: Floats) -> Floats:
    return np.asarray(np.mean(x**2, axis=0))


def _leep(tasks: Mapping[str, Labelled], sizes: Sizes) -> Floats:
    """Minus the log-likelihood of a target's labels through the classes of a linear head fitted to the source."""
    found = np.empty((len(SOURCES), len(TARGETS)))
    everything = np.concatenate([x for x, _ in tasks.values()])
    mean, spread = everything.mean(axis=0), everything.std(axis=0) + 1e-9
    for row, source in enumerate(SOURCES):
        x, y = tasks[source]
        head = fitted((x - mean) / spread, y)[0]
        for column, target in enumerate(TARGETS):
            x, y = tasks[target]
            found[row, column] = -leep(head.probabilities((x - mean) / spread), y)
    return found


def leep(probabilities: Floats, labels: NDArray[np.int64]) -> float:
    """Mean log-likelihood of labels given the head's classes, whose meaning is read off the same examples."""
    given = np.stack([probabilities[labels == label].sum(axis=0) for label in np.unique(labels)])
    given /= given.sum(axis=0)
    likely = np.einsum("nc,nc->n", probabilities, given[np.unique(labels, return_inverse=True)[1]])
    return float(np.mean(np.log(likely)))


MEASURES: dict[str, Measure] = {
    DEFAULT: _pairwise(),
    "s-OTDD, paper's law": _pairwise(label_law="paper", directions=sotdd.projections.Sphere(), estimator="plain"),
    "s-OTDD, quantiles × 3": _pairwise(label_law=sotdd.projections.ClassQuantiles(weight=3.0)),
    "sliced Wasserstein": _pairwise(method="sw", scale="pooled"),
    "Fréchet": _pairwise(method="frechet"),
    "MMD": _pairwise(method="mmd"),
    "OTDD": _pairwise(method="otdd", slow=True),
    "OTDD, debiased": _pairwise(method="otdd", debias="powers"),
    "OTDD, Gaussian": _pairwise(method="otdd-gaussian", slow=True),
    "CHSW": _pairwise(method="chsw", slow=True),
    "cosine of means": _cosine(_mean),
    "cosine of mean squares": _cosine(_squares),
    "LEEP of a linear head": _leep,
}
# Squares of gradients are a task's Fisher information; squares of other features mean little. Slow methods see some of
# the features.
_SLOW = ("whole", "difference", "word pairs", "gradient")
_ONLY = {
    "cosine of mean squares": ("gradient",),
    "LEEP of a linear head": ("whole", "two", "difference", "product", "relation"),
    **dict.fromkeys(("OTDD", "OTDD, debiased", "OTDD, Gaussian", "CHSW"), _SLOW),
}


def columns(features: tuple[str, ...] = FEATURES) -> list[tuple[str, str]]:
    """Pairs of a feature and a method that are measured, by feature."""
    return [(feature, name) for feature in features for name in MEASURES if feature in _ONLY.get(name, features)]


def run(features: Mapping[str, Mapping[str, Floats]], tasks: Mapping[str, Task], sizes: Sizes, path: Path) -> None:
    """Add every column that the file does not have yet; what a rule can know of each task goes beside it."""
    rows: list[dict[str, str]] = read(path) or [{"source": s, "target": t} for s in SOURCES for t in TARGETS]
    for feature, name in columns(sizes.features):
        title = f"{feature}: {name}"
        if title in rows[0] or name in sizes.left_out:
            continue
        began = time.perf_counter()
        points = {task: (features[feature][task], tasks[task].labels) for task in SOURCES}
        for row, value in zip(rows, MEASURES[name](points, sizes).ravel(), strict=True):
            row[title] = f"{value:.5g}"
        write(path, rows)
        print(f"{title}: {time.perf_counter() - began:.0f} s", flush=True)
    write(path.with_name("taskweb_tasks.csv"), [_known(name, task) for name, task in tasks.items()])


def _known(name: str, task: Task) -> dict[str, object]:
    """What a rule without any distance can know."""
    return {
        "task": name,
        "classes": len(np.unique(task.labels)),
        "texts": len(task.labels),
        "words": float(np.mean([len(text.split()) for text in task.whole])),
    }
