"""Arguments that remember whether they were given.

`distance` draws projections or takes given ones; in the second case the drawing arguments
may not be given too. Their defaults show in the signature as what they stand for, and can
still be told from the same value passed by a caller.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, cast

_T = TypeVar("_T")


@dataclass(frozen=True)
class _Default:
    value: object

    def __repr__(self) -> str:
        return repr(self.value)


def default(value: _T) -> _T:
    """Mark a default, which keeps its type for the type checker."""
    return cast("_T", _Default(value))


def value_of(argument: _T) -> _T:
    """An argument as passed, or what its default stands for."""
    return cast("_T", argument.value) if isinstance(argument, _Default) else argument


def given(**arguments: object) -> dict[str, object]:
    """Those arguments that a caller passed."""
    return {name: value for name, value in arguments.items() if not isinstance(value, _Default)}
