"""The whole thing on real images, where they are at hand."""

import numpy as np
import pytest
from PIL import Image

import sotdd
from sotdd import LabelledData
from sotdd.engines.comparison import compare
from sotdd.engines.cpu.engine import CpuEngine


@pytest.fixture
def images(real_data):
    """Two halves of MNIST, Fashion-MNIST, KMNIST, and USPS brought to 28 pixels; 5,000 points each."""
    mnist = real_data("mnist")
    usps = real_data("usps")
    larger = np.stack([np.asarray(Image.fromarray(image).resize((28, 28))) for image in usps["X_train"][:5000]])
    sets = {
        "mnist 1": (mnist["X_train"][:5000], mnist["y_train"][:5000]),
        "mnist 2": (mnist["X_train"][5000:10_000], mnist["y_train"][5000:10_000]),
        "usps": (larger, usps["y_train"][:5000]),
    }
    for name in ("fashion_mnist", "kmnist"):
        arrays = real_data(name)
        sets[name] = (arrays["X_train"][:5000], arrays["y_train"][:5000])
    return sets


def test_halves_of_mnist_are_nearest(images):
    matrix = sotdd.pairwise(images)
    halves = matrix["mnist 1", "mnist 2"].value
    for other in ("fashion_mnist", "kmnist", "usps"):
        assert matrix["mnist 1", other].value > 5 * halves
        assert matrix["mnist 2", other].value > 5 * halves
    assert matrix.nearest("mnist 1") == "mnist 2"


def test_the_matrix_is_the_same_for_two_chunk_sizes(images):
    datasets = [LabelledData.of(data, name) for name, data in images.items()]
    projections = sotdd.Projections.fit(datasets, n_projections=300)
    pairs = [(i, j) for j in range(len(datasets)) for i in range(j)]
    large, small = (compare(datasets, pairs, projections, 2, engine=CpuEngine(chunk=chunk)) for chunk in (512, 64))
    for pair in pairs:
        np.testing.assert_array_equal(large[pair].per_projection, small[pair].per_projection)
