"""Arrow files (IPC, Feather), mapped into memory and read one record batch at a time."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, require
from sotdd.inputs.grouped import GroupedRows
from sotdd.inputs.loaded import Loaded
from sotdd.inputs.loaders.arrow_columns import ArrowTexts, arrow, block_of, dtype_of, kinds_of, labels_of
from sotdd.inputs.loaders.columns import Columns
from sotdd.inputs.loaders.contents import ArrowContents
from sotdd.inputs.reading import reading
from sotdd.inputs.settings import Settings

_EXPECTED = "an Arrow file"


def open_arrow(path: Path, name: str, settings: Settings) -> Loaded:
    """Open a file or a stream of record batches; numbers stay in the file until they are read."""
    settings.refuse("Arrow files have no splits and hold no image files", "split", "broken")
    settings.refuse_for_no_csv("Arrow files are not text")
    require("pyarrow", "reading Arrow files", "'sotdd[inputs]'")
    with reading(path, _EXPECTED):
        batches = _Batches(path)
        numbers = range(len(batches.sizes))
        contents = ArrowContents(batches.schema, lambda column: (batches.column(number, column) for number in numbers))
        columns = Columns.choose(kinds_of(batches.schema, name), settings, name, contents)
        if not sum(batches.sizes):
            raise SotddError(f"{name} has no rows: expected at least one.")
        labels = None
        if columns.label is not None:
            labels = labels_of([batches.column(number, columns.label) for number in numbers], name)
        if columns.kind == "text":
            texts = [batches.column(number, columns.features[0]) for number in numbers]
            return Loaded(ArrowTexts(arrow().chunked_array(texts), name), labels, table=columns)
        gaps = columns.kind == "numbers" and any(
            batches.column(number, column).null_count for number in numbers for column in columns.features
        )
        dtype = dtype_of(batches.schema, columns, gaps=gaps)
        first = next(number for number, size in enumerate(batches.sizes) if size)
        shape = block_of(batches.get(first).slice(0, 1), columns, dtype, name).shape[1:]

    def decode(number: int) -> NDArray[Any]:
        with reading(path, _EXPECTED):
            return block_of(batches.get(number), columns, dtype, name, shape)

    rows = GroupedRows(name, batches.sizes, shape, dtype, decode)
    return Loaded(rows, labels, columns=columns.names, table=columns, gaps=gaps)


class _Batches:
    """The record batches of a file, by number."""

    def __init__(self, path: Path) -> None:
        ipc = require("pyarrow.ipc", "reading Arrow files", "'sotdd[inputs]'")
        self._path, self._size = path, path.stat().st_size
        source = arrow().memory_map(str(path))
        self._locks: dict[int, threading.Lock] = {}  # by process: a forked child cannot wait for a thread of its parent
        try:
            reader = ipc.open_file(source)
        except arrow().ArrowInvalid:  # not a file of batches with a footer, so a stream of them
            source.seek(0)
            self._held = list(ipc.open_stream(source))  # views of the map where nothing is compressed
            if not self._held:
                raise SotddError(f"{path} has no rows: expected at least one.") from None
            self._reader = None
            self.schema = self._held[0].schema
            self.sizes = [batch.num_rows for batch in self._held]
            return
        self._reader = reader
        self.schema = reader.schema
        self.sizes = [self.get(number).num_rows for number in range(reader.num_record_batches)]

    def get(self, number: int) -> Any:  # noqa: ANN401  # Arrow is optional
        if self._path.stat().st_size < self._size:  # reading a map beyond the end of its file ends the process
            raise SotddError(
                f"{self._path} has become shorter since it was opened: open it again, and leave it as it is meanwhile."
            )
        if self._reader is None:
            return self._held[number]
        with self._locks.setdefault(os.getpid(), threading.Lock()):
            return self._reader.get_batch(number)

    def column(self, number: int, column: str) -> Any:  # noqa: ANN401
        return self.get(number).column(column)
