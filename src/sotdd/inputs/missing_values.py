"""Values of a table that are missing: counted, and then refused, left out or filled in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.text import counted
from sotdd.inputs.streamed import StreamedFeatures, refuse_non_finite

# Rows that are looked at together.
_ROWS = 4096
# Messages list this many columns.
_SHOWN = 6


@dataclass(frozen=True, eq=False)
class Gaps:
    """Where the features of a dataset are missing.

    Attributes
    ----------
    n_points
        How many rows there are.
    rows
        (r,) the numbers of those in which something is missing, ascending.
    counts
        (d,) how many values of each feature are missing.
    means
        (d,) the mean of the values of each feature that are there; NaN where there are none.
    titles
        What messages call the features; features that share a title were one column.
    """

    n_points: int
    rows: NDArray[np.int64]
    counts: NDArray[np.int64]
    means: NDArray[np.float64]
    titles: tuple[str, ...]

    @classmethod
    def of(cls, features: NDArray[Any] | StreamedFeatures, titles: Sequence[str], name: str) -> Gaps:
        """Look at all values; infinite ones are refused."""
        width = int(np.prod(features.shape[1:], dtype=np.int64))
        counts, sums = np.zeros(width, np.int64), np.zeros(width)
        rows: list[NDArray[np.int64]] = []
        for start, block in _blocks(features):
            missing = np.isnan(block) if block.dtype.kind == "f" else np.zeros(block.shape, bool)
            known = np.where(missing, 0, block)
            if block.dtype.kind == "f":
                refuse_non_finite(known, range(start, start + len(block)), name)
            counts += missing.sum(axis=0)
            sums += known.sum(axis=0, dtype=np.float64)
            rows.append(start + np.flatnonzero(missing.any(axis=1)))
        with np.errstate(invalid="ignore"):
            means = sums / (len(features) - counts)
        return cls(len(features), np.concatenate(rows), counts, means, tuple(titles))

    def __bool__(self) -> bool:
        """Whether anything is missing."""
        return len(self.rows) > 0

    @property
    def by_column(self) -> str:
        """How many values of which columns are missing, in words."""
        missing: dict[str, int] = {}
        for title, count in zip(self.titles, self.counts.tolist(), strict=True):
            if count:
                missing[title] = max(count, missing.get(title, 0))
        most_first = sorted(missing.items(), key=lambda item: -item[1])
        shown = ", ".join(f"{title} ({count:,})" for title, count in most_first[:_SHOWN])
        return shown + (f" and {counted(len(missing) - _SHOWN, 'more column')}" if len(missing) > _SHOWN else "")

    @property
    def said(self) -> str:
        """How many rows and columns lack something."""
        return f"{len(self.rows):,} of {counted(self.n_points, 'row')}, {self.by_column}"

    @property
    def empty(self) -> str | None:
        """A column without any value, which has no mean."""
        counts = zip(self.titles, self.counts, strict=True)
        return next((title for title, count in counts if count == self.n_points), None)

    def refuse(self, name: str) -> None:
        """Refuse values that are missing, and say how many and where."""
        if self:
            advice = "" if self.empty is None else f", or exclude={self.empty}, which is empty"
            raise SotddError(f"{name} has missing values in {self.said}: pass missing='drop' or 'mean'{advice}.")


class Filled(StreamedFeatures):
    """Other features with one number in place of the missing values of each column."""

    def __init__(self, features: StreamedFeatures, fill: NDArray[np.float64]) -> None:
        super().__init__(features.name, features.shape, features.dtype, finite=True)  # infinite values were refused
        self._features = features
        self._fill = fill

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Read some rows, and fill them in."""
        return _fill(self._features.read(start, stop), self._fill)


def _fill(block: NDArray[Any], fill: NDArray[np.float64]) -> NDArray[Any]:
    """A block with the missing values of each column filled in."""
    return np.where(np.isnan(block), fill.astype(block.dtype), block) if block.dtype.kind == "f" else block


def without_gaps(
    features: NDArray[Any] | StreamedFeatures, titles: Sequence[str], missing: str, name: str
) -> tuple[NDArray[Any] | StreamedFeatures, NDArray[np.bool_] | None, tuple[str, ...]]:
    """Features without missing values, which rows to keep (None for all), and what a reader should know.

    With "error" streamed features are left as they are: they refuse what is missing when it is read.
    """
    gaps = Gaps.of(features, titles, name)
    if not gaps:
        return features, None, ()
    if missing == "error":
        gaps.refuse(name)
    if missing == "drop":
        kept = np.ones(len(features), bool)
        kept[gaps.rows] = False
        if not kept.any():
            raise SotddError(f"every row of {name} lacks a value, {gaps.by_column}: leave out columns with exclude=.")
        remark = f"rows with missing values left out: {gaps.said}"
        return features, kept, (remark,)
    if gaps.empty is not None:
        raise SotddError(f"column {gaps.empty!r} of {name} has no values, and so no mean: leave it out with exclude=.")
    remark = f"missing values filled in by the mean of their column: {gaps.said}"
    if isinstance(features, StreamedFeatures):
        return Filled(features, gaps.means), None, (remark,)
    return _fill(features, gaps.means), None, (remark,)


def _blocks(features: NDArray[Any] | StreamedFeatures) -> Iterator[tuple[int, NDArray[Any]]]:
    """Where blocks begin and their values (m, d), unchecked."""
    for start in range(0, len(features), _ROWS):
        stop = min(start + _ROWS, len(features))
        block = features.read(start, stop) if isinstance(features, StreamedFeatures) else features[start:stop]
        yield start, np.asarray(block).reshape(stop - start, -1)
