"""Two datasets that differ in size, features and label sets."""

import numpy as np
import pytest


@pytest.fixture
def pair(rng):
    a = rng.normal(size=(60, 4)) + 2 * (np.arange(60) % 3)[:, None], np.arange(60) % 3
    b = rng.normal(0.5, 1.5, size=(45, 4)), rng.choice(["cat", "dog"], size=45)
    return a, b
