"""Which columns of a table are features, and which one holds the labels: one rule for all kinds of tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, Protocol

from sotdd.basics.errors import SotddError
from sotdd.inputs.origin import ID
from sotdd.inputs.settings import Settings

Kind = Literal["numbers", "list", "text", "image", "date", "other"]

# A column of one of these names holds the labels, unless the caller names another.
LABEL_NAMES = ("label", "labels", "target", "y", "class")

# pandas stores its index in columns whose names begin like this; they are not features.
_INDEX = "__index_level_"

# Messages list this many columns.
_SHOWN = 12


class Contents(Protocol):
    """What a table says of the values in its columns; only columns that this matters for are read."""

    def is_empty(self, column: str) -> bool:
        """Whether a column of numbers has no value at all."""

    def is_id(self, column: str) -> bool | None:
        """Whether a column of numbers holds integers, every one of them different; None for too few to tell."""

    def values(self, column: str, most: int) -> tuple[str, ...] | None:
        """The distinct values of a column of text, in order; None if there are more than ``most``."""


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
        The other columns and what they hold.
    dates
        Those of the features that are dates: days since the beginning of 1970, in UTC.
    categories
        Those of the features that are texts, and their values: one feature for each, 1 where a row has the value.
    maybe_ids
        Those of the features that may be ids, but are too few to tell.

    Examples
    --------
    >>> from sotdd.inputs.loaders.columns import Columns
    >>> from sotdd.inputs.settings import Settings
    >>> kinds = {"x": "numbers", "z": "numbers", "note": "text", "class": "text"}
    >>> columns = Columns.choose(kinds, Settings(), "flowers.csv")
    >>> columns.label, columns.names, columns.left_out
    ('class', ('x', 'z'), (('note', 'text'),))
    """

    label: str | None
    features: tuple[str, ...]
    kind: Kind
    left_out: tuple[tuple[str, str], ...] = ()
    dates: tuple[str, ...] = ()
    categories: tuple[tuple[str, tuple[str, ...]], ...] = ()
    maybe_ids: tuple[str, ...] = ()

    @classmethod
    def choose(
        cls, kinds: Mapping[str, Kind], settings: Settings, name: str, contents: Contents | None = None
    ) -> Columns:
        """Choose the columns that were named; without names, all numbers and what was asked for beside them."""
        kinds = {column: kind for column, kind in kinds.items() if not is_index(column)}
        label = _label(kinds, settings, name)
        wanted = _wanted(kinds, label, settings, name)
        alone = _alone(kinds, wanted, settings, name, contents)
        if alone is not None:
            left = tuple((column, kinds[column]) for column in wanted if column != alone)
            return cls(label, (alone,), kinds[alone], left)
        return _Choice(kinds, wanted, settings, name, contents).made(label)

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the features, which are those of their columns; the entries of one list have none."""
        if self.kind != "numbers":
            return None
        values = dict(self.categories)
        return tuple(
            feature
            for column in self.features
            for feature in ([f"{column}={value}" for value in values[column]] if column in values else [column])
        )

    @property
    def all(self) -> list[str]:
        """Every column that is read."""
        return [*self.features, *([] if self.label is None else [self.label])]


class _Choice:
    """Goes through the columns of a table, and takes each in or leaves it out."""

    def __init__(
        self,
        kinds: Mapping[str, Kind],
        wanted: Mapping[str, bool],
        settings: Settings,
        name: str,
        contents: Contents | None,
    ) -> None:
        self._kinds, self._wanted, self._settings, self._name = kinds, wanted, settings, name
        self._contents = contents
        self.features: list[str] = []
        self.left_out: dict[str, str] = {}
        self.categories: dict[str, tuple[str, ...]] = {}
        self.maybe_ids: list[str] = []

    def made(self, label: str | None) -> Columns:
        """The columns, in the order of the table."""
        for column, asked in self._wanted.items():
            self._take(column, self._kinds[column], asked)
        if not self.features and ID in self.left_out.values():  # a table of integers alone has no ids
            self.features = [column for column, why in self.left_out.items() if why == ID]
            self.left_out = {column: why for column, why in self.left_out.items() if why != ID}
        if not self.features:
            why = {column: self.left_out.get(column, self._kinds[column]) for column in self._wanted}
            raise SotddError(
                f"{self._name} has no column of numbers for features, only {_listed(why)}: expected columns of "
                "numbers, or pass one_hot=20 for categories, dates=True for dates, or encoder= for a text."
            )
        dates = tuple(column for column in self.features if self._kinds[column] == "date")
        return Columns(
            label,
            tuple(self.features),
            "numbers",
            tuple(self.left_out.items()),
            dates,
            tuple(self.categories.items()),
            tuple(self.maybe_ids),
        )

    def _take(self, column: str, kind: Kind, asked: bool) -> None:
        """Take a column in, or say why it is left out; columns asked for by name are taken in or refused."""
        settings = self._settings
        if kind == "numbers":
            self._take_numbers(column, asked or column in settings.kept)
        elif kind == "date" and (asked or settings.dates):
            self.features.append(column)
        elif kind == "text" and settings.one_hot and self._contents is not None:
            values = self._contents.values(column, settings.one_hot)
            if values is None and asked:
                raise SotddError(
                    f"column {column!r} of {self._name} holds more than {settings.one_hot:,} different texts: pass a "
                    "larger one_hot=, or leave it out."
                )
            if values is None:
                self.left_out[column] = f"text, more than {settings.one_hot:,} values"
                return
            if not values:
                self.left_out[column] = "empty"
                return
            self.features.append(column)
            self.categories[column] = values
        elif asked:
            how = "pass one_hot=20 for categories, or name it alone with encoder=" if kind == "text" else "leave it out"
            raise SotddError(f"column {column!r} of {self._name} holds {kind}: expected numbers; {how}.")
        else:
            self.left_out[column] = kind if kind != "other" else "neither number, date nor text"

    def _take_numbers(self, column: str, asked: bool) -> None:
        if not asked and self._contents is not None:
            if self._contents.is_empty(column):
                self.left_out[column] = "empty"
                return
            is_id = self._contents.is_id(column)
            if is_id:
                self.left_out[column] = ID
                return
            self.maybe_ids.extend([column] if is_id is None else [])
        self.features.append(column)


def _wanted(kinds: Mapping[str, Kind], label: str | None, settings: Settings, name: str) -> dict[str, bool]:
    """The columns that may be features, and whether each was asked for by its own name."""
    excluded = {
        column for pattern in settings.exclude for column in _matches(pattern, kinds, f"exclude={pattern}", name)
    }
    rest = [column for column in kinds if column != label and column not in excluded]
    if settings.features is None:
        if not rest:
            raise SotddError(f"{name} has no column besides the labels: expected features.")
        return dict.fromkeys(rest, False)
    wanted: dict[str, bool] = {}
    for pattern in map(str, settings.features):
        if pattern in kinds:
            wanted[pattern] = True
            continue
        found = [column for column in _matches(pattern, kinds, f"features={pattern}", name) if column in rest]
        if not found:
            raise SotddError(f"{name} has no column that matches {pattern!r}, only {_listed(kinds)}: check the name.")
        for column in found:
            wanted.setdefault(column, False)
    return wanted


def _matches(pattern: str, kinds: Mapping[str, Kind], option: str, name: str) -> list[str]:
    """The columns that a name or a pattern means; a name that is none of them is refused."""
    if pattern in kinds:
        return [pattern]
    if not any(letter in pattern for letter in "*?["):
        raise SotddError(f"{name} has no column {pattern!r}, only {_listed(kinds)}: check {option}.")
    return [column for column in kinds if fnmatchcase(column, pattern)]


def _alone(
    kinds: Mapping[str, Kind], wanted: Mapping[str, bool], settings: Settings, name: str, contents: Contents | None
) -> str | None:
    """The one column of lists, images or texts to encode that is the features; None where numbers are."""
    vectors = [column for column in wanted if kinds[column] in ("list", "image")]
    texts = [column for column in wanted if kinds[column] == "text"]
    only = next(iter(wanted)) if len(wanted) == 1 else None
    if vectors:
        rest = [column for column in wanted if column not in vectors]
        free = [column for column in rest if kinds[column] == "numbers" and not _is_id(contents, column)]
        if len(vectors) > 1 or free or any(wanted[column] for column in rest):
            raise SotddError(
                f"features of {name} may be the columns {_listed({column: kinds[column] for column in wanted})}: "
                "expected columns of numbers, or one of lists or images; name the features with features=."
            )
        return vectors[0]
    if settings.encoder is not None and len(texts) == 1 and (only is not None or settings.features is None):
        return texts[0]
    if only is not None and kinds[only] == "text" and not settings.one_hot:
        raise SotddError(
            f"column {only!r} of {name} holds text: pass encoder=, a function of a list of texts or the name of a "
            "sentence-transformers model, one_hot=20 for categories, or name other columns with features=."
        )
    return None


def _is_id(contents: Contents | None, column: str) -> bool:
    return contents is not None and bool(contents.is_id(column))


def _label(kinds: Mapping[str, Kind], settings: Settings, name: str) -> str | None:
    if settings.unlabelled:
        return None
    if settings.label_column is not None:
        column = str(settings.label_column)
        if column not in kinds:
            raise SotddError(f"{name} has no column {column!r}, only {_listed(kinds)}: check the name.")
        return column
    usual = [column for column in kinds if column.lower() in LABEL_NAMES]
    if len(usual) == 1:
        return usual[0]
    which = "none is" if not usual else f"{' and '.join(map(repr, usual))} are"
    raise SotddError(
        f"{name} has the columns {_listed(kinds)}, of which {which} named {', '.join(LABEL_NAMES)}: name the labels "
        "with label=COLUMN, or pass label=None (label= in a source text) for one class."
    )


def is_index(column: str) -> bool:
    """Whether pandas stores its index in this column."""
    return column.startswith(_INDEX)


def _listed(kinds: Mapping[str, str]) -> str:
    shown = [f"{column!r} ({kind})" for column, kind in list(kinds.items())[:_SHOWN]]
    more = len(kinds) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more > 0 else "") or "none"
