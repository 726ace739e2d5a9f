"""What a way of choosing saves, how sure that is, and how well it orders the sources (see DESIGN.md).

Arrays are (seeds, sources, targets), sources and targets being the same bases in the same order. ``allowed`` (sources,
targets) says which pairs count. A way of choosing is a function of ``allowed`` that gives the share of seeds in which
each source is taken for each target: (sources, targets), columns adding up to 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import comb
from scipy.stats import rankdata
from scipy.stats import t as student

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Way: TypeAlias = Callable[[Bools], Floats]


def pick(score: Floats, allowed: Bools) -> Floats:
    """Take the source of the highest score in every seed; those that tie share."""
    shown = np.where(allowed, score, -np.inf)
    best = (shown == shown.max(axis=-2, keepdims=True)) & allowed
    return np.asarray((best / np.maximum(best.sum(axis=-2, keepdims=True), 1)).mean(axis=0))


def nearest(score: Floats, count: int, allowed: Bools) -> Bools:
    """The sources with the highest scores, this many for each target."""
    order = np.argsort(np.where(allowed, -score, np.inf), axis=-2, kind="stable")
    return np.asarray((np.argsort(order, axis=-2) < count) & allowed)


def pick_of_random(score: Floats, count: int, allowed: Bools) -> Floats:
    """Take the highest score among this many sources at random: the chance that each source is taken."""
    place = np.argsort(np.argsort(np.where(allowed, -score, np.inf), axis=-2), axis=-2)  # 0 is the highest
    there = np.maximum(allowed.sum(axis=-2), 1)
    few = np.minimum(count, there)
    chance = comb(np.maximum(there - 1 - place, 0), few - 1) / comb(there, few)
    return np.asarray(np.where(allowed, chance, 0).mean(axis=0))


def with_separation(distance: Floats, separation: Floats, weight: float, allowed: Bools) -> Floats:
    """z(−log d) + weight · separation, z among the sources of a target."""
    near = np.where(allowed, -np.log(np.maximum(distance, 1e-12)), np.nan)
    filled = np.where(allowed.any(axis=0), near, 0)
    z = (filled - np.nanmean(filled, axis=-2, keepdims=True)) / np.nanstd(filled, axis=-2, keepdims=True).clip(1e-12)
    return np.asarray(z + weight * separation[:, None])


def other_seeds(accuracy: Floats) -> Floats:
    """For every seed the mean accuracy in the others: what a check on other data would show."""
    return np.asarray((accuracy.sum(axis=0) - accuracy) / max(1, len(accuracy) - 1))


def save(taken: Floats, accuracy: Floats, allowed: Bools) -> float:
    """The part of a random source's regret that is avoided, over all targets; accuracy is (sources, targets)."""
    targets = allowed.any(axis=0)
    shown = np.where(allowed, accuracy, np.nan)[:, targets]
    best, mean = np.nanmax(shown, axis=0), np.nanmean(shown, axis=0)
    chosen = np.sum(np.where(allowed, taken * accuracy, 0), axis=0)[targets]
    return float(1 - np.sum(best - chosen) / np.sum(best - mean))


def correlate(score: Floats, accuracy: Floats, allowed: Bools) -> float:
    """Spearman's ρ among the sources of a target, averaged over seeds and targets."""
    found = []
    for target in np.flatnonzero(allowed.any(axis=0)):
        rows = allowed[:, target]
        truth = rankdata(accuracy[rows, target])
        truth = truth - truth.mean()
        for one in score[:, rows, target]:
            ranks = rankdata(one) - (len(one) + 1) / 2
            length = np.sqrt(np.sum(ranks**2) * np.sum(truth**2))
            found.append(float(ranks @ truth / length) if length > 0 else 0.0)
    return float(np.mean(found))


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float


def jackknife(statistic: Callable[[Bools], float], allowed: Bools) -> Estimate:
    """Leave one base out at a time, as source and as target at once."""
    bases = len(allowed)
    without = []
    for base in range(bases):
        part = allowed.copy()
        part[base], part[:, base] = False, False
        without.append(statistic(part))
    value = statistic(allowed)
    spread = np.sqrt((bases - 1) / bases * np.sum((np.array(without) - np.mean(without)) ** 2))
    reach = float(student.ppf(0.975, bases - 1) * spread)
    return Estimate(value, value - reach, value + reach)


def permute(statistic: Callable[[NDArray[np.int64]], float], bases: int, count: int) -> float:
    """p: the share of permutations of the bases' names with a statistic as large, the true order counted in."""
    rng = np.random.default_rng(0)
    true = statistic(np.arange(bases))
    above = sum(statistic(rng.permutation(bases)) >= true - 1e-12 for _ in range(count))
    return (1 + above) / (1 + count)


def holm(p: Mapping[object, float]) -> dict[object, float]:
    """Every p as it counts among all of these."""
    found: dict[object, float] = {}
    largest = 0.0
    for place, (name, value) in enumerate(sorted(p.items(), key=lambda one: one[1])):
        largest = max(largest, min(1.0, value * (len(p) - place)))
        found[name] = largest
    return found
