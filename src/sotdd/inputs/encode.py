"""Encoders: whatever turns a batch of texts or images into vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import describe, first_line
from sotdd.basics.errors import SotddError, require
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

    def __init__(self, encoder: object) -> None:
        self._model = encoder if isinstance(encoder, str) else None
        self._call = None if isinstance(encoder, str) else _find_function(encoder)
        if self._model is None and self._call is None:
            raise SotddError(f"is {describe(encoder)}: expected {_EXPECTED}.", setting="encoder")

    def __call__(self, batch: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
        """The vectors of a batch, one per item."""
        if self._call is None:
            library = require("sentence_transformers", f"encoder {self._model!r}", "sentence-transformers")
            try:
                self._call = _find_function(library.SentenceTransformer(self._model))
            except (OSError, ValueError, RuntimeError, ImportError) as error:
                kind = type(error).__name__
                raise SotddError(
                    f"is {self._model!r}, which cannot be loaded ({kind}): check the name.", setting="encoder"
                ) from error
        try:
            assert self._call is not None
            encoded = self._call(batch)
            vectors = host_array(encoded)
        except (ValueError, TypeError, AttributeError) as error:  # of the user's own code, as of a transform
            raise SotddError(f"the encoder failed on a batch ({type(error).__name__}: {first_line(error)}).") from error
        if vectors.ndim == 0 or len(vectors) != len(batch) or vectors.dtype.kind not in "biuf":
            made = f"{describe(encoded)} of shape {vectors.shape} and dtype {vectors.dtype}"
            raise SotddError(
                f"made {made} of {len(batch):,} items: expected one vector of real numbers each.", setting="encoder"
            )
        return vectors


def _find_function(encoder: Any) -> Callable[[Any], Any] | None:  # noqa: ANN401  # of whatever library
    """What an encoder does to a batch; None for what is no encoder.

    A fitted transformer takes rows of numbers, or texts, and what it makes becomes dense.
    """
    if isinstance(encoder, type):
        return None
    if type(encoder).__module__.split(".")[0] == "sentence_transformers":  # its progress bar is not for us
        return lambda batch: encoder.encode(list(batch), show_progress_bar=False, convert_to_numpy=True)
    if hasattr(encoder, "encode") or callable(encoder):
        function: Callable[[Any], Any] = encoder.encode if hasattr(encoder, "encode") else encoder
        return function
    if not hasattr(encoder, "transform"):
        return None

    def encode(batch: Any) -> Any:  # noqa: ANN401  # as above
        made = encoder.transform(batch.reshape(len(batch), -1) if isinstance(batch, np.ndarray) else batch)
        return made.toarray() if hasattr(made, "toarray") else np.asarray(made)

    return encode
