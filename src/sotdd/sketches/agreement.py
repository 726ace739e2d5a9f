"""Whether two sketches, or parts of one, were seen through the same projections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sotdd.basics.errors import SotddError


def refuse_other_recipes(a: Mapping[str, Any], name_of_a: str, b: Mapping[str, Any], name_of_b: str, what: str) -> None:
    """Refuse recipes whose fingerprints differ, and say by which settings."""
    if name_of_a == name_of_b:
        return
    differences = _differences(a, b)
    how = "; ".join(f"{name} is {left} and {right}" for name, left, right in differences[:3])
    raise SotddError(
        f"{what} are through different projections: "
        + (how or "the same settings drew other numbers, with other versions of libraries")
        + ". Use the same for both."
    )


def _differences(a: Mapping[str, Any], b: Mapping[str, Any], inside: str = "") -> list[tuple[str, str, str]]:
    """Settings that differ, by name, with both values."""
    found = []
    for name in [*a, *(name for name in b if name not in a)]:
        left, right = a.get(name), b.get(name)
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            found += _differences(left, right, f"{name} ")
        elif left != right:
            found.append((f"{inside}{name}", _short(left), _short(right)))
    return found


def _short(value: object) -> str:
    text = repr(dict(value) if isinstance(value, Mapping) else value)
    return text if len(text) <= 60 else f"{text[:57]}..."
