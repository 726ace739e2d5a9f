"""The errors that the package raises for input it cannot use."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from sotdd.basics.text import one_line


class SotddError(ValueError):
    """Raised for input that cannot be used; one line says what arrived and what to do.

    Examples
    --------
    >>> import sotdd
    >>> try:
    ...     sotdd.distance([[0.0], [1.0]], [[0.0, 1.0]])
    ... except sotdd.SotddError as error:
    ...     print(error)
    dataset 'b' has 2 features but dataset 'a' has 1: every dataset needs the same features.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(one_line(message))  # names in it are those of the data


class OutOfRange(SotddError):  # noqa: N818  # the name says what is wrong
    """Raised for data too far apart to measure: a distance or a power of it overflows."""


class UnknownSetting(SotddError, TypeError):  # noqa: N818  # as above; Python raises a TypeError for unknown keywords
    """Raised for a setting that does not exist."""


def require(module: str, purpose: str, install: str) -> ModuleType:
    """Import an optional dependency, or say what it is for and how to install it.

    One that is there and cannot be loaded, for want of memory or of a library of its own, is not called missing.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] == module.partition(".")[0]:
            raise SotddError(f"{purpose} needs {module}, which is not installed: pip install {install}") from error
        raise _unloadable(module, purpose, install, error) from error
    except MemoryError as error:
        raise SotddError(f"{purpose} needs {module}, and there is too little memory to load it: free some.") from error
    except (ImportError, OSError, AttributeError) as error:
        raise _unloadable(module, purpose, install, error) from error


def _unloadable(module: str, purpose: str, install: str, error: Exception) -> SotddError:
    why = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
    return SotddError(
        f"{purpose} needs {module}, which is installed but cannot be loaded ({why}): pip install --upgrade {install}"
    )
