"""The entries of a catalog at one moment, unaffected by later additions and removals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.text import listed
from sotdd.sketches.catalog.condition import shown_condition
from sotdd.sketches.catalog.entries import ENTRY_COLUMNS, OWN_COLUMNS, Entry, Row, quoted
from sotdd.sketches.catalog.faults import cause, is_of_condition, one_line_errors

# How many lists of an index are searched.
_PROBES = 50


@dataclass(frozen=True)
class Candidate:
    """An entry that may be near: its row in the table, and the squared distance of its vector."""

    entry: Entry
    row: int
    squared: float


@dataclass(frozen=True, eq=False)
class Snapshot:
    """One version of the table of entries.

    Attributes
    ----------
    table
        The table of LanceDB, opened at that version.
    location
        The folder or URL of the catalog, for messages.
    """

    table: Any
    location: str

    def count(self) -> int:
        """How many entries there are."""
        with one_line_errors("read", self.location):
            return int(self.table.count_rows())

    def entries(self, where: str | None = None) -> list[Entry]:
        """The entries, or those that an SQL condition holds for."""
        return [Entry.from_table(row) for row in self._rows(self.table.search(), ENTRY_COLUMNS, where)]

    def has(self, name: str) -> bool:
        """Whether there is an entry of this name."""
        return bool(self._rows(self.table.search(), ["name"], f"name = {quoted(name)}"))

    def row(self, name: str) -> Row | None:
        """The whole row of an entry; None where there is none of this name."""
        rows = self._rows(self.table.search(), [*ENTRY_COLUMNS, "token", "vector"], f"name = {quoted(name)}")
        if not rows:
            return None
        (row,) = rows
        (content,) = self.contents([row["_rowid"]])
        return Row(Entry.from_table(row), row["token"], np.asarray(row["vector"], np.float32), content)

    def listing(self, columns: Sequence[str], where: str | None = None) -> Any:  # noqa: ANN401
        """Some columns of all entries, or of those that an SQL condition holds for, as an Arrow table."""
        with self._naming_columns(where):
            search = self.table.search() if where is None else self.table.search().where(where)
            return search.select(list(columns)).with_row_id(True).to_arrow()

    def closest(self, vector: NDArray[np.float32], limit: int, where: str | None) -> list[Candidate]:
        """Entries by the distance of their vectors, nearest first."""
        if where is not None:
            return self._closest_of(vector, limit, where)
        search = self.table.search(vector, vector_column_name="vector").distance_type("l2").limit(limit)
        search = search.nprobes(_PROBES)  # has an effect only where there is an index
        rows = self._rows(search, [*ENTRY_COLUMNS, "_distance"], None)
        return [Candidate(Entry.from_table(row), row["_rowid"], row["_distance"]) for row in rows]

    def _closest_of(self, vector: NDArray[np.float32], limit: int, where: str) -> list[Candidate]:
        """The same among the entries that a condition holds for.

        LanceDB's own search reads the vectors of all entries and then drops those that do not match. A
        plain scan reads only those that match, batch by batch: a tenth of the work where they are few.
        """
        rows, squared = [np.empty(0, np.uint64)], [np.empty(0)]
        with self._naming_columns(where):
            search = self.table.search().where(where).select(["vector"]).with_row_id(True)
            for batch in search.to_batches():
                part = batch["vector"].flatten().to_numpy().reshape(-1, len(vector)) - vector
                rows.append(batch["_rowid"].to_numpy())
                squared.append(np.einsum("ij,ij->i", part, part, dtype=np.float64))
        ids, distances = np.concatenate(rows), np.concatenate(squared)
        best = np.argsort(distances, kind="stable")[:limit]
        if not len(best):
            return []
        with one_line_errors("read", self.location):
            columns = self.table.take_row_ids(ids[best].tolist()).select(list(ENTRY_COLUMNS))
            taken = columns.with_row_id().to_arrow().to_pylist()
        entries = {row["_rowid"]: Entry.from_table(row) for row in taken}
        return [Candidate(entries[int(ids[k])], int(ids[k]), float(distances[k])) for k in best]

    def contents(self, rows: Sequence[int]) -> list[bytes]:
        """The sketches in these rows, as contents of files."""
        with one_line_errors("read", self.location):
            return [blob.as_py() for blob in self.table.fetch_blobs("sketch", list(rows))]

    def _rows(self, search: Any, columns: Sequence[str], where: str | None) -> list[dict[str, Any]]:  # noqa: ANN401
        with self._naming_columns(where):
            if where is not None:
                search = search.where(where)
            rows: list[dict[str, Any]] = search.select(list(columns)).with_row_id(True).to_arrow().to_pylist()
        return rows

    @contextmanager
    def _naming_columns(self, where: str | None) -> Iterator[None]:
        """Where a condition fails, name the columns that it may use."""
        with one_line_errors("read", self.location):
            try:
                yield
            except SotddError:
                raise
            except (ValueError, RuntimeError) as error:
                if where is None or not is_of_condition(error):
                    raise
                own = [name for name in ENTRY_COLUMNS if name != "metadata"]
                columns = [*own, *(name for name in self.table.schema.names if name not in OWN_COLUMNS)]
                raise SotddError(
                    f"where is {shown_condition(where)} ({cause(error)}): expected an SQL condition on "
                    f"{listed(columns, 20)}."
                ) from error
