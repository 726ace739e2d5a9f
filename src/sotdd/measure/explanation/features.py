"""Features by name: which of them make a distance, how much each, and that in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.display import Part, Table, as_html, as_text, picture
from sotdd.basics.errors import SotddError
from sotdd.basics.text import join_names, json_number, say_count, show

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Doubles = NDArray[np.float64]

# What chance alone gives this often, or less, is beyond noise.
LEVEL = 0.05

# Colours of an image, at most.
_MOST_COLOURS = 4

# Features that are written out as JSON, rows of a table, and pairs of features that a sentence names.
_MOST_WRITTEN = 1000
_MOST_SHOWN = 12
_PAIRS = 3


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

    A sequence of `FeatureShare`: those beyond noise first, then by share. Take one by its name or its number.

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
    >>> features[0].share > 0.9, features.together.beyond_noise
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

    def __getitem__(self, which: int | str) -> FeatureShare:
        """The feature of this name, or at this place in the sequence."""
        if not isinstance(which, str):
            return self._ordered[which]
        for one in self.columns:
            if one.name == which:
                return one
        raise SotddError(f"there is no {self.noun} {which!r}: see .names.")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all features, in the order of columns."""
        return tuple(one.name for one in self.columns)

    @property
    def shares(self) -> Doubles:
        """The shares (d,) of all features, in the order of columns."""
        return np.array([one.share for one in self.columns])

    @property
    def beyond_noise(self) -> tuple[FeatureShare, ...]:
        """Those whose distribution differs beyond noise, the largest share first."""
        return tuple(one for one in self._ordered if one.beyond_noise)

    @property
    def image(self) -> Doubles:
        """The shares in the shape of a point, where points are images."""
        if self.shape is None:
            raise SotddError("the points of these datasets are no images: read .shares.")
        return self.shares[: math.prod(self.shape)].reshape(self.shape)

    @property
    def pixels(self) -> Doubles:
        """The shares as rows and columns of an image, those of its colours added up.

        Where nothing is beyond noise, what is beyond chance in place of shares.
        """
        image = self.image
        if np.isnan(image).any():
            beyond = [one.raw_share - one.by_chance for one in self.columns[: image.size]]
            image = np.array(beyond).reshape(image.shape)
        if image.ndim == 2:
            return image
        summed: Doubles = image.sum(axis=0 if image.shape[0] <= _MOST_COLOURS else 2)  # which come first or last
        return summed

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the shares: as a picture where points are images, as bars otherwise; returns matplotlib's axes."""
        return picture("features")(self, ax)

    def __repr__(self) -> str:
        """A table of those that matter."""
        return as_text(self.parts(_MOST_SHOWN))

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        return as_html(self.parts(_MOST_SHOWN))

    def parts(self, limit: int | None) -> list[Part]:
        """Sentences, and a table of the first ``limit`` of those beyond noise."""
        rows, said = lines(self, limit), say_features(self)
        if not rows or self.noun == "pixel":
            return [said]
        return [said, Table([header(self), *rows], numbers=[1]), say_rest(self, limit)]

    def to_dict(self) -> dict[str, Any]:
        """As JSON values, those that matter first; of very many, the first thousand."""
        return {
            "n_features": len(self),
            "features": [one.to_dict() for one in self._ordered[:_MOST_WRITTEN]],
            "together": self.together.to_dict(),
            "correlations": [asdict(pair) for pair in self.pairs],
        }


def say_features(features: FeatureShares) -> str:
    """Say which features differ beyond noise; empty where there is one feature and it says nothing."""
    noun, beyond = features.noun, features.beyond_noise
    if not beyond and not features.together.beyond_noise:
        return "" if len(features) == 1 else f"no {noun} differs beyond noise"
    said = []
    if beyond and noun == "pixel":
        said.append(f"{len(beyond):,} of {say_count(len(features), noun)} differ beyond noise")
    elif beyond:
        said.append(
            f"{noun if len(beyond) == 1 else noun + 's'} beyond noise: {join_names([one.name for one in beyond])}"
        )
    if features.together.beyond_noise:
        said.append(f"{noun}s go together differently{'' if noun == 'pixel' else _of_pairs(features.pairs)}")
    return "; ".join(said)


def header(features: FeatureShares) -> tuple[str, ...]:
    """The columns of the table."""
    return f"{features.noun} beyond noise", "share", *(f"middle half of {show(name)}" for name in features.datasets)


def lines(features: FeatureShares, limit: int | None) -> list[tuple[str, ...]]:
    """Of those beyond noise, the first ``limit``; and that of all together, where it is beyond noise too."""
    beyond = features.beyond_noise[:limit]
    table: list[tuple[str, ...]] = [(show(one.name), _share_in_words(one), *_middle_in_words(one)) for one in beyond]
    if features.together.beyond_noise:
        table.append((f"{features.noun}s together", _share_in_words(features.together), "", ""))
    return table


def _middle_in_words(one: FeatureShare) -> tuple[str, str]:
    """From quartile to quartile in either dataset; where that is the same, the means."""
    if math.isnan(one.means[0]):
        return "", ""
    first, second = (f"{_number(low)} to {_number(high)}" for low, high in one.middle)
    if first == second or any(low == high for low, high in one.middle):
        return f"mean {_number(one.means[0])}", f"mean {_number(one.means[1])}"
    return first, second


def _number(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.3g}"


def say_rest(features: FeatureShares, limit: int | None) -> str:
    """What the table leaves out."""
    beyond = len(features.beyond_noise)
    more = 0 if limit is None else max(0, beyond - limit)
    within = len(features) - beyond
    said = [f"{more:,} more beyond noise"] if more else []
    said += [f"{say_count(within, features.noun)} within noise"] if within else []
    return ("… and " + " and ".join(said)) if said else ""


def _share_in_words(one: FeatureShare) -> str:
    """A share and its error in per cent."""
    if math.isnan(one.share):
        return "–"
    error = f" ± {one.stderr:.0%}" if math.isfinite(one.stderr) else ""
    return f"{one.share:.0%}{error}"


def _of_pairs(pairs: Sequence[CorrelationChange]) -> str:
    said = [
        f"{show(pair.names[0])} and {show(pair.names[1])} (correlation {pair.correlations[0]:.2f} and "
        f"{pair.correlations[1]:.2f})"
        for pair in pairs[:_PAIRS]
    ]
    more = f" and {len(pairs) - _PAIRS:,} more pairs" if len(pairs) > _PAIRS else ""
    return f": {', '.join(said)}{more}" if said else ""
