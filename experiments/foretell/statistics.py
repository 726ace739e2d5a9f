"""What is computed from accuracies and scores, fixed before the first run.

Accuracy is a table (sources, targets), the mean over seeds; a method gives a score of the same shape, higher for
sources that it holds for better (a distance counts with a minus).

- **ρ**: Spearman's, among the sources of a target, averaged over targets. Targets differ in how hard they are, and no
  ranking of sources can see that; so pairs of different targets are never compared.
- **Interval**: 95 %, percentile, by a bootstrap over sources and targets at once, since both are samples. The same
  resamples serve all methods, so that differences between methods are paired.
- **p**: by shuffling the names of sources, the same for all targets; the share of shuffles with ρ at least as large.
- **Other bases**: ρ among the sources that share no base with the target.
- **Regret**: accuracy of the best source less that of the source with the highest score (the mean of those that tie),
  in points; **saved**: the part of the regret of a source at random that this avoids.
- **Partial ρ**: of ranks, given the ranks of the source's number of classes, number of points, and mean accuracy on
  the other targets: what a method knows beyond "this is a good source for anything".
- **Ceiling**: the ρ that the true order would have with the measured one: the square root of the reliability of
  accuracies, by halves of the seeds and Spearman-Brown.
- **Right labels first**: among sources of the same points, one with its labels and one with all of them shuffled: how
  often the first has the higher score.

The headline is "tuned whole, 10 examples a class"; the other three settings stand beside it. A setting of this
package beats the default where the difference in ρ is at least 0.05 and its interval has no 0, in two of three
families.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

Floats = NDArray[np.float64]

RESAMPLES = 400  # and as many shuffles


@dataclass(frozen=True, eq=False)
class Table:
    """Accuracies of one family in one setting, and what is known of its sources.

    Attributes
    ----------
    accuracy
        (seeds, sources, targets).
    related
        (sources, targets): whether the two share a base.
    known
        Columns of what the partial ρ holds fixed: the number of classes and of points (sources, 2).
    """

    accuracy: Floats
    related: NDArray[np.bool_]
    known: Floats

    @property
    def mean(self) -> Floats:
        """Over seeds: (sources, targets)."""
        return np.asarray(self.accuracy.mean(axis=0))

    def on_others(self) -> Floats:
        """A source's mean on the targets other than this one, each as it stands among the sources there."""
        standing = self.mean - self.mean.mean(axis=0)
        others = standing.sum(axis=1, keepdims=True) - standing
        return np.asarray(others / max(1, standing.shape[1] - 1))


def correlations(a: Floats, b: Floats, ranked: bool = True) -> Floats:
    """Spearman's ρ along the sources, axis −2, of arrays (…, sources, targets); zero where one is constant."""
    if ranked:
        a, b = rankdata(a, axis=-2), rankdata(b, axis=-2)
    a, b = a - a.mean(axis=-2, keepdims=True), b - b.mean(axis=-2, keepdims=True)
    lengths = np.sqrt(np.sum(a**2, axis=-2) * np.sum(b**2, axis=-2))
    return np.asarray(np.sum(a * b, axis=-2) / np.where(lengths > 1e-12, lengths, np.inf))


def unrelated(scores: Floats, table: Table) -> Floats:
    """ρ among the sources that share no base with the target, averaged over targets: (methods,)."""
    found = []
    for target in range(table.mean.shape[1]):
        rows = ~table.related[:, target]
        if rows.sum() < 3:
            continue
        accuracy = np.broadcast_to(table.mean[rows, target], scores[:, rows, target].shape)
        found.append(correlations(scores[:, rows, target, None], accuracy[..., None])[:, 0])
    return np.asarray(np.mean(found, axis=0)) if found else np.full(len(scores), np.nan)


def partial(scores: Floats, accuracy: Floats, known: Floats, others: Floats) -> Floats:
    """Partial ρ given ``known`` (sources, k) and the source's mean on other targets; (methods, targets)."""
    found = np.empty((len(scores), accuracy.shape[1]))
    fixed = rankdata(known, axis=0)
    for target in range(accuracy.shape[1]):
        given = np.column_stack([np.ones(len(fixed)), fixed, rankdata(others[:, target])])
        basis = np.linalg.qr(given)[0]

        def left(values: Floats, basis: Floats = basis) -> Floats:
            ranks = rankdata(values, axis=0)
            rest = ranks - basis @ (basis.T @ ranks)
            rest[:, np.abs(rest).max(axis=0) < 1e-9] = 0  # nothing is left but rounding
            return np.asarray(rest)

        mine = left(scores[:, :, target].T)
        theirs = np.broadcast_to(left(accuracy[:, [target]]), mine.shape)
        found[:, target] = correlations(mine.T[..., None], theirs.T[..., None], ranked=False)[:, 0]
    return found


@dataclass(frozen=True, eq=False)
class Judged:
    """What each method is worth: arrays (methods,), intervals (methods, 2), resamples (resamples, methods)."""

    rho: Floats
    interval: Floats
    resamples: Floats
    p: Floats
    unrelated: Floats
    regret: Floats
    blind: float
    partial: Floats
    partial_interval: Floats
    ceiling: float

    @property
    def saved(self) -> Floats:
        """The part of a random choice's regret that a method avoids."""
        return np.asarray(1 - self.regret / self.blind)


def judged(
    scores: Floats, table: Table, seed: int = 0, resamples: int = RESAMPLES, *, with_partial: bool = True
) -> Judged:
    """All statistics of scores (methods, sources, targets); intervals of partial ρ, which take longest, if asked."""
    accuracy, others = table.mean, table.on_others()
    sources, targets = accuracy.shape
    rng = np.random.default_rng(seed)
    drawn = np.empty((resamples, len(scores)))
    drawn_partial = np.full((resamples, len(scores)), np.nan)
    for row in range(resamples):
        a, b = rng.integers(sources, size=sources), rng.integers(targets, size=targets)
        part, truth = scores[:, a][:, :, b], accuracy[a][:, b]
        drawn[row] = correlations(part, np.broadcast_to(truth, part.shape)).mean(axis=1)
        if with_partial:
            drawn_partial[row] = partial(part, truth, table.known[a], others[a][:, b]).mean(axis=1)
    rho = correlations(scores, np.broadcast_to(accuracy, scores.shape)).mean(axis=1)
    return Judged(
        rho,
        np.percentile(drawn, [2.5, 97.5], axis=0).T,
        drawn,
        _shuffled(scores, accuracy, rho, resamples, rng),
        unrelated(scores, table),
        np.array([regret(score, accuracy) for score in scores]),
        float(np.mean(accuracy.max(axis=0) - accuracy.mean(axis=0))),
        partial(scores, accuracy, table.known, others).mean(axis=1),
        np.percentile(drawn_partial, [2.5, 97.5], axis=0).T,
        ceiling(table.accuracy),
    )


def _shuffled(scores: Floats, accuracy: Floats, rho: Floats, shuffles: int, rng: np.random.Generator) -> Floats:
    """The share of shuffles of the sources' names in which ρ is at least as large, the true order counted in."""
    ranks = rankdata(scores, axis=1)
    truth = np.broadcast_to(rankdata(accuracy, axis=0), ranks.shape)
    above = np.ones(len(scores))
    for _ in range(shuffles):
        moved = ranks[:, rng.permutation(ranks.shape[1])]
        above += correlations(moved, truth, ranked=False).mean(axis=1) >= rho - 1e-12
    return np.asarray(above / (shuffles + 1))


def regret(score: Floats, accuracy: Floats) -> float:
    """Accuracy lost by taking the source of the highest score, averaged over targets; ties share."""
    best = score == score.max(axis=0)
    chosen = np.sum(best * accuracy, axis=0) / best.sum(axis=0)
    return float(np.mean(accuracy.max(axis=0) - chosen))


def ceiling(accuracy: Floats) -> float:
    """The ρ of a perfect method with accuracies (seeds, sources, targets) as noisy as these, by halves of the seeds."""
    seeds = len(accuracy)
    if seeds < 2:
        return 1.0
    found = []
    for first in range(1, 2**seeds - 1):
        half = [seed for seed in range(seeds) if first >> seed & 1]
        if len(half) != seeds // 2:
            continue
        rest = [seed for seed in range(seeds) if seed not in half]
        found.append(float(correlations(accuracy[half].mean(axis=0), accuracy[rest].mean(axis=0)).mean()))
    # Halves of unequal size are treated as equal ones, which errs by little and to the low side.
    r = max(0.0, float(np.mean(found)))
    return float(np.sqrt(2 * r / (1 + r)))


def difference(judgement: Judged, a: int, b: int) -> tuple[float, float, float]:
    """ρ of method a less that of method b, and its paired interval."""
    low, high = np.percentile(judgement.resamples[:, a] - judgement.resamples[:, b], [2.5, 97.5])
    return float(judgement.rho[a] - judgement.rho[b]), float(low), float(high)


def right_labels_first(scores: Floats, pairs: Sequence[tuple[int, int]]) -> Floats:
    """How often the first of two sources has the higher score, over pairs and targets; a tie is half."""
    first, second = (scores[:, [pair[side] for pair in pairs]] for side in (0, 1))
    return np.asarray(np.mean((first > second) + 0.5 * (first == second), axis=(1, 2)))


def fitted(features: Floats, accuracy: Floats) -> Floats:
    """Weights of features (features, sources, targets) that best give accuracy, all as standings within a target."""
    columns = np.stack([standing(feature).ravel() for feature in features], axis=1)
    return np.asarray(np.linalg.lstsq(columns, standing(accuracy).ravel(), rcond=None)[0])


def standing(values: Floats) -> Floats:
    """Ranks among the sources of each target, brought to mean 0 and variance 1; zero where all are alike."""
    ranks = rankdata(values, axis=0)
    ranks -= ranks.mean(axis=0)
    spread = ranks.std(axis=0)
    return np.asarray(ranks / np.where(spread > 0, spread, 1))


def combined(features: Floats, weights: Floats) -> Floats:
    """A score of several features, each as its standing within a target."""
    return np.asarray(sum(weight * standing(feature) for weight, feature in zip(weights, features, strict=True)))


def as_rows(names: Sequence[str], judgement: Judged, **also: object) -> list[Mapping[str, object]]:
    """One row per method, for a CSV file."""
    return [
        {
            **also,
            "method": name,
            "rho": judgement.rho[place],
            "rho_low": judgement.interval[place, 0],
            "rho_high": judgement.interval[place, 1],
            "p": judgement.p[place],
            "other_bases": judgement.unrelated[place],
            "regret": 100 * judgement.regret[place],
            "regret_blind": 100 * judgement.blind,
            "saved": judgement.saved[place],
            "partial": judgement.partial[place],
            "partial_low": judgement.partial_interval[place, 0],
            "partial_high": judgement.partial_interval[place, 1],
            "ceiling": judgement.ceiling,
        }
        for place, name in enumerate(names)
    ]
