"""Where projections come from: drawn from laws by a seed, or given as arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.memory import kept_property
from sotdd.basics.randomness import Stream, generator
from sotdd.basics.threads import serial_blas
from sotdd.projections.directions import (
    DirectionLaw,
    Directions,
    Drawn,
    Hadamard,
    PointMap,
    Tilted,
    check_directions,
    unit_rows,
)
from sotdd.projections.labels import LabelLaw
from sotdd.projections.moments import LabelTerms, Moments, draw_numbers, make_terms, moment_terms
from sotdd.projections.turns import FEWEST_FEATURES, Turn, TurnedDirections, turn_size

# Draws come in blocks of this many projections, each keyed by (seed, block): a projection is the
# same however many are drawn, in whatever portions, on however many threads.
BLOCK = 64

# How many turns of structured directions are kept, for the blocks in them that are drawn next.
_KEPT_TURNS = 8


@dataclass(frozen=True, eq=False)
class FurtherDraws:
    """J further draws of the label law for each of some projections, whose terms are made where they are needed.

    Attributes
    ----------
    own
        The terms of the projections themselves.
    law
        The law, if it is `Moments`.
    first, second
        (B, J, ...) normal and uniform numbers for the law to make terms of; without it, weights and coefficients.
    made
        What `make` gave, by the degree that was asked for.
    """

    own: LabelTerms
    law: Moments | None
    first: NDArray[np.float64]
    second: NDArray[np.float64]
    made: dict[int, tuple[NDArray[np.float64], NDArray[np.int64]]] = field(default_factory=dict, kw_only=True)

    @property
    def nbytes(self) -> int:
        """What the numbers take."""
        return self.first.nbytes + self.second.nbytes

    def part(self, rows: slice) -> FurtherDraws:
        """Those of some consecutive projections."""
        return FurtherDraws(self.own.part(rows), self.law, self.first[rows], self.second[rows])

    @staticmethod
    def join(parts: Sequence[FurtherDraws]) -> FurtherDraws:
        """Those of consecutive blocks together."""
        widest = max(part.second.shape[2] for part in parts)
        shapes = [(part.second, widest - part.second.shape[2]) for part in parts]
        second = [np.pad(found, ((0, 0), (0, 0), (0, less))) if less else found for found, less in shapes]
        own, first = LabelTerms.join([part.own for part in parts]), np.concatenate([part.first for part in parts])
        return FurtherDraws(own, parts[0].law, first, np.concatenate(second))

    def make(self, degree: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """What t and moments count by under the terms and the further draws, (B, 1 + J, 1 + k), and their orders.

        The orders (B, 1 + J, k) of the moments are at most ``degree`` + 1, which stands for all beyond.
        """
        own, (count, draws) = _list_moments(self.own.weights, self.own.coefficients), self.first.shape[:2]
        if self.law is None:
            flat = self.second.reshape(count * draws, -1)
            more = _list_moments(self.first.reshape(-1), flat)
        else:
            first, second = (part.reshape(count * draws, -1) for part in (self.first, self.second))
            more = unit_rows(first.copy()), self.law.orders.orders(second)
        width = max(own[1].shape[1], more[1].shape[1])
        counted, orders = np.zeros((count, 1 + draws, 1 + width)), np.zeros((count, 1 + draws, width), np.int64)
        for which, (values, chosen) in ((slice(1), own), (slice(1, None), more)):
            counted[:, which, : values.shape[1]] = values.reshape(count, -1, values.shape[1])
            orders[:, which, : chosen.shape[1]] = chosen.reshape(count, -1, chosen.shape[1])
        return counted, np.minimum(orders, degree + 1)


def _list_moments(
    weights: NDArray[np.float64], coefficients: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """What t and moments count by (B, 1 + k) in polynomials, lowest order first, and the orders of these (B, k)."""
    used = coefficients[:, 1:] != 0
    orders = np.argsort(~used, axis=1, kind="stable")[:, : int(used.sum(axis=1).max())] + 1
    scale = np.array([math.factorial(order) for order in range(coefficients.shape[1])], np.float64)
    return np.column_stack([weights, np.take_along_axis(coefficients * scale, orders, axis=1)]), orders


@dataclass(frozen=True, eq=False)
class Block:
    """Some consecutive projections, drawn.

    Attributes
    ----------
    features
        How features are projected.
    terms
        How labels enter.
    draws
        J further draws of the label law beside the terms; None where none were asked for.
    """

    features: Drawn
    terms: LabelTerms
    draws: FurtherDraws | None = None

    def __len__(self) -> int:
        """How many projections these are."""
        return len(self.terms.weights)

    @property
    def importance(self) -> NDArray[np.float64]:
        """(B,) what each projection counts by in a mean; one, unless directions are drawn otherwise."""
        drawn = self.features
        importance = drawn.importance if isinstance(drawn, (Directions, TurnedDirections)) else None
        return np.ones(len(self)) if importance is None else importance

    def freeze(self) -> None:
        """Make directions read-only, in place: they are kept, and handed out again and again."""
        if isinstance(self.features, Directions):
            self.features.theta.flags.writeable = False

    def part(self, rows: slice) -> Block:
        """Some consecutive projections."""
        if rows.indices(len(self))[:2] == (0, len(self)):
            return self
        draws = None if self.draws is None else self.draws.part(rows)
        return Block(_part(self.features, rows), self.terms.part(rows), draws)

    @staticmethod
    def join(blocks: Sequence[Block]) -> Block:
        """Put consecutive blocks together."""
        if len(blocks) == 1:
            return blocks[0]
        draws = [block.draws for block in blocks if block.draws is not None]
        return Block(
            _join([block.features for block in blocks]),
            LabelTerms.join([block.terms for block in blocks]),
            FurtherDraws.join(draws) if draws else None,
        )


@dataclass(frozen=True, eq=False)
class Laws:
    """Draws from laws, by a seed."""

    n_features: int
    directions: DirectionLaw
    label: LabelLaw
    seed: int
    first_block: int = 0  # where the projections begin

    @serial_blas.hold()
    def blocks(self, first: int, last: int) -> Block:
        """Draw blocks first, …, last - 1 together: each from generators that depend on nothing else."""
        terms = self._terms(self._generators(Stream.LABEL_TERMS, first, last), BLOCK)
        numbers = range(self.first_block + first, self.first_block + last)
        return Block(_join([self._draw_directions(number) for number in numbers]), terms)

    def draw_more(self, block: Block, first: int, count: int) -> Block:
        """The projections from block ``first`` on with ``count`` further draws of the label law for each."""
        last = first - (-len(block) // BLOCK)
        if type(self.label) is Moments:
            law: Moments | None = self.label
            numbers = draw_numbers(self.label, self._generators(Stream.MORE_LABEL_TERMS, first, last), count * BLOCK)
        else:
            law, more = None, self.more_terms(first, last, count)
            numbers = more.weights[:, None], more.coefficients
        both = (part[: count * len(block)].reshape(len(block), count, -1) for part in numbers)
        return replace(block, draws=FurtherDraws(block.terms, law, *both))

    def more_terms(self, first: int, last: int, count: int) -> LabelTerms:
        """``count`` further draws of the label law for each projection of these blocks, independent of all others."""
        return self._terms(self._generators(Stream.MORE_LABEL_TERMS, first, last), count * BLOCK)

    def _generators(self, stream: Stream, first: int, last: int) -> list[np.random.Generator]:
        numbers = range(self.first_block + first, self.first_block + last)
        return [generator(self.seed, stream, number) for number in numbers]

    def _terms(self, generators: Sequence[np.random.Generator], count: int) -> LabelTerms:
        if type(self.label) is Moments:  # a law of a user's own may draw otherwise
            return make_terms(self.label, *draw_numbers(self.label, generators, count))
        name = type(self.label).__name__
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
            **({"first_block": self.first_block} if self.first_block else {}),
        }

    @property
    def turn_size(self) -> int | None:
        """How many projections share the work of a turn; None where directions are drawn one by one."""
        law = self.directions
        structured = isinstance(law, Hadamard) or (isinstance(law, Tilted) and law.structured)
        return turn_size(self.n_features) if structured and self.n_features >= FEWEST_FEATURES else None

    def _draw_directions(self, block: int) -> Drawn:
        size = self.turn_size
        if size is not None:
            number, place = divmod(block * BLOCK, size)
            return TurnedDirections(((self._turn(number), place, place + BLOCK),), self.n_features)
        drawn = self.directions.draw(generator(self.seed, Stream.DIRECTIONS, block), BLOCK, self.n_features)
        return check_directions(drawn, self.directions, BLOCK, self.n_features)

    def _turn(self, number: int) -> Turn:
        """A turn, which the blocks in it share; where threads draw one at the same time, they all take the first."""
        kept, law = self._turns, self.directions
        turn = kept.get(number)
        if turn is None:
            assert isinstance(law, (Hadamard, Tilted))
            turn = kept.setdefault(number, law.turn(generator(self.seed, Stream.DIRECTIONS, number), self.n_features))
            for old in list(kept)[:-_KEPT_TURNS]:
                kept.pop(old, None)
        return turn

    @kept_property
    def _turns(self) -> dict[int, Turn]:
        return {}

    def __getstate__(self) -> dict[str, object]:
        """What is drawn again rather than copied stays behind."""
        return {name: value for name, value in self.__dict__.items() if name != "_turns"}


@dataclass(frozen=True, eq=False)
class Arrays:
    """Hands out the rows of explicit arrays."""

    theta: NDArray[np.floating]  # (L, d)
    psi: NDArray[np.float64]  # (L, k + 1)
    orders: NDArray[np.int64]  # (L, k)
    clamp: float | None
    cut: float | None = None

    def blocks(self, first: int, last: int) -> Block:
        """Take out some blocks; the last may be shorter."""
        part = slice(first * BLOCK, last * BLOCK)
        terms = moment_terms(self.psi[part], self.orders[part], self.cut)
        return Block(Directions(self.theta[part], self.clamp), terms)

    def describe(self) -> Mapping[str, object]:
        """Shapes and cuts; the numbers themselves are hashed with the draws."""
        return {
            "directions": {"law": "given", "clamp": self.clamp},
            "label": {"law": "given moments", "n_moments": self.orders.shape[1], "cut": self.cut},
        }


Source: TypeAlias = Laws | Arrays


def _part(drawn: Drawn, rows: slice) -> Drawn:
    if isinstance(drawn, (Directions, TurnedDirections)):
        return drawn.part(rows)
    whole: PointMap = drawn
    return lambda points: whole(points)[rows]


def _join(parts: list[Drawn]) -> Drawn:
    if len(parts) == 1:
        return parts[0]
    turned = [part for part in parts if isinstance(part, TurnedDirections)]
    if len(turned) == len(parts):
        return TurnedDirections.join(turned)
    linear = [part for part in parts if isinstance(part, Directions)]
    maps = [part for part in parts if not isinstance(part, Directions)]
    if not linear:
        return lambda points: np.concatenate([part(points) for part in maps])
    if maps or any(part.clamp != linear[0].clamp for part in linear):
        raise SotddError("a law of directions must draw the same kind, with the same clamp, every time.")
    weights = [part.importance for part in linear if part.importance is not None]
    if weights and len(weights) < len(linear):
        raise SotddError("a law of directions must give importance with every draw, or with none.")
    importance = np.concatenate(weights) if weights else None
    return Directions(np.concatenate([part.theta for part in linear]), linear[0].clamp, importance)
