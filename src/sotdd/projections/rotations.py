"""Rotations made of Hadamard transforms and signs, whose rows are directions.

A rotation of D dimensions, a power of two, is H·S₃·H·S₂·H·S₁ with H the Hadamard matrix and S random signs. Its D rows,
cut to the first d coordinates and brought to length one, stand in for D directions uniform on the sphere. All D
projections of a point take about 3·D·log₂ D additions, where a product takes 2·d·D operations, and a rotation is drawn
from 3·D bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.resources import Stream, empty_lines, generator, kept_property
from sotdd.projections.maps import BLOCK, Floats, PiecedMap

if TYPE_CHECKING:
    from sotdd.projections.directions import ImportanceSampled

# With fewer features a product is as fast. Rows of a rotation, cut to a few coordinates, may also be so short that
# little of them is more than rounding.
FEWEST_FEATURES = 128

# Fewer dimensions would make directions a coarse grid.
_FEWEST_DIMENSIONS = 256

# Up to this many dimensions every row is brought to length one. Beyond, that would take more time than the projections,
# and lengths vary by less than 1 %: they are divided by their root mean square.
_MEASURED = 4096

# How many directions go into the fingerprint.
_SAMPLED = 8

# How many rotations are kept, for the blocks in them that are sampled next.
_KEPT = 16

# Coordinates whose part in the directions is found at a time.
_COORDINATES = 256


@dataclass(frozen=True, eq=False)
class Rotation:
    """One rotation: direction i is scale_i · row_i, for points that may be stretched first.

    Attributes
    ----------
    signs
        (3, D) what values are multiplied by before each transform; powers of two in them keep values small.
    scales
        (D,) what brings each direction to its length.
    importance
        (D,) the weight of each direction; None where all weigh the same.
    """

    signs: Floats
    scales: Floats
    importance: NDArray[np.float64] | None

    def write(self, points: Floats, first: int, out: Floats, at: int = 0) -> None:
        """Write projections of stretched points by B directions from ``first`` on to columns ``at`` … of out (B, n)."""
        from sotdd.projections.kernels import LANES, project_rows

        if min(points.shape) < LANES:
            wide = np.zeros((max(len(points), LANES), max(points.shape[1], LANES)), np.float32)
            wide[: len(points), : points.shape[1]], values = points, np.empty((len(out), len(wide)), np.float32)
            self.write(wide, first, values)
            out[:, at : at + len(points)] = values[:, : len(points)]
            return
        last, whole = first + len(out), 1
        while first // whole != (last - 1) // whole:
            whole *= 2
        start = first // whole * whole  # the rows wanted are among these, which share most of the work
        z = empty_lines(LANES * self.signs.shape[1])
        project_rows(points, self.signs, self.scales[first:last], start, first - start, out, at, z)


@dataclass(frozen=True, eq=False)
class HadamardDirections(PiecedMap):
    """Directions that are rows of rotations: maps points (m, d) to values (B, m).

    Attributes
    ----------
    stretch
        How points are stretched before they are projected; None where they are not.
    order
        The feature that each coordinate of a rotation belongs to, (d,); None for the order of the features.
    """

    stretch: ImportanceSampled | None = None
    order: NDArray[np.int64] | None = None

    @classmethod
    def sample_rows(
        cls, rng: np.random.Generator, count: int, n_features: int, stretch: ImportanceSampled | None = None
    ) -> HadamardDirections:
        """Sample as many rotations as that many directions take."""
        size = rotation_size(n_features)
        used = (min(size, count - start) for start in range(0, count, size))
        return cls(tuple((sample_rotation(rng, n_features, stretch), 0, rows) for rows in used), n_features, stretch)

    @classmethod
    def sample_blocks(
        cls,
        seed: int,
        stream: Stream,
        numbers: range,
        kept: dict[tuple[Stream, int], Rotation],
        n_features: int,
        stretch: ImportanceSampled | None = None,
    ) -> HadamardDirections:
        """Those of some blocks; where threads sample one rotation at the same time, they all take the first."""
        size, parts = rotation_size(n_features), []
        for number in numbers:
            which, first = divmod(number * BLOCK, size)
            rotation = kept.get((stream, which))
            if rotation is None:
                sampled = sample_rotation(generator(seed, stream, which), n_features, stretch)
                rotation = kept.setdefault((stream, which), sampled)
                for old in list(kept)[:-_KEPT]:
                    kept.pop(old, None)
            parts.append(cls(((rotation, first, first + BLOCK),), n_features, stretch))
        return cls.join(parts)

    def project(self, points: Floats, out: Floats, at: int = 0, tile: int | None = None) -> None:
        """Stretch points where directions are, and go through one rotation after another."""
        ordered = points if self.order is None else points[:, self.order]
        super().project(ordered if self.stretch is None else self.stretch.move_points(ordered), out, at)

    def reorder(self, order: Sequence[int] | None) -> HadamardDirections:
        """Bring the features of points in this order before they are projected."""
        return self if order is None else replace(self, order=np.array(order))

    @kept_property
    def theta(self) -> Floats:
        """(B, d) the directions themselves."""
        rows, d = np.empty((len(self), self.n_features), np.float32), self.n_features
        for start in range(0, d, _COORDINATES):
            self.project(np.eye(min(_COORDINATES, d - start), d, start, dtype=np.float32), rows, start)
        return np.asfortranarray(rows)

    @property
    def importance(self) -> NDArray[np.float64] | None:
        """(B,) the weight of each direction; None where all weigh the same."""
        weights = [rotation.importance[first:stop] for rotation, first, stop in self.parts if self.stretch is not None]
        return np.concatenate(weights) if weights else None

    def sample(self, probe: Floats) -> NDArray[Any]:
        """What the first directions make of a probe: few and small, as last bits differ from machine to machine."""
        return self.part(slice(_SAMPLED))(probe / np.linalg.norm(probe))[:, 0]


def rotation_size(n_features: int) -> int:
    """How many directions a rotation of points with this many features has, D."""
    return max(_FEWEST_DIMENSIONS, 1 << (n_features - 1).bit_length())


def sample_rotation(rng: np.random.Generator, n_features: int, stretch: ImportanceSampled | None = None) -> Rotation:
    """Sample a rotation, perhaps one whose directions are stretched."""
    size = rotation_size(n_features)
    signs = (1 - 2 * rng.integers(0, 2, size=(3, size), dtype=np.int8)).astype(np.float32)
    signs[1:] *= np.float32(2.0 ** -((size.bit_length() - 1) // 2))
    length = size**1.5 * float(abs(signs[1, 0])) ** 2  # of whole rows
    bare = Rotation(signs, np.ones(size, np.float32), None)
    scales = 1 / (length * _lengths(bare, n_features, length))  # (D,)
    if stretch is None:
        return Rotation(signs, scales.astype(np.float32), None)
    stretch.check_features(n_features)
    along = np.empty((size, len(stretch.basis)), np.float32)
    bare.write(stretch.basis.astype(np.float32), 0, along)
    stretched = 1 + (along * scales[:, None]) ** 2 @ (stretch.stretch**2 - 1)
    importance = np.exp(np.log(stretch.stretch).sum() - 0.5 * n_features * np.log(stretched))
    return Rotation(signs, (scales / np.sqrt(stretched)).astype(np.float32), importance)


def _lengths(rotation: Rotation, n_features: int, whole: float) -> NDArray[np.float64]:
    """(D,) the length of each row in the first coordinates, where a whole row counts as one."""
    size = rotation.signs.shape[1]
    if size > _MEASURED or size == n_features:
        return np.full(size, np.sqrt(n_features / size))
    fewer = range(n_features) if 2 * n_features <= size else range(n_features, size)
    squares = np.zeros(size)
    for start in range(fewer.start, fewer.stop, _COORDINATES):
        stop = min(start + _COORDINATES, fewer.stop)
        entries = np.empty((size, stop - start), np.float32)
        rotation.write(np.eye(stop - start, size, start, dtype=np.float32), 0, entries)
        squares += np.einsum("ij,ij->i", entries, entries, dtype=np.float64)
    squares /= whole**2
    return np.sqrt(squares if fewer.start == 0 else 1 - squares)
