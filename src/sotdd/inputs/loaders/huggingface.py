"""Datasets of Hugging Face's `datasets`: in memory, on disk, streamed, or on the Hub by name.

``hub:NAME`` or ``hub:NAME:CONFIG`` is read by row groups of its Parquet files that are drawn at random, and nothing
else is fetched. The library `datasets` says which files a split has. Its own streams would fetch up to 128 MB at a
time, and begin with the first rows, which are often all of one class. What is not Parquet is read as a stream.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import first_line
from sotdd.basics.errors import SotddError, require
from sotdd.basics.remarks import Remark
from sotdd.inputs.labels import Labels
from sotdd.inputs.loaders.arrow import Groups, find_kinds
from sotdd.inputs.loaders.columns import Columns
from sotdd.inputs.loaders.images import BATCH
from sotdd.inputs.loaders.torch_datasets import Batch, open_torch, read_stream, stack_points
from sotdd.inputs.preparation import Items, Loaded
from sotdd.inputs.reading import Reading

# This many rows are read from the mapped file at a time.
_GROUP = 4096


def is_huggingface(source: object) -> bool:
    """Whether a source is one of the library's datasets; it is not imported for that."""
    kind = type(source)
    return kind.__module__.split(".")[0] == "datasets" and kind.__name__ in {
        "Dataset", "DatasetDict", "IterableDataset", "IterableDatasetDict",
    }  # fmt: skip


def open_saved(folder: Path, name: str, reading: Reading) -> Loaded:
    """Open a folder written by ``save_to_disk``; its files are mapped, not read."""
    library = require("datasets", f"reading {folder}", "datasets")
    try:
        source = library.load_from_disk(str(folder))
    except (OSError, ValueError, TypeError, KeyError, RuntimeError) as error:
        raise SotddError(f"cannot read {folder} ({first_line(error)}): expected what save_to_disk writes.") from error
    return open_huggingface(source, name, reading)


def open_huggingface(source: Any, name: str, reading: Reading) -> Loaded:  # noqa: ANN401  # the library is optional
    """Open a dataset: numbers stay in the mapped file until they are read, images are decoded once."""
    reading.refuse("a Hugging Face dataset")
    if isinstance(source, dict):
        source = _choose_split(source, name, reading)
    elif reading.split is not None:
        reading.refuse(f"dataset {name!r}, which has no splits", "split")
    if type(source).__name__ == "IterableDataset":
        return _open_stream(source, name, reading)
    if not len(source):
        raise SotddError(f"{name} has no rows: expected at least one.")
    if source.format["type"] == "custom":  # a transform of the user's decides what rows are
        return open_torch(source, name, reading)

    groups = _Groups(source)
    columns = _choose(source.features, name, reading, groups)
    labels = groups.labels(columns, name)
    if labels is not None:
        labels = _name_classes(labels, source.features[columns.label])
    if columns.kind in ("text", "image"):
        return Loaded(_items(source, columns.features[0], name), labels, origin=columns.origin)
    return groups.load(columns, labels, name)


class _Groups(Groups):
    """A few thousand rows of the mapped file at a time."""

    def __init__(self, source: Any) -> None:  # noqa: ANN401
        self._source = source
        self.sizes = [min(_GROUP, len(source) - start) for start in range(0, len(source), _GROUP)]
        self.schema = source.features.arrow_schema

    def read(self, number: int, columns: Sequence[str]) -> Any:  # noqa: ANN401  # Arrow's
        table = self._source.select_columns(list(columns)).with_format("arrow")
        return table[number * _GROUP : number * _GROUP + self.sizes[number]]

    def has_gaps(self, columns: Sequence[str]) -> bool:
        return any(self._source.data.column(column).null_count for column in columns)


def _choose_split(source: dict[str, Any], name: str, reading: Reading) -> Any:  # noqa: ANN401
    wanted = reading.split or (next(iter(source)) if len(source) == 1 else None)
    if wanted not in source:
        asked = "" if wanted is None else f" and no {wanted!r}"
        known = ", ".join(map(repr, source))
        raise SotddError(f"dataset {name!r} has the splits {known}{asked}: choose one with split=.")
    return source[wanted]


def _choose(features: Any, name: str, reading: Reading, groups: Groups | None = None) -> Columns:  # noqa: ANN401
    """Choose columns; the only column of class labels holds the labels, whatever it is called."""
    coded = [column for column, kind in features.items() if type(kind).__name__ == "ClassLabel"]
    if len(coded) == 1 and reading.label_is_auto:
        reading = replace(reading, label=coded[0])
    images = [column for column, kind in features.items() if type(kind).__name__ == "Image"]
    kinds = find_kinds(features.arrow_schema, name) | dict.fromkeys(images, "image")
    columns = Columns.choose(kinds, reading, name) if groups is None else groups.choose(reading, name, kinds)
    if columns.kind == "image":
        require("PIL.Image", f"reading the images of {name}", "'sotdd[inputs]'")
    return columns


def _name_classes(labels: Labels, feature: Any) -> Labels:  # noqa: ANN401
    """Class labels by their names; `datasets` writes -1 for a label that is not known."""
    if type(feature).__name__ != "ClassLabel":
        return labels
    values = [None if value == -1 or value is None else feature.int2str(value) for value in labels.classes]
    return Labels.in_natural_order(values, labels.codes)


def _items(source: Any, column: str, name: str) -> Items:  # noqa: ANN401
    """A column of texts, or of images that the library decodes."""
    plain = source.select_columns([column]).with_format(None)

    def read(rows: NDArray[np.integer]) -> list[Any]:
        try:
            items: list[Any] = list(plain[rows.tolist()][column])
        except (OSError, ValueError, TypeError, SyntaxError) as error:
            where = f"rows {rows[0]:,} to {rows[-1]:,}"
            raise SotddError(f"cannot read column {column!r} of {name} in {where} ({first_line(error)}).") from error
        if any(item is None for item in items):
            raise SotddError(f"column {column!r} of {name} has missing entries: drop those rows first.")
        return items

    images = type(source.features[column]).__name__ == "Image"
    return Items(len(source), read, BATCH if images else Items.batch_size)


def _open_stream(source: Any, name: str, reading: Reading) -> Loaded:  # noqa: ANN401
    """The first rows of a stream."""
    if source.features is None:
        return open_torch(source, name, reading)
    reading.refuse("a stream")
    columns = _choose(source.features, name, reading)
    loaded = read_stream(_stream_batches(source, columns, name), name, reading, head=True)
    if loaded.labels is None or columns.label is None:
        return loaded
    return replace(loaded, labels=_name_classes(loaded.labels, source.features[columns.label]))


def _stream_batches(source: Any, columns: Columns, name: str) -> Iterator[Batch]:  # noqa: ANN401
    start = 0
    for batch in source.with_format(None).iter(BATCH):
        parts = [batch[column] for column in columns.features]
        points = list(parts[0]) if columns.kind != "numbers" else [list(row) for row in zip(*parts, strict=True)]
        yield stack_points(points, start, name), None if columns.label is None else list(batch[columns.label])
        start += len(points)


PREFIX = "hub:"
# The split that is read where none is named.
SPLIT = "train"
# Row groups are drawn from at most this many files, since the footer of each has to be fetched.
_FILES = 16
# The most characters that are shown of an error of the libraries.
_CAUSE = 300
# At least so many row groups are read, where there are: neighbours are often of one class.
_FEWEST_GROUPS = 4


@dataclass(frozen=True)
class HubName:
    """What a dataset is called on the Hub, and which of its configurations is meant.

    Examples
    --------
    >>> from sotdd.inputs.loaders.huggingface import HubName
    >>> HubName.parse("org/letters:small")
    HubName(dataset='org/letters', config='small')
    """

    dataset: str
    config: str | None = None

    @classmethod
    def parse(cls, text: str) -> HubName:
        """Read NAME or NAME:CONFIG."""
        dataset, _, config = text.removeprefix(PREFIX).partition(":")
        if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", dataset):
            raise SotddError(f"{text!r} is no name of a dataset on the Hub: expected OWNER/NAME, or OWNER/NAME:CONFIG.")
        if Path(dataset).exists():
            raise SotddError(f"there is {dataset!r} in this folder, and the Hub's would not be read: work in another.")
        return cls(dataset, config or None)


def open_hub(text: str, name: str, reading: Reading) -> Loaded:
    """Open a sample of a dataset on the Hub."""
    library = require("datasets", f"reading {text}", "'sotdd[hub]'")
    client = require("huggingface_hub", f"reading {text}", "'sotdd[hub]'")
    wanted = HubName.parse(text)
    if reading.max_points is None:
        raise SotddError(f"{name} is on the Hub, and may be of any size: pass max_points= to take a sample of it.")
    with _reading(wanted.dataset):
        client.HfApi().dataset_info(wanted.dataset)  # its errors are clearer than those of the library
        builder = library.load_dataset_builder(wanted.dataset, wanted.config)
        files = builder.config.data_files or {}
        split = reading.split or (SPLIT if SPLIT in files or len(files) != 1 else next(iter(files)))
        if split not in files:
            known = ", ".join(map(repr, files))
            raise SotddError(
                f"dataset {wanted.dataset!r} has the splits {known}, no {split!r}: choose one with split=."
            )
        reading = replace(reading, split=None)
        if not all(str(path).endswith(".parquet") for path in files[split]):
            return open_huggingface(builder.as_streaming_dataset(split=split), name, reading)
        table, remark = _draw_rows([str(path) for path in files[split]], client.HfFileSystem(), name, reading)
        info = library.DatasetInfo(features=builder.info.features)
        loaded = open_huggingface(library.Dataset(library.table.InMemoryTable(table), info=info), name, reading)
        return replace(loaded, origin=loaded.origin.also(remark))


def draw_groups(sizes: Sequence[int], wanted: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Numbers of row groups of these sizes, drawn at random, that have enough rows together; in order.

    Examples
    --------
    >>> import numpy as np
    >>> from sotdd.inputs.loaders.huggingface import draw_groups
    >>> len(draw_groups([100] * 50, 700, np.random.default_rng(0)))
    7
    """
    order = rng.permutation(len(sizes))
    enough = int(np.searchsorted(np.cumsum(np.asarray(sizes)[order]), wanted)) + 1
    return np.sort(order[: max(enough, _FEWEST_GROUPS)])


def _draw_rows(paths: Sequence[str], store: Any, name: str, reading: Reading) -> tuple[Any, Remark]:  # noqa: ANN401
    """Row groups drawn at random that have enough rows together, in their order."""
    arrow = require("pyarrow", f"reading {name}", "'sotdd[hub]'")
    parquet = require("pyarrow.parquet", f"reading {name}", "'sotdd[hub]'")
    rng = np.random.default_rng(reading.seed)
    chosen = [paths[place] for place in np.sort(rng.permutation(len(paths))[:_FILES])]
    # Without a cache of blocks, each range that the reader asks for is one request, and no more than that.
    streams = [store.open(path, "rb", cache_type="none") for path in chosen]
    files = [parquet.ParquetFile(stream, pre_buffer=True) for stream in streams]
    groups = [(file, group) for file in files for group in range(file.metadata.num_row_groups)]
    if not groups:
        raise SotddError(f"{name} has no rows: expected at least one.")
    assert reading.max_points is not None
    sizes = [file.metadata.row_group(group).num_rows for file, group in groups]
    taken = [groups[place] for place in draw_groups(sizes, reading.max_points, rng)]
    parts = [file.read_row_group(group, _find_asked(file.schema_arrow.names, reading)) for file, group in taken]
    table = arrow.concat_tables(parts, promote_options="default")
    return table, Remark("row groups", groups=len(taken), of=len(groups), rows=table.num_rows)


def _find_asked(columns: Sequence[str], reading: Reading) -> list[str] | None:
    """The columns to fetch; None for all, where features or labels are found among them by what they are."""
    label = reading.label_column
    if reading.features is None or (label is None and not reading.unlabelled):
        return None
    named = {*map(str, reading.features), *([] if label is None else [str(label)])}
    return [column for column in columns if column in named] if named <= set(columns) else None


@contextmanager
def _reading(dataset: str) -> Iterator[None]:
    """Turn whatever the libraries raise into one line, and keep what else they say to themselves."""
    loggers = {name: logging.getLogger(name) for name in ("datasets", "huggingface_hub")}
    before = {name: logger.level for name, logger in loggers.items()}
    for logger in loggers.values():
        logger.setLevel(logging.ERROR)
    try:
        yield
    except SotddError:
        raise
    except Exception as error:  # of whichever library speaks HTTP, too
        cause = " ".join(f"{type(error).__name__}: {error}".split())
        raise SotddError(
            f"cannot read dataset {dataset!r} from the Hub ({cause[:_CAUSE]}): check its name (NAME:CONFIG where it "
            "has several), log in with 'hf auth login' if it is private, or check the network."
        ) from error
    finally:
        for name, logger in loggers.items():
            logger.setLevel(before[name])
