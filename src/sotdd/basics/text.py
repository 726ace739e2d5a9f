"""Words that messages and tables share."""

from __future__ import annotations


def counted(count: int, one: str, several: str | None = None) -> str:
    """A number and what is counted: 1 class, 1,234 classes.

    Examples
    --------
    >>> counted(1, "class", "classes"), counted(1234, "point")
    ('1 class', '1,234 points')
    """
    return f"{count:,} {one if count == 1 else several or one + 's'}"
