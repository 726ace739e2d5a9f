"""What a loader has read, completed: features and labels agree, rows are chosen, and items become numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.text import counted
from sotdd.inputs.data import Features, LabelledData, checked_features
from sotdd.inputs.gaps import without_gaps
from sotdd.inputs.labels import Labels
from sotdd.inputs.loaded import Items, Loaded
from sotdd.inputs.loaders.table_batches import titles_of
from sotdd.inputs.origin import PLAIN, UNLABELLED, Origin, Target
from sotdd.inputs.prepare import Preparation, prepare_rows
from sotdd.inputs.settings import Settings
from sotdd.inputs.sparse import SparseRows
from sotdd.inputs.streamed import ChosenRows, StreamedFeatures
from sotdd.inputs.tensors import DeviceFeatures


def completed(loaded: Loaded, name: str, settings: Settings) -> LabelledData:
    """Check that features and labels agree, choose rows, and make numbers of what is none yet."""
    if isinstance(loaded.features, StreamedFeatures):
        checked_features(loaded.features, name)  # their shape and dtype; arrays were checked when they were read
    labels = loaded.labels or Labels.one_class(len(loaded.features))
    if len(labels) != len(loaded.features):
        several = counted(len(labels), "label", "labels"), counted(len(loaded.features), "point", "points")
        raise SotddError(f"dataset {name!r} has {' but '.join(several)}: expected one label each.")
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
        origin = replace(origin, one_hot=(), maybe_ids=())
    else:
        features, columns = _some(loaded.features, rows), loaded.columns
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
    return Origin(labelled, dict(loaded.table.left_out), one_hot, loaded.table.maybe_ids, target=target)


def _without_gaps(
    loaded: Loaded, name: str, settings: Settings
) -> tuple[Loaded, NDArray[np.bool_] | None, tuple[str, ...]]:
    """The same without missing values, which rows are there (None for all), and what a reader should know."""
    features = loaded.features
    if isinstance(features, (Items, DeviceFeatures)) or not (loaded.gaps or settings.missing != "error"):
        return loaded, None, ()
    if loaded.table is not None:
        titles = titles_of(loaded.table, features)
    else:
        titles = loaded.columns or tuple(f"feature {number}" for number in range(features[:1].size))
    whole, there, said = without_gaps(features, titles, settings.missing, name)
    return replace(loaded, features=whole), there, said


def _some(features: Features, rows: NDArray[np.integer] | None) -> Features:
    if rows is None:
        return features
    if isinstance(features, SparseRows):
        return features.take(rows)
    if isinstance(features, StreamedFeatures):
        return ChosenRows(features, rows)
    if isinstance(features, DeviceFeatures):
        return DeviceFeatures(features.tensor[rows])
    picked: NDArray[Any] = features[rows]
    return picked
