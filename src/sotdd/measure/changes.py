"""What changed between two datasets: which columns, which pairs of them, and which classes, in plain units."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from sotdd.basics.checks import Received
from sotdd.basics.display import make_frame
from sotdd.basics.text import align_rows, json_number, say_count, show
from sotdd.measure.columns import NAMED, RARE, Kind
from sotdd.measure.permutations import Permutations
from sotdd.measure.relations import ALL, CLASSES, PAIRS, WITHIN, are_apart, correlate
from sotdd.measure.words import Aspect, Bars, describe_change, draw_bars, say_farthest, say_mean

if TYPE_CHECKING:
    import pandas as pd

# Rows of the table unless a number is asked for.
MOST_SHOWN = 10

# What stands for every class: how columns go together with all of them.
_ALL_CLASSES = "relations to labels"

# Columns that did not change have something to draw only among so many of the clearest.
_MOST_DRAWN = 40


@dataclass(frozen=True)
class ColumnChange(Received):
    """One column of a dataset beside the same of another.

    Attributes
    ----------
    column, kind
        What it is called, and what it holds.
    changed
        Whether it changed beyond chance: the test of both datasets says that they differ, and its p-value is small.
    what
        How it changed, such as "moved" or "more gaps"; if it did not, in what it differs most.
    detail
        By how much, in its own units, such as "mean 40.1 → 60.3".
    p_value
        How often chance makes *any* column differ so much.
    share
        Its share of what the distance between the points is beyond noise, as `sotdd.explain` has it; None if it did
        not change, or for labels.
    bars
        What there is to draw.
    """

    column: str
    kind: Kind
    changed: bool
    what: str
    detail: str
    p_value: float
    share: float | None
    bars: Bars

    @property
    def about(self) -> str:
        """The column, as it is shown."""
        return show(self.column, 40)

    @property
    def said(self) -> str:
        """What differs, and by how much."""
        return ", ".join(filter(None, (self.what, self.detail)))

    def __str__(self) -> str:
        """The column and what changed, in one line."""
        return f"{self.about}: {self.said}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        values = {**asdict(self), "share": None if self.share is None else json_number(self.share)}
        del values["bars"]
        return values


@dataclass(frozen=True)
class CorrelationChange(Received):
    """Two columns that go together differently: their names, and how strongly they do on either side.

    Of numbers these are rank correlations, of two categories Cramér's V; of a category and a number, the correlation
    with the mean of each value.
    """

    names: tuple[str, str]
    correlations: tuple[float, float]
    p_value: float

    @property
    def about(self) -> str:
        """The pair, as it is shown."""
        return f"correlation of {' and '.join(show(name, 40) for name in self.names)}"

    @property
    def said(self) -> str:
        """Both correlations."""
        return f"{self.correlations[0]:.2f} → {self.correlations[1]:.2f}"

    def __str__(self) -> str:
        """The pair and both correlations, in one line."""
        return f"{self.about}: {self.said}"


@dataclass(frozen=True)
class ClassChange(Received):
    """A class that changed inside: in which column, or in how two of them go together, and by how much."""

    label: str
    column: str
    detail: str
    p_value: float

    @property
    def about(self) -> str:
        """The class, as it is shown."""
        return self.label if self.label == _ALL_CLASSES else f"class {show(self.label, 40)}"

    @property
    def said(self) -> str:
        """Where it differs, and by how much."""
        return ", ".join(filter(None, (show(self.column, 60), self.detail)))

    def __str__(self) -> str:
        """The class and what changed in it, in one line."""
        return f"{self.about} changed: {self.said}"


Change: TypeAlias = ColumnChange | CorrelationChange | ClassChange


@dataclass(frozen=True, eq=False)
class Changes(Received):
    """All that changed; iterate over it for every `ColumnChange`, the clearest change first, then the largest share.

    Attributes
    ----------
    columns
        Every column that could be compared.
    pairs
        Pairs of columns that go together differently beyond chance, the clearest first.
    classes
        Classes that changed inside beyond chance, each with the column that shows it most; none if all of them did.
    level
        How often chance alone may name a column; the same goes for pairs and for classes.
    nearest
        The column, pair or class with the smallest p-value, whether or not it is beyond chance; None if none could be
        compared.
    """

    columns: tuple[ColumnChange, ...] = ()
    pairs: tuple[CorrelationChange, ...] = ()
    classes: tuple[ClassChange, ...] = ()
    level: float = 0.05
    nearest: Change | None = None

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

    def say_where(self) -> str:
        """Where a difference lies, in a few words: what changed, or what comes nearest to it."""
        counts = (
            (self.changed, "column"),
            (self.pairs, "pair of columns", "pairs of columns"),
            (self.classes, "class", "classes"),
        )
        said = [say_count(len(found), *nouns) for found, *nouns in counts if found]
        if said or self.nearest is None:
            return f"{' and '.join(said)} changed" if said else ""
        near = f"{self.nearest.about}, p = {say_chance(self.nearest.p_value)}: {self.nearest.said}"
        return f"no single column, pair or class is beyond chance; nearest: {near}"

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
        said = [f"… and {say_count(more, 'more column')} changed"] if more else []
        return said + [str(one) for one in (*self.pairs[:limit], *self.classes[:limit])]

    def __repr__(self) -> str:
        """A table of the columns that changed."""
        if not self.changed:
            none = f"none of {say_count(len(self), 'column')} changed beyond chance"
            near = (
                []
                if self.nearest is None or self.pairs or self.classes
                else [f"nearest: {self.nearest.about}: {self.nearest.said}, p = {say_chance(self.nearest.p_value)}"]
            )
            return "\n".join([none, *near, *self.say_rest()])
        return "\n".join([*align_rows(self.list_rows(), to_the_right=(3, 4)), *self.say_rest()])

    def to_pandas(self) -> pd.DataFrame:
        """A frame of pandas with a row for every column that was compared."""
        return make_frame([one.to_dict() for one in self.columns])

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "columns": [one.to_dict() for one in self.columns],
            "pairs": [asdict(pair) for pair in self.pairs],
            "classes": [asdict(one) for one in self.classes],
            "nearest": None
            if self.nearest is None
            else {"what": f"{self.nearest.about}: {self.nearest.said}", "p_value": self.nearest.p_value},
        }

    def with_shares(self, shares: Mapping[str, float]) -> Changes:
        """The same with the shares of columns, the largest of equally clear changes first."""
        columns = [replace(one, share=shares.get(one.column)) if one.changed else one for one in self.columns]
        columns.sort(key=lambda one: (not one.changed, one.p_value, -(one.share or 0.0)))
        return replace(self, columns=tuple(columns))


def say_share(share: float | None) -> str:
    """A share of the distance in whole per cent."""
    if share is None or math.isnan(share):
        return "–"
    return "< 1 %" if 0 < share < 0.01 else f"{share:.0%}".replace("%", " %")


def say_chance(p_value: float) -> str:
    """A p-value as it is printed."""
    return "< 0.0001" if p_value < 1e-4 else f"{p_value:.2g}"


# ------------------------------------------------------------------ finding them


def find_changes(measured: Permutations, level: float, differ: bool) -> Changes:
    """Say what changed, by the permutations of a test; beyond chance only if it says that the datasets ``differ``."""
    limit = level if differ else 0.0
    columns = _find_columns(measured, limit)
    pairs, near_pair = _find_pairs(measured, limit)
    classes, near_class = _find_classes(measured, limit, any(one.changed for one in columns))
    found: list[Change] = [*columns[:1], *near_pair, *near_class]
    nearest = min(found, key=lambda one: one.p_value, default=None)
    return Changes(tuple(columns), tuple(pairs), tuple(classes), level, nearest)


def _find_columns(measured: Permutations, level: float) -> list[ColumnChange]:
    """All columns, each by the scores that changed, or by the one that differs most; the clearest first."""
    differences, columns = measured.differences, measured.columns
    p_values = differences.find_p_values(NAMED, RARE).tolist()
    aspects: list[dict[Aspect, tuple[float, float]]] = [{} for _ in columns]
    found = zip(differences.keys, differences.families, differences.found, p_values, strict=True)
    for key, families, size, p_value in found:
        if NAMED in families:
            place, *aspect = key
            aspects[place][tuple(aspect)] = p_value, size
    changes: list[ColumnChange] = []
    for column, own in sorted(zip(columns, aspects, strict=True), key=lambda one: _find_clearest(one[1])):
        order = sorted(own, key=lambda aspect: (own[aspect][0], -own[aspect][1]))
        least, _ = _find_clearest(own)
        beyond = {aspect: own[aspect][1] for aspect in order if own[aspect][0] <= level}
        what, detail = describe_change(column, beyond or {aspect: own[aspect][1] for aspect in order[:1]})
        far = say_farthest(column)
        detail = "; ".join(filter(None, (detail, far)))
        bars = draw_bars(column) if beyond or len(changes) < _MOST_DRAWN else Bars((), (), (), True)
        changes.append(ColumnChange(column.name, column.kind, bool(beyond), what, detail, least, None, bars))
    return changes


def _find_clearest(own: Mapping[Aspect, tuple[float, float]]) -> tuple[float, float]:
    """The smallest p-value of a column, and how far it differs, to sort by."""
    return min(((p_value, -size) for p_value, size in own.values()), default=(1.0, 0.0))


def _find_pairs(measured: Permutations, level: float) -> tuple[list[CorrelationChange], list[CorrelationChange]]:
    """Pairs that go together differently, though each column were alike on both sides; and the nearest one."""
    changes = []
    for key, p_value in _list_clearest(measured, level, PAIRS):
        i, j = key
        correlations = measured.pairs.correlate(i, j, measured.columns[0].n_first)
        names = measured.pairs.names[i], measured.pairs.names[j]
        changes.append(CorrelationChange(names, correlations, p_value))
    clear = [one for one in changes if one.p_value <= level and are_apart(one.correlations, measured.plan.sizes)]
    return clear, changes[:1]


def _find_classes(
    measured: Permutations, level: float, columns_changed: bool
) -> tuple[list[ClassChange], list[ClassChange]]:
    """Classes that changed, unless columns changed and all classes with them; and the nearest one."""
    label = next((one for one in measured.columns if one.kind == "label"), None)
    changes: dict[str, ClassChange] = {}
    if label is None:
        return [], []
    for (code, *places), p_value in _list_clearest(measured, level, WITHIN, CLASSES):
        rows = np.arange(len(label.codes)) if code == ALL else measured.within.members[code]
        name = _ALL_CLASSES if code == ALL else label.values[int(label.codes[rows[0]])]
        if name not in changes:
            some = [measured.columns[place].take(rows) for place in places]
            both, detail = " and ".join(one.name for one in some), ""
            if code != ALL and len(some) == 1:
                detail = say_mean(some[0])
            elif code != ALL:
                sides = zip(*(one.split(one.numbers) for one in some), strict=True)
                first, second = (correlate(*side) for side in sides)
                detail = f"correlation {first:.2f} → {second:.2f}"
            changes[name] = ClassChange(name, both, detail, p_value)
    clear = [one for one in changes.values() if one.p_value <= level]
    inside = [one for one in clear if one.label != _ALL_CLASSES]
    all_changed = columns_changed and len(inside) == len(measured.within.members)
    return [] if all_changed else inside or clear, list(changes.values())[:1]


def _list_clearest(measured: Permutations, level: float, *families: str) -> list[tuple[tuple[int, ...], float]]:
    """The scores of some families that are beyond chance, the clearest first; the nearest one if there are none."""
    differences = measured.differences
    p_values = differences.find_p_values(*families)
    own = [place for place, names in enumerate(differences.families) if {*families} & {*names}]
    own.sort(key=lambda place: (p_values[place], -differences.found[place]))
    chosen = [place for place in own if p_values[place] <= level] or own[:1]
    return [(differences.keys[place], float(p_values[place])) for place in chosen]
