"""The search of a catalog: the vectors of its entries, and the hits with their distances, as values and as a table.

A sketch is a long vector whose squared Euclidean distance from another is s-OTDD². A catalog keeps 1,019 random sums w
of it. Squared distances of w have the right expectation and a relative deviation of sqrt(2 / 1,019), 4.4 %. So that
float32 holds their squares well, w is taken from the sums of the catalog's first sketch, in units of their length.

The order of a search is by ‖w − w'‖² less what chance gives for datasets of n and m points. With c the noise that the
halves of a sketch tell, that is (c + c') / 2 · (1/n + 1/m), or c alone where the other is not known. All of it, but for
numbers that depend on the query only, is an inner product: of the entry's vector

    (w', ‖w'‖², 1 / 2m, c' / 2, c' / 2m, 1/2),  or  (w', ‖w'‖², 1 / m, 0, 0, 1)  where c' is not known,

and the query's (2 w, −1, c, 1 / n, 1, c / n), (2 w, −1, 0, 2 / n, 2, 0) without c, or (2 w, −1, 0, 0, 0, 0) by distance
alone. So one search of LanceDB, for the largest inner products, finds the nearest in either order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.text import align_rows, one_line, quote, with_error
from sotdd.compute.distance import Distance
from sotdd.compute.ranking import remark_on_sizes
from sotdd.projections.recipe import Projections
from sotdd.sketches.catalog.store import Entry, Metadata
from sotdd.sketches.codec import Field, pack, unpack
from sotdd.sketches.file import unpack_sketch
from sotdd.sketches.quantiles import MOST_QUANTILES, QUANTILES, Levels
from sotdd.sketches.recipe import Recipe
from sotdd.sketches.sketch import Sketch
from sotdd.sketches.uncertainty import find_floor

RankBy: TypeAlias = Literal["excess", "distance"]

# What a table says of a hit that is within noise, beyond it, or does not know.
_IN_WORDS = {True: "within", False: "beyond", None: ""}


_KIND = "catalog"

Vector = NDArray[np.float32]

# How many random sums a vector has; a sketch of fewer numbers is kept whole. With the five that follow: 1,024.
SUMS = 1019
# Larger numbers are cut to this, so that products of two stay in float32.
_LARGEST = 1e18


@dataclass(frozen=True, eq=False)
class CatalogRecipe:
    """The recipe of a catalog, set by its first sketch.

    Attributes
    ----------
    location
        Where the catalog is, for messages.
    through
        The projections of all its sketches.
    n_quantiles
        Every sketch has this many quantiles, a multiple of them, or all values.
    centre
        The sums of the first sketch.
    """

    location: str
    through: Recipe
    n_quantiles: int
    centre: Vector

    @classmethod
    def of(cls, first: Sketch, location: str) -> CatalogRecipe:
        """The recipe that a first sketch sets."""
        count = QUANTILES if first.exact else first.n_quantiles
        sums = SUMS if first.n_projections * count > SUMS else None
        return cls(location, first.through, count, first.vector(sums, n_quantiles=count))

    @staticmethod
    @lru_cache(maxsize=8)
    def unpack(content: bytes, location: str) -> CatalogRecipe:
        """Read what `pack` wrote; cached, since projections are drawn to check that they come out the same."""
        reader = unpack(_KIND, content, location)
        count = reader.count("n_quantiles", MOST_QUANTILES)
        numbers = reader.within("recipe").count("n_projections") * count
        centre = reader.array("sums", Field("f4", (min(numbers, SUMS),)))
        return CatalogRecipe(location, Recipe.read(reader), count, centre)

    def pack(self) -> bytes:
        """The recipe as the content of a file, without the place where it was made."""
        header, arrays = self.through.pack()
        return pack(_KIND, header | {"n_quantiles": self.n_quantiles}, arrays | {"sums": self.centre})

    @property
    def levels(self) -> Levels:
        """Where the quantile functions of its sketches are cut, or may be cut further."""
        return Levels(self.n_quantiles)

    @property
    def width(self) -> int:
        """How many numbers a vector has."""
        return len(self.centre) + 5

    def require_projections(self) -> Projections:
        """The projections, to see other data through, or an error where they cannot be had."""
        return self.through.require_projections(f"catalog {quote(self.location)}")

    def check(self, sketch: Sketch) -> None:
        """Refuse a sketch that cannot be compared with those of the catalog, and say why."""
        try:
            self.through.refuse_other(sketch.through, f"catalog {quote(self.location)} and sketch {sketch.name!r}")
        except SotddError as error:
            raise SotddError(f"{error} Catalog.sketch and sotdd sketch --like make one that fits.") from None
        if not sketch.exact and sketch.n_quantiles % self.n_quantiles:
            raise SotddError(
                f"sketch {sketch.name!r} has {sketch.n_quantiles:,} quantiles but the catalog "
                f"{quote(self.location)} keeps {self.n_quantiles:,}: sketch with that many, or with a multiple of "
                "it."
            )

    def entry_vector(self, sketch: Sketch) -> Vector:
        """The vector (width,) that an entry is found by."""
        sums, noise, share = self._measure(sketch)
        parts = (share, 0, 0, 1) if noise is None else (share / 2, noise / 2, noise * share / 2, 1 / 2)
        return _round([*sums, np.dot(sums, sums), *parts])

    def query_vector(self, sketch: Sketch, *, by_excess: bool) -> Vector:
        """The vector (width,) that has the largest inner products with the nearest entries."""
        sums, noise, share = self._measure(sketch)
        parts = (0, 2 * share, 2, 0) if noise is None else (noise, share, 1, noise * share)
        return _round([*2 * sums, -1, *(parts if by_excess else (0, 0, 0, 0))])

    def _measure(self, sketch: Sketch) -> tuple[NDArray[np.float64], float | None, float]:
        """The sums w of a sketch, its noise c in the same units, and 1 / n."""
        centre = self.centre.astype(np.float64)
        unit = float(np.linalg.norm(centre)) or 1.0
        whole = len(centre) == sketch.n_projections * self.n_quantiles
        sums = sketch.vector(None if whole else SUMS, n_quantiles=self.n_quantiles) - centre
        noise = find_noise(sketch)
        return sums / unit, None if noise is None else noise / unit**2, 1 / sketch.n_points


def _round(numbers: list[float]) -> Vector:
    return np.clip(np.array(numbers, np.float64), -_LARGEST, _LARGEST).astype(np.float32)


def find_noise(sketch: Sketch) -> float | None:
    """What chance gives of squared distances is this times 1/n + 1/m, by the halves of a sketch; None without them."""
    floor = find_floor([(sketch.n_points, sketch.halves)], 2, (2, 2), 0.0)
    return None if floor is None else floor.power


def compare_entries(
    query: Sketch, entries: Iterable[tuple[Entry, bytes]], recipe: CatalogRecipe, k: int, rank_by: RankBy
) -> Hits:
    """The k of some entries that are nearest to a sketch, by their full sketches, which are the content of files."""
    hits = []
    for entry, content in entries:
        stored = unpack_sketch(content, entry.name, recipe.through.projections)
        # Plain means over the projections, which are the same for all, as vectors have them.
        hits.append(Hit(entry.name, query.distance(stored, estimator="plain"), entry.metadata))
    if any(hit.distance.excess is None for hit in hits):
        rank_by = "distance"
    hits.sort(key=lambda hit: (hit.distance.value if rank_by == "distance" else hit.distance.excess, hit.name))
    return Hits(tuple(hits[:k]), len(hits), rank_by)


@dataclass(frozen=True, eq=False)
class Hit:
    """An entry of a catalog, and how far it is from the dataset that was searched for.

    Attributes
    ----------
    name
        The name of the entry.
    distance
        s-OTDD with p = 2, from the full sketches. Its ``within_noise`` follows from halvings of each dataset;
        `sotdd.distance` of the data permutes the points of both.
    metadata
        The metadata of the entry.
    """

    name: str
    distance: Distance
    metadata: Metadata

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return {"name": self.name, "distance": self.distance.to_dict(), "metadata": dict(self.metadata)}


@dataclass(frozen=True, eq=False, repr=False)
class Hits(Sequence[Hit]):
    """The nearest entries, nearest first; a sequence of `Hit` that prints as a table.

    Attributes
    ----------
    hits
        The nearest entries.
    compared
        How many full sketches were compared to find them.
    ranked_by
        "excess", ``distance.excess``: what remains beyond the noise of the sizes; or "distance" itself.
    """

    hits: tuple[Hit, ...]
    compared: int
    ranked_by: RankBy

    @property
    def names(self) -> tuple[str, ...]:
        """The names, nearest first."""
        return tuple(hit.name for hit in self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401  # a hit, or several for a slice
        return self.hits[index]

    def rows(self) -> list[list[str]]:
        """Cells of a table with a header: rank, name, distance, excess and noise where known, sizes, metadata."""
        keys = list(dict.fromkeys(key for hit in self.hits for key in hit.metadata))
        known = any(hit.distance.excess is not None for hit in self.hits)
        table = [["", "name", "distance", *(["excess", "noise"] if known else []), "points", "classes", *keys]]
        for rank, hit in enumerate(self.hits, 1):
            apart = hit.distance
            sizes = [f"{apart.n_points[1]:,}", f"{len(apart.classes[1]):,}"]
            values = ["" if hit.metadata.get(key) is None else str(hit.metadata[key]) for key in keys]
            excess = ["" if apart.excess is None else f"{apart.excess:.2g}", _IN_WORDS[apart.within_noise]]
            beyond = excess if known else []
            table.append([str(rank), hit.name, with_error(apart.value, apart.stderr), *beyond, *sizes, *values])
        return table

    @property
    def remark(self) -> str:
        """What a reader should know; empty where there is nothing."""
        remarks = dict.fromkeys(str(remark) for hit in self.hits for remark in hit.distance.remarks)
        if self.ranked_by == "excess":
            remarks |= dict.fromkeys(map(str, remark_on_sizes([hit.distance for hit in self.hits])))
        return "; ".join(remarks)

    def __repr__(self) -> str:
        """A table for people."""
        if not self.hits:
            return "no entry matches"
        return "\n".join([*align_rows(self.rows()), *([one_line(self.remark)] if self.remark else [])])

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return {
            "hits": [hit.to_dict() for hit in self.hits],
            "ranked_by": self.ranked_by,
            "compared": self.compared,
        }
