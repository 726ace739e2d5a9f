"""A series of batches: small drifts that add up are found, and false alarms come at a stated rate."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, ndtri

from sotdd.basics.errors import Result, SotddError
from sotdd.basics.text import say_count
from sotdd.inputs.data import Dataset
from sotdd.measure.changes import TwoSampleTest

if TYPE_CHECKING:
    from sotdd.drift.reference import DriftReference

# What is taken off every score: scores of no drift then drift downwards, those of one standard deviation upwards.
ALLOWANCE = 0.5

# Scores are normal if nothing has drifted, as long as the reference is this many times a batch. A smaller one would be
# as far from its source as the batches are, in every one of them.
_TIMES_A_BATCH = 5

# The largest of the permutations, this share of them, say how the tail of chance falls off.
_TAIL = 0.1

# How far apart references of twenty times a batch are, in the mean score of their batches.
USUAL_SHIFT = 0.11

# States of the chain by which average run lengths are found.
_STATES = 160


@dataclass(frozen=True, eq=False)
class DriftMonitor(Result):
    """A series of batches, and whether it drifts: a cumulative sum of the evidence of each batch.

    Every batch is tested against the reference and its p-value becomes a normal score. The sum of scores, less
    an allowance and never below zero, is compared with a limit that it exceeds once in ``run_length`` batches
    on average where nothing has drifted. A large drift exceeds it at once, a small one after a few batches.

    Attributes
    ----------
    reference
        What batches are tested against.
    run_length
        Batches from one false alarm to the next, on average over references; `expected` says how much one may differ.
    limit
        What the sum is compared with.
    total
        The sum so far.
    n_batches
        How many batches there were.
    last
        What the last one gave; None before the first.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> monitor = sotdd.DriftReference.fit(rng.normal(size=(1000, 4))).monitor(run_length=100)
    >>> monitor
    DriftMonitor(no batches yet, 100 batches to a false alarm)
    >>> monitor = monitor.after(rng.normal(size=(50, 4)))
    >>> monitor.alarm
    False
    >>> monitor.after(rng.normal(2, 1, size=(50, 4))).alarm
    True
    """

    reference: DriftReference
    run_length: int
    limit: float
    total: float = 0.0
    n_batches: int = 0
    last: TwoSampleTest | None = None

    @property
    def alarm(self) -> bool:
        """Whether the batches so far have drifted."""
        return self.total > self.limit

    @property
    def expected(self) -> tuple[float, float]:
        """The range of batches per false alarm for two of three references of this size; NaN before the first batch.

        A reference is itself a sample of n points, and its sampling error shifts the scores of all batches of m points
        alike: by about √(m / n) / 2 of their standard deviation, as measured.
        """
        if self.last is None:
            return math.nan, math.nan
        n, m = self.last.n_points
        shift = math.sqrt(m / n) / 2
        return find_run_length(self.limit, shift), find_run_length(self.limit, -shift)

    def after(self, batch: Dataset, *, n_permutations: int = 499) -> DriftMonitor:
        """The monitor after one more batch; after an alarm it starts again from zero."""
        # The same permutations in every batch would be mostly of the same points, and wrong in the same direction.
        reference = replace(self.reference, seed=self.reference.seed + self.n_batches)
        result = reference.test(batch, n_permutations=n_permutations)
        kept, size = result.n_points
        if kept < _TIMES_A_BATCH * size:
            raise SotddError(
                f"the batch has {say_count(size, 'point')} and the reference {kept:,}: a series needs one of at "
                f"least {_TIMES_A_BATCH} times a batch, {_TIMES_A_BATCH * size:,} points; test single batches instead."
            )
        before = 0.0 if self.alarm else self.total
        total = max(0.0, before + score(result) - ALLOWANCE)
        return replace(self, total=total, n_batches=self.n_batches + 1, last=result)

    def __repr__(self) -> str:
        """Where it stands."""
        every = f"{say_count(self.run_length, 'batch', 'batches')} to a false alarm"
        if self.last is None:
            return f"DriftMonitor(no batches yet, {every})"
        state = "drift" if self.alarm else "no drift"
        batches = say_count(self.n_batches, "batch", "batches")
        return f"DriftMonitor({state} after {batches}: {self.total:.2f} of {self.limit:.2f}, {every})"


def score(result: TwoSampleTest) -> float:
    """A test as a normal score, which is standard normal where nothing has drifted.

    Among most permutations it goes by rank, in the middle of the step of a p-value. The largest of them fall off like
    an exponential law, since the statistic is the largest of several sums of squares; so beyond those n the p-value is
    (1 + excess / sum of their excesses)^-n of theirs, which is uniform for exponential tails of any scale.
    """
    null, n = np.sort(result.null)[::-1], int(_TAIL * len(result.null))
    chance = (np.count_nonzero(null >= result.statistic) + 0.5) / (len(null) + 1)
    excesses, excess = null[:n] - null[n], result.statistic - null[n]
    if excess > 0 and excesses.sum() > 0:
        chance = (n + 1) / (len(null) + 1) * (1 + excess / excesses.sum()) ** -n
    return -float(ndtri(max(chance, 1e-300)))


def find_run_length(limit: float, mean: float = 0.0) -> float:
    """Batches to the first alarm, on average, if scores are normal with this mean and a standard deviation of 1.

    The sum as a Markov chain on a grid from zero to the limit (Brook and Evans, 1972): the mean times to
    absorption solve (I − P) t = 1.
    """
    width = limit / (_STATES - 0.5)
    states = np.arange(_STATES) * width
    edges = states[None, :] - states[:, None] + ALLOWANCE - mean
    chances = ndtr(edges + width / 2) - ndtr(edges - width / 2)
    chances[:, 0] = ndtr(edges[:, 0] + width / 2)  # all that falls below zero stays at zero
    return float(np.linalg.solve(np.eye(_STATES) - chances, np.ones(_STATES))[0])


@cache
def find_limit(run_length: int, shift: float = 0.0) -> float:
    """The limit of the sum that gives this average run length, by bisection.

    References shift the scores of all their batches, with a standard deviation of ``shift``; the average is over all
    batches of all references.

    Examples
    --------
    >>> round(find_limit(335), 1)  # as tables of such sums have it
    4.0
    """
    shifts, weights = np.polynomial.hermite_e.hermegauss(3 if shift else 1)
    low, high = 0.01, 30.0
    while high - low > 1e-3:
        middle = (low + high) / 2
        alarms = [1 / find_run_length(middle, one) for one in (shift * shifts).tolist()]
        low, high = (middle, high) if np.average(alarms, weights=weights) > 1 / run_length else (low, middle)
    return high
