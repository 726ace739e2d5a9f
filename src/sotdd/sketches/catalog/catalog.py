"""The catalog: add, find, get, rename and remove sketches by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from os import PathLike, fspath
from typing import Any, Literal

from sotdd.basics.checks import check_count, described
from sotdd.basics.errors import SotddError, require
from sotdd.basics.progress import Progress
from sotdd.inputs.data import Dataset
from sotdd.projections.recipe import Projections
from sotdd.sketches.catalog.common import Common
from sotdd.sketches.catalog.hits import Entry, Hits
from sotdd.sketches.catalog.metadata import checked_metadata, checked_name, quoted
from sotdd.sketches.catalog.rows import Row
from sotdd.sketches.catalog.search import nearest
from sotdd.sketches.catalog.snapshot import Snapshot
from sotdd.sketches.catalog.store import Store
from sotdd.sketches.file import from_bytes
from sotdd.sketches.making import Comparable, projections_of, sketch
from sotdd.sketches.sketch import Sketch


class Catalog:
    """Named sketches on disk, searched for the datasets most like another.

    All sketches of a catalog are through the same projections, which the first one brings. Several
    processes may read and add at once; each change is made whole or not at all.

    Parameters
    ----------
    path
        A folder, made when the first sketch is added, or the URL of one in an object store
        (``s3://``, ``gs://``, ``az://``).
    storage_options
        What the object store needs, such as keys and a region: LanceDB's ``storage_options``.

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
       name     distance         excess    points  classes  step
    1  shift 4  0.0537 ± 0.0019  -0.00092  500     1        4
    2  shift 3  0.0829 ± 0.0052  0.0033    500     1        3
    """

    def __init__(self, path: str | PathLike[str], *, storage_options: Mapping[str, str] | None = None) -> None:
        if not isinstance(path, (str, PathLike)) or not str(path):
            raise SotddError(f"path is {described(path)}: expected a folder or the URL of one.")
        require("lancedb", "a catalog", "'sotdd[catalog]'")
        self._store = Store(str(fspath(path)), storage_options)

    @property
    def path(self) -> str:
        """Where it is."""
        return self._store.place

    def add(self, name: str, sketch: Comparable, *, overwrite: bool = False, **metadata: object) -> None:
        """Add one sketch under a name.

        Parameters
        ----------
        name
            What it is called from now on.
        sketch
            A sketch through the projections of this catalog; of a new catalog any, whose projections
            become the catalog's. Or data, which are sketched through them.
        overwrite
            Whether to replace an entry of the same name, which is an error otherwise.
        metadata
            What else to keep of it, for `nearest` and `entries` to filter by: text, numbers, True, False
            or None, each under a lower-case name.
        """
        self.add_many({name: sketch}, {name: metadata}, overwrite=overwrite)

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
            By name, what else to keep of some or all of them.
        overwrite
            As in `add`.
        """
        told = {name: checked_metadata(given) for name, given in (metadata or {}).items()}
        for name in told:
            if name not in sketches:
                raise SotddError(f"there is metadata of {name!r} but no sketch of that name.")
        made = {checked_name(name): self._as_sketch(source, name) for name, source in sketches.items()}
        if not made:
            return
        common = self._store.agree(next(iter(made.values())))
        for one in made.values():
            common.check(one)
        if not overwrite and len(made) > 1:  # a single one is refused by the table itself
            taken = set(made) & set(self.names)
            if taken:
                raise SotddError(_taken(min(taken), self.path))
        rows = [Row.of(name, one, told.get(name, {}), common) for name, one in made.items()]
        if self._store.put(rows, common, overwrite=overwrite) < len(rows):
            raise SotddError(self._left_out(rows))

    def nearest(self, source: Comparable, k: int = 10, *, where: str | None = None, max_compared: int = 200) -> Hits:
        """The datasets most like this one, nearest first.

        Nearest by what is beyond the noise of their sizes (`Distance.excess`), so that small samples are not
        always far; by distance where sketches of streams do not know that. Each `Hit` says which.

        Entries are searched by vectors of 1,024 numbers, whose distances are s-OTDD within a few
        percent; the full sketches of the best are then compared, more and more of them until one that
        was passed over is hardly nearer.

        Parameters
        ----------
        source
            A sketch through the projections of this catalog, or data, which are sketched through them.
        k
            How many.
        where
            An SQL condition on ``name``, ``n_points``, ``n_classes``, ``added`` and metadata: only entries
            that it holds for are searched, such as ``"source = 'web' AND n_points > 1000"``.
        max_compared
            How many full sketches may be compared, where very many entries are about equally near.
        """
        count, limit = check_count(k, "k"), check_count(max_compared, "max_compared")
        common, snapshot = self._known(), self._snapshot()
        query = self._as_sketch(source, None)
        common.check(query)
        return nearest(snapshot, common, query, count, where, max(limit, count))

    def get(self, name: str) -> Sketch:
        """The sketch of this name."""
        row = self._row(name)
        return replace(from_bytes(row.content, name, self._known().sketch.projections), name=name)

    def entry(self, name: str) -> Entry:
        """What is known of the entry of this name: sizes, when it was added, metadata."""
        found = self.entries(f"name = {quoted(checked_name(name))}")
        if not found:
            raise SotddError(self._missing(name))
        return found[0]

    def entries(self, where: str | None = None) -> tuple[Entry, ...]:
        """All entries in the order of their names, or those that an SQL condition holds for."""
        snapshot = self._store.snapshot()
        found = [] if snapshot is None else snapshot.entries(where)
        return tuple(sorted(found, key=lambda entry: entry.name))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all entries, in order."""
        return tuple(entry.name for entry in self.entries())

    def remove(self, name: str) -> None:
        """Remove the entry of this name."""
        if checked_name(name) not in self or not self._store.delete(f"name = {quoted(name)}"):
            raise SotddError(self._missing(name))

    def rename(self, old: str, new: str) -> None:
        """Give an entry another name, which must be free; readers see the one name or the other."""
        row = self._row(old)
        if checked_name(new) in self:
            raise SotddError(_taken(new, self.path))
        renamed = replace(row, entry=replace(row.entry, name=new))
        inserted, removed = self._store.replace(row, renamed)
        if inserted and removed:
            return
        # Another process took the new name, or changed the old entry, since they were looked at: undo our half.
        if inserted:
            self._store.delete(f"name = {quoted(new)} AND token = {quoted(row.token)}")
            raise SotddError(f"entry {old!r} was changed by another process meanwhile: try again.")
        if removed:
            self._store.put([row], self._known(), overwrite=False)
        raise SotddError(_taken(new, self.path))

    @property
    def recipe(self) -> Mapping[str, Any] | None:
        """The settings of its projections; None where nothing was added yet."""
        common = self._store.common()
        return None if common is None else common.sketch.recipe

    @property
    def n_quantiles(self) -> int:
        """How many numbers its sketches keep of each projection, or a multiple of them."""
        return self._known().n_quantiles

    @property
    def projections(self) -> Projections:
        """What every dataset of the catalog is seen through."""
        return projections_of(self._known().sketch)

    def sketch(
        self,
        data: Dataset,
        *,
        name: str | None = None,
        device: str = "auto",
        precision: Literal["float32", "tf32"] = "float32",
        progress: Progress = None,
    ) -> Sketch:
        """Sketch data through the projections of the catalog, as fine as its other sketches."""
        return sketch(
            data,
            self.projections,
            n_quantiles=self.n_quantiles,
            name=name,
            device=device,
            precision=precision,
            progress=progress,
        )

    def tidy(self) -> None:
        """Join the small parts that single additions leave, and free the space of what was removed.

        This happens by itself now and then, but for what only a call does: from 100,000 entries on it makes
        an index, which searches use instead of scanning every vector. What was removed in the last two
        minutes stays, for readers that began before.
        """
        self._snapshot()
        self._store.tidy()

    def __len__(self) -> int:
        """How many entries there are."""
        snapshot = self._store.snapshot()
        return 0 if snapshot is None else snapshot.count()

    def __contains__(self, name: object) -> bool:
        """Whether there is an entry of this name."""
        snapshot = self._store.snapshot()
        return isinstance(name, str) and snapshot is not None and snapshot.has(name)

    def __iter__(self) -> Iterator[str]:
        """The names, in order."""
        return iter(self.names)

    def __repr__(self) -> str:
        """Where it is and how large."""
        count = len(self)
        return f"Catalog({self.path!r}: {'1 entry' if count == 1 else f'{count:,} entries'})"

    def _known(self) -> Common:
        common = self._store.common()
        if common is None:
            raise SotddError(_absent(self.path))
        return common

    def _snapshot(self) -> Snapshot:
        snapshot = self._store.snapshot()
        if snapshot is None:
            raise SotddError(_absent(self.path))
        return snapshot

    def _row(self, name: str) -> Row:
        snapshot = self._store.snapshot()
        row = None if snapshot is None else snapshot.row(checked_name(name))
        if row is None:
            raise SotddError(self._missing(name))
        return row

    def _as_sketch(self, source: Comparable, name: str | None) -> Sketch:
        return source if isinstance(source, Sketch) else self.sketch(source, name=name)

    def _missing(self, name: str) -> str:
        names = self.names
        shown = ", ".join(names[:8]) + (f" and {len(names) - 8:,} more" if len(names) > 8 else "")
        return f"there is no entry {name!r} in the catalog {self.path!r}, only {shown or 'none'}: check the name."

    def _left_out(self, rows: list[Row]) -> str:
        tokens = ", ".join(quoted(row.token) for row in rows)
        added = {entry.name for entry in self.entries(f"token IN ({tokens})")}
        return _taken(
            next((row.entry.name for row in rows if row.entry.name not in added), rows[0].entry.name), self.path
        )


def _taken(name: str, path: str) -> str:
    return f"there is an entry {name!r} in the catalog {path!r} already: choose another name, or overwrite it."


def _absent(path: str) -> str:
    return f"there is no catalog at {path!r}: check the path, or add a sketch first."
