"""Points shuffled between two sides, in every aspect that a test looks at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from sotdd.aspects import ORDERS, Aspect, Looked, Statistic, combined, judged
from sotdd.chance import usable_costs
from sotdd.data import LabelledData
from sotdd.errors import SotddError
from sotdd.noise import rooted_means
from sotdd.progress import Report
from sotdd.projections.recipe import Projections
from sotdd.splits import Splits
from sotdd.two_sample import TwoSampleTest

if TYPE_CHECKING:
    from sotdd.engines.protocol import Engine

Doubles = NDArray[np.float64]

# Splits that are made between two reports of progress.
_BATCH = 64


class Shuffles:
    """Gathers the costs of splits in every aspect as pools of projected points go by."""

    def __init__(
        self,
        splits: Splits,
        looked: Looked,
        orders: Sequence[float],
        n_projections: int,
        engine: Engine,
        report: Report,
    ) -> None:
        self._splits, self._looked, self._orders = splits, looked, orders
        self._engine, self._report = engine, report
        starts = range(0, len(splits), _BATCH)
        self._kept: list[list[list[Any]]] = [[[] for _ in starts] for _ in looked.aspects]
        self._seen = self._done = 0
        self._total = n_projections * len(splits) * len(looked.aspects)
        _refuse_beyond_memory(self._total * len(orders), len(splits), n_projections)

    def add(self, pool: Any) -> None:  # noqa: ANN401  # an engine's own
        """Deal a pool out under its projections, which follow those of the pools before."""
        in_aspects = self._looked.pools(pool, self._splits.n_classes, self._seen)
        for shown, by_batch in zip(in_aspects, self._kept, strict=True):
            for number, kept in enumerate(by_batch):
                batch = self._splits.part(number * _BATCH, (number + 1) * _BATCH)
                kept.append(self._engine.split_costs(shown, batch, self._orders))
                self._done += len(pool.rows) * len(batch)
                self._report(self._done, self._total)
        self._seen += len(pool.rows)

    def costs(self) -> dict[Aspect, Doubles]:
        """Of each aspect, W_p^p (L, S, orders)."""
        return {
            aspect: usable_costs(
                np.concatenate([self._engine.collect(kept) for kept in by_batch], axis=1), max(self._orders)
            )
            for aspect, by_batch in zip(self._looked.aspects, self._kept, strict=True)
        }


def orders_of(p: float, by: Statistic) -> tuple[float, ...]:
    """The orders of transport that a test needs: that of the distance, and those that are judged."""
    return tuple(sorted({p, *ORDERS})) if by == "combined" else (p,)


def verdict(
    costs: Mapping[Aspect, Doubles],
    orders: Sequence[float],
    p: float,
    by: Statistic,
    sizes: tuple[int, int],
    projections: Projections,
    remarks: tuple[str, ...] = (),
) -> TwoSampleTest:
    """What the costs of all splits say, of which the first is the data."""
    found = judged(costs, orders, p, by)
    outstanding = combined(found)
    distances = rooted_means(next(iter(costs.values()))[:, :, list(orders).index(p)], p)
    return TwoSampleTest(
        distance=float(distances[0]),
        null_distances=distances[1:],
        statistic=float(outstanding[0]),
        null=outstanding[1:],
        judged_by=by,
        p=p,
        n_points=sizes,
        n_projections=projections.n_projections,
        fingerprint=projections.fingerprint,
        remarks=remarks,
        aspects={name: float(np.mean(values >= values[0])) for name, values in found.items()},
    )


def engine_of(
    data: Sequence[LabelledData], projections: Projections, device: str, precision: Literal["float32", "tf32"]
) -> Engine:
    """The engine that a test works on."""
    from sotdd.engines.choice import engine_for

    return engine_for(device, data, projections.n_projections, precision)


def _refuse_beyond_memory(numbers: int, n_splits: int, n_projections: int) -> None:
    try:
        np.empty(numbers)
    except (MemoryError, ValueError) as error:
        raise SotddError(
            f"{n_splits:,} splits through {n_projections:,} projections do not fit in memory: use fewer."
        ) from error
