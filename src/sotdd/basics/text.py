"""Numbers, names, lists and tables as text.

Names, labels and paths come with the data, and what is in them is not ours: control codes, line breaks, letters that
turn the direction of writing, a hundred thousand characters. `show`, `quote` and `one_line` make them fit to print.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Collection, Hashable, Sequence

import numpy as np

# The most characters of a name, and of a message, that are printed.
_NAME = 160
_MESSAGE = 1000
_LONG_WORD = re.compile(rf"\S{{{_NAME + 1},}}")
# Joiners shape letters and pictures, and show nothing by themselves.
_JOINERS = "\u200c\u200d"


def show(name: object, most: int = _NAME) -> str:
    r"""A name as it is printed: in one line, control codes written out, cut in the middle if it is long.

    Examples
    --------
    >>> show("caf\u00e9"), show("red\x1b[31m\n"), show("0123456789", most=7)
    ('café', 'red\\x1b[31m\\n', '012…789')
    """
    try:
        text = str(name)
    except Exception:  # noqa: BLE001  # a label may be an object of the user's, which raises what it likes
        text = f"a {type(name).__name__}"
    return write_out(_cut(text, most))


def quote(name: object) -> str:
    """A name in quotes, as messages have it."""
    return repr(_cut(str(name), _NAME))


def one_line(message: object) -> str:
    r"""A message as it is printed: in one line, with long names in it, and itself, cut in the middle.

    Examples
    --------
    >>> one_line("there is no file a\nb: check the path.")
    'there is no file a\\nb: check the path.'
    """
    text = _LONG_WORD.sub(lambda word: _cut(word[0], _NAME), str(message))
    return _cut(write_out(_cut(text, _MESSAGE)), _MESSAGE)


def write_out(text: str, keep: str = "") -> str:
    """Text with all that a terminal would obey, or hide, written out as in Python's strings; but for ``keep``."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter in keep or _shows(letter) else letter.encode("unicode_escape").decode() for letter in text
    )


def _shows(letter: str) -> bool:
    return letter.isprintable() or letter in _JOINERS or unicodedata.category(letter) == "Zs"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most // 2]}…{text[-(most - most // 2 - 1) :]}"


def say_count(count: int, one: str, several: str | None = None) -> str:
    """A number with its noun: 1 class, 1,234 classes.

    Examples
    --------
    >>> say_count(1, "class", "classes"), say_count(1234, "point")
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


def align_rows(rows: Sequence[Sequence[str]], to_the_right: Collection[int] = ()) -> list[str]:
    r"""A table as lines of aligned columns; those in ``to_the_right`` are right-aligned. Cells are `show`.

    Examples
    --------
    >>> print("\n".join(align_rows([("name", "points"), ("mine", "9"), ("other", "1,797")], to_the_right=[1])))
    name   points
    mine        9
    other   1,797
    """
    rows = [[show(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.rjust(width) if column in to_the_right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def join_names(names: Sequence[object], most: int = 8) -> str:
    """Names separated by commas, as they are `show`; of many, only the first ``most``.

    Examples
    --------
    >>> join_names(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    rest = len(names) - most
    return ", ".join(map(show, names[:most])) + (f" and {rest:,} more" if rest > 0 else "")


def json_number(number: float) -> float | None:
    """JSON has no NaN and no infinity."""
    return number if math.isfinite(number) else None


def json_label(label: Hashable) -> str | int | float | bool | None:
    """Labels that JSON cannot hold are written as text."""
    if isinstance(label, np.generic) and not isinstance(label, (np.datetime64, np.timedelta64)):
        label = label.item()
    plain = isinstance(label, (str, int, bool)) or (isinstance(label, float) and math.isfinite(label))
    return label if plain else str(label)  # type: ignore[return-value]  # plain is one of these
