"""What every engine offers: the few verbs that a comparison is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from sotdd.data import LabelledData
from sotdd.projections.recipe import Projections
from sotdd.splits import Splits


class Engine(Protocol):
    """Works for the time of a ``with`` block. Rows are (B, n) in a form of the engine's own."""

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End, and leave the process's settings as they were."""

    def views(
        self,
        datasets: Sequence[LabelledData],
        projections: Projections,
        unplaced: Callable[[Any], None] | None = None,
    ) -> Iterator[tuple[slice, list[Any]]]:
        """See every dataset through one chunk of projections after another: sorted rows, valid until the next.

        Before each chunk is handed out, ``unplaced`` is called with its feature projections, for ``pool``.
        """

    def views_of_one(self, data: LabelledData, projections: Projections) -> Iterator[tuple[slice, Any, Any]]:
        """See one dataset likewise: which projections, sorted rows, and class terms (B, C)."""

    def quantiles(self, rows: Any, count: int) -> NDArray[np.float32]:  # noqa: ANN401
        """Means (B, count) of each sorted row over parts of equal probability, as an array."""

    def transport(self, a: Any, b: Any, p: float) -> Any:  # noqa: ANN401
        """W_p^p (B,) between each sorted row of a and of b, in a form of the engine's own."""

    def pool(self, unplaced: Any, members: Sequence[int]) -> Any:  # noqa: ANN401
        """The points of some datasets together, before they are placed, in a form of the engine's own."""

    def split_costs(self, pool: Any, splits: Splits, p: float) -> Any:  # noqa: ANN401
        """W_p^p (B, S) between the two sides of each split of a pool, in a form of the engine's own."""

    def ends(self, rows: Any) -> Any:  # noqa: ANN401
        """The smallest and the largest value (B, 2) of each sorted row, in a form of the engine's own."""

    def collect(self, parts: Sequence[Any]) -> NDArray[np.float64]:
        """Put what one of the three gave for one chunk after another together, as an array."""
