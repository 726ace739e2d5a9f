"""What loaders return, and how texts, images and rows become numbers: images are made uniform, then encoded."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, describe, first_line, require
from sotdd.inputs.arrays import Labels, host_array, refuse_non_finite
from sotdd.inputs.data import FEWEST_PIXELS, Origin
from sotdd.inputs.features import Features, GatheredRows
from sotdd.inputs.reading import HASHING, Reading
from sotdd.inputs.schema import Names

# Of texts that are hashed there are so many features.
_HASHED = 256
# How long a server may take to answer.
_PATIENCE = 5
# This many rows of numbers are prepared at a time; items say themselves how many.
BATCH = 256
# This many images are decoded at a time: as they come from a camera they take tens of megabytes each.
IMAGES = 32

# What red, green and blue count in grey, as Pillow has it.
_GREY_SHARES = np.array([19595, 38470, 7471]) / 65536
_GREY = {"1", "L", "LA"}
# Integers: of 16 bits, or of 32 where the format says no more, as with 16-bit PGM files.
_DEEP = ("I", "I;16", "I;16B", "I;16L", "I;16N")


@dataclass(frozen=True, eq=False)
class Loaded:
    """A dataset as its loader read it.

    Attributes
    ----------
    features
        Numbers, or items that have yet to become numbers.
    labels
        One for each row, or None where the source has none.
    columns
        The names of the features, where they have names.
    origin
        What the loader decided.
    order
        The columns of a table in their order, categories among them.
    named
        Whether the names of the columns mean anything.
    rows
        The numbers (n,) of the rows, where the loader has taken the sample that was asked for, of as many rows as the
        origin says; None where it has not.
    prepared
        Whether the loader has applied the encoder that was asked for.
    image_mode
        The mode that suits all images, where the loader has looked at all of them.
    groups
        What rows of a table that belong together have in common, if a column of that was named.
    """

    features: Features | Items
    labels: Labels | None
    columns: Names | None = None
    origin: Origin = field(default_factory=Origin)
    order: Names = ()
    named: bool = True
    rows: NDArray[np.int64] | None = None
    prepared: bool = False
    image_mode: str | None = None
    groups: Labels | None = None


@dataclass(frozen=True, eq=False)
class Items:
    """Texts or images by row number.

    Attributes
    ----------
    count
        How many there are.
    read
        A function of row numbers (m,) that returns these items.
    batch_size
        How many are read at a time.
    """

    count: int
    read: Callable[[NDArray[np.integer]], list[Any]]
    batch_size: int = BATCH

    def __len__(self) -> int:
        """How many items there are."""
        return self.count


class PreparedRows:
    """Gathers what batches become; the size and the mode of images that were not asked for are those of the first."""

    def __init__(self, name: str, reading: Reading) -> None:
        self._name, self._reading, self._rows = name, reading, GatheredRows(name)
        self._size, self._mode = reading.image_size, reading.image_mode
        self._encoder = _load_model(reading.encoder) if isinstance(reading.encoder, str) else reading.encoder

    def add(self, batch: Sequence[Any] | NDArray[Any]) -> None:
        """Prepare and keep a batch; values that are not finite are refused."""
        if not len(batch):
            return
        reading = self._reading
        if is_image(batch[0]):
            batch = self._unify_images(batch)
        elif reading.image_size is not None or reading.image_mode is not None:
            batch = fit_arrays(batch, self._name, reading)
        if self._encoder is not None:
            batch = _encode(self._encoder, batch)
        elif isinstance(batch[0], str):
            raise SotddError(f"dataset {self._name!r} holds text", use={"encoder": HASHING})
        if not isinstance(batch, np.ndarray):
            raise SotddError(f"dataset {self._name!r} holds {describe(batch[0])}: expected numbers, texts or images.")
        if batch.dtype.kind == "f":
            refuse_non_finite(batch, range(len(self._rows), len(self._rows) + len(batch)), self._name)
        self._rows.add(batch)

    def array(self) -> NDArray[Any]:
        """All rows."""
        return self._rows.array()

    def _unify_images(self, batch: Sequence[Any] | NDArray[Any]) -> list[Any] | NDArray[np.uint8]:
        """Images as bytes (B, height, width) or (B, height, width, 3); in any size for an encoder that takes these."""
        if self._encoder is not None and self._reading.image_size is None:
            self._mode = self._mode or "RGB"
            return [_convert(image, self._mode) for image in batch]
        self._mode = self._mode or ("L" if all(is_grey(image.mode) for image in batch) else "RGB")
        return np.stack([self._unify(image, self._mode) for image in batch])

    def _unify(self, image: Any, mode: str) -> NDArray[np.uint8]:  # noqa: ANN401  # Pillow is optional
        if mode == "L" and self._reading.image_mode is None and not is_grey(image.mode):
            raise SotddError(
                f"images of dataset {self._name!r} are grey and later in colour", use={"image_mode": "RGB"}
            )
        size = (image.height, image.width)
        self._size = self._size or size
        if self._reading.image_size is None and size != self._size:
            both = " and ".join(f"{height} × {width}" for height, width in (self._size, size))
            raise SotddError(f"images of dataset {self._name!r} are {both} pixels", use={"image_size": self._size})
        return np.asarray(fit_image(image, self._size, mode), np.uint8)


def prepare_rows(
    features: Features | Items, rows: NDArray[np.integer] | None, name: str, reading: Reading
) -> NDArray[Any]:
    """Numbers made of the items or features of these rows, None for all."""
    prepared = PreparedRows(name, reading)
    wanted = np.arange(len(features)) if rows is None else rows
    size = features.batch_size if isinstance(features, Items) else BATCH
    for start in range(0, len(wanted), size):
        part = wanted[start : start + size]
        prepared.add(features.read(part) if isinstance(features, Items) else np.asarray(features[part]))
    return prepared.array()


# ------------------------------------------------------------------ images


def is_image(value: object) -> bool:
    """Whether a value is a Pillow image, told without importing Pillow."""
    return type(value).__module__.split(".")[0] == "PIL" and hasattr(value, "convert")


def is_grey(mode: str) -> bool:
    """Whether an image of that mode has no colours."""
    return mode in _GREY or mode in _DEEP


def fit_image(image: Any, size: tuple[int, int], mode: str) -> Any:  # noqa: ANN401  # Pillow is optional
    """An image in that mode, at (height, width)."""
    pillow = require("PIL.Image", "resizing images", "'sotdd[inputs]'")
    converted = _convert(image, mode)
    return converted if converted.size == size[::-1] else converted.resize(size[::-1], pillow.Resampling.BILINEAR)


def fit_arrays(batch: Any, name: str, reading: Reading) -> NDArray[Any]:  # noqa: ANN401  # anything
    """Arrays of images (m, height, width[, channels]), as grey (m, height, width) or in colour (m, height, width, 3).

    Channels may also come first, as in torch. Bytes become the bytes that Pillow makes of them.
    """
    images = _find_channels(batch, name, "image_mode" if reading.image_size is None else "image_size")
    mode = reading.image_mode or ("L" if images.shape[3] == 1 else "RGB")
    dtype = np.result_type(batch.dtype, np.float32)
    values = images.astype(dtype)
    if mode == "L" and images.shape[3] == 3:
        values = _round_bytes(values @ _GREY_SHARES.astype(dtype), batch.dtype)[..., None]
    for axis, size in zip((2, 1), (reading.image_size or images.shape[1:3])[::-1], strict=True):
        if values.shape[axis] != size:
            weights = _weigh_pixels(values.shape[axis], size).astype(dtype)
            values = _round_bytes(np.moveaxis(np.tensordot(values, weights, (axis, 1)), -1, axis), batch.dtype)
    values = values[..., 0] if mode == "L" else np.broadcast_to(values, (*values.shape[:3], 3))
    return values.astype(batch.dtype if batch.dtype == np.uint8 else dtype)


def _find_channels(batch: Any, name: str, setting: str) -> NDArray[Any]:  # noqa: ANN401  # anything
    """Images with one or three channels last (m, height, width, channels); refuse what has no such shape."""
    images: NDArray[Any] = np.asarray(batch)
    shape: tuple[int, ...] = images.shape[1:]
    if len(shape) == 2:
        return images[..., None]
    if len(shape) == 3 and (shape[2] in (1, 3) or shape[0] in (1, 3)):
        return images if shape[2] in (1, 3) else np.moveaxis(images, 1, 3)
    side = math.isqrt(shape[0]) if len(shape) == 1 else 0
    is_square = side * side >= FEWEST_PIXELS and side * side == shape[0]
    advice = f"if they are, reshape the points to (n, {side}, {side})" if is_square else "leave it out"
    raise SotddError(f"is given but dataset {name!r} holds no images: {advice}.", setting=setting)


def _round_bytes(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Values rounded where they are to be bytes."""
    return np.floor(values + 0.5) if dtype == np.uint8 else values


def _weigh_pixels(before: int, after: int) -> NDArray[np.float64]:
    """How much each pixel of a line counts in each of the resized line (after, before): bilinear, as Pillow does it."""
    step = before / after
    centres = (np.arange(after) + 0.5) * step
    away = np.abs(np.arange(before) + 0.5 - centres[:, None])
    weights: NDArray[np.float64] = np.maximum(0, 1 - away / max(1.0, step))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


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


# ------------------------------------------------------------------ encoders


def _load_model(name: str) -> Any:  # noqa: ANN401  # the library is optional
    """A model of sentence-transformers, or what hashes words; without the hub, models that are on this machine."""
    if name == HASHING:
        words = require("sklearn.feature_extraction.text", "hashing words", "scikit-learn")
        return words.HashingVectorizer(n_features=_HASHED)
    library = require("sentence_transformers", f"encoder {name!r}", "sentence-transformers")
    reached = _reach_hub()
    try:
        return library.SentenceTransformer(name, local_files_only=not reached)
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        where = "this machine and the hub of models" if reached else "this machine, and the hub cannot be reached"
        why = f"cannot be loaded from {where} ({type(error).__name__}): give its folder, or encoder='hashing'"
        raise SotddError(f"is {name!r}, which {why}.", setting="encoder") from error


def _reach_hub() -> bool:
    """Whether the server of models answers: the library itself would try for a minute."""
    hub = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
    try:
        urlopen(Request(hub, method="HEAD"), timeout=_PATIENCE).close()
    except HTTPError:  # which is an answer
        return True
    except (OSError, ValueError):
        return False
    return os.environ.get("HF_HUB_OFFLINE", "").lower() not in ("1", "true", "yes", "on")


def _encode(encoder: Any, batch: Any) -> NDArray[Any]:  # noqa: ANN401  # of whatever library
    """The vectors of a batch, one per item."""
    try:
        encoded = _apply_encoder(encoder, batch)
        vectors = host_array(encoded)
    except (ValueError, TypeError, LookupError, AttributeError, RuntimeError) as error:  # of the user's own code
        raise SotddError(f"the encoder failed on a batch ({type(error).__name__}: {first_line(error)}).") from error
    if vectors.ndim == 0 or len(vectors) != len(batch) or vectors.dtype.kind not in "biuf":
        made = f"{describe(encoded)} of shape {vectors.shape} and dtype {vectors.dtype}"
        raise SotddError(
            f"made {made} of {len(batch):,} items: expected one vector of real numbers each.", setting="encoder"
        )
    return vectors


def _apply_encoder(encoder: Any, batch: Any) -> Any:  # noqa: ANN401  # as above
    """What the encoder makes; a fitted transformer takes rows of numbers, or texts, and may make them sparse."""
    if type(encoder).__module__.split(".")[0] == "sentence_transformers":  # its progress bar is not for us
        return encoder.encode(list(batch), show_progress_bar=False, convert_to_numpy=True)
    if hasattr(encoder, "encode") or callable(encoder):
        return encoder.encode(batch) if hasattr(encoder, "encode") else encoder(batch)
    made = encoder.transform(batch.reshape(len(batch), -1) if isinstance(batch, np.ndarray) else batch)
    return made.toarray() if hasattr(made, "toarray") else made
