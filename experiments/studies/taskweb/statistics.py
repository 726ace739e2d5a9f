"""What is computed from transfers and scores, written before the first run.

Every target has its own set of sources: a task is never a source for itself. Scores of methods are (methods, sources,
targets), higher for what a method holds for better.

- **Headline**: the mean score over the nine model settings, for each seed; the settings stand beside it one by one.
- **ρ**: Spearman's, among the 21 sources of a target, averaged over targets.
- **Interval**: 95 %, percentile, by a bootstrap over sources and targets at once, the same resamples for all methods.
- **p**: by shuffling the names of sources, the same for all targets. A shuffle gives some source the name of the
  target, and gives the target's place to some source; both are left out, so shuffles have one source less and p errs
  to the high side. **p of the best**: the share of shuffles in which any of the methods (rules apart) has a ρ as
  large as the largest: it allows for how many methods were tried.
- **Other kinds**: ρ among the sources of another kind than the target's (inference, paraphrase, ...).
- **Regret**: score of the best source less that of the one chosen; **saved**: the part of a random choice's regret that
  this avoids. **Ceiling**: the ρ of a perfect method with scores as noisy as these. **Partial ρ** holds fixed the
  source's number of classes, its number of texts at hand (250 to 600; how many it was trained on is not known) and its
  mean on the other targets.
- A method is **better** than s-OTDD on whole texts where its ρ is larger by 0.05 and the paired interval has no 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.studies.taskweb.judgement import Judged, correlations
from experiments.studies.taskweb.judgement import partial as _partial

Floats = NDArray[np.float64]

RESAMPLES = 400  # and as many shuffles


@dataclass(frozen=True, eq=False)
class Transfers:
    """Scores of transfers (seeds, sources, targets) with NaN where there is none; what is known of the sources.

    Attributes
    ----------
    related
        (sources, targets): whether both are of one kind.
    known
        (sources, k): what the partial ρ holds fixed.
    """

    score: Floats
    related: NDArray[np.bool_]
    known: Floats

    @property
    def mean(self) -> Floats:
        """Over the seeds that have a score: (sources, targets)."""
        return over_seeds(self.score)

    def on_others(self) -> Floats:
        """A source's mean on the targets other than this one, each as it stands among the sources there."""
        standing = self.mean - np.nanmean(self.mean, axis=0)
        there = np.isfinite(standing)
        filled = np.where(there, standing, 0)
        others = filled.sum(axis=1, keepdims=True) - filled
        return np.asarray(others / np.maximum(1, there.sum(axis=1, keepdims=True) - there))


def over_seeds(score: Floats) -> Floats:
    """The mean over axis 0 of what is there, NaN where nothing is."""
    there = np.isfinite(score)
    total = np.where(there, score, 0).sum(axis=0)
    return np.where(there.any(axis=0), total / np.maximum(there.sum(axis=0), 1), np.nan)


def within(scores: Floats, truth: Floats) -> Floats:
    """ρ of each method and target: (methods, targets), over the sources where both are known; NaN below three."""
    found = np.full((len(scores), truth.shape[1]), np.nan)
    for target in range(truth.shape[1]):
        rows = np.isfinite(truth[:, target]) & np.isfinite(scores[0, :, target])
        if rows.sum() > 2:
            mine = scores[:, rows, target, None]
            theirs = np.broadcast_to(truth[rows, target, None], mine.shape)
            found[:, target] = correlations(mine, theirs)[:, 0]
    return found


def judged(scores: Floats, table: Transfers, seed: int = 0, resamples: int = RESAMPLES, *, partial: bool) -> Judged:
    """All statistics of scores (methods, sources, targets); intervals of partial ρ, which take longest, if asked."""
    scores = np.where(np.isfinite(table.mean), scores, np.nan)
    truth, others = table.mean, table.on_others()
    sources, targets = truth.shape
    rng = np.random.default_rng(seed)
    drawn, drawn_partial = (np.full((resamples, len(scores)), np.nan) for _ in range(2))
    for row in range(resamples):
        a, b = rng.integers(sources, size=sources), rng.integers(targets, size=targets)
        drawn[row] = within(scores[:, a][:, :, b], truth[a][:, b]).mean(axis=1)
        if partial:
            parts = partial_rho(scores[:, a][:, :, b], truth[a][:, b], table.known[a], others[a][:, b])
            drawn_partial[row] = parts.mean(axis=1)
    rho = within(scores, truth).mean(axis=1)
    shuffled = shuffles(scores, truth, resamples, rng)
    return Judged(
        rho,
        np.percentile(drawn, [2.5, 97.5], axis=0).T,
        drawn,
        (1 + np.sum(shuffled >= rho - 1e-12, axis=0)) / (1 + resamples),
        np.nanmean(within(scores, np.where(table.related, np.nan, truth)), axis=1),
        np.array([regret(score, truth) for score in scores]),
        float(np.mean(np.nanmax(truth, axis=0) - np.nanmean(truth, axis=0))),
        partial_rho(scores, truth, table.known, others).mean(axis=1),
        np.percentile(drawn_partial, [2.5, 97.5], axis=0).T,
        ceiling(table.score),
    )


def partial_rho(scores: Floats, truth: Floats, known: Floats, others: Floats) -> Floats:
    """Partial ρ given what is known and the source's mean on other targets: (methods, targets)."""
    found = np.empty((len(scores), truth.shape[1]))
    for target in range(truth.shape[1]):
        rows = np.isfinite(truth[:, target])
        one = slice(target, target + 1)
        found[:, target] = _partial(scores[:, rows, one], truth[rows, one], known[rows], others[rows, one])[:, 0]
    return found


def shuffles(scores: Floats, truth: Floats, count: int, rng: np.random.Generator) -> Floats:
    """ρ of each method (count, methods) when the names of sources are shuffled."""
    return np.stack([within(scores, truth[rng.permutation(len(truth))]).mean(axis=1) for _ in range(count)])


def p_of_the_best(scores: Floats, table: Transfers, seed: int = 0, count: int = RESAMPLES) -> float:
    """The share of shuffles in which some method has a ρ as large as the largest one, the true order counted in."""
    scores = np.where(np.isfinite(table.mean), scores, np.nan)
    best = within(scores, table.mean).mean(axis=1).max()
    shuffled = shuffles(scores, table.mean, count, np.random.default_rng(seed)).max(axis=1)
    return float((1 + np.sum(shuffled >= best - 1e-12)) / (1 + count))


def regret(score: Floats, truth: Floats) -> float:
    """What is lost by taking the source of the highest score, averaged over targets; ties share."""
    best = score == np.nanmax(score, axis=0)
    chosen = np.sum(np.where(best, truth, 0), axis=0) / best.sum(axis=0)
    return float(np.mean(np.nanmax(truth, axis=0) - chosen))


def ceiling(score: Floats, splits: int = 70, seed: int = 0) -> float:
    """The ρ of a perfect method with transfers (seeds, sources, targets) as noisy as these, by halves of the seeds."""
    seeds, rng = len(score), np.random.default_rng(seed)
    if seeds < 2:
        return 1.0
    found = []
    for _ in range(splits):
        order = rng.permutation(seeds)
        first, second = (over_seeds(score[part]) for part in np.array_split(order, 2))
        found.append(float(np.nanmean(within(first[None], second))))
    r = max(0.0, float(np.mean(found)))
    return float(np.sqrt(2 * r / (1 + r)))
