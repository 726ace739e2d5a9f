"""The sketch of a dataset: its quantile function under every projection."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import OutOfRange, SotddError, check_choice, check_count, check_order, check_seed, describe
from sotdd.basics.files import read_whole, write_whole
from sotdd.basics.remarks import Remark, Remarks, join_remarks
from sotdd.basics.text import json_label, quote, say_count
from sotdd.compute.class_moments import ClassMoments, PointMoments, control_pairs
from sotdd.compute.distance import Distance
from sotdd.compute.estimators import Estimator, estimate_distance
from sotdd.inputs.data import half_labelled_error
from sotdd.projections.projections import Projections
from sotdd.projections.scaler import Scaler
from sotdd.sketches.codec import LARGEST_VALUE, Arrays, Reader, pack, pack_remarks, unpack
from sotdd.sketches.quantiles import QUANTILES, Levels, check_quantiles
from sotdd.sketches.saved_projections import MOST_FEATURES, SavedProjections
from sotdd.sketches.uncertainty import Halves, Lost, bound_error, find_floor, measure_loss

# A bound on the error of a distance beyond this share of its value gets a remark.
_TOLERATED = 0.05


@dataclass(frozen=True, eq=False)
class Sketch:
    """A dataset's quantile functions, one per projection. That is not anonymous: few points can be computed back.

    Two sketches through the same projections are compared in milliseconds, whatever the sizes of
    their datasets. Made by `sotdd.sketch`, or from a stream by `sotdd.SketchBuilder`.

    Attributes
    ----------
    name
        What messages call it.
    through
        Which projections were used, as a file keeps them.
    quantiles
        (L, Q): under each projection, the means of the sorted values over Q parts of probability; every value where
        ``exact``.
    exact
        Whether all points were kept.
    classes, counts
        The labels, and how many points each has.
    class_terms
        (L, C): the label term of each class under each projection. For moments, the mean of the label
        polynomial over the class.
    lost
        (L, 3) what was lost of each projection, see `sotdd.sketches.uncertainty`; from it distances know how
        far off they may be. None in private sketches.
    remarks
        What a reader should know, such as that columns were matched by position.
    weights
        (L,) what each projection counts by in a mean.
    controls
        What distances are controlled by; None where nothing can be.
    halves
        (2, S) how far apart random halves of the data are, for p = 1 and p = 2: distances then know what their
        sizes alone give (`Distance.sampling`). None for single points, streams of very many classes, and private
        sketches.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(size=(2000, 4)), rng.normal(1, 1, size=(3000, 4))
    >>> projections = sotdd.Projections.fit([a, b], n_projections=500)
    >>> here, there = sotdd.sketch(a, projections, name="here"), sotdd.sketch(b, projections)
    >>> here
    Sketch('here': 2,000 points, 1 class, 500 projections × 384 quantiles)
    >>> here.distance(there).value / sotdd.distance(a, b, projections=projections).value > 0.999
    True
    """

    name: str
    through: SavedProjections
    quantiles: NDArray[np.float32]
    exact: bool
    classes: tuple[Hashable, ...]
    counts: NDArray[np.int64]
    class_terms: NDArray[np.float32]
    weights: NDArray[np.float64]
    lost: Lost | None = None
    remarks: Remarks = ()
    halves: Halves | None = None
    controls: ClassMoments | None = None

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        for array in (self.quantiles, self.counts, self.class_terms, self.lost, self.halves, self.weights):
            if array is not None:
                array.flags.writeable = False

    @property
    def recipe(self) -> Mapping[str, Any]:
        """The settings of the projections."""
        return self.through.settings

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the projections: only sketches with the same one can be compared."""
        return self.through.fingerprint

    @property
    def scaler(self) -> Scaler | None:
        """How features were scaled before they were projected."""
        return self.through.scaler

    @property
    def projections(self) -> Projections | None:
        """The projections themselves, to sketch other data through.

        None where a sketch from a file was made with laws of the user's own, or with libraries that draw other numbers
        than those installed here.
        """
        return self.through.projections

    @property
    def n_points(self) -> int:
        """How many points the dataset has."""
        return int(self.counts.sum())

    @property
    def n_projections(self) -> int:
        """How many projections there are."""
        return len(self.quantiles)

    @property
    def n_quantiles(self) -> int:
        """How many numbers are kept of each projection."""
        return int(self.quantiles.shape[1])

    @property
    def levels(self) -> Levels:
        """Where quantile functions are cut into parts."""
        return Levels(self.n_quantiles)

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names of the features, where they have names."""
        return tuple(self.recipe["columns"]) if "columns" in self.recipe else None

    def __repr__(self) -> str:
        """Name and sizes, for people."""
        kept = "all values" if self.exact else say_count(self.n_quantiles, "quantile")
        points, classes = say_count(self.n_points, "point"), say_count(len(self.classes), "class", "classes")
        through = say_count(self.n_projections, "projection")
        return f"Sketch({quote(self.name)}: {points}, {classes}, {through} × {kept})"

    def distance(self, other: Sketch, p: float = 2, *, estimator: Estimator = "controlled") -> Distance:
        """How far apart two datasets are, from their sketches alone.

        The other sketch must be through the same projections. `sotdd.distance` compares a sketch with
        data as well. The result's ``sketch_error`` bounds how far it is from the distance of the data
        through the same projections; where that is more than 5 % of the value, a remark says so too. Where a
        sketch knows its ``halves``, ``excess`` is what remains beyond chance, for p = 1 and p = 2.

        Parameters
        ----------
        other
            The other sketch.
        p
            The order of transport.
        estimator
            As in `sotdd.distance`: "controlled" uses what both sketches carry; "plain" is a metric.
        """
        order = check_order(p)
        plain = check_choice(estimator, "estimator", get_args(Estimator)) == "plain"
        if not isinstance(other, Sketch):
            raise SotddError(f"is {describe(other)}: expected a Sketch; sotdd.distance takes data.", setting="other")
        self.through.refuse_other(other.through, f"sketches {self.name!r} and {other.name!r}")
        for bare, rich in ((self, other), (other, self)):
            if len(rich.classes) > 1 and any(remark.kind == "no labels" for remark in bare.remarks):
                raise half_labelled_error(bare.name, rich.name, len(rich.classes))
        alike_a, alike_b = _cut_alike(self, other)
        per_projection, within = _measure_costs(alike_a, alike_b, order)
        if not np.isfinite(per_projection).all():
            raise OutOfRange(f"transport to the power p={order:g} overflows: use a smaller p.")
        scaled = () if self.scaler is None else self.scaler.remarks
        controlled = None
        if not plain and self.controls is not None and other.controls is not None:
            [controlled] = control_pairs([self.controls, other.controls], self.weights, [(0, 1)], order)
        result = estimate_distance(
            per_projection,
            order,
            n_points=(self.n_points, other.n_points),
            classes=(self.classes, other.classes),
            fingerprint=self.fingerprint,
            scaler=self.scaler,
            columns=self.columns,
            remarks=join_remarks(scaled, self.remarks, other.remarks),
            weights=None if (self.weights == 1).all() else self.weights,
            controls=controlled,
        )
        sized_halves = [(one.n_points, one.halves) for one in (self, other)]
        floor = find_floor(sized_halves, order, result.n_points, result.value, per_projection * self.weights)
        result = replace(result, noise=floor, sampling=floor)
        bound = bound_error(alike_a.lost, alike_b.lost, result.value, within, order, self.weights)
        if bound is None:
            return result
        error, by_bins = bound
        coarse = error > _TOLERATED * result.value
        more = (Remark("coarse sketch", error=error, by_bins=2 * by_bins > error),) if coarse else ()
        return replace(result, sketch_error=error, remarks=(*result.remarks, *more))

    def cut(self, levels: Levels) -> Sketch:
        """The same sketch with these quantiles, where it keeps all values."""
        if not self.exact:
            return self
        means, lost = levels.means(self.quantiles), self.lost
        if lost is not None:
            now = measure_loss(self.quantiles, means, levels)
            lost = np.column_stack([lost[:, :2] + now, lost[:, 2]])
        return replace(self, quantiles=means, exact=False, lost=lost)

    def vector(self, dim: int | None = None, *, n_quantiles: int = QUANTILES, seed: int = 0) -> NDArray[np.float32]:
        """The vector (L · n_quantiles,) whose Euclidean distance from another's is about s-OTDD with p = 2.

        Vectors of sketches through the same projections compare whatever the sketches keep: each quantile
        function is taken as its means over ``n_quantiles`` parts of probability. Differences within parts are left out,
        so the Euclidean distance is never larger than the plain distance; docs/sketches.md has what is lost.

        Parameters
        ----------
        dim
            Length of a random projection of the vector, for an index that cannot take the whole: every number
            is added, with a random sign, to one of ``dim`` sums. Squared distances keep their expectation,
            with a relative standard deviation of about sqrt(2 / dim): distances are off by 2.2 % at 1,024 numbers.
        n_quantiles
            How many numbers of each projection. Only vectors with the same number can be compared.
        seed
            Of the random projection. Only vectors with the same seed can be compared.

        Examples
        --------
        >>> import numpy as np, sotdd
        >>> x = np.random.default_rng(0).normal(size=(1000, 3))
        >>> projections = sotdd.Projections.fit([x], n_projections=256)
        >>> a, b = (sotdd.sketch(points, projections, n_quantiles=64) for points in (x, x + 1))
        >>> gap = float(np.linalg.norm(a.vector() - b.vector()))
        >>> 0.999 < gap / a.distance(b, estimator="plain").value <= 1
        True
        """
        levels = check_quantiles(n_quantiles)
        grid = self.quantiles
        if self.exact or levels != self.levels:
            grid = levels.means(grid, None if self.exact else self.levels.edges)
        shared = grid * np.sqrt(levels.shares / len(grid)).astype(np.float32)
        whole = (shared * np.sqrt(self.weights)[:, None]).astype(np.float32).ravel()
        if dim is None:
            return whole
        n_sums = check_count(dim, "dim")
        if n_sums > whole.size:
            raise SotddError(f"is {n_sums:,}: expected at most {whole.size:,}, all there are.", setting="dim")
        rng = np.random.Generator(np.random.Philox(np.random.SeedSequence(check_seed(seed))))
        target = rng.integers(n_sums, size=whole.size)
        signed = np.where(rng.random(whole.size, np.float32) < 0.5, -whole, whole)
        return np.bincount(target, weights=signed, minlength=n_sums).astype(np.float32)

    def save(self, path: str | PathLike[str]) -> None:
        """Write one portable file, whole or not at all; see `sotdd.sketches.codec` for its format."""
        write_whole(path, pack_sketch(self))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Sketch:
        """Read a file that `save` wrote; anything else, or a damaged one, is refused."""
        return unpack_sketch(read_whole(path, "a file of a sketch"), path)

    def to_dict(self) -> dict[str, Any]:
        """Names, sizes and recipe as JSON values; the quantiles themselves are in the file."""
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


def _measure_costs(a: Sketch, b: Sketch, p: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """W_p^p (L,) of two sketches that keep all values, or are cut alike; and what of it is within parts, for p = 2."""
    from sotdd.compute.kernels.quantiles import compare_functions
    from sotdd.compute.kernels.rows import Overlaps, transport_rows

    costs, within = np.empty(a.n_projections), np.zeros(a.n_projections)
    if a.exact and b.exact:
        n, m = a.n_quantiles, b.n_quantiles
        return transport_rows(a.quantiles, b.quantiles, p, None if n == m else Overlaps.of(n, m)), within
    compare_functions(a.quantiles, b.quantiles, a.levels.edges, a.levels.smooth, p, costs, within)
    return costs, within


def _cut_alike(a: Sketch, b: Sketch) -> tuple[Sketch, Sketch]:
    """Both sketches with all values, or both cut into the same parts.

    A function put together from means, compared with all values of the other, would count the chance in these as
    distance.
    """
    kept = [sketch.levels for sketch in (a, b) if not sketch.exact]
    if not kept:
        return a, b
    if kept[0] != kept[-1]:
        raise SotddError(
            f"{a.name!r} has {a.n_quantiles:,} quantiles and {b.name!r} has {b.n_quantiles:,}: sketch both with "
            "the same number."
        )
    return a.cut(kept[0]), b.cut(kept[0])


# ------------------------------------------------------------------ files


def pack_sketch(sketch: Sketch) -> bytes:
    """The content of a file: what its projections need, and the attributes of the sketch by their names.

    Its controls are in ``places`` (L, 1 + J, 2), Gaussian moments; ``values`` (L, 5), direction moments; ``lengths``
    (5,), three even moments, the variance between classes and the dimensions; and ``mean`` (d,).
    """
    header, arrays = sketch.through.pack()
    header |= {
        "name": sketch.name,
        "classes": [json_label(label) for label in sketch.classes],
        "exact": sketch.exact,
        "remarks": pack_remarks(sketch.remarks),
    }
    names = ("quantiles", "counts", "class_terms", "lost", "halves", "weights")
    arrays |= _pack_controls(sketch.controls)
    return pack("sketch", header, {**arrays, **{name: getattr(sketch, name) for name in names}})


def unpack_sketch(content: bytes, name: str | PathLike[str], projections: Projections | None = None) -> Sketch:
    """A sketch from the content of a file, or an error that says what is wrong with it.

    A sketch through these projections uses them; otherwise they are drawn again from its settings.
    """
    reader = unpack("sketch", content, name)
    through, classes = SavedProjections.read(reader, projections), reader.labels()
    count = reader.within("recipe").count("n_projections")
    most = 4 * LARGEST_VALUE  # that projected values are apart
    shapes = {"lost": (count, 3), "halves": (2, None)}
    optional = {key: reader.array(key, "f8", shape, 0, most) for key, shape in shapes.items() if reader.holds(key)}
    quantiles, counts = reader.array("quantiles", "f4", (count, None)), reader.array("counts", "i8", (len(classes),), 0)
    reader.check_ascending("quantiles", quantiles)
    exact = reader.get("exact", bool)
    if exact and quantiles.shape[1] != counts.sum():
        raise reader.refuse("it claims to keep every value, and does not")
    if not counts.any():
        raise reader.refuse("it has no points")
    return Sketch(
        reader.get("name", str),
        through,
        quantiles,
        exact,
        classes,
        counts,
        reader.array("class_terms", "f4", (count, len(classes))),
        reader.array("weights", "f8", (count,), 0, most),
        remarks=reader.remarks("remarks"),
        controls=_read_controls(reader, count),
        **optional,
    )


def _pack_controls(controls: ClassMoments | None) -> Arrays:
    if controls is None:
        return {}
    gaussian, directions, known = controls.gaussian_moments, controls.direction_moments, controls.point_moments
    arrays: Arrays = {} if gaussian is None else {"places": gaussian}
    if directions is not None and known is not None:
        numbers = np.array([*known.even, known.between, known.dimensions])
        arrays |= {"values": directions, "lengths": numbers, "mean": known.mean.astype(np.float32)}
    return arrays


def _read_controls(reader: Reader, n_projections: int) -> ClassMoments | None:
    gaussian = directions = points = None
    if reader.holds("places"):
        gaussian = reader.array("places", "f4", (n_projections, None, 2))
    if reader.holds("values"):
        n_features = reader.within("recipe").count("n_features")
        directions = reader.array("values", "f8", (n_projections, 5))
        *even, between, dimensions = reader.array("lengths", "f8", (5,), least=0)
        mean = reader.array("mean", "f4", (n_features,)).astype(np.float64)
        if not n_features <= dimensions <= MOST_FEATURES:
            raise reader.refuse("its directions are in fewer dimensions than there are features, or in too many")
        points = PointMoments(np.array(even), float(between), mean, int(dimensions))
    return None if gaussian is None and directions is None else ClassMoments(gaussian, directions, points)
