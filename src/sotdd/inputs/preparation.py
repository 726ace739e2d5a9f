"""What loaders return, and how texts, images and rows become numbers: images are made uniform, then encoded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, describe, first_line, require
from sotdd.inputs.arrays import Labels, host_array, refuse_non_finite
from sotdd.inputs.data import Origin
from sotdd.inputs.features import Features, GatheredRows
from sotdd.inputs.reading import Reading
from sotdd.inputs.schema import Names

# This many rows of numbers are prepared at a time; items say themselves how many.
BATCH = 256
# This many images are decoded at a time: as they come from a camera they take tens of megabytes each.
IMAGES = 32

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
            setting = "image_mode" if reading.image_size is None else "image_size"
            raise SotddError(f"is given but dataset {self._name!r} holds no images: leave it out.", setting=setting)
        if self._encoder is not None:
            batch = _encode(self._encoder, batch)
        elif isinstance(batch[0], str):
            raise SotddError(f"dataset {self._name!r} holds text: pass encoder=, such as the name of a model.")
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
    """A model of sentence-transformers."""
    library = require("sentence_transformers", f"encoder {name!r}", "sentence-transformers")
    try:
        return library.SentenceTransformer(name)
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        why = f"cannot be loaded ({type(error).__name__}): check the name"
        raise SotddError(f"is {name!r}, which {why}.", setting="encoder") from error


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
