"""Convolution stacks as directions: the projection of images that the paper uses.

A stack of convolutions without bias that ends in one pixel is a linear map of the image,
so the whole stack is one direction. It is found by sending a single one backwards through
the stack; from there on images are projected by a matrix product like any other data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, check_choice, check_count, check_limit, describe
from sotdd.basics.text import say_count
from sotdd.projections.directions import Law
from sotdd.projections.maps import Directions

Pair: TypeAlias = tuple[int, int]


@dataclass(frozen=True)
class Layer:
    """One convolution: kernel height and width, and the step it moves by."""

    kernel: Pair
    stride: Pair = (1, 1)


def _square(*sizes: Pair) -> tuple[Layer, ...]:
    return tuple(Layer((kernel, kernel), (stride, stride)) for kernel, stride in sizes)


# The stacks of the authors' code, (kernel, stride) per layer.
PAPER_28 = _square((5, 1), (5, 1), (5, 1), (5, 1), (3, 1), (3, 1), (3, 1), (3, 1), (3, 1), (2, 1))
PAPER_32 = _square((5, 2), (5, 2), (3, 2), (2, 1))


def stride_stack(height: int, width: int) -> tuple[Layer, ...]:
    """Layers that halve an image of any size until a single kernel covers the rest.

    Kernels are 4 or 5 wide, whichever lets steps of two end exactly on the last pixel, so
    that every pixel is seen; the two axes may need different numbers of steps.
    """
    layers = []
    while max(height, width) > 5:
        (kernel_h, stride_h, height), (kernel_w, stride_w, width) = _halve(height), _halve(width)
        layers.append(Layer((kernel_h, kernel_w), (stride_h, stride_w)))
    return (*layers, Layer((height, width)))


def _halve(size: int) -> tuple[int, int, int]:
    """Kernel, stride and output size of one layer along one axis."""
    if size <= 5:
        return 1, 1, size
    kernel = 4 + size % 2
    return kernel, 2, (size - kernel) // 2 + 1


@dataclass(frozen=True)
class Convolution(Law, name="convolution"):
    """Directions composed from random convolution stacks, for images.

    Every kernel is Gaussian, brought to length one per projection; the first layer mixes the
    channels, later layers work on the one channel that is left.

    Parameters
    ----------
    image_shape
        (height, width), (channels, height, width), or with ``channels="last"``
        (height, width, channels): the shape of one point.
    kernels
        ``"auto"``: the authors' stack for 28 × 28 and 32 × 32 images, of which the latter does not see the
        last three rows and columns; ``"stride"`` for others. ``"stride"``: layers of stride two, for any
        size, square or not, that leave no pixel out.
    clamp
        Cut projected values to ±clamp, by default to ±5 as the authors' code does: the kernels' products
        have a heavy tail, and so have the projections. None for no cut.
    channels
        Whether channels come first or last in ``image_shape``.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> law = sotdd.projections.Convolution((3, 32, 32))
    >>> law.draw(np.random.default_rng(0), 4, 3 * 32 * 32).theta.shape
    (4, 3072)
    >>> [layer.kernel for layer in sotdd.projections.Convolution((48, 64)).layers]
    [(4, 4), (5, 5), (4, 4), (1, 4), (4, 2)]
    """

    image_shape: tuple[int, ...]
    kernels: Literal["auto", "stride"] = "auto"
    clamp: float | None = 5.0
    channels: Literal["first", "last"] = "first"

    def __post_init__(self) -> None:
        """Check the settings."""
        try:
            shape = tuple(check_count(size, "a size of image_shape") for size in self.image_shape)
        except TypeError:  # it has no sizes
            shape = ()
        if len(shape) not in (2, 3):
            raise SotddError(
                f"is {describe(self.image_shape)}: expected (height, width) or (channels, height, width).",
                setting="image_shape",
            )
        object.__setattr__(self, "image_shape", shape)
        check_choice(self.kernels, "kernels", ("auto", "stride"))
        check_choice(self.channels, "channels", ("first", "last"))
        object.__setattr__(self, "clamp", check_limit(self.clamp, "clamp"))

    @property
    def _planes(self) -> tuple[int, int, int]:
        """Channels, height and width, in this order."""
        if len(self.image_shape) == 2:
            return (1, *self.image_shape)
        first, second, third = self.image_shape
        return (first, second, third) if self.channels == "first" else (third, first, second)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The stack, layer by layer."""
        size = self._planes[1:]
        paper = {(28, 28): PAPER_28, (32, 32): PAPER_32} if self.kernels == "auto" else {}
        return paper.get(size) or stride_stack(*size)

    def describe(self) -> Mapping[str, object]:
        """Name the law and its stack, however that was asked for."""
        said = {name: value for name, value in super().describe().items() if name != "kernels"}
        layers = [[*layer.kernel, *layer.stride] for layer in self.layers]
        return {**said, "image_shape": list(self.image_shape), "layers": layers}

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """The law whose stack has these layers."""
        for kernels in ("auto", "stride"):
            law = super().of({**settings, "kernels": kernels})
            if law.describe()["layers"] == settings["layers"]:
                return law
        raise SotddError("its convolutions have other layers than this version draws")

    def check_points(self, point_shape: tuple[int, ...], name: str) -> None:
        """Refuse data whose points are not images of this shape; flat ones of the right length pass."""
        flat = (int(np.prod(self.image_shape)),)
        plain = [tuple(size for size in shape if size != 1) for shape in (point_shape, self.image_shape)]
        if point_shape != flat and plain[0] != plain[1]:
            raise SotddError(
                f"points of dataset {name!r} have shape {point_shape} but the convolution is for images of shape "
                f"{self.image_shape} (channels {self.channels}): pass image_shape and channels as in the data."
            )

    def draw(self, rng: np.random.Generator, n_projections: int, n_features: int) -> Directions:
        """Draw kernels layer by layer and compose each stack into a direction."""
        channels, *size = self._planes
        if n_features != channels * size[0] * size[1]:
            raise SotddError(
                f"data have {say_count(n_features, 'feature')} but images of shape {self.image_shape} have "
                f"{channels * size[0] * size[1]:,}: pass image_shape as the data have it."
            )
        kernels = []
        for depth, layer in enumerate(self.layers):
            shape = (n_projections, channels if depth == 0 else 1, *layer.kernel)
            kernel = rng.standard_normal(shape)
            kernel /= np.sqrt(np.sum(kernel**2, axis=(1, 2, 3), keepdims=True))
            kernels.append(kernel)
        theta = compose(kernels, [layer.stride for layer in self.layers], (size[0], size[1]))
        if self.channels == "last":
            theta = np.moveaxis(theta, 1, -1)
        return Directions(np.ascontiguousarray(theta).reshape(n_projections, -1), self.clamp)


def compose(kernels: Sequence[NDArray[np.floating]], strides: Sequence[Pair], size: Pair) -> NDArray[np.float64]:
    """Turn stacks of convolutions into directions.

    kernels[i] (B, C or 1, h, w) and strides[i] belong to layer i, the first of which reads
    images of C channels and the given (height, width). Returns (B, C, height, width), such
    that its inner product with an image is what the stack makes of the image.
    """
    sizes = [size]  # of images before each layer
    for kernel, (down, right) in zip(kernels, strides, strict=True):
        (height, width), (high, wide) = sizes[-1], kernel.shape[2:]
        sizes.append(((height - high) // down + 1, (width - wide) // right + 1))
    reach = np.ones((len(kernels[0]), 1, 1, 1))  # (B, 1, 1, 1): the one output pixel
    walk = zip(reversed(kernels), reversed(strides), reversed(sizes[:-1]), strict=True)
    for kernel, (down, right), (height, width) in walk:
        earlier = np.zeros((len(kernel), kernel.shape[1], height, width))
        high, wide = down * (reach.shape[2] - 1) + 1, right * (reach.shape[3] - 1) + 1
        for i, j in np.ndindex(*kernel.shape[2:]):  # each weight of a kernel meets the pixels that are steps apart
            earlier[:, :, i : i + high : down, j : j + wide : right] += kernel[:, :, i, j, None, None] * reach
        reach = earlier
    return reach
