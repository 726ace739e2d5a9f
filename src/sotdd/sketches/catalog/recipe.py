"""What all sketches of a catalog share: their projections, and the form of the vectors they are searched by."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.files import shown
from sotdd.sketches.file import from_bytes, to_bytes
from sotdd.sketches.levels import QUANTILES, Levels
from sotdd.sketches.sketch import Sketch, refuse_other_projections

# Length of the vectors that are searched: squared distances have a relative deviation of sqrt(2 / 1,024), 4.4 %.
DIM = 1024


@dataclass(frozen=True, eq=False)
class CatalogRecipe:
    """The recipe of a catalog, set by its first sketch.

    Attributes
    ----------
    sketch
        The first sketch, emptied: one number per projection, which is zero.
    n_quantiles
        Every sketch has this many quantiles, a multiple of them, or all values.
    dim
        Length of the vectors; None where sketches are so small that their whole vectors are searched.
    """

    sketch: Sketch
    n_quantiles: int
    dim: int | None

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
        return cls(emptied, quantiles, DIM if first.n_projections * quantiles > DIM else None)

    @staticmethod
    @lru_cache(maxsize=8)
    def from_row(content: bytes, n_quantiles: int, dim: int | None, location: str) -> CatalogRecipe:
        """Read what `to_bytes` wrote; cached, since projections are drawn to check that they come out the same."""
        return CatalogRecipe(replace(from_bytes(content, location), name=location), n_quantiles, dim)

    def to_bytes(self) -> bytes:
        """The recipe as the content of a sketch file."""
        return to_bytes(self.sketch)

    @property
    def levels(self) -> Levels:
        """Where the quantile functions of its sketches are cut, or may be cut further."""
        return Levels(self.n_quantiles)

    @property
    def width(self) -> int:
        """How many numbers a vector has."""
        return self.dim or self.sketch.n_projections * self.n_quantiles

    @property
    def relative_deviation(self) -> float:
        """Relative standard deviation of squared distances between vectors, around those of sketches."""
        return 0.0 if self.dim is None else math.sqrt(2 / self.dim)

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

    def vector(self, sketch: Sketch) -> NDArray[np.float32]:
        """The vector (width,) that a sketch is searched by."""
        return sketch.vector_at(self.levels, self.dim)
