"""Arrays of any library, lists, and pairs of features and labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sotdd.basics.errors import SotddError
from sotdd.inputs.data import LabelledData
from sotdd.inputs.features import check_features, features_and_labels
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
        loaded = open_frame(features, name, replace(reading, label=None, max_points=None))
    else:
        reading.refuse("arrays")
        items = _list_items(features)
        held = Items(len(items), lambda rows: [items[row] for row in rows]) if items else check_features(features, name)
        loaded = Loaded(held, None)
    if labels is None or reading.unlabelled:
        return loaded
    return replace(loaded, labels=Labels.of(labels, len(loaded.features), name))


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
