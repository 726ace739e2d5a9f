"""What every method is worth, and the correlations behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

Floats = NDArray[np.float64]


def correlations(a: Floats, b: Floats, ranked: bool = True) -> Floats:
    """Spearman's ρ along the sources, axis −2, of arrays (…, sources, targets); zero where one is constant."""
    if ranked:
        a, b = rankdata(a, axis=-2), rankdata(b, axis=-2)
    a, b = a - a.mean(axis=-2, keepdims=True), b - b.mean(axis=-2, keepdims=True)
    lengths = np.sqrt(np.sum(a**2, axis=-2) * np.sum(b**2, axis=-2))
    return np.asarray(np.sum(a * b, axis=-2) / np.where(lengths > 1e-12, lengths, np.inf))


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


def difference(judgement: Judged, a: int, b: int) -> tuple[float, float, float]:
    """ρ of method a less that of method b, and its paired interval."""
    low, high = np.percentile(judgement.resamples[:, a] - judgement.resamples[:, b], [2.5, 97.5])
    return float(judgement.rho[a] - judgement.rho[b]), float(low), float(high)


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
