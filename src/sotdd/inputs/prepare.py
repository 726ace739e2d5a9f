"""What a loader has read, completed: labels agree with features, rows are chosen, texts and images become numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import described, first_line
from sotdd.basics.errors import SotddError
from sotdd.basics.text import listed
from sotdd.inputs.data import Features, LabelledData, checked_features, take_rows
from sotdd.inputs.labels import Labels
from sotdd.inputs.loaded import Items, Loaded
from sotdd.inputs.loaders.images import Uniform, is_image, recoloured, resized
from sotdd.inputs.missing_values import without_gaps
from sotdd.inputs.origin import PLAIN, UNLABELLED, Origin, Target
from sotdd.inputs.settings import Settings
from sotdd.inputs.sparse import SparseRows
from sotdd.inputs.spool import Spool
from sotdd.inputs.streamed import ChosenRows, StreamedFeatures
from sotdd.inputs.tensors import DeviceFeatures, host_array

# This many rows of numbers are prepared at a time; items say themselves how many.
BATCH = 256
# Columns of integers with this many rows or more, all different, may be ids.
_FEWEST_IDS = 20


def complete(loaded: Loaded, name: str, settings: Settings) -> LabelledData:
    """Check that features and labels agree, choose rows, and make numbers of what is none yet."""
    if isinstance(loaded.features, StreamedFeatures):
        checked_features(loaded.features, name)  # their shape and dtype; arrays were checked when they were read
    labels = loaded.labels or Labels.one_class(len(loaded.features))
    if settings.bins is not None and loaded.labels is None:
        raise SotddError(f"bins is given but dataset {name!r} has no labels: leave it out.")
    target = None if settings.bins is None else Target(labels.numbers(name), settings.bins)
    labels = labels.as_classes(settings.bins, name)
    origin = _origin(loaded, settings, target)
    loaded, there, said = _without_gaps(loaded, name, settings)
    origin = origin.also(*said)
    most = None if loaded.sampled else settings.max_points
    drops = settings.drop_missing or settings.missing == "drop"
    rows = labels.wanted_rows(drops, most, settings.seed, name, there)
    lost = labels.codes < 0 if there is None else (labels.codes < 0) | ~there
    if lost.any():
        origin = replace(origin, rows_lost=int(np.count_nonzero(lost)), rows_read=len(lost))
    if isinstance(loaded.features, Items) or (settings.prepares and not loaded.prepared):
        chosen = replace(settings, image_mode=loaded.image_mode or settings.image_mode)
        features, rows = prepare_rows(loaded.features, rows, Preparation(name, chosen), name)
        columns = None  # what a transform or an encoder returns are no longer these columns
        origin = replace(origin, one_hot=())
    else:
        features, columns = loaded.features, loaded.columns
        if rows is not None:
            if isinstance(features, StreamedFeatures) and not isinstance(features, SparseRows):
                features = ChosenRows(features, rows)
            else:
                features = take_rows(features, rows)
    kept = labels.take(rows)
    return LabelledData(
        name, features, kept.classes, kept.codes, columns, origin if rows is None else origin.take(rows)
    )


def _origin(loaded: Loaded, settings: Settings, target: Target | None) -> Origin:
    """What was decided so far."""
    labelled = loaded.labels is not None or settings.unlabelled
    if loaded.one_hot:
        return Origin(labelled, one_hot=loaded.one_hot, target=target)
    if loaded.table is None:
        return UNLABELLED if not labelled else PLAIN if target is None else Origin(target=target)
    one_hot = tuple(column for column, _ in loaded.table.categories)
    remarks = _remarks_on_ids(loaded.features, loaded.columns) if settings.features is None else ()
    return Origin(labelled, dict(loaded.table.left_out), one_hot, remarks, target)


def _remarks_on_ids(features: Features | Items, columns: tuple[str, ...] | None) -> tuple[str, ...]:
    """A remark on columns in memory that may be ids; whether they are is for the user to say."""
    if columns is None or not isinstance(features, np.ndarray) or len(features) < _FEWEST_IDS:
        return ()
    found = []
    for name, values in zip(columns, features.T, strict=True):
        few = values[:_FEWEST_IDS]  # which tell measurements at once
        if np.array_equal(few, np.floor(few)) and len(np.unique(values)) == len(values):
            found += [name] if np.array_equal(values, np.floor(values)) else []
    return (f"every value differs, as of an id: {listed(found)}; leave it out with exclude= if so",) if found else ()


def _without_gaps(
    loaded: Loaded, name: str, settings: Settings
) -> tuple[Loaded, NDArray[np.bool_] | None, tuple[str, ...]]:
    """The same without missing values, which rows are there (None for all), and what a reader should know."""
    features = loaded.features
    if isinstance(features, (Items, DeviceFeatures)) or not (loaded.gaps or settings.missing != "error"):
        return loaded, None, ()
    width = int(np.prod(features.shape[1:], dtype=np.int64))
    if loaded.table is not None:
        titles = loaded.table.titles(width)
    else:
        titles = loaded.columns or tuple(f"feature {number}" for number in range(width))
    whole, there, said = without_gaps(features, titles, settings.missing, name)
    return replace(loaded, features=whole), there, said


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
