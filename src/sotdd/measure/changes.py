"""Whether two datasets differ, and what changed: columns, pairs of them, and classes, in plain units."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import Result, SotddError, check_level, make_frame, picture
from sotdd.basics.remarks import Remarks, Verdict
from sotdd.basics.text import align_rows, json_number, say_count, show
from sotdd.compute.resampling import TooAlike, find_distances
from sotdd.measure.columns import MOST_COLOURS, NO_BARS, Bars, Kind, name_pixels
from sotdd.measure.statistics import Doubles, reaches

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

LabelNames: TypeAlias = Literal["ignore", "match"]
Statistic: TypeAlias = Literal["combined", "distance"]

# The default level, which decides and at which columns are named.
LEVEL = 0.05

# Rows of the table by default.
MOST_SHOWN = 10

# Columns that are written out as JSON.
_MOST_WRITTEN = 1000

# What columns, pairs and classes are called, one and several.
_NOUNS = ("column", "columns"), ("pair of columns", "pairs of columns"), ("class", "classes")

# What stands for every class: how columns go together with all of them.
ALL_CLASSES = "relations to labels"


@dataclass(frozen=True)
class ColumnChange(Result):
    """One column of a dataset beside the same of another.

    Attributes
    ----------
    column, kind
        What it is called, such as "feature 3" where features have no names; and what it holds.
    changed
        Whether it changed: the test of both datasets finds a difference, and the column's p-value is small.
    what
        How it changed, such as "moved" or "more gaps"; if it did not, in what it differs most.
    detail
        By how much, in its own units, such as "mean 40.1 → 60.3".
    p_value
        The family-wise p-value: the probability that *any* column differs as much where nothing changed.
    bars
        What there is to draw.
    share, stderr
        Its share of what the distance between the points is beyond noise, which adds up to one over all columns and
        what they are together; and the standard error, over samples of these sizes and over directions. None if it did
        not change, and where nothing of the distance is beyond noise.
    raw_share, by_chance
        Its share of the sliced distance between points, noise and all, to the power p, which adds up to one too; and
        what of that noise alone would give. NaN for labels, and where shares were not measured since nothing changed.
    """

    column: str
    kind: Kind
    changed: bool
    what: str
    detail: str
    p_value: float
    bars: Bars = NO_BARS
    share: float | None = None
    stderr: float | None = None
    raw_share: float = math.nan
    by_chance: float = math.nan

    def __str__(self) -> str:
        """The column, what differs, and by how much, in one line."""
        return f"{show(self.column, 40)}: {', '.join(filter(None, (self.what, self.detail)))}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        values = {key: value for key, value in asdict(self).items() if key != "bars"}
        return {key: json_number(value) if isinstance(value, float) else value for key, value in values.items()}


@dataclass(frozen=True)
class CorrelationChange(Result):
    """Two columns whose correlation changed.

    Attributes
    ----------
    names
        The two columns.
    correlations
        Their correlations on either side. Of numbers these are rank correlations, of two categories
        Cramér's V; of a category and a number, the correlation with the mean of each value.
    p_value
        How often permutations change any pair as much.
    """

    names: tuple[str, str]
    correlations: tuple[float, float]
    p_value: float

    def __str__(self) -> str:
        """The pair and both correlations, in one line."""
        names, (first, second) = " and ".join(show(name, 40) for name in self.names), self.correlations
        return f"correlation of {names}: {first:.2f} → {second:.2f}"


@dataclass(frozen=True)
class ClassChange(Result):
    """A class that changed inside.

    Attributes
    ----------
    label
        The class.
    column
        The column in which it changed, or the two whose correlation changed.
    detail
        By how much.
    p_value
        How often permutations change any class as much.
    """

    label: str
    column: str
    detail: str
    p_value: float

    def __str__(self) -> str:
        """The class and what differs in it, in one line."""
        label = self.label if self.label == ALL_CLASSES else f"in class {show(self.label, 40)}"
        return f"{label}: {', '.join(filter(None, (show(self.column, 60), self.detail)))}"


Change: TypeAlias = ColumnChange | CorrelationChange | ClassChange


@dataclass(frozen=True, eq=False)
class Changes(Result):
    """All that changed, and how much of the distance each column makes; iterate over it for every `ColumnChange`.

    Attributes
    ----------
    columns
        Every column that could be compared, the clearest change first, then the largest share.
    pairs
        Pairs of columns whose correlation changed, the clearest first.
    classes
        Classes that changed inside, each with the column that shows it most; none if all of them did.
    level
        The probability of naming any column where nothing changed; the same for pairs and for classes.
    nearest
        The column, pair or class with the smallest p-value, significant or not; None if none could be compared.
    together
        The share of changed correlations, and of whatever else is not in one column alone, once each column has the
        same distribution on both sides. None where shares were not measured.
    shape
        That of a point, where points are images.

    Examples
    --------
    One column of three moves:

    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(size=(2, 400, 3))
    >>> b[:, 1] += 0.5
    >>> changes = sotdd.test(a, b).changes
    >>> [one.column for one in changes.changed]
    ['feature 1']
    >>> changes.changed[0].share > 0.9, changes.together.changed
    (True, False)
    """

    columns: tuple[ColumnChange, ...] = ()
    pairs: tuple[CorrelationChange, ...] = ()
    classes: tuple[ClassChange, ...] = ()
    level: float = 0.05
    nearest: Change | None = None
    together: ColumnChange | None = None
    shape: tuple[int, ...] | None = None

    def __len__(self) -> int:
        """How many columns were compared."""
        return len(self.columns)

    def __iter__(self) -> Iterator[ColumnChange]:
        """One column after another."""
        return iter(self.columns)

    @property
    def changed(self) -> tuple[ColumnChange, ...]:
        """The columns that changed."""
        return tuple(one for one in self.columns if one.changed)

    @property
    def noun(self) -> str:
        """What a column is called."""
        return "column" if self.shape is None else "pixel"

    def list_shares(self) -> dict[str, float]:
        """The share of every column; where nothing is beyond noise, what is beyond chance in place of shares."""
        if self.together is None:
            raise SotddError("nothing changed, so shares were not measured: use sotdd.explain.")
        parts = (*self.columns, self.together)
        found = any(one.share is not None for one in parts)
        return {one.column: one.share or 0.0 if found else one.raw_share - one.by_chance for one in parts}

    @property
    def pixels(self) -> Doubles:
        """Where points are images, `list_shares` as rows and columns of one, those of its colours added up."""
        shares = self.list_shares()
        if self.shape is None:
            raise SotddError("the points of these datasets are no images: read the share of each column.")
        image = np.array([shares[name] for name in name_pixels(self.shape)]).reshape(self.shape)
        if image.ndim == 2:
            return image
        return np.asarray(image.sum(axis=0 if image.shape[0] <= MOST_COLOURS else 2))  # which come first or last

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the shares: as a picture where points are images, as bars otherwise; returns matplotlib's axes."""
        return picture("features")(self, ax)

    def say_where(self) -> str:
        """Where a difference lies, in a few words: what changed, or what comes nearest to it."""
        found = zip((self.changed, self.pairs, self.classes), _NOUNS, strict=True)
        counts = [say_count(len(some), *nouns) for some, nouns in found if some]
        if counts or self.nearest is None:
            return f"{' and '.join(counts)} changed" if counts else ""
        return f"no single column, pair or class is beyond chance; {_say_nearest(self.nearest)}"

    def list_rows(
        self, limit: int | None = MOST_SHOWN, names: tuple[str, str] = ("reference", "batch")
    ) -> list[tuple[str, ...]]:
        """The columns that changed as rows of a table, with its header."""
        header = ("column", "what changed", " → ".join(show(name, 20) for name in names), "share", "p")
        return [header, *(
            (show(one.column, 40), one.what, one.detail, say_share(one.share), say_chance(one.p_value))
            for one in self.changed[:limit]
        )]  # fmt: skip

    def say_rest(self, limit: int | None = MOST_SHOWN) -> list[str]:
        """What the table does not say: further columns, pairs and classes."""
        more = max(0, len(self.changed) - (limit or len(self)))
        rest = [f"… and {say_count(more, 'more column')} changed"] if more else []
        return rest + [str(one) for one in (*self.pairs[:limit], *self.classes[:limit])]

    def __repr__(self) -> str:
        """A table of the columns that changed; of pixels, how many of them."""
        return self.table()

    def table(self, limit: int | None = MOST_SHOWN, names: tuple[str, str] = ("reference", "batch")) -> str:
        """The columns that changed, ``limit`` of them or all, as plain text; of pixels only how many."""
        changed, every = self.changed, say_count(len(self), self.noun)
        if changed and self.shape is None:
            return "\n".join([*align_rows(self.list_rows(limit, names), to_the_right=(3, 4)), *self.say_rest(limit)])
        what = "was tested by itself" if self.nearest is None else "changed beyond chance"
        count = f"{len(changed) or 'none'} of {every} {what}"
        near = [] if changed or self.pairs or self.classes or self.nearest is None else [_say_nearest(self.nearest)]
        return "\n".join([count, *near, *self.say_rest()])

    def to_pandas(self) -> pd.DataFrame:
        """A frame of pandas with a row for every column that was compared."""
        return make_frame([one.to_dict() for one in self.columns])

    def to_dict(self) -> dict[str, Any]:
        """As JSON values; of very many columns, the first thousand."""
        return {
            "n_columns": len(self),
            "columns": [one.to_dict() for one in self.columns[:_MOST_WRITTEN]],
            "together": None if self.together is None else self.together.to_dict(),
            "pairs": [asdict(pair) for pair in self.pairs],
            "classes": [asdict(one) for one in self.classes],
            "nearest": self.nearest and {"what": str(self.nearest), "p_value": self.nearest.p_value},
        }


def _say_nearest(change: Change) -> str:
    return f"nearest: {change} (p = {say_chance(change.p_value)})"


def say_share(share: float | None) -> str:
    """A share of the distance in whole per cent."""
    if share is None:
        return "–"
    return "< 1 %" if 0 < share < 0.01 else f"{share:.0%}".replace("%", " %")


def say_chance(p_value: float) -> str:
    """A p-value as it is printed."""
    return "< 0.0001" if p_value < 1e-4 else f"{p_value:.2g}"


# ------------------------------------------------------------------ the test


@dataclass(frozen=True)
class Aspect(Result):
    """One statistic of a test.

    Attributes
    ----------
    deviations
        How far the data are from what permutations give on average, in their standard deviations.
    limit
        What 95 % of permutations stay below, in the same unit.
    p_value
        How many permutations go as far, the data counted as one; not corrected for there being several statistics.
    """

    deviations: float
    limit: float
    p_value: float

    @classmethod
    def of(cls, scores: Doubles) -> Aspect:
        """One statistic (S,) of the data, which come first, beside that of permutations alone."""
        null, spread = scores[1:], float(np.std(scores[1:])) or 1.0
        apart, limit = (float(value - np.mean(null)) / spread for value in (scores[0], np.quantile(null, 0.95)))
        return cls(apart, limit, float(np.mean(reaches(scores, scores[0]))))


@dataclass(frozen=True, eq=False)
class TwoSampleTest(Result):
    """Whether two datasets may come from one source, judged by permutations.

    Attributes
    ----------
    distance
        The distance between the two, by the projections of the test: what `sotdd.distance` gives for
        them with ``estimator="plain"``, not with its default.
    null_distances
        Distances of permuted data: the null distribution.
    statistic
        What is judged. "combined": of several aspects and both orders, the one that stands out most, in its
        own standard deviations; "distance": the distance itself.
    null
        The statistic of every permutation.
    judged_by
        Which statistic it is.
    p
        The order of transport.
    n_points
        The sizes of the two datasets.
    n_projections
        How many projections were used.
    fingerprint
        Which they were.
    remarks
        What a reader should know, such as that points were sampled.
    aspects
        Each statistic by itself, such as "means" or "columns"; see `sotdd.results.Aspect`.
    changes
        Which columns, pairs of columns and classes changed, by the same permutations; and what comes nearest to it.
    strongest
        The statistic that stands out most, and so decides.
    too_alike
        Whether the datasets are more alike than samples of one source, as copied rows make them: see
        `sotdd.results.TooAlike`. By at most 199 of the permutations. It changes no verdict.
    far
        The value that is too large for any distance to be measured, with its column; empty where there is none. That
        is a difference, whatever permutations say of a single row.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(size=(100, 4)), rng.normal(0.5, 1, size=(80, 4))
    >>> result = sotdd.test(a, b, n_permutations=199)
    >>> result.p_value, result.rejects(0.05)
    (0.005, True)
    >>> bool(result.ratio > 1), bool(result.effect_size > 3)
    (True, True)
    """

    distance: float
    null_distances: NDArray[np.float64]
    statistic: float
    null: NDArray[np.float64]
    judged_by: Statistic
    p: float
    n_points: tuple[int, int]
    n_projections: int
    fingerprint: str
    remarks: Remarks = ()
    aspects: Mapping[str, Aspect] = field(default_factory=dict)
    changes: Changes = field(default_factory=Changes)
    strongest: str = "distance"
    far: str = ""
    too_alike: TooAlike = field(default_factory=TooAlike)

    @property
    def p_value(self) -> float:
        """The share of permutations that go as far, the data themselves counted as one of them."""
        reached = int(np.count_nonzero(reaches(self.null, self.statistic)))
        return (1 + reached) / (1 + len(self.null))

    @property
    def verdict(self) -> Verdict:
        """Whether the datasets differ, at the level of ``changes``."""
        return Verdict.DRIFT if self.far or self.rejects(self.changes.level) else Verdict.PASSED

    def say_why(self) -> str:
        """What decided, with its own numbers, and where the difference lies."""
        if not self.rejects(self.changes.level):
            return f"too far to measure: {self.far}" if self.far else ""
        most, numbers = self.aspects.get(self.strongest), ""
        if most is not None and self.judged_by != "distance":
            numbers = f" ({most.deviations:.1f} deviations, by chance up to {most.limit:.1f})"
        return "; ".join(filter(None, (f"most by {self.strongest}{numbers}", self.changes.say_where(), self.far)))

    @property
    def effect_size(self) -> float:
        """How many standard deviations the statistic lies above the mean of the null; NaN where that does not vary."""
        deviation = float(np.std(self.null, ddof=1)) if len(self.null) > 1 else 0.0
        return (self.statistic - float(np.mean(self.null))) / deviation if deviation > 0 else math.nan

    @property
    def ratio(self) -> float:
        """The distance in units of the noise floor, the root of the mean W_p^p under the null; NaN if that is 0."""
        floor = float(find_distances(self.null_distances[:, None] ** self.p, self.p)[0])
        return self.distance / floor if floor > 0 else math.nan

    def quantiles(self, levels: Iterable[float] = (0.05, 0.5, 0.95, 0.99)) -> dict[float, float]:
        """Quantiles of the null distances, at levels from 0 to 1."""
        return {level: float(np.quantile(self.null_distances, level)) for level in levels}

    def rejects(self, level: float = 0.05) -> bool:
        """Whether one source is ruled out at this level."""
        return self.p_value <= check_level(level, such_as=0.05)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the null distribution and where the data lie in it; returns matplotlib's axes."""
        return picture("test")(self, ax)

    def __repr__(self) -> str:
        """The p-value, the distance beside its null distribution, and how many permutations there were."""
        low, high = self.quantiles((0.05, 0.95)).values()
        why = f", {self.say_why()}" if self.verdict is Verdict.DRIFT else ""
        return (
            f"p = {self.p_value:.3g}{why}; distance {self.distance:.3g}, by chance {low:.3g} to {high:.3g} "
            f"({say_count(len(self.null), 'permutation')}, {say_count(self.n_projections, 'projection')})"
        ) + "".join(f"; {remark}" for remark in self.remarks)

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON values; null distances as quantiles."""
        names = ("p_value", "distance", "statistic", "judged_by", "p", "n_projections", "fingerprint")
        result: dict[str, Any] = {name: getattr(self, name) for name in names} | {
            "verdict": self.verdict.value,
            "decided_by": self.strongest,
            "aspects": {name: asdict(aspect) for name, aspect in self.aspects.items()},
            "changes": self.changes.to_dict(),
            "too_alike": asdict(self.too_alike),
            "effect_size": json_number(self.effect_size),
            "ratio": json_number(self.ratio),
            "null_quantiles": {f"{level:g}": value for level, value in self.quantiles().items()},
            "null_mean": float(np.mean(self.null_distances)),
            "n_null": len(self.null),
            "n_points": list(self.n_points),
        }
        return result | ({"remarks": [remark.to_dict() for remark in self.remarks]} if self.remarks else {})
