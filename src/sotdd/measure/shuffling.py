"""Points shuffled between two sides, and what every shuffle costs in each aspect of a test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.progress import Report
from sotdd.basics.text import counted
from sotdd.engines.chance import usable_costs
from sotdd.engines.comparison import check_fits_memory
from sotdd.engines.splits import Splits
from sotdd.measure.aspects import FARTHEST, ORDERS, Aspect, Scope, combined, judged
from sotdd.projections.recipe import Projections
from sotdd.results.noise import rooted_means
from sotdd.results.two_sample import Statistic, TwoSampleTest

if TYPE_CHECKING:
    from sotdd.engines.protocol import Engine

Doubles = NDArray[np.float64]

# Splits that are made between two reports of progress.
_BATCH = 64

# The distances of this many splits, the data included, are shown beside the verdict.
_SHOWN = 200


class Shuffles:
    """Gathers the costs of splits as pools of projected points go by.

    Parameters
    ----------
    splits
        The ways to deal the points out; the first is the data.
    scope
        Which aspects are judged; None for the distance alone.
    p
        The order of the distance.
    n_projections
        How many projections all pools have together.
    engine, report
        The engine to work on, and where progress is reported.
    """

    def __init__(
        self, splits: Splits, scope: Scope | None, p: float, n_projections: int, engine: Engine, report: Report
    ) -> None:
        self._splits, self._scope, self._p = splits, scope, p
        self._engine, self._report = engine, report
        # Where aspects are judged, distances by chance are only shown, and fewer splits suffice.
        self._compared = splits if scope is None else splits.part(0, min(len(splits), _SHOWN))
        aspects = () if scope is None else scope.aspects
        self._total = n_projections * (len(self._compared) + len(splits) * len(aspects))
        what = f"{counted(len(splits), 'split')} through {counted(n_projections, 'projection')}"
        check_fits_memory(self._total * len(ORDERS), what, len(splits))
        self._distances: list[list[Any]] = [[] for _ in range(0, len(self._compared), _BATCH)]
        self._kept: dict[Aspect, list[list[Any]]] = {a: [[] for _ in range(0, len(splits), _BATCH)] for a in aspects}
        self._rows: list[NDArray[np.float32]] = []
        self._done = 0

    def add(self, pool: Any) -> None:  # noqa: ANN401  # an engine's own
        """Deal a pool out under its projections, which follow those of the pools before."""
        self._deal_out(pool, self._compared, [self._p], self._distances)
        if self._scope is not None:
            near = pool.within(FARTHEST)
            self._rows.append(near.values())
            for aspect, shown in self._scope.pools(near, self._splits.n_classes).items():
                self._deal_out(shown, self._splits, ORDERS, self._kept[aspect])

    def _deal_out(self, pool: Any, splits: Splits, orders: Sequence[float], kept: list[list[Any]]) -> None:  # noqa: ANN401
        for number, by_batch in enumerate(kept):
            batch = splits.part(number * _BATCH, (number + 1) * _BATCH)
            by_batch.append(self._engine.split_costs(pool, batch, orders))
            self._done += len(pool.rows) * len(batch)
            self._report(self._done, self._total)

    def verdict(self, by: Statistic, projections: Projections, remarks: tuple[str, ...] = ()) -> TwoSampleTest:
        """What the costs of all splits say."""
        distances = self._collected(self._distances)[:, :, 0]
        costs = {aspect: self._collected(kept) for aspect, kept in self._kept.items()}
        statistics = judged(distances, costs, self._p, by)
        if self._scope is not None:
            statistics |= self._scope.means(np.concatenate(self._rows), self._splits)
        outstanding, rooted = combined(statistics), rooted_means(distances, self._p)
        return TwoSampleTest(
            distance=float(rooted[0]),
            null_distances=rooted[1:],
            statistic=float(outstanding[0]),
            null=outstanding[1:],
            judged_by=by,
            p=self._p,
            n_points=self._splits.sizes,
            n_projections=projections.n_projections,
            fingerprint=projections.fingerprint,
            remarks=remarks,
            aspects={name: float(np.mean(values >= values[0])) for name, values in statistics.items()},
        )

    def _collected(self, kept: list[list[Any]]) -> Doubles:
        costs = np.concatenate([self._engine.collect(by_batch) for by_batch in kept], axis=1)
        return usable_costs(costs, max(self._p, *ORDERS))
