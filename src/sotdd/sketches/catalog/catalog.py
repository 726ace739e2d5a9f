"""The catalog: add, search, get, rename and remove sketches by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from os import PathLike
from typing import Any, Literal

from sotdd.basics.checks import check_count, check_flag, described
from sotdd.basics.errors import SotddError, require
from sotdd.basics.files import checked_path, shown
from sotdd.basics.progress import Progress
from sotdd.basics.text import counted, listed
from sotdd.inputs import open_dataset
from sotdd.inputs.data import Dataset
from sotdd.projections.recipe import Projections
from sotdd.sketches.catalog.condition import checked_condition
from sotdd.sketches.catalog.entries import Entry, Row, checked_metadata, checked_name, quoted
from sotdd.sketches.catalog.hits import Hits
from sotdd.sketches.catalog.learning import Learning
from sotdd.sketches.catalog.recipe import CatalogRecipe
from sotdd.sketches.catalog.search import RankBy, checked_order, nearest
from sotdd.sketches.catalog.snapshot import Snapshot
from sotdd.sketches.catalog.store import Store
from sotdd.sketches.file import from_bytes
from sotdd.sketches.levels import Levels
from sotdd.sketches.making import Comparable, projections_of, sketch_opened
from sotdd.sketches.sketch import Sketch


class Catalog:
    """Named sketches on disk, searched for the datasets most like another.

    All sketches of a catalog are through the same projections: those of the first one added. Several
    processes may read and add at once; each change is made whole or not at all.

    Parameters
    ----------
    path
        A folder, made when the first sketch is added, or the URL of one in an object store
        (``s3://``, ``gs://``, ``az://``).
    storage_options
        LanceDB's ``storage_options`` for the object store, such as keys, a region and an endpoint. What is not there
        is taken from the environment, such as ``AWS_ACCESS_KEY_ID`` and ``AWS_ENDPOINT_URL``.

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
       name     distance         excess    noise   points  classes  step
    1  shift 4  0.0536 ± 0.0019  -0.00057  within  500     1        4
    2  shift 3  0.0829 ± 0.0052  0.0034    within  500     1        3
    """

    def __init__(self, path: str | PathLike[str], *, storage_options: Mapping[str, str] | None = None) -> None:
        location = checked_path(path, expected="a folder or the URL of one")
        if storage_options is not None and not _are_texts(storage_options):
            raise SotddError(f"storage_options is {described(storage_options)}: expected texts by name.")
        require("lancedb", "a catalog", "'sotdd[catalog]'")
        # A URL stays as it was written: a path would lose one of its slashes.
        self._store = Store(path if isinstance(path, str) else str(location), storage_options)
        self._learning = Learning(self._store)

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
            A sketch through the projections of this catalog, or data, which are sketched through them. A
            new catalog takes any sketch, and its projections from it.
        overwrite
            Whether to replace an entry of the same name, which is an error otherwise.
        metadata
            What `nearest` and `entries` can filter by: text, numbers, True, False or None, each under a
            lower-case name.
        """
        self.add_many({checked_name(name): sketch}, {name: metadata}, overwrite=overwrite)

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
                f"sketches is {described(sketches)}: expected sketches or data by name, such as {{'a': x}}."
            )
        if not isinstance(metadata, (Mapping, type(None))):
            raise SotddError(
                f"metadata is {described(metadata)}: expected metadata by name, such as {{'a': {{'n': 1}}}}."
            )
        check_flag(overwrite, "overwrite")
        checked = {name: checked_metadata(values) for name, values in (metadata or {}).items()}
        for name in checked:
            if name not in sketches:
                raise SotddError(f"there is metadata of {name!r} but no sketch of that name: check the name.")
        made = {checked_name(name): self._as_sketch(source, name) for name, source in sketches.items()}
        if not made:
            return
        recipe = self._store.settle_recipe(next(iter(made.values())))
        for one in made.values():
            recipe.check(one)
        if not overwrite and len(made) > 1:  # a single one is refused by the table itself
            taken = set(made) & set(self.names)
            if taken:
                raise self._taken(min(taken))
        rows = [Row.of(name, one, checked.get(name, {}), recipe) for name, one in made.items()]
        if self._store.put(rows, recipe, overwrite=overwrite) < len(rows):
            raise self._taken(self._first_left_out(rows))
        self._learning.added(rows, list(made.values()), recipe)

    def nearest(
        self,
        source: Comparable,
        k: int = 10,
        *,
        where: str | None = None,
        rank_by: RankBy = "excess",
        max_compared: int = 200,
    ) -> Hits:
        """The datasets most like this one, nearest first.

        Entries are ordered by how far they are beyond the noise of their sizes (`Distance.excess`), so that
        small samples are not always far. Sketches of streams do not know that noise; among them the order is
        by distance. Each `Hit` says which it was, and whether it is within noise.

        The search scans short vectors: those that `tidy` has learned, whose distances are nearly s-OTDD, or random
        projections to 1,024 numbers. It then compares the full sketches of the best, until an entry not compared is
        unlikely to be nearer.

        Parameters
        ----------
        source
            A sketch through the projections of this catalog, or data, which are sketched through them.
        k
            How many entries to return.
        where
            An SQL condition on ``name``, ``n_points``, ``n_classes``, ``added`` and metadata, such as
            ``"source = 'web' AND n_points > 1000"``. Only entries that meet it are searched. Of SQL's functions, a
            condition may call those that text and numbers need, such as ``lower`` and ``starts_with``.
        rank_by
            "excess", or "distance" for the order of the distances themselves.
        max_compared
            How many full sketches to compare at most, where very many entries are about equally near.
        """
        count, limit = check_count(k, "k"), check_count(max_compared, "max_compared")
        condition, order = checked_condition(where), checked_order(rank_by)
        recipe, snapshot = self._settled(), self._snapshot()
        entries = max(1, snapshot.count())  # LanceDB counts in 64 bits: ask for no more than there are
        count, limit = min(count, entries), min(limit, entries)
        query = self._as_sketch(source, None)
        recipe.check(query)
        resident = self._learning.resident(snapshot, recipe)
        return nearest(snapshot, resident, recipe, query, count, condition, max(limit, count), order)

    def get(self, name: str) -> Sketch:
        """The sketch of this name."""
        row = self._row(name)
        return replace(from_bytes(row.content, name, self._settled().sketch.projections), name=name)

    def entry(self, name: str) -> Entry:
        """The entry of this name: sizes, when it was added, metadata."""
        entries = self.entries(f"name = {quoted(checked_name(name))}")
        if not entries:
            raise self._missing(name)
        return entries[0]

    def entries(self, where: str | None = None) -> tuple[Entry, ...]:
        """All entries in the order of their names, or those that meet an SQL condition."""
        return self._entries(checked_condition(where))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all entries, in order."""
        return tuple(entry.name for entry in self.entries())

    def remove(self, name: str) -> None:
        """Remove the entry of this name."""
        if checked_name(name) not in self or not self._store.delete(f"name = {quoted(name)}"):
            raise self._missing(name)

    def rename(self, old: str, new: str) -> None:
        """Give an entry another name, which must be free; readers see one name or the other."""
        row = self._row(old)
        if checked_name(new) in self:
            raise self._taken(new, "remove it first")
        renamed = replace(row, entry=replace(row.entry, name=new))
        inserted, removed = self._store.replace(row, renamed)
        if inserted and removed:
            return
        # Since we looked, another process took the new name or changed the old entry: undo our half.
        if inserted:
            self._store.delete(f"name = {quoted(new)} AND token = {quoted(row.token)}")
            raise SotddError(f"entry {old!r} was changed by another process meanwhile: try again.")
        if removed:
            self._store.put([row], self._settled(), overwrite=False)
        raise self._taken(new, "remove it first")

    @property
    def recipe(self) -> Mapping[str, Any] | None:
        """The settings of its projections; None where nothing was added yet."""
        recipe = self._store.recipe()
        return None if recipe is None else recipe.sketch.recipe

    @property
    def n_quantiles(self) -> int:
        """How many numbers its sketches keep of each projection; single sketches may keep a multiple of it."""
        return self._settled().n_quantiles

    @property
    def levels(self) -> Levels:
        """Where the quantile functions of its sketches are cut into parts."""
        return self._settled().levels

    @property
    def projections(self) -> Projections:
        """The projections of every sketch in the catalog."""
        return projections_of(self._settled().sketch)

    def sketch(
        self,
        data: Dataset,
        *,
        name: str | None = None,
        device: str = "auto",
        precision: Literal["float32", "tf32"] = "float32",
        progress: Progress = None,
    ) -> Sketch:
        """Sketch data through the projections of the catalog, with as many quantiles as its other sketches."""
        settled = self._settled()
        return sketch_opened(
            open_dataset(data, name=name), projections_of(settled.sketch), settled.levels, device, precision, progress
        )

    def tidy(self) -> None:
        """Join the small parts that single additions leave, and free the space of removed entries.

        Additions and removals do this now and then by themselves. Only a call also learns the short vectors that
        large catalogs are searched by, from 2,000 entries on, and again once there are half as many more: a minute or
        two for 100,000. Additions in between use what was learned. Entries removed in the last
        two minutes stay on disk, for readers that began before.
        """
        self._snapshot()
        self._store.tidy()
        self._learning.tidy(self._snapshot(), self._settled())

    def __len__(self) -> int:
        """How many entries there are."""
        snapshot = self._store.snapshot()
        return 0 if snapshot is None else snapshot.count()

    def __contains__(self, name: object) -> bool:
        """Whether there is an entry of this name."""
        snapshot = self._store.snapshot()
        return isinstance(name, str) and name.isprintable() and snapshot is not None and snapshot.has(name)

    def __iter__(self) -> Iterator[str]:
        """The names, in order."""
        return iter(self.names)

    def __repr__(self) -> str:
        """Path and size, for people."""
        return f"Catalog({shown(self.path)}: {counted(len(self), 'entry', 'entries')})"

    def _settled(self) -> CatalogRecipe:
        recipe = self._store.recipe()
        if recipe is None:
            raise self._store.absent()
        return recipe

    def _snapshot(self) -> Snapshot:
        snapshot = self._store.snapshot()
        if snapshot is None:
            raise self._store.absent()
        return snapshot

    def _row(self, name: str) -> Row:
        snapshot = self._store.snapshot()
        row = None if snapshot is None else snapshot.row(checked_name(name))
        if row is None:
            raise self._missing(name)
        return row

    def _entries(self, where: str | None) -> tuple[Entry, ...]:
        snapshot = self._store.snapshot()
        entries = [] if snapshot is None else snapshot.entries(where)
        return tuple(sorted(entries, key=lambda entry: entry.name))

    def _as_sketch(self, source: Comparable, name: str | None) -> Sketch:
        return source if isinstance(source, Sketch) else self.sketch(source, name=name)

    def _missing(self, name: str) -> SotddError:
        names = self.names
        there = listed(names) or "none"
        return SotddError(
            f"there is no entry {name!r} in the catalog {shown(self.path)}, only {there}: check the name."
        )

    def _taken(self, name: str, instead: str = "pass overwrite=True") -> SotddError:
        return SotddError(
            f"there is an entry {name!r} in the catalog {shown(self.path)} already: choose another name, or {instead}."
        )

    def _first_left_out(self, rows: list[Row]) -> str:
        """The name of the first row that is not in the table."""
        tokens = ", ".join(quoted(row.token) for row in rows)
        added = {entry.name for entry in self._entries(f"token IN ({tokens})")}
        return next((row.entry.name for row in rows if row.entry.name not in added), rows[0].entry.name)


def _are_texts(options: object) -> bool:
    return isinstance(options, Mapping) and all(isinstance(part, str) for pair in options.items() for part in pair)
