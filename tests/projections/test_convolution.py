"""Convolution stacks composed into directions."""

import numpy as np
import pytest
import torch

import sotdd
from sotdd.projections.convolution import PAPER_28, PAPER_32, compose


def convolved(images, kernels, strides):
    """The stack as convolutions, by torch, in float64: images (n, C, h, w) to values (B, n)."""
    values = torch.tensor(images, dtype=torch.float64)
    for depth, (kernel, stride) in enumerate(zip(kernels, strides, strict=True)):
        groups = 1 if depth == 0 else len(kernel)
        values = torch.nn.functional.conv2d(
            values, torch.tensor(kernel, dtype=torch.float64), stride=stride, groups=groups
        )
    assert values.shape[2:] == (1, 1)
    return values[:, :, 0, 0].T.numpy()


@pytest.mark.parametrize(("name", "preset"), [("sotdd_conv28", PAPER_28), ("sotdd_conv32", PAPER_32)])
def test_authors_stacks(authors, name, preset):
    known = authors(name)
    strides = [(int(s), int(s)) for s in known["strides"]]
    kernels = [known[f"kernel{i}"] for i in range(len(strides))]
    assert [layer.kernel for layer in preset] == [kernel.shape[2:] for kernel in kernels]
    assert [layer.stride for layer in preset] == strides
    theta = compose(kernels, strides, known["X0"].shape[2:]).reshape(48, -1)
    for side in "01":
        flat = known[f"X{side}"].reshape(len(known[f"X{side}"]), -1)
        np.testing.assert_allclose(flat @ theta.T, known[f"projected{side}"], atol=1e-5)
    projections = sotdd.Projections.from_arrays(theta=theta, psi=known["psi"], orders=known["orders"], clamp=5.0)
    result = sotdd.distance((known["X0"], known["y0"]), (known["X1"], known["y1"]), projections=projections)
    np.testing.assert_allclose(np.sqrt(result.per_projection), known["w_p2_01"], rtol=1e-4)


def test_digits_by_convolutions_are_a_sane_distance_apart(pictures):
    """Without the cut this was 1.1e8: one projection in a thousand made the number."""
    mnist, kmnist = ((known["X_train"][:300], known["y_train"][:300]) for known in map(pictures, ("mnist", "kmnist")))
    found = [
        sotdd.distance(mnist, kmnist, directions=sotdd.projections.Convolution((1, 28, 28)), seed=s) for s in range(2)
    ]
    assert np.mean([float(one) for one in found]) == pytest.approx(0.63, abs=0.08)
    assert all(one.stderr < 0.15 * one.value for one in found)


@pytest.mark.parametrize(
    ("shape", "kernels"),
    [
        ((1, 28, 28), "auto"),
        ((3, 32, 32), "auto"),
        ((3, 64, 64), "stride"),
        ((2, 28, 28), "stride"),
        ((1, 17, 40), "auto"),
        ((3, 7, 5), "auto"),
        ((1, 1, 9), "auto"),
    ],
)
def test_a_direction_is_what_the_convolutions_do(rng, shape, kernels):
    law = sotdd.projections.Convolution(shape, kernels)
    images = rng.normal(size=(5, *shape))
    drawn = [rng.normal(size=(4, shape[0] if i == 0 else 1, *layer.kernel)) for i, layer in enumerate(law.layers)]
    strides = [layer.stride for layer in law.layers]
    theta = compose(drawn, strides, shape[1:]).reshape(4, -1)
    np.testing.assert_allclose(theta @ images.reshape(5, -1).T, convolved(images, drawn, strides), atol=1e-10)


@pytest.mark.parametrize(
    "size", [(28, 28), (32, 32), (64, 64), (224, 224), (33, 100), (1, 7), (5, 5), (6, 300), (2, 2), (1, 1)]
)
def test_the_stride_form_sees_every_pixel(rng, size):
    theta = sotdd.projections.Convolution(size, "stride").draw(rng, 3, size[0] * size[1]).theta
    assert (theta != 0).all()


def test_presets_are_chosen_by_size():
    assert sotdd.projections.Convolution((28, 28)).layers == PAPER_28
    assert sotdd.projections.Convolution((3, 32, 32)).layers == PAPER_32
    assert sotdd.projections.Convolution((32, 32, 3), channels="last").layers == PAPER_32
    assert sotdd.projections.Convolution((64, 64)).layers == sotdd.projections.Convolution((64, 64), "stride").layers


def test_channels_last_is_the_same_map_of_other_memory(rng):
    images = rng.normal(size=(20, 3, 32, 32))
    first = sotdd.distance(images, images * 2, directions=sotdd.projections.Convolution((3, 32, 32)), n_projections=64)
    last = np.moveaxis(images, 1, -1)
    law = sotdd.projections.Convolution((32, 32, 3), channels="last")
    again = sotdd.distance(last, last * 2, directions=law, n_projections=64)
    np.testing.assert_allclose(first.per_projection, again.per_projection, rtol=1e-4)


@pytest.mark.parametrize(
    ("points", "shape"),
    [((3, 32, 32), (3, 32, 32)), ((3072,), (3, 32, 32)), ((28, 28, 1), (28, 28)), ((28, 28), np.array([1, 28, 28]))],
)
def test_shapes_that_match(points, shape):
    x = np.zeros((2, *points))
    assert sotdd.distance(x, x, directions=sotdd.projections.Convolution(shape), n_projections=1).value == 0


@pytest.mark.parametrize("points", [(32, 32, 3), (3, 31, 32), (784,), (3, 1024)])
def test_shapes_that_do_not_match(points):
    x = np.zeros((2, *points))
    with pytest.raises(sotdd.SotddError, match="image_shape"):
        sotdd.distance(x, x, directions=sotdd.projections.Convolution((3, 32, 32)))
    good = sotdd.Projections.fit([np.zeros((2, 3, 32, 32))], directions=sotdd.projections.Convolution((3, 32, 32)))
    with pytest.raises(sotdd.SotddError, match=r"image_shape|features"):
        sotdd.distance(x, x, projections=good)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((28,), "image_shape"),
        ((np.array(4),), "image_shape"),  # which NumPy calls iterable
        (((1, 2, 3, 4),), "image_shape"),
        (((0, 28),), "image_shape"),
        (((28, 28), "deep"), "kernels is 'deep'"),
        (((8, 8), [(8, 1)]), "kernels is a list"),
        (((28, 28), "auto", -1.0), "clamp"),
        (((28, 28), "auto", None, "middle"), "channels"),
    ],
)
def test_settings_are_checked(arguments, said):
    with pytest.raises(sotdd.SotddError, match=said):
        sotdd.projections.Convolution(*arguments)
