"""What loaders return: labels, and features that are numbers or items that have yet to become numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sotdd.inputs.data import Features
from sotdd.inputs.labels import Labels

if TYPE_CHECKING:
    from sotdd.inputs.loaders.columns import Columns


@dataclass(frozen=True, eq=False)
class Loaded:
    """A dataset as its loader read it.

    Attributes
    ----------
    features
        Numbers, or items that have yet to become numbers.
    labels
        One for each row, or None where the source has none.
    sampled
        Whether the loader has taken the sample that was asked for.
    prepared
        Whether the loader has applied the encoder and the transform that were asked for.
    columns
        The names of the features, where they have names.
    image_mode
        The mode that suits all images, where the loader has looked at all of them.
    table
        Of a table, which of its columns are features; None for anything else.
    one_hot
        The columns that became one feature per value, where ``table`` does not say.
    gaps
        Whether values may be missing, so that all of them have to be looked at.
    """

    features: Features | Items
    labels: Labels | None
    sampled: bool = False
    prepared: bool = False
    columns: tuple[str, ...] | None = None
    image_mode: str | None = None
    table: Columns | None = None
    one_hot: tuple[str, ...] = ()
    gaps: bool = False


class Items(ABC):
    """Texts or images by row number, read ``batch_size`` at a time."""

    batch_size = 256

    @abstractmethod
    def __len__(self) -> int:
        """How many items there are."""

    @abstractmethod
    def read(self, rows: NDArray[np.integer]) -> list[Any]:
        """The items of some rows, with None in place of those to leave out."""

    def log_skipped(self, name: str) -> None:  # noqa: B027  # most items are never left out
        """Log how many items were left out, once all are read."""


class ListItems(Items):
    """Items that are in memory."""

    def __init__(self, items: Sequence[Any]) -> None:
        self._items = items

    def __len__(self) -> int:
        """How many items there are."""
        return len(self._items)

    def read(self, rows: NDArray[np.integer]) -> list[Any]:
        """The items of some rows."""
        return [self._items[row] for row in rows]
