"""What the columns of a table hold, where that decides which of them are features: ids and categories."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.inputs.loaders.arrow_columns import Column, Schema, arrow, plain_type

# Integers of which every one is different are taken for ids if there are this many, or if their column is called so.
FEWEST_IDS = 20
# So many that are all different are ids, whatever comes after them.
_ENOUGH = 1 << 24

_CALLED_ID = re.compile(r"(.*[\W_])?(id|ids|uuid|guid|idx|index|key)|unnamed: \d+|level_\d+|row(_?(nr|no|number))?|")
_CAMEL_ID = re.compile(r".*[a-z0-9](Id|ID)")


def are_ids(parts: Iterable[NDArray[Any]], column: str) -> bool | None:
    """Whether integers, which come in parts, are all different, and so many or called so that they are ids.

    None where they are all different, but too few to tell.

    Examples
    --------
    >>> import numpy as np
    >>> are_ids([np.arange(100), np.arange(200, 300)], "customer"), are_ids([np.arange(5)], "rooms")
    (True, None)
    >>> are_ids([np.array([7, 3, 9])], "customer_id"), are_ids([np.array([7, 3, 7])], "customer_id")
    (True, False)
    """
    seen: list[NDArray[Any]] = []
    count = 0
    for part in parts:
        distinct = np.unique(part)
        if len(distinct) < len(part):
            return False
        seen.append(distinct)
        count += len(part)
        if count >= _ENOUGH:
            break
    if not count or (len(seen) > 1 and len(np.unique(np.concatenate(seen))) < count):
        return False
    called_so = _CALLED_ID.fullmatch(column.lower()) or _CAMEL_ID.fullmatch(column)
    return True if count >= FEWEST_IDS or (called_so and count > 1) else None


class ArrowContents:
    """The columns of Arrow tables, as files have them.

    Parameters
    ----------
    schema
        The types of the columns.
    parts
        A function of the name of a column that yields it in parts; reading ends with the part that decides.
    """

    def __init__(self, schema: Schema, parts: Callable[[str], Iterable[Column]]) -> None:
        self._schema = schema
        self._parts = parts

    def is_empty(self, column: str) -> bool:
        """Whether a column of numbers has no value at all; files say so by its type."""
        if not arrow().types.is_null(plain_type(self._schema.field(column).type)):
            return False
        return all(part.null_count == len(part) for part in self._parts(column))

    def is_id(self, column: str) -> bool | None:
        """Whether a column of numbers holds integers, every one of them different; None for too few to tell."""
        library = arrow()
        if not library.types.is_integer(plain_type(self._schema.field(column).type)):
            return False

        def integers() -> Iterable[NDArray[Any]]:
            for part in self._parts(column):
                if part.null_count:
                    yield np.zeros(2, np.int64)  # as good as one that occurs again
                    return
                plain = part.cast(plain_type(part.type))
                yield np.asarray(plain)

        return are_ids(integers(), column)

    def values(self, column: str, most: int) -> tuple[str, ...] | None:
        """The distinct values of a column of text, in order; None if there are more than ``most``."""
        found: set[str] = set()
        for part in self._parts(column):
            plain = part.cast(plain_type(part.type))
            found.update(text for text in plain.unique().to_pylist() if text is not None)
            if len(found) > most:
                return None
        return tuple(sorted(found))
