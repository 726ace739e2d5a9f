"""The tables of a catalog, on disk or in an object store, as LanceDB keeps them; and the vectors of a search.

The table ``recipe`` has one row, written by the process that adds first. The table ``sketches`` has a row per entry:
its name, sizes and metadata, its vector, and its sketch as a blob beside the table, which a search by vectors does not
read. A change is one commit: readers see the table before it or after it, even if the process dies in between. LanceDB
commits by writing the list of a version's files under the next number, on condition that there is none: of two
processes one succeeds, and the other does its change again on top. No lock is held, on a disk or in an object store.

**Search.** A sketch is a long vector whose squared Euclidean distance from another is s-OTDD². A catalog keeps 1,019
random sums w of it. Squared distances of w have the right expectation and a relative deviation of sqrt(2 / 1,019),
4.4 %. So that float32 holds their squares well, w is taken from the sums of the catalog's first sketch, in units of
their length.

The order of a search is by ‖w − w'‖² less what chance gives for datasets of n and m points. With c the noise that the
halves of a sketch tell, that is (c + c') / 2 · (1/n + 1/m), or c alone where the other is not known. All of it, but for
numbers that depend on the query only, is an inner product: of the entry's vector

    (w', ‖w'‖², 1 / 2m, c' / 2, c' / 2m, 1/2),  or  (w', ‖w'‖², 1 / m, 0, 0, 1)  where c' is not known,

and the query's (2 w, −1, c, 1 / n, 1, c / n), or (2 w, −1, 0, 2 / n, 2, 0) without c. So one search of LanceDB, for the
largest inner products, finds the nearest.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, describe, first_line, require
from sotdd.basics.text import quote
from sotdd.sketches.codec import pack, unpack
from sotdd.sketches.quantiles import MOST_QUANTILES, QUANTILES
from sotdd.sketches.saved_projections import SavedProjections
from sotdd.sketches.sketch import Sketch
from sotdd.sketches.uncertainty import find_floor

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

# How many random sums a vector has; a sketch of fewer numbers is kept whole. With the five that follow: 1,024.
SUMS = 1019
# Larger numbers are cut to this, so that products of two stay in float32.
_LARGEST = 1e18

Vector = NDArray[np.float32]
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

    def recipe(self, mine: bytes | None = None) -> bytes | None:
        """The settings of the catalog, as the content of a file; of a new one these."""
        if mine is None:
            table = self._open(_RECIPE)
        else:
            arrow = require("pyarrow", "a catalog", "'sotdd[catalog]'")
            content = arrow.table({"content": arrow.array([mine], arrow.large_binary())})
            table = self._open_or_make(_RECIPE, data=content)
        if table is None:
            return None
        with self.one_line_errors("read"):
            found = table.to_arrow()["content"][0].as_py()
            if not isinstance(found, bytes):
                raise TypeError(f"its recipe is {describe(found)} where bytes belong")
            return found

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


# ------------------------------------------------------------------ search


@dataclass(frozen=True, eq=False)
class CatalogSettings:
    """What all entries of a catalog share, set by its first sketch.

    Attributes
    ----------
    through
        The projections of all its sketches.
    n_quantiles
        Every sketch has this many quantiles, or all values.
    centre
        The sums of the first sketch.
    """

    through: SavedProjections
    n_quantiles: int
    centre: Vector

    @classmethod
    def of(cls, first: Sketch) -> CatalogSettings:
        """What a first sketch sets."""
        count = QUANTILES if first.exact else first.n_quantiles
        sums = SUMS if first.n_projections * count > SUMS else None
        return cls(first.through, count, first.vector(sums, n_quantiles=count))

    @staticmethod
    @lru_cache(maxsize=8)
    def unpack(content: bytes) -> CatalogSettings:
        """Read what `pack` wrote; cached, since projections are drawn to check that they come out the same."""
        reader = unpack("catalog", content, "the recipe of the catalog")
        count = reader.count("n_quantiles", MOST_QUANTILES)
        numbers = reader.within("recipe").count("n_projections") * count
        centre = reader.array("sums", "f4", (min(numbers, SUMS),))
        return CatalogSettings(SavedProjections.read(reader), count, centre)

    def pack(self) -> bytes:
        """The content of a file."""
        header, arrays = self.through.pack()
        return pack("catalog", header | {"n_quantiles": self.n_quantiles}, arrays | {"sums": self.centre})

    def check(self, sketch: Sketch) -> None:
        """Refuse a sketch that cannot be compared with those of the catalog, and say why."""
        try:
            self.through.refuse_other(sketch.through, f"the catalog and sketch {sketch.name!r}")
        except SotddError as error:
            raise SotddError(f"{error} Catalog.sketch and sotdd sketch --like make one that fits.") from None
        if not sketch.exact and sketch.n_quantiles != self.n_quantiles:
            raise SotddError(
                f"sketch {sketch.name!r} has {sketch.n_quantiles:,} quantiles but the catalog keeps "
                f"{self.n_quantiles:,}: sketch with that many."
            )

    def entry_vector(self, sketch: Sketch) -> Vector:
        """The vector (1,024 at most,) that an entry is found by."""
        sums, noise, share = self._measure(sketch)
        parts = (share, 0, 0, 1) if noise is None else (share / 2, noise / 2, noise * share / 2, 1 / 2)
        return _round([*sums, np.dot(sums, sums), *parts])

    def query_vector(self, sketch: Sketch) -> Vector:
        """The vector (1,024 at most,) that has the largest inner products with the nearest entries."""
        sums, noise, share = self._measure(sketch)
        parts = (0, 2 * share, 2, 0) if noise is None else (noise, share, 1, noise * share)
        return _round([*2 * sums, -1, *parts])

    def _measure(self, sketch: Sketch) -> tuple[NDArray[np.float64], float | None, float]:
        """The sums w of a sketch, its noise c in the same units, and 1 / n."""
        centre = self.centre.astype(np.float64)
        unit = float(np.linalg.norm(centre)) or 1.0
        whole = len(centre) == sketch.n_projections * self.n_quantiles
        sums = sketch.vector(None if whole else SUMS, n_quantiles=self.n_quantiles) - centre
        floor = find_floor([(sketch.n_points, sketch.halves)], 2, (2, 2))  # noise adds it times 1/n + 1/m
        return sums / unit, None if floor is None else floor.power / unit**2, 1 / sketch.n_points


def _round(numbers: list[float]) -> Vector:
    return np.clip(np.array(numbers, np.float64), -_LARGEST, _LARGEST).astype(np.float32)
