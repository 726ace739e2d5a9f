"""Arrays of any library, lists, and pairs of features and labels."""

from __future__ import annotations

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
    if is_frame(features):  # beside its labels: the same rules as for one that holds them
        loaded = open_frame(features, name, replace(reading, label=None))
    else:
        reading.refuse("arrays")
        loaded = _open_features(features, name, reading)
    if labels is None or reading.unlabelled:
        return loaded
    return replace(loaded, labels=Labels.of(labels, len(loaded.features), name))


def _open_features(features: Any, name: str, reading: Reading) -> Loaded:  # noqa: ANN401  # anything
    """Numbers, with the mean of each feature in place of NaN if that was asked for; or texts or images."""
    items = _list_items(features)
    if items:
        return Loaded(Items.of(items), None)
    if reading.missing not in ("mean", "drop") or getattr(features, "dtype", np.dtype(bool)).kind != "f":
        return Loaded(check_features(features, name), None)
    gaps: NDArray[np.bool_] = np.isnan(features)
    count = (~gaps).sum(axis=0)
    means = np.where(gaps, 0, features).sum(axis=0, dtype=np.float64) / np.maximum(count, 1)
    flat = gaps.reshape(len(gaps), -1)
    masks = {f"feature {place}": flat[:, place] for place in np.flatnonzero(flat.any(axis=0))}
    filled = np.where(gaps, means.astype(features.dtype), features) if masks else features
    return Loaded(check_features(filled, name), None, origin=Origin(gaps=masks) if masks else PLAIN)


def _list_items(features: Any) -> list[Any]:  # noqa: ANN401  # anything
    """Texts or images in a list, or texts in an array or a column; none for anything else."""
    if type(features).__name__ == "Series" and hasattr(features, "to_list"):
        values = features.to_list()
    elif isinstance(features, np.ndarray) and features.ndim == 1 and features.dtype.kind in "UTO":
        values = features.tolist()
    else:
        values = list(features) if isinstance(features, (list, tuple)) else []
    images = sum(map(is_image, values))
    if 0 < images < len(values):
        raise SotddError("some of the features are images and some are not: expected all of one kind.")
    return values if images or all(isinstance(value, str) for value in values) else []
