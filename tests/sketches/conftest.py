"""Two datasets, and projections fitted on both."""

import pytest

import sotdd
from sketches.cases import labelled


@pytest.fixture
def pair(rng):
    return labelled(rng, 1500), labelled(rng, 1100, classes=7, shift=0.3)


@pytest.fixture
def projections(pair):
    return sotdd.Projections.fit(list(pair), n_projections=200, seed=3)
