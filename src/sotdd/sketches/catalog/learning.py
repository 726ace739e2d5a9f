"""When a catalog learns the short vectors that it is searched by, and what of them is kept in memory."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from sotdd.basics.errors import SotddError, require
from sotdd.sketches.catalog.entries import Row
from sotdd.sketches.catalog.faults import cause, one_line_errors
from sotdd.sketches.catalog.learned import (
    LEARNED,
    codes_of,
    found_anew,
    is_due,
    missing_codes,
    read_basis,
    read_codes,
    read_tokens,
)
from sotdd.sketches.catalog.recipe import CatalogRecipe
from sotdd.sketches.catalog.resident import Resident, Scanned
from sotdd.sketches.catalog.snapshot import Snapshot
from sotdd.sketches.catalog.store import KEPT, Store
from sotdd.sketches.sketch import Sketch

# So many entries added at once get their codes at once. Those added one by one get them after every so many changes.
_AT_ONCE = 32

_log = logging.getLogger("sotdd.catalog.learning")


class Learning:
    """The learned vectors of one catalog.

    Everything here can be done without, and made again from the entries. So it is never a reason for a change of the
    entries, or for a search, to fail.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._scanned: tuple[object, Scanned | None] | None = None
        self._resident: tuple[object, Resident | None] | None = None

    def resident(self, snapshot: Snapshot, recipe: CatalogRecipe) -> Resident | None:
        """The entries in memory, for a fast search; None where nothing was learned, or it does not serve.

        What was read is kept until entries or learned vectors change.
        """
        try:
            table = self._store.open(LEARNED)
            if table is None:
                return None
            of_codes = (self._store.stamp(), table.version)
            of_entries = (*of_codes, snapshot.table.version)
            if self._resident is not None and self._resident[0] == of_entries:
                return self._resident[1]
            if self._scanned is None or self._scanned[0] != of_codes:
                codes = read_codes(table, recipe, self._store.location)
                self._scanned = of_codes, None if codes is None else Scanned.of(codes)
            scanned = self._scanned[1]
            earlier = None if self._resident is None or self._resident[1] is None else self._resident[1].made_here
            resident = None if scanned is None else Resident.of(snapshot, recipe, scanned, earlier)
        except (SotddError, RuntimeError, ValueError, OSError, MemoryError) as error:
            _log.info("the catalog %s is searched without learned vectors: %s", self._store.location, cause(error))
            return None
        self._resident = of_entries, resident
        return resident

    def added(self, rows: Sequence[Row], sketches: Sequence[Sketch], recipe: CatalogRecipe) -> None:
        """Give new entries their codes, where there is a basis; a failure is only logged, and made up for later."""
        try:
            table = self._store.open(LEARNED)
            if table is None:
                return
            if len(rows) < _AT_ONCE:
                snapshot = self._store.snapshot()
                if snapshot is not None and snapshot.table.version % _AT_ONCE == 0:
                    self._catch_up(table, snapshot, recipe, _AT_ONCE)
                return
            found = read_basis(table, recipe, self._store.location)
            if found is not None:
                table.add(codes_of([row.token for row in rows], sketches, recipe, *found))
        except (SotddError, RuntimeError, ValueError, OSError, MemoryError) as error:
            _log.info("new entries of the catalog %s have no codes yet: %s", self._store.location, cause(error))

    def tidy(self, snapshot: Snapshot, recipe: CatalogRecipe) -> None:
        """Find a basis where one is due, or give codes to all entries that have none."""
        with one_line_errors("tidy", self._store.location):
            table = self._store.open(LEARNED)
            try:
                found = None if table is None else read_basis(table, recipe, self._store.location)
                n_codes = 0 if table is None else table.count_rows()
            except (RuntimeError, ValueError, OSError) as error:  # damaged, and made again
                _log.info("the learned vectors of %s cannot be read: %s", self._store.location, cause(error))
                found, n_codes = None, 0
            if is_due(snapshot.count(), None if found is None else found[0], n_codes):
                made = found_anew(snapshot, recipe)
                if made is not None and table is None:
                    self._store.make(LEARNED, data=made)  # where another process was first, its basis is as good
                elif made is not None:
                    self._store.connection.create_table(LEARNED, data=made, mode="overwrite")
            elif found is not None:
                self._catch_up(table, snapshot, recipe, 1)
            table = self._store.open(LEARNED)
            if table is not None:
                table.optimize(cleanup_older_than=KEPT)

    def _catch_up(self, table: Any, snapshot: Snapshot, recipe: CatalogRecipe, fewest: int) -> None:  # noqa: ANN401
        arrow = require("pyarrow", "a catalog", "'sotdd[catalog]'")
        found = read_basis(table, recipe, self._store.location)
        if found is None:
            return
        basis, fit = found
        known = set(read_tokens(table, fit).to_pylist())
        parts = list(missing_codes(snapshot, recipe, basis, fit, known, fewest))
        if parts:
            table.add(arrow.concat_tables(parts))

    def __getstate__(self) -> dict[str, object]:
        """Without what is in memory: another process reads its own."""
        return {"_store": self._store, "_scanned": None, "_resident": None}
