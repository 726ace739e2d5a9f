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

from sotdd.basics.checks import first_line
from sotdd.basics.errors import SotddError, require
from sotdd.inputs.loaded import Loaded
from sotdd.inputs.loaders.huggingface import open_huggingface
from sotdd.inputs.settings import Settings

PREFIX = "hub:"
# The split that is read where none is named.
SPLIT = "train"
# Row groups are drawn from at most this many files, since the footer of each has to be fetched.
_FILES = 16
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
    with _told_in_one_line(wanted.dataset):
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
    rng = np.random.default_rng(settings.seed)
    chosen = np.sort(rng.permutation(len(paths))[:_FILES])
    files = [_RemoteFile(paths[place], store, settings) for place in chosen]
    groups = [(file, group) for file in files for group in range(file.n_groups)]
    if not groups:
        raise SotddError(f"{name} has no rows: expected at least one.")
    assert settings.max_points is not None
    taken = drawn_groups([file.rows(group) for file, group in groups], settings.max_points, rng)
    table = arrow.concat_tables(
        [file.read(group) for file, group in (groups[place] for place in taken)], promote_options="default"
    )
    _log.info(
        "%s: %s of %s row groups read, %s rows, of %d of %d files.",
        name, f"{len(taken):,}", f"{len(groups):,}", f"{table.num_rows:,}", len(files), len(paths),
    )  # fmt: skip
    return table


class _RemoteFile:
    """A Parquet file on the Hub, of which only what is asked for is fetched."""

    def __init__(self, path: str, store: Any, settings: Settings) -> None:  # noqa: ANN401
        parquet = require("pyarrow.parquet", f"reading {path}", "'sotdd[hub]'")
        # Without a cache of blocks, each range that the reader asks for is one request, and no more than that.
        self._parquet = parquet.ParquetFile(store.open(path, "rb", cache_type="none"), pre_buffer=True)
        self.n_groups = int(self._parquet.metadata.num_row_groups)
        self._columns = _asked_for(self._parquet.schema_arrow.names, settings)

    def rows(self, group: int) -> int:
        """How many rows a group has."""
        return int(self._parquet.metadata.row_group(group).num_rows)

    def read(self, group: int) -> Any:  # noqa: ANN401
        """The columns that were asked for of one group."""
        return self._parquet.read_row_group(group, columns=self._columns)


def _asked_for(columns: Sequence[str], settings: Settings) -> list[str] | None:
    """The columns to fetch; None for all, where features or labels are found among them by what they are."""
    label = settings.label_column
    if settings.features is None or (label is None and not settings.unlabelled):
        return None
    named = {*map(str, settings.features), *([] if label is None else [str(label)])}
    return [column for column in columns if column in named] if named <= set(columns) else None


@contextmanager
def _told_in_one_line(dataset: str) -> Iterator[None]:
    """Turn whatever the libraries raise into one line, and keep what else they say to themselves."""
    loggers = {name: logging.getLogger(name) for name in ("datasets", "huggingface_hub")}
    before = {name: logger.level for name, logger in loggers.items()}
    for logger in loggers.values():
        logger.setLevel(logging.ERROR)
    try:
        yield
    except SotddError:
        raise
    except ImportError as error:
        raise SotddError(
            f"reading dataset {dataset!r} needs a library that is missing ({first_line(error)}): run "
            "'pip install \"sotdd[hub,inputs]\"'."
        ) from error
    except Exception as error:
        told = _fault(type(error).__name__, str(error), dataset)
        of_python = type(error).__module__ == "builtins"  # those of the network are of whichever library speaks HTTP
        if told is None and of_python and not isinstance(error, (OSError, ValueError, RuntimeError)):
            raise
        raise SotddError(
            told
            or f"cannot read dataset {dataset!r} from the Hub ({first_line(error)}): check the network (HF_ENDPOINT "
            "names another Hub), and try again."
        ) from error
    finally:
        for name, logger in loggers.items():
            logger.setLevel(before[name])


def _fault(kind: str, text: str, dataset: str) -> str | None:
    """What is wrong with a dataset, by the error of a library; None where that lies elsewhere."""
    if kind == "GatedRepoError" or (kind == "DatasetNotFoundError" and "is a gated dataset" in text):
        return (
            f"dataset {dataset!r} is given only to who asked for it: ask on its page, and log in with 'hf auth login'."
        )
    if kind in ("RepositoryNotFoundError", "DatasetNotFoundError", "HFValidationError"):
        return (
            f"there is no dataset {dataset!r} on the Hub, or it is private: check the name, or log in with "
            "'hf auth login'."
        )
    if kind in ("EmptyDatasetError", "DataFilesNotFoundError"):
        return f"dataset {dataset!r} has no files that datasets can read: choose another."
    if "Dataset scripts are no longer supported" in text:
        return f"dataset {dataset!r} is made by a script, which is not run: choose one that has its data in files."
    configs = re.search(r"(?:available configs|Available): \[(.*?)\]", text)
    if configs is not None:
        return f"dataset {dataset!r} has the configurations {configs[1]}: name one, as in {dataset}:CONFIG."
    return None
