"""The tables of a catalog on disk, or in an object store: the only file that knows LanceDB.

``recipe`` has one row, written by whoever adds first. ``sketches`` has a row per entry: what is said of it,
its vector, and its sketch as a blob beside the table, which a search by vectors does not read. A change is one
commit: whatever happens in the middle of it, readers see the table before or after.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from sotdd.basics.errors import SotddError, require
from sotdd.sketches.catalog.common import Common
from sotdd.sketches.catalog.faults import cause, is_conflict, told
from sotdd.sketches.catalog.metadata import quoted
from sotdd.sketches.catalog.rows import Row, arrow_type, to_arrow
from sotdd.sketches.catalog.snapshot import Snapshot
from sotdd.sketches.sketch import Sketch

_ENTRIES, _RECIPE = "sketches", "recipe"
_VERSION = 1
# LanceDB then notices when two processes insert the same name.
_KEY = {"lance-schema:unenforced-primary-key": "true"}
# Every sketch, however small, lies beside the table: joining parts of the table copies them one after another.
_BESIDE = {"lance-encoding:blob-inline-size-threshold": "0"}
# How often a change that another process came before is tried again.
_ATTEMPTS = 40
# Every so many changes the parts of the table are counted; they are joined when there are more than so many and one
# for so many rows, so that each sketch is copied about ten times while a catalog grows one by one.
_EVERY, _PARTS, _ROWS_PER_PART = 32, 64, 10
# From so many entries on, tidying makes an index of the vectors; below, all are scanned.
_INDEXED = 100_000
# What was removed, replaced or copied stays for readers that began before.
_KEPT = timedelta(minutes=2)

Result = TypeVar("Result")

_log = logging.getLogger("sotdd.catalog.store")


@dataclass(frozen=True)
class Store:
    """Where a catalog is, and its tables.

    Attributes
    ----------
    place
        A folder, or the URL of one in an object store.
    options
        What the object store is told, as LanceDB's ``storage_options``.
    """

    place: str
    options: Mapping[str, str] | None = None

    def common(self) -> Common | None:
        """The recipe; None where nothing was added yet."""
        table = self._open(_RECIPE)
        if table is None:
            return None
        with told("read", self.place):
            (row,) = table.to_arrow().to_pylist()
        if row["version"] != _VERSION:
            raise SotddError(
                f"the catalog {self.place!r} has version {row['version']} of the format but this sotdd reads version "
                f"{_VERSION}: update sotdd."
            )
        return Common.from_row(row["recipe"], row["n_quantiles"], row["dim"], self.place)

    def agree(self, first: Sketch) -> Common:
        """The recipe; that of this sketch where there is none yet. Of several at once one decides."""
        arrow = require("pyarrow", "a catalog", "'sotdd[catalog]'")

        def settle() -> Common:
            found = self.common()
            if found is not None:
                return found
            mine = Common.of(first, self.place)
            columns = {"version": [_VERSION], "n_quantiles": [mine.n_quantiles], "dim": [mine.dim]}
            row = arrow.table({**columns, "recipe": arrow.array([mine.to_bytes()], arrow.large_binary())})
            row = row.set_column(2, "dim", row["dim"].cast(arrow.int64()))
            return mine if self._make(_RECIPE, data=row) else settle()

        return settle()

    def snapshot(self) -> Snapshot | None:
        """The entries as they are now; None where nothing was added yet."""
        table = self._open(_ENTRIES)
        return None if table is None else Snapshot(table, self.place)

    def put(self, rows: Sequence[Row], common: Common, *, overwrite: bool) -> int:
        """Insert entries in one commit, and return how many: those whose name is taken are left out, or replaced."""
        self._make_entries(common)

        def insert() -> int:
            table = self._entries()
            self._widen(table, rows)
            merge = table.merge_insert("name").when_not_matched_insert_all()
            if overwrite:
                merge = merge.when_matched_update_all()
            names = table.schema.names
            result = merge.execute(to_arrow(rows, table.schema))
            if overwrite and table.schema.names != names:  # a new column kept what the old entry had there
                return insert()
            return int(result.num_inserted_rows + result.num_updated_rows)

        count = self._patiently(insert)
        self._tidy_sometimes()
        return count

    def delete(self, condition: str) -> int:
        """Remove the entries that an SQL condition holds for, and return how many."""
        count = self._patiently(lambda: int(self._entries().delete(condition).num_deleted_rows))
        self._tidy_sometimes()
        return count

    def replace(self, old: Row, new: Row) -> tuple[int, int]:
        """Insert one entry and remove another in one commit; return how many were inserted and removed.

        The old one is left alone where it is no longer what it was when it was read.
        """
        gone = f"name = {quoted(old.entry.name)} AND token = {quoted(old.token)}"

        def swap() -> tuple[int, int]:
            table = self._entries()
            merge = table.merge_insert("name").when_not_matched_insert_all().when_not_matched_by_source_delete(gone)
            result = merge.execute(to_arrow([new], table.schema))
            return int(result.num_inserted_rows), int(result.num_deleted_rows)

        return self._patiently(swap)

    def tidy(self) -> None:
        """Join the small parts that single additions leave, free what was removed, and index vectors that are many."""
        with told("tidy", self.place):
            table = self._entries()
            table.optimize(cleanup_older_than=_KEPT)
            if table.count_rows() >= _INDEXED and not table.list_indices():
                index = require("lancedb.index", "a catalog", "'sotdd[catalog]'")
                table.create_index("vector", config=index.IvfFlat(distance_type="l2"))

    def _tidy_sometimes(self) -> None:
        """Tidy where parts have become many; the change before it is made, so a failure here is nobody's error."""
        try:
            table = self._entries()
            if table.version % _EVERY:
                return
            found = table.stats()
            if found["fragment_stats"]["num_fragments"] > _PARTS + found["num_rows"] // _ROWS_PER_PART:
                table.optimize(cleanup_older_than=_KEPT)
        except (SotddError, RuntimeError, ValueError, OSError) as error:
            _log.info("the catalog %s was not tidied: %s", self.place, cause(error))

    def _widen(self, table: Any, rows: Sequence[Row]) -> None:  # noqa: ANN401
        """Give the table a column for every new key of metadata; refuse a value of another kind than its column."""
        arrow = require("pyarrow", "a catalog", "'sotdd[catalog]'")
        wanted: dict[str, str] = {}
        for row in rows:
            for key, kind in row.kinds().items():
                if wanted.setdefault(key, kind) != kind:
                    raise SotddError(_other_kind(key, wanted[key], kind))
        for key, kind in wanted.items():
            known = table.schema.field(key).type if key in table.schema.names else None
            if known is not None and known != arrow_type(kind):
                raise SotddError(_other_kind(key, str(known), kind))
        fields = [arrow.field(key, arrow_type(kind)) for key, kind in wanted.items() if key not in table.schema.names]
        if fields:
            table.add_columns(fields)

    def _entries(self) -> Any:  # noqa: ANN401
        table = self._open(_ENTRIES)
        if table is None:
            raise SotddError(f"there is no catalog at {self.place!r}: check the path, or add a sketch first.")
        return table

    def _open(self, name: str) -> Any:  # noqa: ANN401
        """A table as it is now; None where there is none."""
        if not self._is_remote and not Path(self.place).is_dir():
            return None
        with told("read", self.place):
            try:
                return self._connection.open_table(name)
            except (ValueError, FileNotFoundError) as error:
                if "not found" in str(error) or isinstance(error, FileNotFoundError):
                    return None
                raise

    def _make(self, name: str, **content: Any) -> bool:  # noqa: ANN401
        """Make a table; False where another process did so first."""
        with told("write to", self.place):
            try:
                self._connection.create_table(name, **content)
            except (ValueError, RuntimeError) as error:
                if "already exists" in str(error) or is_conflict(error):
                    return False
                raise
        return True

    def _make_entries(self, common: Common) -> None:
        if self._open(_ENTRIES) is not None:
            return
        arrow = require("pyarrow", "a catalog", "'sotdd[catalog]'")
        lance = require("lancedb", "a catalog", "'sotdd[catalog]'")
        types = {
            "n_points": arrow.int64(),
            "n_classes": arrow.int64(),
            "added": arrow.timestamp("us", tz="UTC"),
            "metadata": arrow.utf8(),
            "token": arrow.utf8(),
            "vector": arrow.list_(arrow.float32(), common.width),
        }
        fields = [arrow.field("name", arrow.utf8(), False, _KEY), *(arrow.field(*pair) for pair in types.items())]
        schema = arrow.schema([*fields, lance.blob("sketch").with_metadata(_BESIDE)])
        self._make(_ENTRIES, schema=schema)

    def _patiently(self, change: Callable[[], Result]) -> Result:
        """Make a change to the newest version, again and again while other processes come before."""
        with told("write to", self.place):
            for attempt in range(_ATTEMPTS):
                try:
                    return change()
                except SotddError:
                    raise
                except (RuntimeError, ValueError, OSError) as error:
                    if not is_conflict(error) or attempt == _ATTEMPTS - 1:
                        raise
                    time.sleep(random.uniform(0.01, 0.05 * (attempt + 1)))  # apart from the others
        raise AssertionError

    @cached_property
    def _connection(self) -> Any:  # noqa: ANN401
        lance = require("lancedb", "a catalog", "'sotdd[catalog]'")
        return lance.connect(self.place, storage_options=None if self.options is None else dict(self.options))

    def __getstate__(self) -> dict[str, object]:
        """A connection is made anew in another process."""
        return {"place": self.place, "options": self.options}

    @property
    def _is_remote(self) -> bool:
        return "://" in self.place


def _other_kind(key: str, one: str, other: str) -> str:
    return f"metadata {key!r} is {_in_words(one)} and {_in_words(other)}: give one kind, or another name."


def _in_words(kind: str) -> str:
    texts = {"string": "text", "double": "a number", "number": "a number", "bool": "true or false"}
    return texts.get(kind, {"truth": "true or false"}.get(kind, kind))
