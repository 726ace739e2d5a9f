"""What loaders return, and how texts and images become numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, describe
from sotdd.inputs.data import PLAIN, Origin
from sotdd.inputs.features import refuse_non_finite
from sotdd.inputs.labels import Labels
from sotdd.inputs.loaders.images import Uniform, is_image
from sotdd.inputs.reading import Reading
from sotdd.inputs.schema import Names
from sotdd.inputs.streamed import Features, GatheredRows

# This many rows of numbers are prepared at a time; items say themselves how many.
BATCH = 256


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
    rows, rows_seen
        The numbers (n,) of the rows, where the loader has taken the sample that was asked for, and how many rows the
        source has; None and 0 where it has not.
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
    origin: Origin = PLAIN
    order: Names = ()
    named: bool = True
    rows: NDArray[np.int64] | None = None
    rows_seen: int = 0
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
    """Gathers what batches become: images are made uniform, then the encoder is applied."""

    def __init__(self, name: str, reading: Reading) -> None:
        self._name, self._reading, self._rows = name, reading, GatheredRows(name)
        self._uniform = Uniform(name, reading.image_size, reading.image_mode)

    def add(self, batch: Sequence[Any] | NDArray[Any]) -> None:
        """Prepare and keep a batch; values that are not finite are refused."""
        if not len(batch):
            return
        encoder = self._reading.encoder
        ready = self._as_images(batch)
        if encoder is not None:
            ready = encoder(ready)
        elif isinstance(ready[0], str):
            raise SotddError(f"dataset {self._name!r} holds text: pass encoder=, such as the name of a model.")
        if not isinstance(ready, np.ndarray):
            raise SotddError(f"dataset {self._name!r} holds {describe(ready[0])}: expected numbers, texts or images.")
        if ready.dtype.kind == "f":
            refuse_non_finite(ready, range(len(self._rows), len(self._rows) + len(ready)), self._name)
        self._rows.add(ready)

    def array(self) -> NDArray[Any]:
        """All rows."""
        return self._rows.array()

    def _as_images(self, batch: Sequence[Any] | NDArray[Any]) -> Sequence[Any] | NDArray[Any]:
        size, mode = self._reading.image_size, self._reading.image_mode
        if is_image(batch[0]):
            # An encoder may bring images to a size of its own.
            as_they_are = self._reading.encoder is not None and size is None
            return self._uniform.images(list(batch)) if as_they_are else self._uniform.array(list(batch))
        if size is not None or mode is not None:
            setting = "image_mode" if size is None else "image_size"
            raise SotddError(f"is given but dataset {self._name!r} holds no images: leave it out.", setting=setting)
        return batch


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
