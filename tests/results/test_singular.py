"""One of a thing is called one thing: no text says "1 points" or "1 classes"."""

import re

import numpy as np
import pytest

import sotdd
from sotdd.results.noise import NoiseFloor

ONE_OF_MANY = re.compile(
    r"\b1 (points|features|classes|projections|draws|splits|batches|steps|rates|moments|candidates|GPUs)\b"
)
X, Y = np.arange(12.0)[:, None], np.arange(12.0)[:, None] + 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (lambda: sotdd.Projections.fit([X], n_projections=1), "1 of 1 feature"),
        (lambda: sotdd.Scaler.fit([X]), "1 feature"),
        (lambda: sotdd.test(X, Y, n_permutations=1, n_projections=1), "1 draw, 1 projection"),
        (lambda: sotdd.DriftReference.fit(X[:1], n_projections=1, scale=None), "1 point in 1 class, 1 projection"),
        (lambda: sotdd.DriftReference.fit(X).monitor(2).after(Y[:1], n_permutations=9), "after 1 batch"),
        (lambda: sotdd.distance(X, Y, n_projections=1), "1 projection"),
        (lambda: NoiseFloor(np.array([0.5, 0.5]), 2.0), "2 splits"),
        (lambda: sotdd.ScaleStatistics().add(X[:1]), "1 point, 1 feature"),
    ],
)
def test_texts_count_in_the_singular(text, said):
    shown = repr(text())
    assert said in shown
    assert not ONE_OF_MANY.search(shown)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: sotdd.distance(X, Y, projections=sotdd.Projections.fit([np.zeros((2, 3))])),
            "has 1 feature but the projections are for 3",
        ),
        (lambda: sotdd.distance(np.eye(3), np.eye(3), scale=sotdd.Scaler.fit([X])), "the scaler is for 1 feature but"),
        (
            lambda: sotdd.Moments(2, sotdd.ZeroTruncatedPoisson((1.0,))),
            "1 rate for 2 moments: give one rate per moment",
        ),
        (
            lambda: sotdd.DriftReference.fit(X[:2]).monitor(2).after(Y[:1], n_permutations=9),
            "the batch has 1 point and",
        ),
    ],
)
def test_errors_count_in_the_singular(call, said):
    with pytest.raises(sotdd.SotddError, match=said) as raised:
        call()
    assert not ONE_OF_MANY.search(str(raised.value))
