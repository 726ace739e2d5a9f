"""Rotations made of Hadamard transforms and signs, whose rows are directions.

A rotation of D dimensions, a power of two, is H·S₃·H·S₂·H·S₁ with H the Hadamard matrix and S random signs. Its D rows,
cut to the first d coordinates and brought to length one, stand in for D directions uniform on the sphere. All D
projections of a point take about 3·D·log₂ D additions, where a product takes 2·d·D operations, and a rotation is drawn
from 3·D bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.resources import Stream, empty_lines, generator, kept_property
from sotdd.projections.blocks import BLOCK, Keys
from sotdd.projections.maps import DirectionMap, Floats, cut_parts

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
class Stretch:
    """How directions are stretched: along v_j they are s_j times as long, or, which is the same, points are.

    Attributes
    ----------
    basis
        (r, d) orthonormal rows v_j.
    factors
        (r,) s_j.
    further
        (r, d) what a point moves by per unit along each of them, (s_j - 1) v_j.
    """

    basis: Floats
    factors: NDArray[np.float64]
    further: Floats

    @classmethod
    def of(cls, basis: NDArray[np.float64], factors: NDArray[np.float64]) -> Stretch:
        """That along these rows, in the precision of points."""
        return cls(basis.astype(np.float32), factors, ((factors - 1)[:, None] * basis).astype(np.float32))

    def apply(self, points: Floats) -> Floats:
        """Stretched points (m, d)."""
        moved: Floats = np.matmul(points @ self.basis.T, self.further)
        moved += points
        return moved


@dataclass(frozen=True, eq=False)
class Rotation:
    """One rotation: direction i is scale_i · row_i, for points that are stretched first.

    Attributes
    ----------
    signs
        (3, D) what values are multiplied by before each transform; powers of two in them keep values small.
    stretch
        How points are stretched, the same for all rotations of a law; None where they are not.
    scales
        (D,) what brings each direction to its length.
    importance
        (D,) the weight of each direction; None where all weigh the same.
    """

    signs: Floats
    stretch: Stretch | None
    scales: Floats
    importance: NDArray[np.float64] | None

    def write(self, points: Floats, first: int, out: Floats, at: int = 0) -> None:
        """Write projections of stretched points by B directions from ``first`` on to columns ``at`` … of out (B, n)."""
        from sotdd.projections.kernels import project_rows
        from sotdd.projections.lanes import LANES

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


# Draws a rotation for points with that many features.
Draw: TypeAlias = Callable[[np.random.Generator, int], Rotation]


@dataclass(frozen=True, eq=False)
class HadamardDirections(DirectionMap):
    """Drawn directions that are rows of rotations: maps points (m, d) to values (B, m).

    Attributes
    ----------
    parts
        Of each rotation in use, the rotation, its first direction and the one after the last.
    n_features
        d.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> drawn = sotdd.projections.Hadamard().draw(np.random.default_rng(0), 4, 200)
    >>> drawn(np.zeros((7, 200))).shape, drawn.theta.shape
    ((4, 7), (4, 200))
    """

    parts: tuple[tuple[Rotation, int, int], ...]
    n_features: int

    @classmethod
    def draw(cls, draw: Draw, rng: np.random.Generator, n_projections: int, n_features: int) -> HadamardDirections:
        """Draw as many rotations as it takes."""
        size = rotation_size(n_features)
        starts = range(0, n_projections, size)
        return cls(tuple((draw(rng, n_features), 0, min(size, n_projections - at)) for at in starts), n_features)

    @classmethod
    def draw_blocks(cls, draw: Draw, keys: Keys, stream: Stream, n_features: int) -> HadamardDirections:
        """The directions of some blocks; where threads draw one rotation at the same time, they all take the first."""
        size, kept, parts = rotation_size(n_features), keys.kept, []
        for number in keys.numbers:
            which, first = divmod(number * BLOCK, size)
            rotation = kept.get((stream, which))
            if rotation is None:
                rotation = kept.setdefault((stream, which), draw(generator(keys.seed, stream, which), n_features))
                for old in list(kept)[:-_KEPT]:
                    kept.pop(old, None)
            parts.append(cls(((rotation, first, first + BLOCK),), n_features))
        return cls.join(parts)

    def __len__(self) -> int:
        """How many directions there are."""
        return sum(stop - first for _, first, stop in self.parts)

    def project(self, points: Floats, out: Floats, at: int = 0, tile: int | None = None) -> None:
        """Stretch points where directions are, and go through one rotation after another."""
        points, done = points if self.stretch is None else self.stretch.apply(points), 0
        for rotation, first, stop in self.parts:
            rotation.write(points, first, out[done : done + stop - first], at)
            done += stop - first

    @kept_property
    def theta(self) -> Floats:
        """(B, d) the directions themselves."""
        rows, d = np.empty((len(self), self.n_features), np.float32), self.n_features
        for start in range(0, d, _COORDINATES):
            self.project(np.eye(min(_COORDINATES, d - start), d, start, dtype=np.float32), rows, start)
        return np.asfortranarray(rows)

    @property
    def rotations(self) -> tuple[tuple[Rotation, int, int], ...]:
        """The rotations in use."""
        return self.parts

    @property
    def stretch(self) -> Stretch | None:
        """How points are stretched before they are projected."""
        return self.parts[0][0].stretch

    @property
    def importance(self) -> NDArray[np.float64] | None:
        """(B,) the weight of each direction; None where all weigh the same."""
        if self.parts[0][0].importance is None:
            return None
        return np.concatenate(
            [rotation.importance[first:stop] for rotation, first, stop in self.parts if rotation.importance is not None]
        )

    def part(self, rows: slice) -> HadamardDirections:
        """Some consecutive directions."""
        return HadamardDirections(cut_parts(self.parts, rows), self.n_features)

    @classmethod
    def join(cls, parts: Sequence[HadamardDirections]) -> HadamardDirections:
        """Those of consecutive blocks together; neighbours in one rotation become one part."""
        together: list[tuple[Rotation, int, int]] = []
        for rotation, first, stop in (part for drawn in parts for part in drawn.parts):
            if together and together[-1][0] is rotation and together[-1][2] == first:
                together[-1] = (rotation, together[-1][1], stop)
            else:
                together.append((rotation, first, stop))
        return cls(tuple(together), parts[0].n_features)

    def sample(self, probe: Floats) -> NDArray[Any]:
        """What the first directions make of a probe: few and small, as last bits differ from machine to machine."""
        return self.part(slice(_SAMPLED))(probe / np.linalg.norm(probe))[:, 0]


def rotation_size(n_features: int) -> int:
    """How many directions a rotation of points with this many features has, D."""
    return max(_FEWEST_DIMENSIONS, 1 << (n_features - 1).bit_length())


def draw_rotation(rng: np.random.Generator, n_features: int, stretch: Stretch | None = None) -> Rotation:
    """Draw a rotation, perhaps one whose directions are stretched."""
    size = rotation_size(n_features)
    signs = (1 - 2 * rng.integers(0, 2, size=(3, size), dtype=np.int8)).astype(np.float32)
    signs[1:] *= np.float32(2.0 ** -((size.bit_length() - 1) // 2))
    length = size**1.5 * float(abs(signs[1, 0])) ** 2  # of whole rows
    bare = Rotation(signs, None, np.ones(size, np.float32), None)
    scales = 1 / (length * _lengths(bare, n_features, length))  # (D,)
    if stretch is None:
        return replace(bare, scales=scales.astype(np.float32))
    along = np.empty((size, len(stretch.basis)), np.float32)
    bare.write(stretch.basis, 0, along)
    stretched = 1 + (along * scales[:, None]) ** 2 @ (stretch.factors**2 - 1)
    importance = np.exp(np.log(stretch.factors).sum() - 0.5 * n_features * np.log(stretched))
    return Rotation(signs, stretch, (scales / np.sqrt(stretched)).astype(np.float32), importance)


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
