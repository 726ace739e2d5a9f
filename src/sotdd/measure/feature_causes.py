"""Which features make the distance between two datasets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.progress import Report
from sotdd.basics.streams import Stream, generator
from sotdd.engines.chance import seed_of
from sotdd.engines.cpu.workers import Workers
from sotdd.engines.feature_chance import FeatureChance, features_by_chance
from sotdd.engines.feature_shares import Contributions, FeaturePool, Sides, contributions, directions_for, leading
from sotdd.inputs.data import LabelledData
from sotdd.projections.recipe import Projections
from sotdd.results.feature_shares import LEVEL, CorrelationChange, FeatureShare, FeatureShares, LeadingDirection

Doubles = NDArray[np.float64]

# How often points are dealt out for the shares of chance, and halved for their errors; and along how many directions.
_SPLITS = 8
_HALVES = 6
_DIRECTIONS = 16

# Directions are told of data with no more features than this, and so many of them. One that is stronger than those of
# all of these splits is beyond noise.
_SPLITS_TURNED = 19
_MOST_TURNED = 2048
_LEADING = 3


@dataclass(frozen=True)
class FeatureNames:
    """What datasets and the columns of their points are called.

    Attributes
    ----------
    datasets
        The two datasets.
    names
        Of the features themselves, in the order of columns.
    noun
        What one of them is called.
    shape
        That of a point, where points are images.
    label
        What the columns after the features are called, all of them as one; None where there are none.
    categories
        Columns of tables whose values are features, such as "city=Rome".
    """

    datasets: tuple[str, str]
    names: tuple[str, ...]
    noun: str
    shape: tuple[int, ...] | None
    label: str | None = None
    categories: tuple[str, ...] = ()

    @classmethod
    def of(cls, datasets: Sequence[LabelledData], label: str | None = None) -> FeatureNames:
        """Of datasets without names of classes in their features."""
        data = datasets[0]
        one, other = (part.name for part in datasets)
        called = one, other if other != one else f"{other} (2)"
        columns = next((part.columns for part in datasets if part.columns is not None), None)
        if columns is not None:
            categories = tuple(dict.fromkeys(name for part in datasets for name in part.origin.one_hot))
            return cls(called, columns, "column", None, label, categories)
        if not _is_image(data.point_shape):
            names = tuple(f"feature {number}" for number in range(data.n_features))
            return cls(called, names, "feature", None, label)
        pixels = tuple("pixel " + ", ".join(map(str, place)) for place in np.ndindex(data.point_shape))
        return cls(called, pixels, "pixel", data.point_shape, label)

    def groups(self, n_columns: int) -> NDArray[np.int64]:
        """Of every column which category it is a value of, labels among them; -1 for none."""
        found = np.full(n_columns, -1)
        found[len(self.names) :] = len(self.categories)
        for number, category in enumerate(self.categories):
            found[[place for place, name in enumerate(self.names) if name.startswith(f"{category}=")]] = number
        return found

    @property
    def all_names(self) -> tuple[str, ...]:
        """With that of labels, where they are among the features."""
        return self.names if self.label is None else (*self.names, self.label)


def explain_features(
    datasets: Sequence[LabelledData], recipe: Projections, p: float, names: FeatureNames, n_splits: int, report: Report
) -> FeatureShares:
    """Say which features make the distance between points, and which of them differ beyond noise."""
    seed = seed_of(recipe)
    d = datasets[0].n_features
    with Workers() as workers:
        pool = FeaturePool.of(datasets, recipe.scaler, seed, workers)
        theta = directions_for(d, seed)
        whole = contributions(pool, pool.side, theta, p, workers)
        report(1, 3)
        sides = [
            generator(seed, Stream.FEATURE_SPLITS, number).permutation(pool.side) for number in range(_SPLITS_TURNED)
        ]
        halves = [_half(pool.side, seed, number) for number in range(_HALVES)]
        few = theta[:_DIRECTIONS]
        dealt = [contributions(pool, side, few, p, workers).parts for side in sides[:_SPLITS]]
        halved = [contributions(pool, side, few, p, workers).parts for side in halves]
        directions: tuple[LeadingDirection, ...] = ()
        if names.noun == "feature" and names.label is None and 1 < d <= _MOST_TURNED:
            directions = _directions(pool, [pool.side, *sides], theta, p, workers)
        report(2, 3)
        chance = features_by_chance(pool, theta, p, n_splits, LEVEL, seed, workers, names.groups(d))
        report(3, 3)
    summary = _summary(pool.summary, len(names.names))
    return _shares(names, whole, np.array(dealt), np.array(halved), chance, summary, directions)


def _shares(
    names: FeatureNames,
    whole: Contributions,
    dealt: Doubles,
    halved: Doubles,
    chance: FeatureChance,
    summary: Doubles,
    directions: tuple[LeadingDirection, ...],
) -> FeatureShares:
    """Put it together: parts less those of chance, as shares; ``dealt`` (R, d + 1) and ``halved`` (K, d + 1)."""
    d = len(names.names)
    dealt, halved = _grouped(dealt, d), _grouped(halved, d)
    table = _grouped(whole.table, d)
    p_values = _grouped_chance(chance.p_values, d)
    parts, by_chance = table.mean(axis=0), dealt.mean(axis=0)
    total = float(parts.sum()) or 1.0
    beyond = np.append(p_values, chance.together) <= LEVEL
    excess = float((parts - by_chance)[beyond].sum())
    if excess > 0:
        shares = np.where(beyond, (parts - by_chance) / excess, 0.0)
        stderr = _errors(table, dealt, halved, shares, beyond) / excess
    else:
        shares, stderr = np.full((2, len(parts)), np.nan)
    together = FeatureShare(
        "together",
        float(shares[-1]),
        float(stderr[-1]),
        chance.together <= LEVEL,
        chance.together,
        float(parts[-1]) / total,
        float(by_chance[-1]) / total,
    )
    return FeatureShares(
        names.datasets,
        names.all_names,
        names.noun,
        names.shape,
        shares[:-1].copy(),
        stderr[:-1].copy(),
        p_values,
        parts[:-1] / total,
        by_chance[:-1] / total,
        summary,
        together,
        _pairs(chance, names),
        directions,
    )


def _errors(table: Doubles, dealt: Doubles, halved: Doubles, shares: Doubles, beyond: NDArray[np.bool_]) -> Doubles:
    """Standard errors of the parts beyond noise, less shares of their sum: over directions, splits and samples."""
    rest, of_splits, of_halves = (
        np.where(beyond, part - shares * part[:, beyond].sum(axis=1, keepdims=True), 0.0)
        for part in (table, dealt, halved)
    )
    variance = of_halves.var(axis=0, ddof=1) + of_splits.var(axis=0, ddof=1) / len(dealt)
    if len(rest) > 1:
        variance += rest.var(axis=0, ddof=1) / len(rest)
    errors: Doubles = np.sqrt(variance)
    return errors


def _grouped(table: Doubles, d: int) -> Doubles:
    """Columns after the first d, but for the last of the table, summed up to one."""
    if table.shape[1] == d + 1:
        return table
    return np.column_stack([table[:, :d], table[:, d:-1].sum(axis=1), table[:, -1]])


def _grouped_chance(p_values: Doubles, d: int) -> Doubles:
    return p_values if len(p_values) == d else np.append(p_values[:d], p_values[d:].min())


def _summary(summary: Doubles, d: int) -> Doubles:
    """That of the features; labels among them have none."""
    return summary if summary.shape[2] == d else np.dstack([summary[:, :, :d], np.full((2, 3, 1), np.nan)])


def _pairs(chance: FeatureChance, names: FeatureNames) -> tuple[CorrelationChange, ...]:
    """Pairs by name; those of one name, as of the columns of labels, are left out, and the first of each two kept."""
    every, d = names.all_names, len(names.names)
    found: dict[tuple[str, str], CorrelationChange] = {}
    for i, j, first, second in chance.pairs:
        both = every[min(i, d)] if i >= d else every[i], every[min(j, d)] if j >= d else every[j]
        if both[0] != both[1]:
            found.setdefault(both, CorrelationChange(both, (first, second)))
    return tuple(found.values())


def _directions(
    pool: FeaturePool, sides: Sequence[Sides], theta: NDArray[np.float32], p: float, workers: Workers
) -> tuple[LeadingDirection, ...]:
    """The strongest directions of the data, which come first, beside those of random splits."""
    values, vectors = leading(pool, sides[0], theta, p, workers)
    whole = float(values.sum())
    if whole <= 0:
        return ()
    by_chance = [float(leading(pool, side, theta[:_DIRECTIONS], p, workers)[0][0]) for side in sides[1:]]
    return tuple(
        LeadingDirection(
            float(value) / whole, float(np.mean(by_chance)) / whole, bool(value > max(by_chance)), _frozen(vector)
        )
        for value, vector in zip(values[:_LEADING], vectors[:_LEADING], strict=True)
        if value > 0
    )


def _half(side: Sides, seed: int, number: int) -> Sides:
    """Half of the points of each side; the others are on neither."""
    rng = generator(seed, Stream.FEATURE_HALVES, number)
    half = np.full_like(side, 2)
    for which in (0, 1):
        members = np.flatnonzero(side == which)
        half[rng.permutation(members)[: math.ceil(len(members) / 2)]] = which
    return half


def _is_image(shape: tuple[int, ...]) -> bool:
    """Whether points of this shape can be looked at: rows and columns, and colours first or last."""
    return (len(shape) == 2 and min(shape) > 1) or (len(shape) == 3 and (shape[0] <= 4 or shape[-1] <= 4))


def _frozen(array: Doubles) -> Doubles:
    array = np.array(array)
    array.flags.writeable = False
    return array
