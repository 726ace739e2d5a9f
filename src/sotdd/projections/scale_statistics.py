"""What a scaler is made of: moments of features and a sample of rows, which add up over batches, shards and parties."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Self
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sotdd.basics.checks import refuse_beyond_float64
from sotdd.basics.errors import SotddError
from sotdd.basics.randomness import Stream, generator
from sotdd.basics.text import say_count
from sotdd.inputs import open_dataset
from sotdd.inputs.agreement import find_places, order_columns
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.inputs.sparse import SparseRows
from sotdd.inputs.tensors import DeviceFeatures

if TYPE_CHECKING:
    from sotdd.projections.scaler import Kind, Scaler

Doubles = NDArray[np.float64]

# Fewer blocks than this are not worth the threads.
_FEW_BLOCKS = 8

# How many parts are pooled at a time.
_POOLED = 64

# A reach smaller than this is not divided by, so that its inverse stays in float64.
_SMALLEST = 1e-300


@dataclass(frozen=True, eq=False)
class FeatureMoments:
    """Counts, means and squared deviations of points.

    Deviations are from a point among the data, so that constant features have none at all, whatever their
    value; and in units of the largest one, so that no square leaves float64.

    Attributes
    ----------
    n_points
        How many points there are.
    pivot, reach
        (d,) the origin and the unit of each feature.
    mean, squares
        (d,) mean and summed squared deviations of (x - pivot) / reach.
    farthest
        (d,) the point farthest from the mean, or nearly so.
    name_of_farthest
        What messages call that point.
    """

    n_points: int
    pivot: Doubles
    reach: Doubles
    mean: Doubles
    squares: Doubles
    farthest: Doubles
    name_of_farthest: str

    @classmethod
    def of(cls, data: LabelledData) -> FeatureMoments:
        """Go over a dataset once, block by block."""
        pivot = data.rows(slice(0, 1))[0].astype(np.float64)
        if isinstance(data.features, (DeviceFeatures, SparseRows)):
            reach, mean, squares, row = data.features.moments(pivot)
            farthest = data.rows(slice(row, row + 1))[0].astype(np.float64)
            return cls(data.n_points, pivot, reach, mean, squares, farthest, _row_name(row, data))
        blocks = data.blocks()
        if len(blocks) < _FEW_BLOCKS:
            parts = [cls._of_block(data, block, pivot) for block in blocks]
        else:
            with ThreadPoolExecutor(os.cpu_count()) as threads:  # the loops do not hold Python's lock
                parts = list(threads.map(lambda block: cls._of_block(data, block, pivot), blocks))
        while len(parts) > 1:  # as many together as are worth a call, and the same for any number of threads
            parts = [cls.pool(parts[start : start + _POOLED]) for start in range(0, len(parts), _POOLED)]
        return parts[0]

    @classmethod
    def _of_block(cls, data: LabelledData, block: slice, pivot: Doubles) -> FeatureMoments:
        from sotdd.projections import kernels

        rows = data.rows(block)
        reach, mean, squares = np.ones(len(pivot)), np.empty(len(pivot)), np.empty(len(pivot))
        if rows.dtype == np.float64:  # squares of what is narrower stay in float64 as they are
            with np.errstate(over="ignore"):
                reach = np.abs(rows - pivot).max(axis=0)
            refuse_beyond_float64(reach)
            reach = np.maximum(np.where(reach > 0, reach, 1.0), _SMALLEST)
        row = kernels.block_moments(rows, pivot, reach, mean, squares)
        farthest = rows[row].astype(np.float64)
        return cls(len(rows), pivot, reach, mean, squares, farthest, _row_name(block.start + row, data))

    @classmethod
    def pool(cls, parts: Sequence[FeatureMoments]) -> FeatureMoments:
        """Those of all points together, the same for parts in any order (Chan, Golub and LeVeque)."""
        if len(parts) == 1:
            return parts[0]
        n_points = sum(part.n_points for part in parts)
        pivot = np.min([part.pivot for part in parts], axis=0)
        with np.errstate(over="ignore"):
            shifts = [part.pivot - pivot for part in parts]
        reach = np.max([*(part.reach for part in parts), *shifts], axis=0)
        refuse_beyond_float64(reach)
        means = [shift / reach + part.mean * (part.reach / reach) for part, shift in zip(parts, shifts, strict=True)]
        mean = _sum([own * (part.n_points / n_points) for part, own in zip(parts, means, strict=True)])
        squares = _sum(
            [
                part.squares * (part.reach / reach) ** 2 + part.n_points * (own - mean) ** 2
                for part, own in zip(parts, means, strict=True)
            ]
        )
        whole = cls(n_points, pivot, reach, mean, squares, parts[0].farthest, parts[0].name_of_farthest)
        first = max(parts, key=lambda part: (whole.share_of(part.farthest), part.name_of_farthest))
        return replace(whole, farthest=first.farthest, name_of_farthest=first.name_of_farthest)

    @property
    def centre(self) -> Doubles:
        """(d,) the means of the features."""
        return self.pivot + self.mean * self.reach

    @property
    def deviations(self) -> Doubles:
        """(d,) the standard deviations of the features."""
        return np.sqrt(self.squares / self.n_points) * self.reach

    @property
    def spread(self) -> float:
        """The root of the mean variance of the features: the spread of a projection, averaged over directions."""
        return float(np.sqrt(self._lengths.sum() / (self.n_points * self.mean.size)) * self._unit)

    @property
    def shares(self) -> Doubles:
        """(d,) what each feature contributes to the squared spread; zeros where nothing does."""
        return self._lengths / (self._lengths.sum() or 1.0)

    def share_of(self, point: Doubles) -> float:
        """What one point contributes to the squared spread."""
        with np.errstate(over="ignore"):
            deviation = ((point - self.pivot) / self.reach - self.mean) * (self.reach / self._unit)
            return float(deviation @ deviation) / (float(self._lengths.sum()) or 1.0)

    @property
    def _unit(self) -> float:
        return float(self.reach.max())

    @property
    def _lengths(self) -> Doubles:
        """(d,) summed squared deviations in one unit for all features."""
        return self.squares * (self.reach / self._unit) ** 2


def _sum(parts: Sequence[Doubles]) -> Doubles:
    """Add up in an order that does not depend on that of the parts."""
    total: Doubles = np.sort(np.stack(parts), axis=0).sum(axis=0)
    return total


def _row_name(row: int, data: LabelledData) -> str:
    return f"row {row:,} of {data.name!r}"


# ------------------------------------------------------------------ rows that stand for all points

# What a sample holds: tables of 20 columns are kept whole up to 200,000 rows.
MOST_VALUES = 1 << 22

# Values below the one quantile and above the other are brought in to it.
_LOW, _HIGH = 0.05, 0.95


def _of_normal_law() -> float:
    """The standard deviation of a standard normal law whose tails are brought in: about 0.91."""
    law = NormalDist()
    end = law.inv_cdf(_HIGH)
    return math.sqrt((_HIGH - _LOW) - 2 * end * law.pdf(end) + 2 * _LOW * end**2)


_NORMAL = _of_normal_law()


@dataclass(frozen=True, eq=False)
class RowSample:
    """Some rows of a dataset, or all of them where they are few.

    Every row has a key, uniform between 0 and 1, and those with the smallest keys are kept. So samples of
    parts merge to what a sample of the whole would be.

    Attributes
    ----------
    n_points
        How many points the rows stand for.
    rows
        (k, d) points.
    keys
        (k,) their keys.
    """

    n_points: int
    rows: NDArray[Any]
    keys: Doubles

    @classmethod
    def of(cls, data: LabelledData) -> RowSample:
        """Take rows at random, as many as a sample holds."""
        most = _most_rows(data.n_features)
        if data.n_points <= most:
            rows = data.rows(slice(None))
        else:
            chosen = generator(0, Stream.SCALE_ROWS, data.n_points).choice(data.n_points, most, replace=False)
            rows = data.rows(np.sort(chosen))
        # Keys follow from the data, so that parts of a stream have other keys and a second run has the same.
        rng = np.random.default_rng([data.n_points, _digest(rows)])
        return cls(data.n_points, rows, rng.random(len(rows)) * (len(rows) / data.n_points))

    def merge(self, other: RowSample) -> RowSample:
        """A sample of both."""
        keys = np.concatenate([self.keys, other.keys])
        kept = np.argsort(keys, kind="stable")[: _most_rows(self.rows.shape[1])]
        rows = np.concatenate([self.rows, other.rows])[kept]
        return RowSample(self.n_points + other.n_points, rows, keys[kept])

    @property
    def weight(self) -> float:
        """How many points each row stands for."""
        return self.n_points / len(self.rows)


def find_spreads(samples: Sequence[RowSample], means: Doubles, deviations: Doubles) -> tuple[Doubles, Doubles]:
    """Centre and robust spread (d,) of every feature; 0 for constant ones.

    Mean and standard deviation of features whose tails are brought in to the pooled 5 % and 95 % quantiles. The
    standard deviation is divided by what a standard normal law gives, so that normal features come out at theirs.
    Features of which nine in ten values are the same, or more, such as rare flags and sparse counts, have their plain
    means and standard deviations.
    """
    ordered = sorted(samples, key=lambda part: (part.n_points, _digest(part.rows)))  # in whatever order they are given
    parts = [_of_columns(ordered, columns) for columns in _columns(ordered)]
    centre, spread = (np.concatenate(column) for column in zip(*parts, strict=True))
    rare = spread == 0
    return np.where(rare, means, centre), np.where(rare, deviations, spread)


def _of_columns(samples: Sequence[RowSample], columns: slice) -> tuple[Doubles, Doubles]:
    """The same of some features."""
    parts = [sample.rows[:, columns].astype(np.float64) for sample in samples]
    low, high = _ends(parts, [sample.weight for sample in samples])
    with np.errstate(over="ignore"):
        width = high - low
    refuse_beyond_float64(width)
    unit = np.where(width > 0, width, 1.0)
    shares = np.array([sample.n_points for sample in samples], np.float64)[:, None]
    shares /= shares.sum()
    inside = [(np.clip(part, low, high) - low) / unit for part in parts]  # from 0 to 1
    means = np.stack([part.mean(axis=0) for part in inside])
    mean = (shares * means).sum(axis=0)
    variances = np.stack([part.var(axis=0) for part in inside])
    variance = (shares * (variances + (means - mean) ** 2)).sum(axis=0)
    return low + mean * width, np.sqrt(variance) * width / _NORMAL


def _ends(parts: Sequence[Doubles], weights: Sequence[float]) -> tuple[Doubles, Doubles]:
    """The quantiles (d,) of all rows together, each row counting by the weight of its part."""
    counts = None if len(set(weights)) == 1 else np.repeat(weights, [len(part) for part in parts])
    low, high = np.quantile(np.concatenate(parts), [_LOW, _HIGH], axis=0, method="inverted_cdf", weights=counts)
    return low, high


def _columns(samples: Sequence[RowSample]) -> Iterator[slice]:
    """Features a few at a time, so that all samples together take no more memory than one."""
    n_features = samples[0].rows.shape[1]
    size = max(1, MOST_VALUES // sum(len(sample.rows) for sample in samples))
    return (slice(start, start + size) for start in range(0, n_features, size))


def _digest(rows: NDArray[Any]) -> int:
    return crc32(np.ascontiguousarray(rows).data)


def _most_rows(n_features: int) -> int:
    return max(2, MOST_VALUES // n_features)


# ------------------------------------------------------------------ both


class ScaleStatistics:
    """Means and spreads of features, and a sample of rows, which merge over batches, shards and parties.

    Parameters
    ----------
    name
        What messages call the data.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> x = np.random.default_rng(0).normal(5, [1, 10, 100], size=(3000, 3))
    >>> here, there = sotdd.ScaleStatistics(), sotdd.ScaleStatistics()
    >>> for batch in np.split(x[:2000], 4):
    ...     here = here.add(batch)
    >>> both = here + there.add(x[2000:])
    >>> both
    ScaleStatistics(3,000 points, 3 features)
    >>> both.scaler("features").scale.round()
    array([  1.,  10., 100.])
    >>> scaler = sotdd.Scaler.fit([here, there], "features")  # of several datasets that will be compared
    """

    def __init__(self, name: str = "data") -> None:
        self.name = name
        self.moments: FeatureMoments | None = None
        self.sample: RowSample | None = None
        self.columns: tuple[str, ...] | None = None
        self.groups: dict[str, str | None] = {}  # of features that are no numbers, the category, or None for a gap

    @classmethod
    def of(cls, data: LabelledData, *, sampled: bool = True) -> ScaleStatistics:
        """Those of a dataset; the sample is what scaling each feature needs, and can be left out."""
        statistics = cls(data.name)
        statistics.moments, statistics.columns = FeatureMoments.of(data), data.columns
        statistics.groups = data.group_features()
        statistics.sample = RowSample.of(data) if sampled else None
        return statistics

    @property
    def n_points(self) -> int:
        """How many points were added."""
        return 0 if self.moments is None else self.moments.n_points

    def __repr__(self) -> str:
        """Sizes, for people."""
        features = 0 if self.moments is None else self.moments.mean.size
        return f"ScaleStatistics({say_count(self.n_points, 'point')}, {say_count(features, 'feature')})"

    def add(self, features: Dataset, labels: ArrayLike | Sequence[Hashable] | None = None) -> Self:
        """Add a batch; labels are ignored."""
        batch = open_dataset(features if labels is None else (features, labels), name=self.name)
        return self.merge(ScaleStatistics.of(order_columns(batch, self.columns, "what was added before")))

    def merge(self, other: ScaleStatistics) -> Self:
        """Add what another has gathered."""
        if not isinstance(other, ScaleStatistics):
            raise SotddError(f"a {type(other).__name__} cannot be merged: expected ScaleStatistics.")
        if self.columns is not None and other.columns not in (None, self.columns):
            find_places(self.columns, other.columns, f"dataset {other.name!r}", "what was added before")
            raise SotddError(f"columns of dataset {other.name!r} are in another order: add them in the same one.")
        if other.moments is None:
            return self
        if self.moments is None:
            self.moments, self.sample, self.columns = other.moments, other.sample, other.columns
            self.groups = other.groups
            return self
        if self.moments.mean.size != other.moments.mean.size:
            raise SotddError(
                f"the other statistics have {say_count(other.moments.mean.size, 'feature')} but those so far have "
                f"{self.moments.mean.size:,}: expected the same."
            )
        self.moments = FeatureMoments.pool([self.moments, other.moments])
        both = self.sample is not None and other.sample is not None
        self.sample = self.sample.merge(other.sample) if both else None  # type: ignore[union-attr,arg-type]
        return self

    def __add__(self, other: ScaleStatistics) -> ScaleStatistics:
        """Both together, each left as it is."""
        return ScaleStatistics(self.name).merge(self).merge(other)

    def scaler(self, scale: Kind = "auto") -> Scaler:
        """The scaler for all that was added: "features", "pooled", or "auto" as in `sotdd.distance`."""
        from sotdd.projections.scaler import Scaler

        return Scaler.fit([self], scale)
