"""The tables of a catalog, on disk or in an object store, as LanceDB keeps them.

The table ``recipe`` has one row, written by the process that adds first. The table ``sketches`` has a row per entry:
its name, sizes and metadata, its vector, and its sketch as a blob beside the table, which a search by vectors does not
read. A change is one commit: readers see the table before it or after it, even if the process dies in between. LanceDB
commits by writing the list of a version's files under the next number, on condition that there is none: of two
processes one succeeds, and the other does its change again on top. No lock is held, on a disk or in an object store.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from sotdd.basics.errors import SotddError, require
from sotdd.basics.files import shown
from sotdd.basics.kept import kept_property
from sotdd.sketches.catalog.entries import Row, arrow_type, quoted, to_arrow
from sotdd.sketches.catalog.faults import cause, is_conflict, one_line_errors
from sotdd.sketches.catalog.object_store import connection_options, is_remote
from sotdd.sketches.catalog.recipe import CatalogRecipe
from sotdd.sketches.catalog.snapshot import Snapshot
from sotdd.sketches.sketch import Sketch

_ENTRIES, _RECIPE = "sketches", "recipe"
_VERSION = 1
# With this LanceDB notices when two processes insert the same name.
_PRIMARY_KEY = {"lance-schema:unenforced-primary-key": "true"}
# Every sketch, however small, is stored beside the table, so that joining parts of the table copies one at a time.
_BESIDE = {"lance-encoding:blob-inline-size-threshold": "0"}
# How often a change is tried again after another process changed the table first.
_ATTEMPTS = 40
# After every 32nd change the parts of the table are counted. They are joined when there are more than 64 and one per
# ten rows, so that each sketch is copied about ten times while a catalog grows one by one.
_EVERY, _PARTS, _ROWS_PER_PART = 32, 64, 10
# Rows that were removed, replaced or copied stay this long, for readers that began before.
KEPT = timedelta(minutes=2)

Result = TypeVar("Result")

_log = logging.getLogger("sotdd.catalog.store")


@dataclass(frozen=True)
class Store:
    """The tables of one catalog.

    Attributes
    ----------
    location
        A folder, or the URL of one in an object store.
    options
        LanceDB's ``storage_options`` for an object store.
    """

    location: str
    options: Mapping[str, str] | None = None

    def recipe(self) -> CatalogRecipe | None:
        """The recipe; None where nothing was added yet. It never changes, so a folder is asked once."""
        stamp = self.stamp()
        if stamp is not None and stamp in self._recipes:
            return self._recipes[stamp]
        recipe = self._read_recipe()
        if recipe is not None and stamp is not None:
            self._recipes[stamp] = recipe
        return recipe

    def stamp(self) -> tuple[int, int] | None:
        """Tells a folder from another that took its place; None in an object store."""
        try:
            status = None if is_remote(self.location) else (Path(self.location) / f"{_RECIPE}.lance").stat()
        except OSError:
            return None
        return None if status is None else (status.st_ino, status.st_mtime_ns)

    def _read_recipe(self) -> CatalogRecipe | None:
        table = self.open(_RECIPE)
        if table is None:
            return None
        with one_line_errors("read", self.location):
            (row,) = table.to_arrow().to_pylist()
        if row["version"] != _VERSION:
            raise SotddError(
                f"the catalog {shown(self.location)} has version {row['version']} of the format but this sotdd reads "
                f"version {_VERSION}: update sotdd."
            )
        return CatalogRecipe.from_row(row["recipe"], row["n_quantiles"], row["dim"], self.location)

    def settle_recipe(self, first: Sketch) -> CatalogRecipe:
        """The recipe; where there is none yet, that of this sketch. If several processes add at once, one decides."""
        arrow = require("pyarrow", "a catalog", "'sotdd[catalog]'")

        def settle() -> CatalogRecipe:
            settled = self.recipe()
            if settled is not None:
                return settled
            mine = CatalogRecipe.of(first, self.location)
            columns = {"version": [_VERSION], "n_quantiles": [mine.n_quantiles], "dim": [mine.dim]}
            row = arrow.table({**columns, "recipe": arrow.array([mine.to_bytes()], arrow.large_binary())})
            row = row.set_column(2, "dim", row["dim"].cast(arrow.int64()))
            return mine if self.make(_RECIPE, data=row) else settle()

        return settle()

    def snapshot(self) -> Snapshot | None:
        """The entries as they are now; None where nothing was added yet."""
        table = self.open(_ENTRIES)
        return None if table is None else Snapshot(table, self.location)

    def put(self, rows: Sequence[Row], recipe: CatalogRecipe, *, overwrite: bool) -> int:
        """Insert entries in one commit, and return how many; taken names are left out, or replaced."""
        self._make_entries(recipe)

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
        with one_line_errors("tidy", self.location):
            self._entries().optimize(cleanup_older_than=KEPT)

    def absent(self) -> SotddError:
        """The error to raise where a catalog is expected and there is none."""
        return SotddError(f"there is no catalog at {shown(self.location)}: check the path, or add a sketch first.")

    def _tidy_sometimes(self) -> None:
        """Tidy if there are many parts. The change itself is committed, so a failure here is only logged."""
        try:
            table = self._entries()
            if table.version % _EVERY:
                return
            stats = table.stats()
            if stats["fragment_stats"]["num_fragments"] > _PARTS + stats["num_rows"] // _ROWS_PER_PART:
                table.optimize(cleanup_older_than=KEPT)
        except (SotddError, RuntimeError, ValueError, OSError) as error:
            _log.info("the catalog %s was not tidied: %s", self.location, cause(error))

    def _widen(self, table: Any, rows: Sequence[Row]) -> None:  # noqa: ANN401
        """Give the table a column for every new key of metadata; refuse a value of another kind than its column."""
        arrow = require("pyarrow", "a catalog", "'sotdd[catalog]'")
        wanted: dict[str, str] = {}
        for row in rows:
            for key, kind in row.metadata_kinds().items():
                if wanted.setdefault(key, kind) != kind:
                    raise SotddError(_other_kind(key, wanted[key], kind))
        for key, kind in wanted.items():
            column = table.schema.field(key).type if key in table.schema.names else None
            if column is not None and column != arrow_type(kind):
                raise SotddError(_other_kind(key, str(column), kind))
        fields = [arrow.field(key, arrow_type(kind)) for key, kind in wanted.items() if key not in table.schema.names]
        if fields:
            table.add_columns(fields)

    def _entries(self) -> Any:  # noqa: ANN401
        table = self.open(_ENTRIES)
        if table is None:
            raise self.absent()
        return table

    def open(self, name: str) -> Any:  # noqa: ANN401
        """A table as it is now; None where there is none."""
        with one_line_errors("read", self.location):
            if not is_remote(self.location) and not Path(self.location).is_dir():
                return None
            try:
                return self.connection.open_table(name)
            except (ValueError, FileNotFoundError) as error:
                if "not found" in str(error) or isinstance(error, FileNotFoundError):
                    return None
                raise

    def make(self, name: str, **content: Any) -> bool:  # noqa: ANN401
        """Make a table; False where another process did so first."""
        with one_line_errors("write to", self.location):
            try:
                self.connection.create_table(name, **content)
            except (ValueError, RuntimeError) as error:
                if "already exists" in str(error) or is_conflict(error):
                    return False
                raise
        return True

    def _make_entries(self, recipe: CatalogRecipe) -> None:
        if self.open(_ENTRIES) is not None:
            return
        arrow = require("pyarrow", "a catalog", "'sotdd[catalog]'")
        lance = require("lancedb", "a catalog", "'sotdd[catalog]'")
        types = {
            "n_points": arrow.int64(),
            "n_classes": arrow.int64(),
            "added": arrow.timestamp("us", tz="UTC"),
            "metadata": arrow.utf8(),
            "token": arrow.utf8(),
            "vector": arrow.list_(arrow.float32(), recipe.width),
        }
        fields = [
            arrow.field("name", arrow.utf8(), False, _PRIMARY_KEY),
            *(arrow.field(*pair) for pair in types.items()),
        ]
        schema = arrow.schema([*fields, lance.blob("sketch").with_metadata(_BESIDE)])
        self.make(_ENTRIES, schema=schema)

    def _retrying(self, change: Callable[[], Result]) -> Result:
        """Make a change to the newest version, and retry while other processes change the table first."""
        with one_line_errors("write to", self.location):
            for attempt in range(_ATTEMPTS):
                try:
                    return change()
                except SotddError:
                    raise
                except (RuntimeError, ValueError, OSError) as error:
                    if not is_conflict(error) or attempt == _ATTEMPTS - 1:
                        raise
                    time.sleep(random.uniform(0.01, 0.05 * (attempt + 1)))  # so that processes do not retry in step
        raise AssertionError

    @kept_property
    def _recipes(self) -> dict[tuple[int, int], CatalogRecipe]:
        """Recipes that were read, by stamp."""
        return {}

    @kept_property
    def connection(self) -> Any:  # noqa: ANN401
        """The connection of LanceDB."""
        lance = require("lancedb", "a catalog", "'sotdd[catalog]'")
        return lance.connect(self.location, storage_options=connection_options(self.location, self.options))

    def __getstate__(self) -> dict[str, object]:
        """Without the connection: another process makes its own."""
        return {"location": self.location, "options": self.options}


def _other_kind(key: str, one: str, other: str) -> str:
    return f"metadata {key!r} is {_in_words(one)} and {_in_words(other)}: use one kind, or another key."


def _in_words(kind: str) -> str:
    texts = {"string": "text", "double": "a number", "bool": "true or false"}  # types of Arrow
    return {**texts, "number": "a number", "truth": "true or false"}.get(kind, kind)
