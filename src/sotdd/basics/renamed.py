"""Settings with a new name: the old name still works for one release, with a warning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import Any

from sotdd.basics.errors import SotddError


def renamed(settings: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    """The settings with the old name replaced by the new one; the warning points at the caller's line.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     renamed({"colour": "red"}, "colour", "hue")
    {'hue': 'red'}
    """
    if old not in settings:
        return dict(settings)
    if new in settings:
        raise SotddError(f"{old} is the old name of {new}, and both are given: leave {old} out.")
    warn_of(old, new)
    return {new if name == old else name: value for name, value in settings.items()}


def warn_of(old: str, new: str) -> None:
    """Warn about an old name, at the line outside this package that used it."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "sotdd":
        frame, level = frame.f_back, level + 1
    warnings.warn(
        f"{old}= is now called {new}=: please rename it, the old name will be removed.", FutureWarning, stacklevel=level
    )
