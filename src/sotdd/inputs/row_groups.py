"""Rows that can only be decoded a group at a time, such as the row groups of a Parquet file."""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sotdd.inputs.streamed import StreamedFeatures

# The decoded groups of all datasets together take at most this much, except that the last one is always kept.
HELD_BYTES = 256 << 20

# This many groups were used last, and threads may still be reading from them.
_AT_WORK = 2

_Key = tuple[int, int]


class GroupCache:
    """Decoded groups within a budget of bytes; a group that several threads want is decoded once."""

    def __init__(self, budget: int = HELD_BYTES) -> None:
        self._budget = budget
        self.begin_anew()

    def begin_anew(self) -> None:
        """Hold nothing, as in a forked child: the threads that hold the lock or decode a group are not there."""
        self._lock = threading.RLock()  # a finaliser may run while it is held
        self._groups: OrderedDict[_Key, Future[NDArray[Any]]] = OrderedDict()
        self._bytes = 0

    def get(self, key: _Key, decode: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """The group of that key, decoded now unless it is in the cache."""
        with self._lock:
            held = self._groups.get(key)
            if held is not None:
                self._groups.move_to_end(key)
            else:
                coming: Future[NDArray[Any]] = Future()
                self._groups[key] = coming
        if held is not None:
            return held.result()
        try:
            group = decode()
            group.flags.writeable = False  # many read it
        except BaseException as error:
            with self._lock:
                self._groups.pop(key, None)
            coming.set_exception(error)
            raise
        with self._lock:
            self._bytes += group.nbytes
            coming.set_result(group)
            self._shrink()
        return group

    def forget(self, owner: int) -> None:
        """Drop the groups of a dataset that is gone."""
        with self._lock:
            for key in [key for key in self._groups if key[0] == owner]:
                self._drop(key)

    def _shrink(self) -> None:
        """Drop the groups that will be wanted last.

        Engines go through all rows again and again. So these are the groups that were just read, except for the
        few that threads are working on. Dropping the oldest first would leave nothing for the next round.
        """
        oldest_first = list(self._groups)
        for key in [*oldest_first[-_AT_WORK - 1 :: -1], *oldest_first[-_AT_WORK:-1]]:
            if self._bytes <= self._budget:
                return
            self._drop(key)

    def _drop(self, key: _Key) -> None:
        group = self._groups.get(key)
        if group is not None and group.done():
            del self._groups[key]
            self._bytes -= group.result().nbytes


_cache = GroupCache()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_cache.begin_anew)
_owners = count()


class GroupedRows(StreamedFeatures):
    """Rows that come in groups, some of which are kept once they are decoded.

    Parameters
    ----------
    sizes
        How many rows each group has.
    decode
        A function of the number of a group that returns its rows (m, ...). Several threads call it.
    """

    def __init__(
        self,
        name: str,
        sizes: Sequence[int],
        point_shape: tuple[int, ...],
        dtype: DTypeLike,
        decode: Callable[[int], NDArray[Any]],
    ) -> None:
        self._edges = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        super().__init__(name, (int(self._edges[-1]), *point_shape), dtype)
        self._decode = decode
        self._owner = next(_owners)
        weakref.finalize(self, _cache.forget, self._owner)

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """A view of the rows if they are in one group, or a copy if they are in several."""
        first = int(np.searchsorted(self._edges, start, side="right")) - 1
        parts = []
        for group in range(first, len(self._edges) - 1):
            low, high = int(self._edges[group]), int(self._edges[group + 1])
            if low >= stop:
                break
            if high > low:
                parts.append(self._group(group)[max(start - low, 0) : stop - low])
        return parts[0] if len(parts) == 1 else np.concatenate([*parts, np.empty((0, *self.shape[1:]), self.dtype)])

    def _group(self, group: int) -> NDArray[Any]:
        return _cache.get((self._owner, group), lambda: self._decode(group))
