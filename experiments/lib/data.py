"""The datasets behind one loader. What is not in the data folder is downloaded into it (`experiments.lib.files`)."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.lib.files import at_hand

NIST = ("mnist", "fashion_mnist", "emnist_letters", "kmnist", "usps")
TEXTS = ("ag_news", "dbpedia", "amazon_full", "amazon_polarity", "yelp_full", "yelp_polarity", "imdb")


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


def images(name: str, folder: Path, side: int | None = None, most: int | None = None) -> tuple[Images, Images]:
    """Train and test part of a set of pictures: at ``side`` pixels, and at most this many of each, if asked."""
    path = at_hand(name, folder)
    parts = _tiny_imagenet(path, most) if name == "tiny_imagenet" else _archived(path)
    chosen = [part.rows(_spread(len(part.y), most)) for part in parts] if most else parts
    train, test = (part if side is None else Images(resized(part.x, side), part.y) for part in chosen)
    return train, test


def _spread(count: int, most: int | None) -> NDArray[np.int64]:
    """Places spread evenly over all of them, so that every class has some."""
    return np.linspace(0, count - 1, min(count, most or count)).astype(np.int64)


def texts(name: str, folder: Path, *, apart: bool = False) -> tuple[Texts, Texts]:
    """Train and test part of a set of texts; a set with one part is cut in two, evenly and the same every time.

    Polarity is made of the stars. With ``apart`` each has half of the reviews, and they share none.
    """
    full = name.replace("polarity", "full")
    train, test = _tabulated(at_hand(full, folder))
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


def resized(x: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Pictures at another size, bilinear."""
    from PIL import Image

    if x.shape[1:3] == (side, side):
        return x
    return np.stack([np.asarray(Image.fromarray(one).resize((side, side), Image.Resampling.BILINEAR)) for one in x])


def _archived(path: Path) -> list[Images]:
    arrays = np.load(path)
    return [Images(arrays[f"X_{part}"], arrays[f"y_{part}"].astype(np.int64)) for part in _PARTS]


def _tiny_imagenet(path: Path, most: int | None) -> list[Images]:
    arrays = np.load(path)
    found = []
    for part in _PARTS:
        content, edges = arrays[f"jpeg_{part}"], arrays[f"offsets_{part}"]
        rows = _spread(len(edges) - 1, most)  # chosen before they are decoded, which takes longest
        pictures = [_decoded(content[edges[row] : edges[row + 1]].tobytes()) for row in rows]
        found.append(Images(np.stack(pictures), arrays[f"y_{part}"].astype(np.int64)[rows]))
    return found


def tiny_classes(folder: Path) -> list[str]:
    """What the classes of Tiny-ImageNet show, by label."""
    return [str(name) for name in np.load(at_hand("tiny_imagenet", folder))["class_names"]]


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
