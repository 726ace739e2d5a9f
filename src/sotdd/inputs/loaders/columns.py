"""Which columns of a table are features, what they hold, and which one holds the labels: one rule for all tables.

What a column holds is judged by its Arrow type and by one look at the first rows. Texts are trimmed, and the usual
spellings of nothing are gaps. They are numbers where all of them are written as such, truth values where they are two
opposites, dates where all are written as in ISO 8601, categories where values repeat, and otherwise free text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.remarks import Remark, say_why
from sotdd.basics.text import join_names
from sotdd.inputs.data import IS_MISSING, MISSING, LeftOut, Names, Origin
from sotdd.inputs.loaders.values import Array, Column, are_dates, clean_texts, find_kind, find_other, is_usual
from sotdd.inputs.reading import Reading

# Arrow's own types are not checked, since it is optional.
Table = Any

# A column of one of these names holds the labels, unless the caller names another.
LABEL_NAMES = ("label", "labels", "target", "y", "class")
# Numbers in a column that is called so are no measurement: an id, or an index that was saved with the table.
_CALLED_ID = re.compile(r"(?i:(.*[\W_])?(id|uuid|guid)|index|unnamed: \d+|)|.*[a-z0-9](Id|ID)")
# pandas stores its index in columns whose names begin like this; they are not features.
_INDEX = "__index_level_"

# Two opposites, the one that counts as 1 last.
_OPPOSITES = (("no", "yes"), ("false", "true"), ("n", "y"), ("f", "t"))
# Categories repeat this often on average, or are few; so many of them are told apart.
_REPEATED = 5
_MOST_VALUES = 1000
# Of so few values, all may differ in a column of categories.
_FEW = 5
# Messages list this many columns.
_SHOWN = 12


@dataclass(frozen=True)
class Columns:
    """The label column or None, and the feature columns: of numbers, or one of lists, texts or images.

    Examples
    --------
    >>> import pyarrow
    >>> from sotdd.inputs.loaders.columns import Columns
    >>> from sotdd.inputs.reading import Reading
    >>> table = pyarrow.table({"x": [1, 2], "vip": ["yes", "no"], "at": ["2024-01-31"] * 2, "class": ["a", "b"]})
    >>> columns = Columns.choose(table, Reading(), "flowers.csv")
    >>> columns.label, [(column.name, column.kind) for column in columns.features]
    ('class', [('x', 'number'), ('vip', 'category')])
    >>> columns.left_out
    {'at': LeftOut(why='date', value='2024-01-31', row=0)}
    """

    label: str | None
    features: tuple[Column, ...]
    alone: Literal["list", "text", "image"] | None = None
    left_out: Mapping[str, LeftOut] = field(default_factory=dict)
    remarks: tuple[Remark, ...] = ()

    @classmethod
    def choose(cls, look: Table, reading: Reading, name: str, *, images: Names = (), in_text: bool = False) -> Columns:
        """Choose the columns that were named; without names, all that hold numbers, truth values or categories.

        ``look`` is the table, or its first rows. ``in_text`` says that all is text, as in CSV, so that numbers in it
        are nothing to remark on.
        """
        kinds = {one.name: find_kind(one.type) for one in look.schema if not one.name.startswith(_INDEX)}
        if len(kinds) < sum(not title.startswith(_INDEX) for title in look.schema.names):
            twice = next(title for place, title in enumerate(look.schema.names) if title in look.schema.names[:place])
            raise SotddError(f"{name} has two columns named {twice!r}: rename one.")
        kinds |= dict.fromkeys(images, "image")
        label = _find_label(kinds, reading, name)
        wanted, known = _list_wanted(kinds, label, reading, name)
        alone = _find_alone(kinds, wanted, reading, name)
        if alone is not None:
            left = {column: LeftOut(_WHY.get(kinds[column], "other")) for column in wanted if column != alone}
            return cls(label, (Column(alone, "number"),), kinds[alone], left)  # type: ignore[arg-type]  # one of these
        places = {title: place for place, title in enumerate(look.schema.names)}
        features: list[Column] = []
        left_out: dict[str, LeftOut] = {}
        for title, asked in wanted.items():
            judged = _judge(title, kinds[title], look.column(places[title]), asked, reading, known.get(title, ()))
            if isinstance(judged, LeftOut):
                left_out[title] = judged
            else:
                features.append(judged)
        if not features and any(left.why == "id" for left in left_out.values()):  # there is nothing else
            features = [Column(title, "number") for title, left in left_out.items() if left.why == "id"]
            left_out = {title: left for title, left in left_out.items() if left.why != "id"}
        if not features:
            raise SotddError(f"{name} has no column of numbers or categories, only {_list_kinds(left_out)}: check it.")
        refused = next((title for title, asked in wanted.items() if asked and title in left_out), None)
        if refused is not None:
            raise SotddError(f"column {refused!r} of {name} holds {say_left(left_out[refused])}: leave it out.")
        written = {
            column.name: str(clean_texts(look.column(places[column.name]), reading).drop_null()[0])
            for column in features
            if column.kind == "written number" and not (in_text and is_usual(look.column(places[column.name]), reading))
        }
        remarks = [Remark("numbers in text", columns=written)] if written else []
        return cls(label, tuple(features), None, left_out, tuple(remarks))

    @property
    def origin(self) -> Origin:
        """What was decided about the columns."""
        dates = tuple(column.name for column in self.features if column.kind == "date")
        return Origin(left_out=self.left_out, dates=dates, remarks=self.remarks)

    @property
    def all(self) -> list[str]:
        """Every column that is read."""
        return [*(column.name for column in self.features), *([] if self.label is None else [self.label])]


# What is said of a column that is none of the features, by its kind.
_WHY: dict[str, Any] = {"number": "other", "text": "free text", "date": "date", "list": "list", "image": "image"}


def _judge(title: str, kind: str, values: Array, asked: bool, reading: Reading, known: Names) -> Column | LeftOut:
    """How a column is read, or why it is left out; columns asked for by name are features if they can be."""
    if kind == "empty" or values.null_count == len(values) > 0:
        return Column(title, "number") if asked else LeftOut("empty")
    if not asked and kind in ("number", "text") and _CALLED_ID.fullmatch(title):
        return LeftOut("id")
    if kind == "number":
        return Column(title, "number")
    if kind == "date":
        return Column(title, "date") if asked or reading.dates else LeftOut("date")
    if kind in ("text", "category"):
        return _judge_texts(title, clean_texts(values, reading), asked, kind == "category", reading, known)
    return LeftOut(_WHY.get(kind, "other"))


def _judge_texts(
    title: str, texts: Array, asked: bool, declared: bool, reading: Reading, known: Names
) -> Column | LeftOut:
    """What a column of texts holds, by its distinct values."""
    coded = texts.dictionary_encode()
    distinct, codes = coded.dictionary, np.asarray(coded.indices.fill_null(MISSING))
    if not len(distinct):
        return Column(title, "number") if asked else LeftOut("empty")
    orders = "," if reading.decimal == "," else ".,"
    decimal = next((point for point in orders if not find_other(distinct, point)[0]), None)
    if decimal is not None and not declared and not known:
        return Column(title, "written number", decimal)
    words = {value.lower() for value in distinct.to_pylist()} if len(distinct) <= 2 else set()
    flag = next((yes for no, yes in _OPPOSITES if words and words <= {no, yes}), None)
    first = distinct[0].as_py()
    if flag is None and not declared and not known and are_dates(distinct):
        return Column(title, "date") if asked or reading.dates else LeftOut("date", first, int(np.argmin(codes != 0)))
    others, value, row = min(find_other(texts, point) for point in orders)
    numeric = others < 0.5 * np.count_nonzero(codes >= 0)  # then a value that is no number is worth telling
    number = LeftOut("free text", value if numeric else first, row if numeric else int(np.argmin(codes != 0)))
    counts = np.bincount(codes[codes >= 0], minlength=len(distinct))
    order = np.argsort(-counts, kind="stable")
    if not flag and (not reading.one_hot or not (asked or declared or _repeat(counts[order], reading.one_hot))):
        return number
    values = [distinct[int(place)].as_py() for place in order[:_MOST_VALUES]]
    if flag is not None:
        flag = next((value for value in values if value.lower() == flag), flag)
    return Column(title, "category", values=tuple(dict.fromkeys([*values, *known])), flag=flag, number=number)


def _repeat(counts: NDArray[np.int64], most: int) -> bool:
    """Whether values that occur so often, in falling order, are categories rather than free text."""
    n_rows = counts.sum()
    if len(counts) <= most:
        return len(counts) < n_rows or len(counts) <= _FEW
    return bool(n_rows >= _REPEATED * len(counts) and counts[:most].sum() >= n_rows / 2)


# ------------------------------------------------------------------ names


def _list_wanted(
    kinds: Mapping[str, str], label: str | None, reading: Reading, name: str
) -> tuple[dict[str, bool], dict[str, Names]]:
    """The columns that may be features, and whether each was asked for by its own name; and values of categories.

    Features as they were made before, such as ``city=Rome`` and ``age is missing``, ask for their columns.
    """
    excluded = {
        column for pattern in reading.exclude for column in _find_matches(pattern, kinds, f"exclude={pattern}", name)
    }
    rest = [column for column in kinds if column != label and column not in excluded]
    if reading.features is None:
        if not rest:
            raise SotddError(f"{name} has no column besides the labels: expected features.")
        return dict.fromkeys(rest, False), {}
    wanted: dict[str, bool] = {}
    known: dict[str, list[str]] = {}
    for pattern in map(str, reading.features):
        base, equals, value = pattern.partition("=")
        if pattern in kinds:
            wanted[pattern] = True
        elif equals and base in kinds:
            wanted[base] = True
            known.setdefault(base, []).append(value)
        elif pattern.removesuffix(IS_MISSING) in kinds:
            wanted[pattern.removesuffix(IS_MISSING)] = True
        else:
            found = [column for column in _find_matches(pattern, kinds, f"features={pattern}", name) if column in rest]
            if not found:
                raise SotddError(
                    f"{name} has no column that matches {pattern!r}, only {_list_kinds(kinds)}: check the name."
                )
            for column in found:
                wanted.setdefault(column, False)
    return wanted, {column: tuple(values) for column, values in known.items()}


def _find_matches(pattern: str, kinds: Mapping[str, str], option: str, name: str) -> list[str]:
    """The columns that a name or a pattern means; a name that is none of them is refused."""
    if pattern in kinds:
        return [pattern]
    if not any(letter in pattern for letter in "*?["):
        raise SotddError(f"{name} has no column {pattern!r}, only {_list_kinds(kinds)}: check {option}.")
    return [column for column in kinds if fnmatchcase(column, pattern)]


def _find_alone(kinds: Mapping[str, str], wanted: Mapping[str, bool], reading: Reading, name: str) -> str | None:
    """The one column of lists, images or texts to encode that is the features; None where numbers are."""
    vectors = [column for column in wanted if kinds[column] in ("list", "image")]
    texts = [column for column in wanted if kinds[column] == "text"]
    if vectors:
        rest = [column for column in wanted if column not in vectors]
        free = [column for column in rest if kinds[column] == "number" and not _CALLED_ID.fullmatch(column)]
        if len(vectors) > 1 or free or any(wanted[column] for column in rest):
            held = _list_kinds({column: kinds[column] for column in wanted})
            raise SotddError(f"{name} has {held}: name columns of numbers, or one of lists or images, with features=.")
        return vectors[0]
    if reading.encoder is not None and len(texts) == 1 and (len(wanted) == 1 or reading.features is None):
        return texts[0]
    return None


def _find_label(kinds: Mapping[str, str], reading: Reading, name: str) -> str | None:
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
    several = f"has columns {' and '.join(map(repr, usual))}"
    found = several if usual else f"has no column named {', '.join(LABEL_NAMES)}"
    raise SotddError(
        f"is not given, and {name} {found}: name the column of labels, or give None (in a text, nothing) for one "
        f"class. Its columns are {join_names([*map(repr, kinds)], _SHOWN)}.",
        setting="label",
    )


def say_left(left: LeftOut) -> str:
    """What a column holds that is no feature, with a value of it."""
    example = "" if left.value is None else f", such as {left.value!r} in row {left.row:,}"
    return f"{say_why(left.why)}{example}"


def _list_kinds(kinds: Mapping[str, str | LeftOut]) -> str:
    shown = [
        f"{column!r} ({say_left(kind) if isinstance(kind, LeftOut) else say_why(kind)})"
        for column, kind in list(kinds.items())[:_SHOWN]
    ]
    more = len(kinds) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more > 0 else "") or "none"
