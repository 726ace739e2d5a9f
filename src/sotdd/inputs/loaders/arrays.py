"""Arrays of any library, lists, and pairs of features and labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.inputs.data import PLAIN, LabelledData, Origin, check_features, features_and_labels
from sotdd.inputs.labels import Labels
from sotdd.inputs.loaders.images import is_image
from sotdd.inputs.loaders.tables import is_frame, open_frame
from sotdd.inputs.preparation import Items, Loaded
from sotdd.inputs.reading import Reading


def open_arrays(source: Any, name: str, reading: Reading) -> Loaded:  # noqa: ANN401  # anything
    """Open ``(features, labels)``, features alone, or a dataset that is open already."""
    if isinstance(source, LabelledData):
        reading.refuse("a dataset that is open")
        known = Labels(source.classes, source.codes)
        return Loaded(source.features, known, source.columns, source.origin, order=source.table)
    if reading.label_column is not None:
        reading.refuse("arrays", "label")
    features, labels = features_and_labels(source, name)
    if reading.unlabelled:
        labels = None
    if is_frame(features):  # beside its labels
        return _open_beside(features, labels, name, reading)
    reading.refuse("arrays")
    items = _items(features)
    if items is None and reading.missing in ("mean", "drop") and isinstance(features, np.ndarray):
        features, origin = _fill_gaps(features)
    else:
        origin = PLAIN
    points: Any = items if items is not None else check_features(features, name)
    return Loaded(points, None if labels is None else Labels.of(labels, len(points), name), origin=origin)


def _fill_gaps(features: NDArray[Any]) -> tuple[NDArray[Any], Origin]:
    """An array with the mean of each feature where it has NaN, and where that is."""
    gaps = np.isnan(features) if features.dtype.kind == "f" else np.zeros(features.shape, bool)
    if not gaps.any():
        return features, PLAIN
    count = (~gaps).sum(axis=0)
    means = np.where(gaps, 0, features).sum(axis=0, dtype=np.float64) / np.maximum(count, 1)
    flat = gaps.reshape(len(gaps), -1)
    masks = {f"feature {place}": flat[:, place] for place in np.flatnonzero(flat.any(axis=0))}
    return np.where(gaps, means.astype(features.dtype), features), Origin(gaps=masks)


def _open_beside(frame: Any, labels: object, name: str, reading: Reading) -> Loaded:  # noqa: ANN401  # of any library
    """A frame whose labels are somewhere else: the same rules as for one that holds them."""
    loaded = open_frame(frame, name, replace(reading, label=None))
    return loaded if labels is None else replace(loaded, labels=Labels.of(labels, len(loaded.features), name))


def is_bunch(source: object) -> bool:
    """Whether a source is a Bunch, as the loaders of scikit-learn return it."""
    return isinstance(source, Mapping) and hasattr(source, "data") and hasattr(source, "target")


def open_bunch(source: Any, name: str, reading: Reading) -> Loaded:  # noqa: ANN401  # scikit-learn is optional
    """Open the data and target of a scikit-learn Bunch; integer targets go by their names."""
    loaded = open_arrays((source.data, source.target), name, reading)
    names = getattr(source, "target_names", None)
    if loaded.labels is None or names is None or isinstance(names, str):
        return loaded
    classes, known = loaded.labels.classes, list(np.asarray(names).tolist())
    if all(isinstance(value, int) and 0 <= value < len(known) for value in classes):
        named = tuple(known[value] for value in classes if isinstance(value, int))
        if len(set(named)) == len(named):
            return replace(loaded, labels=Labels(named, loaded.labels.codes))
    return loaded


def _items(features: object) -> Items | None:
    """Texts or images in a list, or texts in an array; None for anything else."""
    if type(features).__name__ == "Series" and hasattr(features, "to_list"):
        values = features.to_list()
        return Items.of(values) if _all_texts(values) else None
    if isinstance(features, np.ndarray) and features.ndim == 1 and features.dtype.kind in "UTO" and features.size:
        values = features.tolist()
        return Items.of(values) if _all_texts(values) else None
    if isinstance(features, (list, tuple)) and features:
        if _all_texts(features) or all(is_image(item) for item in features):
            return Items.of(features)
        if any(is_image(item) for item in features):
            raise SotddError("some of the features are images and some are not: expected all of one kind.")
    return None


def _all_texts(values: Any) -> bool:  # noqa: ANN401
    return len(values) > 0 and all(isinstance(value, str) for value in values)
