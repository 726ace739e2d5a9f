"""Drawing projections until a wanted accuracy is reached."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sotdd.basics.checks import check_count, check_order, check_positive
from sotdd.basics.progress import Progress, reporting
from sotdd.engines.comparison import conclude, controls_for, cost_table, pools_of
from sotdd.inputs.data import LabelledData
from sotdd.projections.draws import BLOCK
from sotdd.projections.recipe import Projections
from sotdd.results.distance import Distance
from sotdd.results.estimators import Estimator

if TYPE_CHECKING:
    from sotdd.engines.protocol import Engine, Precision

# At most this many are drawn before the first look.
FIRST = 512
MOST = 100_000

# A look at the error asks for what is still missing and a little more, and at most for four times what is there.
_MARGIN = 1.1
_GROWTH = 4


def to_tolerance(
    datasets: Sequence[LabelledData],
    projections: Projections,
    p: float,
    rel_tol: float,
    max_projections: int,
    progress: Progress = None,
    *,
    estimator: Estimator = "controlled",
    device: str = "auto",
    precision: Precision = "float32",
    engine: Engine | None = None,
    n_splits: int = 0,
) -> Distance:
    """Draw whole blocks until the standard error is at most ``rel_tol`` of the value and reliable, or none are left.

    How many are drawn next follows from the error so far and nothing else, so the answer does not depend
    on chunks or threads.
    """
    from sotdd.engines.choice import engine_for

    p, wanted = check_order(p), check_positive(rel_tol, "rel_tol")
    most = check_count(max_projections, "max_projections")
    total = _next_total(0, min(projections.n_projections, FIRST), most)
    chosen = engine or engine_for(device, datasets, total, precision)
    with reporting(progress, "Projecting") as report, chosen as active:
        pools = pools_of(datasets, [(0, 1)], projections, n_splits)
        drawn = projections.from_block(0, total)
        controls = controls_for(drawn, datasets, active, estimator)
        table = cost_table(datasets, [(0, 1)], drawn, p, active, report, controls, pools)
        while True:
            distance = conclude(datasets, [(0, 1)], table, projections.from_block(0, total))[0, 1]
            if total >= most or _settled(distance, wanted):
                break
            before, total = total, _next_total(total, _needed(distance, total, wanted), most)
            later = projections.from_block(before // BLOCK, total - before)
            further = None if controls is None else controls.through(later)
            table += cost_table(datasets, [(0, 1)], later, p, active, report, further)
    if _settled(distance, wanted):
        return distance
    missed = f"max_projections={most:,} did not reach rel_tol={wanted:g}"
    if distance.stderr <= wanted * distance.value:
        missed += " with an error that can be relied on"
    return replace(distance, remarks=(*distance.remarks, missed))


def _settled(distance: Distance, wanted: float) -> bool:
    """Whether the error is small enough, and not only because the sample missed the tail."""
    return distance.stderr <= wanted * distance.value and distance.reliable


def _needed(distance: Distance, total: int, wanted: float) -> float:
    """How many projections the error asks for; twice as many where it is small but cannot be relied on."""
    error = distance.stderr / distance.value if distance.value > 0 else math.inf
    needed = _MARGIN * total * (error / wanted) ** 2
    return needed if distance.reliable else max(needed, 2.0 * total)


def _next_total(before: int, needed: float, most: int) -> int:
    """How many to have next: whole blocks, except for the last."""
    if before:
        needed = min(needed, _GROWTH * before)
    blocks = max(math.ceil(needed / BLOCK), before // BLOCK + 1)
    return min(most, BLOCK * blocks)
