"""Encoders: whatever turns a batch of texts, images or rows into vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, describe, first_line, require
from sotdd.inputs.tensors import host_array

_EXPECTED = "a function of a batch, an object with encode or transform, or the name of a sentence-transformers model"


class Encoder:
    """A callable, an object with ``encode`` or ``transform``, or the name of a sentence-transformers model.

    Parameters
    ----------
    encoder
        The callable, the object or the name. What has ``transform`` is fitted, such as a pipeline of scikit-learn.

    Examples
    --------
    >>> from sotdd.inputs.encode import Encoder
    >>> Encoder(lambda texts: [[len(text)] for text in texts])(["a", "word"]).tolist()
    [[1], [4]]
    """

    def __init__(self, encoder: Any) -> None:  # noqa: ANN401  # of whatever library
        can_encode = callable(encoder) or hasattr(encoder, "encode") or hasattr(encoder, "transform")  # as a text can
        if isinstance(encoder, type) or not can_encode or (isinstance(encoder, str) and not encoder):
            raise SotddError(f"is {describe(encoder)}: expected {_EXPECTED}.", setting="encoder")
        self._encoder = encoder

    def __call__(self, batch: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
        """The vectors of a batch, one per item."""
        if isinstance(self._encoder, str):
            library = require("sentence_transformers", f"encoder {self._encoder!r}", "sentence-transformers")
            try:
                self._encoder = library.SentenceTransformer(self._encoder)
            except (OSError, ValueError, RuntimeError, ImportError) as error:
                why = f"cannot be loaded ({type(error).__name__}): check the name"
                raise SotddError(f"is {self._encoder!r}, which {why}.", setting="encoder") from error
        try:
            encoded = self._encode(batch)
            vectors = host_array(encoded)
        except (ValueError, TypeError, LookupError, AttributeError, RuntimeError) as error:  # of the user's own code
            raise SotddError(f"the encoder failed on a batch ({type(error).__name__}: {first_line(error)}).") from error
        if vectors.ndim == 0 or len(vectors) != len(batch) or vectors.dtype.kind not in "biuf":
            made = f"{describe(encoded)} of shape {vectors.shape} and dtype {vectors.dtype}"
            raise SotddError(
                f"made {made} of {len(batch):,} items: expected one vector of real numbers each.", setting="encoder"
            )
        return vectors

    def _encode(self, batch: Any) -> Any:  # noqa: ANN401  # as above
        """What the encoder makes; a fitted transformer takes rows of numbers, or texts, and may make them sparse."""
        encoder = self._encoder
        if type(encoder).__module__.split(".")[0] == "sentence_transformers":  # its progress bar is not for us
            return encoder.encode(list(batch), show_progress_bar=False, convert_to_numpy=True)
        if hasattr(encoder, "encode") or callable(encoder):
            return encoder.encode(batch) if hasattr(encoder, "encode") else encoder(batch)
        made = encoder.transform(batch.reshape(len(batch), -1) if isinstance(batch, np.ndarray) else batch)
        return made.toarray() if hasattr(made, "toarray") else made
