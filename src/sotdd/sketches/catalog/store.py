"""The tables of a catalog, on disk or in an object store, as LanceDB keeps them.

The table ``recipe`` has one row, written by the process that adds first. The table ``sketches`` has a row per entry:
its name, sizes and metadata, its vector, and its sketch as a blob beside the table, which a search by vectors does not
read. A change is one commit: readers see the table before it or after it, even if the process dies in between. LanceDB
commits by writing the list of a version's files under the next number, on condition that there is none: of two
processes one succeeds, and the other does its change again on top. No lock is held, on a disk or in an object store.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from sotdd.basics.errors import SotddError, describe, first_line, require
from sotdd.basics.text import quote

Value: TypeAlias = str | int | float | bool | None
Metadata: TypeAlias = Mapping[str, Value]

# The columns that an `Entry` is read from, and all that every entry has.
ENTRY_COLUMNS = ("name", "n_points", "n_classes", "added", "metadata")
OWN_COLUMNS = (*ENTRY_COLUMNS, "vector", "sketch")

# With this LanceDB notices when two processes insert the same name.
_PRIMARY_KEY = {"lance-schema:unenforced-primary-key": "true"}
# Every sketch, however small, is stored beside the table, so that joining parts of the table copies one at a time.
_BESIDE = {"lance-encoding:blob-inline-size-threshold": "0"}

_ENTRIES, _RECIPE = "sketches", "recipe"
# How often a change is tried again after another process changed the table first.
_ATTEMPTS = 40
# LanceDB repeats what it was given, however long that was.
_LONGEST_CAUSE = 300

Result = TypeVar("Result")
Row = Mapping[str, Any]  # of the table, by columns
Table = Any  # LanceDB's own types are not checked, since it is optional.


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
        return cls(*(row[column] for column in ENTRY_COLUMNS))

    def to_dict(self) -> dict[str, Any]:
        """The entry as JSON values."""
        return {**asdict(self), "added": self.added.isoformat(timespec="seconds"), "metadata": dict(self.metadata)}


class Store:
    """The tables of one catalog.

    Parameters
    ----------
    location
        A folder, or the URL of one in an object store.
    """

    def __init__(self, location: str) -> None:
        self.location = location

    def __reduce__(self) -> tuple[type[Store], tuple[str]]:
        """Without the connection: another process makes its own."""
        return Store, (self.location,)

    def recipe(self) -> bytes | None:
        """The recipe, as the content of a file; None where nothing was added yet."""
        table = self._open(_RECIPE)
        return None if table is None else self._read_recipe(table)

    def settle_recipe(self, mine: bytes) -> bytes:
        """The recipe; where there is none yet, this one."""
        arrow = require("pyarrow", "a catalog", "'sotdd[catalog]'")
        content = arrow.table({"content": arrow.array([mine], arrow.large_binary())})
        return self._read_recipe(self._open_or_make(_RECIPE, data=content))

    def entries(self) -> Table:
        """The table of entries as it is now; None where nothing was added yet."""
        return self._open(_ENTRIES)

    def require_entries(self) -> Table:
        """The table of entries as it is now, or an error."""
        table = self._open(_ENTRIES)
        if table is None:
            raise self.absent()
        return table

    def put(self, rows: Sequence[Row], *, overwrite: bool) -> int:
        """Insert entries in one commit, and return how many; taken names are left out, or replaced."""
        self._open_or_make(_ENTRIES, schema=_make_schema(len(rows[0]["vector"])))
        return self.change(lambda table: _put_rows(table, rows, overwrite=overwrite))

    def change(self, change: Callable[[Table], Result]) -> Result:
        """Change the newest version of the entries, again while other processes change the table first."""
        with self.one_line_errors("write to"):
            for attempt in range(_ATTEMPTS):
                try:
                    return change(self.require_entries())
                except (RuntimeError, ValueError, OSError) as error:
                    if isinstance(error, SotddError) or not _is_conflict(error) or attempt == _ATTEMPTS - 1:
                        raise
                    time.sleep(random.uniform(0.01, 0.05 * (attempt + 1)))  # so that processes do not retry in step
        raise AssertionError

    def absent(self) -> SotddError:
        """The error to raise where a catalog is expected and there is none."""
        return SotddError(f"there is no catalog at {quote(self.location)}: check the path, or add a sketch first.")

    def _open(self, name: str) -> Table:
        """A table as it is now; None where there is none."""
        with self.one_line_errors("read"):
            if "://" not in self.location and not Path(self.location).is_dir():
                return None
            try:
                return self._connection.open_table(name)
            except (ValueError, FileNotFoundError) as error:
                if "not found" in str(error) or isinstance(error, FileNotFoundError):
                    return None
                raise

    def _open_or_make(self, name: str, **content: Any) -> Table:  # noqa: ANN401
        """A table as it is now, made if there is none. If several processes make it at once, one of them decides."""
        with self.one_line_errors("write to"):
            while (table := self._open(name)) is None:
                try:
                    return self._connection.create_table(name, **content)
                except (ValueError, RuntimeError) as error:
                    if "already exists" not in str(error) and not _is_conflict(error):
                        raise
            return table

    def _read_recipe(self, table: Table) -> bytes:
        with self.one_line_errors("read"):
            content = table.to_arrow()["content"][0].as_py()
            if not isinstance(content, bytes):
                raise TypeError(f"its recipe is {describe(content)} where bytes belong")
            return content

    @cached_property
    def _connection(self) -> Any:  # noqa: ANN401
        return require("lancedb", "a catalog", "'sotdd[catalog]'").connect(self.location)

    @contextmanager
    def one_line_errors(self, doing: str) -> Iterator[None]:
        """Turn errors of LanceDB and of the system into one line."""
        try:
            yield
        except SotddError:
            raise
        except Exception as error:  # LanceDB also raises types of its own, such as those of a panic
            cause = re.sub(r",? \S*\.rs:\d.*$", "", first_line(error))[:_LONGEST_CAUSE]  # not the place in its sources
            raise SotddError(f"cannot {doing} the catalog {quote(self.location)}: {cause}.") from error


def _is_conflict(error: BaseException) -> bool:
    """Whether another process changed the table in the meantime, so that a retry may help."""
    text = str(error).lower()
    return any(word in text for word in ("commit conflict", "concurrent", "preempted", "please retry"))


def quote_text(text: str) -> str:
    """Text as an SQL literal.

    Examples
    --------
    >>> from sotdd.sketches.catalog.store import quote_text
    >>> print(quote_text("it's"))
    'it''s'
    """
    return "'" + text.replace("'", "''") + "'"


def _make_schema(width: int) -> Any:  # noqa: ANN401
    """The columns that every entry has, with vectors of this many numbers."""
    arrow = require("pyarrow", "a catalog", "'sotdd[catalog]'")
    lance = require("lancedb", "a catalog", "'sotdd[catalog]'")
    types = {
        "n_points": arrow.int64(),
        "n_classes": arrow.int64(),
        "added": arrow.timestamp("us", tz="UTC"),
        "metadata": arrow.utf8(),
        "vector": arrow.list_(arrow.float32(), width),
    }
    name = arrow.field("name", arrow.utf8(), False, _PRIMARY_KEY)
    return arrow.schema(
        [name, *(arrow.field(*pair) for pair in types.items()), lance.blob("sketch").with_metadata(_BESIDE)]
    )


def _put_rows(table: Table, rows: Sequence[Row], *, overwrite: bool) -> int:
    """Insert entries in one commit, and return how many; taken names are left out, or replaced."""
    arrow = require("pyarrow", "a catalog", "'sotdd[catalog]'")
    fields = _find_new_columns(rows, table.schema)
    if fields:
        table.add_columns(fields)
    merge = table.merge_insert("name").when_not_matched_insert_all()
    if overwrite:
        merge = merge.when_matched_update_all()
    names = table.schema.names
    # Every column of the schema is given; what a row does not have is null.
    types = {field.name: field.type for field in table.schema} | {"sketch": arrow.large_binary()}
    schema = arrow.schema([arrow.field(key, kind, key != "name") for key, kind in types.items()])
    result = merge.execute(arrow.Table.from_pylist([dict(row) for row in rows], schema=schema))
    if overwrite and table.schema.names != names:  # a new column kept what the old entry had there
        return _put_rows(table, rows, overwrite=True)
    return int(result.num_inserted_rows + result.num_updated_rows)


def _find_new_columns(rows: Sequence[Mapping[str, Any]], schema: Any) -> list[Any]:  # noqa: ANN401
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
