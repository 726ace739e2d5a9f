"""Features with further columns beside them, for every kind of features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.inputs.data import Features
from sotdd.inputs.streamed import StreamedFeatures
from sotdd.inputs.tensors import DeviceFeatures


class MoreColumns(StreamedFeatures):
    """Features that are read in blocks, as a matrix, with further columns from memory."""

    def __init__(self, features: StreamedFeatures, more: NDArray[Any], dtype: np.dtype[Any]) -> None:
        width = int(np.prod(features.shape[1:], dtype=np.int64)) + more.shape[1]
        super().__init__(features.name, (len(features), width), dtype, finite=True)  # they check themselves
        self._features = features
        self._more = more

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Read some rows, and put the further columns beside them."""
        return _beside(self._features[start:stop], self._more[start:stop], self.dtype)


def beside(features: Features, more: NDArray[Any]) -> Features:
    """Features as a matrix (n, d) with further columns (n, k); numbers of one byte stay so where all fit it."""
    if isinstance(features, DeviceFeatures):
        tensor = features.tensor.reshape(len(features), -1)
        width = tensor.shape[1]
        floats = tensor if tensor.is_floating_point() or more.dtype.kind != "f" else tensor.double()
        whole = floats.new_empty((len(features), width + more.shape[1]))
        whole[:, :width] = floats
        whole[:, width:] = floats.new_tensor(more)
        return DeviceFeatures(whole)
    dtype = np.dtype(np.result_type(features.dtype, more.dtype))
    if isinstance(features, StreamedFeatures):
        return MoreColumns(features, more, dtype)
    return _beside(features, more, dtype)


def _beside(rows: NDArray[Any], more: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    return np.concatenate([rows.reshape(len(rows), -1), more], axis=1, dtype=dtype, casting="same_kind")
