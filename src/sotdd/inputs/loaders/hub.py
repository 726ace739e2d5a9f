"""Datasets of the Hugging Face Hub by name: some row groups of their Parquet files, and nothing else, are fetched.

``hub:NAME`` or ``hub:NAME:CONFIG``. The library `datasets` says which files a split has. Its own streams would fetch up
to 128 MB at a time, and begin with the first rows, which are often all of one class; so files are read here, by row
groups that are drawn at random. What is not Parquet is read as a stream, from the beginning.
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

from sotdd.basics.errors import SotddError, require
from sotdd.inputs.loaded import Loaded
from sotdd.inputs.loaders.huggingface import open_huggingface
from sotdd.inputs.settings import Settings

PREFIX = "hub:"
# The split that is read where none is named.
SPLIT = "train"
# Row groups are drawn from at most this many files, since the footer of each has to be fetched.
_FILES = 16
# The most characters that are shown of an error of the libraries.
_CAUSE = 300
# At least so many row groups are read, where there are: neighbours are often of one class.
_FEWEST_GROUPS = 4

_log = logging.getLogger("sotdd.inputs")


@dataclass(frozen=True)
class HubName:
    """What a dataset is called on the Hub, and which of its configurations is meant.

    Examples
    --------
    >>> from sotdd.inputs.loaders.hub import HubName
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
            raise SotddError(
                f"there is {dataset!r} in this folder, which would be read in place of the Hub's: open it by its path, "
                "or work in another folder."
            )
        return cls(dataset, config or None)


def open_hub(text: str, name: str, settings: Settings) -> Loaded:
    """Open a sample of a dataset on the Hub."""
    library = require("datasets", f"reading {text}", "'sotdd[hub]'")
    client = require("huggingface_hub", f"reading {text}", "'sotdd[hub]'")
    wanted = HubName.parse(text)
    if settings.max_points is None:
        raise SotddError(f"{name} is on the Hub, and may be of any size: pass max_points= to take a sample of it.")
    with _reading(wanted.dataset):
        client.HfApi().dataset_info(wanted.dataset)  # its errors are clearer than those of the library
        builder = library.load_dataset_builder(wanted.dataset, wanted.config)
        files = builder.config.data_files or {}
        split = settings.split or (SPLIT if SPLIT in files or len(files) != 1 else next(iter(files)))
        if split not in files:
            raise SotddError(
                f"dataset {wanted.dataset!r} has the splits {', '.join(map(repr, files))} and no {split!r}: choose one "
                "with split=."
            )
        settings = replace(settings, split=None)
        if not all(str(path).endswith(".parquet") for path in files[split]):
            return open_huggingface(builder.as_streaming_dataset(split=split), name, settings)
        table = _sampled([str(path) for path in files[split]], client.HfFileSystem(), name, settings)
        info = library.DatasetInfo(features=builder.info.features)
        return open_huggingface(library.Dataset(library.table.InMemoryTable(table), info=info), name, settings)


def drawn_groups(sizes: Sequence[int], wanted: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Numbers of row groups of these sizes, drawn at random, that have enough rows together; in order.

    Examples
    --------
    >>> import numpy as np
    >>> from sotdd.inputs.loaders.hub import drawn_groups
    >>> len(drawn_groups([100] * 50, 700, np.random.default_rng(0)))
    7
    """
    order = rng.permutation(len(sizes))
    enough = int(np.searchsorted(np.cumsum(np.asarray(sizes)[order]), wanted)) + 1
    return np.sort(order[: max(enough, _FEWEST_GROUPS)])


def _sampled(paths: Sequence[str], store: Any, name: str, settings: Settings) -> Any:  # noqa: ANN401  # Arrow's table
    """Row groups drawn at random that have enough rows together, in their order."""
    arrow = require("pyarrow", f"reading {name}", "'sotdd[hub]'")
    parquet = require("pyarrow.parquet", f"reading {name}", "'sotdd[hub]'")
    rng = np.random.default_rng(settings.seed)
    chosen = [paths[place] for place in np.sort(rng.permutation(len(paths))[:_FILES])]
    # Without a cache of blocks, each range that the reader asks for is one request, and no more than that.
    streams = [store.open(path, "rb", cache_type="none") for path in chosen]
    files = [parquet.ParquetFile(stream, pre_buffer=True) for stream in streams]
    groups = [(file, group) for file in files for group in range(file.metadata.num_row_groups)]
    if not groups:
        raise SotddError(f"{name} has no rows: expected at least one.")
    assert settings.max_points is not None
    sizes = [file.metadata.row_group(group).num_rows for file, group in groups]
    taken = [groups[place] for place in drawn_groups(sizes, settings.max_points, rng)]
    parts = [file.read_row_group(group, _asked_for(file.schema_arrow.names, settings)) for file, group in taken]
    table = arrow.concat_tables(parts, promote_options="default")
    _log.info(
        "%s: %s of %s row groups read, %s rows, of %d of %d files.",
        name, f"{len(taken):,}", f"{len(groups):,}", f"{table.num_rows:,}", len(files), len(paths),
    )  # fmt: skip
    return table


def _asked_for(columns: Sequence[str], settings: Settings) -> list[str] | None:
    """The columns to fetch; None for all, where features or labels are found among them by what they are."""
    label = settings.label_column
    if settings.features is None or (label is None and not settings.unlabelled):
        return None
    named = {*map(str, settings.features), *([] if label is None else [str(label)])}
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
