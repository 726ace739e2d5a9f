"""Sources of samples on which decisions are measured, and what may differ between two samples."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from experiments.lib.files import DATASETS, default_folder
from numpy.typing import NDArray

from benchmarks.ordinary import Dataset, Doubles, Pair, counts, table

Labels = NDArray[np.int64]


CHANGES = (
    "nothing",
    "one class moved",
    "label noise 30 %",
    "priors 2.5 : 1",
    "covariance × 1.15",
    "all features + 0.2 sd",
    "one feature + 0.5 sd",
    "two names swapped",
)


def spread(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """A function of every item, in as many processes as SOTDD_PROCESSES says."""
    count = int(os.environ.get("SOTDD_PROCESSES", "1"))
    return list(map(function, items) if count == 1 else _start_pool(count).map(function, items))


@cache
def _start_pool(count: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(count)  # kept, since compiled loops are loaded in every process


@dataclass(frozen=True, eq=False)
class Source:
    """A law of labelled points.

    Attributes
    ----------
    shares
        (C,) how frequent classes are.
    features
        Draws features (n, d) for labels (n,); rows of real tables are never used twice in one call.
    """

    shares: Doubles
    features: Callable[[np.random.Generator, Labels], Doubles]

    def sample(self, rng: np.random.Generator, n: int) -> Dataset:
        """Draw points with labels."""
        labels = rng.choice(len(self.shares), size=n, p=self.shares)
        return self.features(rng, labels), labels

    def pair(self, rng: np.random.Generator, sizes: tuple[int, int]) -> Pair:
        """Two samples."""
        features, labels = self.sample(rng, sum(sizes))
        return (features[: sizes[0]], labels[: sizes[0]]), (features[sizes[0] :], labels[sizes[0] :])


def equal_shares(n_classes: int) -> Doubles:
    """Classes that are all as frequent."""
    return np.full(n_classes, 1 / n_classes)


# ------------------------------------------------------------------ generated laws


def generated(
    n_classes: int, d: int, spread: float, noise: Callable[..., Doubles], shares: tuple[float, ...] = ()
) -> Source:
    """Classes around normal centres, with noise of some law."""
    centres = spread * np.random.default_rng(5).normal(size=(n_classes, d))
    return Source(
        np.array(shares) if shares else equal_shares(n_classes),
        lambda rng, labels: centres[labels] + noise(rng, (len(labels), d)),
    )


def normal(rng: np.random.Generator, shape: tuple[int, int]) -> Doubles:
    """Standard normal numbers."""
    return rng.normal(size=shape)


def words(n_classes: int = 10, d: int = 800) -> Source:
    """Counts as those of visual words (SURF): 800 features, mostly zero; every class has rates of its own."""
    rng = np.random.default_rng(5)
    rates = (0.1 * rng.gamma(1, 1, size=d) + 0.01) * np.exp(rng.normal(0, 0.3, (n_classes, d)))

    return Source(equal_shares(n_classes), lambda rng, labels: counts(rng, len(labels), rates[labels]))


# ------------------------------------------------------------------ real tables


def drawn_from(data: Dataset) -> Source:
    """Rows of a table, class by class without replacement."""
    values, of = data
    by_class = [np.flatnonzero(of == label) for label in range(int(of.max()) + 1)]

    def features(rng: np.random.Generator, labels: Labels) -> Doubles:
        found = np.empty((len(labels), values.shape[1]))
        for label, rows in enumerate(by_class):
            asked = labels == label
            found[asked] = values[rng.choice(rows, int(asked.sum()), replace=False)]
        return found

    return Source(np.bincount(of) / len(of), features)


def breast_cancer() -> Dataset:
    """Every feature by its own standard deviation, since units differ a thousandfold."""
    features, labels = table("breast_cancer")
    return (features - features.mean(axis=0)) / features.std(axis=0), labels


def news(n: int = 4000, d: int = 50) -> Dataset | None:
    """News in four classes as latent semantic vectors of their words; None where the texts are not at hand."""
    path = default_folder() / DATASETS["ag_news"].file
    if not path.is_file():
        return None
    import csv
    import gzip

    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        rows = [row for row, _ in zip(csv.DictReader(lines), range(n), strict=False)]
    found = TfidfVectorizer(stop_words="english", min_df=3).fit_transform([row["text"] for row in rows])
    labels = np.unique([row["label"] for row in rows], return_inverse=True)[1]
    return TruncatedSVD(d, random_state=0).fit_transform(found), labels.astype(np.int64)


def frames() -> dict[str, tuple[Any, str]]:
    """Tables as people have them, with categories, gaps and yes or no, each with its label column.

    They are those of scikit-learn, and CSV files in the folder "tables" of the data, as far as these are at hand.
    """
    import pandas as pd
    from sklearn import datasets

    found = {f"{name}, scikit-learn": (getattr(datasets, f"load_{name}")(as_frame=True).frame, "target")
             for name in ("iris", "wine", "breast_cancer")}  # fmt: skip
    labels = {"adult": "income", "german_credit": "risk", "titanic": "survived", "penguins": "species",
              "diamonds": "cut", "abalone": "rings", "banknote": "forged"}  # fmt: skip
    for name, label in labels.items():
        path = default_folder() / "tables" / f"{name}.csv.gz"
        if path.is_file():
            found[name] = pd.read_csv(path), label
    return found


# ------------------------------------------------------------------ all of them


@cache
def laws() -> dict[str, Source]:
    """What two samples of one law are drawn from."""
    return {
        "Gaussian classes": generated(4, 10, 1.2, normal),
        "t₃": generated(3, 10, 0.5, lambda rng, shape: rng.standard_t(3, size=shape)),
        "log-normal": generated(3, 4, 0.5, lambda rng, shape: np.exp(rng.normal(size=shape))),
        "imbalanced, 90 : 10": generated(2, 6, 1.0, normal, (0.9, 0.1)),
        "50 classes": generated(50, 6, 1.0, normal),
        "breast cancer": drawn_from(breast_cancer()),
        "digits": drawn_from(table("digits")),
        "sparse counts": words(),
    }


@cache
def sources() -> dict[str, Source]:
    """What the test is measured on; classes are all as frequent."""
    found = {name: laws()[name] for name in ("Gaussian classes", "breast cancer", "digits", "sparse counts")}
    texts = news()
    if texts is not None:
        found["news, as vectors"] = drawn_from(texts)
    return {name: Source(equal_shares(len(source.shares)), source.features) for name, source in found.items()}


def changed_pair(source: Source, change: str, rng: np.random.Generator, n: int) -> Pair:
    """Two samples of n points, the second one changed."""
    count = len(source.shares)
    weights = np.where((change == "priors 2.5 : 1") & (np.arange(count) < count // 2), 2.5, 1.0)
    labels = np.concatenate(
        [rng.choice(count, size=n, p=shares) for shares in (source.shares, weights / weights.sum())]
    )
    features = source.features(rng, labels)
    second = changed((features[n:], labels[n:]), change, count, rng)
    return (features[:n], labels[:n]), second


def changed(data: Dataset, change: str, n_classes: int, rng: np.random.Generator) -> Dataset:
    """A sample after a change; shares are none of its business."""
    features, labels = data
    spread, centre = features.std(axis=0), features.mean(axis=0)
    if change == "one class moved":
        features = features + 0.5 * spread * (labels == 0)[:, None]
    elif change == "label noise 30 %":
        labels = np.where(rng.random(len(labels)) < 0.3, rng.integers(n_classes, size=len(labels)), labels)
    elif change == "covariance × 1.15":
        features = centre + 1.15 * (features - centre)
    elif change == "all features + 0.2 sd":
        features = features + 0.2 * spread
    elif change == "one feature + 0.5 sd":
        features = features + 0.5 * spread * (np.arange(len(spread)) == np.argmax(spread))
    elif change == "two names swapped":
        labels = np.where(labels < 2, 1 - labels, labels)
    return features, labels
