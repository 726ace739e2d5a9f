"""Every distance and every rule without a network, between all sources and all targets: one column each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import sotdd
from experiments.foretell import design, directed
from experiments.foretell.design import COLOUR, GREY, TEXT, Design
from experiments.foretell.pools import Family, Made
from experiments.store import read, write

Floats = NDArray[np.float64]
Labelled: TypeAlias = tuple[NDArray[np.float32], NDArray[np.int64]]

DEFAULT = "s-OTDD"


@dataclass(frozen=True, eq=False)
class Sets:
    """The samples that distances are taken between, by name."""

    family: str
    size: Design
    sources: Mapping[str, Made]
    targets: Mapping[str, Made]

    def sample(self, made: Made, points: int, part: int = 0, *, small: bool = False) -> Labelled:
        """Some points in a fixed random order, others for other parts; small: pictures of 14 or 8 pixels a side."""
        rows = np.random.default_rng(0).permutation(len(made.y))[part * points : (part + 1) * points]
        x = made.x[rows]
        if small and self.family != TEXT:
            side, step = (14, 2) if self.family == GREY else (8, 4)
            x = x.reshape(len(x), side, step, side, step, -1).mean(axis=(2, 4))
        return x.reshape(len(x), -1), made.y[rows]

    def named(self, points: int, *, small: bool = False) -> dict[str, Labelled]:
        """All of them for a call of the package; a source and a target may have one name."""
        sets = {f"source: {name}": made for name, made in self.sources.items()}
        sets |= {f"target: {name}": made for name, made in self.targets.items()}
        return {name: self.sample(made, points, small=small) for name, made in sets.items()}

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Of one picture."""
        return next(iter(self.sources.values())).x.shape[1:]


Measure: TypeAlias = Callable[[Sets], Floats]


def _pairwise(*, slow: bool = False, small: bool = False, **settings: Any) -> Measure:
    """A setting of the package, all sets in one unit."""

    def measured(sets: Sets) -> Floats:
        given = {key: value(sets) if callable(value) else value for key, value in settings.items()}
        if "method" not in given:
            given["device"] = "cpu"
        if given.get("method") in (None, "sw", "chsw"):
            given["n_projections"] = sets.size.n_projections
        named = sets.named(sets.size.slow_points if slow else sets.size.distance_points, small=small)
        matrix = sotdd.pairwise(named, seed=0, **given)
        return np.array([[matrix[f"source: {s}", f"target: {t}"].value for t in sets.targets] for s in sets.sources])

    return measured


def _excess(sets: Sets) -> Floats:
    """By what `sotdd.rank` orders: the distance beyond the noise of the sizes."""
    points, count = sets.size.distance_points, sets.size.n_projections
    candidates = {name: sets.sample(made, points) for name, made in sets.sources.items()}
    found = []
    for made in sets.targets.values():
        order = sotdd.rank(sets.sample(made, points), candidates, n_projections=count, seed=0, device="cpu")
        found.append([order[name].excess for name in candidates])
    return np.array(found).T


def _otdd(*, debiased: bool) -> Measure:
    """OTDD exact on few points; debiased: its square less the mean of the squares within the two sets."""

    def squared(a: Labelled, b: Labelled) -> float:
        return float(sotdd.peers.otdd(a, b).value ** 2)

    def within(sets: Sets, made: Made) -> float:
        points = min(sets.size.slow_points, len(made.y) // 2)
        return squared(sets.sample(made, points, small=True), sets.sample(made, points, 1, small=True))

    def measured(sets: Sets) -> Floats:
        few = sets.size.slow_points
        a = [sets.sample(made, few, small=True) for made in sets.sources.values()]
        b = [sets.sample(made, few, small=True) for made in sets.targets.values()]
        if not debiased:
            return np.array([[squared(source, target) for target in b] for source in a])
        floors = [[within(sets, made) for made in part.values()] for part in (sets.sources, sets.targets)]
        return np.asarray(-np.add.outer(*map(np.array, floors)) / 2)  # to be added to the squares

    return measured


def _convolution(clamp: float | None) -> Callable[[Sets], object]:
    return lambda sets: sotdd.projections.Convolution(sets.shape, "auto", clamp, "last")


def _ink(sets: Sets) -> Floats:
    means = [[float(made.x.mean()) for made in part.values()] for part in (sets.sources, sets.targets)]
    return np.abs(np.subtract.outer(np.array(means[0]), np.array(means[1])))


def _directed(score: Callable[..., float]) -> Measure:
    def measured(sets: Sets) -> Floats:
        points = sets.size.distance_points
        a = [sets.sample(made, points, small=True) for made in sets.sources.values()]
        b = [sets.sample(made, points, small=True) for made in sets.targets.values()]
        return np.array([[score(*source, *target) for target in b] for source in a])

    return measured


# A small value means near, or held for useful. s-OTDD's settings differ from the default in what their name says.
MEASURES: dict[str, Measure] = {
    DEFAULT: _pairwise(),
    "s-OTDD, excess": _excess,
    "s-OTDD, paper's law": _pairwise(label_law="paper", directions=sotdd.projections.Sphere(), estimator="plain"),
    "s-OTDD, features": _pairwise(scale="features"),
    "s-OTDD, raw scale": _pairwise(scale=None),
    "s-OTDD, p = 1": _pairwise(p=1.0),
    "s-OTDD, quantiles": _pairwise(label_law="quantiles"),
    "s-OTDD, quantiles × 3": _pairwise(label_law=sotdd.projections.ClassQuantiles(weight=3.0)),
    "s-OTDD, uniform orders": _pairwise(label_law=sotdd.projections.Moments(orders=sotdd.projections.UniformOrders(4))),
    "s-OTDD, convolutions": _pairwise(directions=_convolution(5.0)),
    "s-OTDD, convolutions uncut": _pairwise(directions=_convolution(None), label_law="paper"),
    "sliced Wasserstein": _pairwise(method="sw", scale="pooled"),
    "Fréchet": _pairwise(method="frechet", small=True),
    "MMD": _pairwise(method="mmd", slow=True, small=True),
    "OTDD": _otdd(debiased=False),
    "OTDD, debiased": _otdd(debiased=True),
    "OTDD, Gaussian": _pairwise(method="otdd-gaussian", slow=True, small=True),
    "WTE": _pairwise(method="wte", slow=True, small=True),
    "CHSW": _pairwise(method="chsw", slow=True, small=True),
    "mean ink": _ink,
    "label entropy, nearest": _directed(directed.nearest_entropy),
    "label entropy, sliced plans": _directed(directed.sliced_entropy),
}
# Some take too long where all sets together have a thousand classes and more.
_LEFT_OUT = {
    TEXT: ("s-OTDD, convolutions", "s-OTDD, convolutions uncut"),  # texts are no pictures
    GREY: ("OTDD, Gaussian",),
    COLOUR: ("OTDD, Gaussian", "WTE", "CHSW"),
}


def measures(family: str) -> dict[str, Measure]:
    """Those that a family can have."""
    return {name: measure for name, measure in MEASURES.items() if name not in _LEFT_OUT.get(family, ())}


def run(family: Family, size: Design, path: Path, only: Sequence[str] | None = None) -> None:
    """Add every column that the file does not have yet; a file of what each set is goes beside it."""
    sources = {recipe.name: family.source(recipe, size) for recipe in design.sources(family.name, size)}
    targets = {recipe.name: family.target(recipe, size).train for recipe in design.targets(family.name, size)}
    sets = Sets(family.name, size, sources, targets)
    described = [{"role": "source", **_described(made)} for made in sources.values()]
    described += [{"role": "target", **_described(made)} for made in targets.values()]
    write(path.with_name(path.name.replace("_distances", "_sets")), described)
    rows: list[dict[str, str]] = read(path) or [{"source": s, "target": t} for s in sources for t in targets]
    for name, measure in measures(family.name).items():
        if name in rows[0] or (only is not None and name not in only):
            continue
        began = time.perf_counter()
        found = measure(sets).ravel()
        if name == "OTDD, debiased":
            found = found + np.array([float(row["OTDD"]) for row in rows])
        for row, value in zip(rows, found, strict=True):
            row[name] = f"{value:.5g}"
        write(path, rows)
        print(f"{family.name}, {name}: {time.perf_counter() - began:.0f} s", flush=True)


def _described(made: Made) -> dict[str, object]:
    """What a rule without any distance can know of a set."""
    recipe = made.recipe
    return {
        "name": recipe.name,
        "bases": "+".join(recipe.bases),
        "classes": made.classes,
        "points": len(made.y),
        "wrong": recipe.wrong,
        "separation": directed.separation(made.x.reshape(len(made.y), -1), made.y),
    }
