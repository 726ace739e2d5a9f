"""Which columns of a table are features, what they hold, and which one holds the labels: one rule for all tables.

What a column holds is judged by its Arrow type and by one look at the first rows. Texts are trimmed, and the usual
spellings of nothing are gaps. They are numbers where all of them are written as such, truth values where they are two
opposites, dates where all are written as in ISO 8601, categories where values repeat, and otherwise free text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.remarks import Remark, Remarks, say_why
from sotdd.basics.text import join_names, show
from sotdd.inputs.data import Origin
from sotdd.inputs.loaders.values import (
    NO_NUMBER,
    Array,
    Column,
    arrow,
    clean_texts,
    find_constant,
    find_kind,
    find_others,
    find_time_type,
    make_labels,
    try_cast,
)
from sotdd.inputs.reading import HASHING, Reading
from sotdd.inputs.schema import KINDS, MISSING, ColumnKind, Feature, LeftOut, Names, remark_retyped

# Arrow's own types are not checked, since it is optional.
Table = Any

# A column of one of these names holds the labels, unless the caller names another.
LABEL_NAMES = ("label", "labels", "target", "y", "class")
# Numbers in a column that is called so are no measurement: an id, or an index that was saved with the table.
_CALLED_ID = re.compile(r"(?i:(.*[\W_])?(id|uuid|guid)|index|unnamed: \d+|)|.*[a-z0-9](Id|ID)")
# pandas stores its index in columns whose names begin like this; they are not features.
_INDEX = "__index_level_"

# The look ends with the batch in which it has so many rows.
LOOK_ROWS = 100_000
# Columns of integers with this many rows or more, all different, may be ids.
_FEWEST_IDS = 20

# Two opposites, the one that counts as 1 last.
_OPPOSITES = (("no", "yes"), ("false", "true"), ("n", "y"), ("f", "t"))
# Categories occur this often on average, or are few.
_REPEATED = 5
# So many rows tell most columns that are no numbers.
_HEAD = 100
# Of so few values, all may differ in a column of categories.
_FEW = 5
# Of values, messages show so many characters.
_EXAMPLE = 40
# Messages list this many columns.
_SHOWN = 12


@dataclass(frozen=True)
class Columns:
    """The feature columns, of numbers and categories, or one of lists, texts or images; and what of others is known.

    Examples
    --------
    >>> import pyarrow
    >>> from sotdd.inputs.loaders.columns import Columns
    >>> from sotdd.inputs.reading import Reading
    >>> table = pyarrow.table({"x": [1, 2], "vip": ["yes", "no"], "at": ["2024-01-31"] * 2, "class": ["a", "b"]})
    >>> columns = Columns.choose(table, Reading(), "flowers.csv")
    >>> columns.origin.label_column, [(column.name, column.kind) for column in columns.features]
    ('class', [('x', 'number'), ('vip', 'category')])
    >>> columns.origin.left_out
    {'at': LeftOut(why='date', value='2024-01-31', row=0, constant='2024-01-31', first=None, last=None)}
    """

    features: tuple[Column, ...]
    origin: Origin
    alone: Literal["list", "text", "image"] | None = None

    @classmethod
    def choose(cls, look: Table, reading: Reading, name: str, images: Collection[str] = ()) -> Columns:
        """Choose the columns that were named; without names, all that hold numbers, truth values or categories.

        ``look`` is the table, or its first rows. Where another table is to be read alike, its columns are chosen.
        """
        for title, count in Counter(look.schema.names).most_common(1):
            if count > 1:
                raise SotddError(f"{name} has two columns named {title!r}: rename one.")
        kinds = {one.name: find_kind(one.type) for one in look.schema if not one.name.startswith(_INDEX)}
        kinds |= dict.fromkeys(images, "image")
        values = dict(zip(look.schema.names, look.columns, strict=True))
        label, remarks = _find_label(kinds, values, reading, name)
        groups = reading.groups if isinstance(reading.groups, str) else None
        wanted, categories = _list_wanted(kinds, label, reading, name)
        alone = None if reading.schema is not None else _find_alone(kinds, wanted, reading, name)
        absent = tuple(one for one in reading.exclude if one not in kinds and not _is_pattern(one))
        remarks += (Remark("nothing to exclude", columns=absent),) if absent else ()
        unread = tuple(title for title in kinds if title not in wanted and title not in (label, groups))
        origin = Origin(remarks=remarks, unread=unread, label_column=label, group_column=groups)
        if alone is not None:
            rest = {column: LeftOut(_WHY.get(kinds[column], "other")) for column in wanted if column != alone}
            return cls((Column(alone, "number"),), replace(origin, left_out=rest), kinds[alone])  # type: ignore[arg-type]  # one of these
        judged = {
            title: _judge(title, kinds[title], values.get(title), asked, title in categories, reading)
            for title, asked in wanted.items()
        }
        if reading.schema is not None:  # what is no feature there is none here, unless there were no values
            judged |= {
                title: LeftOut("categories" if one.kind == "category" else "numbers")
                for title, one in judged.items()
                if not wanted[title] and isinstance(one, Column) and reading.schema.left_out[title].why != "empty"
            }
        if not any(isinstance(one, Column) or one.why == "free text" for one in judged.values()):  # only ids
            judged |= {title: Column(title, "number") for title, one in judged.items() if one == LeftOut("id")}
        features = tuple(one for one in judged.values() if isinstance(one, Column))
        left_out = {
            title: _summarise(one, values.get(title), kinds[title], reading)
            for title, one in judged.items()
            if isinstance(one, LeftOut)
        }
        _refuse_retyped({title: left for title, left in left_out.items() if wanted[title]}, reading, name)
        if not features:
            raise _nothing_to_compare(left_out, name)
        written = {
            column.name: str(clean_texts(values[column.name], reading, NO_NUMBER).drop_null()[0])
            for column in features
            if column.kind == "written number"
        }
        more = [Remark("numbers in text", columns=written)] if written else []
        ids = () if reading.features is not None or reading.schema is not None else _find_ids(features, values)
        more += [Remark("may be ids", columns=ids)] if ids else []
        return cls(features, replace(origin, left_out=left_out).also(*more))

    @property
    def dates(self) -> list[str]:
        """The columns of dates, of which the range is found."""
        return [title for title, left in self.origin.left_out.items() if left.why == "date"]

    @property
    def all(self) -> list[str]:
        """Every column that is read."""
        features = [column.name for column in self.features]
        others = [self.origin.label_column, self.origin.group_column]
        return list(filter(None, dict.fromkeys([*features, *others, *self.dates])))


def _find_ids(features: Sequence[Column], values: Mapping[str, Array]) -> Names:
    """The columns of integers that may be ids, as no value repeats; whether they are is for the user to say."""
    return tuple(one.name for one in features if one.kind == "number" and _all_differ(values[one.name][:LOOK_ROWS]))


def _all_differ(values: Array) -> bool:
    """Whether these are integers, none of them missing and no two the same."""
    if len(values) < _FEWEST_IDS or values.null_count or arrow().compute.count_distinct(values).as_py() < len(values):
        return False
    numbers = try_cast(values, arrow().float64())
    return numbers is not None and try_cast(numbers, arrow().int64()) is not None


# What is said of a column that is none of the features, by its kind.
_WHY: dict[str, Any] = {"text": "free text", "date": "date", "list": "list", "image": "image"}


def _judge(title: str, kind: str, values: Array, asked: bool, declared: bool, reading: Reading) -> Column | LeftOut:
    """How a column is read, or why it is left out; columns asked for by name are features if they can be."""
    if kind == "empty" or (kind != "image" and values.null_count == len(values) > 0):
        return _judge_empty(title, asked, reading)
    if not asked and kind in ("number", "text") and _CALLED_ID.fullmatch(title):
        return LeftOut("id")
    declared |= kind == "category"
    if kind == "number" or (kind == "text" and not declared and _hold_numbers(values, reading)):
        return Column(title, "number")
    if kind == "date":
        return LeftOut("date")
    if kind in ("text", "category"):
        return _judge_texts(title, clean_texts(values, reading), asked, declared, reading)
    return LeftOut(_WHY.get(kind, "other"))


def _expect(title: str, reading: Reading) -> ColumnKind | None:
    """What a column holds in the table that is to be read alike; None where there is none."""
    return None if reading.schema is None else reading.schema.kinds.get(title)


def _judge_empty(title: str, asked: bool, reading: Reading) -> Column | LeftOut:
    """How a column is read that has no values in the first rows."""
    if not asked:
        return LeftOut("empty")
    return Column(title, "category" if _expect(title, reading) in ("category", "flag") else "number")


def _summarise(left: LeftOut, values: Array, kind: str, reading: Reading) -> LeftOut:
    """What is known of a column that is left out: whether it is empty, or constant."""
    if kind not in ("number", "text", "category", "date"):
        return left
    known = clean_texts(values, reading) if kind in ("text", "category") else values
    if known.null_count == len(known):
        return LeftOut("empty")
    return replace(left, constant=find_constant(known))


def _hold_numbers(values: Array, reading: Reading) -> bool:
    """Whether texts are plain numbers as they stand, which tells most columns of most files at once."""
    if reading.na_values or reading.decimal == "," or try_cast(values[:_HEAD], arrow().float64()) is None:
        return False
    numbers = try_cast(values, arrow().float64())
    return numbers is not None and not np.isnan(numbers).all()


def _judge_texts(title: str, texts: Array, asked: bool, declared: bool, reading: Reading) -> Column | LeftOut:
    """What a column of texts holds, by its distinct values."""
    coded = texts.dictionary_encode()
    distinct, codes = coded.dictionary, np.asarray(coded.indices.fill_null(MISSING))
    if not len(distinct):
        return _judge_empty(title, asked, reading)
    points, bare = "," if reading.decimal == "," else ".,", clean_texts(distinct, reading, NO_NUMBER)
    decimal = next((point for point in points if not len(find_others(bare, point))), None)
    if decimal is not None and not declared and bare.null_count < len(bare):
        plain = arrow().compute.replace_substring(bare, reading.decimal or ".", ".")
        usual = try_cast(plain, arrow().float64()) is not None
        return Column(title, "number" if usual else "written number", decimal)
    words = {value.lower() for value in distinct.to_pylist()} if len(distinct) <= 2 else set()
    flag = next((yes for no, yes in _OPPOSITES if words and words <= {no, yes}), None)
    row = int(np.argmin(codes != 0))  # of the first value
    if flag is None and not declared and try_cast(distinct, find_time_type(distinct)) is not None:
        return LeftOut("date", distinct[0].as_py(), row)
    counts = np.bincount(codes[codes >= 0], minlength=len(distinct))
    others = min((find_others(bare, point) for point in points), key=lambda found: counts[found].sum())
    if 0 < counts[others].sum() < 0.5 * counts.sum():  # then a value that is no number is worth telling
        row = int(np.argmax(np.isin(codes, others)))
    number = LeftOut("free text", texts[row].as_py(), row)
    order = np.argsort(-counts, kind="stable")
    if not flag and (not reading.one_hot or not (asked or declared or _repeat(counts, reading.one_hot))):
        return number
    values = distinct.take(arrow().array(order)).to_pylist()
    if flag is not None:
        flag = next((value for value in values if value.lower() == flag), flag)
    return Column(title, "category", values=tuple(values), flag=flag, number=number)


def _repeat(counts: NDArray[np.int64], most: int) -> bool:
    """Whether values that occur so often are categories rather than free text."""
    n_rows = counts.sum()
    few = len(counts) <= most and (len(counts) < n_rows or len(counts) <= _FEW)
    return bool(few or n_rows >= _REPEATED * len(counts))


# ------------------------------------------------------------------ names


def _list_wanted(
    kinds: Mapping[str, str], label: str | None, reading: Reading, name: str
) -> tuple[dict[str, bool], set[str]]:
    """The columns that may be features, and whether each was asked for by name; and those that are categories then.

    Features as they are made, such as ``city=Rome`` and ``age is missing``, ask for their columns.
    """
    by = [reading.groups] if isinstance(reading.groups, str) else []
    if reading.schema is not None:
        needed = dict.fromkeys([*reading.schema.kinds, *([] if label is None else [label]), *by])
        if dropped := [column for column in needed if column not in kinds]:
            raise _unknown_error(kinds, name, *dropped)
        others = [column for column in reading.schema.left_out if column in kinds and column not in (label, *by)]
        categories = {column for column, kind in reading.schema.kinds.items() if kind == "category"}
        return {**dict.fromkeys(others, False), **dict.fromkeys(reading.schema.kinds, True)}, categories
    left_out = [pattern for pattern in reading.exclude if pattern in kinds or _is_pattern(pattern)]
    excluded = {column for pattern in [*left_out, *by] for column in _find_matches(pattern, kinds, name)}
    rest = [column for column in kinds if column != label and column not in excluded]
    if reading.features is None:
        if not rest:
            raise SotddError(f"{name} has no column besides the labels: expected features.")
        return dict.fromkeys(rest, False), set()
    wanted: dict[str, bool] = {}
    categories = set()
    for pattern in map(str, reading.features):
        made = Feature(pattern) if pattern in kinds else Feature.of(pattern)
        if made.column in kinds:
            wanted[made.column] = True
            categories |= {made.column} if made.kind == "value" else set()
        else:
            found = [column for column in _find_matches(pattern, kinds, name, made.column) if column in rest]
            if not found:
                raise _unknown_error(kinds, name, made.column)
            for column in found:
                wanted.setdefault(column, False)
    return wanted, categories


def _find_matches(pattern: str, kinds: Mapping[str, str], name: str, of: str | None = None) -> list[str]:
    """The columns that a name or a pattern means; a name that is none of them is refused, and called ``of``."""
    if pattern not in kinds and not _is_pattern(pattern):
        raise _unknown_error(kinds, name, of or pattern)
    return [pattern] if pattern in kinds else [column for column in kinds if fnmatchcase(column, pattern)]


def _is_pattern(name: str) -> bool:
    return any(letter in name for letter in "*?[")


def _unknown_error(kinds: Mapping[str, str], name: str, *missing: str) -> SotddError:
    known = join_names([*map(repr, kinds)], _SHOWN)
    found = f"{name} has no column {join_names([*map(repr, missing)], _SHOWN)}, only {known}: check the name."
    return SotddError(found, remarks=(Remark("dropped columns", columns=missing),))


def _refuse_retyped(left_out: Mapping[str, LeftOut], reading: Reading, name: str) -> None:
    """Refuse a table of which columns that are to be features hold what is none."""
    remarks = tuple(
        remark_retyped(title, "" if (kind := _expect(title, reading)) is None else KINDS[kind], left)
        for title, left in left_out.items()
    )
    for title, left in left_out.items():
        raise SotddError(f"column {title!r} of {name} holds {_say_left(left)}: leave it out.", remarks=remarks)


def _find_alone(kinds: Mapping[str, str], wanted: Mapping[str, bool], reading: Reading, name: str) -> str | None:
    """The one column of lists, images or texts to encode that is the features; None where numbers are."""
    vectors = [column for column in wanted if kinds[column] in ("list", "image")]
    texts = [column for column in wanted if kinds[column] == "text"]
    if vectors:
        rest = [column for column in wanted if column not in vectors]
        free = [column for column in rest if kinds[column] == "number" and not _CALLED_ID.fullmatch(column)]
        if len(vectors) > 1 or free or any(wanted[column] for column in rest):
            held = _say_columns({column: kinds[column] for column in wanted})
            raise SotddError(f"{name} has {held}: name numbers, or one column of lists or images,", by=("features",))
        return vectors[0]
    if reading.encoder is not None and len(texts) == 1 and (len(wanted) == 1 or reading.features is None):
        return texts[0]
    return None


def _find_label(
    kinds: Mapping[str, str], values: Mapping[str, Array], reading: Reading, name: str
) -> tuple[str | None, Remarks]:
    """The column of labels; None where there is none, with a remark unless that was asked for."""
    if reading.unlabelled:
        return None, ()
    if reading.label_column is not None:
        if str(reading.label_column) not in kinds:
            raise _unknown_error(kinds, name, str(reading.label_column))
        return str(reading.label_column), ()
    if reading.schema is not None and reading.schema.label is not None:
        return reading.schema.label, ()
    chosen = {*(reading.features or ()), *reading.exclude}
    usual = [column for column in kinds if column.strip().lower() in LABEL_NAMES and column not in chosen]
    passed: dict[str, str] = {}
    for column in usual:
        labels = make_labels([values[column]], name, reading, in_text=True)
        if not labels.classes:
            passed[column] = "empty"
        elif reading.bins is None and labels.are_measured(even_few=True):
            passed[column] = "floats"
    fit = [column for column in usual if column not in passed]
    if len(fit) > 1:
        raise SotddError(f"{name} has the columns {' and '.join(map(repr, fit))}: say which are labels", by=("label",))
    if fit:
        return fit[0], ()
    return None, (Remark("no labels", names=LABEL_NAMES, passed=passed),)


def _nothing_to_compare(left_out: Mapping[str, LeftOut], name: str) -> SotddError:
    """The error for a table without features; a column of texts can be encoded."""
    texts = [column for column, left in left_out.items() if left.why == "free text"]
    one = {"features": texts[0]} if len(left_out) > 1 and texts else {}
    cure = "" if texts else ": pass a table that has one."
    return SotddError(
        f"{name} has no column of numbers or categories, only {_say_columns(left_out)}{cure}",
        use={**one, "encoder": HASHING} if texts else None,
    )


def _say_left(left: LeftOut) -> str:
    """What a column holds that is no feature, with a value of it."""
    example = "" if left.value is None else f", such as {show(left.value, _EXAMPLE)!r} in row {left.row:,}"
    return f"{say_why(left.why)}{example}"


def _say_columns(kinds: Mapping[str, str | LeftOut]) -> str:
    """Columns with what each holds."""
    shown = [
        f"{column!r} ({_say_left(kind) if isinstance(kind, LeftOut) else say_why(kind)})"
        for column, kind in islice(kinds.items(), _SHOWN)
    ]
    more = len(kinds) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "") or "none"
