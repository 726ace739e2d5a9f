"""What changed from a reference to a batch: which columns, which pairs of them, and which classes, in plain units."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from sotdd.basics.checks import Received
from sotdd.basics.display import make_frame
from sotdd.basics.text import align_rows, say_count, show
from sotdd.basics.threads import Workers
from sotdd.compute.resampling import Each, Indices, Plan
from sotdd.drift.columns import UNTOLD, Kind, Sides, find_stuck, has_several
from sotdd.drift.words import Bars, describe_change, draw_bars, say_mean
from sotdd.inputs.data import IS_MISSING
from sotdd.measure.columns import (
    Bools,
    Doubles,
    compare_scores,
    find_p_values,
    rank_columns,
    score_numbers,
    score_pairs,
    take_some,
)
from sotdd.measure.explanation.features import CorrelationChange
from sotdd.projections.recipe import Projections

if TYPE_CHECKING:
    import pandas as pd

# Classes times columns that are compared are no more than this; and pairs and classes are compared of so many rows.
_MOST_WITHIN, _FEWEST_ROWS = 1000, 8

# Scores that are multiplied at a time.
_BLOCK = 128

# Quantiles that costs of a column are from, and the most that one of them counts.
_LEVELS, _FARTHEST = (np.arange(200) + 0.5) / 200, 1e12

# A value that is too frequent is named at this share of the level: it is judged beside the permutations.
STUCK_LEVEL = 0.002

# Rows of the table unless a number is asked for.
MOST_SHOWN = 10


@dataclass(frozen=True)
class ColumnChange(Received):
    """One column of the reference beside the same of a batch.

    Attributes
    ----------
    column, kind
        What it is called, and what it holds.
    what
        How it changed, such as "moved" or "more gaps"; empty if nothing changed beyond chance.
    detail
        By how much, in its own units, such as "mean 40.1 → 60.3".
    p_value
        How often chance makes *any* column change so much.
    share
        Its share of what the columns that changed cost to transport, each by itself, in the unit of the distance; None
        if it did not change, or for labels.
    bars
        What there is to draw.
    """

    column: str
    kind: Kind
    what: str
    detail: str
    p_value: float
    share: float | None
    bars: Bars

    @property
    def changed(self) -> bool:
        """Whether it changed beyond chance."""
        return bool(self.what)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        values = {**asdict(self), "changed": self.changed}
        del values["bars"]
        return values


@dataclass(frozen=True)
class ClassChange(Received):
    """A class whose points moved: in which column, by how much, and how often chance does that to any."""

    label: str
    column: str
    detail: str
    p_value: float


@dataclass(frozen=True, eq=False)
class Changes(Received):
    """All that changed; iterate over it for every `ColumnChange`, the clearest change first, then the largest share.

    Attributes
    ----------
    columns
        Every column that could be compared.
    pairs
        Pairs of columns that go together differently, the clearest first.
    classes
        Classes whose points moved, each with the column that shows it most; none if all of them did.
    level
        How often chance alone may name a column; the same goes for pairs and classes together.
    stuck
        Columns of which one value is more frequent than chance makes it, and how likely that is.
    """

    columns: tuple[ColumnChange, ...] = ()
    pairs: tuple[CorrelationChange, ...] = ()
    classes: tuple[ClassChange, ...] = ()
    level: float = 0.05
    stuck: Mapping[str, float] = field(default_factory=dict)

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

    def list_rows(self, limit: int | None = MOST_SHOWN) -> list[tuple[str, ...]]:
        """The columns that changed as rows of a table, with its header."""
        header = ("column", "what changed", "reference → batch", "share", "p")
        return [header, *(
            (show(one.column, 40), one.what, one.detail, say_share(one.share), say_chance(one.p_value))
            for one in self.changed[:limit]
        )]  # fmt: skip

    def say_rest(self, limit: int | None = MOST_SHOWN) -> list[str]:
        """What the table does not say: further columns, pairs and classes."""
        more = max(0, len(self.changed) - (limit or len(self)))
        said = [f"… and {say_count(more, 'more column')} changed"] if more else []
        for pair in self.pairs[:limit]:
            names, (first, second) = " and ".join(show(name, 40) for name in pair.names), pair.correlations
            said.append(f"{names} go together differently: correlation {first:.2f} → {second:.2f}")
        return said + [
            f"class {show(one.label, 40)} moved: {show(one.column, 40)}, {one.detail}" for one in self.classes[:limit]
        ]

    def __repr__(self) -> str:
        """A table of the columns that changed."""
        compared = say_count(len(self), "column")
        if not self.changed:
            return "\n".join([f"none of {compared} changed beyond chance", *self.say_rest()])
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
        }


def say_share(share: float | None) -> str:
    """A share of the distance in whole per cent."""
    return "–" if share is None else "< 1 %" if 0 < share < 0.01 else f"{share:.0%}".replace("%", " %")


def say_chance(p_value: float) -> str:
    """A p-value as it is printed."""
    return "< 0.0001" if p_value < 1e-4 else f"{p_value:.2g}"


# ------------------------------------------------------------------ finding them


def find_changes(
    sides: Sequence[Sides],
    groups: Indices | None,
    n_kept: int,
    projections: Projections,
    p: float,
    level: float,
    seed: int,
) -> Changes:
    """Compare every column; and pairs of them and classes, at a family-wise level of their own.

    ``groups`` (N,) are of the rows of both, or None if each is by itself; the reference keeps ``n_kept`` rows.
    """
    if not sides:
        return Changes(level=level)
    n_first, n_rows = sides[0].n_first, len(sides[0].codes)
    plan = Plan.of_points((0, 1), np.arange(n_rows), n_first, 1 + max(999, math.ceil(2 / level)), seed, (p,))
    stuck = find_stuck(sides, n_kept)
    stuck = {name: chance for name, chance in stuck.items() if chance <= STUCK_LEVEL * level}
    with Workers() as workers:
        members = replace(plan, actual=True, groups=groups).mark_all(range(plan.count), workers.each) == 1
        columns = _compare_columns(sides, members, level, stuck, workers.each)
        relations = _compare_relations(sides, members, level, workers.each)
    costs = {one.column.name: _find_cost(one, projections, p) for one in sides if one.column.kind != "label"}
    whole = sum(costs.get(one.column, 0.0) for one in columns if one.changed) or 1.0
    columns = [
        replace(one, share=costs[one.column] / whole) if one.changed and one.column in costs else one for one in columns
    ]
    columns.sort(key=lambda one: (not one.changed, one.p_value, -(one.share or 0.0)))
    return Changes(tuple(columns), *relations, level, stuck)


def _compare_columns(
    sides: Sequence[Sides], members: Bools, level: float, stuck: Mapping[str, float], each: Each
) -> list[ColumnChange]:
    """All columns, each by the score that changed most; those that are stuck by that."""
    scores = list(each(Sides.find_scores, sides))
    every = [score for one in scores for score in one.values()]
    blocks = (every[start : start + _BLOCK] for start in range(0, len(every), _BLOCK))
    found, largest = compare_scores(blocks, members, each)
    p_values, start = find_p_values(found, largest), 0
    changes = []
    for one, own in zip(sides, scores, strict=True):
        part = slice(start, start + len(own))
        start = part.stop
        sizes, least = dict(zip(own, found[part].tolist(), strict=True)), float(p_values[part].min(initial=1.0))
        beyond = {aspect for aspect, p_value in zip(own, p_values[part], strict=True) if p_value <= level}
        if one.column.name in stuck:
            beyond, least = {("stuck", 0)}, min(least, stuck[one.column.name])
        order = sorted(beyond, key=lambda aspect: -sizes.get(aspect, 0.0))
        said = describe_change(one, {aspect: sizes.get(aspect, 0.0) for aspect in order})
        changes.append(ColumnChange(one.column.name, one.column.kind, *said, least, None, draw_bars(one)))
    return changes


def _find_cost(one: Sides, projections: Projections, p: float) -> float:
    """W_p^p of the features that are made of a column, each by itself, in the unit of the distance."""
    features = projections.columns or tuple(f"feature {number}" for number in range(projections.n_features))
    scales = np.broadcast_to(1.0 if projections.scaler is None else projections.scaler.scales, len(features))
    marks = {f"{one.column.name}={value}": one.codes == code for code, value in enumerate(one.values)}
    marks[f"{one.column.name}{IS_MISSING}"] = ~one.known
    if not one.column.is_number:  # of two values, which are one feature
        marks[one.column.name] = one.codes == 0
    cost = 0.0
    for name, scale in zip(features, np.where(scales > 0, scales, 1.0).tolist(), strict=True):
        if name in marks:
            first, second = one.share(marks[name])
            cost += abs(second - first) / scale**p
        elif name == one.column.name and all(part.any() for part in one.split(one.known)):
            first, second = (np.nanquantile(side, _LEVELS) for side in one.split(one.numbers / scale))
            cost += float(np.mean(np.minimum(np.abs(second - first), _FARTHEST) ** p))
    return cost


# ------------------------------------------------------------------ pairs and classes


def _compare_relations(
    sides: Sequence[Sides], members: Bools, level: float, each: Each
) -> tuple[tuple[CorrelationChange, ...], tuple[ClassChange, ...]]:
    """Pairs of columns, and classes by columns, in one family."""
    numbers = [one for one in sides if one.column.is_number and all(map(has_several, one.split(one.codes)))]
    label = next((one for one in sides if one.column.kind == "label"), None)
    if min(members[0].sum(), (~members[0]).sum()) < _FEWEST_ROWS or not numbers:
        return (), ()
    paired = take_some(numbers)
    # Ranks on their own side: the distribution of a column there is gone.
    table = np.column_stack([one.ordered for one in paired])
    alone = np.concatenate([rank_columns(part) for part in paired[0].split(table)]).astype(np.float64)
    pairs = list(combinations(range(len(paired)), 2))
    within = [] if label is None else _list_within(label, numbers)

    def blocks() -> Iterator[list[Any]]:
        yield from score_pairs(alone)
        for start in range(0, len(within), _BLOCK):
            yield list(each(lambda item: _score_within(item[1], label, item[0]), within[start : start + _BLOCK]))

    found, largest = compare_scores(blocks(), members, each)
    p_values = find_p_values(found, largest)
    of_pairs = [place for place in np.argsort(-found[: len(pairs)], kind="stable") if p_values[place] <= level]
    named = tuple(
        CorrelationChange(
            (paired[i].column.name, paired[j].column.name), _correlate(paired[i], alone[:, i], alone[:, j])
        )
        for i, j in (pairs[place] for place in of_pairs)
    )  # fmt: skip
    moved: dict[int, tuple[float, float, Sides]] = {}
    for (code, one), size, p_value in zip(within, found[len(pairs) :], p_values[len(pairs) :], strict=True):
        if p_value <= level and (code not in moved or size > moved[code][0]):
            moved[code] = size, float(p_value), one
    if label is None or len(moved) == len({code for code, _ in within}):
        return named, ()  # if all moved, the columns say so
    return named, tuple(
        ClassChange(label.values[code], one.column.name, say_mean(one, label.codes == code), p_value)
        for code, (_, p_value, one) in sorted(moved.items(), key=lambda item: -item[1][0])
    )


def _correlate(one: Sides, first: Doubles, second: Doubles) -> tuple[float, float]:
    """Correlations of two scores on either side."""
    found = []
    for a, b in zip(one.split(first), one.split(second), strict=True):
        length = math.sqrt(float(a @ a) * float(b @ b))
        found.append(float(a @ b) / length if length > 0 else 0.0)
    return found[0], found[1]


def _list_within(label: Sides, numbers: Sequence[Sides]) -> list[tuple[int, Sides]]:
    """Classes and columns that are compared within them: classes of which both sides together have some rows."""
    codes, counts = np.unique(label.codes[label.codes < UNTOLD], return_counts=True)
    codes = codes[counts >= _FEWEST_ROWS]
    return [(code, one) for code in codes.tolist() for one in numbers][:_MOST_WITHIN] if len(codes) > 1 else []


def _score_within(one: Sides, label: Sides | None, code: int) -> Doubles:
    """Normal scores of the ranks within one class; 0 elsewhere."""
    assert label is not None
    known = one.known & (label.codes == code)
    scores = score_numbers(one.codes.astype(np.float64), known).get("location")
    return np.zeros(len(known)) if scores is None else scores.astype(np.float64)
