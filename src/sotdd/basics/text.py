"""Words for people."""

from __future__ import annotations


def counted(n: int, one: str, several: str) -> str:
    """A count with its noun in the singular or the plural.

    Examples
    --------
    >>> from sotdd.basics.text import counted
    >>> counted(1, "class", "classes"), counted(1234, "class", "classes")
    ('1 class', '1,234 classes')
    """
    return f"{n:,} {one if n == 1 else several}"
