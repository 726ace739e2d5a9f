"""Seeds, and their random streams: each use of a seed has a number here, so that no two draw the same numbers."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from sotdd.basics.checks import describe
from sotdd.basics.errors import SotddError


class Stream(IntEnum):
    """What is drawn. The numbers are part of what a seed means: never change or reuse one."""

    DIRECTIONS = 0  # by block of projections
    LABEL_DIRECTIONS = 1  # of labels, if they have their own, by block
    LABEL_TERMS = 2  # by block
    MORE_LABEL_TERMS = 3  # for the means of controls, by block
    SPLITS = 5  # pooled points dealt to two sides, by split
    HALF_SAMPLES = 7  # half of the points of each dataset of an explanation, by sample
    FLOW_STEPS = 8  # seeds of the projections that a step of a flow uses, by step
    STREAM_GROUPS = 9  # groups that points of a stream are dealt to, by how many came before
    DEBIASING_HALVES = 10  # points of a dataset dealt to two sides, whose distance is a peer's sampling floor
    FEATURE_DIRECTIONS = 21  # that features are compared along
    FEATURE_TIES = 24  # the order of equal values, by feature
    CLASS_TIES = 26  # the order of points that are equal, by dataset
    CLASS_MATCHES = 27  # samples of classes that are matched, their halves, and how pairs of them are split
    SCALE_ROWS = 31  # points that scales of features are learnt from, by how many there are


def check_seed(seed: object) -> int:
    """Return a seed as an integer, from an integer or a generator, or refuse."""
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(2**63))
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or seed < 0:
        raise SotddError(
            f"is {describe(seed)}: expected an integer of at least 0 or a NumPy Generator.", setting="seed"
        )
    return int(seed)


def sequence(seed: int, stream: Stream, number: int) -> np.random.SeedSequence:
    """The seed sequence of the ``number``-th draw of a stream."""
    return np.random.SeedSequence(seed, spawn_key=(number, int(stream)))


def generator(seed: int, stream: Stream, number: int) -> np.random.Generator:
    """A generator for the ``number``-th draw of a stream, which depends on no other draw.

    Examples
    --------
    >>> draws = [generator(7, Stream.SPLITS, 0).random() for _ in range(2)]
    >>> draws[0] == draws[1] != generator(7, Stream.SPLITS, 1).random()
    True
    """
    return np.random.Generator(np.random.Philox(sequence(seed, stream, number)))
