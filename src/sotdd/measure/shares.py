"""Which columns make the distance between the points of two datasets, and how much each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.display import make_frame, picture
from sotdd.basics.errors import SotddError
from sotdd.basics.text import join_names, json_number, say_count
from sotdd.basics.threads import Workers
from sotdd.compute.resampling import Indices, make_seed
from sotdd.inputs.data import LabelledData, Names
from sotdd.measure.changes import Changes, ClassChange, CorrelationChange
from sotdd.measure.columns import MOST_COLOURS, find_image_shape, name_features
from sotdd.measure.contributions import FeaturePool, find_contributions, find_directions
from sotdd.projections.recipe import Projections

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Doubles = NDArray[np.float64]

# Features that are written out as JSON.
_MOST_WRITTEN = 1000

# How many splits the shares of chance are from, how many halves their errors; and along how many directions.
_SPLITS, _HALVES, _FEW = 8, 6, 16


@dataclass(frozen=True)
class FeatureShare:
    """One column, or a feature without a name: how much of the distance between the points it makes.

    Attributes
    ----------
    name
        Its name, or "feature 3" where features have none.
    share
        Its share of what is beyond noise, which adds up to one over all columns and what they are together. A
        column that did not change has none; NaN where nothing did.
    stderr
        Standard error of the share, over samples of these sizes and over directions.
    p_value
        How likely chance alone makes any column differ so much, by the test of both datasets.
    beyond_noise
        Whether it changed: the test says that the datasets differ, and this p-value is small.
    raw_share, by_chance
        Its share of the sliced distance between points, noise and all, to the power p, which adds up to one too;
        and what of that noise alone would give.
    """

    name: str
    share: float
    stderr: float
    p_value: float
    beyond_noise: bool
    raw_share: float
    by_chance: float

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
        }


@dataclass(frozen=True, eq=False)
class FeatureShares:
    """Which features make the distance between the points of two datasets, their labels aside.

    Iterate over it for every `FeatureShare`: those beyond noise first, then by share.

    Attributes
    ----------
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
        Pairs of columns that go together differently, the clearest first.

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
        summed: Doubles = image.sum(axis=0 if image.shape[0] <= MOST_COLOURS else 2)  # which come first or last
        return summed

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the shares: as a picture where points are images, as bars otherwise; returns matplotlib's axes."""
        return picture("features")(self, ax)

    def to_pandas(self) -> pd.DataFrame:
        """A frame of pandas with a row for every feature, those that matter first."""
        return make_frame([asdict(one) for one in self])

    def __repr__(self) -> str:
        """Say which columns changed; nothing where there is one feature and it says nothing."""
        noun, beyond = self.noun, self.beyond_noise
        if not beyond:
            return "" if len(self) == 1 else f"no {noun} is beyond chance by itself"
        if noun == "pixel":
            return f"{len(beyond):,} of {say_count(len(self), noun)} changed"
        return f"{noun if len(beyond) == 1 else noun + 's'} that changed: {join_names([one.name for one in beyond])}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON values, those that matter first; of very many, the first thousand."""
        return {
            "n_features": len(self),
            "features": [one.to_dict() for one in self._ordered[:_MOST_WRITTEN]],
            "together": self.together.to_dict(),
            "correlations": [asdict(pair) for pair in self.pairs],
        }


# ------------------------------------------------------------------ finding them


def find_shares(
    pair: Sequence[LabelledData],
    projections: Projections,
    p: float,
    changes: Changes,
    named: Sequence[LabelledData] | None = None,
    label: str | None = None,
) -> FeatureShares:
    """Share the distance between the points of two datasets out among their columns.

    Only what changed has a share of what is beyond noise. If points carry names of classes beside their features, as
    those that are ``named`` do, these names are one column, called ``label``.
    """
    points = pair if named is None else named
    seed, (names, places) = make_seed(projections), _find_columns(pair, points[0].n_features, label)
    with Workers() as workers:
        pool = FeaturePool.of(points, projections.scaler, seed, workers)
        theta = find_directions(points[0].n_features, seed)
        plans = (
            (pool.plan_splits(1 + _SPLITS, seed), range(1, 1 + _SPLITS)),
            (pool.plan_halves(_HALVES, seed), range(_HALVES)),
        )
        whole = find_contributions(pool, pool.side, theta, p, workers)
        split, halved = (
            np.array(
                [find_contributions(pool, plan.mark_sides(at), theta[:_FEW], p, workers).mean(axis=0) for at in numbers]
            )
            for plan, numbers in plans
        )
    table, split, halved = (_sum_columns(part, places, len(names)) for part in (whole, split, halved))
    known = {"label" if one.kind == "label" else one.column: one for one in changes.columns}
    tested = [known.get("label" if name == label else name) for name in names]
    p_values = [1.0 if one is None else one.p_value for one in tested]
    joint: tuple[CorrelationChange | ClassChange, ...] = (*changes.pairs, *(() if label is None else changes.classes))
    p_values.append(min((one.p_value for one in joint), default=1.0))
    beyond = np.array([*(one is not None and one.changed for one in tested), bool(joint)])
    parts, by_chance = table.mean(axis=0), split.mean(axis=0)
    total, excess = float(parts.sum()) or 1.0, float((parts - by_chance)[beyond].sum())
    share, stderr = np.full((2, len(parts)), np.nan)
    if excess > 0:
        share = np.where(beyond, (parts - by_chance) / excess, 0.0)
        stderr = _find_errors(table, split, halved, share, beyond) / excess
    numbers = zip(share, stderr, p_values, beyond, parts / total, by_chance / total, strict=True)
    rows = [
        FeatureShare(name, float(one), float(error), p_value, bool(is_beyond), float(raw), float(chance))
        for name, (one, error, p_value, is_beyond, raw, chance) in zip((*names, "together"), numbers, strict=True)
    ]
    shape, has_names = find_image_shape(pair[0]), any(part.columns is not None for part in pair)
    noun = "column" if has_names else "feature" if shape is None else "pixel"
    shape = None if has_names else shape
    return FeatureShares(noun, shape, tuple(rows[:-1]), rows[-1], changes.pairs)


def _find_columns(pair: Sequence[LabelledData], n_features: int, label: str | None) -> tuple[Names, Indices]:
    """The columns that features are made of, and which of them each feature is."""
    named = next((data for data in pair if data.columns is not None), None)
    titles = [*name_features(pair)] if named is None else named.find_columns(named.columns or ())
    titles += [label or ""] * (n_features - len(titles))
    names = tuple(dict.fromkeys(titles))
    places = {name: place for place, name in enumerate(names)}
    return names, np.array([places[title] for title in titles])


def _sum_columns(parts: Doubles, places: Indices, count: int) -> Doubles:
    """(R, d + 1) parts of features as parts (R, C + 1) of their columns; what they are together stays last."""
    summed = np.zeros((len(parts), count + 1))
    np.add.at(summed.T, np.append(places, count), parts.T)
    return summed


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
