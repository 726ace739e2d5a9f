"""A series of batches: small drifts that add up are found, and false alarms come at a stated rate."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from sotdd.basics.errors import SotddError
from sotdd.basics.text import say_count
from sotdd.inputs.data import Dataset
from sotdd.measure.two_sample import TwoSampleTest

if TYPE_CHECKING:
    from sotdd.drift.reference import DriftReference

# What is taken off every score: scores of no drift then drift downwards, those of one standard deviation upwards.
_ALLOWANCE = 0.5

# Scores are normal if nothing has drifted, as long as the reference is this many times a batch. A smaller one would be
# as far from its source as the batches are, in every one of them.
_TIMES_A_BATCH = 5

# States of the chain by which average run lengths are found.
_STATES = 160


@dataclass(frozen=True, eq=False)
class DriftMonitor:
    """Batches so far, and whether they drift: a cumulative sum of what each of them says.

    Every batch is tested against the reference and its p-value becomes a normal score. The sum of scores, less
    an allowance and never below zero, is compared with a limit that it exceeds once in ``run_length`` batches
    on average where nothing has drifted. A large drift exceeds it at once, a small one after a few batches.

    Attributes
    ----------
    reference
        What batches are tested against.
    run_length
        Batches from one false alarm to the next, on average.
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

    def after(self, batch: Dataset, *, n_permutations: int = 499) -> DriftMonitor:
        """The monitor after one more batch; after an alarm it begins anew."""
        result = self.reference.test(batch, n_permutations=n_permutations)
        kept, size = result.n_points
        if kept < _TIMES_A_BATCH * size:
            raise SotddError(
                f"the batch has {say_count(size, 'point')} and the reference {kept:,}: a series needs one of at "
                f"least {_TIMES_A_BATCH} times a batch, {_TIMES_A_BATCH * size:,} points; test single batches instead."
            )
        before = 0.0 if self.alarm else self.total
        total = max(0.0, before + score(result) - _ALLOWANCE)
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
    """A test as a normal score: what a standard normal number exceeds with its p-value.

    Beyond the farthest permutation it is how many standard deviations of chance the statistic is away.
    """
    from scipy.special import ndtri

    by_rank = float(ndtri(1 - result.p_value)) if result.p_value < 1 else float(ndtri(0.5 / len(result.null)))
    if result.statistic > result.null.max() and math.isfinite(result.effect_size):
        return max(by_rank, result.effect_size)
    return by_rank


def find_run_length(limit: float) -> float:
    """Batches to the first alarm, on average, if scores are standard normal.

    The sum as a Markov chain on a grid from zero to the limit (Brook and Evans, 1972): the mean times to
    absorption solve (I − P) t = 1.
    """
    from scipy.special import ndtr

    width = limit / (_STATES - 0.5)
    states = np.arange(_STATES) * width
    edges = states[None, :] - states[:, None] + _ALLOWANCE
    chances = ndtr(edges + width / 2) - ndtr(edges - width / 2)
    chances[:, 0] = ndtr(edges[:, 0] + width / 2)  # all that falls below zero stays at zero
    return float(np.linalg.solve(np.eye(_STATES) - chances, np.ones(_STATES))[0])


@cache
def find_limit(run_length: int) -> float:
    """The limit of the sum that gives this average run length, by bisection.

    Examples
    --------
    >>> round(find_limit(335), 1)  # as tables of such sums have it
    4.0
    """
    low, high = 0.01, 30.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (middle, high) if find_run_length(middle) < run_length else (low, middle)
    return high
