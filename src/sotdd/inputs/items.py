"""What loaders find: features that are numbers, or items that have yet to become numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.inputs.data import Features
from sotdd.inputs.labels import Labels


class Items(ABC):
    """Texts or images by row number; ``batch`` of them are read at a time."""

    batch = 256

    @abstractmethod
    def __len__(self) -> int:
        """How many there are."""

    @abstractmethod
    def read(self, rows: NDArray[np.integer]) -> list[Any]:
        """Some of them; None in place of one that is to be left out."""

    def tell(self, name: str) -> None:  # noqa: B027  # most leave nothing out
        """Say what was left out, once all are read."""


class ListItems(Items):
    """Items that are in memory."""

    def __init__(self, items: Sequence[Any]) -> None:
        self._items = items

    def __len__(self) -> int:
        """How many there are."""
        return len(self._items)

    def read(self, rows: NDArray[np.integer]) -> list[Any]:
        """Some of them."""
        return [self._items[row] for row in rows]


class Batch(tuple[NDArray[Any], NDArray[Any]]):
    """(features, labels) of some rows of a table, with the names of the features."""

    columns: tuple[str, ...] | None = None

    @classmethod
    def of(cls, features: NDArray[Any], labels: NDArray[Any], columns: tuple[str, ...] | None) -> Batch:
        """Put the three together."""
        batch = cls((features, labels))
        batch.columns = columns
        return batch


@dataclass(frozen=True, eq=False)
class Found:
    """Features or items, and their labels or None.

    ``sampled`` says that the loader took the sample itself, ``prepared`` that it made numbers of
    what it read. ``columns`` are the names of the features, where they have names.
    """

    features: Features | Items
    labels: Labels | None
    sampled: bool = False
    prepared: bool = False
    columns: tuple[str, ...] | None = None
