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

# With this LanceDB notices when two processes insert the same name.
_PRIMARY_KEY = {"lance-schema:unenforced-primary-key": "true"}
# Every sketch, however small, is stored beside the table, so that joining parts of the table copies one at a time.
_BESIDE = {"lance-encoding:blob-inline-size-threshold": "0"}


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
        return cls(entry, secrets.token_hex(16), recipe.entry_vector(sketch), to_bytes(sketch))


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
        if isinstance(plain, str) and plain.encode(errors="replace").decode() != plain:  # half of a surrogate pair
            raise SotddError(f"metadata {key!r} is {described(value)}: expected text that can be written as UTF-8.")
        too_large = isinstance(plain, int) and abs(plain) > _LARGEST
        if too_large or (isinstance(plain, float) and not math.isfinite(plain)):
            raise SotddError(f"metadata {key!r} is {described(value)}: expected a finite number up to 2^53.")
        values[key] = plain
    return values


def quoted(text: str) -> str:
    """Text as an SQL literal.

    Examples
    --------
    >>> from sotdd.sketches.catalog.entries import quoted
    >>> print(quoted("it's"))
    'it''s'
    """
    return "'" + text.replace("'", "''") + "'"


def table_schema(width: int) -> Any:  # noqa: ANN401
    """The columns that every entry has, with vectors of this many numbers."""
    arrow = require("pyarrow", "a catalog", "'sotdd[catalog]'")
    lance = require("lancedb", "a catalog", "'sotdd[catalog]'")
    types = {
        "n_points": arrow.int64(),
        "n_classes": arrow.int64(),
        "added": arrow.timestamp("us", tz="UTC"),
        "metadata": arrow.utf8(),
        "token": arrow.utf8(),
        "vector": arrow.list_(arrow.float32(), width),
    }
    name = arrow.field("name", arrow.utf8(), False, _PRIMARY_KEY)
    return arrow.schema(
        [name, *(arrow.field(*pair) for pair in types.items()), lance.blob("sketch").with_metadata(_BESIDE)]
    )


def new_columns(rows: Sequence[Row], schema: Any) -> list[Any]:  # noqa: ANN401
    """The columns that metadata need beside those of a schema; refuse a value of another type than its column."""
    arrow = require("pyarrow", "a catalog", "'sotdd[catalog]'")
    kinds = {str: arrow.utf8(), bool: arrow.bool_(), int: arrow.float64(), float: arrow.float64()}
    wanted: dict[str, Any] = {field.name: field.type for field in schema}
    for row in rows:
        for key, value in row.entry.metadata.items():
            if value is not None and wanted.setdefault(key, kinds[type(value)]) != kinds[type(value)]:
                kind = f"a {wanted[key]} in other entries"
                raise SotddError(f"metadata {key!r} is {described(value)} but {kind}: use one type, or another key.")
    return [arrow.field(key, kind) for key, kind in wanted.items() if key not in schema.names]


def to_arrow(rows: Sequence[Row], schema: Any) -> Any:  # noqa: ANN401
    """Rows as an Arrow table with every column of the schema."""
    arrow = require("pyarrow", "a catalog", "'sotdd[catalog]'")
    types = {field.name: field.type for field in schema} | {"sketch": arrow.large_binary()}
    table = []
    for row in rows:
        entry = row.entry
        own = {"name": entry.name, "n_points": entry.n_points, "n_classes": entry.n_classes, "added": entry.added}
        # JSON, which tells 2 from 2.0, and None from a key that is not there
        metadata = json.dumps(dict(entry.metadata), ensure_ascii=False, allow_nan=False)
        contents = {"metadata": metadata, "token": row.token, "vector": row.vector, "sketch": row.content}
        table.append({**entry.metadata, **own, **contents})
    arrays = [arrow.array([row.get(key) for row in table], kind) for key, kind in types.items()]
    return arrow.table(arrays, schema=arrow.schema([arrow.field(key, types[key], key != "name") for key in types]))
