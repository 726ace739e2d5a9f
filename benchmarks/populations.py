"""Populations of datasets for catalogs: crops of real images, tables with heavy tails, and one family of all alike.

A population is a list of sources, and every dataset is a sample of one of them with a little change, as the shards,
years and customers of real collections are. Datasets are made from their number alone, so several processes can make
parts of one population.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]
Labels = NDArray[np.int64]

_IMAGES = ("mnist", "fashion_mnist", "kmnist", "emnist_letters", "usps", "cifar10")
_SIDE, _POOLED = 28, 7


class Population(Protocol):
    """Datasets by source and number."""

    name: str

    def member(self, source: int, number: int) -> tuple[Points, Labels]:
        """A dataset of one source."""


def source_of(number: int, seed: int = 0) -> int:
    """Which source a dataset belongs to: sources have 5 to 35 members, 20 on average."""
    block, place = divmod(number, 400)  # 20 sources in every 400
    ends = np.cumsum(np.random.default_rng([seed, block]).multinomial(300, np.full(20, 1 / 20)) + 5)
    return block * 20 + int(np.searchsorted(ends, place, side="right"))


@dataclass(frozen=True, eq=False)
class Images:
    """Images of 7 × 7 pixels: some classes of one or two real sets, in shares, darker, paler and noisier."""

    sets: tuple[tuple[Points, Labels], ...]
    name: str = "images"

    @classmethod
    def of(cls, folder: Path) -> Images:
        """Read the real sets, and bring them to one size."""
        sets = []
        for number, name in enumerate(_IMAGES):
            with np.load(folder / f"{name}.npz") as arrays:
                images, labels = arrays["X_train"][:16000], arrays["y_train"][:16000]
            grey = images.mean(axis=3) if images.ndim == 4 else images.astype(np.float64)
            side = grey.shape[1]
            if side > _SIDE:
                start = (side - _SIDE) // 2
                grey = grey[:, start : start + _SIDE, start : start + _SIDE]
            elif side < _SIDE:
                margin = (_SIDE - side) // 2
                grey = np.pad(grey, ((0, 0), (margin, margin), (margin, margin)))
            step = _SIDE // _POOLED
            pooled = grey.reshape(-1, _POOLED, step, _POOLED, step).mean(axis=(2, 4)) / 255
            sets.append((pooled.reshape(len(pooled), -1), labels.astype(np.int64) + 100 * number))
        return cls(tuple(sets))

    def member(self, source: int, number: int) -> tuple[Points, Labels]:
        """A sample of 50 to 2,000 images."""
        rng = np.random.default_rng([1, source])
        chosen = rng.choice(len(self.sets), size=1 + (rng.random() < 0.25), replace=False)
        pools: list[tuple[int, int]] = []
        for one in chosen:
            labels = np.unique(self.sets[one][1])
            some = rng.choice(labels, size=rng.integers(1, min(10, len(labels)) + 1), replace=False)
            pools += [(one, label) for label in some]
        shares = rng.dirichlet(np.full(len(pools), 3.0))
        contrast = rng.uniform(0.5, 1.5) if rng.random() < 0.5 else 1.0
        shift = rng.normal(0, 0.1) if rng.random() < 0.5 else 0.0
        noise = rng.uniform(0, 0.3) if rng.random() < 0.5 else 0.0
        rng = np.random.default_rng([2, source, number])
        n = round(50 * 40 ** rng.random())
        counts = rng.multinomial(n, rng.dirichlet(200 * shares))
        parts, names = [], []
        for (one, label), count in zip(pools, counts, strict=True):
            points, labels = self.sets[one]
            parts.append(points[rng.choice(np.flatnonzero(labels == label), size=count)])
            names.append(np.full(count, label))
        points = np.concatenate(parts) * contrast * (1 + 0.03 * rng.normal()) + shift + 0.02 * rng.normal()
        return points + noise * rng.normal(size=points.shape), np.concatenate(names)


@dataclass(frozen=True)
class Tables:
    """Tables of ten columns with heavy tails, counts and correlations, 20 to 2,000 rows and up to 200 classes."""

    name: str = "tables"

    def member(self, source: int, number: int) -> tuple[Points, Labels]:
        """A sample of one law of rows."""
        rng = np.random.default_rng([3, source])
        kinds, width = rng.integers(5, size=10), rng.uniform(0.3, 1.5, size=10)
        centres, freedom = rng.normal(size=10), rng.uniform(1.5, 4, size=10)
        mixing = np.eye(10) + rng.normal(0, 0.3, size=(10, 10))
        score, classes = rng.normal(size=10), int(200 ** rng.random())
        rng = np.random.default_rng([4, source, number])
        n = round(20 * 100 ** rng.random())
        base = rng.normal(size=(n, 10)) @ mixing
        columns = []
        for column, kind in enumerate(kinds):
            z = base[:, column] * width[column] * (1 + 0.03 * rng.normal()) + centres[column] + 0.05 * rng.normal()
            if kind == 0:
                z = np.exp(z)
            elif kind == 1:
                z = z / np.sqrt(rng.chisquare(freedom[column], size=n) / freedom[column])
            elif kind == 2:
                z = np.sign(z) * np.abs(z) ** 3
            elif kind == 3:
                z = np.floor(np.exp(np.minimum(z, 10)))
            columns.append(z)
        ranks = np.argsort(np.argsort(base @ score))
        return np.column_stack(columns), ranks * classes // n


@dataclass(frozen=True)
class Alike:
    """Samples of one source: none stands out, and the order of the nearest is chance."""

    name: str = "alike"

    def member(self, source: int, number: int) -> tuple[Points, Labels]:
        """400 points of four classes."""
        rng = np.random.default_rng([5, number])
        labels = rng.integers(4, size=400)
        points = rng.normal(size=(400, 8)) + 0.5 * np.eye(8)[labels]
        return points + 0.1 * rng.normal(size=8), labels
