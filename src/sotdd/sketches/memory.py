"""Sketches that do not fit into memory are one line, which says how much is free and what would need less."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sotdd.basics.errors import SotddError
from sotdd.basics.memory import available_bytes, beyond_memory, is_out_of_memory

# Small files are not worth a look at what is free.
_SMALL = 1 << 20


@contextmanager
def memory_for(what: str, advice: str) -> Iterator[None]:
    """Name what did not fit, and what to do; for a block, or as a decorator."""
    try:
        yield
    except (MemoryError, OSError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise beyond_memory(what, error, advice) from error


def refuse_too_large(n_bytes: int, what: str, advice: str) -> None:
    """Refuse to begin what would not fit, where a library would end the process instead of raising an error."""
    if n_bytes > _SMALL and n_bytes > available_bytes():
        raise SotddError(
            f"{what} does not fit into memory (it takes {n_bytes / 1e6:,.0f} MB, {available_bytes() / 1e6:,.0f} MB are "
            f"free): {advice}."
        )
