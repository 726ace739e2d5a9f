"""Which columns of a table are features, and which one holds the labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sotdd.basics.errors import SotddError
from sotdd.inputs.settings import Settings

Kind = Literal["numbers", "list", "text", "image", "other"]

# A column of one of these names holds the labels, unless the caller names another.
LABEL_NAMES = ("label", "labels", "target", "y", "class")

# pandas stores its index in columns whose names begin like this; they are not features.
_INDEX = "__index_level_"

# Messages list this many columns.
_SHOWN = 12


@dataclass(frozen=True)
class Columns:
    """The label column or None, the feature columns, and what these hold.

    Examples
    --------
    >>> from sotdd.inputs.loaders.columns import Columns
    >>> from sotdd.inputs.settings import Settings
    >>> Columns.choose({"x": "numbers", "z": "numbers", "class": "text"}, Settings(), "flowers.csv")
    Columns(label='class', features=('x', 'z'), kind='numbers')
    """

    label: str | None
    features: tuple[str, ...]
    kind: Kind

    @classmethod
    def choose(cls, kinds: Mapping[str, Kind], settings: Settings, name: str) -> Columns:
        """Choose the columns that were named; without names, those that are the only possible choice."""
        kinds = {column: kind for column, kind in kinds.items() if not column.startswith(_INDEX)}
        label = _label(kinds, settings, name)
        features = _features(kinds, label, settings, name)
        distinct = {kinds[column] for column in features}
        kind = distinct.pop() if len(distinct) == 1 else "other"
        if kind == "other" or (kind != "numbers" and len(features) > 1):
            raise SotddError(
                f"features of {name} are the columns {_listed({column: kinds[column] for column in features})}: "
                "expected columns of numbers, or one of lists, texts or images; name them with features=."
            )
        if kind == "text" and settings.encoder is None:
            raise SotddError(
                f"column {features[0]!r} of {name} holds text: pass encoder=, a function of a list of texts or the "
                "name of a sentence-transformers model, or name other columns with features=."
            )
        return cls(label, features, kind)

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the features, which are those of their columns; the entries of one list have none."""
        return self.features if self.kind == "numbers" else None

    @property
    def all(self) -> list[str]:
        """Every column that is read."""
        return [*self.features, *([] if self.label is None else [self.label])]


def _label(kinds: Mapping[str, Kind], settings: Settings, name: str) -> str | None:
    if settings.unlabelled:
        return None
    if settings.label_column is not None:
        return _known(str(settings.label_column), kinds, name)
    usual = [column for column in kinds if column.lower() in LABEL_NAMES]
    if len(usual) == 1:
        return usual[0]
    which = "none is" if not usual else f"{' and '.join(map(repr, usual))} are"
    raise SotddError(
        f"{name} has the columns {_listed(kinds)}, of which {which} named {', '.join(LABEL_NAMES)}: name the labels "
        "with label=COLUMN, or pass label=None (label= in a source text) for one class."
    )


def _features(kinds: Mapping[str, Kind], label: str | None, settings: Settings, name: str) -> tuple[str, ...]:
    if settings.features is not None:
        return tuple(_known(str(column), kinds, name) for column in settings.features)
    rest = {column: kind for column, kind in kinds.items() if column != label}
    if not rest:
        raise SotddError(f"{name} has no column besides the labels: expected features.")
    numbers = [column for column, kind in rest.items() if kind == "numbers"]
    if len(rest) == 1 or len(numbers) == len(rest):
        return tuple(rest)
    others = {column: kind for column, kind in rest.items() if kind != "numbers"}
    texts = [column for column, kind in others.items() if kind == "text"]
    if settings.encoder is not None and len(texts) == 1 and len(others) == 1:
        return (texts[0],)
    raise SotddError(
        f"{name} has columns that are not numbers, {_listed(others)}: name the features with features=COLUMN"
        + (", or pass encoder= for the text." if texts else ".")
    )


def _known(column: str, kinds: Mapping[str, Kind], name: str) -> str:
    if column not in kinds:
        raise SotddError(f"{name} has no column {column!r}, only {_listed(kinds)}: check the name.")
    return column


def _listed(kinds: Mapping[str, Kind]) -> str:
    shown = [f"{column!r} ({kind})" for column, kind in list(kinds.items())[:_SHOWN]]
    more = len(kinds) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more > 0 else "") or "none"
