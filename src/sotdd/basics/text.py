"""Numbers, lists and tables as text."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Sequence

import numpy as np


def counted(count: int, one: str, several: str | None = None) -> str:
    """A number with its noun: 1 class, 1,234 classes.

    Examples
    --------
    >>> counted(1, "class", "classes"), counted(1234, "point")
    ('1 class', '1,234 points')
    """
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def with_error(value: float, stderr: float) -> str:
    """A value and its standard error, with two digits of the error.

    Examples
    --------
    >>> with_error(0.50712, 0.01234), with_error(0.50712, float("nan"))
    ('0.507 ± 0.012', '0.5071')
    """
    if not math.isfinite(stderr):
        return f"{value:.4g}"
    if stderr == 0:
        return f"{value:.4g} ± 0"
    digits = 1 - math.floor(math.log10(stderr))
    if digits <= 6 and value < 1e6:
        shown = max(0, digits)
        return f"{round(value, digits):.{shown}f} ± {round(stderr, digits):.{shown}f}"
    return f"{value:.4g} ± {stderr:.2g}"


def aligned(rows: Sequence[Sequence[str]], to_the_right: Collection[int] = ()) -> list[str]:
    r"""A table as lines of aligned columns; those in ``to_the_right`` are right-aligned.

    Examples
    --------
    >>> print("\n".join(aligned([("name", "points"), ("mine", "9"), ("other", "1,797")], to_the_right=[1])))
    name   points
    mine        9
    other   1,797
    """
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.rjust(width) if column in to_the_right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names separated by commas; of many, only the first ``most``.

    Examples
    --------
    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest:,} more" if rest > 0 else "")


def json_number(number: float) -> float | None:
    """JSON has no NaN and no infinity."""
    return number if math.isfinite(number) else None


def json_label(label: Hashable) -> str | int | float | bool | None:
    """Labels that JSON cannot hold are written as text."""
    if isinstance(label, np.generic) and not isinstance(label, (np.datetime64, np.timedelta64)):
        label = label.item()
    plain = isinstance(label, (str, int, bool)) or (isinstance(label, float) and math.isfinite(label))
    return label if plain else str(label)  # type: ignore[return-value]  # plain is one of these
