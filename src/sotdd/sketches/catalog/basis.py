"""Short vectors learned from a catalog: where its sketches lie among few directions, and how far off these they are.

The vectors of sketches (`Sketch.vector`) have thousands of numbers, but those of real collections nearly lie in a space
of a few hundred dimensions. A basis of it is found by the principal components of their directions from a middle. The
short vector, or code, of a sketch has its coordinates z in that basis and, as one more number, the length r of what is
off it. For two sketches

    ‖z − z'‖² + (r − r')²  ≤  ‖v − v'‖²  ≤  ‖z − z'‖² + (r + r')²,

whatever they are and however the basis was found. In between lies ‖z − z'‖² + r² + r'² − 2 c r r', where c is the
cosine between what lies off the basis: near 0 where that is the chance of two samples, up to 1 for the same data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sotdd.sketches.catalog.recipe import CatalogRecipe
from sotdd.sketches.codec import packed, unpacked
from sotdd.sketches.levels import Levels
from sotdd.sketches.sketch import Sketch

Floats = NDArray[np.float32]

# A code has at most this many numbers, with the last for what lies off the basis.
WIDTH = 256
# Vectors are taken at fewer quantiles, so that the basis stays below some 16 MB; what that leaves out lies off it.
_LONGEST = 1 << 14
# With more projections than this no basis is made.
_MOST_PROJECTIONS = 1 << 16
# A basis is found from this many sketches, at most.
SAMPLE = 3000

_KIND = "basis"


@dataclass(frozen=True, eq=False)
class Basis:
    """A basis of the vectors of a catalog.

    Attributes
    ----------
    centre
        (D,) the median of each number, which codes are measured from.
    axes
        (W − 1, D) orthonormal rows, the widest first.
    n_quantiles
        How many quantiles of each projection vectors are taken at.
    n_entries
        How many entries the catalog had when it was found.
    """

    centre: Floats
    axes: Floats
    n_quantiles: int
    n_entries: int

    @classmethod
    def of(cls, vectors: Floats, n_quantiles: int, n_entries: int) -> Basis | None:
        """The principal directions of vectors (n, D); None where their squares leave float32."""
        centre = np.median(vectors, axis=0).astype(np.float32)
        centred = vectors - centre
        # By direction alone: a few sketches with far values would otherwise take all axes, and the others lie off them.
        lengths = np.sqrt(np.einsum("ij,ij->i", centred, centred))[:, None]
        if not np.isfinite(lengths).all():
            return None
        centred /= np.where(lengths > 0, lengths, 1)
        count = min(WIDTH - 1, *centred.shape)
        # The smaller of the two products has the same components, and takes a tenth of the time of a decomposition.
        tall = len(centred) > centred.shape[1]
        product = (centred.T @ centred if tall else centred @ centred.T).astype(np.float64)
        spreads, parts = np.linalg.eigh(product)
        widest = parts[:, np.argsort(spreads)[::-1][:count]].astype(np.float32)
        axes, _ = np.linalg.qr((widest if tall else centred.T @ widest).astype(np.float64))
        return cls(centre, np.ascontiguousarray(axes.T, np.float32), n_quantiles, n_entries)

    @property
    def width(self) -> int:
        """How many numbers a code has."""
        return len(self.axes) + 1

    def codes(self, sketches: Sequence[Sketch], recipe: CatalogRecipe) -> Floats:
        """The codes (n, W) of sketches."""
        coarse = np.array([coarse_vector(one, self.n_quantiles) for one in sketches]) - self.centre
        # One product is over sooner than the threads of BLAS have begun, and spin for many times as long after it.
        alone = len(coarse) == 1
        within = np.einsum("ij,j->i", self.axes, coarse[0])[None] if alone else coarse @ self.axes.T
        # Of the finer vector only the length is needed: its means over coarser parts are orthogonal to the rest of it.
        left_out = np.array([_square(one.vector_at(recipe.levels, None)) for one in sketches])
        left_out -= [_square(one) for one in coarse + self.centre]
        off = np.array([_square(one) for one in coarse]) - [_square(one) for one in within] + np.maximum(left_out, 0.0)
        return np.column_stack([within, np.sqrt(np.maximum(off, 0.0))]).astype(np.float32)

    def to_bytes(self) -> bytes:
        """The content of a file of its own kind, with a checksum."""
        header = {"n_quantiles": self.n_quantiles, "n_entries": self.n_entries}
        return packed(_KIND, header, {"centre": self.centre, "axes": self.axes})

    @classmethod
    def from_bytes(cls, content: bytes, location: str) -> Basis:
        """Read what `to_bytes` wrote, or refuse."""
        checked = unpacked(_KIND, content, location)
        centre = checked.array("centre", (np.float32,), (None,))
        axes = checked.array("axes", (np.float32,), (None, len(centre)))
        return cls(centre, axes, checked.count("n_quantiles"), checked.count("n_entries"))

    def fits(self, recipe: CatalogRecipe) -> bool:
        """Whether it is a basis of the vectors of this catalog."""
        return recipe.n_quantiles % self.n_quantiles == 0 and len(self.centre) == (
            recipe.sketch.n_projections * self.n_quantiles
        )


def coarse_vector(sketch: Sketch, n_quantiles: int) -> Floats:
    """The vector of a sketch at few quantiles."""
    return sketch.vector_at(Levels(n_quantiles), None)


def coarse_quantiles(recipe: CatalogRecipe) -> int | None:
    """At how many quantiles a basis of this catalog is found, a divisor of its own; None with too many projections."""
    if recipe.sketch.n_projections > _MOST_PROJECTIONS:
        return None
    most = max(1, _LONGEST // recipe.sketch.n_projections)
    return next(count for count in range(min(most, recipe.n_quantiles), 0, -1) if recipe.n_quantiles % count == 0)


def _square(vector: Floats) -> float:
    return float(np.dot(vector.astype(np.float64), vector.astype(np.float64)))
