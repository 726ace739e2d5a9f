"""Where projections come from: drawn from laws by a seed, or given as arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.memory import kept_property
from sotdd.basics.randomness import Stream, generator
from sotdd.basics.threads import serial_blas
from sotdd.projections.directions import DirectionLaw, Hadamard, Sphere, Tilted, unit_rows
from sotdd.projections.labels import LabelLaw
from sotdd.projections.maps import DirectionMap, Directions, check_directions, join_maps
from sotdd.projections.moments import Moments, draw_numbers, make_terms, moment_terms
from sotdd.projections.terms import LabelTerms, Polynomials
from sotdd.projections.turns import FEWEST_FEATURES, Turn, TurnedDirections, turn_size

# Draws come in blocks of this many projections, each keyed by (seed, block): a projection is the
# same however many are drawn, in whatever portions, on however many threads.
BLOCK = 64

# Orders of moments that are told apart in further draws of the label law. Higher ones are left out of controls on both
# sides, which keeps their means what they are: on 25 sources of data they made no error smaller by 1 %, and with
# hundreds of classes their covariances took longer than all sorting.
ORDERS = 8

# How many turns of structured directions are kept, for the blocks in them that are drawn next.
_KEPT_TURNS = 16


@dataclass(frozen=True, eq=False)
class Block:
    """Some consecutive projections, drawn.

    Attributes
    ----------
    directions
        What points are projected by: θ, and φ too where labels have directions of their own. So features are always
        projected by the first, and what class terms are computed from by the last.
    terms
        How labels enter.
    draws
        (B, 10, 1 + J) what t, and moments of orders 1, …, 8 and beyond, count by in the terms and in J further draws
        of the label law; None where none were asked for.
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
        """(B,) what each projection counts by in a mean; one, unless directions are drawn otherwise."""
        importance = self.features.importance
        return np.ones(len(self)) if importance is None else importance

    @property
    def further(self) -> NDArray[np.float64]:
        """The ``draws``, of which there may be none: (B, 10, 0)."""
        return np.empty((len(self), ORDERS + 2, 0)) if self.draws is None else self.draws

    def freeze(self) -> None:
        """Make directions read-only, in place: they are kept, and handed out again and again."""
        for drawn in self.directions:
            drawn.freeze()

    def part(self, rows: slice) -> Block:
        """Some consecutive projections."""
        if rows.indices(len(self))[:2] == (0, len(self)):
            return self
        draws = None if self.draws is None else self.draws[rows]
        return Block(tuple(drawn.part(rows) for drawn in self.directions), self.terms.part(rows), draws)

    @staticmethod
    def join(blocks: Sequence[Block]) -> Block:
        """Put consecutive blocks together."""
        if len(blocks) == 1:
            return blocks[0]
        directions = zip(*(block.directions for block in blocks), strict=True)
        return Block(tuple(map(join_maps, directions)), LabelTerms.join([block.terms for block in blocks]))

    def with_draws(self, further: NDArray[np.float64]) -> Block:
        """The same with further draws of the label law, to which its own are added, in place."""
        count_orders(self.terms.weights[:, None], self.terms.coefficients[:, None], further[:, :, :1])
        return replace(self, draws=further)


@dataclass(frozen=True, eq=False)
class Laws:
    """Draws from laws, by a seed."""

    n_features: int
    directions: DirectionLaw
    label: LabelLaw
    seed: int
    first_block: int = 0  # where the projections begin
    shared_directions: bool = True  # whether labels are projected along the directions of features, φ = θ

    @serial_blas.hold()
    def blocks(self, first: int, last: int) -> Block:
        """Draw blocks first, …, last - 1 together: each from generators that depend on nothing else."""
        numbers, law = self._number(first, last), self.directions
        directions = [self._draw_directions(law, Stream.DIRECTIONS, numbers)]
        if not self.shared_directions:  # weights are those of θ alone
            even = law.even if isinstance(law, Tilted) else law
            directions.append(self._draw_directions(even, Stream.LABEL_DIRECTIONS, numbers))
        if type(self.label) is Moments:  # a law of a user's own may draw otherwise
            return Block(tuple(directions), _draw_terms(self.label, self.seed, numbers))
        return Block(tuple(directions), self._draw_own_terms(Stream.LABEL_TERMS, numbers, BLOCK))

    def draw_further(self, first: int, counted: NDArray[np.float64]) -> None:
        """Add what t and the moments count by in further draws of the label law to zeros, as a `Block` has it.

        As many for each of these projections, from block ``first`` on. The first column is left to what was drawn.
        """
        from sotdd.projections.kernels import count_draws

        n_projections, _, columns = counted.shape
        numbers, rows = self._number(first, first - (-n_projections // BLOCK)), (columns - 1) * n_projections
        if type(self.label) is Moments:
            generators = _generators(self.seed, Stream.MORE_LABEL_TERMS, numbers)
            normals, uniforms = draw_numbers(self.label, generators, (columns - 1) * BLOCK)
            known = self.label.orders.cumulative(self.label.n_moments)
            count_draws(normals[:rows], uniforms[:rows], known, counted)
        else:
            more = self._draw_own_terms(Stream.MORE_LABEL_TERMS, numbers, (columns - 1) * BLOCK).part(slice(rows))
            shape = n_projections, columns - 1, -1
            count_orders(more.weights.reshape(shape[:2]), more.coefficients.reshape(shape), counted[:, :, 1:])

    def _number(self, first: int, last: int) -> range:
        return range(self.first_block + first, self.first_block + last)

    def _draw_own_terms(self, stream: Stream, numbers: range, count: int) -> LabelTerms:
        generators, name = _generators(self.seed, stream, numbers), type(self.label).__name__
        return LabelTerms.join([LabelTerms.check(self.label.draw(rng, count), name, count) for rng in generators])

    def describe(self) -> Mapping[str, object]:
        """The laws and the seed."""
        for law in (self.directions, self.label):
            if not isinstance(law.describe(), Mapping):
                raise SotddError(f"{type(law).__name__}.describe() must return a mapping of JSON values.")
        return {
            "directions": dict(self.directions.describe()),
            "label": dict(self.label.describe()),
            "seed": self.seed,
            "shared_directions": self.shared_directions,
            **({"first_block": self.first_block} if self.first_block else {}),
        }

    @property
    def repeats(self) -> bool:
        """Whether the label law is one of this package, and cheap to compare."""
        return type(self.label) is Moments

    @property
    def turn_size(self) -> int | None:
        """How many projections share the work of a turn; None where directions are drawn one by one."""
        law = self.directions
        structured = isinstance(law, Hadamard) or (isinstance(law, Tilted) and law.structured)
        return turn_size(self.n_features) if structured and self.n_features >= FEWEST_FEATURES else None

    def _draw_directions(self, law: DirectionLaw, stream: Stream, numbers: range) -> DirectionMap:
        size, d = self.turn_size, self.n_features
        if size is not None:
            places = [divmod(number * BLOCK, size) for number in numbers]
            parts = [TurnedDirections(((self._turn(law, stream, turn), at, at + BLOCK),), d) for turn, at in places]
            return TurnedDirections.join(parts)
        if d < FEWEST_FEATURES and type(law) in (Sphere, Hadamard, Tilted):
            normals = _draw_normals(self.seed, stream, numbers, d).copy()
            drawn = law.lean(normals) if isinstance(law, Tilted) else Directions(unit_rows(normals.reshape(-1, d)))
            return Directions(drawn.theta.astype(np.float32), importance=drawn.importance)
        generators = _generators(self.seed, stream, numbers)
        name = type(law).__name__
        return join_maps([check_directions(law.draw(rng, BLOCK, d), name, BLOCK, d) for rng in generators])

    def _turn(self, law: DirectionLaw, stream: Stream, number: int) -> Turn:
        """A turn, which the blocks in it share; where threads draw one at the same time, they all take the first."""
        kept, name = self._turns, (stream, number)
        turn = kept.get(name)
        if turn is None:
            assert isinstance(law, (Hadamard, Tilted))
            turn = kept.setdefault(name, law.turn(generator(self.seed, stream, number), self.n_features))
            for old in list(kept)[:-_KEPT_TURNS]:
                kept.pop(old, None)
        return turn

    @kept_property
    def _turns(self) -> dict[tuple[Stream, int], Turn]:
        return {}

    def __getstate__(self) -> dict[str, object]:
        """What is drawn again rather than copied stays behind."""
        return {name: value for name, value in self.__dict__.items() if name != "_turns"}


def count_orders(weights: NDArray[np.float64], coefficients: NDArray[np.float64], counted: NDArray[np.float64]) -> None:
    """Write what polynomials with these weights (B, J) and coefficients (B, J, q) count orders by, (B, 10, J)."""
    width = min(coefficients.shape[2], counted.shape[1] - 1)
    scale = np.array([math.factorial(order) for order in range(width)], np.float64)
    counted[:, :width] = (coefficients[:, :, :width] * scale).transpose(0, 2, 1)
    counted[:, 0] = weights


# Most calls draw with the same seed: what the last ones drew of few features is kept.


@lru_cache(maxsize=4)
def _draw_normals(seed: int, stream: Stream, numbers: range, n_features: int) -> NDArray[np.float64]:
    """Normal numbers (K, 64, d) that the directions of some blocks are made of."""
    return np.stack([rng.standard_normal((BLOCK, n_features)) for rng in _generators(seed, stream, numbers)])


@lru_cache(maxsize=4)
def _draw_terms(law: Moments, seed: int, numbers: range) -> Polynomials:
    """The label terms of some blocks."""
    return make_terms(law, *draw_numbers(law, _generators(seed, Stream.LABEL_TERMS, numbers), BLOCK))


def _generators(seed: int, stream: Stream, numbers: range) -> list[np.random.Generator]:
    return [generator(seed, stream, number) for number in numbers]


@dataclass(frozen=True, eq=False)
class Arrays:
    """Hands out the rows of explicit arrays."""

    directions: tuple[NDArray[np.floating], ...]  # (L, d) each: θ, and φ where labels have their own
    psi: NDArray[np.float64]  # (L, k + 1)
    orders: NDArray[np.int64]  # (L, k)
    clamp: float | None
    cut: float | None = None

    def blocks(self, first: int, last: int) -> Block:
        """Take out some blocks; the last may be shorter."""
        part = slice(first * BLOCK, last * BLOCK)
        directions = tuple(Directions(rows[part], self.clamp) for rows in self.directions)
        return Block(directions, moment_terms(self.psi[part], self.orders[part], self.cut))

    def describe(self) -> Mapping[str, object]:
        """Shapes and cuts; the numbers themselves are hashed with the draws."""
        return {
            "directions": {"law": "given", "clamp": self.clamp},
            "label": {"law": "given moments", "n_moments": self.orders.shape[1], "cut": self.cut},
            "shared_directions": self.shared_directions,
        }

    @property
    def shared_directions(self) -> bool:
        """Whether labels are projected along the directions of features."""
        return len(self.directions) == 1


Source: TypeAlias = Laws | Arrays
