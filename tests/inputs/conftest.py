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
    pixels = {kind: rng.integers(256, size=(8, 6, 5, *more)).astype(np.uint8)
              for kind, more in (("grey", ()), ("colour", (3,)))}  # fmt: skip
    for kind, images in pixels.items():
        for number, image in enumerate(images):
            path = tmp_path / kind / ("cat" if number < 4 else "dog") / f"{number % 4}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(path)
    return pixels
