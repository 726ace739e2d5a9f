"""Laws of directions: how a point's features become one number per projection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import check_count, check_positive
from sotdd.basics.errors import SotddError
from sotdd.projections.restorable import Settings


@dataclass(frozen=True, eq=False)
class Directions:
    """Drawn directions: a point x becomes ``theta @ x``, cut to ±clamp where one is set.

    Examples
    --------
    >>> import numpy as np
    >>> from sotdd.projections import Directions
    >>> Directions(np.eye(3)).theta.shape
    (3, 3)
    """

    theta: NDArray[np.floating]  # (B, d)
    clamp: float | None = None
    importance: NDArray[np.float64] | None = None  # (B,) what each counts by, where they are not drawn alike

    def __post_init__(self) -> None:
        """Check the numbers."""
        theta = np.asarray(self.theta)
        if theta.ndim != 2 or theta.dtype.kind not in "iuf":
            raise SotddError(
                f"directions have shape {theta.shape} and dtype {theta.dtype}: expected a matrix of numbers, one row "
                "per projection."
            )
        object.__setattr__(self, "theta", theta)
        if self.clamp is not None:
            object.__setattr__(self, "clamp", check_positive(self.clamp, "clamp", "a positive number or None"))
        if self.importance is not None and np.shape(self.importance) != (len(theta),):
            raise SotddError(
                f"directions have importance of shape {np.shape(self.importance)}: expected one number for each of "
                f"{len(theta)}."
            )

    def part(self, rows: slice) -> Directions:
        """Some consecutive ones."""
        return Directions(self.theta[rows], self.clamp, None if self.importance is None else self.importance[rows])


class PointMap(Protocol):
    """A drawn projection that is not linear: maps points (m, d) to values (B, m)."""

    def __call__(self, points: NDArray[np.float32], /) -> NDArray[np.floating]:
        """Project a block of scaled points."""


Drawn: TypeAlias = Directions | PointMap


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

    def draw(self, rng: np.random.Generator, n_projections: int, n_features: int) -> Drawn:
        """Draw that many projections of points with that many features."""


@dataclass(frozen=True)
class Sphere:
    """Directions uniform on the unit sphere: the Radon projection of the paper.

    Parameters
    ----------
    ambient
        The number of dimensions that the sphere is in, where the features are coordinates of a
        subspace only, as `sotdd.onto_span` makes them; by default as many as there are features.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> theta = sotdd.Sphere().draw(np.random.default_rng(0), 4, 3).theta
    >>> bool(np.allclose(np.linalg.norm(theta, axis=1), 1))
    True
    """

    law: ClassVar[str] = "sphere"
    ambient: int | None = None

    def __post_init__(self) -> None:
        """Check the dimensions."""
        if self.ambient is not None:
            check_count(self.ambient, "ambient")

    def describe(self) -> Mapping[str, object]:
        """Name the law, and the space it is in where that is not the features'."""
        return {"law": self.law} if self.ambient is None else {"law": self.law, "ambient": int(self.ambient)}

    @classmethod
    def restore(cls, settings: Settings) -> Self:
        """The law that describes itself so."""
        return cls(settings.get("ambient"))

    def draw(self, rng: np.random.Generator, n_projections: int, n_features: int) -> Directions:
        """Draw Gaussian vectors and bring them to length one; what is seen of them may be shorter."""
        theta = rng.standard_normal((n_projections, n_features))
        if self.ambient is None or self.ambient == n_features:
            return Directions(unit_rows(theta))
        if self.ambient < n_features:
            raise SotddError(f"ambient is {self.ambient:,} but there are {n_features:,} features: expected no fewer.")
        unseen = rng.chisquare(self.ambient - n_features, n_projections)
        return Directions(theta / np.sqrt(np.einsum("ij,ij->i", theta, theta) + unseen)[:, None])


@dataclass(frozen=True)
class Orthogonal:
    """Directions uniform on the sphere that are orthogonal to their neighbours.

    Every draw is cut into blocks of at most ``n_features`` rows, each the first rows of a
    Haar-distributed rotation: every single direction is exactly uniform, and together they
    cover the sphere more evenly than independent ones.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> theta = sotdd.Orthogonal().draw(np.random.default_rng(0), 3, 3).theta
    >>> bool(np.allclose(theta @ theta.T, np.eye(3)))
    True
    """

    law: ClassVar[str] = "orthogonal"

    def describe(self) -> Mapping[str, object]:
        """Name the law."""
        return {"law": self.law}

    @classmethod
    def restore(cls, _settings: Settings) -> Self:
        """The law that describes itself so."""
        return cls()

    def draw(self, rng: np.random.Generator, n_projections: int, n_features: int) -> Directions:
        """Orthonormalise Gaussian blocks; the signs of R make the factor Haar (Mezzadri 2007)."""
        blocks = []
        for start in range(0, n_projections, n_features):
            rows = min(n_features, n_projections - start)
            basis, triangle = np.linalg.qr(rng.standard_normal((rows, n_features)).T)
            signs = np.where(np.diagonal(triangle) < 0, -1.0, 1.0)
            blocks.append((basis * signs).T)
        return Directions(np.concatenate(blocks))


def unit_rows(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale every row to length one, in place."""
    vectors /= np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
    return vectors


def checked_draw(drawn: object, law: DirectionLaw, n_projections: int, n_features: int) -> Drawn:
    """Hold a law, perhaps a user's own, to what it promised."""
    if isinstance(drawn, Directions):
        expected = (n_projections, n_features)
        if drawn.theta.shape != expected:
            raise SotddError(
                f"{_name(law)} drew directions of shape {drawn.theta.shape}: expected {expected}, "
                "one row per projection."
            )
        if not np.isfinite(drawn.theta).all():
            raise SotddError(f"{_name(law)} drew directions that are not finite: check its draw method.")
        return drawn
    if callable(drawn):
        return _CheckedMap(drawn, _name(law), n_projections)
    raise SotddError(
        f"{_name(law)} drew a {type(drawn).__name__}: expected Directions, or a callable that maps points to values."
    )


@dataclass(frozen=True, eq=False)
class _CheckedMap:
    """A law's map of points, held to the shape that it promised."""

    map: PointMap
    law: str
    n_projections: int

    def __call__(self, points: NDArray[np.float32]) -> NDArray[np.floating]:
        shown = points.view()
        shown.flags.writeable = False  # they may be the caller's own
        values = np.asarray(self.map(shown))
        expected = (self.n_projections, len(points))
        if values.shape != expected or values.dtype.kind not in "iuf":
            raise SotddError(
                f"{self.law} mapped {len(points):,} points to {values.dtype} of shape {values.shape}: expected real "
                f"numbers of shape {expected}, one row per projection."
            )
        return values


def _name(law: object) -> str:
    return f"the direction law {type(law).__name__}"
