"""The entries of a catalog at one moment, whatever is added or removed meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import described
from sotdd.basics.errors import SotddError
from sotdd.sketches.catalog.faults import cause, told
from sotdd.sketches.catalog.hits import Entry
from sotdd.sketches.catalog.metadata import OWN, quoted
from sotdd.sketches.catalog.rows import Row

_SAID = ["name", "n_points", "n_classes", "added", "metadata"]

# How many lists of an index are searched.
_PROBES = 50


@dataclass(frozen=True)
class Found:
    """An entry that a search came upon: where it is, and how far its vector is."""

    entry: Entry
    row: int
    squared: float


@dataclass(frozen=True, eq=False)
class Snapshot:
    """One version of the table of entries.

    Attributes
    ----------
    table
        Of LanceDB, opened at that version.
    place
        Of the catalog, for messages.
    """

    table: Any
    place: str

    def count(self) -> int:
        """How many entries there are."""
        with told("read", self.place):
            return int(self.table.count_rows())

    def entries(self, where: str | None = None) -> list[Entry]:
        """The entries, or those that an SQL condition holds for."""
        return [_entry(row) for row in self._rows(self.table.search(), _SAID, where)]

    def has(self, name: str) -> bool:
        """Whether there is an entry of this name."""
        return bool(self._rows(self.table.search(), ["name"], f"name = {quoted(name)}"))

    def row(self, name: str) -> Row | None:
        """All that is kept of an entry; None where there is none of this name."""
        found = self._rows(self.table.search(), [*_SAID, "token", "vector"], f"name = {quoted(name)}")
        if not found:
            return None
        (row,) = found
        (content,) = self.contents([row["_rowid"]])
        return Row(_entry(row), row["token"], np.asarray(row["vector"], np.float32), content)

    def closest(self, vector: NDArray[np.float32], limit: int, where: str | None) -> list[Found]:
        """Entries by the distance of their vectors, nearest first."""
        if where is not None:
            return self._closest_of(vector, limit, where)
        search = self.table.search(vector, vector_column_name="vector").distance_type("l2").limit(limit)
        search = search.nprobes(_PROBES)  # heeded where there is an index
        rows = self._rows(search, [*_SAID, "_distance"], None)
        return [Found(_entry(row), row["_rowid"], row["_distance"]) for row in rows]

    def _closest_of(self, vector: NDArray[np.float32], limit: int, where: str) -> list[Found]:
        """The same of entries that a condition holds for.

        LanceDB's own search reads the vectors of all entries and then drops those that do not match. A
        plain scan reads those that match only, batch by batch: a tenth of the work where they are few.
        """
        rows, squared = [np.empty(0, np.uint64)], [np.empty(0)]
        with self._telling(where):
            search = self.table.search().where(_checked(where)).select(["vector"]).with_row_id(True)
            for batch in search.to_batches():
                part = batch["vector"].flatten().to_numpy().reshape(-1, len(vector)) - vector
                rows.append(batch["_rowid"].to_numpy())
                squared.append(np.einsum("ij,ij->i", part, part, dtype=np.float64))
        ids, far = np.concatenate(rows), np.concatenate(squared)
        best = np.argsort(far, kind="stable")[:limit]
        if not len(best):
            return []
        with told("read", self.place):
            taken = self.table.take_row_ids(ids[best].tolist()).select(_SAID).with_row_id().to_arrow().to_pylist()
        entries = {row["_rowid"]: _entry(row) for row in taken}
        return [Found(entries[int(ids[place])], int(ids[place]), float(far[place])) for place in best]

    def contents(self, rows: Sequence[int]) -> list[bytes]:
        """The sketches in these rows, as contents of files."""
        with told("read", self.place):
            return [blob.as_py() for blob in self.table.fetch_blobs("sketch", list(rows))]

    def _rows(self, search: Any, columns: list[str], where: str | None) -> list[dict[str, Any]]:  # noqa: ANN401
        with self._telling(where):
            if where is not None:
                search = search.where(_checked(where))
            found: list[dict[str, Any]] = search.select(columns).with_row_id(True).to_arrow().to_pylist()
        return found

    @contextmanager
    def _telling(self, where: str | None) -> Iterator[None]:
        """Say what a condition may be about, where it is the condition that fails."""
        with told("read", self.place):
            try:
                yield
            except SotddError:
                raise
            except ValueError as error:
                if where is None:
                    raise
                known = [*_SAID[:4], *(name for name in self.table.schema.names if name not in OWN)]
                raise SotddError(
                    f"where is {where!r} ({cause(error)}): expected an SQL condition on {', '.join(known)}."
                ) from error


def _checked(where: object) -> str:
    if not isinstance(where, str):
        raise SotddError(f'where is {described(where)}: expected SQL, such as "n_points > 1000".')
    return where


def _entry(row: dict[str, Any]) -> Entry:
    return Entry(row["name"], row["n_points"], row["n_classes"], row["added"], json.loads(row["metadata"]))
