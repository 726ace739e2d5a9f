"""Pairs of subsets of one dataset, drawn at random as the paper does it, and pairs that differ for real."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.lib import data
from experiments.lib.methods import Dataset

KINDS = ("classes", "dataset", "augmentation")


def disjoint(source: data.Images, size: int, seed: int) -> tuple[Dataset, Dataset]:
    """Two random subsets without a point in common: the same data but for chance."""
    rows = np.random.default_rng(seed).permutation(len(source.y))[: 2 * size]
    first, second = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    return (source.x[first], source.y[first]), (source.x[second], source.y[second])


def different(
    source: data.Images, others: list[data.Images], kind: str, size: int, seed: int
) -> tuple[Dataset, Dataset]:
    """Two subsets that differ: in their classes, in where they come from, or by an augmentation."""
    rng = np.random.default_rng(seed)
    if kind == "classes":
        a, b = (_some_classes(source, rng) for _ in range(2))
    elif kind == "dataset":
        a, b = _some_classes(source, rng), _some_classes(others[rng.integers(len(others))], rng)
    else:
        a = b = source
    (one, labels), (two, other_labels) = (_sampled(part, size, rng) for part in (a, b))
    if kind == "augmentation":
        two = augmented(two, rng)
    return (one, labels), (two, other_labels)


def _some_classes(source: data.Images, rng: np.random.Generator) -> data.Images:
    there = np.unique(source.y)
    count = rng.integers(2, min(10, len(there)) + 1)
    chosen = rng.choice(there, count, replace=False)
    return source.rows(np.isin(source.y, chosen))


def _sampled(source: data.Images, size: int, rng: np.random.Generator) -> Dataset:
    rows = rng.permutation(len(source.y))[:size]
    return source.x[rows], source.y[rows]


def augmented(x: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.uint8]:
    """Pictures darkened, flattened, moved and made noisy, each by a strength drawn once for all of them."""
    shown = x.astype(np.float32)
    shown = shown * rng.uniform(0.4, 1.0)
    shown = shown.mean() + (shown - shown.mean()) * rng.uniform(0.5, 1.0)
    shown = np.roll(shown, tuple(rng.integers(-3, 4, size=2)), axis=(1, 2))
    shown = shown + rng.uniform(0, 40) * rng.standard_normal(shown.shape, dtype=np.float32)
    return np.clip(shown, 0, 255).astype(np.uint8)


def sources(name: str, folder: Path, *, others: bool = True) -> tuple[data.Images, list[data.Images]]:
    """A dataset to draw from, and others of the same shape if asked."""
    more = {"mnist": data.NIST[1:], "cifar10": ("tiny_imagenet",)}.get(name, ()) if others else ()
    side = 28 if name == "mnist" else 32
    return data.images(name, folder)[0], [data.images(other, folder, side=side)[0] for other in more]
