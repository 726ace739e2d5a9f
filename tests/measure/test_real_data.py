"""The whole thing on real images."""

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

import sotdd
from sotdd import LabelledData
from sotdd.engines.comparison import compare
from sotdd.engines.cpu.engine import CpuEngine


@pytest.fixture
def images(pictures):
    """Two halves of MNIST, Fashion-MNIST, KMNIST, and scikit-learn's digits brought to 28 pixels; 300 points each."""
    mnist, digits = pictures("mnist"), load_digits()
    larger = [np.asarray(Image.fromarray(np.uint8(15 * image)).resize((28, 28))) for image in digits.images[:300]]
    sets = {
        "mnist 1": (mnist["X_train"][:300], mnist["y_train"][:300]),
        "mnist 2": (mnist["X_train"][300:], mnist["y_train"][300:]),
        "digits": (np.stack(larger), digits.target[:300]),
    }
    for name in ("fashion_mnist", "kmnist"):
        arrays = pictures(name)
        sets[name] = (arrays["X_train"], arrays["y_train"])
    return sets


def test_halves_of_mnist_are_nearest(images):
    matrix = sotdd.pairwise(images)
    halves = matrix["mnist 1", "mnist 2"].value
    for other in ("fashion_mnist", "kmnist", "digits"):
        assert matrix["mnist 1", other].value > 3 * halves
        assert matrix["mnist 2", other].value > 3 * halves
    assert matrix.nearest("mnist 1") == "mnist 2"


def test_the_matrix_is_the_same_for_two_chunk_sizes(images):
    datasets = [LabelledData.of(data, name) for name, data in images.items()]
    projections = sotdd.Projections.fit(datasets, n_projections=300)
    pairs = [(i, j) for j in range(len(datasets)) for i in range(j)]
    large, small = (compare(datasets, pairs, projections, 2, engine=CpuEngine(chunk=chunk)) for chunk in (512, 64))
    for pair in pairs:
        np.testing.assert_array_equal(large[pair].per_projection, small[pair].per_projection)
