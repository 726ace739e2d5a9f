"""Features by name: which of them make a distance, and how much each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.display import Report, make_frame, picture
from sotdd.basics.errors import SotddError
from sotdd.basics.text import json_number
from sotdd.basics.threads import Workers
from sotdd.compute.resampling import SPLITS, make_seed
from sotdd.inputs.data import IS_MISSING, LabelledData
from sotdd.measure.explanation.feature_comparison import (
    FeaturePool,
    FeatureTests,
    find_contributions,
    find_directions,
    find_features,
)
from sotdd.measure.explanation.sentences import MOST_SHOWN, describe_features
from sotdd.projections.recipe import Projections

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Doubles = NDArray[np.float64]

# What chance alone gives this often, or less, is beyond noise.
LEVEL = 0.05

# Colours of an image, at most.
_MOST_COLOURS = 4

# Features that are written out as JSON.
_MOST_WRITTEN = 1000

# How many splits the shares of chance are from, how many halves their errors; and along how many directions.
_CHANCE_SPLITS = 8
_HALVES = 6
_DIRECTIONS = 16


@dataclass(frozen=True)
class FeatureShare:
    """One feature: how much of the distance between the points it makes.

    Attributes
    ----------
    name
        Its name, or "feature 3" where features have none.
    share
        Its share of what is beyond noise, which adds up to one over all features and what they are together. A
        feature within noise has none; NaN where nothing is beyond noise.
    stderr
        Standard error of the share, over samples of these sizes and over directions.
    p_value
        How likely chance alone makes any feature differ so much.
    raw_share, by_chance
        Its share of the sliced distance between points, noise and all, to the power p, which adds up to one too;
        and what of that noise alone would give.
    middle
        Of either dataset, its lower and upper quartile, in the unit it came in.
    means
        Of either dataset, its mean.
    """

    name: str
    share: float
    stderr: float
    p_value: float
    raw_share: float
    by_chance: float
    middle: tuple[tuple[float, float], tuple[float, float]]
    means: tuple[float, float]

    @property
    def beyond_noise(self) -> bool:
        """Whether its distribution differs between the datasets beyond noise."""
        return self.p_value <= LEVEL

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "name": self.name,
            "share": json_number(self.share),
            "stderr": json_number(self.stderr),
            "beyond_noise": self.beyond_noise,
            "p_value": self.p_value,
            "raw_share": json_number(self.raw_share),
            "share_by_chance": json_number(self.by_chance),
            "middle_half": [[json_number(end) for end in side] for side in self.middle],
            "means": [json_number(mean) for mean in self.means],
        }


@dataclass(frozen=True)
class CorrelationChange:
    """Two features whose correlation differs beyond noise: their names, and rank correlations on either side."""

    names: tuple[str, str]
    correlations: tuple[float, float]


@dataclass(frozen=True, eq=False)
class FeatureShares:
    """Which features make the distance between the points of two datasets, their labels aside.

    Iterate over it for every `FeatureShare`: those beyond noise first, then by share.

    Attributes
    ----------
    datasets
        What the two datasets are called.
    noun
        What a feature is called: column, pixel or feature.
    shape
        That of a point, where points are images.
    columns
        Every feature, in the order of columns.
    together
        The same of how features go together, once each has the same distribution on both sides: the change of
        their correlations, and whatever else is not in one feature alone.
    pairs
        Features whose correlation differs beyond noise, the clearest first.

    Examples
    --------
    One column of three moves:

    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(size=(2, 400, 3))
    >>> b[:, 1] += 0.5
    >>> features = sotdd.explain(a, b).by_feature
    >>> [feature.name for feature in features.beyond_noise]
    ['feature 1']
    >>> features.beyond_noise[0].share > 0.9, features.together.beyond_noise
    (True, False)
    """

    datasets: tuple[str, str]
    noun: str
    shape: tuple[int, ...] | None
    columns: tuple[FeatureShare, ...]
    together: FeatureShare
    pairs: tuple[CorrelationChange, ...]

    @cached_property
    def _ordered(self) -> list[FeatureShare]:
        return sorted(self.columns, key=lambda one: (not one.beyond_noise, one.by_chance - one.raw_share))

    def __len__(self) -> int:
        """How many features there are."""
        return len(self.columns)

    def __iter__(self) -> Iterator[FeatureShare]:
        """One after another, those that matter first."""
        return iter(self._ordered)

    @property
    def beyond_noise(self) -> tuple[FeatureShare, ...]:
        """Those whose distribution differs beyond noise, the largest share first."""
        return tuple(one for one in self._ordered if one.beyond_noise)

    @property
    def pixels(self) -> Doubles:
        """Where points are images, the shares as rows and columns of one, those of its colours added up.

        Where nothing is beyond noise, what is beyond chance in place of shares.
        """
        if self.shape is None:
            raise SotddError("the points of these datasets are no images: read the share of each feature.")
        some = self.columns[: math.prod(self.shape)]
        shares = [one.raw_share - one.by_chance if math.isnan(one.share) else one.share for one in some]
        image = np.array(shares).reshape(self.shape)
        if image.ndim == 2:
            return image
        summed: Doubles = image.sum(axis=0 if image.shape[0] <= _MOST_COLOURS else 2)  # which come first or last
        return summed

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the shares: as a picture where points are images, as bars otherwise; returns matplotlib's axes."""
        return picture("features")(self, ax)

    def to_pandas(self) -> pd.DataFrame:
        """A frame of pandas with a row for every feature, those that matter first."""
        return make_frame([{**asdict(one), "beyond_noise": one.beyond_noise} for one in self])

    def __repr__(self) -> str:
        """A table of those that matter."""
        return describe_features(self, MOST_SHOWN)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values, those that matter first; of very many, the first thousand."""
        return {
            "n_features": len(self),
            "features": [one.to_dict() for one in self._ordered[:_MOST_WRITTEN]],
            "together": self.together.to_dict(),
            "correlations": [asdict(pair) for pair in self.pairs],
        }


# ------------------------------------------------------------------ finding them


def explain_features(
    opened: Sequence[LabelledData],
    datasets: Sequence[LabelledData],
    recipe: Projections,
    p: float,
    report: Report,
    label: str | None = None,
) -> FeatureShares:
    """Say which features make the distance between points, and which of them differ beyond noise.

    The features of ``opened`` have names. Those of ``datasets`` may be more: columns that stand for names of classes,
    which are one feature, called ``label``.
    """
    seed, d = make_seed(recipe), datasets[0].n_features
    names, noun, shape = _name_features(opened)
    with Workers() as workers:
        pool = FeaturePool.of(datasets, recipe.scaler, seed, workers)
        theta = find_directions(d, seed)
        whole = find_contributions(pool, pool.side, theta, p, workers)
        report(1, 3)
        plan = pool.plan_splits(1 + SPLITS, seed)
        sides = [plan.mark_sides(number) for number in range(1 + SPLITS)]
        halves = [pool.plan_halves(_HALVES, seed).mark_sides(number) for number in range(_HALVES)]
        few = theta[:_DIRECTIONS]
        split, halved = (
            np.array([find_contributions(pool, side, few, p, workers).mean(axis=0) for side in some])
            for some in (sides[1 : 1 + _CHANCE_SPLITS], halves)
        )
        report(2, 3)
        tests = find_features(pool, theta, p, np.stack(sides), LEVEL, seed, workers, _find_groups(opened, names, d))
        report(3, 3)
    known = np.full((2, 3, d + 1), np.nan)  # names of classes, and what is together, have no quartiles and no mean
    known[:, :, : len(names)] = pool.summary[:, :, : len(names)]
    names = names if label is None else (*names, label)
    *columns, together = _share_out(names, whole, split, halved, tests, known)
    one, other = (part.name for part in opened)
    called = one, other if other != one else f"{other} (2)"
    return FeatureShares(called, noun, shape, tuple(columns), together, _name_pairs(tests, names))


def _name_features(datasets: Sequence[LabelledData]) -> tuple[tuple[str, ...], str, tuple[int, ...] | None]:
    """What features are called, what one of them is, and the shape of a point where points are images."""
    columns = next((part.columns for part in datasets if part.columns is not None), None)
    if columns is not None:
        return columns, "column", None
    shape = datasets[0].point_shape
    # Images have rows and columns, and colours first or last.
    if (len(shape) == 2 and min(shape) > 1) or (len(shape) == 3 and min(shape[0], shape[-1]) <= _MOST_COLOURS):
        return tuple("pixel " + ", ".join(map(str, place)) for place in np.ndindex(shape)), "pixel", shape
    return tuple(f"feature {number}" for number in range(datasets[0].n_features)), "feature", None


def _find_groups(datasets: Sequence[LabelledData], names: Sequence[str], n_columns: int) -> NDArray[np.int64]:
    """Of every column the category that it is a value of, names of classes among them; -1 for none, -2 marks gaps."""
    categories = list(dict.fromkeys(name for part in datasets for name in part.origin.categories))
    groups = np.full(n_columns, len(categories))
    groups[: len(names)] = -1
    for number, category in enumerate(categories):
        groups[[place for place, name in enumerate(names) if name.startswith(f"{category}=")]] = number
    groups[[place for place, name in enumerate(names) if name.removesuffix(IS_MISSING) in {*names} - {name}]] = -2
    return groups


def _share_out(
    names: Sequence[str], whole: Doubles, split: Doubles, halved: Doubles, tests: FeatureTests, known: Doubles
) -> list[FeatureShare]:
    """Put it together: parts less those of noise, as shares; of directions, splits and halves, each (R, d + 1).

    The last is what features are together. Columns that have no name of their own count with the last that has one.
    """
    firsts = range(len(names))
    table, split, halved = (
        np.column_stack([np.add.reduceat(part[:, :-1], firsts, axis=1), part[:, -1]]) for part in (whole, split, halved)
    )
    p_values = np.append(np.minimum.reduceat(tests.p_values, firsts), tests.together)
    parts, by_chance = table.mean(axis=0), split.mean(axis=0)
    total = float(parts.sum()) or 1.0
    beyond = p_values <= LEVEL
    excess = float((parts - by_chance)[beyond].sum())
    if excess > 0:
        shares = np.where(beyond, (parts - by_chance) / excess, 0.0)
        stderr = _find_errors(table, split, halved, shares, beyond) / excess
    else:
        shares, stderr = np.full((2, len(parts)), np.nan)
    numbers = np.stack([shares, stderr, p_values, parts / total, by_chance / total])
    rows = []
    for at, name in enumerate((*names, "together")):
        share, error, p_value, raw, chance = numbers[:, at].tolist()
        (low, high, mean), (low2, high2, mean2) = known[:, :, at].tolist()
        middle, means = ((low, high), (low2, high2)), (mean, mean2)
        rows.append(FeatureShare(name, share, error, p_value, raw, chance, middle, means))
    return rows


def _find_errors(
    table: Doubles, split: Doubles, halved: Doubles, shares: Doubles, beyond: NDArray[np.bool_]
) -> Doubles:
    """Standard errors of the parts beyond noise, less shares of their sum: over directions, splits and samples."""
    rest, of_splits, of_halves = (
        np.where(beyond, part - shares * part[:, beyond].sum(axis=1, keepdims=True), 0.0)
        for part in (table, split, halved)
    )
    variance = of_halves.var(axis=0, ddof=1) + of_splits.var(axis=0, ddof=1) / len(split)
    if len(rest) > 1:
        variance += rest.var(axis=0, ddof=1) / len(rest)
    errors: Doubles = np.sqrt(variance)
    return errors


def _name_pairs(tests: FeatureTests, names: Sequence[str]) -> tuple[CorrelationChange, ...]:
    """Pairs by name; those of one name, as of names of classes, are left out, and the first of each two kept."""
    last = len(names) - 1
    found: dict[tuple[str, str], CorrelationChange] = {}
    for i, j, first, second in tests.pairs:
        both = names[min(i, last)], names[min(j, last)]
        if both[0] != both[1]:
            found.setdefault(both, CorrelationChange(both, (first, second)))
    return tuple(found.values())
