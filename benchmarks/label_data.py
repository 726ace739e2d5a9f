"""What label terms are judged on: tables, pictures, texts, counts and heavy tails, and changes of them by degrees.

Tables, pictures and texts are read from a folder of shared data, as far as they are at hand; some tables come with
scikit-learn; the rest is generated. Values are in spreads: each column's own for tables, one for all others.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from experiments.lib.files import at_hand, default_folder
from numpy.typing import NDArray

import sotdd
from benchmarks.decision_data import frames, words
from benchmarks.ordinary import Dataset, Pair, customers, flipped, table

TUNED_ON = ("abalone", "adult", "banknote", "breast cancer", "iris")
REPORTED = ("diamonds", "german credit", "titanic", "wine", "wine, red")
KEPT_BACK = ("penguins", "wine, white")
_TABLES = {
    "breast cancer": "breast_cancer, scikit-learn", "iris": "iris, scikit-learn", "wine": "wine, scikit-learn",
    "german credit": "german_credit", "wine, red": "wine_red", "wine, white": "wine_white",
}  # fmt: skip
_MOST = 3000  # rows of a source

Make = Callable[[np.random.Generator], Dataset]


@dataclass(frozen=True)
class Source:
    """One law of labelled points, and another that it may be mixed with; without one it is parted by a direction."""

    kind: str
    make: Make
    other: Make | None = None

    @property
    def scale(self) -> str:
        """How the package scales such data."""
        return "features" if self.kind in ("tables", "heavy tails") else "pooled"

    def samples(self, rng: np.random.Generator, n_points: int, count: int, mixing: bool) -> list[Dataset]:
        """So many samples without a row in common; of them the last is of another law where laws are to be mixed."""
        data = self.make(rng)
        if not mixing:
            return deal(shuffle(data, rng), n_points, count)
        if self.other is None:
            data, other = part(data, rng)
        else:
            other = self.other(rng)
        (last,) = deal(shuffle(other, rng), 2 * n_points, 1)
        return [*deal(shuffle(data, rng), n_points, count - 1), last]

    def scaled(self, samples: list[Dataset]) -> list[Dataset]:
        """All samples by one scaler, that of the package."""
        scaler = sotdd.Scaler.fit([features for features, _ in samples], self.scale)
        return [((features - scaler.centre) / scaler.scale, of) for features, of in samples]


def shuffle(data: Dataset, rng: np.random.Generator) -> Dataset:
    """Rows in a random order."""
    rows = rng.permutation(len(data[1]))
    return data[0][rows], data[1][rows]


def deal(data: Dataset, n_points: int, count: int) -> list[Dataset]:
    """So many samples of the first points, as many each as asked for or as there are."""
    features, of = data
    n = min(n_points, len(of) // count)
    return [(features[i * n : (i + 1) * n], of[i * n : (i + 1) * n]) for i in range(count)]


def part(data: Dataset, rng: np.random.Generator) -> Pair:
    """Two laws from one: the halves of the points along a random direction."""
    features, of = data
    spread = features.std(axis=0)
    along = (features / np.where(spread > 0, spread, 1.0)) @ rng.normal(size=features.shape[1])
    low = along <= np.median(along)
    return (features[low], of[low]), (features[~low], of[~low])


# ------------------------------------------------------------------ changes by degrees


@dataclass(frozen=True, eq=False)
class Aside:
    """What a change takes beside the sample: points of another law, and an order of the columns (d,)."""

    other: Dataset
    order: NDArray[np.int64]


# Of a sample, by a degree from none to large.
Change = Callable[[Dataset, float, Aside, np.random.Generator], Dataset]


def add_noise(data: Dataset, spreads: float, aside: Aside, rng: np.random.Generator) -> Dataset:
    """Noise on every feature."""
    return data[0] + spreads * rng.normal(size=data[0].shape), data[1]


def flip(data: Dataset, share: float, aside: Aside, rng: np.random.Generator) -> Dataset:
    """A share of labels replaced by others."""
    return flipped(data, share, rng)


def mix(data: Dataset, share: float, aside: Aside, rng: np.random.Generator) -> Dataset:
    """A share of points replaced by points of the other law."""
    count = round(share * len(data[1]))
    rows = rng.choice(len(aside.other[1]), count, replace=False)
    features, of = (
        np.concatenate([theirs[rows], mine[count:]]) for mine, theirs in zip(data, aside.other, strict=True)
    )
    return features, of


def decouple(data: Dataset, share: float, aside: Aside, rng: np.random.Generator) -> Dataset:
    """A share of columns, each in an order of its own: what they have to do with labels and each other is lost."""
    features = data[0].copy()
    columns = aside.order[: round(share * features.shape[1])]
    features[:, columns] = rng.permuted(features[:, columns], axis=0)
    return features, data[1]


def remove(data: Dataset, share: float, aside: Aside, rng: np.random.Generator) -> Dataset:
    """A share of the largest class left out."""
    features, of = data
    kept = (of != np.bincount(of).argmax()) | (rng.random(len(of)) >= share)
    return features[kept], of[kept]


def rotate(data: Dataset, degrees: float, aside: Aside, rng: np.random.Generator) -> Dataset:
    """Every two columns of a random order turned against each other."""
    features = data[0].copy()
    half = features.shape[1] // 2
    one, two = aside.order[:half], aside.order[half : 2 * half]
    cos, sin = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    a, b = features[:, one].copy(), features[:, two].copy()
    features[:, one], features[:, two] = cos * a - sin * b, sin * a + cos * b
    return features, data[1]


CHANGES: dict[str, tuple[Change, tuple[float, ...]]] = {
    "noise": (add_noise, (0, 0.15, 0.3, 0.45, 0.6, 0.8)),
    "label flips": (flip, (0, 0.1, 0.2, 0.3, 0.4, 0.5)),
    "domain mixing": (mix, (0, 0.1, 0.2, 0.3, 0.45, 0.6)),
    "decoupled columns": (decouple, (0, 0.2, 0.4, 0.6, 0.8, 1)),
    "class removed": (remove, (0, 0.2, 0.4, 0.6, 0.8, 1)),
    "rotation": (rotate, (0, 10, 20, 30, 45, 60)),
}


# ------------------------------------------------------------------ sources


@cache
def _read_table(name: str) -> Dataset:
    """A table as the package reads it: categories as columns of zeros and ones, gaps filled."""
    if name.startswith("wine, "):
        import pandas as pd

        path = default_folder() / "tables" / f"{_TABLES[name]}.csv.gz"
        frame, label = pd.read_csv(path), "quality"
    else:
        frame, label = frames()[_TABLES.get(name, name)]
    chosen = frame.sample(min(len(frame), _MOST), random_state=0)
    data = sotdd.open_dataset(chosen, label=label, missing="mean")
    return np.asarray(data.rows(slice(0, data.n_points)), np.float64), np.asarray(data.codes, np.int64)


@cache
def _read_pictures(name: str) -> Dataset:
    with np.load(at_hand(name, default_folder())) as file:
        pictures, labels = file["X_test"][: _MOST // 2], file["y_test"][: _MOST // 2]
    if pictures.ndim == 4:  # colour at a quarter of the pixels
        pictures = pictures[:, ::2, ::2]
    return pictures.reshape(len(pictures), -1) / 255.0, _code(labels)


@cache
def _read_texts(most: int = 1500) -> tuple[list[str], dict[str, tuple[slice, NDArray[np.int64]]]]:
    """News, encyclopaedia and reviews: all texts, and of each source where its own are and their labels."""
    found, places = [], {}
    for name in ("ag_news", "dbpedia", "yelp_full"):
        began, labels = len(found), []
        with gzip.open(at_hand(name, default_folder()), "rt", encoding="utf-8", newline="") as file:
            for _, row in zip(range(most), csv.DictReader(file), strict=False):
                found.append(f"{row['title']} {row['text']}"[:1000])
                labels.append(row["label"])
        places[name] = slice(began, len(found)), _code(np.array(labels))
    return found, places


@cache
def _embed_texts() -> NDArray[np.float64]:
    """Latent semantic analysis: 100 components of TF-IDF, every text brought to length one."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    weighted = TfidfVectorizer(max_features=10_000, sublinear_tf=True).fit_transform(_read_texts()[0])
    components = TruncatedSVD(100, random_state=0).fit_transform(weighted)
    return np.asarray(components / (np.linalg.norm(components, axis=1, keepdims=True) + 1e-9))


@cache
def _count_words() -> NDArray[np.float64]:
    """How often each of the 400 most frequent words is in each text."""
    from sklearn.feature_extraction.text import CountVectorizer

    counted = CountVectorizer(max_features=400).fit_transform(_read_texts()[0])
    return np.asarray(counted.toarray(), np.float64)


def _heavy(draw: Callable[[np.random.Generator, NDArray[np.float64]], NDArray[np.float64]]) -> Make:
    """Three classes in eight columns."""

    def make(rng: np.random.Generator) -> Dataset:
        of = rng.integers(3, size=_MOST)
        return draw(rng, rng.normal(0, 0.8, (3, 8))[of] + rng.normal(size=(_MOST, 8))), of

    return make


def _code(labels: NDArray[np.generic]) -> NDArray[np.int64]:
    """Labels as whole numbers from 0."""
    return np.unique(labels, return_inverse=True)[1]


def _of_tables(name: str) -> Source:
    return Source("tables", lambda rng: _read_table(name))


def _of_pictures(name: str, other: str) -> Source:
    return Source("pictures", lambda rng: _read_pictures(name), lambda rng: _read_pictures(other))


def _of_texts(kind: str, features: Callable[[], NDArray[np.float64]], name: str, other: str) -> Source:
    def make(name: str) -> Dataset:
        rows, labels = _read_texts()[1][name]
        return features()[rows], labels

    return Source(kind, lambda rng: make(name), lambda rng: make(other))


SOURCES: dict[str, Source] = {
    **{name: _of_tables(name) for name in (*TUNED_ON, *REPORTED, *KEPT_BACK)},
    "digits, 8 pixels": Source("pictures", lambda rng: table("digits")),
    "MNIST": _of_pictures("mnist", "kmnist"),
    "Fashion-MNIST": _of_pictures("fashion_mnist", "mnist"),
    "CIFAR-10": Source("pictures", lambda rng: _read_pictures("cifar10")),
    "news": _of_texts("texts", _embed_texts, "ag_news", "dbpedia"),
    "encyclopaedia": _of_texts("texts", _embed_texts, "dbpedia", "yelp_full"),
    "reviews": _of_texts("texts", _embed_texts, "yelp_full", "ag_news"),
    "words of news": _of_texts("counts", _count_words, "ag_news", "dbpedia"),
    "words of an encyclopaedia": _of_texts("counts", _count_words, "dbpedia", "yelp_full"),
    "visual words": Source("counts", lambda rng: words(d=200).sample(rng, _MOST)),
    "log-normal": Source("heavy tails", _heavy(lambda rng, x: np.exp(x))),
    "Student's": Source("heavy tails", _heavy(lambda rng, x: x + 0.3 * rng.standard_t(2, size=x.shape))),
    "customers": Source("heavy tails", lambda rng: customers(rng, _MOST)),
}
