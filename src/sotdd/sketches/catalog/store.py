"""The tables of a catalog, on disk or in an object store, as LanceDB keeps them.

The table ``recipe`` has one row, written by the process that adds first. The table ``sketches`` has a row per entry:
its name, sizes and metadata, its vector, and its sketch as a blob beside the table, which a search by vectors does not
read. A change is one commit: readers see the table before it or after it, even if the process dies in between. LanceDB
commits by writing the list of a version's files under the next number, on condition that there is none: of two
processes one succeeds, and the other does its change again on top. No lock is held, on a disk or in an object store.
"""

from __future__ import annotations

import logging
import os
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from sotdd.basics.checks import described, first_line
from sotdd.basics.errors import SotddError, require
from sotdd.basics.files import shown
from sotdd.basics.text import listed
from sotdd.sketches.catalog.entries import (
    ENTRY_COLUMNS,
    OWN_COLUMNS,
    Entry,
    Row,
    new_columns,
    quoted,
    table_schema,
    to_arrow,
)  # fmt: skip
from sotdd.sketches.catalog.recipe import CatalogRecipe, Vector
from sotdd.sketches.sketch import Sketch

_ENTRIES, _RECIPE = "sketches", "recipe"
_VERSION = 1
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
Table = Any  # LanceDB's own types are not checked, since it is optional.

_log = logging.getLogger("sotdd")


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

    def recipe(self) -> CatalogRecipe | None:
        """The recipe; None where nothing was added yet."""
        table = self._open(_RECIPE)
        if table is None:
            return None
        with self._one_line_errors("read"):
            (row,) = table.to_arrow().to_pylist()
        if row["version"] != _VERSION:
            raise SotddError(
                f"the catalog {shown(self.location)} has version {row['version']} of the format but this sotdd reads "
                f"version {_VERSION}: update sotdd."
            )
        return CatalogRecipe.from_row(row["recipe"], row["n_quantiles"], row["centre"], self.location)

    def settle_recipe(self, first: Sketch) -> CatalogRecipe:
        """The recipe; where there is none yet, that of this sketch. If several processes add at once, one decides."""
        arrow = require("pyarrow", "a catalog", "'sotdd[catalog]'")
        settled = self.recipe()
        if settled is not None:
            return settled
        mine = CatalogRecipe.of(first, self.location)
        types = {"version": arrow.int64(), "n_quantiles": arrow.int64()}
        row = {"version": _VERSION, **mine.to_row()}
        columns = {key: arrow.array([value], types.get(key, arrow.large_binary())) for key, value in row.items()}
        return mine if self._make(_RECIPE, data=arrow.table(columns)) else self.settle_recipe(first)

    # ------------------------------------------------------------------ reading

    def count(self) -> int:
        """How many entries there are."""
        table = self._open(_ENTRIES)
        with self._one_line_errors("read"):
            return 0 if table is None else int(table.count_rows())

    def entries(self, where: str | None = None) -> list[Entry]:
        """The entries, or those that an SQL condition of the user's holds for."""
        table = self._open(_ENTRIES)
        if table is None:
            return []
        with self._naming_columns(table, where):
            return [Entry.from_table(row) for row in _rows(table.search(), ENTRY_COLUMNS, where)]

    def row(self, name: str) -> Row | None:
        """The whole row of an entry; None where there is none of this name."""
        table = self._open(_ENTRIES)
        if table is None:
            return None
        with self._one_line_errors("read"):
            rows = _rows(table.search(), [*ENTRY_COLUMNS, "token", "vector"], f"name = {quoted(name)}")
            if not rows:
                return None
            content = table.fetch_blobs("sketch", [rows[0]["_rowid"]])[0].as_py()
        return Row(Entry.from_table(rows[0]), rows[0]["token"], np.asarray(rows[0]["vector"], np.float32), content)

    def names_of(self, column: str, values: Sequence[str]) -> set[str]:
        """The names of the entries with one of these values in a column of texts."""
        table = self._open(_ENTRIES)
        if table is None:
            return set()
        with self._one_line_errors("read"):
            condition = f"{column} IN ({', '.join(map(quoted, values))})"
            return {row["name"] for row in _rows(table.search(), ["name"], condition)}

    def closest(self, vector: Vector, limit: int, where: str | None) -> Iterator[tuple[Entry, bytes]]:
        """The entries whose vectors have the largest inner products with this one, and their sketches as files."""
        table = self._entries()
        with self._naming_columns(table, where):
            search = table.search(vector, vector_column_name="vector").distance_type("dot").limit(limit)
            rows = _rows(search, [*ENTRY_COLUMNS, "_distance"], where)
        for start in range(0, len(rows), _TOGETHER):
            part = rows[start : start + _TOGETHER]
            with self._one_line_errors("read"):
                blobs = table.fetch_blobs("sketch", [row["_rowid"] for row in part])
                contents = [blob.as_py() for blob in blobs]
            yield from zip(map(Entry.from_table, part), contents, strict=True)

    # ------------------------------------------------------------------ writing

    def put(self, rows: Sequence[Row], recipe: CatalogRecipe, *, overwrite: bool) -> int:
        """Insert entries in one commit, and return how many; taken names are left out, or replaced."""
        if self._open(_ENTRIES) is None:
            self._make(_ENTRIES, schema=table_schema(recipe.width))

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

        count = self._retrying(insert)
        self._tidy_sometimes()
        return count

    def delete(self, condition: str) -> int:
        """Remove the entries that an SQL condition holds for, and return how many."""
        count = self._retrying(lambda: int(self._entries().delete(condition).num_deleted_rows))
        self._tidy_sometimes()
        return count

    def replace(self, old: Row, new: Row) -> tuple[int, int]:
        """Insert one entry and remove another in one commit; return how many were inserted and removed.

        The old entry is kept if it has changed since it was read.
        """
        unchanged = f"name = {quoted(old.entry.name)} AND token = {quoted(old.token)}"

        def swap() -> tuple[int, int]:
            table = self._entries()
            merge = (
                table.merge_insert("name").when_not_matched_insert_all().when_not_matched_by_source_delete(unchanged)
            )
            result = merge.execute(to_arrow([new], table.schema))
            return int(result.num_inserted_rows), int(result.num_deleted_rows)

        return self._retrying(swap)

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

    def _retrying(self, change: Callable[[], Result]) -> Result:
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
        return SotddError(f"there is no catalog at {shown(self.location)}: check the path, or add a sketch first.")

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
        return lance.connect(self.location, storage_options=_connection_options(self.location, self.options))

    @contextmanager
    def _one_line_errors(self, doing: str) -> Iterator[None]:
        """Turn errors of LanceDB and of the system into one line."""
        try:
            yield
        except SotddError:
            raise
        except (RuntimeError, ValueError, OSError) as error:
            raise SotddError(f"cannot {doing} the catalog {shown(self.location)}: {_cause(error)}.") from error

    @contextmanager
    def _naming_columns(self, table: Table, where: str | None) -> Iterator[None]:
        """Where a condition fails, name the columns that it may use."""
        if not isinstance(where, (str, type(None))):
            raise SotddError(f'where is {described(where)}: expected SQL, such as "n_points > 1000".')
        with self._one_line_errors("read"):
            try:
                yield
            except (ValueError, RuntimeError) as error:
                if where is None:
                    raise
                hidden = {*OWN_COLUMNS} - {"name", "n_points", "n_classes", "added"}
                columns = [name for name in table.schema.names if name not in hidden]
                expected = f"expected an SQL condition on {listed(columns, 20)}"
                raise SotddError(f"where is {described(where)} ({_cause(error)}): {expected}.") from error


def _rows(search: Any, columns: Sequence[str], where: str | None) -> list[dict[str, Any]]:  # noqa: ANN401
    if where is not None:
        search = search.where(where)
    rows: list[dict[str, Any]] = search.select(list(columns)).with_row_id(True).to_arrow().to_pylist()
    return rows


def _cause(error: BaseException) -> str:
    """What went wrong, without the place in LanceDB's sources."""
    return re.sub(r",? \S*\.rs:\d.*$", "", first_line(error))[:_LONGEST_CAUSE]


def _is_conflict(error: BaseException) -> bool:
    """Whether another process changed the table in the meantime, so that a retry may help."""
    text = str(error).lower()
    return any(word in text for word in ("commit conflict", "concurrent", "preempted", "please retry"))


def _connection_options(location: str, options: Mapping[str, str] | None) -> dict[str, str] | None:
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
