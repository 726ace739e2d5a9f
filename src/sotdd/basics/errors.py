"""Errors for input that cannot be used, checks of settings that raise them, and libraries that may be missing."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from numbers import Real
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.remarks import Naming, Remarks, in_python
from sotdd.basics.text import one_line

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# No count is larger: work for more would not end, and their products would leave 64 bits.
LARGEST_COUNT = 10**9

# Of others' errors no more characters are quoted.
_LINE = 200


class SotddError(ValueError):
    """Raised for input that cannot be used; one line says what arrived and what to do.

    Examples
    --------
    >>> import sotdd
    >>> try:
    ...     sotdd.distance([[0.0], [1.0]], [[0.0, 1.0]])
    ... except sotdd.SotddError as error:
    ...     print(error)
    dataset 'b' has 2 features but dataset 'a' has 1: give all the same features.

    What an error is about is kept as a value, so that the command line can call it by the name of its option.

    >>> SotddError("is 0: expected an integer of at least 1.", setting="n_projections")
    SotddError('n_projections is 0: expected an integer of at least 1.')
    >>> SotddError("the features are too large for float32", use={"scale": "pooled"})
    SotddError("the features are too large for float32: use scale='pooled'.")
    >>> SotddError("'b' has no column 'age', unlike 'a': choose others", by=("features", "exclude"))
    SotddError("'b' has no column 'age', unlike 'a': choose others by features or exclude.")

    So is what it found out about the columns of a table, as ``remarks``.
    """

    def __init__(
        self,
        message: object = "",
        *,
        setting: str | None = None,
        use: Mapping[str, object] | None = None,
        by: Sequence[str] = (),
        remarks: Remarks = (),
    ) -> None:
        self.message: object = message
        self.setting: str | None = setting
        self.use: Mapping[str, object] | None = use
        self.by: Sequence[str] = by
        self.remarks: Remarks = remarks
        super().__init__(self.say(in_python))

    def say(self, naming: Naming) -> str:
        """The line: the setting it is about first, what arrived, and the settings to use instead or to mend it by."""
        subject = "" if self.setting is None else f"{naming(self.setting)} "
        advice = ", ".join(naming(name, value) for name, value in (self.use or {}).items())
        means = f" by {' or '.join(map(naming, self.by))}." if self.by else f": use {advice}." if advice else ""
        return one_line(f"{subject}{self.message}{means}")  # names in it are those of the data


class OutOfRange(SotddError):  # noqa: N818  # the name says what is wrong
    """Raised for data too far apart to measure: a distance or a power of it overflows."""


class UnknownSetting(SotddError, TypeError):  # noqa: N818  # as above; Python raises a TypeError for unknown keywords
    """Raised for a setting that does not exist."""


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


# ------------------------------------------------------------------ checks of settings


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


def check_seed(seed: object) -> int:
    """Return a seed as an integer, from an integer or a generator, or refuse."""
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(2**63))
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or seed < 0:
        raise SotddError(
            f"is {describe(seed)}: expected an integer of at least 0 or a NumPy Generator.", setting="seed"
        )
    return int(seed)


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


# ------------------------------------------------------------------ optional libraries


def require(module: str, purpose: str, install: str) -> ModuleType:
    """Import an optional dependency, or say what it is for and how to install it.

    One that is there and cannot be loaded, for want of memory or of a library of its own, is not called missing.
    """
    try:
        return import_module(module)
    except (ImportError, OSError, AttributeError, MemoryError) as error:
        if isinstance(error, ModuleNotFoundError) and error.name in (module, module.partition(".")[0]):
            raise SotddError(f"{purpose} needs {module}, which is not installed: pip install {install}") from error
        found = f"{purpose} needs {module}, which is installed but cannot be loaded ({first_line(error)})"
        raise SotddError(f"{found}: free memory, or pip install --upgrade {install}") from error


def picture(name: str) -> Callable[..., Axes]:
    """The function of `sotdd.reports` that draws ``name``.

    Pictures know the results, so a plain import of them here would be circular: they are looked up when asked for.
    """
    require("matplotlib", "a picture", "'sotdd[report]'")
    draw: Callable[..., Axes] = getattr(import_module("sotdd.reports.plots"), f"draw_{name}")
    return draw


class Result:
    """What a call returns: a notebook shows it as a table, in its own colours, light or dark."""

    def _repr_html_(self) -> str | None:
        """For notebooks, by the templates of pages; None, and so plain text, where what makes them is missing."""
        if find_spec("jinja2") is None:
            return None
        written: str = import_module("sotdd.reports.page").write_result(self)
        return written


def make_frame(data: object, **names: Sequence[object]) -> pd.DataFrame:
    """Numbers, or rows by column, as a frame of pandas; ``index`` and ``columns`` name its sides."""
    frame: pd.DataFrame = require("pandas", "a data frame", "pandas").DataFrame(data, **names)
    return frame
