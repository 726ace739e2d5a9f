"""Output that nobody reads any more: it is dropped, and the exit code stays that of the work."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast


class _UntilClosed:
    """A stream that swallows what comes after its reader has gone away."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # as the stream has it
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except BrokenPipeError:
            self._drop()
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except BrokenPipeError:
            self._drop()

    def _drop(self) -> None:
        """Send what is still buffered, and all that follows, nowhere: Python flushes once more when it ends."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)


@contextmanager
def readers_may_leave() -> Iterator[None]:
    """Let readers of both streams go away at any time, and let either be closed from the start."""
    before = sys.stdout, sys.stderr
    nowhere = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # closed below
    try:
        sys.stdout, sys.stderr = (  # Python has None for a stream that was closed before it began
            cast("TextIO", _UntilClosed(nowhere if stream is None else stream)) for stream in before
        )
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
    finally:
        sys.stdout, sys.stderr = before
        nowhere.close()
