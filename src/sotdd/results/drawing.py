"""The one way up: results that can draw themselves reach the room with the pictures through here.

Results lie below the pictures, which know them; a plain import upwards would be circular. So a
picture is looked up by its name at the moment it is asked for, and results neither load nor need
matplotlib until then.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from sotdd.basics.errors import require


def picture(name: str) -> Callable[..., Any]:
    """The function that draws ``name``, from the room ``sotdd.pictures``."""
    require("matplotlib", "a picture", "'sotdd[report]'")
    draw: Callable[..., Any] = getattr(import_module("sotdd.pictures.plots"), f"draw_{name}")
    return draw
