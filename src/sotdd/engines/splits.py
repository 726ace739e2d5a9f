"""Random ways to deal the points of pooled datasets out to two sides, labels with their points."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.streams import Stream, generator
from sotdd.basics.text import counted

# The standard deviation of a normal law in terms of its median absolute deviation.
NORMAL_DEVIATION = 1.4826


class Labelled(Protocol):
    """What is dealt out: points with their labels, wherever the features are."""

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """The distinct labels."""

    @property
    def codes(self) -> NDArray[np.integer]:
        """Of every point, the index of its label among them."""


@dataclass(frozen=True, eq=False)
class Side:
    """The points of a pool that were dealt to one side, the classes that are there one after another."""

    index: NDArray[np.int64]  # (n,) indices in the pool
    offsets: NDArray[np.int64]  # (C + 1,) class boundaries among them; every class has a point
    classes: NDArray[np.int64]  # (C,) which classes of the pool these are


class Ways(Protocol):
    """Several ways to take two sides from a pool of points: what engines ask of them."""

    @property
    def sizes(self) -> tuple[int, int]:
        """How many points go to each side."""

    @property
    def n_classes(self) -> int:
        """How many classes the pool has."""

    def __len__(self) -> int:
        """How many ways there are."""

    def draw(self, number: int) -> tuple[Side, Side]:
        """The two sides of one of them."""


@dataclass(frozen=True, eq=False)
class Splits:
    """Several ways to deal the points of a pool out to two sides of given sizes.

    Classes of the pool are labels by value: "cat" of one dataset is "cat" of another, 1 is 1.0, and
    0 is not "0". Split number s follows from the seed, s and the sizes alone, so it is the same for
    every projection and need not be kept.

    Examples
    --------
    >>> from sotdd.inputs.data import LabelledData
    >>> from sotdd.engines.splits import Splits
    >>> a = LabelledData.of(([[0.0], [1.0], [2.0]], ["cat", "dog", "cat"]))
    >>> b = LabelledData.of(([[3.0], [4.0]], ["dog", "cat"]))
    >>> splits = Splits.of([a, b], (3, 2), count=9, seed=0, actual=True)
    >>> left, right = splits.draw(0)  # as the datasets came
    >>> left.index.tolist(), left.offsets.tolist(), right.index.tolist()
    ([0, 2, 1], [0, 2, 3], [4, 3])
    >>> left, right = splits.draw(1)
    >>> len(left.index), len(right.index)
    (3, 2)
    """

    sizes: tuple[int, int]
    start: int
    stop: int
    seed: int
    actual: bool
    grouped: NDArray[np.int64]  # (N,) indices in the pool, class by class
    edges: NDArray[np.int64]  # (C + 1,) where the classes lie among them

    @classmethod
    def of(
        cls, datasets: Sequence[Labelled], sizes: tuple[int, int], count: int, seed: int, *, actual: bool = False
    ) -> Splits:
        """Pool datasets; with ``actual``, split 0 gives the first points to the left as they came."""
        codes = pooled_codes(datasets)
        if min(sizes) < 1 or sum(sizes) != len(codes):
            raise SotddError(f"{counted(len(codes), 'point')} cannot be dealt out as {sizes[0]:,} and {sizes[1]:,}.")
        grouped = np.argsort(codes, kind="stable").astype(np.int64)
        edges = np.concatenate([[0], np.cumsum(np.bincount(codes))]).astype(np.int64)
        return cls(sizes, 0, count, seed, actual, grouped, edges)

    def __len__(self) -> int:
        """How many splits these are."""
        return self.stop - self.start

    @property
    def n_classes(self) -> int:
        """How many classes the pool has."""
        return len(self.edges) - 1

    @property
    def codes(self) -> NDArray[np.int64]:
        """Of every point of the pool, in its own order, which class it is of."""
        codes = np.empty(len(self.grouped), np.int64)
        codes[self.grouped] = np.repeat(np.arange(self.n_classes), np.diff(self.edges))
        return codes

    def part(self, first: int, last: int) -> Splits:
        """Splits first, …, last - 1 of these."""
        return replace(self, start=self.start + first, stop=min(self.start + last, self.stop))

    def draw(self, number: int) -> tuple[Side, Side]:
        """The two sides of one of these splits."""
        split = self.start + number
        if self.actual and split == 0:
            left = self.grouped < self.sizes[0]
        else:
            left = np.zeros(len(self.grouped), np.bool_)
            chosen = generator(self.seed, Stream.SPLITS, split).permutation(len(left))[: self.sizes[0]]
            left[chosen] = True
        counts = np.add.reduceat(left, self.edges[:-1], dtype=np.int64)
        return self._side(left, counts), self._side(~left, np.diff(self.edges) - counts)

    def _side(self, taken: NDArray[np.bool_], counts: NDArray[np.int64]) -> Side:
        present = np.flatnonzero(counts)
        return Side(self.grouped[taken], np.concatenate([[0], np.cumsum(counts[present])]).astype(np.int64), present)


def pooled_codes(datasets: Sequence[Labelled]) -> NDArray[np.int64]:
    """The class of every point of the pooled datasets, where labels that are equal are one class."""
    seen: dict[Hashable, int] = {}
    parts = []
    for data in datasets:
        names = np.array([seen.setdefault(label, len(seen)) for label in data.classes], np.int64)
        parts.append(names[data.codes])
    # A class whose label no point has would be an empty group.
    return np.unique(np.concatenate(parts), return_inverse=True)[1].astype(np.int64)
