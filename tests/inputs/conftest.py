"""What the tests of inputs start from."""

import numpy as np
import pytest
from PIL import Image

from inputs.helpers import D, N


@pytest.fixture
def xy(rng):
    x = rng.normal(size=(N, D)).round(3)
    return x, np.array(["cat", "dog", "emu"])[rng.integers(3, size=N)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def hub():
    return pytest.importorskip("datasets")


@pytest.fixture
def photos(rng, tmp_path, monkeypatch):
    """A folder of small grey and colour images, by class."""
    monkeypatch.chdir(tmp_path)
    pixels = {}
    for kind, shape in [("grey", (6, 5)), ("colour", (6, 5, 3))]:
        for animal in ["cat", "dog"]:
            place = tmp_path / kind / animal
            place.mkdir(parents=True)
            for number in range(4):
                pixels[kind, animal, number] = rng.integers(256, size=shape).astype(np.uint8)
                Image.fromarray(pixels[kind, animal, number]).save(place / f"{number}.png")
    return pixels
