"""Laws of directions: how a point's features become one number per projection."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, describe
from sotdd.basics.resources import kept_property, serial_blas
from sotdd.basics.text import say_count
from sotdd.inputs.data import LabelledData
from sotdd.inputs.features import SparseRows
from sotdd.projections.maps import DirectionMap, Directions, PointMap, check_numbers
from sotdd.projections.rotations import FEWEST_FEATURES, HadamardDirections

if TYPE_CHECKING:
    from sotdd.projections.scaler import Scaler

# Points that the principal directions are learnt from. They need not be exact: whatever they are, the
# weights keep every mean what it is.
_SAMPLE = 512
_STEPS = 3

# Of wide sparse points so few are sampled that those of a dataset have about this many values, but at least so many.
_SPARSE_VALUES = 1 << 23
_FEWEST = 8

# How many principal directions, and how far each is stretched per share of the variance that it carries.
_DIRECTIONS = 6
_STRETCH = 10.0


class DirectionLaw(Protocol):
    """What a law of directions offers; write your own by having these two methods.

    ``draw`` returns `Directions` (the fast path: a matrix product), or any callable that maps
    a block of points (m, d) to projected values (B, m). It draws from ``rng`` alone, so that
    the same seed gives the same projections whenever and wherever they are drawn, and draws the
    same kind, with the same clamp, every time. A law that minds the shape of points, as given, may
    also have ``check_points(point_shape, name)``, which raises `SotddError`.

    Examples
    --------
    A law that looks at one feature at a time:

    >>> import numpy as np, sotdd
    >>> class Coordinates:
    ...     def describe(self):
    ...         return {"law": "coordinates"}
    ...
    ...     def draw(self, rng, n_projections, n_features):
    ...         chosen = rng.integers(n_features, size=n_projections)
    ...         return sotdd.projections.Directions(np.eye(n_features)[chosen])
    >>> x = np.array([[0.0, 0.0], [0.0, 2.0]])
    >>> sotdd.distance(x, x + 1, directions=Coordinates(), n_projections=64).value > 0
    True
    """

    def describe(self) -> Mapping[str, object]:
        """Name the law and all its settings in JSON values: they become part of the fingerprint."""

    def draw(self, rng: np.random.Generator, n_projections: int, n_features: int) -> DirectionMap | PointMap:
        """Draw that many projections of points with that many features."""


# ------------------------------------------------------------------ the laws of this package


class Law:
    """A dataclass that says what it is in JSON values, and is made again from them.

    A subclass gives its name: ``class Sphere(Law, name="sphere")``.
    """

    law: ClassVar[str]
    _known: ClassVar[dict[str, type[Law]]] = {}

    def __init_subclass__(cls, *, name: str) -> None:
        """Make it known by its name."""
        cls.law = name
        Law._known[name] = cls

    def describe(self) -> Mapping[str, object]:
        """Name the law and its settings: they become part of the fingerprint."""
        return {"law": self.law, **{field.name: getattr(self, field.name) for field in fields(self)}}  # type: ignore[arg-type]

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """A law of this kind, from what it said of itself."""
        names = [field.name for field in fields(cls)]  # type: ignore[arg-type]  # every law is a dataclass
        return cls(**{name: settings[name] for name in names if name in settings})

    @staticmethod
    def restore(settings: Mapping[str, Any]) -> Any:  # noqa: ANN401  # a law of directions, of labels or of orders
        """The law that these settings are of, where they say all of it."""
        name = settings.get("law")
        if not isinstance(name, str) or name not in Law._known:
            shown = name or "a law of its own"
            raise SotddError(f"its projections ({shown}) cannot be drawn from their description alone")
        return Law._known[name].of(settings)


@dataclass(frozen=True)
class Sphere(Law, name="sphere"):
    """Directions uniform on the unit sphere: the Radon projection of the paper.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> theta = sotdd.projections.Sphere().draw(np.random.default_rng(0), 4, 3).theta
    >>> bool(np.allclose(np.linalg.norm(theta, axis=1), 1))
    True
    """

    uniform: ClassVar[bool] = True

    def draw(self, rng: np.random.Generator, n_projections: int, n_features: int) -> Directions:
        """Draw Gaussian vectors and bring them to length one."""
        return Directions(unit_rows(rng.standard_normal((n_projections, n_features))))


@dataclass(frozen=True)
class Hadamard(Law, name="hadamard"):
    """Directions that stand in for those uniform on the sphere, projected along by fast Hadamard transforms.

    A rotation of D ≥ d dimensions, a power of two, is a product of three Hadamard transforms and three rows of random
    signs. The first d coordinates of its D rows, brought to length one, are the directions. D projections of a
    point take about 3·D·log₂ D additions in place of 2·d·D operations: the more features, the more is saved. Distances
    agree with those of `Sphere` within its noise; see docs/decisions/directions.md. With fewer than
    128 features, where nothing would be saved, the directions are those of `Sphere`.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> x = np.random.default_rng(0).normal(size=(200, 500))
    >>> fast = sotdd.distance(x, x + 0.1, directions=sotdd.projections.Hadamard())
    >>> usual = sotdd.distance(x, x + 0.1, directions=sotdd.projections.Sphere())
    >>> abs(fast.value - usual.value) < 4 * (fast.stderr + usual.stderr)
    True
    """

    structured: ClassVar[bool] = True
    uniform: ClassVar[bool] = True

    def draw(self, rng: np.random.Generator, n_projections: int, n_features: int) -> HadamardDirections | Directions:
        """Draw as many rotations as it takes."""
        if n_features < FEWEST_FEATURES:
            return Sphere().draw(rng, n_projections, n_features)
        return HadamardDirections.sample_rows(rng, n_projections, n_features)


@dataclass(frozen=True)
class Orthogonal(Law, name="orthogonal"):
    """Directions uniform on the sphere that are orthogonal to their neighbours.

    Every draw is cut into blocks of at most ``n_features`` rows, each the first rows of a
    Haar-distributed rotation: every single direction is exactly uniform, and together they
    cover the sphere more evenly than independent ones.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> theta = sotdd.projections.Orthogonal().draw(np.random.default_rng(0), 3, 3).theta
    >>> bool(np.allclose(theta @ theta.T, np.eye(3)))
    True
    """

    def draw(self, rng: np.random.Generator, n_projections: int, n_features: int) -> Directions:
        """Orthonormalise Gaussian blocks; the signs of R make the factor Haar (Mezzadri 2007)."""
        blocks = []
        for start in range(0, n_projections, n_features):
            rows = min(n_features, n_projections - start)
            basis, triangle = np.linalg.qr(rng.standard_normal((rows, n_features)).T)
            signs = np.where(np.diagonal(triangle) < 0, -1.0, 1.0)
            blocks.append((basis * signs).T)
        return Directions(np.concatenate(blocks))


# What files call the law: with rows of rotations, and with Gaussian vectors.
TILTED_ROTATIONS, _TILTED_ROWS = "tilted hadamard", "tilted sphere"


@dataclass(frozen=True, eq=False)
class ImportanceSampled:
    """Importance sampling of directions: more of them near the principal directions of the data, with weights.

    Projections along the directions in which data vary most are the large ones, whose moments make the
    tail of the distance. Here a Gaussian vector is stretched along a few directions v_j by s_j before it
    is brought to length one, so large projections come often. Each direction then has the weight
    ``Π s_j · (|g|² / |stretched g|²)^(d/2)``, the density of the uniform law over that of this one (an
    angular central Gaussian), which is at most Π s_j. So weighted means have the expectation that plain
    means have under `Sphere`.

    Attributes
    ----------
    basis
        (r, d) orthonormal rows, v_j.
    stretch
        (r,) s_j, at least 1.
    structured
        Whether rows of rotations, as those of `sotdd.projections.Hadamard`, are stretched in place of Gaussian vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from sotdd.projections import ImportanceSampled
    >>> law = ImportanceSampled(np.eye(1, 20), np.array([1.5]))
    >>> drawn = law.draw(np.random.default_rng(0), 4000, 20)
    >>> squares = drawn.theta[:, 0] ** 2  # of mean 1 / 20 under the uniform law
    >>> bool(np.mean(squares) > 0.09), round(float(np.mean(drawn.importance * squares)), 2)
    (True, 0.05)
    """

    basis: NDArray[np.float64]
    stretch: NDArray[np.float64]
    structured: bool = False

    uniform: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the shapes."""
        basis = check_numbers(self.basis, "the basis", (None, None)).astype(np.float64)
        stretch = check_numbers(self.stretch, "the stretch", (len(basis),)).astype(np.float64)
        if not (stretch >= 1).all():
            raise SotddError(f"is {describe(self.stretch)}: expected numbers of at least 1.", setting="stretch")
        for name, array in (("basis", basis), ("stretch", stretch)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    @serial_blas.hold()
    def fit(
        cls,
        datasets: Sequence[LabelledData],
        scaler: Scaler | None,
        law: Sphere | Hadamard,
        order: Sequence[int] | None = None,
    ) -> ImportanceSampled:
        """Learn the principal directions of the pooled data; ``law`` is the uniform one they stand in for.

        Their coordinates are the features in this ``order``, so that all sampling is the same whatever order they have.
        """
        n_features, structured = datasets[0].n_features, isinstance(law, Hadamard)
        with np.errstate(over="ignore", invalid="ignore"):
            samples = [_sample_points(data, scaler, -(-_SAMPLE // len(datasets))) for data in datasets]
            samples = samples if order is None else [np.take(points, order, axis=1) for points in samples]
            samples.sort(key=lambda points: (len(points), float(points.sum())))  # whatever order they are given in
        largest = float(np.max([(points.max(), -points.min()) for points in samples]))
        if not np.isfinite(largest):  # nothing can be learnt from them
            return cls(np.eye(1, n_features), np.ones(1), structured)  # the engine says what is wrong
        vectors, shares = _principal(samples, largest or 1.0, _DIRECTIONS + 1)
        # Beside the next direction: data that vary alike in all directions are not stretched at all.
        rest = shares[_DIRECTIONS] if len(shares) > _DIRECTIONS else shares[-1]
        squares = (1 + _STRETCH * shares[:_DIRECTIONS]) / (1 + _STRETCH * rest)
        # In float32, as files keep them: rows stay orthonormal to seven digits, which is what weights need.
        basis = vectors[:_DIRECTIONS].astype(np.float32).astype(np.float64)
        return cls(basis, np.sqrt(np.maximum(squares, 1.0)), structured)

    def describe(self) -> Mapping[str, object]:
        """Name the law; the basis is told by a hash of its rounded numbers."""
        rounded = np.round(self.basis, 4) + 0.0
        return {
            "law": TILTED_ROTATIONS if self.structured else _TILTED_ROWS,
            "stretch": [round(float(factor), 6) for factor in self.stretch],
            "basis": hashlib.sha256(rounded.tobytes()).hexdigest()[:16],
        }

    @property
    def even(self) -> Sphere | Hadamard:
        """The uniform law that this one stands in for."""
        return Hadamard() if self.structured else Sphere()

    def draw(self, rng: np.random.Generator, n_projections: int, n_features: int) -> Directions | HadamardDirections:
        """Stretch Gaussian vectors, or rows of rotations, and bring them to length one."""
        self.check_features(n_features)
        if self.structured and n_features >= FEWEST_FEATURES:
            return HadamardDirections.sample_rows(rng, n_projections, n_features, self)
        theta = rng.standard_normal((n_projections, n_features))
        squares, along = np.einsum("ij,ij->i", theta, theta), theta @ self.basis.T
        theta += (along * (self.stretch - 1)) @ self.basis
        stretched = squares + along**2 @ (self.stretch**2 - 1)
        theta /= np.sqrt(stretched)[:, None]
        logs = np.log(self.stretch).sum() + 0.5 * n_features * np.log(squares / stretched)
        return Directions(theta, importance=np.exp(logs))

    def check_features(self, n_features: int) -> None:
        """Refuse data with another number of features."""
        if self.basis.shape[1] != n_features:
            raise SotddError(
                f"the principal directions are for {say_count(self.basis.shape[1], 'feature')} but the data have "
                f"{n_features:,}."
            )

    def move_points(self, points: NDArray[np.float32]) -> NDArray[np.float32]:
        """Stretch points (m, d), which is the same for a projection as to stretch the direction."""
        moved: NDArray[np.float32] = np.matmul(points @ self.basis.astype(np.float32).T, self.moves)
        moved += points
        return moved

    @kept_property
    def moves(self) -> NDArray[np.float32]:
        """(r, d) what a point moves by per unit along each principal direction, (s_j - 1) v_j."""
        return ((self.stretch - 1)[:, None] * self.basis).astype(np.float32)


def unit_rows(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale every row to length one, in place."""
    vectors /= np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
    return vectors


@dataclass(frozen=True, eq=False)
class ExplicitDirections:
    """What stands in for a law where directions are explicit arrays: it knows its rows, and samples nothing.

    Attributes
    ----------
    arrays
        (L, d) each: θ, and φ where labels have directions of their own.
    clamp
        Where projected values are cut.
    """

    arrays: tuple[NDArray[np.floating], ...]
    clamp: float | None

    def describe(self) -> Mapping[str, object]:
        """The cut; the numbers themselves are hashed."""
        return {"law": "given", "clamp": self.clamp}


# ------------------------------------------------------------------ the principal directions of data


def _sample_points(data: LabelledData, scaler: Scaler | None, count: int) -> NDArray[np.float64]:
    """Points at even steps, scaled; at most ``count``, and of wide sparse points fewer, since these are dense."""
    if isinstance(data.features, SparseRows):
        count = max(_FEWEST, min(count, _SPARSE_VALUES // data.n_features))
    points = data.rows(slice(0, data.n_points, max(1, -(-data.n_points // count)))).astype(np.float64)
    return points if scaler is None else scaler.apply(points)


@lru_cache(maxsize=2)
def _first_basis(n_features: int, count: int) -> NDArray[np.float64]:
    """Random orthonormal columns (d, k) that the iteration begins with, always the same."""
    basis: NDArray[np.float64] = np.linalg.qr(np.random.default_rng(0).standard_normal((n_features, count)))[0]
    basis.flags.writeable = False
    return basis


def _principal(
    samples: Sequence[NDArray[np.float64]], largest: float, count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Leading directions (r, d) of second moments about zero and their shares, by subspace iteration."""
    points, done = np.empty((sum(map(len, samples)), samples[0].shape[1]), np.float32), 0
    for part in samples:
        np.divide(part, largest, out=points[done : done + len(part)], casting="same_kind")
        done += len(part)
    count = min(count, *points.shape)
    total = float(np.einsum("ij,ij->", points, points)) or 1.0
    basis = _first_basis(points.shape[1], min(count + 4, points.shape[1]))
    for _ in range(_STEPS):
        # In float64, for rows of the basis that are orthonormal to the last digit.
        basis, _ = np.linalg.qr((points.T @ (points @ basis.astype(np.float32))).astype(np.float64))
    _, sizes, turn = np.linalg.svd((points @ basis.astype(np.float32)).astype(np.float64), full_matrices=False)
    vectors = (turn @ basis.T)[:count]
    signs = np.sign(vectors[np.arange(len(vectors)), np.abs(vectors).argmax(axis=1)])
    return vectors * signs[:, None], sizes[:count] ** 2 / total
