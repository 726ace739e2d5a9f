"""The codes of a catalog in memory, as far as they belong to entries of one snapshot, and scans over them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import require
from sotdd.basics.kept import kept_property
from sotdd.sketches.catalog.candidates import DEVIATIONS, Candidates, Doubles
from sotdd.sketches.catalog.entries import ENTRY_COLUMNS, Entry
from sotdd.sketches.catalog.learned import Codes, chance_of, codes_now
from sotdd.sketches.catalog.recipe import CatalogRecipe
from sotdd.sketches.catalog.snapshot import Snapshot
from sotdd.sketches.sketch import Sketch

# The first numbers of a code tell most. They lie together, so that a scan over 100,000 entries reads 26 MB and not 102.
_HEAD = 64
# All numbers of a code are looked at for this many entries, those that are nearest by the first numbers; and for more
# where others may be as near.
LOOKED_AT = (1024, 1 << 14, 1 << 60)
# Entries without a code get one here, from their sketches, while there are no more than this: a second of work.
_MOST_MADE_HERE = 2000
# Which ones these are is judged by every so many-th of all, which takes a tenth of the time of finding them exactly.
_EVERY = 16
# How far the rest of a code may mislead is taken from this many of the nearest.
_JUDGED = 64
# Sums of float32 are off by less than this, relative to the squares that they were made of.
_ROUNDING = 4e-6


@dataclass(frozen=True, eq=False)
class Scanned:
    """Codes, laid out for a scan."""

    codes: Codes
    head: NDArray[np.float32]
    tail: NDArray[np.float32]
    off: NDArray[np.float32]  # (n,) the lengths off the basis
    squares: NDArray[np.float32]  # (n,) of all numbers of a code
    rest: NDArray[np.float32]  # (n,) the lengths of all but the head

    @classmethod
    def of(cls, codes: Codes) -> Scanned:
        """Lay codes out."""
        size = min(_HEAD, codes.vectors.shape[1] - 1)
        head, tail, off = (np.ascontiguousarray(part) for part in _parts(codes.vectors, size))
        of_rest = np.einsum("ij,ij->i", tail, tail) + off**2
        return cls(codes, head, tail, off, np.einsum("ij,ij->i", head, head) + of_rest, np.sqrt(of_rest))


def _parts(codes: NDArray[np.float32], size: int) -> tuple[NDArray[np.float32], ...]:
    """The first numbers of codes, the others, and the lengths off the basis."""
    return codes[..., :size], codes[..., size:-1], codes[..., -1]


@dataclass(frozen=True, eq=False)
class Resident:
    """The entries of one snapshot in memory.

    Attributes
    ----------
    layers
        The codes of the table, also those of entries that are no longer there, and the codes that were made here.
    listing
        Arrow table of the entries, without sketches and vectors.
    rows
        Where each entry is in the table.
    """

    layers: tuple[_Layer, _Layer]
    listing: Any
    rows: NDArray[np.uint64]

    @classmethod
    def of(cls, snapshot: Snapshot, recipe: CatalogRecipe, scanned: Scanned, earlier: Codes | None) -> Resident | None:
        """Bring entries and codes together; None where too many entries have no code."""
        arrow = require("pyarrow", "a catalog", "'sotdd[catalog]'")
        compute = require("pyarrow.compute", "a catalog", "'sotdd[catalog]'")
        listing = snapshot.listing([*ENTRY_COLUMNS, "token"])
        rows, n_points = listing["_rowid"].to_numpy(), listing["n_points"].to_numpy()
        found = compute.index_in(listing["token"], value_set=scanned.codes.tokens)
        code = compute.fill_null(found, arrow.scalar(-1, arrow.int32())).to_numpy().astype(np.int64)
        missing = np.flatnonzero(code < 0)
        if len(missing) > _MOST_MADE_HERE:
            return None
        place = np.full(len(scanned.codes.vectors), -1)
        place[code[code >= 0]] = np.flatnonzero(code >= 0)
        tokens = listing["token"].take(missing).to_pylist()
        made = codes_now(snapshot, recipe, rows[missing], tokens, scanned.codes, earlier)
        layers = _Layer(scanned, place, n_points), _Layer(Scanned.of(made), missing, n_points)
        return cls(layers, listing.select(ENTRY_COLUMNS), rows)

    @property
    def made_here(self) -> Codes:
        """The codes that are not in the table."""
        return self.layers[1].scanned.codes

    def candidates(
        self, query: Sketch, recipe: CatalogRecipe, allowed: NDArray[np.uint64] | None, rank_by: str, looked_at: int
    ) -> Candidates:
        """The entries that may be nearest to a sketch; of those in these rows, where some are given."""
        meets = None if allowed is None else np.isin(self.rows, allowed)
        alive = [layer.alive(meets) for layer in self.layers]
        chance = chance_of(query)
        known = not np.isnan(chance) or not any(
            np.isnan(layer.scanned.codes.chances[which]).any() for layer, which in zip(self.layers, alive, strict=True)
        )
        by_excess = rank_by == "excess" and known
        (code,) = self.made_here.basis.codes([query], recipe)
        parts = [
            layer.found(query, code, which, chance if by_excess else None, looked_at)
            for layer, which in zip(self.layers, alive, strict=True)
        ]
        places = np.concatenate([part.places for part in parts])
        estimates = np.concatenate([part.estimates for part in parts])
        doubts = np.concatenate([part.doubts for part in parts])
        floors = np.concatenate([part.floors for part in parts])
        order = np.argsort(estimates - floors, kind="stable")
        places = places[order]
        return Candidates(
            self.rows[places],
            estimates[order],
            doubts[order],
            True,
            floors[order],
            lambda chosen: [Entry.from_table(row) for row in self.listing.take(places[chosen]).to_pylist()],
            lambda share: min(part.outside(share) for part in parts),
            "excess" if by_excess else "distance",
        )


@dataclass(frozen=True, eq=False)
class _Layer:
    """Codes, and the places (codes,) of their entries in the listing; −1 for entries that are gone."""

    scanned: Scanned
    place: NDArray[np.int64]
    n_points: NDArray[np.int64]

    def alive(self, meets: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
        """Which codes are of entries that are there, and meet a condition."""
        there = self.place >= 0
        return there if meets is None else there & meets[self.place]

    def found(
        self, query: Sketch, code: NDArray[np.float32], alive: NDArray[np.bool_], chance: float | None, most: int
    ) -> _Found:
        """All entries by the first numbers of their codes, and the nearest of them by all."""
        scanned = self.scanned
        head, tail, off = _parts(code, scanned.head.shape[1])
        length, square = float(off), float(np.dot(code, code))
        # Not with BLAS, whose threads take longer to begin, and spin after it while sketches are compared.
        near = scanned.squares - np.einsum("ij,j->i", scanned.head, 2 * head) + np.float32(square)
        # What the rest of two codes, and what lies off the basis, have in common brings them nearer by a share of this.
        common = scanned.rest * np.float32(2 * math.hypot(float(np.linalg.norm(tail)), length))
        floors = self._floors(query, chance)
        ranked = near - floors
        if not alive.all():
            ranked[~alive] = np.inf
        count = int(np.count_nonzero(alive))
        looked_at = _lowest(ranked, most) if count > most else np.flatnonzero(alive)
        apart = np.concatenate([scanned.head[looked_at] - head, scanned.tail[looked_at] - tail], axis=1)
        lengths = scanned.off[looked_at].astype(np.float64)
        estimates = np.einsum("ij,ij->i", apart, apart) + lengths**2 + length**2
        doubts = 2 * length * lengths

        def outside(share: float) -> float:
            if count <= len(looked_at):
                return np.inf
            nearest = np.argsort(estimates - floors[looked_at])[:_JUDGED]
            sample = looked_at[nearest]
            least = estimates[nearest] - share * doubts[nearest]
            with np.errstate(invalid="ignore", divide="ignore"):
                shares = np.nan_to_num(np.clip((near[sample] - least) / common[sample], 0, 1), nan=1.0)
            likely = min(1.0, float(np.mean(shares) + DEVIATIONS * np.std(shares)))
            left = ranked - np.float32(likely) * common - np.float32(_ROUNDING) * (scanned.squares + square)
            left[looked_at] = np.inf
            return float(left.min())

        return _Found(self.place[looked_at], estimates, doubts, floors[looked_at].astype(np.float64), outside)

    def _floors(self, query: Sketch, chance: float | None) -> NDArray[np.float32]:
        """What chance alone gives of the squared distance to the entry of each code."""
        if chance is None:
            return np.zeros(len(self.place), np.float32)
        sizes, chances, unknown = self._of_codes
        mean = chances if np.isnan(chance) else (chances + np.float32(chance)) / 2
        if len(unknown) and not np.isnan(chance):
            mean[unknown] = chance
        return (sizes + np.float32(1 / query.n_points)) * mean

    @kept_property
    def _of_codes(self) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int64]]:
        """Of the entry of each code, one over its number of points and its chance; and which do not know it."""
        sizes = (1 / self.n_points[np.maximum(self.place, 0)]).astype(np.float32)
        chances = self.scanned.codes.chances
        return sizes, np.nan_to_num(chances).astype(np.float32), np.flatnonzero(np.isnan(chances))


@dataclass(frozen=True, eq=False)
class _Found:
    """Candidates in any order."""

    places: NDArray[np.int64]
    estimates: Doubles
    doubts: Doubles
    floors: Doubles
    outside: Callable[[float], float]


def _lowest(numbers: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """Where the lowest numbers are, about so many of them: all up to a limit that a part of them sets."""
    part = numbers[:: max(1, min(_EVERY, count // _EVERY))]
    rank = count * len(part) // len(numbers)
    lowest = np.flatnonzero(numbers <= np.partition(part, rank)[rank])
    if count / 2 <= len(lowest) <= 2 * count:
        return lowest
    return np.argpartition(numbers, count)[:count]
