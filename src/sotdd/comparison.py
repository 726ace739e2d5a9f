"""The loop that every sliced distance goes through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sotdd.checks import check_order
from sotdd.data import LabelledData
from sotdd.errors import SotddError
from sotdd.noise import NoiseFloor
from sotdd.progress import Progress, reporting
from sotdd.projections.recipe import Projections
from sotdd.result import Distance
from sotdd.splits import Splits

if TYPE_CHECKING:
    from sotdd.engines.choice import Precision
    from sotdd.engines.protocol import Engine

# Half a unit in the last place of float32, in which projected points are sorted.
_ROUNDING = 2.0**-24
# Projected values beyond this are far from zero.
_FAR = 1e4
# Rounding beyond this share of the distance is told.
_TOLERATED = 0.02


def compare(
    datasets: Sequence[LabelledData],
    pairs: Sequence[tuple[int, int]],
    projections: Projections,
    p: float,
    progress: Progress = None,
    *,
    method: str = "s-OTDD",
    device: str = "auto",
    precision: Precision = "float32",
    engine: Engine | None = None,
    n_splits: int = 0,
) -> dict[tuple[int, int], Distance]:
    """Distances of some pairs; each dataset is projected and sorted once for all of them.

    With ``n_splits`` every distance gets its noise floor, from so many splits of the pooled pair.
    """
    from sotdd.engines.choice import engine_for

    p = check_order(p)
    count = projections.n_projections
    _refuse_beyond_memory(count, len(pairs) * (1 + n_splits) + 2 * len(datasets))
    chosen = engine or engine_for(device, datasets, count, precision)
    ends: list[list[Any]] = [[] for _ in datasets]
    costs: list[list[Any]] = [[] for _ in pairs]
    splits = _pair_splits(datasets, pairs, n_splits, projections) if n_splits else []
    split_costs: list[list[Any]] = [[] for _ in pairs]

    def deal_out(unplaced: object) -> None:
        for pair, dealt, kept in zip(pairs, splits, split_costs, strict=True):
            kept.append(active.split_costs(active.pool(unplaced, pair), dealt, p))

    with reporting(progress, "Projecting") as report, chosen as active:
        for part, rows in active.views(datasets, projections, deal_out if n_splits else None):
            for seen, kept in zip(rows, ends, strict=True):
                kept.append(active.ends(seen))
            for (i, j), kept in zip(pairs, costs, strict=True):
                kept.append(active.transport(rows[i], rows[j], p))
            report(part.stop, count)
        reach = [active.collect(parts) for parts in ends]  # (L, 2) of each dataset
        transported = [active.collect(parts) for parts in costs]  # (L,) of each pair
        by_split = [active.collect(parts) if n_splits else None for parts in split_costs]  # (L, S) of each pair
    found = {}
    for (i, j), per_projection, dealt_out in zip(pairs, transported, by_split, strict=True):
        _refuse_lost_powers(per_projection, reach[i], reach[j], p)
        rounding = _ROUNDING * np.maximum(np.abs(reach[i]).max(axis=1), np.abs(reach[j]).max(axis=1))
        found[i, j] = Distance.from_projections(
            datasets[i],
            datasets[j],
            per_projection,
            p,
            method=method,
            fingerprint=projections.fingerprint,
            scaler=projections.scaler,
            remarks=_precision(per_projection, rounding, p) or _flattened(reach[i], reach[j]),
            noise=None if dealt_out is None else NoiseFloor.of(usable_costs(dealt_out, p), p),
        )
    return found


def _pair_splits(
    datasets: Sequence[LabelledData], pairs: Sequence[tuple[int, int]], count: int, projections: Projections
) -> list[Splits]:
    """Splits of every pooled pair, which follow from the projections and the sizes alone."""
    seed = int(projections.fingerprint, 16)
    return [
        Splits.of([datasets[i], datasets[j]], (datasets[i].n_points, datasets[j].n_points), count, seed)
        for i, j in pairs
    ]


def usable_costs(costs: NDArray[np.float64], p: float) -> NDArray[np.float64]:
    """Transport costs of splits, or an error where they left float64."""
    if not np.isfinite(costs).all():
        raise SotddError(
            f"transport to the power p={p:g} overflows on a random split of the data: use a smaller p, "
            "scale='pooled', or bring outliers in."
        )
    return costs


def _refuse_beyond_memory(count: int, vectors: int) -> None:
    """Refuse so many projections that their results alone cannot be held."""
    try:
        np.empty((vectors, count))
    except (MemoryError, ValueError) as error:
        raise SotddError(f"the results of {count:,} projections do not fit in memory: use fewer.") from error


def _refuse_lost_powers(
    transported: NDArray[np.float64], ends_a: NDArray[np.float64], ends_b: NDArray[np.float64], p: float
) -> None:
    """Refuse powers that left float64, above or below."""
    if not np.isfinite(transported).all():
        raise SotddError(f"transport to the power p={p:g} overflows: use a smaller p or scale='pooled'.")
    if p > 2 and ((transported == 0) & (ends_a != ends_b).any(axis=1)).any():
        raise SotddError(f"transport to the power p={p:g} underflows: use a smaller p.")


def _precision(per_projection: NDArray[np.float64], rounding: NDArray[np.float64], p: float) -> tuple[str, ...]:
    """Say when float32 leaves few digits: moments so large that the features beside them are rounded away."""
    unit = float(rounding.max())
    if unit == 0 or not per_projection.any():
        return ()
    noise = unit * float(np.mean((rounding / unit) ** p)) ** (1 / p)
    value = float(np.mean(per_projection / per_projection.max())) ** (1 / p) * float(per_projection.max()) ** (1 / p)
    if noise <= _TOLERATED * value:
        return ()
    return (
        f"projected values are so large that float32 rounding is up to {noise:.2g}: bring outliers in, scale the "
        "features or take lower orders",
    )


def _flattened(ends_a: NDArray[np.float64], ends_b: NDArray[np.float64]) -> tuple[str, ...]:
    """Say when float32 left no difference between the points of a dataset, so far are they from zero."""
    for ends in (ends_a, ends_b):
        largest = np.abs(ends).max(axis=1)
        if np.median(largest) > _FAR and np.median(np.diff(ends)[:, 0] / largest) < 4 * _ROUNDING:
            return ("points are so far from zero that float32 does not tell them apart: use scale='pooled'",)
    return ()
