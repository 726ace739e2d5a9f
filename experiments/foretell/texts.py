"""Texts as points: hashed words, weighted by how rare they are, brought to a few hundred numbers. Computed once.

Nothing of it is pretrained, so nothing that a network learns on a source was known before.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments import data

FILE = "foretell_texts.npz"
BASES = {"news": "ag_news", "encyclopaedia": "dbpedia", "films": "imdb", "places": "yelp_full", "goods": "amazon_full"}
FORMS = ("clean", "dropped", "short")
FEATURES = 256
_MOST = 3400
_SHORT = 8  # words
_HASHED = 2**15


def formed(text: str, form: str, rng: np.random.Generator) -> str:
    """A text whole, with half of its words dropped, or only its first words."""
    words = text.split()
    if form == "short":
        return " ".join(words[:_SHORT])
    if form == "dropped":
        return " ".join(word for word, keep in zip(words, rng.random(len(words)) < 0.5, strict=True) if keep)
    return text


def prepare(folder: Path, cache: Path) -> Path:
    """Make the points unless they are there; the path of the file."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
    from sklearn.pipeline import make_pipeline

    path = cache / FILE
    if path.exists():
        return path
    rng = np.random.default_rng(0)
    arrays: dict[str, NDArray[np.generic]] = {}
    chosen: dict[str, list[str]] = {}
    for base, name in BASES.items():
        train, test = data.texts(name, folder)
        texts, labels = [*train.x, *test.x], np.concatenate([train.y, test.y])
        rows = rng.permutation(len(texts))[:_MOST]
        chosen[base], arrays[f"{base}_labels"] = [texts[row] for row in rows], labels[rows]
    words = HashingVectorizer(n_features=_HASHED, alternate_sign=False, norm=None, binary=True)
    embed = make_pipeline(words, TfidfTransformer(sublinear_tf=True), TruncatedSVD(FEATURES, n_iter=3, random_state=0))
    embed.fit([text for texts in chosen.values() for text in texts])
    for base, texts in chosen.items():
        for form in FORMS:
            found = embed.transform([formed(text, form, rng) for text in texts])
            arrays[f"{base}_{form}"] = found.astype(np.float16)
    cache.mkdir(parents=True, exist_ok=True)
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return path
