"""Entries of a catalog: their names, their metadata, and their rows in the table."""

from __future__ import annotations

import json
import math
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import described
from sotdd.basics.errors import SotddError, require
from sotdd.sketches.catalog.recipe import CatalogRecipe
from sotdd.sketches.file import to_bytes
from sotdd.sketches.sketch import Sketch

Value: TypeAlias = str | int | float | bool | None
Metadata: TypeAlias = Mapping[str, Value]

# The columns that every entry has.
OWN_COLUMNS = ("name", "n_points", "n_classes", "added", "metadata", "token", "vector", "sketch")
# Those of them that an `Entry` is read from.
ENTRY_COLUMNS = ("name", "n_points", "n_classes", "added", "metadata")

# Numbers are filtered as float64, which holds whole numbers up to here.
_LARGEST = 2**53
_METADATA_KEY = re.compile(r"[a-z][a-z0-9_]{0,99}")
_LONGEST_NAME = 1000


@dataclass(frozen=True)
class Entry:
    """One entry of a catalog, without its sketch.

    Attributes
    ----------
    name
        The name of the entry.
    n_points, n_classes
        The sizes of its dataset.
    added
        When it was added, in UTC.
    metadata
        The metadata it was added with.
    """

    name: str
    n_points: int
    n_classes: int
    added: datetime
    metadata: Metadata

    @classmethod
    def from_table(cls, row: Mapping[str, Any]) -> Entry:
        """The entry in a row of the table, by columns."""
        return cls(row["name"], row["n_points"], row["n_classes"], row["added"], json.loads(row["metadata"]))

    def to_dict(self) -> dict[str, Any]:
        """The entry as JSON values."""
        return {
            "name": self.name,
            "n_points": self.n_points,
            "n_classes": self.n_classes,
            "added": self.added.isoformat(timespec="seconds"),
            "metadata": dict(self.metadata),
        }


@dataclass(frozen=True, eq=False)
class Row:
    """An entry with everything that the table keeps of it.

    Attributes
    ----------
    entry
        Its name, sizes and metadata.
    token
        Distinguishes this entry from a later one of the same name.
    vector
        What it is searched by.
    content
        Its sketch, as the content of a file.
    """

    entry: Entry
    token: str
    vector: NDArray[np.float32]
    content: bytes

    @classmethod
    def of(cls, name: str, sketch: Sketch, metadata: Metadata, recipe: CatalogRecipe) -> Row:
        """The row of a sketch that is added now."""
        entry = Entry(name, sketch.n_points, len(sketch.classes), datetime.now(UTC), metadata)
        return cls(entry, secrets.token_hex(16), recipe.vector(sketch), to_bytes(sketch))

    def metadata_kinds(self) -> dict[str, str]:
        """The kind of each value of the metadata but those that are None."""
        kinds = {key: kind_of(value) for key, value in self.entry.metadata.items()}
        return {key: kind for key, kind in kinds.items() if kind is not None}


def checked_name(name: object) -> str:
    """Return the name of an entry, or refuse."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise SotddError(f"the name of an entry is {described(name)}: expected text that can be printed.")
    if len(name) > _LONGEST_NAME:
        raise SotddError(
            f"the name of an entry has {len(name):,} characters: expected at most {_LONGEST_NAME:,}; keep more in its "
            "metadata."
        )
    return name


def checked_metadata(metadata: object) -> dict[str, Value]:
    """Return metadata as plain values, or refuse.

    Examples
    --------
    >>> import numpy as np
    >>> from sotdd.sketches.catalog.entries import checked_metadata
    >>> checked_metadata({"source": "web", "year": np.int64(2024), "clean": True})
    {'source': 'web', 'year': 2024, 'clean': True}
    """
    if not isinstance(metadata, Mapping):
        raise SotddError(f"the metadata of an entry is {described(metadata)}: expected values by name.")
    values: dict[str, Value] = {}
    for key, value in metadata.items():
        if not isinstance(key, str) or not _METADATA_KEY.fullmatch(key) or key in OWN_COLUMNS:
            taken = ", which every entry has" if key in OWN_COLUMNS else ""
            raise SotddError(
                f"metadata cannot be called {described(key)}{taken}: expected lower-case letters, digits and _, "
                "at most 100 of them."
            )
        plain = value.item() if isinstance(value, np.generic) else value
        if not isinstance(plain, (str, int, float, bool, type(None))):
            raise SotddError(f"metadata {key!r} is {described(value)}: expected text, a number, True, False or None.")
        if isinstance(plain, str) and not is_unicode(plain):
            raise SotddError(f"metadata {key!r} is {described(value)}: expected text that can be written as UTF-8.")
        too_large = isinstance(plain, int) and abs(plain) > _LARGEST
        if too_large or (isinstance(plain, float) and not math.isfinite(plain)):
            raise SotddError(f"metadata {key!r} is {described(value)}: expected a finite number up to 2^53.")
        values[key] = plain
    return values


def is_unicode(text: str) -> bool:
    """Whether text can be written as UTF-8: it has no halves of surrogate pairs, as undecoded file names do."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def kind_of(value: Value) -> str | None:
    """The kind of column that SQL keeps a value in; None for None.

    Examples
    --------
    >>> from sotdd.sketches.catalog.entries import kind_of
    >>> [kind_of(value) for value in ("web", 2024, 0.5, True, None)]
    ['text', 'number', 'number', 'truth', None]
    """
    if value is None:
        return None
    return "text" if isinstance(value, str) else "truth" if isinstance(value, bool) else "number"


def quoted(text: str) -> str:
    """Text as an SQL literal.

    Examples
    --------
    >>> from sotdd.sketches.catalog.entries import quoted
    >>> print(quoted("it's"))
    'it''s'
    """
    return "'" + text.replace("'", "''") + "'"


def to_arrow(rows: Sequence[Row], schema: Any) -> Any:  # noqa: ANN401
    """Rows as an Arrow table with every column of the schema."""
    arrow = require("pyarrow", "a catalog", "'sotdd[catalog]'")
    types = {field.name: field.type for field in schema}
    entries = [row.entry for row in rows]
    vectors = arrow.array(np.concatenate([row.vector for row in rows]))
    columns = {
        "name": [entry.name for entry in entries],
        "n_points": [entry.n_points for entry in entries],
        "n_classes": [entry.n_classes for entry in entries],
        "added": [entry.added for entry in entries],
        # JSON, which tells 2 from 2.0, and None from a key that is not there
        "metadata": [json.dumps(dict(entry.metadata), ensure_ascii=False, allow_nan=False) for entry in entries],
        "token": [row.token for row in rows],
        "vector": arrow.FixedSizeListArray.from_arrays(vectors, len(rows[0].vector)),
        "sketch": [row.content for row in rows],
    }
    types["sketch"] = arrow.large_binary()
    for key in types:
        if key not in OWN_COLUMNS:
            columns[key] = [entry.metadata.get(key) for entry in entries]
    arrays = [
        column if isinstance(column, arrow.Array) else arrow.array(column, types[key])
        for key, column in columns.items()
    ]
    fields = [arrow.field(key, types[key], key != "name") for key in columns]
    return arrow.table(arrays, schema=arrow.schema(fields))


def arrow_type(kind: str) -> Any:  # noqa: ANN401
    """The type of a column of metadata."""
    arrow = require("pyarrow", "a catalog", "'sotdd[catalog]'")
    return {"text": arrow.utf8(), "number": arrow.float64(), "truth": arrow.bool_()}[kind]
