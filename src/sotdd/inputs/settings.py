"""How a dataset is to be opened, checked once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sotdd.basics.checks import check_count, described
from sotdd.basics.errors import SotddError

if TYPE_CHECKING:
    from sotdd.inputs.encode import Encoder

Name = str | int


@dataclass(frozen=True)
class Settings:
    """What `open_dataset` was asked for.

    ``label_given`` tells a label of None, which asks for one class, from none given, which leaves
    the choice to the loader.
    """

    label: Name | None = None
    label_given: bool = False
    features: tuple[Name, ...] | None = None
    image_size: tuple[int, int] | None = None
    image_mode: str | None = None
    transform: Callable[[Any], Any] | None = None
    encoder: Encoder | None = None
    bins: int | None = None
    drop_missing: bool = False
    max_rows: int | None = None
    seed: int = 0
    broken: str = "refuse"
    split: str | None = None

    def refuse(self, what: str, *names: str) -> None:
        """Refuse settings that mean nothing to this kind of source."""
        plain = Settings()
        for name in names:
            given = self.label_given if name == "label" else getattr(self, name) != getattr(plain, name)
            if given:
                raise SotddError(f"{name} is given but {what}: leave it out.")

    @property
    def unlabelled(self) -> bool:
        """Whether all points are to be one class."""
        return self.label_given and self.label is None


def checked_features(features: object) -> tuple[Name, ...] | None:
    """One name or several as a tuple."""
    if features is None:
        return None
    names = (features,) if isinstance(features, (str, int)) else features
    if (
        not isinstance(names, (list, tuple))
        or not names
        or not all(isinstance(name, (str, int)) and not isinstance(name, bool) for name in names)
    ):
        raise SotddError(f"features is {described(features)}: expected the name of a column, or a list of names.")
    return tuple(names)


def checked_label(label: object) -> Name | None:
    """The name of the labels, or None for one class."""
    if label is not None and (not isinstance(label, (str, int)) or isinstance(label, bool)):
        raise SotddError(f"label is {described(label)}: expected the name of a column, or None for one class.")
    return label


def checked_image_size(size: object) -> tuple[int, int] | None:
    """(height, width), of which one number makes a square."""
    if size is None:
        return None
    sides = (size, size) if isinstance(size, int) else size
    if not isinstance(sides, (tuple, list)) or len(sides) != 2:
        raise SotddError(f"image_size is {described(size)}: expected (height, width) or one number for a square.")
    height, width = (check_count(side, "image_size") for side in sides)
    return height, width


def checked_choice(value: object, name: str, choices: tuple[object, ...]) -> Any:  # noqa: ANN401  # one of the choices
    """One of a few words."""
    if value not in choices:
        raise SotddError(f"{name} is {described(value)}: expected one of {', '.join(map(repr, choices))}.")
    return value


def checked_callable(value: object, name: str) -> Callable[[Any], Any] | None:
    """A function, or None."""
    if value is not None and (not callable(value) or isinstance(value, type)):
        raise SotddError(f"{name} is {described(value)}: expected a function of a batch.")
    return value


def checked_count(value: object, name: str) -> int | None:
    """A whole number of at least one, or None."""
    return None if value is None else check_count(value, name)
