"""The tables of a catalog, on disk or in an object store, as LanceDB keeps them.

The table ``recipe`` has one row, written by the process that adds first. The table ``sketches`` has a row per entry:
its name, sizes and metadata, its vector, and its sketch as a blob beside the table, which a search by vectors does not
read. A change is one commit: readers see the table before it or after it, even if the process dies in between. LanceDB
commits by writing the list of a version's files under the next number, on condition that there is none: of two
processes one succeeds, and the other does its change again on top. No lock is held, on a disk or in an object store.
"""

from __future__ import annotations

import json
import logging
import os
import random
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import describe, first_line
from sotdd.basics.errors import SotddError, require
from sotdd.basics.files import show_path

Value: TypeAlias = str | int | float | bool | None
Metadata: TypeAlias = Mapping[str, Value]

# The columns that every entry has.
OWN_COLUMNS = ("name", "n_points", "n_classes", "added", "metadata", "token", "vector", "sketch")
# Those of them that an `Entry` is read from.
ENTRY_COLUMNS = ("name", "n_points", "n_classes", "added", "metadata")

# With this LanceDB notices when two processes insert the same name.
_PRIMARY_KEY = {"lance-schema:unenforced-primary-key": "true"}
# Every sketch, however small, is stored beside the table, so that joining parts of the table copies one at a time.
_BESIDE = {"lance-encoding:blob-inline-size-threshold": "0"}

_ENTRIES, _RECIPE = "sketches", "recipe"
# How often a change is tried again after another process changed the table first.
_ATTEMPTS = 40
# After every 32nd change the parts of the table are counted. They are joined when there are more than 64 and one per
# ten rows, so that each sketch is copied about ten times while a catalog grows one by one.
_EVERY, _PARTS, _ROWS_PER_PART = 32, 64, 10
# Rows that were removed, replaced or copied stay this long, for readers that began before.
_KEPT = timedelta(minutes=2)
# This many full sketches are read at a time, which bounds memory.
_TOGETHER = 16
# LanceDB repeats what it was given, however long that was.
_LONGEST_CAUSE = 300

Result = TypeVar("Result")
Row = Mapping[str, Any]  # of the table, by columns
Table = Any  # LanceDB's own types are not checked, since it is optional.

_log = logging.getLogger("sotdd")


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
        return {**asdict(self), "added": self.added.isoformat(timespec="seconds"), "metadata": dict(self.metadata)}


class Store:
    """The tables of one catalog.

    Parameters
    ----------
    location
        A folder, or the URL of one in an object store.
    options
        LanceDB's ``storage_options`` for an object store.
    """

    def __init__(self, location: str, options: Mapping[str, str] | None = None) -> None:
        self.location = location
        self.options = options

    def __reduce__(self) -> tuple[type[Store], tuple[str, Mapping[str, str] | None]]:
        """Without the connection: another process makes its own."""
        return Store, (self.location, self.options)

    def recipe(self) -> bytes | None:
        """The recipe, as the content of a file; None where nothing was added yet."""
        table = self._open(_RECIPE)
        if table is None:
            return None
        with self._one_line_errors("read"):
            return bytes(table.to_arrow()["content"][0].as_py())

    def settle_recipe(self, mine: bytes) -> bytes:
        """The recipe; where there is none yet, this one. If several processes add at once, one of them decides."""
        arrow = require("pyarrow", "a catalog", "'sotdd[catalog]'")
        content = arrow.table({"content": arrow.array([mine], arrow.large_binary())})
        settled = self.recipe()
        while settled is None and not self._make(_RECIPE, data=content):
            settled = self.recipe()
        return settled or mine

    # ------------------------------------------------------------------ reading

    def count(self) -> int:
        """How many entries there are."""
        table = self._open(_ENTRIES)
        with self._one_line_errors("read"):
            return 0 if table is None else int(table.count_rows())

    def select(self, columns: Sequence[str], where: str | None = None) -> list[Row]:
        """Columns of all entries, or of those that an SQL condition holds for."""
        table = self._open(_ENTRIES)
        return [] if table is None else self._select(table.search(), columns, where)

    def row(self, name: str) -> Row | None:
        """The whole row of an entry, by columns; None where there is none of this name."""
        table = self._open(_ENTRIES)
        if table is None:
            return None
        columns = [column for column in table.schema.names if column != "sketch"]
        rows = self._select(table.search(), columns, f"name = {quote_text(name)}")
        if not rows:
            return None
        return {**{column: rows[0][column] for column in columns}, "sketch": self._sketches(table, rows)[0]}

    def closest(self, vector: NDArray[np.float32], limit: int, where: str | None) -> Iterator[tuple[Entry, bytes]]:
        """The entries whose vectors have the largest inner products with this one, and their sketches as files."""
        table = self._entries()
        search = table.search(vector, vector_column_name="vector").distance_type("dot").limit(limit)
        rows = self._select(search, [*ENTRY_COLUMNS, "_distance"], where)
        for start in range(0, len(rows), _TOGETHER):
            part = rows[start : start + _TOGETHER]
            yield from zip(map(Entry.from_table, part), self._sketches(table, part), strict=True)

    def _sketches(self, table: Table, rows: Sequence[Row]) -> list[bytes]:
        with self._one_line_errors("read"):
            return [blob.as_py() for blob in table.fetch_blobs("sketch", [row["_rowid"] for row in rows])]

    def _select(self, search: Any, columns: Sequence[str], where: str | None) -> list[Row]:  # noqa: ANN401
        """Columns of what a search finds; an error in a condition is told in LanceDB's words."""
        if not isinstance(where, (str, type(None))):
            raise SotddError(f'is {describe(where)}: expected SQL, such as "n_points > 1000".', setting="where")
        with self._one_line_errors("read" if where is None else f"find {describe(where)} in"):
            found = search if where is None else search.where(where)
            rows: list[Row] = found.select(list(columns)).with_row_id(True).to_arrow().to_pylist()
        return rows

    # ------------------------------------------------------------------ writing

    def put(self, rows: Sequence[Row], *, overwrite: bool) -> int:
        """Insert entries in one commit, and return how many; taken names are left out, or replaced."""
        if self._open(_ENTRIES) is None:
            self._make(_ENTRIES, schema=table_schema(len(rows[0]["vector"])))

        def insert() -> int:
            table = self._entries()
            fields = new_columns(rows, table.schema)
            if fields:
                table.add_columns(fields)
            merge = table.merge_insert("name").when_not_matched_insert_all()
            if overwrite:
                merge = merge.when_matched_update_all()
            names = table.schema.names
            result = merge.execute(to_arrow(rows, table.schema))
            if overwrite and table.schema.names != names:  # a new column kept what the old entry had there
                return insert()
            return int(result.num_inserted_rows + result.num_updated_rows)

        count = self._retry(insert)
        self._tidy_sometimes()
        return count

    def delete(self, condition: str) -> int:
        """Remove the entries that an SQL condition holds for, and return how many."""
        count = self._retry(lambda: int(self._entries().delete(condition).num_deleted_rows))
        self._tidy_sometimes()
        return count

    def replace(self, old: Row, new: Row) -> tuple[int, int]:
        """Insert one entry and remove another in one commit; return how many were inserted and removed.

        The old entry is kept if it has changed since it was read.
        """
        unchanged = f"name = {quote_text(old['name'])} AND token = {quote_text(old['token'])}"

        def swap() -> tuple[int, int]:
            table = self._entries()
            merge = (
                table.merge_insert("name").when_not_matched_insert_all().when_not_matched_by_source_delete(unchanged)
            )
            result = merge.execute(to_arrow([new], table.schema))
            return int(result.num_inserted_rows), int(result.num_deleted_rows)

        return self._retry(swap)

    def tidy(self) -> None:
        """Join the small parts that single additions leave, and free removed rows."""
        with self._one_line_errors("tidy"):
            self._entries().optimize(cleanup_older_than=_KEPT)

    def _tidy_sometimes(self) -> None:
        """Tidy if there are many parts. The change itself is committed, so a failure here is only logged."""
        try:
            table = self._entries()
            if table.version % _EVERY:
                return
            stats = table.stats()
            if stats["fragment_stats"]["num_fragments"] > _PARTS + stats["num_rows"] // _ROWS_PER_PART:
                table.optimize(cleanup_older_than=_KEPT)
        except (SotddError, RuntimeError, ValueError, OSError) as error:
            _log.info("the catalog %s was not tidied: %s", self.location, error)

    def _retry(self, change: Callable[[], Result]) -> Result:
        """Make a change to the newest version, and retry while other processes change the table first."""
        with self._one_line_errors("write to"):
            for attempt in range(_ATTEMPTS):
                try:
                    return change()
                except (RuntimeError, ValueError, OSError) as error:
                    if isinstance(error, SotddError) or not _is_conflict(error) or attempt == _ATTEMPTS - 1:
                        raise
                    time.sleep(random.uniform(0.01, 0.05 * (attempt + 1)))  # so that processes do not retry in step
        raise AssertionError

    # ------------------------------------------------------------------ tables and errors

    def absent(self) -> SotddError:
        """The error to raise where a catalog is expected and there is none."""
        return SotddError(f"there is no catalog at {show_path(self.location)}: check the path, or add a sketch first.")

    def _entries(self) -> Table:
        table = self._open(_ENTRIES)
        if table is None:
            raise self.absent()
        return table

    def _open(self, name: str) -> Table:
        """A table as it is now; None where there is none."""
        with self._one_line_errors("read"):
            if "://" not in self.location and not Path(self.location).is_dir():
                return None
            try:
                return self._connection.open_table(name)
            except (ValueError, FileNotFoundError) as error:
                if "not found" in str(error) or isinstance(error, FileNotFoundError):
                    return None
                raise

    def _make(self, name: str, **content: Any) -> bool:  # noqa: ANN401
        """Make a table; False where another process did so first."""
        with self._one_line_errors("write to"):
            try:
                self._connection.create_table(name, **content)
            except (ValueError, RuntimeError) as error:
                if "already exists" in str(error) or _is_conflict(error):
                    return False
                raise
        return True

    @cached_property
    def _connection(self) -> Any:  # noqa: ANN401
        lance = require("lancedb", "a catalog", "'sotdd[catalog]'")
        return lance.connect(self.location, storage_options=_complete_options(self.location, self.options))

    @contextmanager
    def _one_line_errors(self, doing: str) -> Iterator[None]:
        """Turn errors of LanceDB and of the system into one line."""
        try:
            yield
        except SotddError:
            raise
        except (RuntimeError, ValueError, OSError, LookupError, TypeError) as error:
            raise SotddError(f"cannot {doing} the catalog {show_path(self.location)}: {_explain(error)}.") from error


def _explain(error: BaseException) -> str:
    """What went wrong, without the place in LanceDB's sources."""
    return re.sub(r",? \S*\.rs:\d.*$", "", first_line(error))[:_LONGEST_CAUSE]


def _is_conflict(error: BaseException) -> bool:
    """Whether another process changed the table in the meantime, so that a retry may help."""
    text = str(error).lower()
    return any(word in text for word in ("commit conflict", "concurrent", "preempted", "please retry"))


def _complete_options(location: str, options: Mapping[str, str] | None) -> dict[str, str] | None:
    """LanceDB's ``storage_options``.

    Of several names of the endpoint LanceDB prefers one in the environment, but under its first name what was passed
    counts. Whoever names one with http:// means it, so that need not be said twice.
    """
    given = dict(options or {})
    if location.startswith("s3"):
        for name in ("endpoint", "endpoint_url", "aws_endpoint_url"):
            if name in given:
                given["aws_endpoint"] = given.pop(name)
        endpoint = given.get("aws_endpoint", os.environ.get("AWS_ENDPOINT_URL", ""))
        if endpoint.startswith("http://"):
            given.setdefault("allow_http", "true")
    return given or None


def quote_text(text: str) -> str:
    """Text as an SQL literal.

    Examples
    --------
    >>> from sotdd.sketches.catalog.store import quote_text
    >>> print(quote_text("it's"))
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


def make_row(name: str, metadata: Metadata, **columns: Any) -> dict[str, Any]:  # noqa: ANN401  # the other columns
    """The row of an entry that is added now, by columns.

    Its token distinguishes it from a later entry of the same name. Metadata are columns to filter by, and JSON too,
    which tells 2 from 2.0, and None from a key that is not there.
    """
    text = json.dumps(dict(metadata), ensure_ascii=False, allow_nan=False)
    own = {"name": name, "added": datetime.now(UTC), "metadata": text, "token": secrets.token_hex(16)}
    return {**metadata, **own, **columns}


def new_columns(rows: Sequence[Mapping[str, Any]], schema: Any) -> list[Any]:  # noqa: ANN401
    """The columns that metadata need beside those of a schema; refuse a value of another type than its column."""
    arrow = require("pyarrow", "a catalog", "'sotdd[catalog]'")
    kinds = {str: arrow.utf8(), bool: arrow.bool_(), int: arrow.float64(), float: arrow.float64()}
    wanted: dict[str, Any] = {field.name: field.type for field in schema}
    for row in rows:
        for key, value in row.items():
            if key in OWN_COLUMNS or value is None:
                continue
            if wanted.setdefault(key, kinds[type(value)]) != kinds[type(value)]:
                kind = f"a {wanted[key]} in other entries"
                raise SotddError(f"metadata {key!r} is {describe(value)} but {kind}: use one type, or another key.")
    return [arrow.field(key, kind) for key, kind in wanted.items() if key not in schema.names]


def to_arrow(rows: Sequence[Mapping[str, Any]], schema: Any) -> Any:  # noqa: ANN401
    """Rows as an Arrow table with every column of the schema; what a row does not have is null."""
    arrow = require("pyarrow", "a catalog", "'sotdd[catalog]'")
    types = {field.name: field.type for field in schema} | {"sketch": arrow.large_binary()}
    fields = [arrow.field(key, kind, key != "name") for key, kind in types.items()]
    return arrow.Table.from_pylist([dict(row) for row in rows], schema=arrow.schema(fields))
