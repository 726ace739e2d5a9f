"""What a scaler is made of: moments of features, and their spreads without the tails."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import refuse_beyond_float64
from sotdd.basics.resources import Stream, Workers, generator
from sotdd.inputs.data import LabelledData
from sotdd.inputs.features import DeviceFeatures

if TYPE_CHECKING:
    from sotdd.projections.scaler import Scaler

Doubles = NDArray[np.float64]

# Fewer blocks than this are not worth the threads, and are pooled together.
_FEW_BLOCKS = 8

# Blocks of a dataset are shared out in at most so many runs, whose moments hold no more than about so many features.
_RUNS, _POOLED_VALUES = 32, 1 << 21

# A reach smaller than this is not divided by, so that its inverse stays in float64.
_SMALLEST = 1e-300


@dataclass(frozen=True, eq=False)
class FeatureMoments:
    """Weights, means and squared deviations of points.

    Deviations are from a point among the data, so that constant features have none at all, whatever their
    value; and in units of the largest one, so that no square leaves float64.

    Attributes
    ----------
    weight
        What the points count together: one each, unless they are weighed.
    pivot, reach
        (d,) the origin and the unit of each feature.
    mean, squares
        (d,) mean and summed squared deviations of (x - pivot) / reach.
    farthest
        (d,) the point farthest from the mean, or nearly so.
    name_of_farthest
        What messages call that point.
    """

    weight: float
    pivot: Doubles
    reach: Doubles
    mean: Doubles
    squares: Doubles
    farthest: Doubles
    name_of_farthest: str

    @classmethod
    def of_each(cls, datasets: Sequence[LabelledData]) -> list[FeatureMoments]:
        """Go over datasets once, in runs of blocks; the loops do not hold Python's lock."""
        pivots = [data.rows(slice(0, 1))[0].astype(np.float64) for data in datasets]
        runs = [(number, run) for number, data in enumerate(datasets) for run in _cut_blocks(data)]
        with Workers(1 if len(runs) < len(datasets) + _FEW_BLOCKS else None) as workers:
            found = workers.each(lambda run: cls._of_run(datasets[run[0]], run[1], pivots[run[0]]), runs)
        parts: list[list[FeatureMoments]] = [[] for _ in datasets]
        for (number, _), moments in zip(runs, found, strict=True):
            parts[number].append(moments)
        return [cls.pool(own) for own in parts]

    @classmethod
    def _of_run(cls, data: LabelledData, blocks: Sequence[slice], pivot: Doubles) -> FeatureMoments:
        found: list[FeatureMoments] = []
        for block in blocks:
            found.append(cls._of_block(data, block, pivot))
            if len(found) == _FEW_BLOCKS:
                found = [cls.pool(found)]
        return cls.pool(found)

    @classmethod
    def _of_block(cls, data: LabelledData, block: slice, pivot: Doubles) -> FeatureMoments:
        from sotdd.projections.kernels import block_moments

        if isinstance(data.features, DeviceFeatures):
            reach, mean, squares, row = data.features.moments(pivot)
        else:
            rows = data.rows(block)
            reach, mean, squares = np.ones(len(pivot)), np.zeros(len(pivot)), np.zeros(len(pivot))
            if rows.dtype == np.float64:  # squares of what is narrower stay in float64 as they are
                with np.errstate(over="ignore"):
                    reach = np.abs(rows - pivot).max(axis=0)
                refuse_beyond_float64(reach)
                reach = np.maximum(np.where(reach > 0, reach, 1.0), _SMALLEST)
            row = block.start + block_moments(rows, pivot, 1 / reach, reach / reach.max(), mean, squares)
        farthest = data.rows(slice(row, row + 1))[0].astype(np.float64)
        count, name = block.stop - block.start, f"row {row:,} of {data.name!r}"
        return cls(count, pivot, reach, mean, squares, farthest, name)

    @classmethod
    def pool(cls, parts: Sequence[FeatureMoments]) -> FeatureMoments:
        """Those of all points together, the same for parts in any order (Chan, Golub and LeVeque)."""
        if len(parts) == 1:
            return parts[0]
        weights = np.array([[part.weight] for part in parts])
        pivots, reaches, means, squares, farthest = (
            np.stack([getattr(part, name) for part in parts])
            for name in ("pivot", "reach", "mean", "squares", "farthest")
        )
        weight, pivot = math.fsum(weights[:, 0]), pivots.min(axis=0)
        with np.errstate(over="ignore"):
            shifts = pivots - pivot
        reach = np.maximum(reaches.max(axis=0), shifts.max(axis=0))
        refuse_beyond_float64(reach)
        means = shifts / reach + means * (reaches / reach)
        # Sorted, so that sums do not depend on the order of the parts.
        mean = np.sort(means * (weights / weight), axis=0).sum(axis=0)
        squares = squares * (reaches / reach) ** 2 + weights * (means - mean) ** 2
        squares = np.sort(squares, axis=0).sum(axis=0)
        whole = cls(weight, pivot, reach, mean, squares, parts[0].farthest, parts[0].name_of_farthest)
        shares = whole.shares_of(farthest).tolist()
        first = max(zip(shares, parts, strict=True), key=lambda found: (found[0], found[1].name_of_farthest))[1]
        return replace(whole, farthest=first.farthest, name_of_farthest=first.name_of_farthest)

    def weigh(self, weight: float) -> FeatureMoments:
        """The same points with another weight in all."""
        return replace(self, weight=weight, squares=self.squares * (weight / self.weight))

    @property
    def centre(self) -> Doubles:
        """(d,) the means of the features."""
        return self.pivot + self.mean * self.reach

    @property
    def deviations(self) -> Doubles:
        """(d,) the standard deviations of the features."""
        return np.sqrt(self.squares / self.weight) * self.reach

    @property
    def spread(self) -> float:
        """The root of the mean variance of the features: the spread of a projection, averaged over directions."""
        return float(np.sqrt(self._lengths.sum() / (self.weight * self.mean.size)) * self._unit)

    def shares_of(self, points: Doubles) -> Doubles:
        """What each of some points (m, d) contributes to the squared spread."""
        with np.errstate(over="ignore"):
            deviations = ((points - self.pivot) / self.reach - self.mean) * (self.reach / self._unit)
            shares: Doubles = np.einsum("ij,ij->i", deviations, deviations) / (float(self._lengths.sum()) or 1.0)
        return shares

    @property
    def _unit(self) -> float:
        return float(self.reach.max())

    @property
    def _lengths(self) -> Doubles:
        """(d,) summed squared deviations in one unit for all features."""
        return self.squares * (self.reach / self._unit) ** 2


def _cut_blocks(data: LabelledData) -> list[list[slice]]:
    """The blocks of a dataset in runs, few enough that the moments of all take little memory."""
    if isinstance(data.features, DeviceFeatures):
        return [[slice(0, data.n_points)]]
    blocks = data.blocks(data.n_points)
    size = -(-len(blocks) // max(1, min(_RUNS, _POOLED_VALUES // data.n_features)))
    return [blocks[start : start + size] for start in range(0, len(blocks), size)]


# ------------------------------------------------------------------ spreads without the tails

# So many values of all datasets are looked at: two tables of 20 columns are taken whole up to 100,000 rows each.
MOST_VALUES = 1 << 22

# The share of values at either end that are brought in to the quantile there.
_TAIL = 0.05
# Of sums of weights, which so many equal ones must not miss a quantile by.
_ROUNDING = 1e-9
# Features are sorted by values no larger than this, and by so many digits: the last ones depend on the order of rows.
_LARGEST, _DIGITS = 1e150, 9

# The standard deviation of a standard normal law whose tails are brought in so.
_NORMAL = 0.9117391519128463


def find_spreads(
    datasets: Sequence[LabelledData], weights: Sequence[float], means: Doubles, deviations: Doubles
) -> tuple[Doubles, Doubles]:
    """Centre and robust spread (d,) of every feature; 0 for constant ones.

    Mean and standard deviation of features whose tails are brought in to the pooled 5 % and 95 % quantiles, where each
    dataset has its weight. The standard deviation is divided by what a standard normal law gives, so that normal
    features come out at theirs. Where most values are the same, as in flags and sparse counts, each tail is a tenth
    of the other values, so that the quantiles lie among these however few they are.
    """
    samples = [(weight / len(rows), rows) for weight, rows in zip(weights, _sample_rows(datasets), strict=True)]
    samples.sort(key=lambda one: (len(one[1]), crc32(np.ascontiguousarray(one[1]).data)))  # in whatever order they come
    rows = np.concatenate([own for _, own in samples]).astype(np.float64)
    of_rows = np.repeat([weight for weight, _ in samples], [len(own) for _, own in samples])
    low, high = np.stack([_find_quantiles(column, of_rows) for column in rows.T], axis=1)
    with np.errstate(over="ignore"):
        width = high - low
    refuse_beyond_float64(width)
    inside = (np.clip(rows, low, high) - low) / np.where(width > 0, width, 1.0)  # from 0 to 1
    mean = np.average(inside, axis=0, weights=of_rows)
    spread = np.sqrt(np.average((inside - mean) ** 2, axis=0, weights=of_rows)) * width / _NORMAL
    missed = spread == 0  # by the samples, unless the feature is constant
    return np.where(missed, means, low + mean * width), np.where(missed, deviations, spread)


def _find_quantiles(column: Doubles, weights: Doubles) -> Doubles:
    """The two quantiles of a column (n,), each of its values."""
    order = np.argsort(column)
    reached = np.cumsum(weights[order])
    half = (1 - _ROUNDING) * reached[-1] / 2
    others = weights[column != column[order[np.searchsorted(reached, half)]]].sum() / reached[-1]
    tail = min(_TAIL, 2 * _TAIL * others)
    places = np.searchsorted(reached, np.array([tail, 1 - tail]) * 2 * half)
    found: Doubles = column[order[places]]
    return found


def sort_features(data: Sequence[LabelledData], scaler: Scaler | None, *, weigh_points: bool = False) -> list[int]:
    """The features in an order that follows from their values, so that names and places change no number.

    Sorted by two means over all rows, of values that are scaled and brought between -1 and 1: of each feature, and of
    its product with the mean of all features. Names decide only where both are equal.
    """
    columns = next(part.columns for part in data if part.columns is not None)
    totals, count = np.zeros((2, len(columns))), 0.0
    for part, rows in zip(data, _sample_rows(data), strict=True):
        with np.errstate(over="ignore"):  # to infinity, which is brought in too
            values = rows.astype(np.float64) if scaler is None else (rows - scaler.centre) * scaler.inverse
        np.clip(values, -_LARGEST, _LARGEST, out=values)
        values /= 1 + np.abs(values)
        weight = part.n_points if weigh_points else 1
        totals += weight / len(rows) * (np.stack([np.ones(len(rows)), values.mean(axis=1)]) @ values)
        count += weight
    keys = np.round(totals / count, _DIGITS).T.tolist()
    return sorted(range(len(columns)), key=lambda place: (keys[place], columns[place]))


def _sample_rows(datasets: Sequence[LabelledData]) -> list[NDArray[Any]]:
    """All points of each dataset, or some at random where they are many."""
    most = max(1, MOST_VALUES // sum(data.n_features for data in datasets))
    samples = []
    for data in datasets:
        chosen: slice | NDArray[np.integer] = slice(None)
        if data.n_points > most:
            chosen = np.sort(generator(0, Stream.SCALE_ROWS, data.n_points).choice(data.n_points, most, replace=False))
        samples.append(data.rows(chosen))
    return samples
