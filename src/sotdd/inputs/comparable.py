"""What datasets have to share to be compared: labels, or none, one cut of targets into classes, one range of pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.text import counted
from sotdd.inputs.data import LabelledData, same_features
from sotdd.inputs.labels import cut, edges_of
from sotdd.inputs.tensors import DeviceFeatures

# Fewer features than this are no pixels.
FEWEST_PIXELS = 16
# About this many rows, at even steps, are looked at.
_ROWS = 32
# Bytes reach beyond this in any picture that is not black.
_BRIGHT = 32
_ROUNDING = 1e-6

# Whether a dataset holds bytes or fractions of them. Matrices ask for every pair, and points on a device are far away.
_SEEN: WeakKeyDictionary[LabelledData, str] = WeakKeyDictionary()


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


def remarks_on_ranges(sides: Sequence[LabelledData]) -> tuple[str, ...]:
    """A remark where some datasets hold bytes and others fractions of them.

    Examples
    --------
    >>> import numpy as np
    >>> from sotdd.inputs.data import LabelledData
    >>> pixels = np.random.default_rng(0).integers(256, size=(10, 8, 8)).astype(np.uint8)
    >>> remarks_on_ranges([LabelledData.of(pixels, "a"), LabelledData.of(pixels / 255, "b")])
    ("values of 'a' go up to 255 and those of 'b' up to 1: divide the former by 255 if both are images",)
    """
    for side in sides:
        if side not in _SEEN:
            _SEEN[side] = _judge(side)
    kinds = {side.name: _SEEN[side] for side in sides}
    bytes_, fractions = ([name for name, kind in kinds.items() if kind == wanted] for wanted in ("bytes", "fractions"))
    if not bytes_ or not fractions:
        return ()
    return (
        f"values of {bytes_[0]!r} go up to 255 and those of {fractions[0]!r} up to 1: divide the former by 255 if both "
        "are images",
    )


def _judge(data: LabelledData) -> str:
    """Whether values are "bytes", "fractions" of them, or neither, judging by some rows."""
    if data.n_features < FEWEST_PIXELS or data.columns is not None:
        return ""
    step = max(1, data.n_points // _ROWS)
    if isinstance(data.features, (np.ndarray, DeviceFeatures)):
        rows = data.rows(slice(None, None, step))  # at once: every copy from a device is waited for
    else:
        rows = np.concatenate([data.rows(slice(place, place + 1)) for place in range(0, data.n_points, step)])
    values: NDArray[Any] = rows.astype(np.float64)
    low, high = values.min(), values.max()
    if low >= 0 and _BRIGHT <= high <= 255 and (values == np.round(values)).all():
        return "bytes"
    return "fractions" if low >= -1 - _ROUNDING and 0.5 < high <= 1 + _ROUNDING else ""
