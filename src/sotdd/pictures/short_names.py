"""Names as a page shows them: those of files, made unique, and never longer than a line."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sotdd.basics.text import shown

# The most letters of a name.
LONGEST = 40


def short_names(names: Sequence[str], most: int = LONGEST) -> list[str]:
    """Of paths the last part, or as many parts as tell them apart; long names are cut in the middle.

    Examples
    --------
    >>> short_names(["data/2024/train.csv::label=kind", "data/2025/train.csv", "digits"])
    ['2024/train.csv', '2025/train.csv', 'digits']
    """
    parts = [_parts(name) for name in names]
    counts = [1] * len(names)
    for _ in range(max(map(len, parts), default=0)):
        shortened = _joined(parts, counts)
        again = {name for name in shortened if shortened.count(name) > 1}
        for place, name in enumerate(shortened):
            counts[place] += name in again and counts[place] < len(parts[place])
    return _told_apart([shown(name, most) for name in _joined(parts, counts)])


def _parts(name: str) -> list[str]:
    """A path in its parts; a name that is none stays whole."""
    path, _, options = name.partition("::")
    named = re.search(r"(?:^|,)name=([^,]+)", options)
    if named:
        return [named[1]]
    is_path = bool(options) or re.search(r"\.\w{1,8}$|^[~.]?/|://", path) is not None
    return [part for part in re.split(r"[/\\]+", path) if part] or [name] if is_path else [name]


def _joined(parts: list[list[str]], counts: list[int]) -> list[str]:
    return ["/".join(of[-count:]) for of, count in zip(parts, counts, strict=True)]


def _told_apart(names: list[str]) -> list[str]:
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return result
