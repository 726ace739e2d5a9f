"""Batches of texts, images or arrays turned into the numbers that are compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import described, first_line
from sotdd.basics.errors import SotddError
from sotdd.inputs.data import Features
from sotdd.inputs.loaded import Items
from sotdd.inputs.loaders.images import Uniform, is_image, recoloured, resized
from sotdd.inputs.settings import Settings
from sotdd.inputs.spool import Spool
from sotdd.inputs.tensors import host_array

# This many rows of numbers are prepared at a time; items say themselves how many.
BATCH = 256


class Preparation:
    """What is done to every batch: images are made uniform, then the encoder and then the transform are applied."""

    def __init__(self, name: str, settings: Settings) -> None:
        self._name = name
        self._settings = settings
        self._uniform = Uniform(name, settings.image_size, settings.image_mode)

    def __call__(self, batch: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
        """The numbers (m, ...) that a batch of m items or rows becomes."""
        encoder, transform = self._settings.encoder, self._settings.transform
        count = len(batch)
        ready = self._as_images(batch)
        if encoder is not None:
            ready = encoder(ready)
        elif len(ready) and isinstance(ready[0], str):
            raise SotddError(
                f"dataset {self._name!r} holds text: pass encoder= to sotdd.open_dataset, a function of a list of "
                "texts or the name of a sentence-transformers model."
            )
        if transform is not None:
            ready = self._transformed(ready, count)
        if not isinstance(ready, np.ndarray):
            raise SotddError(f"dataset {self._name!r} holds {described(ready[0])}: expected numbers, texts or images.")
        return ready

    def log_encoding(self) -> None:
        """Log what the encoder did."""
        if self._settings.encoder is not None:
            self._settings.encoder.log_use(self._name)

    def _as_images(self, batch: Sequence[Any] | NDArray[Any]) -> Sequence[Any] | NDArray[Any]:
        if isinstance(batch, np.ndarray):
            size, mode = self._settings.image_size, self._settings.image_mode
            batch = batch if size is None else resized(batch, size, self._name)
            return batch if mode is None else recoloured(batch, mode, self._name)
        if not len(batch) or not is_image(batch[0]):
            return batch
        if self._settings.encoder is not None and self._settings.image_size is None:
            return self._uniform.images(batch)  # an encoder may bring images to a size of its own
        return self._uniform.array(batch)

    def _transformed(self, batch: Sequence[Any] | NDArray[Any], count: int) -> NDArray[Any]:
        assert self._settings.transform is not None
        try:
            result = host_array(self._settings.transform(batch))
        except (ValueError, TypeError, IndexError, AttributeError, RuntimeError) as error:
            raise SotddError(
                f"transform failed on a batch of dataset {self._name!r} ({type(error).__name__}: {first_line(error)})."
            ) from error
        if result.ndim == 0 or len(result) != count:
            raise SotddError(
                f"transform made shape {result.shape} from a batch of {count:,}: expected one row of numbers per row."
            )
        return result


def prepare_rows(
    features: Features | Items, rows: NDArray[np.integer] | None, prepare: Preparation, name: str
) -> tuple[Any, NDArray[np.integer] | None]:
    """Numbers made of the items or features of these rows (None for all), and the rows that were not left out."""
    spool = Spool(name)
    wanted = np.arange(len(features)) if rows is None else rows
    kept = []
    for part, batch in _batches(features, wanted):
        kept.append(part)
        if len(part):
            spool.add(prepare(batch))
    prepare.log_encoding()
    if isinstance(features, Items):
        features.log_skipped(name)
    used = np.concatenate(kept) if kept else wanted[:0]
    return spool.features(), None if rows is None and len(used) == len(features) else used


def _batches(
    features: Features | Items, rows: NDArray[np.integer]
) -> Iterator[tuple[NDArray[np.integer], list[Any] | NDArray[Any]]]:
    """Row numbers and what these rows hold, without items that are to be left out."""
    size = features.batch_size if isinstance(features, Items) else BATCH
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        if isinstance(features, Items):
            items = features.read(part)
            kept = [item is not None for item in items]
            yield part[kept], [item for item in items if item is not None]
        else:
            yield part, np.asarray(features[part])
