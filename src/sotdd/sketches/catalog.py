"""The catalog: add, search, get and remove sketches by name."""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, check_count, check_flag, describe, require
from sotdd.basics.files import check_path
from sotdd.basics.resources import Progress
from sotdd.basics.text import join_names, quote, say_count
from sotdd.compute.matrix import Ranking
from sotdd.inputs import open_dataset
from sotdd.inputs.data import Dataset
from sotdd.projections.projections import Projections
from sotdd.sketches.catalog_store import ENTRY_COLUMNS, OWN_COLUMNS, CatalogSettings, Entry, Row, Store, Table, Value
from sotdd.sketches.quantiles import QUANTILES, Levels
from sotdd.sketches.sketch import Sketch, pack_sketch, unpack_sketch
from sotdd.sketches.sketching import Comparable, require_projections, sketch

# Numbers are filtered as float64, which holds whole numbers up to here.
_LARGEST = 2**53
_METADATA_KEY = re.compile(r"[a-z][a-z0-9_]{0,99}")
# After every 32nd change the parts of the table are counted. They are joined when there are more than 64 and one per
# ten rows, so that each sketch is copied about ten times while a catalog grows one by one.
_EVERY, _PARTS, _ROWS_PER_PART = 32, 64, 10
# Rows that were removed, replaced or copied stay this long, for readers that began before.
_KEPT = timedelta(minutes=2)
# This many full sketches are read at a time, which bounds memory.
_TOGETHER = 16

_log = logging.getLogger("sotdd")


class Catalog:
    """Named sketches, searched for the datasets most like a given one.

    All sketches of a catalog are through the same projections: those of the first one added. Several
    processes may read and add at once; each change is made whole or not at all.

    Parameters
    ----------
    path
        A folder, made when the first sketch is added, or the URL of one in an object store
        (``s3://``, ``gs://``, ``az://``), whose keys, region and endpoint LanceDB takes from the environment, such as
        ``AWS_ACCESS_KEY_ID`` and ``AWS_ENDPOINT_URL``.

    Examples
    --------
    >>> import numpy as np, sotdd, tempfile
    >>> rng = np.random.default_rng(0)
    >>> data = {f"shift {step}": rng.normal(step / 10, 1, size=(500, 3)) for step in range(5)}
    >>> projections = sotdd.Projections.fit(data, n_projections=200)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     catalog = sotdd.Catalog(folder)
    ...     for step, (name, points) in enumerate(data.items()):
    ...         catalog.add(name, sotdd.sketch(points, projections), step=step)
    ...     print(catalog.nearest(rng.normal(0.4, 1, size=(400, 3)), k=2, where="step > 0"))
    rank  candidate  points           distance  beyond noise  step
      1=  shift 4       500  0.0536 ± 0.0019 ~             0  4
      1=  shift 3       500  0.0829 ± 0.0052 ~        0.0535  3
    nearest: one of these 2, which noise cannot tell apart: shift 4, shift 3
    beyond noise: distance minus its expected sampling noise; the order adds one standard error
    = not significantly different
    ~ within noise: as near as two samples of the same data
    1 of 2 errors are rough, since few projections carry most of the cost: use more projections
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        location = check_path(path, expected="a folder or the URL of one")
        require("lancedb", "a catalog", "'sotdd[catalog]'")
        # A URL stays as it was written: a path would lose one of its slashes.
        self._store = Store(path if isinstance(path, str) else str(location))

    @property
    def path(self) -> str:
        """The folder or URL."""
        return self._store.location

    def add(self, name: str, sketch: Comparable, *, overwrite: bool = False, **metadata: object) -> None:
        """Add one sketch under a name.

        Parameters
        ----------
        name
            The name of the entry.
        sketch
            A sketch through the projections of this catalog, or data, which are sketched through them. A new catalog
            takes its projections from its first sketch, or fits them on its first data.
        overwrite
            Whether to replace an entry of the same name, which is an error otherwise.
        metadata
            What `nearest` and `entries` can filter by: text, numbers, True, False or None, each under a
            lower-case name.
        """
        self.add_many({check_name(name): sketch}, {name: metadata}, overwrite=overwrite)

    def add_many(
        self,
        sketches: Mapping[str, Comparable],
        metadata: Mapping[str, Mapping[str, object]] | None = None,
        *,
        overwrite: bool = False,
    ) -> None:
        """Add several in one commit, which is much faster than one by one: all are added, or none.

        Parameters
        ----------
        sketches
            Sketches by name.
        metadata
            Metadata of some or all of them, by name.
        overwrite
            As in `add`.
        """
        if not isinstance(sketches, Mapping):
            raise SotddError(
                f"is {describe(sketches)}: expected sketches or data by name, such as {{'a': x}}.", setting="sketches"
            )
        if not isinstance(metadata, (Mapping, type(None))):
            raise SotddError(
                f"is {describe(metadata)}: expected metadata by name, such as {{'a': {{'n': 1}}}}.", setting="metadata"
            )
        check_flag(overwrite, "overwrite")
        checked = {name: check_metadata(values) for name, values in (metadata or {}).items()}
        for name in checked:
            if name not in sketches:
                raise SotddError(f"there is metadata of {name!r} but no sketch of that name: check the name.")
        made = self._sketch_all({check_name(name): source for name, source in sketches.items()})
        if not made:
            return
        settings = self._read_settings(CatalogSettings.of(next(iter(made.values()))).pack())
        for one in made.values():
            settings.check(one)
        taken = set() if overwrite else self._find_names(made)
        if taken:
            raise self._taken(min(taken))
        # Metadata are columns to filter by, and JSON, which tells 2 from 2.0, and None from a key that is not there.
        rows = [
            {
                **checked.get(name, {}),
                "name": name,
                "n_points": one.n_points,
                "n_classes": len(one.classes),
                "added": datetime.now(UTC),
                "metadata": json.dumps(checked.get(name, {}), ensure_ascii=False, allow_nan=False),
                "vector": settings.entry_vector(one),
                "sketch": pack_sketch(one),
            }
            for name, one in made.items()
        ]
        count = self._store.put(rows, overwrite=overwrite)
        self._tidy_sometimes()
        if count < len(rows):  # another process was first
            raise self._taken(*made)

    def nearest(self, source: Comparable, k: int = 10, *, where: str | None = None) -> Ranking:
        """The datasets most like this one, nearest first.

        The order is that of `sotdd.rank`: what is beyond the noise of their sizes, plus one standard error. Sketches of
        streams do not know that noise; among them it is the distance. Distances are s-OTDD with p = 2, of the full
        sketches.

        The search scans vectors of 1,024 numbers, and then compares the full sketches of 4 k + 20 entries.

        Parameters
        ----------
        source
            A sketch through the projections of this catalog, or data, which are sketched through them.
        k
            How many entries to return.
        where
            An SQL condition on ``name``, ``n_points``, ``n_classes``, ``added`` and metadata, such as
            ``"source = 'web' AND n_points > 1000"``, which LanceDB reads. Only entries that meet it are searched.
        """
        settings = self._read_settings()
        count = min(check_count(k, "k"), max(1, len(self)))  # LanceDB counts in 64 bits
        query = source if isinstance(source, Sketch) else self.sketch(source)
        settings.check(query)
        # For ten entries thirty are compared, which hold 0.99 or more of the ten nearest of 20,000.
        table, rows = self._select(where, settings.query_vector(query), 4 * count + 20)
        rows.sort(key=lambda row: row["name"])
        # Plain means over the projections, which are the same for all, as vectors have them.
        distances = {one.name: query.distance(one, estimator="plain") for one in self._read_sketches(table, rows)}
        metadata = {row["name"]: row["metadata"] for row in rows}
        return Ranking.of(query.name, distances, metadata, count)

    def get(self, name: str) -> Sketch:
        """The sketch of this name."""
        (sketch,) = self._read_sketches(*self._find_row(name))
        return sketch

    def entry(self, name: str) -> Entry:
        """The entry of this name: sizes, when it was added, metadata."""
        _, (row,) = self._find_row(name)
        return Entry.from_table(row)

    def entries(self, where: str | None = None) -> tuple[Entry, ...]:
        """All entries in the order of their names, or those that meet an SQL condition."""
        _, rows = self._select(where)
        return tuple(sorted(map(Entry.from_table, rows), key=lambda entry: entry.name))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all entries, in order."""
        return tuple(entry.name for entry in self.entries())

    def remove(self, name: str) -> None:
        """Remove the entry of this name."""
        condition = _match_names([check_name(name)])
        if name not in self or not self._store.change(lambda table: table.delete(condition).num_deleted_rows):
            raise self._missing(name)
        self._tidy_sometimes()

    @property
    def recipe(self) -> Mapping[str, Any] | None:
        """The settings of its projections; None where nothing was added yet."""
        return None if self._store.recipe() is None else self._read_settings().through.settings

    @property
    def levels(self) -> Levels:
        """Where the quantile functions of its sketches are cut into parts."""
        return Levels(self._read_settings().n_quantiles)

    @property
    def projections(self) -> Projections:
        """The projections of every sketch in the catalog."""
        return self._read_settings().through.require_projections(f"catalog {quote(self.path)}")

    def sketch(
        self,
        data: Dataset,
        *,
        name: str | None = None,
        device: str = "auto",
        progress: Progress = None,
    ) -> Sketch:
        """Sketch data through the projections of the catalog, with as many quantiles as its other sketches."""
        n_quantiles = self.levels.count
        return sketch(data, self.projections, n_quantiles=n_quantiles, name=name, device=device, progress=progress)

    def tidy(self) -> None:
        """Join the small parts that single additions leave, and free the space of removed entries.

        Additions and removals do this now and then by themselves. Entries removed in the last two minutes stay on disk,
        for readers that began before.
        """
        with self._store.one_line_errors("tidy"):
            self._store.require_entries().optimize(cleanup_older_than=_KEPT)

    def _tidy_sometimes(self) -> None:
        """Tidy if there are many parts. The change itself is committed, so a failure here is only logged."""
        try:
            table = self._store.require_entries()
            if table.version % _EVERY:
                return
            stats = table.stats()
            if stats["fragment_stats"]["num_fragments"] > _PARTS + stats["num_rows"] // _ROWS_PER_PART:
                self.tidy()
        except (SotddError, RuntimeError, ValueError, OSError) as error:
            _log.info("the catalog %s was not tidied: %s", self.path, error)

    def __len__(self) -> int:
        """How many entries there are."""
        table = self._store.entries()
        with self._store.one_line_errors("read"):
            return 0 if table is None else int(table.count_rows())

    def __contains__(self, name: object) -> bool:
        """Whether there is an entry of this name."""
        return isinstance(name, str) and name.isprintable() and bool(self._find_names([name]))

    def __iter__(self) -> Iterator[str]:
        """The names, in order."""
        return iter(self.names)

    def __repr__(self) -> str:
        """Path and size, for people."""
        return f"Catalog({quote(self.path)}: {say_count(len(self), 'entry', 'entries')})"

    def _read_settings(self, mine: bytes | None = None) -> CatalogSettings:
        """The settings of the catalog; of a new one these, or an error."""
        content = self._store.recipe(mine)
        if content is None:
            raise self._store.absent()
        return CatalogSettings.unpack(content)

    def _sketch_all(self, sources: Mapping[str, Comparable]) -> dict[str, Sketch]:
        """Sketches and data as sketches; in a new catalog through those of the first sketch, or fitted on all data."""
        made = {name: one for name, one in sources.items() if isinstance(one, Sketch)}
        data = {name: open_dataset(one, name=name) for name, one in sources.items() if not isinstance(one, Sketch)}
        if not data:
            return made
        if self.recipe is not None:
            drawn, n_quantiles = self.projections, self.levels.count
        elif made:
            first = next(iter(made.values()))
            drawn = require_projections(first, next(iter(data.values())))
            n_quantiles = QUANTILES if first.exact else first.n_quantiles
        else:
            drawn, n_quantiles = Projections.fit(data), QUANTILES
        made |= {name: sketch(one, drawn, n_quantiles=n_quantiles) for name, one in data.items()}
        return {name: made[name] for name in sources}

    def _select(
        self, where: str | None, vector: NDArray[np.float32] | None = None, limit: int = 0
    ) -> tuple[Table, list[Row]]:
        """The entries that meet an SQL condition, those with the largest inner products with a vector first.

        With the table as it was read. An error in a condition is told in LanceDB's words.
        """
        if not isinstance(where, (str, type(None))):
            raise SotddError(f'is {describe(where)}: expected SQL, such as "n_points > 1000".', setting="where")
        table, columns = self._store.entries(), list(ENTRY_COLUMNS)
        if table is None:
            return table, []
        with self._store.one_line_errors("read" if where is None else f"find {describe(where)} in"):
            search = table.search()
            if vector is not None:
                search = table.search(vector, vector_column_name="vector").distance_type("dot").limit(limit)
                columns.append("_distance")
            found = search if where is None else search.where(where)
            rows = found.select(columns).with_row_id(True).to_arrow().to_pylist()
            return table, [row | {"metadata": dict(json.loads(row["metadata"]))} for row in rows]

    def _read_sketches(self, table: Table, rows: Sequence[Row]) -> Iterator[Sketch]:
        """The sketches in some rows, under the names of their entries."""
        for start in range(0, len(rows), _TOGETHER):
            part = rows[start : start + _TOGETHER]
            with self._store.one_line_errors("read"):
                blobs = [blob.as_py() for blob in table.fetch_blobs("sketch", [row["_rowid"] for row in part])]
            for row, content in zip(part, blobs, strict=True):
                yield replace(unpack_sketch(content, row["name"]), name=row["name"])

    def _find_names(self, names: Iterable[str]) -> set[str]:
        """Those of these names that there are entries of."""
        _, rows = self._select(_match_names(names))
        return {row["name"] for row in rows}

    def _find_row(self, name: str) -> tuple[Table, list[Row]]:
        """The table, and the row of an entry in it."""
        table, rows = self._select(_match_names([check_name(name)]))
        if not rows:
            raise self._missing(name)
        return table, rows

    def _missing(self, name: str) -> SotddError:
        there = join_names(self.names) or "none"
        return SotddError(
            f"there is no entry {name!r} in the catalog {quote(self.path)}, only {there}: check the name."
        )

    def _taken(self, *names: str) -> SotddError:
        named = " or ".join(map(repr, names))
        return SotddError(
            f"there is an entry {named} in the catalog {quote(self.path)}: choose another name, or pass overwrite=True."
        )


def check_name(name: object) -> str:
    """Return the name of an entry, or refuse."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise SotddError(f"the name of an entry is {describe(name)}: expected text that can be printed.")
    return name


def check_metadata(metadata: object) -> dict[str, Value]:
    """Return metadata as plain values, or refuse.

    Examples
    --------
    >>> import numpy as np
    >>> from sotdd.sketches.catalog import check_metadata
    >>> check_metadata({"source": "web", "year": np.int64(2024), "clean": True})
    {'source': 'web', 'year': 2024, 'clean': True}
    """
    if not isinstance(metadata, Mapping):
        raise SotddError(f"the metadata of an entry is {describe(metadata)}: expected values by name.")
    values: dict[str, Value] = {}
    for key, value in metadata.items():
        if not isinstance(key, str) or not _METADATA_KEY.fullmatch(key) or key in OWN_COLUMNS:
            taken = ", which every entry has" if key in OWN_COLUMNS else ""
            raise SotddError(
                f"metadata cannot be called {describe(key)}{taken}: expected lower-case letters, digits and _, "
                "at most 100 of them."
            )
        plain = value.item() if isinstance(value, np.generic) else value
        if isinstance(plain, str):
            fits = plain.encode(errors="replace").decode() == plain  # not half of a surrogate pair
        elif isinstance(plain, float):
            fits = math.isfinite(plain)
        else:
            fits = plain is None or (isinstance(plain, int) and abs(plain) <= _LARGEST)
        if not fits:
            raise SotddError(
                f"metadata {key!r} is {describe(value)}: expected text, a finite number up to 2^53, True, False or "
                "None."
            )
        values[key] = plain
    return values


def _match_names(names: Iterable[str]) -> str:
    """The SQL condition that the name of an entry is one of these."""
    texts = ("'" + name.replace("'", "''") + "'" for name in names)
    return f"name IN ({', '.join(texts)})"
