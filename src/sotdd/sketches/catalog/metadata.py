"""Names and metadata of entries: what is allowed, and how SQL sees them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from sotdd.basics.checks import described
from sotdd.basics.errors import SotddError

Value: TypeAlias = str | int | float | bool | None
Metadata: TypeAlias = Mapping[str, Value]

# The columns that every entry has.
OWN = ("name", "n_points", "n_classes", "added", "metadata", "token", "vector", "sketch")

# Numbers are filtered as float64, which holds whole numbers up to here.
_LARGEST = 2**53
_KEY = re.compile(r"[a-z][a-z0-9_]*")


def checked_name(name: object) -> str:
    """Return the name of an entry, or refuse."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise SotddError(f"the name of an entry is {described(name)}: expected text that can be printed.")
    return name


def checked_metadata(metadata: Mapping[str, object]) -> dict[str, Value]:
    """Return metadata as plain values, or refuse.

    Examples
    --------
    >>> import numpy as np
    >>> from sotdd.sketches.catalog.metadata import checked_metadata
    >>> checked_metadata({"source": "web", "year": np.int64(2024), "clean": True})
    {'source': 'web', 'year': 2024, 'clean': True}
    """
    found: dict[str, Value] = {}
    for key, value in metadata.items():
        if not isinstance(key, str) or not _KEY.fullmatch(key) or key in OWN:
            taken = ", which every entry has" if key in OWN else ""
            raise SotddError(
                f"metadata cannot be called {described(key)}{taken}: expected lower-case letters, digits and _."
            )
        plain = value.item() if isinstance(value, np.generic) else value
        if not isinstance(plain, (str, int, float, bool, type(None))):
            raise SotddError(f"metadata {key!r} is {described(value)}: expected text, a number, True, False or None.")
        too_large = isinstance(plain, int) and abs(plain) > _LARGEST
        if too_large or (isinstance(plain, float) and not math.isfinite(plain)):
            raise SotddError(f"metadata {key!r} is {described(value)}: expected a finite number up to 2^53.")
        found[key] = plain
    return found


def kind(value: Value) -> str | None:
    """What a value is to SQL; None for one that is missing.

    Examples
    --------
    >>> from sotdd.sketches.catalog.metadata import kind
    >>> [kind(value) for value in ("web", 2024, 0.5, True, None)]
    ['text', 'number', 'number', 'truth', None]
    """
    if value is None:
        return None
    return "text" if isinstance(value, str) else "truth" if isinstance(value, bool) else "number"


def to_text(metadata: Metadata) -> str:
    """Metadata as kept: JSON, which tells 2 from 2.0 and None from nothing."""
    return json.dumps(dict(metadata), ensure_ascii=False, allow_nan=False)


def quoted(text: str) -> str:
    """Text as an SQL literal.

    Examples
    --------
    >>> from sotdd.sketches.catalog.metadata import quoted
    >>> print(quoted("it's"))
    'it''s'
    """
    return "'" + text.replace("'", "''") + "'"
