"""How a dataset is to be opened, checked once."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from sotdd.basics.checks import check_choice, check_count, check_flag, check_seed, described
from sotdd.basics.errors import SotddError
from sotdd.inputs.encode import Encoder

Name = str | int

# A label of this value leaves the choice to the loader.
AUTO = "auto"

# Images of this many pixels a side are what Pillow considers safe; more bins than this are hardly classes.
_LARGEST_SIDE = 10_000
_MOST_BINS = 10_000

# A column of text with at most this many values becomes one feature per value, where that is asked for.
MOST_CATEGORIES = 20
_MANY_CATEGORIES = 10_000

# Settings that mean something to some kinds of sources only.
OF_FOLDERS = ("split", "broken")
OF_CSV = ("separator", "decimal", "encoding")
OF_TABLES = ("exclude", "one_hot", "dates", *OF_CSV)

# What is done about values that are missing.
MISSING = ("error", "drop", "mean")

# Names for the characters that the text of a source has another use for.
_CHARACTERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "space": " ", "point": ".", "dot": "."}


@dataclass(frozen=True)
class Settings:
    """What `open_dataset` was asked for.

    A ``label`` of None asks for one class, "auto" leaves the choice of the labels to the loader.
    """

    label: Name | None = AUTO
    features: tuple[Name, ...] | None = None
    image_size: tuple[int, int] | None = None
    image_mode: str | None = None
    transform: Callable[[Any], Any] | None = None
    encoder: Encoder | None = None
    bins: int | None = None
    drop_missing: bool = False
    max_points: int | None = None
    seed: int = 0
    broken: str = "refuse"
    split: str | None = None
    exclude: tuple[str, ...] = ()
    one_hot: int = 0
    dates: bool = False
    missing: str = "error"
    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None

    def refuse(self, source: str, *names: str) -> None:
        """Refuse settings that mean nothing to this kind of source."""
        for name in names:
            if getattr(self, name) != getattr(DEFAULTS, name):
                raise SotddError(f"{name} is given but means nothing to {source}: leave it out.")

    @property
    def label_is_auto(self) -> bool:
        """Whether the loader chooses the labels."""
        return self.label == AUTO

    @property
    def label_column(self) -> Name | None:
        """The column or array of labels that was named; None where none was."""
        return None if self.label_is_auto else self.label

    @property
    def unlabelled(self) -> bool:
        """Whether all points are to be one class."""
        return self.label is None

    @property
    def prepares(self) -> bool:
        """Whether anything is to be done to features that are numbers already."""
        steps = (self.encoder, self.transform, self.image_size, self.image_mode)
        return any(step is not None for step in steps)


DEFAULTS = Settings()

# The arguments of `open_dataset` as they are where a caller passes none of them.
NOTHING_ASKED: dict[str, Any] = {
    **{field.name: field.default for field in fields(Settings)},
    "encoder_name": None, "exclude": None, "one_hot": False,
}  # fmt: skip


def checked_settings(asked: Mapping[str, Any]) -> Settings:
    """The arguments of `open_dataset`, checked."""
    encoder, encoder_name, mode = asked["encoder"], asked["encoder_name"], asked["image_mode"]
    features, exclude = asked["features"], asked["exclude"]
    if encoder_name is not None and encoder is None:
        raise SotddError("encoder_name is given but no encoder: pass encoder=, or leave it out.")
    settings = Settings(
        label=_checked_label(asked["label"]),
        features=None if features is None else _checked_names(features, "features", str, int),
        image_size=_checked_image_size(asked["image_size"]),
        image_mode=None if mode is None else check_choice(mode, "image_mode", ("L", "RGB")),
        transform=_checked_transform(asked["transform"]),
        encoder=None if encoder is None else Encoder(encoder, encoder_name),
        bins=None if asked["bins"] is None else check_count(asked["bins"], "bins", _MOST_BINS),
        drop_missing=check_flag(asked["drop_missing"], "drop_missing"),
        max_points=None if asked["max_points"] is None else check_count(asked["max_points"], "max_points"),
        seed=check_seed(asked["seed"]),
        broken=check_choice(asked["broken"], "broken", ("refuse", "skip")),
        split=_checked_split(asked["split"]),
        exclude=_checked_names(() if exclude is None else exclude, "exclude", str),
        one_hot=_checked_one_hot(asked["one_hot"]),
        dates=check_flag(asked["dates"], "dates"),
        missing=check_choice(asked["missing"], "missing", MISSING),
        separator=_checked_character(asked["separator"], "separator"),
        decimal=_checked_character(asked["decimal"], "decimal"),
        encoding=_checked_encoding(asked["encoding"]),
    )
    if settings.separator is not None and settings.separator == settings.decimal:
        raise SotddError(f"separator and decimal are both {settings.separator!r}: expected two characters.")
    return settings if settings.prepares or settings != DEFAULTS else DEFAULTS


def _checked_names(names: Any, what: str, *kinds: type) -> tuple[Any, ...]:  # noqa: ANN401  # anything
    """One name or pattern, or several, as a tuple."""
    several = (names,) if isinstance(names, kinds) else names
    known = isinstance(several, (list, tuple)) and (len(several) > 0 or what == "exclude")
    if not known or any(isinstance(name, bool) or not isinstance(name, kinds) for name in several):
        raise SotddError(f"{what} is {described(names)}: expected the name of a column, or a list of names.")
    return tuple(several)


def _checked_label(label: object) -> Name | None:
    """The name of the labels, "auto", or None for one class."""
    if label is not None and (not isinstance(label, (str, int)) or isinstance(label, bool)):
        raise SotddError(f"label is {described(label)}: expected the name of a column, or None for one class.")
    return label


def _checked_one_hot(one_hot: object) -> int:
    """The most values of a column that becomes one feature per value; 0 for no such columns."""
    if isinstance(one_hot, (bool, np.bool_)):
        return MOST_CATEGORIES if one_hot else 0
    if not isinstance(one_hot, (int, np.integer)) or not 2 <= one_hot <= _MANY_CATEGORIES:
        raise SotddError(
            f"one_hot is {described(one_hot)}: expected True, False, or the most values of a column, from 2 to "
            f"{_MANY_CATEGORIES:,}."
        )
    return int(one_hot)


def _checked_character(value: object, name: str) -> str | None:
    if value is None:
        return None
    character = _CHARACTERS.get(value.lower(), value) if isinstance(value, str) else value
    allowed = (".", ",") if name == "decimal" else None
    if not isinstance(character, str) or len(character) != 1 or not character.isascii() or character in '"\r\n':
        raise SotddError(f"{name} is {described(value)}: expected one character, or one of {', '.join(_CHARACTERS)}.")
    if allowed is not None and character not in allowed:
        raise SotddError(f"{name} is {described(value)}: expected 'comma' or 'point'.")
    return character


def _checked_encoding(encoding: object) -> str | None:
    if encoding is None:
        return None
    try:
        return codecs.lookup(encoding).name  # type: ignore[arg-type]  # anything but text is refused here
    except (LookupError, TypeError, ValueError):
        raise SotddError(
            f"encoding is {described(encoding)}: expected the name of one, such as 'utf-8', 'latin-1' or 'cp1252'."
        ) from None


def _checked_image_size(size: object) -> tuple[int, int] | None:
    """(height, width), of which one number makes a square."""
    if size is None:
        return None
    sides = (size, size) if isinstance(size, int) else size
    if not isinstance(sides, (tuple, list)) or len(sides) != 2:
        raise SotddError(f"image_size is {described(size)}: expected (height, width) or one number for a square.")
    height, width = (check_count(side, "image_size", _LARGEST_SIDE) for side in sides)
    return height, width


def _checked_transform(transform: object) -> Callable[[Any], Any] | None:
    if transform is not None and (not callable(transform) or isinstance(transform, type)):
        raise SotddError(f"transform is {described(transform)}: expected a function of a batch.")
    return transform


def _checked_split(split: object) -> str | None:
    """The name of a split, of which the library ``datasets`` has constants that are not text."""
    name = str(split) if type(split).__module__.partition(".")[0] == "datasets" else split
    if not isinstance(name, str | None):
        raise SotddError(f"split is {described(split)}: expected the name of a split, or None.")
    return name
