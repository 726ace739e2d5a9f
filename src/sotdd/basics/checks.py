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

# Longer integers are not written out in errors.
_BITS = 1024


def check_count(value: object, name: str, most: int = LARGEST_COUNT) -> int:
    """Return a whole number from one to ``most``, or refuse."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
        raise SotddError(f"{name} is {described(value)}: expected an integer of at least 1.")
    if value > most:
        raise SotddError(f"{name} is {described(value)}: expected at most {most:,}.")
    return int(value)


def check_flag(value: object, name: str) -> bool:
    """Return a truth value, or refuse."""
    if not isinstance(value, (bool, np.bool_)):
        raise SotddError(f"{name} is {described(value)}: expected True or False.")
    return bool(value)


def check_name(name: object) -> None:
    """Refuse a name that is neither text nor None."""
    if not isinstance(name, str | None):
        raise SotddError(f"name is {described(name)}: expected text, or None.")


def check_draw(rng: object, n_projections: object, n_features: object = 1) -> None:
    """Refuse what a law cannot draw from or for."""
    if not isinstance(rng, np.random.Generator):
        raise SotddError(f"rng is {described(rng)}: expected a NumPy Generator, such as np.random.default_rng(0).")
    check_count(n_projections, "n_projections")
    check_count(n_features, "n_features")


def as_array(values: object, name: str) -> NDArray[Any]:
    """Anything that forms an array, as an array, or refuse."""
    try:
        return np.asarray(values)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise SotddError(f"{name} does not form an array ({first_line(error)}): expected numbers.") from error


def check_positive(value: object, name: str, what: str = "a positive number") -> float:
    """Return a finite positive number, or refuse."""
    number = as_number(value)
    if number is None or not 0 < number < math.inf:
        raise SotddError(f"{name} is {described(value)}: expected {what}.")
    return number


def check_level(level: object, such_as: float = 0.95) -> float:
    """Return a level of confidence or of a test, strictly between zero and one, or refuse."""
    share = as_number(level)
    if share is None or not 0 < share < 1:
        raise SotddError(f"level is {described(level)}: expected a number between 0 and 1, such as {such_as:g}.")
    return share


def check_choice(value: object, name: str, choices: Sequence[str]) -> Any:  # noqa: ANN401  # one of the choices
    """Return one of several words, or refuse."""
    if isinstance(value, str) and value in choices:
        return value
    *others, last = map(repr, choices)
    raise SotddError(f"{name} is {described(value)}: expected {', '.join(others)} or {last}.")


def check_order(p: object) -> float:
    """Return the order of transport as a float of at least one, or refuse."""
    number = as_number(p)
    if number is None or not 1 <= number < math.inf:
        raise SotddError(f"p is {described(p)}: expected a finite number of at least 1.")
    return number


def check_seed(seed: object) -> int:
    """Return a seed as an integer, from an integer or a generator, or refuse."""
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(2**63))
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or seed < 0:
        raise SotddError(f"seed is {described(seed)}: expected an integer of at least 0 or a NumPy Generator.")
    return int(seed)


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
            raise SotddError(f"{expected}, not {described(law)}.") from None


def refuse_beyond_float64(ranges: NDArray[np.float64]) -> None:
    """Refuse features whose differences overflow."""
    if not np.isfinite(ranges).all():
        raise SotddError(
            f"features that differ by {np.max(ranges):.3g} cannot be scaled in float64: bring them to a usual range "
            "first."
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


def described(value: object) -> str:
    """A value in a few words, for errors: numbers and short text as they are, others by their type."""
    if isinstance(value, type):
        return f"the class {value.__name__} itself"
    if isinstance(value, int) and value.bit_length() > _BITS:  # Python refuses to write very long ones
        return f"an integer of {value.bit_length():,} bits"
    if isinstance(value, (str, int, float, type(None), np.integer, np.floating)):
        shown = repr(value)
        return shown if len(shown) <= 60 else f"{shown[:57]}..."
    return f"a {type(value).__name__}"


def first_line(error: BaseException) -> str:
    """The first line of an error's message, or its type if it has none."""
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
