"""Datasets as the peers need them: in memory, in float64, or a random sample of them."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.memory import available_bytes
from sotdd.inputs.data import LabelledData
from sotdd.projections.scaler import Scaler

Doubles = NDArray[np.float64]

# The share of free memory that a method may take.
_SHARE = 0.8


@dataclass(frozen=True, eq=False)
class Points:
    """A dataset in memory: features (n, d) in float64, and of every row the index of its class."""

    name: str
    features: Doubles
    codes: NDArray[np.integer]
    classes: tuple[Hashable, ...]

    @classmethod
    def of(cls, data: LabelledData, max_points: int | None = None, seed: int = 0) -> Points:
        """Read a dataset, or a random sample of at most ``max_points`` of its points.

        With one seed, datasets of the same size are sampled at the same rows, so that a dataset stays
        at distance zero from itself. Classes without a point in the sample are dropped.
        """
        rows = _sampled_rows(data.n_points, max_points, seed)
        if rows is None:
            features = np.concatenate([data.rows(block).astype(np.float64) for block in data.blocks()])
            return cls(data.name, features, data.codes, data.classes)
        features = np.asarray(data.features[rows]).reshape(len(rows), -1).astype(np.float64)
        present, codes = np.unique(data.codes[rows], return_inverse=True)
        return cls(data.name, features, codes, tuple(data.classes[code] for code in present))

    def scaled(self, scaler: Scaler | None) -> Points:
        """The same points, centred and scaled."""
        if scaler is None:
            return self
        features = (self.features - scaler.centre) / scaler.scale
        return Points(self.name, features, self.codes, self.classes)

    def rows(self, rows: NDArray[np.integer]) -> Points:
        """Some of the points, and the classes that have one among them."""
        present, codes = np.unique(self.codes[rows], return_inverse=True)
        return Points(self.name, self.features[rows], codes, tuple(self.classes[code] for code in present))

    def __len__(self) -> int:
        """How many points there are."""
        return len(self.features)

    def groups(self) -> list[Doubles]:
        """The features of each class."""
        order = np.argsort(self.codes, kind="stable")
        edges = np.cumsum(np.bincount(self.codes, minlength=len(self.classes)))[:-1]
        return np.split(self.features[order], edges)


def costs(a: Doubles, b: Doubles, p: float) -> Doubles:
    """‖x − x'‖^p between every row of a and every row of b, through a matrix product."""
    centre = a.mean(axis=0)  # distances do not change, and digits are kept on data far from zero
    a, b = a - centre, b - centre
    squares: Doubles = np.einsum("ij,ij->i", a, a)[:, None] + np.einsum("ij,ij->i", b, b)[None, :]
    squares -= 2 * (a @ b.T)
    np.maximum(squares, 0, out=squares)
    if p == 2:
        return squares
    with np.errstate(over="ignore"):  # `cost_unit` refuses infinite costs
        powered: Doubles = squares ** (p / 2)
    return powered


def refuse_large_plans(n: int, m: int, copies: int, what: str) -> None:
    """Refuse to allocate this many copies of n × m numbers if they do not fit."""
    fitting = math.isqrt(int(_SHARE * available_bytes()) // (8 * copies))
    refuse_beyond_memory(8 * copies * n * m, f"{what} between {n:,} and {m:,} points", fitting)


def refuse_beyond_memory(needed: int, what: str, fitting: int | None) -> None:
    """Refuse work that needs more bytes than are free, and say how many points of each dataset would fit."""
    free = available_bytes()
    if needed > _SHARE * free:
        sample = "max_points" if fitting is None else f"max_points={fitting:,}"
        raise SotddError(
            f"{what} needs about {needed / 1e9:,.1f} GB of memory and {free / 1e9:,.1f} GB are free: pass {sample}, or "
            "use method 'sotdd', whose memory does not grow this way."
        )


def _sampled_rows(n_points: int, max_points: int | None, seed: int) -> NDArray[np.integer] | None:
    if max_points is None or max_points >= n_points:
        return None
    return np.sort(np.random.default_rng(seed).choice(n_points, max_points, replace=False))
