"""What several tests of measures need."""

import numpy as np
import pytest

import sotdd


@pytest.fixture(params=["shared", "own"])
def three(rng, request):
    datasets = [
        (rng.normal(shift, 1 + shift, size=(n, 9)), rng.integers(0, classes, size=n))
        for n, shift, classes in [(1200, 0, 4), (1200, 0.5, 2), (700, 1, 7)]
    ]
    return datasets, sotdd.Projections.fit(datasets, n_projections=200, label_directions=request.param)


@pytest.fixture
def centres():
    return 4.0 * np.random.default_rng(8).normal(size=(4, 6))
