"""Some rows of features that are read in blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.inputs.streamed import StreamedFeatures


class ChosenRows(StreamedFeatures):
    """The rows of a sample, or those that have a label, read from where they are."""

    def __init__(self, features: StreamedFeatures, rows: NDArray[np.integer]) -> None:
        super().__init__(features.name, (len(rows), *features.shape[1:]), features.dtype, finite=True)  # it looks
        self._features = features
        self._rows = rows

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Pick the rows from the features they belong to."""
        return self._features[self._rows[start:stop]]
