"""Which columns of a table are features, and which one holds the labels: one rule for all kinds of tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

from sotdd.basics.errors import SotddError
from sotdd.basics.remarks import say_why
from sotdd.inputs.origin import Origin, Why
from sotdd.inputs.reading import Reading

Kind = Literal["numbers", "list", "text", "image", "date", "empty", "other"]

# A function of a column of text and a number: its distinct values, in order, or None if there are more than that.
Values = Callable[[str, int], "tuple[str, ...] | None"]

# A column of one of these names holds the labels, unless the caller names another.
LABEL_NAMES = ("label", "labels", "target", "y", "class")

# Numbers in a column that is called so are no measurement: an id, or an index that was saved with the table.
_CALLED_ID = re.compile(r"(?i:(.*[\W_])?(id|uuid|guid)|index|unnamed: \d+|)|.*[a-z0-9](Id|ID)")

# pandas stores its index in columns whose names begin like this; they are not features.
_INDEX = "__index_level_"

# Messages list this many columns.
_SHOWN = 12


@dataclass(frozen=True)
class Columns:
    """The label column or None, the feature columns, and what these hold.

    Attributes
    ----------
    label
        The column of the labels, or None for one class.
    features
        The columns that are read.
    kind
        What they hold; dates and categories become "numbers" as they are read.
    left_out
        The other columns, and why each is none of the features.
    dates
        Those of the features that are dates: days since the beginning of 1970, in UTC.
    categories
        Those of the features that are texts, and their values: one feature for each, 1 where a row has the value.

    Examples
    --------
    >>> from sotdd.inputs.loaders.columns import Columns
    >>> from sotdd.inputs.reading import Reading
    >>> kinds = {"x": "numbers", "z": "numbers", "note": "text", "class": "text"}
    >>> columns = Columns.choose(kinds, Reading(), "flowers.csv")
    >>> columns.label, columns.names, columns.left_out
    ('class', ('x', 'z'), (('note', 'text'),))
    """

    label: str | None
    features: tuple[str, ...]
    kind: Kind
    left_out: tuple[tuple[str, Why], ...] = ()
    dates: tuple[str, ...] = ()
    categories: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @classmethod
    def choose(cls, kinds: Mapping[str, Kind], reading: Reading, name: str, values: Values | None = None) -> Columns:
        """Choose the columns that were named; without names, all numbers and what was asked for beside them.

        What is chosen depends on the names of the columns and on what they hold, never on single values, so that
        tables of one kind get the same features. ``values`` is asked only for categories.
        """
        kinds = {column: kind for column, kind in kinds.items() if not is_index(column)}
        label = _find_label(kinds, reading, name)
        wanted = _list_wanted(kinds, label, reading, name)
        alone = _find_alone(kinds, wanted, reading, name)
        if alone is not None:
            left = tuple((column, kinds[column]) for column in wanted if column != alone)
            return cls(label, (alone,), kinds[alone], left)
        left_out: dict[str, Why] = {}
        categories: dict[str, tuple[str, ...]] = {}
        for column, asked in wanted.items():
            is_category = reading.one_hot and kinds[column] == "text"
            texts = values(column, reading.one_hot) if values is not None and is_category else None
            why = _judge_column(column, kinds[column], asked, texts, reading, name)
            if why is not None:
                left_out[column] = why
            elif texts is not None:
                categories[column] = texts
        features = [column for column in wanted if column not in left_out]
        if not features and "id" in left_out.values():  # there is nothing else
            features = [column for column, why in left_out.items() if why == "id"]
            left_out = {column: why for column, why in left_out.items() if why != "id"}
        if not features:
            raise SotddError(f"{name} has no column of numbers, only {_list_kinds(left_out)}", use={"one_hot": 20})
        dates = tuple(column for column in features if kinds[column] == "date")
        return cls(label, tuple(features), "numbers", tuple(left_out.items()), dates, tuple(categories.items()))

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the features, which are those of their columns; the entries of one list have none."""
        if self.kind != "numbers":
            return None
        return tuple(name for column in self.features for name in self.one_hot.get(column, (column,)))

    @property
    def one_hot(self) -> dict[str, tuple[str, ...]]:
        """The columns that become one feature per value, and the names of these."""
        return {column: tuple(f"{column}={value}" for value in values) for column, values in self.categories}

    @property
    def origin(self) -> Origin:
        """What was decided about the columns."""
        return Origin(left_out=dict(self.left_out), one_hot=self.one_hot)

    @property
    def all(self) -> list[str]:
        """Every column that is read."""
        return [*self.features, *([] if self.label is None else [self.label])]


def _judge_column(
    column: str, kind: Kind, asked: bool, texts: tuple[str, ...] | None, reading: Reading, name: str
) -> Why | None:
    """Why a column is left out; None for a feature. Columns asked for by name are features or refused."""
    if kind in ("numbers", "empty"):
        return None if asked else "empty" if kind == "empty" else "id" if _CALLED_ID.fullmatch(column) else None
    if kind == "date" and (asked or reading.dates):
        return None
    if kind == "text" and reading.one_hot:
        if texts is None and asked:
            values = f"more than {reading.one_hot:,} different texts"
            raise SotddError(f"column {column!r} of {name} holds {values}: leave it out, or pass a larger one_hot=.")
        return reading.one_hot if texts is None else None if texts else "empty"
    if asked:
        how = "pass one_hot=20 for categories, or name it alone with encoder=" if kind == "text" else "leave it out"
        raise SotddError(f"column {column!r} of {name} holds {kind}: expected numbers; {how}.")
    return kind


def _list_wanted(kinds: Mapping[str, Kind], label: str | None, reading: Reading, name: str) -> dict[str, bool]:
    """The columns that may be features, and whether each was asked for by its own name."""
    excluded = {
        column for pattern in reading.exclude for column in _find_matches(pattern, kinds, f"exclude={pattern}", name)
    }
    rest = [column for column in kinds if column != label and column not in excluded]
    if reading.features is None:
        if not rest:
            raise SotddError(f"{name} has no column besides the labels: expected features.")
        return dict.fromkeys(rest, False)
    wanted: dict[str, bool] = {}
    for pattern in map(str, reading.features):
        if pattern in kinds:
            wanted[pattern] = True
            continue
        found = [column for column in _find_matches(pattern, kinds, f"features={pattern}", name) if column in rest]
        if not found:
            raise SotddError(
                f"{name} has no column that matches {pattern!r}, only {_list_kinds(kinds)}: check the name."
            )
        for column in found:
            wanted.setdefault(column, False)
    return wanted


def _find_matches(pattern: str, kinds: Mapping[str, Kind], option: str, name: str) -> list[str]:
    """The columns that a name or a pattern means; a name that is none of them is refused."""
    if pattern in kinds:
        return [pattern]
    if not any(letter in pattern for letter in "*?["):
        raise SotddError(f"{name} has no column {pattern!r}, only {_list_kinds(kinds)}: check {option}.")
    return [column for column in kinds if fnmatchcase(column, pattern)]


def _find_alone(kinds: Mapping[str, Kind], wanted: Mapping[str, bool], reading: Reading, name: str) -> str | None:
    """The one column of lists, images or texts to encode that is the features; None where numbers are."""
    vectors = [column for column in wanted if kinds[column] in ("list", "image")]
    texts = [column for column in wanted if kinds[column] == "text"]
    only = next(iter(wanted)) if len(wanted) == 1 else None
    if vectors:
        rest = [column for column in wanted if column not in vectors]
        free = [column for column in rest if kinds[column] == "numbers" and not _CALLED_ID.fullmatch(column)]
        if len(vectors) > 1 or free or any(wanted[column] for column in rest):
            held = _list_kinds({column: kinds[column] for column in wanted})
            raise SotddError(f"{name} has {held}: name columns of numbers, or one of lists or images, with features=.")
        return vectors[0]
    if reading.encoder is not None and len(texts) == 1 and (only is not None or reading.features is None):
        return texts[0]
    if only is not None and kinds[only] == "text" and not reading.one_hot:
        raise SotddError(f"column {only!r} of {name} holds text: pass encoder=, or one_hot=20 for categories.")
    return None


def _find_label(kinds: Mapping[str, Kind], reading: Reading, name: str) -> str | None:
    if reading.unlabelled:
        return None
    if reading.label_column is not None:
        column = str(reading.label_column)
        if column not in kinds:
            raise SotddError(f"{name} has no column {column!r}, only {_list_kinds(kinds)}: check the name.")
        return column
    usual = [column for column in kinds if column.lower() in LABEL_NAMES]
    if len(usual) == 1:
        return usual[0]
    which = "none is" if not usual else f"{' and '.join(map(repr, usual))} are"
    named = f"{which} named {', '.join(LABEL_NAMES)}"
    raise SotddError(f"{name} has {_list_kinds(kinds)}, of which {named}: name the labels, or pass label=None.")


def is_index(column: str) -> bool:
    """Whether pandas stores its index in this column."""
    return column.startswith(_INDEX)


def _list_kinds(kinds: Mapping[str, Any]) -> str:
    shown = [f"{column!r} ({say_why(kind)})" for column, kind in list(kinds.items())[:_SHOWN]]
    more = len(kinds) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more > 0 else "") or "none"
