"""Blocks of consecutive projections, each sampled from laws by a seed and its number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.resources import Stream, generator
from sotdd.projections.maps import DirectionMap, check_directions, join_maps
from sotdd.projections.terms import LabelTerms

# Projections are sampled in blocks of this many, each keyed by (seed, block): a projection is the
# same however many are sampled, in whatever portions, on however many threads.
BLOCK = 64

# Orders of moments that are told apart in further samples of the label law. Higher ones are left out of controls on
# both sides, which keeps their means what they are: on 25 sources of data they made no error smaller by 1 %, and with
# hundreds of classes their covariances took longer than all sorting.
ORDERS = 8


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
        """The same with further samples of the label law, to which its own are added, in place."""
        count_orders(self.terms.weights[:, None], self.terms.coefficients[:, None], further[:, :, :1])
        return replace(self, draws=further)


def count_orders(weights: NDArray[np.float64], coefficients: NDArray[np.float64], counted: NDArray[np.float64]) -> None:
    """Write the weights of orders (B, 10, J) in polynomials with weights (B, J) and coefficients (B, J, q)."""
    width = min(coefficients.shape[2], counted.shape[1] - 1)
    scale = np.array([math.factorial(order) for order in range(width)], np.float64)
    counted[:, :width] = (coefficients[:, :, :width] * scale).transpose(0, 2, 1)
    counted[:, 0] = weights


@dataclass(frozen=True, eq=False)
class Keys:
    """Which blocks are sampled: from generators that follow from the seed, the purpose and a number alone.

    Attributes
    ----------
    seed
        The seed of the projections.
    numbers
        The blocks.
    kept
        What laws keep for blocks that are sampled later.
    """

    seed: int
    numbers: range
    kept: dict[Any, Any] = field(default_factory=dict)

    @property
    def rows(self) -> slice:
        """Which projections these blocks have."""
        return slice(self.numbers.start * BLOCK, self.numbers.stop * BLOCK)

    def generators(self, stream: Stream) -> list[np.random.Generator]:
        """The generator of every block."""
        return [generator(self.seed, stream, number) for number in self.numbers]


# ------------------------------------------------------------------ laws, a block or many at a time
#
# A law of this package may sample many blocks at once. Somebody's subclass of it may not: what such a class overrides
# is ``draw``.


def sample_directions(law: Any, keys: Keys, stream: Stream, n_features: int) -> DirectionMap:  # noqa: ANN401
    """Sample directions from a law, of this package or a user's own."""
    many = vars(type(law)).get("draw_blocks")
    if many is not None:
        found: DirectionMap = many(law, keys, stream, n_features)
        return found
    name, rngs = type(law).__name__, keys.generators(stream)
    return join_maps([check_directions(law.draw(rng, BLOCK, n_features), name, BLOCK, n_features) for rng in rngs])


def sample_terms(law: Any, keys: Keys, stream: Stream = Stream.LABEL_TERMS, count: int = BLOCK) -> LabelTerms:  # noqa: ANN401
    """Sample label terms, as many from every block."""
    many = vars(type(law)).get("draw_blocks")
    if many is not None:
        found: LabelTerms = many(law, keys, stream, count)
        return found
    name, rngs = type(law).__name__, keys.generators(stream)
    return LabelTerms.join([LabelTerms.check(law.draw(rng, count), name, count) for rng in rngs])


def sample_further(law: Any, keys: Keys, counted: NDArray[np.float64]) -> None:  # noqa: ANN401
    """Add the weights of t and of the moments in further samples of the label law to zeros, as a `Block` has them.

    As many for each of these projections. The first column is left to their own terms.
    """
    many = vars(type(law)).get("count_blocks")
    if many is not None:
        many(law, keys, counted)
        return
    n_projections, _, columns = counted.shape
    terms = sample_terms(law, keys, Stream.MORE_LABEL_TERMS, (columns - 1) * BLOCK)
    terms, shape = terms.part(slice((columns - 1) * n_projections)), (n_projections, columns - 1, -1)
    count_orders(terms.weights.reshape(shape[:2]), terms.coefficients.reshape(shape), counted[:, :, 1:])
