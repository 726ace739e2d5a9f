"""What changed between two datasets: which columns, which pairs of them, and which classes, in plain units."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from sotdd.basics.errors import SotddError, make_frame, picture
from sotdd.basics.text import align_rows, json_number, say_count, show
from sotdd.measure.columns import MOST_COLOURS, NAMED, RARE, Kind, name_pixels
from sotdd.measure.relations import ALL, CLASSES, PAIRS, WITHIN, are_apart, correlate
from sotdd.measure.scores import Doubles
from sotdd.measure.words import NO_BARS, Aspect, Bars, describe_change, draw_bars, say_farthest, say_mean

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from sotdd.measure.comparison import Permutations

# Rows of the table by default.
MOST_SHOWN = 10

# Columns that are written out as JSON.
_MOST_WRITTEN = 1000

# What columns, pairs and classes are called, one and several.
_NOUNS = ("column", "columns"), ("pair of columns", "pairs of columns"), ("class", "classes")

# What stands for every class: how columns go together with all of them.
_ALL_CLASSES = "relations to labels"

# Columns that did not change have something to draw only among so many of the clearest.
_MOST_DRAWN = 40


@dataclass(frozen=True)
class ColumnChange:
    """One column of a dataset beside the same of another.

    Attributes
    ----------
    column, kind
        What it is called, such as "feature 3" where features have no names; and what it holds.
    changed
        Whether it changed beyond chance: the test of both datasets says that they differ, and its p-value is small.
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
class CorrelationChange:
    """Two columns that go together differently: their names, and how strongly they do on either side.

    Of numbers these are rank correlations, of two categories Cramér's V; of a category and a number, the correlation
    with the mean of each value.
    """

    names: tuple[str, str]
    correlations: tuple[float, float]
    p_value: float

    def __str__(self) -> str:
        """The pair and both correlations, in one line."""
        names, (first, second) = " and ".join(show(name, 40) for name in self.names), self.correlations
        return f"correlation of {names}: {first:.2f} → {second:.2f}"


@dataclass(frozen=True)
class ClassChange:
    """A class that changed inside: in which column, or in how two of them go together, and by how much."""

    label: str
    column: str
    detail: str
    p_value: float

    def __str__(self) -> str:
        """The class and what differs in it, in one line."""
        label = self.label if self.label == _ALL_CLASSES else f"in class {show(self.label, 40)}"
        return f"{label}: {', '.join(filter(None, (show(self.column, 60), self.detail)))}"


Change: TypeAlias = ColumnChange | CorrelationChange | ClassChange


@dataclass(frozen=True, eq=False)
class Changes:
    """All that changed, and how much of the distance each column makes; iterate over it for every `ColumnChange`.

    Attributes
    ----------
    columns
        Every column that could be compared, the clearest change first, then the largest share.
    pairs
        Pairs of columns that go together differently beyond chance, the clearest first.
    classes
        Classes that changed inside beyond chance, each with the column that shows it most; none if all of them did.
    level
        The probability of naming any column where nothing changed; the same for pairs and for classes.
    nearest
        The column, pair or class with the smallest p-value, whether or not it is beyond chance; None if none could be
        compared.
    together
        The share of how columns go together, once each has the same distribution on both sides: the change of their
        correlations, and whatever else is not in one column alone. None where shares were not measured.
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
        """The columns that changed beyond chance."""
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
        changed, every = self.changed, say_count(len(self), self.noun)
        if changed and self.shape is None:
            return "\n".join([*align_rows(self.list_rows(), to_the_right=(3, 4)), *self.say_rest()])
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


# ------------------------------------------------------------------ finding them


def find_changes(measured: Permutations, level: float, differ: bool) -> Changes:
    """Say what changed, by the permutations of a test; beyond chance only if it says that the datasets ``differ``."""
    limit = level if differ else 0.0
    columns, classes, pairs = _find_columns(measured, limit), _find_classes(measured, limit), []
    for (i, j), p_value in _list_clearest(measured, limit, PAIRS):
        correlations = measured.pairs.correlate(i, j, measured.columns[0].n_first)
        pairs.append(CorrelationChange((measured.pairs.names[i], measured.pairs.names[j]), correlations, p_value))
    found: list[Change] = [*columns[:1], *pairs[:1], *classes[:1]]
    nearest = min(found, key=lambda one: one.p_value, default=None)
    apart = [one for one in pairs if one.p_value <= limit and are_apart(one.correlations, measured.plan.sizes)]
    clear = [one for one in classes if one.p_value <= limit]
    inside = [one for one in clear if one.label != _ALL_CLASSES]
    if len(inside) == len(measured.within.members) and any(one.changed for one in columns):
        inside, clear = [], []  # columns changed, and all classes with them
    return Changes(tuple(columns), tuple(apart), tuple(inside or clear), level, nearest)


def _find_columns(measured: Permutations, level: float) -> list[ColumnChange]:
    """All columns, each by the scores that changed, or by the one that differs most; the clearest first."""
    differences, columns = measured.differences, measured.columns
    p_values = differences.find_p_values(NAMED, RARE).tolist()
    scores: list[dict[Aspect, tuple[float, float]]] = [{} for _ in columns]  # p-value and size, the clearest first
    found = zip(p_values, differences.found, differences.keys, differences.families, strict=True)
    for p_value, size, key, families in sorted(found, key=lambda one: (one[0], -one[1])):
        if NAMED in families:
            place, aspect, value = key
            scores[place][aspect, value] = p_value, size
    changes: list[ColumnChange] = []
    clearest = [next(((p_value, -size) for p_value, size in own.values()), (1.0, 0.0)) for own in scores]
    for place in sorted(range(len(columns)), key=clearest.__getitem__):
        column, own, (least, _) = columns[place], scores[place], clearest[place]
        beyond = {aspect: size for aspect, (p_value, size) in own.items() if p_value <= level}
        what, detail = describe_change(column, beyond or {aspect: size for aspect, (_, size) in [*own.items()][:1]})
        detail = "; ".join(filter(None, (detail, say_farthest(column))))
        bars = draw_bars(column) if beyond or len(changes) < _MOST_DRAWN else NO_BARS
        changes.append(ColumnChange(column.name, column.kind, bool(beyond), what, detail, least, bars))
    return changes


def _find_classes(measured: Permutations, level: float) -> list[ClassChange]:
    """Classes that changed, each with the column that shows it most; or the nearest one."""
    label = next((one for one in measured.columns if one.kind == "label"), None)
    changes: dict[str, ClassChange] = {}
    if label is None:
        return []
    for (code, *places), p_value in _list_clearest(measured, level, WITHIN, CLASSES):
        rows = np.arange(len(label.values)) if code == ALL else measured.within.members[code]
        name = _ALL_CLASSES if code == ALL else label.texts[int(label.values[rows[0]])]
        if name not in changes:
            some = [measured.columns[place].take(rows) for place in places]
            both, detail = " and ".join(one.name for one in some), ""
            if code != ALL and len(some) == 1:
                detail = say_mean(some[0])
            elif code != ALL:
                sides = zip(*(one.split(one.values) for one in some), strict=True)
                first, second = (correlate(*side) for side in sides)
                detail = f"correlation {first:.2f} → {second:.2f}"
            changes[name] = ClassChange(name, both, detail, p_value)
    return [*changes.values()]


def _list_clearest(measured: Permutations, level: float, *families: str) -> list[tuple[tuple[int, ...], float]]:
    """The scores of some families that are beyond chance, the clearest first; the nearest one if there are none."""
    differences = measured.differences
    p_values = differences.find_p_values(*families)
    own = [place for place, names in enumerate(differences.families) if {*families} & {*names}]
    own.sort(key=lambda place: (p_values[place], -differences.found[place]))
    chosen = [place for place in own if p_values[place] <= level] or own[:1]
    return [(differences.keys[place], float(p_values[place])) for place in chosen]
