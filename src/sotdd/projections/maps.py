"""Sampled direction maps: how points become one number per projection."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, as_array, check_limit
from sotdd.basics.resources import kept_property
from sotdd.basics.text import say_count

if TYPE_CHECKING:
    from sotdd.projections.rotations import Rotation

Floats = NDArray[np.float32]
_Source = TypeVar("_Source")

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
    def rotations(self) -> tuple[tuple[Rotation, int, int], ...]:
        """The rotations whose rows the directions are, each with the first of its rows and the one after the last."""
        return ()

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

    @abstractmethod
    def part(self, rows: slice) -> Self:
        """Some consecutive projections."""

    @classmethod
    @abstractmethod
    def join(cls, parts: Sequence[Any]) -> Self:
        """Those of consecutive blocks together."""

    @abstractmethod
    def sample(self, probe: Floats) -> NDArray[Any]:
        """Some of the numbers that were sampled, or that they make of a probe (1, d), for the fingerprint."""

    def freeze(self) -> None:
        """Make arrays read-only, in place: they are kept, and handed out again and again."""
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

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

    def part(self, rows: slice) -> Directions:
        """Some consecutive directions."""
        return Directions(self.theta[rows], self.clamp, None if self.importance is None else self.importance[rows])

    @classmethod
    def join(cls, parts: Sequence[Directions]) -> Directions:
        """Those of consecutive blocks together, which must be of one kind."""
        if any(part.clamp != parts[0].clamp for part in parts):
            raise SotddError("a law of directions must draw the same kind, with the same clamp, every time.")
        weights = [part.importance for part in parts if part.importance is not None]
        if weights and len(weights) < len(parts):
            raise SotddError("a law of directions must give importance with every draw, or with none.")
        importance = np.concatenate(weights) if weights else None
        return cls(np.concatenate([part.theta for part in parts]), parts[0].clamp, importance)

    def sample(self, probe: Floats) -> NDArray[Any]:
        """The first numbers of the first direction."""
        return self.theta[0, :_SAMPLE]


@dataclass(frozen=True, eq=False)
class MappedPoints(DirectionMap):
    """A law's maps of points, held to the shapes that they promised.

    Attributes
    ----------
    parts
        Of each map in use, the map with the number of its projections, the first of them that is used and the one after
        the last.
    law
        Whose they are, for errors.
    """

    parts: tuple[tuple[tuple[PointMap, int], int, int], ...]
    law: str

    def __len__(self) -> int:
        """How many projections there are."""
        return sum(stop - first for _, first, stop in self.parts)

    @property
    def differentiable(self) -> bool:
        """Whether all of the maps project tensors."""
        return all(hasattr(one, "project_tensor") for (one, _), _, _ in self.parts)

    def project(self, points: Floats, out: Floats, at: int = 0, tile: int | None = None) -> None:
        """Ask the law's maps."""
        shown, done = points.view(), 0
        shown.flags.writeable = False  # they may be the caller's own
        for (one, count), first, stop in self.parts:
            values = self._check(one(shown), count, shown)
            out[done : done + stop - first, at : at + len(points)] = values[first:stop]
            done += stop - first

    def _check(self, made: object, count: int, points: Floats) -> NDArray[np.floating]:
        values, expected = np.asarray(made), (count, len(points))
        if values.shape != expected or values.dtype.kind not in "iuf":
            raise SotddError(
                f"{self.law} mapped {say_count(len(points), 'point')} to {values.dtype} of shape {values.shape}: "
                f"expected real numbers of shape {expected}, one row per projection."
            )
        if not np.isfinite(values).all() and np.isfinite(points).all():
            raise SotddError(f"{self.law} mapped finite points to NaN or infinity: check the map that it samples.")
        return values

    def project_tensor(self, points: Any) -> Any:  # noqa: ANN401
        """Ask the law's maps for tensors."""
        rows, done, maps = points.new_empty((len(self), len(points))), 0, list[Any](self.parts)
        for (one, _), first, stop in maps:
            rows[done : done + stop - first] = one.project_tensor(points)[first:stop]
            done += stop - first
        return rows

    def part(self, rows: slice) -> MappedPoints:
        """Some consecutive projections."""
        return MappedPoints(cut_parts(self.parts, rows), self.law)

    @classmethod
    def join(cls, parts: Sequence[MappedPoints]) -> MappedPoints:
        """Those of consecutive blocks together."""
        return cls(tuple(one for part in parts for one in part.parts), parts[0].law)

    def sample(self, probe: Floats) -> NDArray[Any]:
        """What the maps make of a probe."""
        return self(probe)[:, 0]


def check_directions(drawn: object, law: str, n_projections: int, n_features: int) -> DirectionMap:
    """Hold what a law sampled, perhaps a user's own, to what it promised; directions come back in float32."""
    name = f"the direction law {law}"
    if isinstance(drawn, Directions):
        theta = _check_numbers(drawn.theta, "directions", name, (n_projections, n_features))
        weights = drawn.importance
        importance = None if weights is None else _check_numbers(weights, "importance", name, (n_projections,))
        return Directions(theta.astype(np.float32), check_limit(drawn.clamp, "clamp"), importance)
    if isinstance(drawn, DirectionMap):
        return drawn
    if callable(drawn):
        return MappedPoints((((drawn, n_projections), 0, n_projections),), name)
    raise SotddError(
        f"{name} drew a {type(drawn).__name__}: expected Directions, or a callable that maps points to values."
    )


def cut_parts(parts: Sequence[tuple[_Source, int, int]], rows: slice) -> tuple[tuple[_Source, int, int], ...]:
    """Some consecutive projections of parts, each of which says the first and the last of a source that it uses."""
    start, stop, _ = rows.indices(sum(last - first for _, first, last in parts))
    kept, done = [], 0
    for source, first, last in parts:
        begin, end = max(first, first + start - done), min(last, first + stop - done)
        if begin < end:
            kept.append((source, begin, end))
        done += last - first
    return tuple(kept)


def join_maps(parts: Sequence[DirectionMap]) -> DirectionMap:
    """Those of consecutive blocks together, which must be of one kind."""
    if len(parts) == 1:
        return parts[0]
    kinds = {type(part) for part in parts}
    if len(kinds) > 1:
        raise SotddError("a law of directions must draw the same kind, with the same clamp, every time.")
    return kinds.pop().join(parts)


def _check_numbers(values: object, what: str, law: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return an array of real and finite numbers of this shape, or refuse."""
    numbers = as_array(values, what)
    if numbers.shape != shape or numbers.dtype.kind not in "iuf" or not np.isfinite(numbers).all():
        raise SotddError(
            f"{law} gave {what} of shape {numbers.shape} and dtype {numbers.dtype}: expected finite numbers of shape "
            f"{shape}, one row per projection."
        )
    return numbers
