"""Pairs of real datasets that label terms are judged on.

Pictures of digits, letters and clothes at 28 × 28 pixels, from the data folder of the experiments.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
from experiments.files import at_hand, default_folder
from numpy.typing import NDArray

SOURCES = ("mnist", "usps", "emnist_letters", "kmnist", "fashion_mnist")
CHANGES = ("turned", "blurred", "noisy", "inverted", "moved")
SIDE = 28

Pictures = NDArray[np.float32]
Pair = tuple["Subset", "Subset"]


@dataclass(frozen=True, eq=False)
class Subset:
    """Some points of one source, pixels from 0 to 1."""

    name: str
    features: Pictures  # (n, 784)
    labels: NDArray[np.int64]

    @property
    def pair(self) -> tuple[Pictures, NDArray[np.int64]]:
        """What `sotdd.distance` takes."""
        return self.features, self.labels

    def standardised(self) -> Subset:
        """Pixels less their own mean, over their own deviation: the usual normalisation of pictures."""
        return Subset(self.name, (self.features - self.features.mean()) / self.features.std(), self.labels)

    def relabelled(self, seed: int) -> Subset:
        """The same points with their labels permuted among them."""
        return Subset(f"{self.name}, permuted", self.features, np.random.default_rng(seed).permutation(self.labels))


def source(name: str) -> tuple[Pictures, NDArray[np.int64]]:
    """All pictures of a source at one size, and their labels."""
    return _source(at_hand(name, default_folder()))


@cache
def _source(path: Path) -> tuple[Pictures, NDArray[np.int64]]:
    from scipy.ndimage import zoom

    with np.load(path) as file:
        pictures, labels = (np.concatenate([file[f"{part}_test"], file[f"{part}_train"]]) for part in "Xy")
    pictures, labels = pictures[:20_000].astype(np.float32) / 255, labels[:20_000].astype(np.int64)
    if pictures.shape[1] != SIDE:
        pictures = zoom(pictures, (1, SIDE / pictures.shape[1], SIDE / pictures.shape[2]), order=1)
    return pictures, labels


def subset(
    name: str, classes: NDArray[np.integer] | None, n_points: int, rng: np.random.Generator, change: str | None = None
) -> Subset:
    """So many points of some classes of a source, perhaps changed."""
    pictures, labels = source(name)
    wanted = np.arange(labels.max() + 1) if classes is None else classes
    rows = rng.permutation(np.flatnonzero(np.isin(labels, wanted)))[:n_points]
    chosen = pictures[rows] if change is None else changed(pictures[rows], change, rng)
    shown = f"{name} {','.join(map(str, wanted))}" + (f" {change}" if change else "")
    return Subset(shown, chosen.reshape(len(rows), -1), labels[rows])


def changed(pictures: Pictures, change: str, rng: np.random.Generator) -> Pictures:
    """Pictures after one of the changes that augmentations make."""
    from scipy import ndimage

    if change == "turned":
        return ndimage.rotate(pictures, rng.choice([30, 60, 90]), axes=(1, 2), reshape=False, order=1)
    if change == "blurred":
        return ndimage.gaussian_filter(pictures, (0, 2, 2))
    if change == "noisy":
        noise = rng.normal(0, 0.3, pictures.shape).astype(np.float32)
        return np.clip(pictures + noise, 0, 1)
    if change == "inverted":
        return 1 - pictures
    return np.roll(pictures, rng.integers(2, 6, 2), axis=(1, 2))


def real_pairs(count: int = 60, n_points: int = 400, seed: int = 0) -> list[Pair]:
    """Pairs that truly differ: by source, by classes, or by a change of the pictures."""
    rng = np.random.default_rng(seed)
    return [_PAIRS[i % len(_PAIRS)](n_points, rng) for i in range(count)]


def real_pair(n_points: int, rng: np.random.Generator) -> Pair:
    """One such pair, of any of the three kinds."""
    return _PAIRS[rng.integers(len(_PAIRS))](n_points, rng)


def transfer_pairs(n_points: int = 1000, seed: int = 0) -> list[Pair]:
    """Every two of the whole sources."""
    rng = np.random.default_rng(seed)
    whole = [subset(name, None, n_points, rng) for name in SOURCES]
    return list(combinations(whole, 2))


def halves(count: int = 10, n_points: int = 400, seed: int = 0) -> list[Pair]:
    """Two samples each of one distribution: what is no difference."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(count):
        name = SOURCES[i % len(SOURCES)]
        both = subset(name, _classes(name, rng), 2 * n_points, rng)
        parts = (slice(0, n_points), slice(n_points, None))
        found.append(tuple(Subset(both.name, both.features[part], both.labels[part]) for part in parts))
    return found


def _classes(name: str, rng: np.random.Generator) -> NDArray[np.integer]:
    """From two to ten classes of a source."""
    return np.sort(rng.permutation(int(source(name)[1].max()) + 1)[: rng.integers(2, 11)])


def _other_source(n_points: int, rng: np.random.Generator) -> Pair:
    names = rng.permutation(SOURCES)[:2].tolist()
    first, second = (subset(name, _classes(name, rng), n_points, rng) for name in names)
    return first, second


def _other_classes(n_points: int, rng: np.random.Generator) -> Pair:
    """One source; the classes of one may be among those of the other, but are not all of them."""
    name = str(rng.choice(SOURCES))
    while True:
        first, second = _classes(name, rng), _classes(name, rng)
        if set(first) != set(second):
            return subset(name, first, n_points, rng), subset(name, second, n_points, rng)


def _changed(n_points: int, rng: np.random.Generator) -> Pair:
    name = str(rng.choice(SOURCES))
    classes = _classes(name, rng)
    return subset(name, classes, n_points, rng), subset(name, classes, n_points, rng, str(rng.choice(CHANGES)))


_PAIRS = (_other_source, _other_classes, _changed)
