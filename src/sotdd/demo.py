"""The datasets of the demonstration: handwritten digits, variants of them, and stripes."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, check_seed, describe
from sotdd.basics.text import with_error
from sotdd.compute.matrix import DistanceMatrix

__all__ = ["STORY", "datasets", "digits", "reading"]

_Labelled = tuple[NDArray[Any], NDArray[Any]]

# What each dataset is, in the order of the demonstration.
STORY = {
    "digits": "half of 1,797 handwritten digits, 8 × 8 pixels",
    "more digits": "the other half",
    "noisy": "the other half, with noise on every pixel",
    "even only": "the other half, only 0, 2, 4, 6 and 8",
    "shuffled": "the other half, its labels shuffled at random",
    "stripes": "stripes in four directions: other pictures, other labels",
}


def digits() -> _Labelled:
    """1,797 handwritten digits of 8 × 8 pixels from 0 to 16, and their labels; they come with the package.

    Examples
    --------
    >>> from sotdd.demo import digits
    >>> images, labels = digits()
    >>> images.shape, labels[:3].tolist()
    ((1797, 8, 8), [0, 1, 2])
    """
    with files("sotdd.cli").joinpath("digits.npz").open("rb") as file, np.load(file) as arrays:
        return arrays["X"], arrays["y"]


def datasets(seed: int = 0) -> dict[str, _Labelled]:
    """Make the six datasets of the demonstration."""
    rng = np.random.default_rng(check_seed(seed))
    images, labels = digits()
    order = rng.permutation(len(images))
    first, second = np.array_split(order, 2)
    others, names = images[second], labels[second]
    even = names % 2 == 0
    return {
        "digits": (images[first], labels[first]),
        "more digits": (others, names),
        "noisy": (np.clip(others + rng.normal(0, 3, others.shape), 0, 16), names),
        "even only": (others[even], names[even]),
        "shuffled": (others, rng.permutation(names)),
        "stripes": _stripes(rng, len(second)),
    }


def reading(matrix: DistanceMatrix) -> list[str]:
    """Sentences that say what the matrix shows, with its numbers."""
    if not isinstance(matrix, DistanceMatrix):
        raise SotddError(f"is {describe(matrix)}: expected sotdd.pairwise(sotdd.demo.datasets()).", setting="matrix")
    floor = matrix["digits", "more digits"]
    noisy, shuffled = matrix["digits", "noisy"], matrix["digits", "shuffled"]
    stripes = matrix["digits", "stripes"]
    return [
        f"Two halves of the same digits are {with_error(floor.value, floor.stderr)} apart, not 0: samples of one "
        "source differ by chance, so a distance this small means no difference.",
        f"Noise on the pixels makes it {noisy.value / floor.value:.1f} times as far, shuffled labels "
        f"{shuffled.value / floor.value:.1f} times, stripes {stripes.value / floor.value:.0f} times.",
        "± is the error of using finitely many projections. The unit is the spread of the pooled data: compare numbers "
        "within one matrix, not across matrices.",
    ]


def _stripes(rng: np.random.Generator, count: int) -> _Labelled:
    """Stripes two pixels wide, in four directions, at random phases, a little noisy."""
    row, column = np.mgrid[:8, :8]
    kind, phase = rng.integers(4, size=count), rng.integers(4, size=count)
    ramps = np.stack([row, column, row + column, row - column])[kind]  # (count, 8, 8)
    ink = np.where((ramps + phase[:, None, None]) % 4 < 2, 16.0, 0.0)
    images = np.clip(ink + rng.normal(0, 1.5, ink.shape), 0, 16)
    return images, np.array(["horizontal", "vertical", "rising", "falling"])[kind]
