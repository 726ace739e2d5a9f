"""A dataset seen through projections: what is left of it once every comparison is paid for."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import check_count, check_order, check_seed, described
from sotdd.basics.errors import OutOfRange, SotddError
from sotdd.projections.recipe import Projections
from sotdd.projections.scaler import Scaler
from sotdd.results.distance import Distance, json_label
from sotdd.results.estimators import estimated_distance
from sotdd.sketches.agreement import refuse_other_recipes
from sotdd.sketches.halves import Halves, floor_of_sketches
from sotdd.sketches.losses import Lost, lost_by, most_off, nothing_lost, remark_of

# How many numbers of each projection are in a vector, whatever a sketch keeps.
VECTOR_QUANTILES = 512


@dataclass(frozen=True, eq=False)
class Sketch:
    """A dataset's quantile functions, one per projection; no point of the data is in it.

    Two sketches through the same projections are compared in milliseconds, whatever the sizes of
    their datasets. Made by `sotdd.sketch`, or from a stream by `sotdd.SketchBuilder`.

    Attributes
    ----------
    name
        What messages call it.
    quantiles
        (L, Q): under each projection, the means of the sorted values over Q parts of equal
        probability; every value where ``exact``.
    exact
        Whether all points were kept. Otherwise a distance comes out a little too small, never too
        large: by the convexity of ``|x|^p``, means of differences are no larger than the differences.
        (Streams count values in fine bins, which may err to either side.)
    classes, counts
        The labels, and how many points each has.
    class_terms
        (L, C): where each class stands under each projection, its mean of the label polynomial.
    recipe, fingerprint, scaler
        What the data were seen through: settings, name, and what was done to features first.
    projections
        The same to draw from; None where a sketch from a file was made by laws of the user's own,
        or by libraries that draw other numbers than those installed here.
    lost
        (L, 3) what was lost of each projection, see `sotdd.sketches.losses`; from it distances know how
        far off they may be. None in files of older versions.
    remarks
        What a reader should know, such as that columns were matched by position.
    halves
        (2, S) how far apart random halves of the data are, for p = 1 and p = 2: distances then know what their
        sizes alone give (`Distance.sampling`). None for streams, single points and files of older versions.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(size=(2000, 4)), rng.normal(1, 1, size=(3000, 4))
    >>> projections = sotdd.Projections.fit([a, b], n_projections=500)
    >>> here, there = sotdd.sketch(a, projections, name="here"), sotdd.sketch(b, projections)
    >>> here
    Sketch('here': 2,000 points, 1 class, 500 projections × 512 quantiles)
    >>> here.distance(there).value / sotdd.distance(a, b, projections=projections).value > 0.999
    True
    """

    name: str
    quantiles: NDArray[np.float32]
    exact: bool
    classes: tuple[Hashable, ...]
    counts: NDArray[np.int64]
    class_terms: NDArray[np.float32]
    recipe: Mapping[str, Any]
    fingerprint: str
    scaler: Scaler | None
    projections: Projections | None = None
    lost: Lost | None = None
    remarks: tuple[str, ...] = ()
    halves: Halves | None = None

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        if self.exact and self.lost is None:
            object.__setattr__(self, "lost", nothing_lost(len(self.quantiles)))
        for array in (self.quantiles, self.counts, self.class_terms, self.lost, self.halves):
            if array is not None:
                array.flags.writeable = False

    @property
    def n_points(self) -> int:
        """How many points the dataset has."""
        return int(self.counts.sum())

    @property
    def n_projections(self) -> int:
        """How many projections it was seen through."""
        return len(self.quantiles)

    @property
    def n_quantiles(self) -> int:
        """How many numbers are kept of each projection."""
        return int(self.quantiles.shape[1])

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names of the features, where they have names."""
        return tuple(self.recipe["columns"]) if "columns" in self.recipe else None

    @property
    def class_sums(self) -> NDArray[np.float64]:
        """(L, C): sums of the label polynomial over each class, which add up over parts of a dataset."""
        return self.class_terms.astype(np.float64) * self.counts

    def __repr__(self) -> str:
        """Name and sizes, for people."""
        classes = "1 class" if len(self.classes) == 1 else f"{len(self.classes):,} classes"
        kept = "all values" if self.exact else f"{self.n_quantiles:,} quantiles"
        return (
            f"Sketch({self.name!r}: {self.n_points:,} points, {classes}, {self.n_projections:,} projections × {kept})"
        )

    def distance(self, other: Sketch, p: float = 2) -> Distance:
        """How far apart two datasets are, from their sketches alone.

        The other sketch must be through the same projections. `sotdd.distance` compares a sketch with
        data as well. The result's ``sketch_error`` says how far it is, at most, from the distance of the data
        through the same projections; where that is more than 5 % of the value, a remark says so too. Where a
        sketch knows its ``halves``, ``excess`` is what the sizes alone do not give, for p = 1 and p = 2.
        """
        from sotdd.kernels.rows import Overlaps, transport_rows

        order = check_order(p)
        if not isinstance(other, Sketch):
            raise SotddError(f"other is {described(other)}: expected a Sketch; sotdd.distance compares one with data.")
        refuse_other_projections(self, other)
        a, b = _in_step(self, other)
        n, m = a.n_quantiles, b.n_quantiles
        per_projection = transport_rows(a.quantiles, b.quantiles, order, None if n == m else Overlaps.of(n, m))
        if not np.isfinite(per_projection).all():
            raise OutOfRange(f"transport to the power p={order:g} overflows: use a smaller p.")
        scaled = () if self.scaler is None else self.scaler.remarks
        found = estimated_distance(
            self,
            other,
            per_projection,
            order,
            fingerprint=self.fingerprint,
            scaler=self.scaler,
            columns=self.columns,
            remarks=tuple(dict.fromkeys([*scaled, *self.remarks, *other.remarks])),
        )
        halves = [(one.n_points, one.halves) for one in (self, other)]
        found = replace(found, sampling=floor_of_sketches(halves, order, found.n_points, found.value))
        known = most_off(a.lost, b.lost, found.value, order)
        if known is None:
            return found
        return replace(found, sketch_error=known[0], remarks=(*found.remarks, *remark_of(*known, found.value)))

    def reduced(self, n_quantiles: int) -> Sketch:
        """The same with fewer quantiles; a number that divides those there are, unless all values are kept."""
        parts = check_count(n_quantiles, "n_quantiles")
        if parts == self.n_quantiles:
            return self
        if not self.exact and self.n_quantiles % parts:
            raise SotddError(
                f"{self.n_quantiles:,} quantiles cannot be reduced to {parts:,}: expected a divisor of them."
            )
        means = reduced_rows(self.quantiles, parts)
        lost = None if self.lost is None else lost_by(self.quantiles, means, self.lost)
        return replace(self, quantiles=means, exact=False, lost=lost)

    def vector(
        self, dim: int | None = None, *, n_quantiles: int = VECTOR_QUANTILES, seed: int = 0
    ) -> NDArray[np.float32]:
        """The vector (L · n_quantiles,) whose Euclidean distance from another's is s-OTDD with p = 2.

        Vectors of sketches through the same projections compare whatever the sketches keep: each quantile
        function is taken as its means over ``n_quantiles`` parts of equal probability. Between sketches
        that keep that many, or a divisor of it, the Euclidean distance is `distance`. From others
        something is averaged away, and it is smaller: by as much as the distance of two sketches with that
        many quantiles would be.

        Parameters
        ----------
        dim
            Length of a random projection of it, for indexes that cannot take so long a vector: every
            number goes, with a random sign, to a random one of ``dim`` places. Squared distances keep
            their expectation, with a relative standard deviation of about sqrt(2 / dim).
        n_quantiles
            How many numbers of each projection. Only vectors with the same can be compared.
        seed
            Of the random projection; vectors with the same seed can be compared.

        Examples
        --------
        >>> import numpy as np, sotdd
        >>> x = np.random.default_rng(0).normal(size=(1000, 3))
        >>> projections = sotdd.Projections.fit([x], n_projections=256)
        >>> a, b = (sotdd.sketch(points, projections, n_quantiles=64) for points in (x, x + 1))
        >>> gap = float(np.linalg.norm(a.vector() - b.vector()))
        >>> abs(gap - a.distance(b).value) < 1e-6
        True
        """
        parts = check_count(n_quantiles, "n_quantiles")
        grid = self.quantiles if parts == self.n_quantiles else reduced_rows(self.quantiles, parts)
        whole = (grid / np.float32(math.sqrt(grid.size))).ravel()
        if dim is None:
            return whole
        places = check_count(dim, "dim")
        rng = np.random.Generator(np.random.Philox(np.random.SeedSequence(check_seed(seed))))
        place = rng.integers(places, size=whole.size)
        signed = np.where(rng.random(whole.size, np.float32) < 0.5, -whole, whole)
        return np.bincount(place, weights=signed, minlength=places).astype(np.float32)

    def save(self, path: str | Path, *, half: bool = False) -> None:
        """Write one portable file, whole or not at all; see `sotdd.sketches.file` for its format.

        With ``half`` every value is rounded to one of 65,536 steps between the smallest and the
        largest of its projection, and the file is half as large.
        """
        from sotdd.sketches.file import write

        write(self, Path(path), half)

    @classmethod
    def load(cls, path: str | Path) -> Sketch:
        """Read a file that `save` wrote; anything else, or a damaged one, is refused."""
        from sotdd.sketches.file import read

        return read(Path(path))

    def to_dict(self) -> dict[str, Any]:
        """What it is of and was seen through, as JSON values; the numbers are in the file."""
        return {
            "name": self.name,
            "n_points": self.n_points,
            "classes": [json_label(label) for label in self.classes],
            "counts": self.counts.tolist(),
            "n_projections": self.n_projections,
            "n_quantiles": self.n_quantiles,
            "exact": self.exact,
            "fingerprint": self.fingerprint,
            "recipe": dict(self.recipe),
        }


def reduced_rows(rows: NDArray[np.float32], n_quantiles: int) -> NDArray[np.float32]:
    """Means (B, Q) of sorted rows (B, n) over parts of equal probability."""
    from sotdd.kernels.quantiles import bin_means

    out = np.empty((len(rows), n_quantiles), np.float32)
    bin_means(rows, out)
    return out


def _in_step(a: Sketch, b: Sketch) -> tuple[Sketch, Sketch]:
    """The two so that their rows can be transported without over-estimating: both exact, or both reduced alike.

    A reduced sketch beside all values of the other would count the spread inside each part of the
    other as distance.
    """
    if a.exact and b.exact:
        return a, b
    parts = min(sketch.n_quantiles for sketch in (a, b) if not sketch.exact)
    for sketch in (a, b):
        if not sketch.exact and sketch.n_quantiles % parts:
            raise SotddError(
                f"{a.name!r} has {a.n_quantiles:,} quantiles and {b.name!r} has {b.n_quantiles:,}: sketch both with "
                "the same number, or with one that divides the other."
            )
    return a.reduced(parts), b.reduced(parts)


def refuse_other_projections(a: Sketch, b: Sketch) -> None:
    """Refuse to compare what was seen through different projections, and say how they differ."""
    what = f"sketches {a.name!r} and {b.name!r}"
    refuse_other_recipes(a.recipe, a.fingerprint, b.recipe, b.fingerprint, what)
