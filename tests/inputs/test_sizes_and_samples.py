"""Sizes and modes of images, and sizes of samples, mean the same for every source, in every call and command."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

import sotdd
from inputs.helpers import refusal
from inputs.items import Items
from sotdd import open_dataset


@pytest.fixture
def images(rng, folder):
    """Coloured images as bytes, in every form that holds them."""
    x, y = rng.integers(256, size=(12, 6, 8, 3)).astype(np.uint8), np.arange(12) % 2
    for number, image in enumerate(x):
        path = folder / "photos" / str(y[number]) / f"{number:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
    np.savez("x.npz", X=x, y=y)
    np.save("x.npy", x)
    np.save("y.npy", y)
    first = torch.from_numpy(x).movedim(3, 1)  # as torch orders axes
    return x, {
        "folder": "photos", "npz": "x.npz", "npy": "x.npy::label=y.npy", "arrays": (x, y), "tensor": (first, y),
        "Pillow": ([Image.fromarray(one) for one in x], y), "items": Items(zip(first, y, strict=True)),
        "loader": torch.utils.data.DataLoader(Items(zip(first, y, strict=True)), batch_size=5),
        "opened": open_dataset((x, y)),
    }  # fmt: skip


@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize("size", [(3, 4), (9, 5), 8])
def test_images_of_every_source_become_what_pillow_makes_of_them(images, size, mode):
    x, sources = images
    height, width = (size, size) if isinstance(size, int) else size
    expected = [Image.fromarray(one).convert(mode).resize((width, height), Image.Resampling.BILINEAR) for one in x]
    for source in sources.values():
        found = open_dataset(source, image_size=size, image_mode=mode)
        values = found.features[np.argsort(found.codes, kind="stable")]
        order = np.argsort(np.arange(12) % 2, kind="stable")
        apart = np.abs(values.astype(int) - np.stack(expected)[order].astype(int))
        assert found.features.dtype == np.uint8
        assert apart.max() <= 1  # where a half is rounded
        assert apart.mean() < 0.1


def test_floats_are_resized_as_bytes_are_but_for_rounding(images):
    x, _ = images
    for dtype in (np.float64, np.float32, np.float16, np.int64):
        for shape in ((12, 6, 8, 3), (12, 6, 8, 1), (12, 6, 8)):
            part = x[..., :1] if shape[-1] == 1 else x[..., 0] if len(shape) == 3 else x
            grey = open_dataset(part.astype(dtype), image_size=(3, 5), image_mode="L").features
            assert grey.dtype == (np.float64 if dtype == np.int64 else np.result_type(dtype, np.float32))
            np.testing.assert_allclose(grey, open_dataset(part, image_size=(3, 5), image_mode="L").features, atol=1.5)
    assert open_dataset(x[..., 0] / 255.0, image_mode="RGB").point_shape == (6, 8, 3)


def test_what_is_no_image_is_said_with_what_to_do(rng):
    assert "reshape the points to (n, 28, 28)" in refusal(np.zeros((3, 784)), image_size=28)
    assert "no images: leave it out" in refusal(np.zeros((3, 5)), image_mode="L")
    assert "no images: leave it out" in refusal(pd.DataFrame({"a": [1, 2]}), image_size=4)


def calls(a, b):
    """Every call that compares or keeps data, as a function of options of reading."""
    projections = sotdd.Projections.fit([np.zeros((2, 4, 4))], n_projections=16)
    few = {"n_projections": 16}
    yield "distance", lambda **how: sotdd.distance(a, b, **few, **how).n_points
    yield "through projections", lambda **how: sotdd.distance(a, b, projections=projections, seed=3, **how).n_points
    yield "otdd", lambda **how: sotdd.distance(a, b, method="otdd-gaussian", **how).n_points
    yield "peer", lambda **how: sotdd.peers.sliced_wasserstein(a, b, **how).n_points
    yield "paper", lambda **how: sotdd.paper(a, b, **few, **how).n_points
    yield "pairwise", lambda **how: sotdd.pairwise([a, b], **few, **how)["0", "1"].n_points
    yield "rank", lambda **how: sotdd.rank(a, [b], **few, **how)["0"].n_points
    yield "test", lambda **how: sotdd.test(a, b, n_permutations=19, **few, **how).n_points
    yield "explain", lambda **how: sotdd.explain(a, b, **few, **how).distance.n_points
    yield "sketch", lambda **how: (sotdd.sketch(a, projections, **how).n_points, 20)
    yield "reference", lambda **how: (sotdd.DriftReference.fit(a, **few, **how).n_points, 20)


def test_every_call_takes_the_size_of_images_and_of_samples(rng):
    a = rng.random((30, 6, 6)), np.arange(30) % 2
    b = rng.integers(256, size=(40, 3, 3)).astype(np.uint8), np.arange(40) % 3
    for name, call in calls(a, b):
        sizes = call(image_size=4, max_points=20)
        assert tuple(sizes) == (20, 20), name


@pytest.mark.slow
def test_every_command_takes_the_size_of_images_and_of_samples(rng, folder, run):
    np.savez("a.npz", X=rng.random((30, 6, 6)), y=np.arange(30) % 2)
    np.savez("b.npz", X=rng.integers(256, size=(40, 3, 3)).astype(np.uint8), y=np.arange(40) % 3)
    how = "--image-size 4 --image-mode L --max-points 20"
    for command in (
        "distance a.npz b.npz", "distance a.npz b.npz --method otdd-gaussian", "matrix a.npz b.npz", "rank a.npz b.npz",
        "explain a.npz b.npz", "test a.npz b.npz", "check a.npz b.npz", "sketch a.npz -o a.sotdd",
        "catalog add shop one a.npz", "catalog search shop b.npz",
    ):  # fmt: skip
        code, said, wrong = run(*command.split(), *how.split(), "--json")
        assert code < 2, wrong
        assert 20 in list_numbers(json.loads(said)), command


def list_numbers(found):
    """All numbers of a JSON value."""
    parts = found.values() if isinstance(found, dict) else found if isinstance(found, list) else ()
    return [*parts, *(number for part in parts for number in list_numbers(part))]
