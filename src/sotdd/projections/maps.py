"""Sampled projections: maps of points to one number per projection, and blocks of them with their label terms."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import OutOfRange, SotddError, as_array, check_limit
from sotdd.basics.resources import kept_property

if TYPE_CHECKING:
    from sotdd.projections.labels import LabelTerms

Floats = NDArray[np.float32]

# Projections are sampled in blocks of this many, each keyed by (seed, block): a projection is the
# same however many are sampled, in whatever portions, on however many threads.
BLOCK = 64

# Orders of moments that are told apart in further samples of the label law. Higher ones are left out of controls on
# both sides, which keeps their means what they are: on 25 sources of data they made no error smaller by 1 %, and with
# hundreds of classes their covariances took longer than all sorting.
ORDERS = 8

# How many numbers of a sampled direction go into the fingerprint.
_SAMPLE = 64


class PointMap(Protocol):
    """A sampled projection that is not linear: maps points (m, d) to values (B, m).

    It may also have ``project_tensor``, the same for torch tensors: then `sotdd.gradients.sotdd_loss` can differentiate
    it, and a GPU need not ask the processor.
    """

    def __call__(self, points: NDArray[np.float32], /) -> NDArray[np.floating]:
        """Project a block of scaled points."""


class DirectionMap(ABC):
    """Sampled projections of points: what a law of directions samples, once it is checked."""

    @property
    def matrix(self) -> NDArray[np.floating] | None:
        """(B, d) the directions; None for a map that is not linear."""
        return getattr(self, "theta", None)

    @property
    def clamp(self) -> float | None:
        """Where projected values are cut, to ±clamp; None where they are not."""
        return None

    @property
    def importance(self) -> NDArray[np.float64] | None:
        """(B,) the weight of each projection; None where all weigh the same."""
        return None

    @property
    def differentiable(self) -> bool:
        """Whether it projects tensors."""
        return True

    @abstractmethod
    def __len__(self) -> int:
        """How many projections there are."""

    @abstractmethod
    def project(self, points: Floats, out: Floats, at: int = 0, tile: int | None = None) -> None:
        """Write the projections of points (m, d) to columns ``at``, … of out (B, n), both contiguous.

        Matrix products are made with this many directions at a time: their rounding depends on their shape.
        """

    def project_tensor(self, points: Any) -> Any:  # noqa: ANN401  # torch is loaded late
        """The projections (B, m) of a tensor of points (m, d), which torch can differentiate."""
        values = points.new_tensor(self.matrix) @ points.T
        return values if self.clamp is None else values.clamp(-self.clamp, self.clamp)

    def reorder(self, order: Sequence[int] | None) -> Self:
        """The same for points whose feature ``order[j]`` is coordinate j; only laws that treat features alike can."""
        assert order is None
        return self

    @abstractmethod
    def part(self, rows: slice) -> Self:
        """Some consecutive projections."""

    @classmethod
    @abstractmethod
    def join(cls, parts: Sequence[Any]) -> Self:
        """Those of consecutive blocks together."""

    def sample(self, probe: Floats) -> NDArray[Any]:
        """Some of the numbers that were sampled, or that they make of a probe (1, d), for the fingerprint."""
        return self(probe)[:, 0]

    def __call__(self, points: NDArray[np.floating]) -> Floats:
        """The projections (B, m) of points (m, d)."""
        values = np.empty((len(self), len(points)), np.float32)
        self.project(np.ascontiguousarray(points, np.float32), values)
        return values


@dataclass(frozen=True, eq=False)
class Directions(DirectionMap):
    """Sampled directions: a point x becomes ``theta @ x``, cut to ±clamp where one is set.

    Examples
    --------
    >>> import numpy as np
    >>> from sotdd.projections import Directions
    >>> Directions(np.eye(3)).theta.shape
    (3, 3)
    """

    theta: NDArray[np.floating]  # (B, d)
    clamp: float | None = None
    importance: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        """How many directions there are."""
        return len(self.theta)

    def project(self, points: Floats, out: Floats, at: int = 0, tile: int | None = None) -> None:
        """Multiply, some directions at a time."""
        theta, here, tile = self._plain, slice(at, at + len(points)), tile or len(out)
        whole = len(out) // tile * tile
        if whole:  # in one call, though each tile is a product of its own
            tiles = theta[:whole].reshape(-1, tile, theta.shape[1])
            np.matmul(tiles, points.T, out=out[:whole].reshape(-1, tile, out.shape[1])[:, :, here])
        if whole < len(out):
            np.matmul(theta[whole:], points.T, out=out[whole:, here])
        if self.clamp is not None:
            np.clip(out[:, here], np.float32(-self.clamp), np.float32(self.clamp), out=out[:, here])

    @kept_property
    def _plain(self) -> Floats:
        """The directions as products take them."""
        with np.errstate(over="ignore"):  # found, and explained, where rows are checked
            return np.ascontiguousarray(self.theta, np.float32)

    def reorder(self, order: Sequence[int] | None) -> Directions:
        """Move the coordinates of every direction."""
        return self if order is None else replace(self, theta=self.theta[:, np.argsort(order)])

    def part(self, rows: slice) -> Directions:
        """Some consecutive directions."""
        return Directions(self.theta[rows], self.clamp, None if self.importance is None else self.importance[rows])

    @classmethod
    def join(cls, parts: Sequence[Directions]) -> Directions:
        """Those of consecutive blocks together."""
        weights = [part.importance for part in parts if part.importance is not None]
        importance = np.concatenate(weights) if weights else None
        return cls(np.concatenate([part.theta for part in parts]), parts[0].clamp, importance)

    def sample(self, probe: Floats) -> NDArray[Any]:
        """The first numbers of the first direction."""
        return self.theta[0, :_SAMPLE]


@dataclass(frozen=True, eq=False)
class PiecedMap(DirectionMap):
    """Projections of several pieces, of each of which only some may be used.

    Attributes
    ----------
    parts
        The pieces, such as rotations, each with the first of its projections that is used and the one after the last.
        A piece has ``write(points, first, out, at)``, which writes its projections from ``first`` on to columns ``at``,
        … of out (B, n).
    n_features
        How many features points have.
    """

    parts: tuple[tuple[Any, int, int], ...]
    n_features: int

    def __len__(self) -> int:
        """How many projections there are."""
        return sum(stop - first for _, first, stop in self.parts)

    def project(self, points: Floats, out: Floats, at: int = 0, tile: int | None = None) -> None:
        """Go through one piece after another."""
        done = 0
        for piece, first, stop in self.parts:
            piece.write(points, first, out[done : done + stop - first], at)
            done += stop - first

    def part(self, rows: slice) -> Self:
        """Some consecutive projections."""
        start, stop, _ = rows.indices(len(self))
        kept, done = [], 0
        for piece, first, last in self.parts:
            begin, end = max(first, first + start - done), min(last, first + stop - done)
            if begin < end:
                kept.append((piece, begin, end))
            done += last - first
        return replace(self, parts=tuple(kept))

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Those of consecutive blocks together; neighbours in one piece become one part."""
        together: list[tuple[Any, int, int]] = []
        for piece, first, stop in (part for sampled in parts for part in sampled.parts):
            if together and together[-1][0] is piece and together[-1][2] == first:
                together[-1] = (piece, together[-1][1], stop)
            else:
                together.append((piece, first, stop))
        return replace(parts[0], parts=tuple(together))


@dataclass(frozen=True, eq=False)
class OwnMap:
    """A user's own map of points, held to the shape that it promised; ``law`` is whose it is, for errors."""

    map_points: PointMap
    n_projections: int
    law: str

    def write(self, points: Floats, first: int, out: Floats, at: int = 0) -> None:
        """Call the map, and check what it makes of the points."""
        made = self.map_points(show_rows(points))  # points may be the caller's own
        values = check_made(made, (self.n_projections, len(points)), points, f"a map of {self.law}")
        out[:, at : at + len(points)] = values[first : first + len(out)]


@dataclass(frozen=True, eq=False)
class OwnMaps(PiecedMap):
    """A user's own maps of points, one for each block."""

    @property
    def differentiable(self) -> bool:
        """Whether all of the maps project tensors."""
        return all(hasattr(one.map_points, "project_tensor") for one, _, _ in self.parts)

    def project_tensor(self, points: Any) -> Any:  # noqa: ANN401
        """Call the maps with tensors."""
        rows, done = points.new_empty((len(self), len(points))), 0
        for one, first, stop in self.parts:
            rows[done : done + stop - first] = one.map_points.project_tensor(points)[first:stop]
            done += stop - first
        return rows


def check_directions(drawn: object, law: str, n_projections: int, n_features: int) -> DirectionMap:
    """Hold what a law sampled, perhaps a user's own, to what it promised; directions come back in float32."""
    name = f"the direction law {law}"
    if isinstance(drawn, Directions):
        theta = check_numbers(drawn.theta, f"theta of {name}", (n_projections, n_features))
        weights = drawn.importance
        importance = None if weights is None else check_numbers(weights, f"importance of {name}", (n_projections,))
        return Directions(theta.astype(np.float32), check_limit(drawn.clamp, "clamp"), importance)
    if isinstance(drawn, DirectionMap):
        return drawn
    if callable(drawn):
        return OwnMaps(((OwnMap(drawn, n_projections, name), 0, n_projections),), n_features)
    raise SotddError(
        f"{name} drew a {type(drawn).__name__}: expected Directions, or a callable that maps points to values."
    )


def join_maps(parts: Sequence[DirectionMap]) -> DirectionMap:
    """Those of consecutive blocks together, which must be of one kind."""
    if len(parts) == 1:
        return parts[0]
    if len({(type(part), part.clamp, part.importance is None) for part in parts}) > 1:
        raise SotddError(
            "a law of directions must draw the same kind every time: the same clamp, and importance always or never."
        )
    return parts[0].join(parts)


def check_numbers(values: object, what: str, shape: tuple[int | None, ...]) -> NDArray[Any]:
    """Return an array of real and finite numbers of this shape, in which None is any size, or refuse."""
    numbers = as_array(values, what)
    fits = numbers.ndim == len(shape) and all(shape[axis] in (None, size) for axis, size in enumerate(numbers.shape))
    if not fits or not numbers.size or numbers.dtype.kind not in "iuf":
        sized = ", ".join("any" if size is None else f"{size}" for size in shape)
        raise SotddError(
            f"{what} has shape {numbers.shape} and dtype {numbers.dtype}: expected finite numbers of shape ({sized}), "
            "one row per projection."
        )
    if not np.isfinite(numbers).all():
        raise SotddError(f"{what} holds NaN or infinity: expected finite numbers.")
    return numbers


def check_made(
    made: object, shape: tuple[int, ...], rows: NDArray[Any], what: str, *, finite: bool = True
) -> NDArray[Any]:
    """Hold what a law's method made of rows to real numbers of this shape, which are finite where the rows are."""
    found = np.asarray(made)
    if found.shape != shape or found.dtype.kind not in "iuf":
        raise SotddError(
            f"{what} returned {found.dtype} of shape {found.shape}: expected real numbers of shape {shape}, a row for "
            "each projection."
        )
    if finite and not np.isfinite(found).all() and np.isfinite(rows).all():
        raise SotddError(f"{what} returned NaN or infinite numbers for finite values: return finite ones.")
    return found


def show_rows(rows: NDArray[Any]) -> NDArray[Any]:
    """The same rows, read-only."""
    shown = rows.view()
    shown.flags.writeable = False
    return shown


def describe_overflow(name: str, projection: int) -> SotddError:
    """Features that float32 products cannot hold."""
    return OutOfRange(
        f"features of dataset {name!r} are too large for float32 products (projection {projection:,} is not finite)",
        use={"scale": "pooled"},
    )


# ------------------------------------------------------------------ blocks of projections


@dataclass(frozen=True, eq=False)
class Block:
    """Some consecutive projections, sampled.

    Attributes
    ----------
    directions
        What points are projected by: θ, and φ too where labels have directions of their own. So features are always
        projected by the first, and what class terms are computed from by the last.
    terms
        How labels enter.
    draws
        (B, 10, 1 + J) the weights of t, and of moments of orders 1, …, 8 and beyond, in the terms and in J further
        samples of the label law; None where none were requested.
    """

    directions: tuple[DirectionMap, ...]
    terms: LabelTerms
    draws: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        """How many projections these are."""
        return len(self.terms.weights)

    @property
    def features(self) -> DirectionMap:
        """How features are projected."""
        return self.directions[0]

    @property
    def importance(self) -> NDArray[np.float64]:
        """(B,) the weight of each projection in a mean; one, unless directions are sampled by importance."""
        importance = self.features.importance
        return np.ones(len(self)) if importance is None else importance

    @property
    def further(self) -> NDArray[np.float64]:
        """The ``draws``, of which there may be none: (B, 10, 0)."""
        return np.empty((len(self), ORDERS + 2, 0)) if self.draws is None else self.draws

    def freeze(self) -> None:
        """Make the arrays of directions read-only, in place: they are kept, and handed out again and again."""
        for value in (value for sampled in self.directions for value in vars(sampled).values()):
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def part(self, rows: slice) -> Block:
        """Some consecutive projections."""
        if rows.indices(len(self))[:2] == (0, len(self)):
            return self
        draws = None if self.draws is None else self.draws[rows]
        return Block(tuple(sampled.part(rows) for sampled in self.directions), self.terms.part(rows), draws)

    @staticmethod
    def join(blocks: Sequence[Block]) -> Block:
        """Put consecutive blocks together."""
        if len(blocks) == 1:
            return blocks[0]
        directions = zip(*(block.directions for block in blocks), strict=True)
        return Block(tuple(map(join_maps, directions)), blocks[0].terms.join([block.terms for block in blocks]))

    def with_draws(self, further: NDArray[np.float64]) -> Block:
        """The same with further samples of the label law, to which its own are added, in place."""
        count_orders(self.terms.weights[:, None], self.terms.coefficients[:, None], further[:, :, :1])
        return replace(self, draws=further)


def count_orders(weights: NDArray[np.float64], coefficients: NDArray[np.float64], counted: NDArray[np.float64]) -> None:
    """Write the weights of orders (B, 10, J) in polynomials with weights (B, J) and coefficients (B, J, q)."""
    width = min(coefficients.shape[2], counted.shape[1] - 1)
    scale = np.array([math.factorial(order) for order in range(width)], np.float64)
    counted[:, :width] = (coefficients[:, :, :width] * scale).transpose(0, 2, 1)
    counted[:, 0] = weights
