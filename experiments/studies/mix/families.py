"""The sources of each family, as rows of numbers by name; and texts with their polarity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.studies.mix import design

Rows = NDArray[np.float32] | Any  # a frame of a table
_MOST, _SIDE, _NUMBERS = 6000, 14, 64
_POLAR = {"neg": 0, "negative": 0, "pos": 1, "positive": 1, "0": 0, "1": 0, "3": 1, "4": 1}


def load(family: str, folder: Path) -> dict[str, Rows]:
    """The sources of a family by name."""
    return {name: rows for name, rows in _sources(family, folder) if len(rows) >= 40}


def _sources(family: str, folder: Path) -> Iterator[tuple[str, Rows]]:
    if family == "picture sets":
        for name in design.PICTURES:
            yield name, pictures(name, folder)[0]
    elif family == "twins":
        for name in ("mnist", "usps", "kmnist", "notmnist"):
            x = pictures(name, folder)[0]
            yield from ((f"{name} {half}", x[half::2]) for half in (0, 1))
    elif family == "fifty":
        for name in ("mnist", "fashion_mnist", "kmnist", "emnist_letters"):
            x, y = pictures(name, folder, 40_000)
            yield from ((f"{name} {label}", x[y == label][:_MOST]) for label in np.unique(y)[:20])
    elif family.endswith(" classes") and family.split(maxsplit=1)[0] in ("mnist", "fashion", "cifar10"):
        x, y = pictures(
            {"fashion": "fashion_mnist"}.get(family.split(maxsplit=1)[0], family.split(maxsplit=1)[0]), folder, 40_000
        )
        yield from ((str(label), x[y == label]) for label in np.unique(y))
    elif family in ("adult occupations", "diamonds clarity", "diamonds cut"):
        yield from _tables(family, folder)
    else:
        yield from _texts(family, folder)


def _texts(family: str, folder: Path) -> Iterator[tuple[str, Rows]]:
    sets = {"text sets": design.TEXTS, "tweets": design.TWEETS}.get(family)
    if sets is not None:
        read = {name: read_texts(name, folder)[0] for name in sets}
    else:
        texts, labels = read_texts(
            {"newsgroups": "newsgroups20"}.get(family, family.split(maxsplit=1)[0]), folder, 24_000
        )
        names = np.array(labels)
        read = {str(name): list(np.array(texts, object)[names == name]) for name in np.unique(names)}
    vectors = encode([text for texts in read.values() for text in texts])
    edges = np.cumsum([0, *map(len, read.values())])
    yield from zip(read, (vectors[a:b] for a, b in pairwise(edges)), strict=True)


def encode(texts: Sequence[str]) -> NDArray[np.float32]:
    """TF-IDF, then the leading directions: learnt from these texts, without labels."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    counted = TfidfVectorizer(sublinear_tf=True, min_df=3, max_features=20_000).fit_transform(texts)
    return np.asarray(TruncatedSVD(_NUMBERS, random_state=0, n_iter=3).fit_transform(counted), np.float32)


def _tables(family: str, folder: Path) -> Iterator[tuple[str, Rows]]:
    import pandas as pd

    name, column = family.split()
    column = column.removesuffix("s")
    table = pd.read_csv(folder / "tables" / f"{name}.csv.gz", na_values=["?"])
    drop = [column, *(["fnlwgt", "income"] if name == "adult" else [])]
    yield from ((str(value), part.drop(columns=drop)) for value, part in table.groupby(column) if len(part) >= 400)


@cache
def pictures(name: str, folder: Path, most: int = 2 * _MOST) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Grey pictures of 14 × 14 as rows from 0 to 1, in a random order, and their labels."""
    from PIL import Image

    path = next(one for one in (folder / f"{name}.npz", folder / "images" / f"{name}.npz") if one.exists())
    with np.load(path) as held:
        x, y = (held["X_train"], held["y_train"]) if "X_train" in held else (held["x"], held["y"])
    order = np.random.default_rng(0).permutation(len(x))[:most]
    x, y = x[order], y[order].astype(np.int64)
    grey = x if x.ndim == 3 else x[..., 0] if x.shape[-1] == 1 else x.mean(axis=-1).astype(np.uint8)
    small = [np.asarray(Image.fromarray(one).resize((_SIDE, _SIDE), Image.Resampling.BILINEAR)) for one in grey]
    return np.stack(small).reshape(len(small), -1).astype(np.float32) / 255, y


@cache
def read_texts(name: str, folder: Path, most: int = _MOST) -> tuple[list[str], list[str]]:
    """Texts of a set in a random order, and their labels."""
    import pandas as pd

    names = {
        "dbpedia": "dbpedia14",
        "amazon": "amazon_review_full",
        "yelp": "yelp_review_full",
        "imdb": "imdb_train2000",
    }
    file = f"{names.get(name, name)}.csv.gz"
    path = next(one for one in (folder / file, folder / "texts" / file) if one.exists())
    table = pd.read_csv(path, dtype=str, keep_default_na=False).sample(frac=1, random_state=0)[:most]
    title = table["title"] + " " if "title" in table else ""
    return (title + table["text"]).tolist(), table["label"].tolist()


def polar(folder: Path) -> Mapping[str, tuple[list[str], NDArray[np.int64]]]:
    """Texts of every set of reviews that are clearly negative (0) or positive (1)."""
    found = {}
    for name in design.REVIEWS:
        meaning = {"0": 0, "1": 1} if name == "imdb" else _POLAR
        texts, labels = read_texts(name, folder)
        kept = [(text, meaning[label]) for text, label in zip(texts, labels, strict=True) if label in meaning]
        found[name] = [text for text, _ in kept], np.array([label for _, label in kept])
    return found
