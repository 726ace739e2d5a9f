"""What all sketches of a catalog share: their projections, and the vectors that they are searched by.

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

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.files import shown
from sotdd.sketches.file import from_bytes, to_bytes
from sotdd.sketches.levels import QUANTILES, Levels
from sotdd.sketches.sketch import Sketch, refuse_other_projections
from sotdd.sketches.uncertainty import floor_of_sketches

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
    sketch
        The first sketch, emptied: one number per projection, which is zero.
    n_quantiles
        Every sketch has this many quantiles, a multiple of them, or all values.
    centre
        The sums of the first sketch.
    """

    sketch: Sketch
    n_quantiles: int
    centre: Vector

    @classmethod
    def of(cls, first: Sketch, location: str) -> CatalogRecipe:
        """The recipe that a first sketch sets."""
        quantiles = QUANTILES if first.exact else first.n_quantiles
        empty = np.zeros((first.n_projections, 1), np.float32)
        emptied = replace(
            first,
            name=location,
            quantiles=empty,
            exact=False,
            classes=("",),
            counts=np.zeros(1, np.int64),
            class_terms=empty,
            lost=None,
            remarks=(),
            halves=None,
            controls=None,
        )
        whole = first.n_projections * quantiles
        levels = Levels(quantiles)
        return cls(emptied, quantiles, first.vector_at(levels, SUMS if whole > SUMS else None))

    @staticmethod
    @lru_cache(maxsize=8)
    def from_row(content: bytes, n_quantiles: int, centre: bytes, location: str) -> CatalogRecipe:
        """Read what `to_row` wrote; cached, since projections are drawn to check that they come out the same."""
        sketch = replace(from_bytes(content, location), name=location)
        return CatalogRecipe(sketch, n_quantiles, np.frombuffer(centre, np.float32))

    def to_row(self) -> dict[str, int | bytes]:
        """The recipe as the columns of a table, without the place where it was made."""
        sketch = replace(self.sketch, name="catalog")
        return {"recipe": to_bytes(sketch), "n_quantiles": self.n_quantiles, "centre": self.centre.tobytes()}

    @property
    def levels(self) -> Levels:
        """Where the quantile functions of its sketches are cut, or may be cut further."""
        return Levels(self.n_quantiles)

    @property
    def width(self) -> int:
        """How many numbers a vector has."""
        return len(self.centre) + 5

    def check(self, sketch: Sketch) -> None:
        """Refuse a sketch that cannot be compared with those of the catalog, and say why."""
        try:
            refuse_other_projections(self.sketch, sketch)
        except SotddError as error:
            raise SotddError(f"{error} Catalog.sketch and sotdd sketch --like make one that fits.") from None
        if not sketch.exact and sketch.n_quantiles % self.n_quantiles:
            raise SotddError(
                f"sketch {sketch.name!r} has {sketch.n_quantiles:,} quantiles but the catalog "
                f"{shown(self.sketch.name)} keeps {self.n_quantiles:,}: sketch with that many, or with a multiple of "
                "it."
            )

    def entry_vector(self, sketch: Sketch) -> Vector:
        """The vector (width,) that an entry is found by."""
        sums, noise, share = self._sums_and_noise(sketch)
        parts = (share, 0, 0, 1) if noise is None else (share / 2, noise / 2, noise * share / 2, 1 / 2)
        return _as_float32([*sums, np.dot(sums, sums), *parts])

    def query_vector(self, sketch: Sketch, *, by_excess: bool) -> Vector:
        """The vector (width,) that has the largest inner products with the nearest entries."""
        sums, noise, share = self._sums_and_noise(sketch)
        parts = (0, 2 * share, 2, 0) if noise is None else (noise, share, 1, noise * share)
        return _as_float32([*2 * sums, -1, *(parts if by_excess else (0, 0, 0, 0))])

    def _sums_and_noise(self, sketch: Sketch) -> tuple[NDArray[np.float64], float | None, float]:
        """The sums w of a sketch, its noise c in the same units, and 1 / n."""
        centre = self.centre.astype(np.float64)
        unit = float(np.linalg.norm(centre)) or 1.0
        whole = len(centre) == sketch.n_projections * self.n_quantiles
        sums = sketch.vector_at(self.levels, None if whole else SUMS) - centre
        noise = noise_of(sketch)
        return sums / unit, None if noise is None else noise / unit**2, 1 / sketch.n_points


def _as_float32(numbers: list[float]) -> Vector:
    return np.clip(np.array(numbers, np.float64), -_LARGEST, _LARGEST).astype(np.float32)


def noise_of(sketch: Sketch) -> float | None:
    """What chance gives of squared distances is this times 1/n + 1/m, by the halves of a sketch; None without them."""
    floor = floor_of_sketches([(sketch.n_points, sketch.halves)], 2, (2, 2), 0.0)
    return None if floor is None else floor.power
