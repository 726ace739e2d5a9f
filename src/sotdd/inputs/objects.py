"""Python objects that hold data: which loader opens which."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from sotdd.inputs.data import LabelledData
from sotdd.inputs.loaded import Loaded
from sotdd.inputs.loaders.arrays import is_bunch, open_arrays, open_bunch
from sotdd.inputs.loaders.frames import is_frame, open_frame
from sotdd.inputs.loaders.torch_datasets import is_indexed, is_torch_data, open_torch
from sotdd.inputs.settings import Settings
from sotdd.inputs.sparse import is_sparse
from sotdd.inputs.streamed import StreamedFeatures


def open_object(source: Any, name: str, settings: Settings) -> Loaded:  # noqa: ANN401, PLR0911  # anything
    """Open an object by what its type is called and what it can do: no library is imported to tell."""
    if isinstance(source, tuple) and len(source) == 2 and all(isinstance(part, (str, PathLike)) for part in source):
        from sotdd.inputs.loaders.npy import open_npy

        return open_npy(Path(source[0]), name, settings, labels=Path(source[1]))
    if isinstance(source, (tuple, list, np.ndarray, LabelledData, StreamedFeatures)) or is_sparse(source):
        return open_arrays(source, name, settings)
    if is_bunch(source):
        return open_bunch(source, name, settings)
    if is_frame(source):
        return open_frame(source, name, settings)
    if type(source).__module__.split(".")[0] == "datasets":
        from sotdd.inputs.loaders.huggingface import is_huggingface, open_huggingface

        if is_huggingface(source):
            return open_huggingface(source, name, settings)
    if is_torch_data(source) or is_indexed(source):
        tensors = source.tensors if type(source).__name__ == "TensorDataset" else ()
        if len(tensors) == 2 and settings.label_is_auto:
            return open_arrays(tensors, name, settings)  # as they are, on their device
        return open_torch(source, name, settings)
    return open_arrays(source, name, settings)
