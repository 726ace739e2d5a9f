"""Results in order and in format strings: what works, and one line where it does not."""

from __future__ import annotations

from typing import ClassVar, NoReturn

from sotdd.basics.checks import described
from sotdd.basics.errors import SotddError


class Incomparable(SotddError, TypeError):  # noqa: N818  # the name says what is wrong; Python raises a TypeError here
    """Raised where results have no order, or no number to format."""


class Unordered:
    """Refuses to be ordered, or formatted as a number, and says what to take instead."""

    _instead: ClassVar[str] = ""

    def __format__(self, spec: str) -> str:
        """As text; it is not one number."""
        if not spec:
            return str(self)
        raise Incomparable(f"format {spec!r} is for one number, and {self._called()} is more: {self._instead}.")

    def __lt__(self, other: object) -> bool:
        """Refuse."""
        self._refuse()

    def __le__(self, other: object) -> bool:
        """Refuse."""
        self._refuse()

    def __gt__(self, other: object) -> bool:
        """Refuse."""
        self._refuse()

    def __ge__(self, other: object) -> bool:
        """Refuse."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise Incomparable(f"{self._called()} has no order: {self._instead}.")

    def _called(self) -> str:
        name = type(self).__name__
        return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def refuse_order(one: object, other: object) -> NoReturn:
    """Refuse to order a distance and something else."""
    raise Incomparable(
        f"a distance cannot be ordered with {described(other)}: compare it with a number or with another distance."
    )
