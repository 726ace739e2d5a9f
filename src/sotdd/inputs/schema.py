"""The columns of a table: what each of them holds, why one is left out, and the features that they make."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.remarks import Remark

Names = tuple[str, ...]

# How the name of a feature ends that says where values of a column are missing.
_IS_MISSING = " is missing"


class Feature(NamedTuple):
    """What a feature of a table is made of: a column of numbers, a value of a category, or the gaps of a column.

    No two features have the same name: a column whose own name would read as that of another feature is quoted.

    Examples
    --------
    >>> from sotdd.inputs.schema import Feature
    >>> Feature("city", "value", "Rome").name, Feature("city", "missing").name, Feature("city=Rome").name
    ('city=Rome', 'city is missing', '"city=Rome"')
    >>> Feature.of('"city=Rome"')
    Feature(column='city=Rome', kind='number', value='')
    """

    column: str
    kind: Literal["number", "value", "missing"] = "number"
    value: str = ""

    @property
    def name(self) -> str:
        """What it is called."""
        plain = "=" not in self.column and not self.column.startswith('"') and not self.column.endswith(_IS_MISSING)
        column = self.column if plain else json.dumps(self.column, ensure_ascii=False)
        return column + {"number": "", "value": f"={self.value}", "missing": _IS_MISSING}[self.kind]

    @classmethod
    def of(cls, name: str) -> Feature:
        """The feature of this name; a name that no feature has is that of a column."""
        column, _, value = name.partition("=")
        if name.startswith('"'):
            with suppress(ValueError):
                column, end = json.JSONDecoder().raw_decode(name)
                value = name[end + 1 :]
        bare = column.removesuffix(_IS_MISSING)
        known = (cls(column), cls(column, "value", value), cls(column, "missing"), cls(bare, "missing"))
        return next((one for one in known if one.name == name), cls(name))


def find_columns(names: Iterable[str]) -> list[str]:
    """The column that each feature is made of."""
    return [Feature.of(name).column for name in names]


# What a column holds that is left out.
Why: TypeAlias = Literal["id", "date", "free text", "list", "image", "empty", "other", "numbers", "categories"]

# The values of a category beyond the most frequent are one feature of this name.
OTHER = "other"
# In codes of a category: a value that is missing.
MISSING = -1


@dataclass(frozen=True)
class LeftOut:
    """Why a column of a table is no feature, and what is known of it.

    Attributes
    ----------
    why, value, row
        What it holds, and a value of it with its row, where there is one.
    constant
        The only value in the first rows; None where there are several, or none.
    first, last
        Of dates, the range in all rows, as in ISO 8601.
    """

    why: Why
    value: str | None = None
    row: int | None = None
    constant: str | None = None
    first: str | None = None
    last: str | None = None


# What a column that is a feature holds; a flag is one of two opposites, such as yes and no.
ColumnKind: TypeAlias = Literal["number", "flag", "category"]
KINDS: Mapping[ColumnKind, str] = {"number": "numbers", "flag": "truth values", "category": "categories"}


def remark_retyped(column: str, before: str, left: LeftOut, about: str = "") -> Remark:
    """The remark on a column that holds something else than before, with a value of it."""
    return Remark("retyped column", about, column=column, before=before, after=left.why, value=left.value, row=left.row)


@dataclass(frozen=True)
class Schema:
    """What the columns of a table are, so that another table is read alike and compared with it.

    Attributes
    ----------
    kinds
        The columns that features are made of, and what they hold.
    left_out
        The columns that are no features, and why.
    unread
        The columns that were not asked for.
    label, groups
        The columns of labels and of groups, where there are any.
    """

    kinds: Mapping[str, ColumnKind]
    left_out: Mapping[str, LeftOut] = field(default_factory=dict)
    unread: Names = ()
    label: str | None = None
    groups: str | None = None

    @property
    def names(self) -> Names:
        """All columns that are known."""
        return (*self.kinds, *self.left_out, *self.unread, *filter(None, dict.fromkeys([self.label, self.groups])))

    @classmethod
    def of_features(cls, names: Names) -> Schema:
        """The columns that features of these names are made of."""
        made = [Feature.of(name) for name in names]
        values = {one.column for one in made if one.kind == "value"}
        return cls({one.column: "category" if one.column in values else "number" for one in made})


@dataclass(frozen=True, eq=False)
class Category:
    """A column of categories.

    Attributes
    ----------
    values
        The distinct values: the most frequent of the first rows first, then others as they came.
    codes
        (n,) for every row the number of its value, or `MISSING`.
    most
        So many values become features; the rest are one.
    flag, number
        Of two opposites, such as yes and no, the one that is 1; and why these are no numbers.
    """

    values: Names
    codes: NDArray[np.int32]
    most: int
    flag: str | None = None
    number: LeftOut | None = None

    def count_values(self) -> dict[str, int]:
        """The values that there are, and how often."""
        counts = np.bincount(self.codes[self.codes >= 0], minlength=len(self.values)).tolist()
        return {value: count for value, count in zip(self.values, counts, strict=True) if count}
