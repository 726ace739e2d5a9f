"""What stands for an example: embeddings of its texts, how its two texts differ, its words, or what a head would learn.

- **whole**: the sentence encoder's embedding of both texts as one.
- **two**: the embeddings u, v of the two texts side by side; v is zero where there is one text.
- **difference**: |u − v|. **product**: u · v, number by number. **relation**: both.
- **words**: hashed words, by rarity, brought to 256 numbers. **word pairs**: the same of pairs, a word from each text.
- **gradient**: how the example would move its input, by a linear head fitted to the task: Σ_c (1[y = c] − P(c)) w_c
  on u, v, |u − v| and u · v. The head is fitted to one half of the examples and read on the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.studies.taskweb.tasks import Task

Floats = NDArray[np.float64]

FEATURES = ("whole", "two", "difference", "product", "relation", "words", "word pairs", "gradient")
_HASHED = 2**16
_NUMBERS = 256
_MOST_WORDS = 30  # of each text that are paired


def embedded(tasks: Mapping[str, Task], path: Path, length: int = 128) -> dict[str, Floats]:
    """The encoder's embeddings, task by task: (3, n, 384) of whole, first and second; kept in a file."""
    stored = dict(np.load(path)) if path.exists() else {}
    for name, task in tasks.items():
        if name not in stored or stored[name].shape[1] != len(task.labels):
            parts = (task.whole, task.first, task.second)
            stored[name] = np.stack([_encoded(part, length) for part in parts]).astype(np.float16)
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savez(path, **stored)
    return {name: stored[name].astype(np.float64) for name in tasks}


def _encoded(texts: Sequence[str], length: int) -> NDArray[np.float32]:
    """(n, 384) of length 1; zero for empty texts. Texts of like length go together, so that little is padded."""
    import torch

    from experiments.lib.networks import TextClassifier, sentence_encoder, tokenise

    model = TextClassifier(sentence_encoder("cpu"), 2).eval()
    tokens = tokenise(texts, length)
    order = torch.argsort((tokens > 0).sum(dim=1))
    found = np.zeros((len(texts), 384), np.float32)
    with torch.inference_mode():
        for rows in torch.split(order, 64):
            found[rows.numpy()] = torch.nn.functional.normalize(model.embed(tokens[rows])).numpy()
    found[[not text for text in texts]] = 0
    return found


def made(tasks: Mapping[str, Task], embeddings: Mapping[str, Floats]) -> dict[str, dict[str, Floats]]:
    """By feature and task: (n, numbers)."""
    found: dict[str, dict[str, Floats]] = {name: {} for name in FEATURES}
    relations = {name: _relation(*embeddings[name][1:]) for name in tasks}
    centre = np.concatenate([*relations.values()])
    mean, spread = centre.mean(axis=0), centre.std(axis=0) + 1e-9
    for name, task in tasks.items():
        whole, u, v = embeddings[name]
        found["whole"][name] = whole
        found["two"][name] = np.hstack([u, v])
        found["difference"][name] = np.abs(u - v)
        found["product"][name] = u * v
        found["relation"][name] = np.hstack([np.abs(u - v), u * v])
        found["gradient"][name] = gradients((relations[name] - mean) / spread, task.labels)
    found["words"] = _hashed({name: [text.lower().split() for text in task.whole] for name, task in tasks.items()})
    found["word pairs"] = _hashed({name: _pairs(task) for name, task in tasks.items()})
    return found


def _relation(u: Floats, v: Floats) -> Floats:
    return np.hstack([u, v, np.abs(u - v), u * v])


def gradients(x: Floats, labels: NDArray[np.int64], seed: int = 0) -> Floats:
    """How a linear head, fitted to the other half of the examples, would move each of them: (n, numbers of x)."""
    found = np.zeros_like(x)
    halves = np.random.default_rng(seed).permutation(len(labels)) % 2
    for half in (0, 1):
        there = halves == half
        head, classes = fitted(x[~there], labels[~there])
        known = np.isin(labels, classes) & there
        places = np.searchsorted(classes, labels[known])
        missed = np.eye(len(classes))[places] - head.probabilities(x[known])
        found[known] = missed @ head.weights
    return found


class Head:
    """A multinomial logistic regression: weights (classes, numbers)."""

    def __init__(self, weights: Floats, offsets: Floats) -> None:
        self.weights, self.offsets = weights, offsets

    def probabilities(self, x: Floats) -> Floats:
        """(n, classes)."""
        scores = x @ self.weights.T + self.offsets
        scores -= scores.max(axis=1, keepdims=True)
        powers = np.exp(scores)
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def fitted(x: Floats, labels: NDArray[np.int64], strength: float = 1e-2) -> tuple[Head, NDArray[np.int64]]:
    """A head by scikit-learn, and the classes that it knows in the order of its weights."""
    from sklearn.linear_model import LogisticRegression

    model: Any = LogisticRegression(C=strength, max_iter=500).fit(x, labels)
    weights, offsets = model.coef_, model.intercept_
    if len(model.classes_) == 2:  # scikit-learn keeps one line of two
        weights, offsets = np.vstack([-weights, weights]) / 2, np.concatenate([-offsets, offsets]) / 2
    return Head(weights, offsets), model.classes_


def _pairs(task: Task) -> list[list[str]]:
    """One word from each text, every pair of them; the words themselves where there is one text."""
    found = []
    for first, second in zip(task.first, task.second, strict=True):
        a, b = (list(dict.fromkeys(text.lower().split()))[:_MOST_WORDS] for text in (first, second))
        found.append([f"{one}|{other}" for one, other in product(a, b)] if b else a)
    return found


def _hashed(texts: Mapping[str, Sequence[Sequence[str]]]) -> dict[str, Floats]:
    """Counts of hashed words as few numbers, fitted to all tasks without their labels."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
    from sklearn.pipeline import make_pipeline

    everything = [words for task in texts.values() for words in task]
    hashed = HashingVectorizer(n_features=_HASHED, alternate_sign=False, norm=None, binary=True, analyzer=_as_it_is)
    numbers = min(_NUMBERS, len(everything) - 1)
    embed = make_pipeline(hashed, TfidfTransformer(sublinear_tf=True), TruncatedSVD(numbers, n_iter=3, random_state=0))
    found = embed.fit_transform(everything)
    edges = np.cumsum([len(task) for task in texts.values()])[:-1]
    return dict(zip(texts, np.split(found, edges), strict=True))


def _as_it_is(words: Sequence[str]) -> Sequence[str]:
    return words
