"""Checks of settings that several functions share."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError

# No count is larger: work for more would not end, and their products would leave 64 bits.
LARGEST_COUNT = 10**9

# Of others' errors no more characters are quoted.
_LINE = 200


def check_count(value: object, name: str, most: int = LARGEST_COUNT) -> int:
    """Return a whole number from one to ``most``, or refuse."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
        raise SotddError(f"is {describe(value)}: expected an integer of at least 1.", setting=name)
    if value > most:
        raise SotddError(f"is {describe(value)}: expected at most {most:,}.", setting=name)
    return int(value)


def check_flag(value: object, name: str) -> bool:
    """Return a truth value, or refuse."""
    if not isinstance(value, (bool, np.bool_)):
        raise SotddError(f"is {describe(value)}: expected True or False.", setting=name)
    return bool(value)


def check_name(name: object) -> None:
    """Refuse a name that is neither text nor None."""
    if not isinstance(name, str | None):
        raise SotddError(f"is {describe(name)}: expected text, or None.", setting="name")


def as_array(values: object, name: str) -> NDArray[Any]:
    """Anything that forms an array, as an array, or refuse."""
    try:
        return np.asarray(values)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise SotddError(f"does not form an array ({first_line(error)}): expected numbers.", setting=name) from error


def check_positive(value: object, name: str, what: str = "a positive number") -> float:
    """Return a finite positive number, or refuse."""
    return _check_between(value, name, 0, math.inf, what)


def check_limit(value: object, name: str) -> float | None:
    """Return a finite positive number, or None for no limit, or refuse."""
    return None if value is None else check_positive(value, name, "a positive number or None")


def check_level(level: object, such_as: float = 0.95, name: str = "level") -> float:
    """Return a level of confidence or of a test, strictly between zero and one, or refuse."""
    return _check_between(level, name, 0, 1, f"a number between 0 and 1, such as {such_as:g}")


def check_choice(value: object, name: str, choices: Sequence[str]) -> Any:  # noqa: ANN401  # one of the choices
    """Return one of several words, or refuse."""
    if isinstance(value, str) and value in choices:
        return value
    *others, last = map(repr, choices)
    raise SotddError(f"is {describe(value)}: expected {', '.join(others)} or {last}.", setting=name)


def check_order(p: object) -> float:
    """Return the order of transport as a float of at least one, or refuse."""
    return _check_between(p, "p", math.nextafter(1, 0), math.inf, "a finite number of at least 1")


def _check_between(value: object, name: str, low: float, high: float, expected: str) -> float:
    number = as_number(value)
    if number is None or not low < number < high:
        raise SotddError(f"is {describe(value)}: expected {expected}.", setting=name)
    return number


def check_law(law: object, methods: dict[str, int], expected: str) -> None:
    """Refuse an object without these methods, each of which takes this many arguments.

    This also refuses a class in place of an instance, and a law of another kind.
    """
    for name, count in methods.items():
        method = getattr(law, name, None)
        try:
            if isinstance(law, type) or not callable(method):
                raise TypeError
            inspect.signature(method).bind(*range(count))
        except (TypeError, ValueError):
            raise SotddError(f"{expected}, not {describe(law)}.") from None


def refuse_beyond_float64(ranges: NDArray[np.float64], *, inverse: bool = False) -> None:
    """Refuse features whose differences overflow, or are so small that their inverse does."""
    with np.errstate(over="ignore"):
        usable = np.isfinite(1 / ranges if inverse else ranges).all()
    if not usable:
        raise SotddError(
            f"features that differ by {np.min(ranges) if inverse else np.max(ranges):.3g} cannot be scaled in float64: "
            "bring them to a usual range first."
        )


def as_number(value: object) -> float | None:
    """A real number as a float; None for NaN, for numbers too large for a float, and for anything else."""
    if not isinstance(value, (Real, np.bool_)) or isinstance(value, (bool, np.bool_)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return None if math.isnan(number) else number


def describe(value: object) -> str:
    """A value in a few words, for errors: numbers and short text as they are, others by their type."""
    if isinstance(value, type):
        return f"the class {value.__name__} itself"
    if isinstance(value, int) and value.bit_length() > 1024:  # Python refuses to write very long ones
        return f"an integer of {value.bit_length():,} bits"
    if isinstance(value, (str, int, float, type(None), np.integer, np.floating)):
        shown = repr(value)
        return shown if len(shown) <= 60 else f"{shown[:57]}..."
    return f"a {type(value).__name__}"


def first_line(error: BaseException) -> str:
    """The first line of an error's message, or its type if it has none; where Arrow quotes itself, the cause alone."""
    line = (str(error).splitlines() or [type(error).__name__])[0].rpartition(": Invalid: ")[2]
    return line.rstrip(". ") if len(line) <= _LINE else f"{line[: _LINE - 3]}..."
