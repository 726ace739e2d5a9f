"""Conditions that entries are chosen by: a small part of SQL.

LanceDB reads a condition up to the first semicolon and ignores the rest. It knows functions that take any amount of
memory, such as ``repeat``, and long chains of operators overflow its stack, which ends the process. So a condition is
read here first, word by word, and what it does not need is refused.
"""

from __future__ import annotations

import re

from sotdd.basics.checks import described
from sotdd.basics.errors import SotddError
from sotdd.basics.text import counted
from sotdd.sketches.catalog.entries import is_unicode

_PIECE = re.compile(
    r"""
    (?P<space>\s+)
    | (?P<refused>--|/\*)                                   # comments
    | (?P<text>'(?:[^']|'')*')
    | (?P<column>"[^"]+"|`[^`]+`)
    | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<word>[A-Za-z_]\w*)
    | (?P<sign><=|>=|<>|!=|[=<>+\-*/%(),])
    """,
    re.VERBOSE,
)

# What may stand before a parenthesis: functions whose results are no larger than what they are given, and SQL's words.
_FUNCTIONS = (
    "abs", "cast", "ceil", "coalesce", "contains", "date_part", "date_trunc", "ends_with", "floor", "length", "lower",
    "regexp_like", "regexp_match", "round", "starts_with", "trim", "upper",
)  # fmt: skip
_WORDS = ("and", "between", "escape", "ilike", "in", "is", "like", "not", "or")

# LanceDB's stack ends at about 800 operators in a row, that of a process with small stacks sooner.
_MOST_SIGNS = 500
_MOST_CHARACTERS = 1_000_000
_SHOWN = 200


def checked_condition(where: object) -> str | None:
    """Return an SQL condition that LanceDB can be given, None for none, or refuse.

    Examples
    --------
    >>> from sotdd.sketches.catalog.condition import checked_condition
    >>> checked_condition("year > 2020 AND lower(source) = 'web'")
    "year > 2020 AND lower(source) = 'web'"
    >>> try:
    ...     checked_condition("year > 2020; DROP TABLE sketches")
    ... except ValueError as error:
    ...     print(error)
    where is 'year > 2020; DROP TABLE sketches', which has ';' at character 12: expected one SQL condition and no more.
    """
    if where is None:
        return None
    if not isinstance(where, str):
        raise SotddError(f'where is {described(where)}: expected SQL, such as "n_points > 1000".')
    if not is_unicode(where):
        raise SotddError(f"where is {shown_condition(where)}: expected text that can be written as UTF-8.")
    if len(where) > _MOST_CHARACTERS:
        raise SotddError(f"where has {len(where):,} characters: expected at most {_MOST_CHARACTERS:,}.")
    pieces = _pieces(where)
    if not pieces:
        raise SotddError('where is empty: expected SQL, such as "n_points > 1000", or None for all entries.')
    _refuse_beyond(where, pieces)
    return where


def shown_condition(where: str) -> str:
    """A condition in quotes, for messages; of a long one the beginning."""
    return repr(where if len(where) <= _SHOWN else f"{where[:_SHOWN]}…")


def _pieces(where: str) -> list[tuple[str, str]]:
    """The kinds and the texts of the pieces of a condition, without spaces."""
    pieces, place = [], 0
    while place < len(where):
        match = _PIECE.match(where, place)
        if match is None or match.lastgroup == "refused":
            odd = where[place] if match is None else match.group()
            expected = "a closing quote" if odd in "'\"`" else "one SQL condition and no more"
            raise SotddError(
                f"where is {shown_condition(where)}, which has {odd!r} at character {place + 1:,}: expected {expected}."
            )
        if match.lastgroup != "space":
            pieces.append((str(match.lastgroup), match.group()))
        place = match.end()
    return pieces


def _refuse_beyond(where: str, pieces: list[tuple[str, str]]) -> None:
    """Refuse too many signs, parentheses without a partner, and functions that are not known to be harmless."""
    signs = sum(kind in ("word", "column") or (kind == "sign" and text != ",") for kind, text in pieces)
    if signs > _MOST_SIGNS:
        raise SotddError(
            f"where has {counted(signs, 'word or sign', 'words and signs')}: expected at most {_MOST_SIGNS}, and "
            "name IN ('a', 'b', ...) for a long list."
        )
    depth = 0
    for (kind, text), following in zip(pieces, [*(text for _, text in pieces[1:]), ""], strict=True):
        depth += (text == "(") - (text == ")")
        if depth < 0:
            break
        if kind in ("word", "column") and following == "(" and text.lower() not in (*_FUNCTIONS, *_WORDS):
            raise SotddError(
                f"where is {shown_condition(where)}, which calls {text}: expected only {', '.join(_FUNCTIONS)}."
            )
    if depth:
        raise SotddError(f"where is {shown_condition(where)}, whose parentheses do not match: expected pairs of them.")
