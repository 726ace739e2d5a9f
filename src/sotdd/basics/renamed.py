"""Settings that have a new name: the old one is taken for one more release, and warned about."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import Any

from sotdd.basics.errors import SotddError


def renamed(settings: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    """The settings by their names of today; whoever called from outside is told where to change the old one.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True):
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
    """Warn of an old name, at the line outside this package that used it."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "sotdd":
        frame, level = frame.f_back, level + 1
    warnings.warn(f"{old}= is called {new}= now, and will go: please rename it.", FutureWarning, stacklevel=level)
