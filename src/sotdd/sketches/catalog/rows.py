"""Entries as rows of a table."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import require
from sotdd.sketches.catalog.common import Common
from sotdd.sketches.catalog.hits import Entry
from sotdd.sketches.catalog.metadata import OWN, Metadata, kind, to_text
from sotdd.sketches.file import to_bytes
from sotdd.sketches.sketch import Sketch


@dataclass(frozen=True, eq=False)
class Row:
    """An entry with all that is kept of it.

    Attributes
    ----------
    entry
        What is said of it.
    token
        Tells this entry from a later one of the same name.
    vector
        What it is found by.
    content
        Its sketch, as the content of a file.
    """

    entry: Entry
    token: str
    vector: NDArray[np.float32]
    content: bytes

    @classmethod
    def of(cls, name: str, sketch: Sketch, metadata: Metadata, common: Common) -> Row:
        """The row of a sketch that is added now."""
        entry = Entry(name, sketch.n_points, len(sketch.classes), datetime.now(UTC), metadata)
        return cls(entry, secrets.token_hex(16), common.vector(sketch), to_bytes(sketch))

    def kinds(self) -> dict[str, str]:
        """Metadata that SQL can see, each with what it is."""
        found = {key: kind(value) for key, value in self.entry.metadata.items()}
        return {key: what for key, what in found.items() if what is not None}


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
        "metadata": [to_text(entry.metadata) for entry in entries],
        "token": [row.token for row in rows],
        "vector": arrow.FixedSizeListArray.from_arrays(vectors, len(rows[0].vector)),
        "sketch": [row.content for row in rows],
    }
    types["sketch"] = arrow.large_binary()
    for key in types:
        if key not in OWN:
            columns[key] = [None if row.kinds().get(key) is None else row.entry.metadata[key] for row in rows]
    arrays = [
        column if isinstance(column, arrow.Array) else arrow.array(column, types[key])
        for key, column in columns.items()
    ]
    fields = [arrow.field(key, types[key], key != "name") for key in columns]
    return arrow.table(arrays, schema=arrow.schema(fields))


def arrow_type(what: str) -> Any:  # noqa: ANN401
    """The type of a column of metadata."""
    arrow = require("pyarrow", "a catalog", "'sotdd[catalog]'")
    return {"text": arrow.utf8(), "number": arrow.float64(), "truth": arrow.bool_()}[what]
