"""Features as they come in: what forms an array of finite numbers, and where one that is not finite stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, describe, first_line
from sotdd.inputs.sparse import SparseRows, is_sparse
from sotdd.inputs.streamed import Features, StreamedFeatures
from sotdd.inputs.tensors import DeviceFeatures, from_tensor, is_tensor

# Values are checked this many at a time.
_BLOCK_VALUES = 1 << 19


def features_and_labels(source: object, name: str) -> tuple[object, object | None]:
    """The features and the labels of a source, with None for labels where it is features alone."""
    if source is None or isinstance(source, (str, bytes, Mapping, set, frozenset)):
        raise SotddError(f"dataset {name!r} is {describe(source)}: expected (features, labels), or features alone.")
    if isinstance(source, tuple):
        if len(source) != 2:
            raise SotddError(f"dataset {name!r} is a tuple of {len(source)}: expected the two (features, labels).")
        features, labels = source
        if labels is None:
            raise SotddError(f"labels of dataset {name!r} are None: pass one label per row, or the features alone.")
        return features, labels
    return source, None


def take_rows(features: Features, rows: NDArray[np.integer]) -> Features:
    """The features of some rows, copied, where they are: on a device, sparse, or in memory."""
    if isinstance(features, DeviceFeatures):
        return DeviceFeatures(features.tensor[rows])
    return features.take(rows) if isinstance(features, SparseRows) else features[rows]


def check_features(features: object, name: str) -> Features:
    """Features as an array of finite real numbers (n, ...), left where they are; anything else is refused."""
    array = _as_features(features, name)
    if array.ndim == 0:
        raise SotddError(f"features of dataset {name!r} are {describe(features)}: expected an array (n, ...).")
    if array.dtype.kind not in "biuf":
        raise SotddError(
            f"features of dataset {name!r} have dtype {array.dtype}: expected real numbers, or pass encoder=."
        )
    if array.size == 0:
        raise SotddError(f"features of dataset {name!r} have shape {array.shape}: expected at least one point.")
    if isinstance(array, SparseRows) and (bad := array.find_non_finite()) is not None:
        raise non_finite_error(name, *bad)
    if array.dtype.kind != "f" or isinstance(array, StreamedFeatures):
        return array  # what is streamed was checked where it comes from
    if isinstance(array, DeviceFeatures) and array.all_finite():
        return array
    size = max(1, _BLOCK_VALUES * len(array) // array.size)
    for start in range(0, len(array), size):
        refuse_non_finite(array[start : start + size], range(start, len(array)), name)
    return array


def refuse_non_finite(
    block: NDArray[Any], rows: range | NDArray[np.integer], name: str, columns: Sequence[str] | None = None
) -> None:
    """Refuse a block that holds NaN or infinities, and say where the first of them is; ``rows`` numbers its rows."""
    if block.flags.c_contiguous and block.dtype in (np.float32, np.float64):
        values = block.reshape(-1)
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(values @ values):  # which takes half the time
                return
    finite = np.isfinite(block)
    if finite.all():
        return
    row, feature = np.argwhere(~finite.reshape(len(block), -1))[0]
    value = block.reshape(len(block), -1)[row, feature]
    raise non_finite_error(name, value, int(rows[row]), int(feature) if columns is None else columns[feature])


def non_finite_error(name: str, value: object, row: int, feature: int | str) -> SotddError:
    """The error for values that are NaN or infinite, with where the first of them is."""
    which = f"column {feature!r}" if isinstance(feature, str) else f"feature {feature:,}"
    return SotddError(
        f"dataset {name!r} has values that are NaN or infinite, the first ({value}) in row {row:,}, {which}: drop them."
    )


def _as_features(features: object, name: str) -> Features:
    """Whatever forms an array as one that is read in blocks: of NumPy, sparse, or a tensor where it is on a device."""
    if isinstance(features, np.ma.MaskedArray) and np.ma.is_masked(features):
        raise SotddError(f"features of dataset {name!r} have masked values: fill or drop them first.")
    if isinstance(features, StreamedFeatures):
        return features
    if is_sparse(features):
        return SparseRows.of(features, name)
    if is_tensor(features):
        return from_tensor(features, name)
    try:
        return np.asarray(features)
    except (MemoryError, SotddError):
        raise
    except Exception as error:  # of whatever library
        raise SotddError(
            f"features of {name!r} do not form an array (n, ...) ({first_line(error)}): pass numbers."
        ) from error
