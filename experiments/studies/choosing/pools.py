"""The examples of every base: some for its source, some to learn from as a target, some to test on. None is in two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.lib import data
from experiments.studies.choosing import design
from experiments.studies.choosing.design import PICTURES, WORDS

Labels = NDArray[np.int64]

SIDE, NUMBERS, TOKENS = 28, 128, 128  # pixels of a picture, numbers of counted words, tokens that the encoder sees
PARTS = ("source", "pool", "test")
_STEPS = 16  # levels of one standard deviation: embeddings are kept in one byte a number


@dataclass(frozen=True, eq=False)
class Set:
    """Points as float32, and labels from 0 on."""

    x: NDArray[np.float32]
    y: Labels

    @property
    def classes(self) -> int:
        """How many there are."""
        return int(self.y.max()) + 1

    def flat(self) -> NDArray[np.float32]:
        """Points as rows of numbers."""
        return self.x.reshape(len(self.x), -1)

    def few(self, shots: int, seed: int) -> Set:
        """At most this many examples of each class."""
        rng = np.random.default_rng((seed, shots))
        rows = [rng.permutation(np.flatnonzero(self.y == label))[:shots] for label in range(self.classes)]
        return Set(self.x[np.concatenate(rows)], self.y[np.concatenate(rows)])


@dataclass(frozen=True, eq=False)
class Base:
    """A dataset in its three parts."""

    source: Set
    pool: Set
    test: Set


def deal(y: Labels, name: str, size: int) -> dict[str, tuple[NDArray[np.int64], Labels]]:
    """Rows and new labels of the three parts.

    The target has at most eight classes, at random among those with at least 120 examples and then by size; the source
    has those and more, up to twenty.
    """
    rng = np.random.default_rng(design.seed_of(name))
    counts = np.bincount(y)
    order = np.lexsort((rng.random(len(counts)), -np.minimum(counts, 120)))
    order = order[counts[order] > 0]
    target, wide = order[: design.TARGET_CLASSES], order[: design.SOURCE_CLASSES]
    rows: dict[str, list[NDArray[np.int64]]] = {part: [] for part in PARTS}
    for label in wide:
        mine = rng.permutation(np.flatnonzero(y == label))
        pool = min(design.POOL, int(0.4 * len(mine))) if label in target else 0
        test = min(design.TESTED // len(target), int(0.3 * len(mine))) if label in target else 0
        for part, chosen in zip(PARTS, np.split(mine, [len(mine) - pool - test, len(mine) - test]), strict=True):
            rows[part].append(chosen)
    rows["source"] = [rng.permutation(np.concatenate(rows["source"]))[:size]]
    few, kept = np.bincount(y[rows["source"][0]], minlength=len(counts)), wide
    kept = wide[few[wide] >= 3]  # a class with fewer examples is none
    rows["source"] = [rows["source"][0][np.isin(y[rows["source"][0]], kept)]]
    places = {"source": np.sort(kept), "pool": np.sort(target), "test": np.sort(target)}
    together = {part: np.concatenate(chosen) for part, chosen in rows.items()}
    return {part: (chosen, np.searchsorted(places[part], y[chosen])) for part, chosen in together.items()}


# --------------------------------------------------------------------------- reading


def _pictures(name: str, folder: Path) -> tuple[NDArray[np.uint8], Labels]:
    path = folder / "images" / f"{name}.npz"
    if path.exists():
        arrays = np.load(path)
        return arrays["x"], arrays["y"].astype(np.int64)
    parts = data.images(name, folder)
    return np.concatenate([part.x for part in parts]), np.concatenate([part.y for part in parts])


def _texts(name: str, folder: Path) -> tuple[Sequence[str], Labels]:
    path = folder / "texts" / f"{name}.csv.gz"
    if path.exists():
        import pandas

        table = pandas.read_csv(path, keep_default_na=False)
        return table["text"].tolist(), np.unique(table["label"].astype(str), return_inverse=True)[1]
    parts = data.texts(name, folder)
    return [text for part in parts for text in part.x], np.concatenate([part.y for part in parts])


def _as_bytes(x: NDArray[np.floating]) -> NDArray[np.int8]:
    """Standardised by one centre and spread for all numbers, and rounded."""
    return np.clip(np.rint((x - x.mean()) / x.std() * _STEPS), -127, 127).astype(np.int8)


def prepare(domain: str, folder: Path, cache: Path, bases: Sequence[str]) -> Path:
    """Write what a domain needs of its files into one file of the cache, unless it is there."""
    path = cache / f"choosing_{domain}.npz"
    if path.exists():
        return path
    arrays: dict[str, NDArray[np.generic]] = {}
    texts: dict[str, list[str]] = {}
    for base in bases:
        size = design.source_size(domain, base)
        x, y = _pictures(base, folder) if domain == PICTURES else _texts(base, folder)
        for part, (rows, labels) in deal(y, base, size).items():
            arrays[f"{base}_{part}_y"] = labels.astype(np.uint8)
            if isinstance(x, np.ndarray):
                arrays[f"{base}_{part}_x"] = data.resized(x[rows], SIDE)
            else:
                texts[f"{base}_{part}_x"] = [x[row] for row in rows]
    if texts:
        every = [text for part in texts.values() for text in part]
        points = _as_bytes(count_words(every) if domain == WORDS else encode(every))
        edges = np.cumsum([len(part) for part in texts.values()])[:-1]
        arrays |= dict(zip(texts, np.split(points, edges), strict=True))
    cache.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type]
    return path


def count_words(texts: Sequence[str]) -> NDArray[np.floating]:
    """Hashed words weighted by rarity, brought to fewer numbers: nothing is pretrained, no label is seen."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
    from sklearn.pipeline import make_pipeline

    words = HashingVectorizer(n_features=2**15, alternate_sign=False, norm=None, binary=True)
    numbers = TruncatedSVD(NUMBERS, n_iter=3, random_state=0)
    return np.asarray(make_pipeline(words, TfidfTransformer(sublinear_tf=True), numbers).fit_transform(texts))


def encode(texts: Sequence[str]) -> NDArray[np.floating]:
    """Mean token of the sentence encoder MiniLM-L6 (384 numbers), short texts together."""
    import torch

    from experiments.lib import networks

    model = networks.TextClassifier(networks.sentence_encoder("cpu"), 1).eval()
    order = np.argsort([len(text) for text in texts])
    found = np.empty((len(texts), 384), np.float32)
    with torch.inference_mode():
        for rows in np.array_split(order, max(1, len(texts) // 64)):
            found[rows] = model.embed(networks.tokenise([texts[row] for row in rows], TOKENS)).numpy()
    return found


# --------------------------------------------------------------------------- using


def load(domain: str, cache: Path) -> dict[str, Base]:
    """The bases of a domain from the cache; pictures are (n, 28, 28, 3) from −1 to 1."""
    arrays = np.load(cache / f"choosing_{domain}.npz")
    names = dict.fromkeys(key.removesuffix("_source_y") for key in arrays.files if key.endswith("_source_y"))

    def part(name: str) -> Set:
        x = arrays[f"{name}_x"]
        if domain != PICTURES:
            return Set(x.astype(np.float32) / _STEPS, arrays[f"{name}_y"].astype(np.int64))
        shown = np.repeat(x[..., None], 3, axis=3) if x.ndim == 3 else x
        return Set(shown.astype(np.float32) / 127.5 - 1, arrays[f"{name}_y"].astype(np.int64))

    return {name: Base(*(part(f"{name}_{kind}") for kind in PARTS)) for name in names}


def sources(domain: str, bases: dict[str, Base]) -> dict[str, Set]:
    """Every base's source by its name, then the variants: a quarter of the points, half or all labels permuted."""
    found = {name: base.source for name, base in bases.items()}
    for name in (name for name in design.VARIED[domain] if name in bases):
        x, y = found[name].x, found[name].y
        for variant in design.VARIANTS:
            rng = np.random.default_rng(design.seed_of(f"{name}, {variant}"))
            if variant == "quarter":
                rows = rng.permutation(len(y))[: len(y) // 4]
                found[f"{name}, {variant}"] = Set(x[rows], np.unique(y[rows], return_inverse=True)[1])
            else:
                wrong = y.copy()
                rows = rng.permutation(len(y))[: len(y) // (2 if variant == "half wrong" else 1)]
                wrong[rows] = rng.permutation(wrong[rows])
                found[f"{name}, {variant}"] = Set(x, wrong)
    return found
