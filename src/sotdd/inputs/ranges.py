"""Pixels from 0 to 255 beside pixels from 0 to 1: the same images, and nothing in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from sotdd.inputs.data import LabelledData
from sotdd.inputs.tensors import DeviceFeatures

# Fewer features than this are no pixels.
FEWEST_PIXELS = 16
# About so many rows, at even steps, are looked at.
_ROWS = 32
# Bytes reach beyond this in any picture that is not black.
_BRIGHT = 32
_ROUNDING = 1e-6


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
    kinds = {side.name: _kind(side) for side in sides}
    bytes_, fractions = ([name for name, kind in kinds.items() if kind == wanted] for wanted in ("bytes", "fractions"))
    if not bytes_ or not fractions:
        return ()
    return (
        f"values of {bytes_[0]!r} go up to 255 and those of {fractions[0]!r} up to 1: divide the former by 255 if both "
        "are images",
    )


def _kind(data: LabelledData) -> str:
    """Whether values are "bytes", "fractions" of them, or neither, judging by some rows. Looked at once."""
    kind = _SEEN.get(data)
    if kind is None:
        kind = _SEEN[data] = _judged(data)
    return kind


# Matrices ask for every pair, and points on a device are far away. A dataset is gone when nobody else has it.
_SEEN: WeakKeyDictionary[LabelledData, str] = WeakKeyDictionary()


def _judged(data: LabelledData) -> str:
    if data.n_features < FEWEST_PIXELS or data.columns is not None:
        return ""
    values = _some_rows(data).astype(np.float64)
    low, high = values.min(), values.max()
    if low >= 0 and _BRIGHT <= high <= 255 and (values == np.round(values)).all():
        return "bytes"
    return "fractions" if low >= -1 - _ROUNDING and 0.5 < high <= 1 + _ROUNDING else ""


def _some_rows(data: LabelledData) -> NDArray[Any]:
    step = max(1, data.n_points // _ROWS)
    if isinstance(data.features, (np.ndarray, DeviceFeatures)):
        return data.rows(slice(None, None, step))  # at once: every copy from a device is waited for
    return np.concatenate([data.rows(slice(place, place + 1)) for place in range(0, data.n_points, step)])
