"""Encoders: whatever turns a batch of texts or images into vectors, with a cache on disk.

A batch is cached under a hash of its content and of the encoder's name. The vectors of an encoder without
a name of its own are not cached: another encoder would be handed vectors that are not its own.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import describe, first_line
from sotdd.basics.errors import SotddError, require
from sotdd.basics.files import write_whole
from sotdd.inputs.tensors import host_array

_log = logging.getLogger("sotdd.inputs")

Batch = Sequence[Any] | NDArray[Any]

_EXPECTED = "a function of a batch, an object with encode or transform, or the name of a sentence-transformers model"

# Part of every key: change it when vectors are made or stored in another way, and none are taken from the cache.
_FORMAT = "sotdd-encoded-1"


class Encoder:
    """A callable, an object with ``encode`` or ``transform``, or the name of a sentence-transformers model.

    Parameters
    ----------
    encoder
        The callable, the object or the name. What has ``transform`` is fitted, such as a pipeline of scikit-learn.
    name
        A name for this encoder and no other, under which its vectors are cached. By default the
        encoder's ``cache_key``, or the name of the model if it was passed by name.

    Examples
    --------
    >>> from sotdd.inputs.encode import Encoder
    >>> Encoder(lambda texts: [[len(text)] for text in texts])(["a", "word"]).tolist()
    [[1], [4]]
    """

    def __init__(self, encoder: object, name: str | None = None) -> None:
        self._key = name or getattr(encoder, "cache_key", None)
        if self._key is not None and not isinstance(self._key, str):
            raise SotddError(f"the name of an encoder is {describe(self._key)}: expected text.")
        self._model = encoder if isinstance(encoder, str) else None
        self._call = None if isinstance(encoder, str) else _find_function(encoder)
        if self._model is not None:
            self._key = self._key or _model_key(self._model)
        elif self._call is None:
            raise SotddError(f"is {describe(encoder)}: expected {_EXPECTED}.", setting="encoder")

    def __call__(self, batch: Batch) -> NDArray[Any]:
        """The vectors of a batch, one per item."""
        if self._key is None:
            return self._encode(batch)
        path = cache_folder() / "encoded" / f"{_digest(self._key, batch)}.npy"
        vectors = _load_cached(path, len(batch))
        if vectors is None:
            vectors = self._encode(batch)
            _keep(path, vectors)
        return vectors

    def _encode(self, batch: Batch) -> NDArray[Any]:
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


def cache_folder() -> Path:
    """Where encoded batches are cached: ``SOTDD_CACHE``, or ``~/.cache/sotdd``. It may be deleted any time."""
    folder = os.environ.get("SOTDD_CACHE")
    return Path(folder) if folder else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sotdd"


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


def _model_key(model: str) -> str:
    """The key of a model: its name and the version of the library; for a model in a folder also its files."""
    try:
        library = version("sentence-transformers")
    except PackageNotFoundError:
        library = "none"
    folder = Path(model)
    files = sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []
    stamps = [f"{path.relative_to(folder)} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in files]
    return "\n".join([f"sentence-transformers {library} {model}", *stamps])


def _digest(key: str, batch: Batch) -> str:
    """A hash of the encoder's key and of every item; each goes in with its length, so that none run together."""
    sha = hashlib.sha256(_FORMAT.encode())
    for part in [key.encode(), *_parts(batch)]:
        sha.update(len(part).to_bytes(8, "little"))
        sha.update(part)
    return sha.hexdigest()


def _parts(batch: Batch) -> Iterator[bytes]:
    if isinstance(batch, np.ndarray):
        yield f"array {batch.dtype.str} {batch.shape}".encode()
        yield batch.tobytes()
        return
    for item in batch:
        if isinstance(item, str):
            yield b"text"
            yield item.encode("utf-8", "surrogatepass")
        else:  # an image
            yield f"image {item.mode} {item.size}".encode()
            yield item.tobytes()


def _load_cached(path: Path, count: int) -> NDArray[Any] | None:
    """A batch from the cache; None if it is not there or its file is damaged."""
    try:
        vectors: NDArray[Any] = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return vectors if vectors.ndim and len(vectors) == count else None


def _keep(path: Path, vectors: NDArray[Any]) -> None:
    """Write a batch to the cache, whole, so that nobody ever reads half of it."""
    content = io.BytesIO()
    np.save(content, vectors, allow_pickle=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content.getbuffer())
    except (OSError, SotddError) as error:
        _log.warning("encoded batches cannot be cached in %s (%s): set SOTDD_CACHE to another folder.", path, error)
