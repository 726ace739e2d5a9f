"""What datasets have to share to be compared: labels, or none, and one cut of targets into classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sotdd.basics.errors import SotddError
from sotdd.basics.text import counted
from sotdd.inputs.data import LabelledData, same_features
from sotdd.inputs.labels import cut, edges_of


def refuse_half_labelled(datasets: Sequence[LabelledData]) -> None:
    """Refuse to compare data that have labels with data that have none, unless one class was asked for.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> x, y = np.zeros((4, 2)), [0, 0, 1, 1]
    >>> sotdd.distance(sotdd.open_dataset(x, label=None), (x, y), n_projections=8).n_points
    (4, 4)
    >>> sotdd.distance(x, (x, y))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    sotdd.basics.errors.SotddError: dataset 'a' has no labels but dataset 'b' has 2 classes: give labels to both, ...
    """
    bare = next((data for data in datasets if not data.origin.labelled), None)
    rich = next((data for data in datasets if data.origin.labelled and len(data.classes) > 1), None)
    if bare is None or rich is None:
        return
    same_features(datasets)  # which would be the first thing to put right
    classes = counted(len(rich.classes), "class", "classes")
    raise SotddError(
        f"dataset {bare.name!r} has no labels but dataset {rich.name!r} has {classes}: give labels to both, or say "
        f"that all of {bare.name!r} is one class with sotdd.open_dataset(..., label=None)."
    )


def with_common_bins(datasets: Sequence[LabelledData]) -> list[LabelledData]:
    """The datasets with targets cut into the same bins: of all of their values together.

    Bins of each dataset's own would hide that a target is larger in one of them.
    """
    targets = [data.origin.target for data in datasets]
    known = [target for target in targets if target is not None]
    if len(known) < 2:
        return list(datasets)
    bins = {target.bins for target in known}
    if len(bins) > 1:
        raise SotddError(f"targets are cut into {' and '.join(map(str, sorted(bins)))} bins: give all the same bins=.")
    edges = edges_of(np.concatenate([target.values for target in known]), bins.pop())
    result = []
    for data, target in zip(datasets, targets, strict=True):
        if target is None:
            result.append(data)
            continue
        labels = cut(target.values, edges).take(None)
        result.append(replace(data, classes=labels.classes, codes=labels.codes))
    return result
