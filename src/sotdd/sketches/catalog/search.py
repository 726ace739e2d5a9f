"""What all entries of a catalog share, and the vectors that a search finds them by.

A sketch is a long vector whose squared Euclidean distance from another is s-OTDD². A catalog keeps 1,019 random sums w
of it. Squared distances of w have the right expectation and a relative deviation of sqrt(2 / 1,019), 4.4 %. So that
float32 holds their squares well, w is taken from the sums of the catalog's first sketch, in units of their length.

The order of a search is by ‖w − w'‖² less what chance gives for datasets of n and m points. With c the noise that the
halves of a sketch tell, that is (c + c') / 2 · (1/n + 1/m), or c alone where the other is not known. All of it, but for
numbers that depend on the query only, is an inner product: of the entry's vector

    (w', ‖w'‖², 1 / 2m, c' / 2, c' / 2m, 1/2),  or  (w', ‖w'‖², 1 / m, 0, 0, 1)  where c' is not known,

and the query's (2 w, −1, c, 1 / n, 1, c / n), or (2 w, −1, 0, 2 / n, 2, 0) without c. So one search of LanceDB, for the
largest inner products, finds the nearest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.sketches.codec import pack, unpack
from sotdd.sketches.quantiles import MOST_QUANTILES, QUANTILES
from sotdd.sketches.saved_projections import SavedProjections
from sotdd.sketches.sketch import Sketch
from sotdd.sketches.uncertainty import find_floor

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
    def of(cls, first: Sketch) -> CatalogRecipe:
        """The recipe that a first sketch sets."""
        count = QUANTILES if first.exact else first.n_quantiles
        sums = SUMS if first.n_projections * count > SUMS else None
        return cls(first.through, count, first.vector(sums, n_quantiles=count))

    @staticmethod
    @lru_cache(maxsize=8)
    def unpack(content: bytes) -> CatalogRecipe:
        """Read what `pack` wrote; cached, since projections are drawn to check that they come out the same."""
        reader = unpack(_KIND, content, "the recipe of the catalog")
        count = reader.count("n_quantiles", MOST_QUANTILES)
        numbers = reader.within("recipe").count("n_projections") * count
        centre = reader.array("sums", "f4", (min(numbers, SUMS),))
        return CatalogRecipe(SavedProjections.read(reader), count, centre)

    def pack(self) -> bytes:
        """The recipe as the content of a file."""
        header, arrays = self.through.pack()
        return pack(_KIND, header | {"n_quantiles": self.n_quantiles}, arrays | {"sums": self.centre})

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
