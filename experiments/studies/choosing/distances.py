"""Every distance from the sources to the targets, as `sotdd.rank` measures it, and what is known of each source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sotdd
from experiments.lib.store import Row, Unit, complete, write
from experiments.studies.choosing import pools, scores
from experiments.studies.choosing.design import PICTURES, Effort
from experiments.studies.choosing.pools import Set

DEFAULT, EXCESS = "s-OTDD", "s-OTDD, excess"
_FOURIER = {"s-OTDD, Fourier": {"label_law": "fourier"}} if hasattr(sotdd.projections, "Fourier") else {}
SLICED: Mapping[str, Mapping[str, Any]] = {
    DEFAULT: {},
    "s-OTDD, quantiles": {"label_law": "quantiles"},
    "s-OTDD, cut at 3": {"label_law": sotdd.projections.Moments(cut=3.0)},
    **_FOURIER,
    "sliced Wasserstein": {"method": "sw"},
}
# These see pictures of 7 × 7 × 3, and the last two at most some of the points.
SLOW: Mapping[str, Mapping[str, Any]] = {
    "Fréchet": {"method": "frechet"},
    "MMD": {"method": "mmd"},
    "OTDD, debiased": {"method": "otdd", "debias": "powers"},
}
MEASURES = (DEFAULT, EXCESS, *tuple(SLICED)[1:], *SLOW)


def run(domain: str, cached: Path, effort: Effort, path: Path, workers: int) -> None:
    """One unit per target and measure, in processes of their own; a table of the sources goes beside it."""
    bases = pools.load(domain, cached)
    described = [
        {"source": name, "points": len(y), "classes": one.classes, "separation": scores.separation(one.flat(), y)}
        for name, one in pools.sources(domain, bases).items()
        for y in (one.y,)
    ]
    write(path.with_name(f"{domain}_sources.csv"), described)
    units = [{"target": target, "measure": name} for name in (*SLICED, *SLOW) for target in bases]
    with ProcessPoolExecutor(workers, get_context("spawn")) as processes:

        def work(unit: Unit) -> Sequence[Row]:
            given = (domain, cached, effort, str(unit["target"]), str(unit["measure"]))
            return processes.submit(measure, *given).result()

        complete(path, units, work, title=f"{domain}: distances", workers=workers)


@cache
def _sets(domain: str, cached: Path) -> tuple[dict[str, Set], dict[str, Set]]:
    bases = pools.load(domain, cached)
    return pools.sources(domain, bases), {name: base.pool for name, base in bases.items()}


def measure(domain: str, cached: Path, effort: Effort, target: str, name: str) -> list[Row]:
    """From all sources to one target: the distance, and for s-OTDD what lies beyond sampling noise, too."""
    sources, targets = _sets(domain, cached)
    slow = name in SLOW
    settings = dict(SLOW[name] if slow else SLICED[name])
    if not slow:
        settings["n_projections"] = effort.projections
    if "method" not in settings:
        settings["device"] = "cpu"
    elif settings["method"] in ("mmd", "otdd"):
        settings["max_points"] = effort.slow_points
    candidates = {source: (_seen(one, domain, slow), one.y) for source, one in sources.items()}
    order = sotdd.rank((_seen(targets[target], domain, slow), targets[target].y), candidates, seed=0, **settings)
    rows = [{"source": source, "value": order[source].value} for source in sources]
    if name == DEFAULT:
        for row in rows:
            row["excess"] = order[str(row["source"])].excess
    return rows


def _seen(one: Set, domain: str, small: bool) -> NDArray[np.float32]:
    if domain != PICTURES or not small:
        return one.flat()
    return one.x.reshape(len(one.x), 7, 4, 7, 4, 3).mean(axis=(2, 4)).reshape(len(one.x), -1)
