"""Pairs of ordinary datasets, on which the default number must hold: the grid of the tests and of the benchmarks.

Tables, counts, few features, few rows, many classes, ties, constant columns, heavy tails, an outlier, a dominant
feature, nearly identical datasets. Laws are generated; real tables are those that come with scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
Dataset: TypeAlias = tuple[Doubles, NDArray[np.int64]]
Pair: TypeAlias = tuple[Dataset, Dataset]


def ordinary_pairs(seed: int = 7) -> dict[str, Pair]:
    """All pairs by name; every one has a generator of its own, so that they do not depend on each other."""
    return {name: make(np.random.default_rng([seed, place])) for place, (name, make) in enumerate(_PAIRS.items())}


# ------------------------------------------------------------------ generated laws


def labels(rng: np.random.Generator, n: int, n_classes: int) -> NDArray[np.int64]:
    """Labels that have nothing to do with the features."""
    return rng.integers(n_classes, size=n)


def customers(rng: np.random.Generator, n: int, moved: float = 0.0) -> Dataset:
    """A table of age, log-normal income and visits; income may be moved, in logarithms."""
    age, income, visits = rng.normal(45, 15, n), np.exp(rng.normal(10 + moved, 1, n)), rng.poisson(3, n)
    return np.stack([age, income, visits], axis=1), (visits > 3).astype(np.int64)


def counts(rng: np.random.Generator, n: int, rates: Doubles) -> Doubles:
    """Over-dispersed counts, mostly zero, as bags of words and of visual words are; rates (d,) of all, or (n, d)."""
    return rng.negative_binomial(np.broadcast_to(rates, (n, rates.shape[-1])), 0.05).astype(np.float64)


def standardised(pair: Pair) -> Pair:
    """Every column of both datasets by its own mean and standard deviation."""
    both = np.concatenate([features for features, _ in pair])
    centre, spread = both.mean(axis=0), both.std(axis=0)
    first, second = (((features - centre) / spread, of) for features, of in pair)
    return first, second


def _normal(d: int, sizes: tuple[int, int], classes: tuple[int, int], moved: float) -> Callable[..., Pair]:
    def make(rng: np.random.Generator) -> Pair:
        first, second = (
            (rng.normal(mean, 1, size=(n, d)), np.arange(n) % c if n < 10 else labels(rng, n, c))
            for n, c, mean in zip(sizes, classes, (0.0, moved), strict=True)
        )
        return first, second

    return make


def _heavy(draw: Callable[..., Doubles], moved: float) -> Callable[..., Pair]:
    def make(rng: np.random.Generator) -> Pair:
        first, second = draw(rng), draw(rng)
        return (first, labels(rng, len(first), 3)), (second + moved, labels(rng, len(second), 3))

    return make


def _count_pair(rng: np.random.Generator) -> Pair:
    rates = 0.1 * rng.gamma(1, 1, size=800) + 0.01
    other = rates * np.exp(rng.normal(0, 0.3, 800))
    return (counts(rng, 300, rates), labels(rng, 300, 10)), (counts(rng, 250, other), labels(rng, 250, 10))


def _outlier(rng: np.random.Generator) -> Pair:
    points, others = rng.normal(size=(2, 500, 20))
    points[0, :10] += 10
    return (points, labels(rng, 500, 3)), (others, labels(rng, 500, 3))


def _dominant(rng: np.random.Generator) -> Pair:
    points, others = rng.normal(size=(2, 400, 20))
    others[:, 1:] += 1
    points[:, 0] *= 30
    others[:, 0] *= 30
    return (points, labels(rng, 400, 2)), (others, labels(rng, 400, 2))


def _nearly_identical(rng: np.random.Generator) -> Pair:
    points, of = rng.normal(size=(1000, 50)), labels(rng, 1000, 5)
    return (points, of), (points + rng.normal(0, 0.01, points.shape), of)


def _many_classes(rng: np.random.Generator) -> Pair:
    centres = rng.normal(size=(300, 10))

    def side(n: int) -> Dataset:
        of = labels(rng, n, 300)
        return centres[of] + 0.3 * rng.normal(size=(n, 10)), of

    return side(2000), side(1800)


def _zipf_classes(rng: np.random.Generator) -> Pair:
    shares = 1 / np.arange(1, 201)
    centres = rng.normal(size=(200, 8))
    first, second = rng.choice(200, size=(2, 1000), p=shares / shares.sum())
    return (centres[first] + rng.normal(size=(1000, 8)), first), (centres[second] + rng.normal(size=(1000, 8)), second)


def _ties(rng: np.random.Generator) -> Pair:
    first, second = (rng.integers(top, size=(n, 7)).astype(np.float64) for n, top in ((300, 3), (400, 4)))
    return (first, labels(rng, 300, 4)), (second, labels(rng, 400, 4))


def _constant_column(rng: np.random.Generator) -> Pair:
    first, second = rng.normal(size=(200, 7)), rng.normal(0.2, 1, size=(100, 7))
    first[:, 3] = second[:, 3] = 2.0
    return (first, labels(rng, 200, 2)), (second, labels(rng, 100, 2))


def _duplicates(rng: np.random.Generator) -> Pair:
    few = rng.normal(size=(5, 3))
    first, second = rng.integers(5, size=200), rng.integers(4, size=150)
    return (few[first], first % 2), (few[second], second % 2)


# ------------------------------------------------------------------ real tables


def table(name: str) -> Dataset:
    """A table that comes with scikit-learn: breast_cancer, digits, iris or wine."""
    from sklearn import datasets

    loaded: Any = getattr(datasets, f"load_{name}")()
    return loaded.data.astype(np.float64), loaded.target.astype(np.int64)


def halves(data: Dataset, rng: np.random.Generator, most: int = 1000) -> Pair:
    """Two samples of a table without a row in common."""
    order = rng.permutation(len(data[1]))[: 2 * most]
    middle = len(order) // 2
    first, second = ((data[0][rows], data[1][rows]) for rows in (order[:middle], order[middle:]))
    return first, second


def flipped(data: Dataset, share: float, rng: np.random.Generator) -> Dataset:
    """The same points, a share of them with another label."""
    features, of = data
    chosen = rng.random(len(of)) < share
    n_classes = int(of.max()) + 1
    others = (of + rng.integers(1, n_classes, len(of))) % n_classes
    return features, np.where(chosen, others, of)


def _flips(rng: np.random.Generator) -> Pair:
    first, second = standardised(halves(table("breast_cancer"), rng))
    return first, flipped(second, 0.5, rng)


def _moved_iris(rng: np.random.Generator) -> Pair:
    first, (features, of) = halves(table("iris"), rng)
    return first, (features + 0.1, of)


def _parted_digits(rng: np.random.Generator) -> Pair:
    features, of = table("digits")
    return (features[of < 5], of[of < 5]), (features[of >= 5], of[of >= 5])


_PAIRS: dict[str, Callable[[np.random.Generator], Pair]] = {
    "one feature, moved": _normal(1, (300, 300), (1, 1), 1.0),
    "one feature, one law": _normal(1, (300, 200), (3, 3), 0.0),
    "two points and three": _normal(3, (2, 3), (2, 2), 1.0),
    "20 rows, 2 features": _normal(2, (20, 20), (2, 3), 0.5),
    "log-normal, 3 features": _heavy(lambda rng: np.exp(rng.normal(size=(400, 3))), 0.3),
    "Student t2, 20 features": _heavy(lambda rng: rng.standard_t(2, size=(400, 20)), 0.3),
    "Student t3, one law": _heavy(lambda rng: rng.standard_t(3, size=(400, 20)), 0.0),
    "Cauchy, 5 features": _heavy(lambda rng: rng.standard_cauchy(size=(300, 5)), 1.0),
    "customers, one law": lambda rng: (customers(rng, 500), customers(rng, 500)),
    "customers, income moved": lambda rng: (customers(rng, 500), customers(rng, 500, 0.5)),
    "counts, 800 features": _count_pair,
    "an outlier": _outlier,
    "a dominant feature": _dominant,
    "nearly identical, 50 features": _nearly_identical,
    "300 classes": _many_classes,
    "ties, 7 features": _ties,
    "a constant column": _constant_column,
    "duplicates, 3 features": _duplicates,
    "breast cancer, halves": lambda rng: standardised(halves(table("breast_cancer"), rng)),
    "breast cancer, labels flipped": _flips,
    "breast cancer, raw units": lambda rng: halves(table("breast_cancer"), rng),
    "wine, raw units": lambda rng: halves(table("wine"), rng),
    "iris, moved": _moved_iris,
    "digits, halves": lambda rng: halves(table("digits"), rng, 600),
    "digits, other classes": _parted_digits,
    "200 Zipf classes, one law": _zipf_classes,
}
