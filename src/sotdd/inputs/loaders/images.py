"""Images made uniform: one size, and all of them grey or all in colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, require

# This many images are decoded at a time: as they come from a camera they take tens of megabytes each.
BATCH = 32

_GREY = {"1", "L", "LA"}
# Integers: of 16 bits, or of 32 where the format says no more, as with 16-bit PGM files.
_DEEP = ("I", "I;16", "I;16B", "I;16L", "I;16N")


def is_image(value: object) -> bool:
    """Whether a value is a Pillow image, told without importing Pillow."""
    return type(value).__module__.split(".")[0] == "PIL" and hasattr(value, "convert")


def is_grey(mode: str) -> bool:
    """Whether an image of that mode has no colours."""
    return mode in _GREY or mode in _DEEP


class Uniform:
    """Brings images to one size and one mode; what is None is taken from the first batch.

    Parameters
    ----------
    name
        What messages call the dataset.
    size
        (height, width), or None where all images have one size.
    mode
        "L" for grey (height, width), "RGB" for colour (height, width, 3).
    """

    def __init__(self, name: str, size: tuple[int, int] | None, mode: str | None) -> None:
        self._name = name
        self._resize = size
        self._size = size
        self._mode = mode
        self._mode_given = mode is not None

    def images(self, batch: Sequence[Any]) -> list[Any]:
        """Pillow images in one mode, for an encoder that takes them in any size."""
        self._mode = self._mode or "RGB"
        return [_converted(image, self._mode) for image in batch]

    def array(self, batch: Sequence[Any]) -> NDArray[np.uint8]:
        """Pillow images as bytes (B, height, width) or (B, height, width, 3)."""
        self._mode = self._mode or ("L" if all(is_grey(image.mode) for image in batch) else "RGB")
        return np.stack([self._one(image) for image in batch])

    def _one(self, image: Any) -> NDArray[np.uint8]:  # noqa: ANN401  # Pillow is optional
        assert self._mode is not None
        if self._mode == "L" and not self._mode_given and not is_grey(image.mode):
            raise SotddError(
                f"images of dataset {self._name!r} are grey at first and later in colour: pass image_mode='RGB' or 'L'."
            )
        size = (image.height, image.width)
        self._size = self._size or size
        if self._resize is None and size != self._size:
            raise other_sizes(self._name, self._size, size)
        return np.asarray(fitted(image, self._size, self._mode), np.uint8)


def fitted(image: Any, size: tuple[int, int], mode: str) -> Any:  # noqa: ANN401  # Pillow is optional
    """An image in that mode, at (height, width)."""
    converted = _converted(image, mode)
    return converted if (image.height, image.width) == size else converted.resize(size[::-1], _bilinear())


def other_sizes(name: str, first: tuple[int, int], other: tuple[int, int]) -> SotddError:
    """The error for images that differ in size."""
    (h, w), (height, width) = first, other
    return SotddError(
        f"images of dataset {name!r} are {h} × {w} and {height} × {width} pixels: pass image_size=({h}, {w}) to bring "
        "them to one size."
    )


def resized(batch: NDArray[Any], size: tuple[int, int], name: str) -> NDArray[Any]:
    """Arrays of images (B, H, W), (B, H, W, C) or (B, C, H, W) at another size, in the layout they came in."""
    first = _channels_first(batch)
    if batch.ndim not in (3, 4) or (batch.ndim == 4 and not first and batch.shape[-1] not in (1, 2, 3, 4)):
        raise SotddError(
            f"image_size is given but points of dataset {name!r} have shape {batch.shape[1:]}: expected images of "
            "shape (height, width), (height, width, channels) or (channels, height, width)."
        )
    planes = batch if batch.ndim == 3 or first else np.moveaxis(batch, 3, 1)
    if planes.shape[-2:] == size:
        return batch
    flat = planes.reshape(-1, *planes.shape[-2:])
    dtype = np.uint8 if batch.dtype == np.uint8 else np.float32
    pillow = require("PIL.Image", "resizing images", "'sotdd[inputs]'")
    scaled = np.stack(
        [np.asarray(pillow.fromarray(plane.astype(dtype)).resize(size[::-1], _bilinear())) for plane in flat]
    )
    shaped = scaled.reshape(*planes.shape[:-2], *size)
    return shaped if batch.ndim == 3 or first else np.moveaxis(shaped, 1, 3)


def recoloured(batch: NDArray[Any], mode: str, name: str) -> NDArray[Any]:
    """Arrays of images (B, H, W), (B, H, W, C) or (B, C, H, W) in grey or in colour, in the layout they came in.

    Grey is 0.299 red + 0.587 green + 0.114 blue, as Pillow has it; a fourth channel, of transparency, is left out.
    """
    if batch.ndim == 3:
        return batch if mode == "L" else np.stack([batch] * 3, axis=-1)
    first = _channels_first(batch)
    channels = batch.shape[1 if first else -1] if batch.ndim == 4 else 0
    if channels not in (1, 3, 4):
        raise SotddError(
            f"image_mode is given but points of dataset {name!r} have shape {batch.shape[1:]}: expected images of "
            "shape (height, width), or with one, three or four channels."
        )
    planes = np.moveaxis(batch, 1, -1) if first else batch
    if channels == 1:
        grey: NDArray[Any] = planes[..., 0]
        return grey if mode == "L" else np.stack([grey] * 3, axis=1 if first else -1)
    if mode == "RGB":
        colours = planes[..., :3]
        return np.moveaxis(colours, -1, 1) if first else colours
    grey = planes[..., :3] @ np.array([0.299, 0.587, 0.114])
    if batch.dtype == np.uint8:
        return np.floor(grey + 0.5).astype(np.uint8)
    return grey.astype(batch.dtype) if batch.dtype.kind == "f" else grey


def _channels_first(batch: NDArray[Any]) -> bool:
    return batch.ndim == 4 and batch.shape[1] in (1, 3, 4) and batch.shape[-1] not in (1, 3, 4)


def _converted(image: Any, mode: str) -> Any:  # noqa: ANN401  # Pillow is optional
    """An image in another mode; of 16 bits of grey the upper 8 are kept, where Pillow would clip."""
    if image.mode == "F":
        raise SotddError("an image holds floats, whose range is not known: read it into an array yourself.")
    if image.mode in _DEEP:
        image = _upper_bits(image)
    return image if image.mode == mode else image.convert(mode)


def _upper_bits(image: Any) -> Any:  # noqa: ANN401
    """Grey of 16 bits as grey of 8, by one rule for all images: a dark one must not become a bright one."""
    values = np.asarray(image)
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    if low < 0 or high > 65535:
        raise SotddError(
            f"an image holds integers from {low:,} to {high:,}, whose range is not known: expected 16 bits, or read it "
            "into an array yourself."
        )
    return require("PIL.Image", "reading images", "'sotdd[inputs]'").fromarray((values >> 8).astype(np.uint8))


def _bilinear() -> Any:  # noqa: ANN401  # an enumeration of Pillow's
    return require("PIL.Image", "resizing images", "'sotdd[inputs]'").Resampling.BILINEAR
