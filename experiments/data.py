"""The datasets, from files at hand or as torchvision and Hugging Face download them, behind one loader."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

NIST = ("mnist", "fashion_mnist", "emnist_letters", "kmnist", "usps")
TEXTS = ("ag_news", "dbpedia", "amazon_full", "amazon_polarity", "yelp_full", "yelp_polarity", "imdb")

# File, then the class of torchvision.datasets and its arguments, train part first.
_IMAGES: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {
    "mnist": ("mnist.npz", "MNIST", {"train": True}, {"train": False}),
    "fashion_mnist": ("fashion_mnist.npz", "FashionMNIST", {"train": True}, {"train": False}),
    "kmnist": ("kmnist.npz", "KMNIST", {"train": True}, {"train": False}),
    "emnist_letters": (
        "emnist_letters.npz", "EMNIST", {"split": "letters", "train": True}, {"split": "letters", "train": False}
    ),
    "usps": ("usps.npz", "USPS", {"train": True}, {"train": False}),
    "cifar10": ("cifar10.npz", "CIFAR10", {"train": True}, {"train": False}),
}  # fmt: skip
_TINY = ("tiny_imagenet_subset.npz", "zh-plus/tiny-imagenet", "valid")

# File, then the repository and its columns of text; polarity is made of the stars.
_TEXTS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "ag_news": ("ag_news.csv.gz", "fancyzhx/ag_news", ("text",)),
    "dbpedia": ("dbpedia14.csv.gz", "fancyzhx/dbpedia_14", ("title", "content")),
    "amazon_full": ("amazon_review_full.csv.gz", "mteb/AmazonReviewsClassification", ("text",)),
    "yelp_full": ("yelp_review_full.csv.gz", "Yelp/yelp_review_full", ("text",)),
    "imdb": ("imdb_train2000.csv.gz", "stanfordnlp/imdb", ("text",)),
}


@dataclass(frozen=True, eq=False)
class Images:
    """Pictures (n, height, width) or (n, height, width, 3) of uint8, and labels 0, 1, … of them."""

    x: NDArray[np.uint8]
    y: NDArray[np.int64]

    def sample(self, size: int | None, seed: int = 0) -> Images:
        """A random sample of at most this many."""
        if size is None or size >= len(self.y):
            return self
        rows = np.sort(np.random.default_rng(seed).choice(len(self.y), size, replace=False))
        return self.rows(rows)

    def rows(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> Images:
        """Some of them."""
        return Images(self.x[rows], self.y[rows])


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts and labels 0, 1, … of them."""

    x: Sequence[str]
    y: NDArray[np.int64]

    def rows(self, rows: Iterable[int]) -> Texts:
        """Some of them."""
        chosen = list(rows)
        return Texts([self.x[row] for row in chosen], self.y[chosen])


def images(
    name: str, folder: Path, side: int | None = None, most: int | None = None, library: Any = None
) -> tuple[Images, Images]:
    """Train and test part of a set of pictures: at ``side`` pixels, and at most this many of each, if asked."""
    if name == "tiny_imagenet":
        parts = _tiny_imagenet(folder, most, library)
    else:
        file, kind, *wanted = _IMAGES[name]
        if (folder / file).exists():
            parts = _archived(folder / file)
        else:
            source = getattr(library or import_module("torchvision.datasets"), kind)
            parts = [from_torchvision(source(str(folder), download=True, **part)) for part in wanted]
        if name == "emnist_letters":
            parts = [Images(part.x, part.y - part.y.min()) for part in parts]
    chosen = [part.rows(_spread(len(part.y), most)) for part in parts] if most else parts
    train, test = (part if side is None else Images(resized(part.x, side), part.y) for part in chosen)
    return train, test


def _spread(count: int, most: int | None) -> NDArray[np.int64]:
    """Places spread evenly over all of them, so that every class has some."""
    return np.linspace(0, count - 1, min(count, most or count)).astype(np.int64)


def texts(name: str, folder: Path, library: Any = None, *, apart: bool = False) -> tuple[Texts, Texts]:
    """Train and test part of a set of texts; a set with one part is cut in two, evenly and the same every time.

    Polarity is made of the stars. With ``apart`` each has half of the reviews, and they share none.
    """
    full = name.replace("polarity", "full")
    file, repository, columns = _TEXTS[full]
    if (folder / file).exists():
        train, test = _tabulated(folder / file)
    else:
        source = library or import_module("datasets")
        train, test = (from_hugging_face(source.load_dataset(repository, split=part), columns) for part in _PARTS)
    if apart and full in _STARS:
        train, test = (_half(part, name.endswith("polarity")) for part in (train, test))
    if name.endswith("polarity"):
        return polarity(train), polarity(test)
    return train, test


def _half(part: Texts, second: bool) -> Texts:
    """Half of the reviews by what is written, so that a review that comes twice stays on one side."""
    return part.rows(row for row, text in enumerate(part.x) if zlib.crc32(text.encode()) % 2 == second)


_PARTS = ("train", "test")
_STARS = ("amazon_full", "yelp_full")


def polarity(stars: Texts) -> Texts:
    """Reviews of one and two stars against four and five; three are left out."""
    kept = stars.rows(np.flatnonzero(stars.y != 2))
    return Texts(kept.x, (kept.y > 2).astype(np.int64))


def from_torchvision(dataset: Any) -> Images:
    """Anything with ``data`` and ``targets``, arrays or tensors."""
    x, y = np.asarray(dataset.data), np.asarray(dataset.targets)
    if type(dataset).__name__ == "EMNIST":  # torchvision keeps these letters lying on their side
        x = x.transpose(0, 2, 1)
    return Images(np.ascontiguousarray(x, np.uint8), y.astype(np.int64))


def from_hugging_face(dataset: Any, columns: Sequence[str]) -> Texts:
    """Anything whose columns are read by name."""
    parts = [list(dataset[column]) for column in columns]
    return Texts([" ".join(row) for row in zip(*parts, strict=True)], np.asarray(dataset["label"], np.int64))


def resized(x: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Pictures at another size, bilinear."""
    from PIL import Image

    if x.shape[1:3] == (side, side):
        return x
    return np.stack([np.asarray(Image.fromarray(one).resize((side, side), Image.Resampling.BILINEAR)) for one in x])


def _archived(path: Path) -> list[Images]:
    arrays = np.load(path)
    return [Images(arrays[f"X_{part}"], arrays[f"y_{part}"].astype(np.int64)) for part in _PARTS]


def _tiny_imagenet(folder: Path, most: int | None, library: Any) -> list[Images]:
    file, repository, second = _TINY
    if (folder / file).exists():
        arrays = np.load(folder / file)
        found = []
        for part in _PARTS:
            content, edges = arrays[f"jpeg_{part}"], arrays[f"offsets_{part}"]
            rows = _spread(len(edges) - 1, most)  # chosen before they are decoded, which takes longest
            pictures = [_decoded(content[edges[row] : edges[row + 1]].tobytes()) for row in rows]
            found.append(Images(np.stack(pictures), arrays[f"y_{part}"].astype(np.int64)[rows]))
        return found
    source = library or import_module("datasets")
    parts = [source.load_dataset(repository, split=part) for part in ("train", second)]
    return [
        Images(
            np.stack([np.asarray(picture.convert("RGB")) for picture in part["image"]]),
            np.asarray(part["label"], np.int64),
        )
        for part in parts
    ]


def tiny_classes(folder: Path) -> list[str]:
    """What the classes of Tiny-ImageNet show, by label."""
    path = folder / _TINY[0]
    if not path.exists():
        raise FileNotFoundError(f"expected names of classes in {path}, which is not there: put that file there.")
    return [str(name) for name in np.load(path)["class_names"]]


def _decoded(content: bytes) -> NDArray[np.uint8]:
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))


def _tabulated(path: Path) -> tuple[Texts, Texts]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    parts = {row["split"] for row in rows}
    if len(parts) == 1:
        order = np.random.default_rng(0).permutation(len(rows))
        for place, row in enumerate(order):
            rows[row]["split"] = _PARTS[place % 2]
    found = []
    for part in _PARTS:
        chosen = [row for row in rows if row["split"] == part]
        joined = [f"{row['title']} {row['text']}".strip() for row in chosen]
        found.append(Texts(joined, np.array([int(row["label"]) for row in chosen])))
    return found[0], found[1]
