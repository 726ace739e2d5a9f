"""Rows that stand for all points of a dataset, and the spread of features that is learnt from them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import refuse_beyond_float64
from sotdd.inputs.data import LabelledData

Doubles = NDArray[np.float64]

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
        """Take rows at even steps, as many as a sample holds."""
        step = -(-data.n_points // _most_rows(data.n_features))
        rows = data.rows(slice(0, data.n_points, step))
        # Keys follow from the data, so that parts of a stream have other keys and a second run has the same.
        rng = np.random.default_rng([data.n_points, _digest(rows)])
        return cls(data.n_points, rows, rng.random(len(rows)) * (len(rows) / data.n_points))

    def merged(self, other: RowSample) -> RowSample:
        """A sample of both."""
        keys = np.concatenate([self.keys, other.keys])
        kept = np.argsort(keys, kind="stable")[: _most_rows(self.rows.shape[1])]
        rows = np.concatenate([self.rows, other.rows])[kept]
        return RowSample(self.n_points + other.n_points, rows, keys[kept])

    def reordered(self, order: list[int]) -> RowSample:
        """The same with features in another order."""
        return RowSample(self.n_points, self.rows[:, order], self.keys)

    @property
    def weight(self) -> float:
        """How many points each row stands for."""
        return self.n_points / len(self.rows)


def spreads(samples: Sequence[RowSample], means: Doubles, deviations: Doubles) -> tuple[Doubles, Doubles]:
    """Centre and robust spread (d,) of every feature; 0 for constant ones.

    Features that are nearly always the same, such as rare flags and sparse counts, have their plain means and
    standard deviations.
    """
    centre, spread = winsorised(samples)
    rare = spread == 0
    return np.where(rare, means, centre), np.where(rare, deviations, spread)


def winsorised(samples: Sequence[RowSample]) -> tuple[Doubles, Doubles]:
    """Mean and standard deviation (d,) of features whose tails are brought in to the pooled 5 % and 95 % quantiles.

    The standard deviation is divided by what a standard normal law gives, so that normal features come out at
    theirs. Features of which nine in ten values are the same, or more, have none.
    """
    ordered = sorted(samples, key=lambda part: (part.n_points, _digest(part.rows)))  # in whatever order they are given
    parts = [_of_columns(ordered, columns) for columns in _columns(ordered)]
    return np.concatenate([mean for mean, _ in parts]), np.concatenate([spread for _, spread in parts])


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
    values = np.concatenate(parts)
    if len(set(weights)) == 1:
        low, high = np.quantile(values, [_LOW, _HIGH], axis=0, method="inverted_cdf")
        return low, high
    order = np.argsort(values, axis=0, kind="stable")
    counted = np.cumsum(np.repeat(weights, [len(part) for part in parts])[order], axis=0)
    reached = [(counted < level * counted[-1]).sum(axis=0) for level in (_LOW, _HIGH)]
    rows = [np.take_along_axis(order, np.minimum(rank, len(order) - 1)[None], axis=0) for rank in reached]
    low, high = (np.take_along_axis(values, row, axis=0)[0] for row in rows)
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
