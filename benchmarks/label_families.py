"""Kinds of data that label terms are judged on: pictures, digits, word counts, text embeddings, tables, heavy tails.

Every family makes pairs of datasets, in the scale that such data are measured in, and single datasets to be changed by
degrees. Pictures and texts are read from a folder of shared data; tables come with scikit-learn; tails are generated.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
from experiments.files import at_hand, default_folder
from numpy.typing import NDArray

from benchmarks import label_pairs
from benchmarks.ordinary import Dataset, Doubles, Pair, flipped, table

TEXTS = ("ag_news", "amazon_full", "dbpedia", "imdb", "yelp_full")
TABLES = ("breast_cancer", "wine", "iris")

Change = Callable[[Dataset, float, np.random.Generator], Dataset]


@dataclass(frozen=True)
class Family:
    """Pairs of datasets of one kind; every dataset has points for two samples where its source has them."""

    pair: Callable[[np.random.Generator], Pair]
    source: Callable[[np.random.Generator], Dataset]
    scaled: Callable[[Pair], Pair]

    def pairs(self, count: int, seed: int = 1) -> Iterable[Pair]:
        """So many pairs, scaled."""
        rng = np.random.default_rng(seed)
        return (self.scaled(self.pair(rng)) for _ in range(count))

    def parts(self, n_points: int, rng: np.random.Generator) -> Pair:
        """Two samples of one source, scaled: what is changed by degrees."""
        return self.scaled(samples(self.source(rng), n_points))


def samples(data: Dataset, n_points: int) -> Pair:
    """The first points of a dataset and the next, as many of each as asked for or as there are."""
    features, of = data
    n = min(n_points, len(of) // 2)
    return (features[:n], of[:n]), (features[n : 2 * n], of[n : 2 * n])


# ------------------------------------------------------------------ scales


def pooled(pair: Pair) -> Pair:
    """All features less their mean over one number, so that the average projection has variance one."""
    both = np.concatenate([features for features, _ in pair])
    return _shifted(pair, both.mean(axis=0), np.sqrt(both.var(axis=0).mean()))


def by_columns(pair: Pair) -> Pair:
    """Every column by its own spread, that of its values brought in to the 5 % and 95 % quantiles."""
    both = np.concatenate([features for features, _ in pair])
    inside = np.clip(both, *np.quantile(both, [0.05, 0.95], axis=0))
    spread = inside.std(axis=0) / 0.91  # of a normal law
    return _shifted(pair, inside.mean(axis=0), np.where(spread > 0, spread, 1.0))


def _shifted(pair: Pair, centre: Doubles, spread: Doubles | float) -> Pair:
    first, second = (((features - centre) / spread, of) for features, of in pair)
    return first, second


# ------------------------------------------------------------------ changes by degrees


def fewer_of_one_class(data: Dataset, share: float, rng: np.random.Generator) -> Dataset:
    """The prior shifted: a share of the largest class is left out."""
    features, of = data
    largest = np.bincount(of).argmax()
    kept = (of != largest) | (rng.random(len(of)) >= share)
    return features[kept], of[kept]


def noisy(data: Dataset, spreads: float, rng: np.random.Generator) -> Dataset:
    """Noise on every feature, in spreads of scaled data."""
    features, of = data
    return features + spreads * rng.normal(size=features.shape), of


CHANGES: dict[str, tuple[Change, tuple[float, ...]]] = {
    "label flips": (flipped, (0, 0.1, 0.2, 0.3, 0.5)),
    "prior shift": (fewer_of_one_class, (0, 0.2, 0.4, 0.6, 0.8)),
    "noise": (noisy, (0, 0.1, 0.2, 0.4, 0.8)),
}


# ------------------------------------------------------------------ pictures


def _picture_pair(rng: np.random.Generator) -> Pair:
    first, second = label_pairs.real_pair(300, rng)
    return (first.features.astype(float), first.labels), (second.features.astype(float), second.labels)


def _pictures(rng: np.random.Generator) -> Dataset:
    found = label_pairs.subset(
        str(rng.choice(label_pairs.SOURCES)), rng.permutation(10)[: rng.integers(3, 9)], 500, rng
    )
    return found.features.astype(float), _coded(found.labels)


def _digits(rng: np.random.Generator) -> Dataset:
    features, of = table("digits")
    rows = rng.permutation(np.flatnonzero(np.isin(of, rng.permutation(10)[: rng.integers(3, 9)])))
    return features[rows], _coded(of[rows])


def _changed_digits(rng: np.random.Generator) -> Dataset:
    """Some classes, as they are, noisy, moved, inverted or fainter."""
    features, of = _digits(rng)
    match rng.integers(5):
        case 1:
            features = np.clip(features + rng.normal(0, rng.uniform(1, 5), features.shape), 0, 16)
        case 2:
            moved = np.roll(features.reshape(-1, 8, 8), rng.integers(1, 3), axis=rng.integers(1, 3))
            features = moved.reshape(len(of), -1)
        case 3:
            features = 16 - features
        case 4:
            features = features * rng.uniform(0.4, 0.9)
    return features, of


# ------------------------------------------------------------------ texts


@cache
def texts(most: int = 2500) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """News and reviews, which source each is from, and its label there."""
    found, sources, labels = [], [], []
    for place, name in enumerate(TEXTS):
        with gzip.open(at_hand(name, default_folder()), "rt", encoding="utf-8", newline="") as file:
            for _, row in zip(range(most), csv.DictReader(file), strict=False):
                found.append(f"{row['title']} {row['text']}"[:1500])
                sources.append(place)
                labels.append(int(row["label"]))
    return found, np.array(sources), np.array(labels)


@cache
def word_counts() -> Doubles:
    """How often each of the 800 most frequent words is in each text."""
    from sklearn.feature_extraction.text import CountVectorizer

    counted: Doubles = CountVectorizer(max_features=800).fit_transform(texts()[0]).toarray().astype(float)
    return counted


@cache
def embeddings() -> Doubles:
    """Latent semantic analysis: 100 components of TF-IDF, every text brought to length one."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    weighted = TfidfVectorizer(max_features=20_000, sublinear_tf=True).fit_transform(texts()[0])
    components: Doubles = TruncatedSVD(100, random_state=0).fit_transform(weighted)
    components /= np.linalg.norm(components, axis=1, keepdims=True) + 1e-9
    return components


def _texts_by(features: Callable[[], Doubles]) -> Callable[[np.random.Generator], Dataset]:
    """Two or more classes of one of the sources."""

    def make(rng: np.random.Generator) -> Dataset:
        _, sources, labels = texts()
        rows = np.flatnonzero(sources == rng.integers(len(TEXTS)))
        classes = rng.permutation(np.unique(labels[rows]))
        classes = classes[: rng.integers(2, len(classes) + 1)]
        rows = rng.permutation(rows[np.isin(labels[rows], classes)])
        return features()[rows], _coded(labels[rows])

    return make


# ------------------------------------------------------------------ tables


def _table(rng: np.random.Generator) -> Dataset:
    features, of = table(str(rng.choice(TABLES)))
    rows = rng.permutation(len(of))
    return features[rows], of[rows]


def _heavy_table(rng: np.random.Generator) -> Dataset:
    """Three classes in eight columns, log-normal or with Student's noise of two degrees of freedom."""
    of = rng.integers(3, size=900)
    normal = rng.normal(0, 0.8, (3, 8))[of] + rng.normal(size=(900, 8))
    heavy = np.exp(normal) if rng.random() < 0.5 else normal + 0.3 * rng.standard_t(2, size=normal.shape)
    return heavy, of


def _two_changed(source: Callable[[np.random.Generator], Dataset]) -> Callable[[np.random.Generator], Pair]:
    """Two halves of a table; each as it is, with a feature moved, with noise, wrong labels or another prior."""

    def make(rng: np.random.Generator) -> Pair:
        halves = by_columns(samples(source(rng), 1000))
        first, second = (_changed_table(half, rng) for half in halves)
        return first, second

    return make


def _changed_table(data: Dataset, rng: np.random.Generator) -> Dataset:
    features, of = data
    degree = rng.uniform(0.1, 1)
    match rng.integers(5):
        case 1:
            column = np.arange(features.shape[1]) == rng.integers(features.shape[1])
            return features + 3 * degree * column, of
        case 2:
            return noisy(data, degree, rng)
        case 3:
            return flipped(data, 0.5 * degree, rng)
        case 4:
            return fewer_of_one_class(data, 0.8 * degree, rng)
    return data


def _coded(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Labels as whole numbers from 0."""
    return np.unique(labels, return_inverse=True)[1]


def _alike(make: Callable[[np.random.Generator], Dataset]) -> Callable[[np.random.Generator], Pair]:
    """Pairs of datasets that are made in the same way."""
    return lambda rng: (make(rng), make(rng))


FAMILIES: dict[str, Family] = {
    "28-pixel pictures": Family(_picture_pair, _pictures, pooled),
    "8-pixel digits": Family(_alike(_changed_digits), _digits, pooled),
    "word counts": Family(_alike(_texts_by(word_counts)), _texts_by(word_counts), pooled),
    "text embeddings": Family(_alike(_texts_by(embeddings)), _texts_by(embeddings), pooled),
    "tables": Family(_two_changed(_table), _table, by_columns),
    "heavy-tailed tables": Family(_two_changed(_heavy_table), _heavy_table, by_columns),
}
