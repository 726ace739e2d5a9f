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
        return [_convert(image, self._mode) for image in batch]

    def array(self, batch: Sequence[Any]) -> NDArray[np.uint8]:
        """Pillow images as bytes (B, height, width) or (B, height, width, 3)."""
        self._mode = self._mode or ("L" if all(is_grey(image.mode) for image in batch) else "RGB")
        return np.stack([self._one(image) for image in batch])

    def _one(self, image: Any) -> NDArray[np.uint8]:  # noqa: ANN401  # Pillow is optional
        assert self._mode is not None
        if self._mode == "L" and not self._mode_given and not is_grey(image.mode):
            raise SotddError(
                f"images of dataset {self._name!r} are grey and later in colour", use={"image_mode": "RGB"}
            )
        size = (image.height, image.width)
        self._size = self._size or size
        if self._resize is None and size != self._size:
            both = " and ".join(f"{height} × {width}" for height, width in (self._size, size))
            raise SotddError(f"images of dataset {self._name!r} are {both} pixels", use={"image_size": self._size})
        return np.asarray(fit_image(image, self._size, self._mode), np.uint8)


def fit_image(image: Any, size: tuple[int, int], mode: str) -> Any:  # noqa: ANN401  # Pillow is optional
    """An image in that mode, at (height, width)."""
    pillow = require("PIL.Image", "resizing images", "'sotdd[inputs]'")
    converted = _convert(image, mode)
    return converted if converted.size == size[::-1] else converted.resize(size[::-1], pillow.Resampling.BILINEAR)


def _convert(image: Any, mode: str) -> Any:  # noqa: ANN401  # Pillow is optional
    """An image in another mode.

    Of 16 bits of grey the upper 8 are kept, where Pillow would clip: one rule for all images, so that a dark one does
    not become a bright one.
    """
    if image.mode == "F":
        raise SotddError("an image holds floats, whose range is not known: read it into an array yourself.")
    if image.mode in _DEEP:
        values = np.asarray(image)
        low, high = int(values.min(initial=0)), int(values.max(initial=0))
        if low < 0 or high > 65535:
            raise SotddError(f"an image holds integers from {low:,} to {high:,}: expected 16 bits, or an array.")
        pillow = require("PIL.Image", "reading images", "'sotdd[inputs]'")
        image = pillow.fromarray((values >> 8).astype(np.uint8))
    return image if image.mode == mode else image.convert(mode)
