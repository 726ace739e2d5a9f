"""The one way in: whatever holds points and labels, opened as `LabelledData`, one dataset or several at once.

Plain NumPy arrays go straight to `LabelledData.of`. Everything else is read by a loader and then completed: rows are
chosen, and items become numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sotdd.basics.checks import check_name, described
from sotdd.basics.errors import SotddError
from sotdd.basics.files import checked_path
from sotdd.inputs.column_names import matched
from sotdd.inputs.comparable import with_common_bins
from sotdd.inputs.data import REAL_KINDS, Dataset, LabelledData
from sotdd.inputs.loaded import Loaded
from sotdd.inputs.loaders.arrays import is_bunch, open_arrays, open_bunch
from sotdd.inputs.loaders.frames import is_frame, open_frame
from sotdd.inputs.loaders.torch_datasets import is_indexed, is_torch_data, open_torch
from sotdd.inputs.origin import PLAIN, Origin
from sotdd.inputs.prepare import complete
from sotdd.inputs.settings import AUTO, DEFAULTS, NOTHING_ASKED, Settings, checked_settings
from sotdd.inputs.sources import SourceText, open_path
from sotdd.inputs.sparse import is_sparse
from sotdd.inputs.streamed import StreamedFeatures


def open_dataset(
    source: Dataset,
    *,
    label: str | int | None = AUTO,
    features: str | int | Sequence[str | int] | None = None,
    image_size: int | tuple[int, int] | None = None,
    image_mode: Literal["L", "RGB"] | None = None,
    transform: Callable[[Any], Any] | None = None,
    encoder: object | None = None,
    encoder_name: str | None = None,
    bins: int | None = None,
    drop_missing: bool = False,
    max_points: int | None = None,
    seed: int = 0,
    broken: Literal["refuse", "skip"] = "refuse",
    split: str | None = None,
    name: str | None = None,
    exclude: str | Sequence[str] | None = None,
    one_hot: bool | int = False,
    dates: bool = False,
    missing: Literal["error", "drop", "mean"] = "error",
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> LabelledData:
    """Open data as people have it: arrays, frames, files, image folders, torch and Hugging Face datasets.

    Every call that takes a dataset opens it this way. Call this function yourself to say how: which column
    holds the labels, to what size images are brought, and so on. Files are read in blocks, not whole.

    Parameters
    ----------
    source
        ``(features, labels)``, features alone, a frame, a scikit-learn Bunch, a torch Dataset or
        DataLoader, a Hugging Face dataset, or a path: ``.npz``, ``.npy``, ``.csv``, ``.parquet`` (a
        file, a folder or a pattern), ``.arrow``, a folder of images with one sub-folder per class, a
        folder saved by ``datasets``. Options may follow the path, as in ``"table.csv::label=species"``;
        they take precedence over the arguments.
    label
        The column or array of labels, the ``.npy`` file with them, or None for one class. "auto" stands
        for the only column named label, labels, target, y or class, so a label column that is itself
        called "auto" has to be renamed.
    features
        The columns or the array of features; patterns such as ``"x_*"`` stand for several. By default all other
        columns of numbers and truth values but those called an id, or the only other column. What is left out is
        named in `LabelledData.remarks`.
    image_size, image_mode
        (height, width) to bring images to, or one number for a square; "L" for grey or "RGB".
    transform
        A function of a batch of features (m, ...) that returns one row of numbers for each, made of that
        row alone. It is applied last.
    encoder, encoder_name
        What turns texts or images into vectors: a function of a batch, an object with ``encode``, or
        the name of a sentence-transformers model. It gets a list of texts, an array of images where
        ``image_size`` is given, or else a list of Pillow images. Vectors are cached on disk under the
        model's name, ``encoder_name`` or the encoder's ``cache_key``; without one they are not.
    bins
        Cut labels that are numbers into this many classes of about equal size, by quantiles.
    drop_missing
        Leave out rows without a label, rather than refusing them.
    max_points, seed
        Take a sample of this many points without replacement; from a stream without an end, take the first.
    broken
        Whether a broken image in a folder is refused or skipped.
    split
        Which split of a Hugging Face dataset.
    name
        What messages, tables and reports call the dataset.
    exclude
        Columns that are no features, or patterns of them.
    one_hot
        Make a feature of each value of columns of text that have at most 20 values, or as many as you say.
    dates
        Take dates as numbers: days since the beginning of 1970.
    missing
        What to do about missing values: refuse them, "drop" the rows in which a feature or the label is missing, or
        fill in the "mean" of the column.
    separator, decimal, encoding
        How a CSV file is written: what stands between fields (";", "comma", "tab"; by default told from the header)
        and before fractions ("comma" or "point", the default), and how letters are encoded (UTF-8).

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> x = np.arange(12.0).reshape(6, 2)
    >>> sotdd.open_dataset((x, [0.1, 0.7, 0.2, 0.9, 0.5, 0.4]), bins=2, name="temperatures")
    LabelledData('temperatures': 6 points, 2 features, 2 classes)
    >>> sotdd.open_dataset((x, ["a", None, "b", "a", "b", "a"]), drop_missing=True, max_points=4)
    LabelledData('data': 4 points, 2 features, 2 classes)
    >>> texts = ["one", "three", "five"]
    >>> sotdd.open_dataset((texts, [1, 0, 0]), encoder=lambda batch: [[len(text)] for text in batch])
    LabelledData('data': 3 points, 1 feature, 2 classes)
    >>> import pyarrow
    >>> table = pyarrow.table({"age": [31, None, 56], "city": ["Rome", "Oslo", "Rome"], "label": [0, 1, 1]})
    >>> opened = sotdd.open_dataset(table, one_hot=True, missing="mean")
    >>> opened.columns, opened.remarks
    (('age', 'city=Oslo', 'city=Rome'), ('missing values filled in by the mean of their column: 1 of 3 rows, age (1)',))
    """
    asked: dict[str, Any] = {
        "label": label, "features": features, "image_size": image_size, "image_mode": image_mode,
        "transform": transform, "encoder": encoder, "encoder_name": encoder_name, "bins": bins,
        "drop_missing": drop_missing, "max_points": max_points, "seed": seed, "broken": broken, "split": split,
        "exclude": exclude, "one_hot": one_hot, "dates": dates, "missing": missing, "separator": separator,
        "decimal": decimal, "encoding": encoding,
    }  # fmt: skip
    check_name(name)
    if isinstance(source, (str, PathLike)):
        text = source if isinstance(source, str) else str(checked_path(source))
        parsed = SourceText.parse(text) if isinstance(source, str) else SourceText(text, {})
        name = name or parsed.options.get("name", text) or "data"
        settings = _settings({**asked, **parsed.options})
        return complete(open_path(parsed.path, name, settings), name, settings)
    settings = _settings(asked)
    if settings is DEFAULTS and (isinstance(source, LabelledData) or _is_plain(source)):
        return LabelledData.of(source, name)
    name = name or (source.name if isinstance(source, LabelledData) else "data")
    opened = complete(_open_object(source, name, settings), name, settings)
    return replace(opened, origin=_joined(source.origin, opened.origin)) if isinstance(source, LabelledData) else opened


def _open_object(source: Any, name: str, settings: Settings) -> Loaded:  # noqa: ANN401, PLR0911  # anything
    """Open an object by what its type is called and what it can do: no library is imported to tell."""
    if isinstance(source, tuple) and len(source) == 2 and all(isinstance(part, (str, PathLike)) for part in source):
        from sotdd.inputs.loaders.numpy_files import open_npy

        return open_npy(Path(source[0]), name, settings, labels=Path(source[1]))
    if isinstance(source, (tuple, list, np.ndarray, LabelledData, StreamedFeatures)) or is_sparse(source):
        return open_arrays(source, name, settings)
    if is_bunch(source):
        return open_bunch(source, name, settings)
    if is_frame(source):
        return open_frame(source, name, settings)
    if type(source).__module__.split(".")[0] == "datasets":
        from sotdd.inputs.loaders.huggingface import is_huggingface, open_huggingface

        if is_huggingface(source):
            return open_huggingface(source, name, settings)
    if is_torch_data(source) or is_indexed(source):
        tensors = source.tensors if type(source).__name__ == "TensorDataset" else ()
        if len(tensors) == 2 and settings.label_is_auto:
            return open_arrays(tensors, name, settings)  # as they are, on their device
        return open_torch(source, name, settings)
    return open_arrays(source, name, settings)


def _joined(before: Origin, now: Origin) -> Origin:
    """What was decided about a dataset that is opened once more."""
    if before is PLAIN:
        return now
    labelled_now = before.labelled or now.labelled
    return replace(before, labelled=labelled_now, target=now.target).also(*now.remarks)


def labelled(datasets: Sequence[Dataset] | Mapping[str, Dataset]) -> list[LabelledData]:
    """Open several datasets under the names that `named` gives them; columns that have names are matched by them."""
    return _matched([_opened(source, name) for name, source in named(datasets)])


def labelled_pair(a: Dataset, b: Dataset) -> list[LabelledData]:
    """Open two datasets, called a and b unless they have names of their own; columns are matched by name."""
    return _matched([_opened(source, _own_name(source) or name) for source, name in ((a, "a"), (b, "b"))])


def _opened(source: Dataset, name: str) -> LabelledData:
    """A dataset under this name; one that is open already is not opened again."""
    if isinstance(source, LabelledData) and source.name == name:
        return source
    return open_dataset(source, name=name)


def named(datasets: object, *kinds: type) -> list[tuple[str, Any]]:
    """Sources with the names they go by: their keys in a dict, their own names, or their numbers in a list.

    Objects of these ``kinds`` have a ``name`` of their own, as a `LabelledData` has. Names that occur again are
    numbered.
    """
    if isinstance(datasets, Mapping):
        sources = [(str(name), source) for name, source in datasets.items()]
    elif isinstance(datasets, list) or (
        isinstance(datasets, tuple)
        and all(isinstance(part, (tuple, LabelledData, str, PathLike, *kinds)) for part in datasets)
    ):
        sources = [(_own_name(source, *kinds) or str(number), source) for number, source in enumerate(datasets)]
    else:
        raise SotddError(
            f"datasets is {described(datasets)}: expected a list such as [(X1, y1), (X2, y2)], or a dict by name."
        )
    if not sources:
        raise SotddError("there are no datasets: expected at least one.")
    if isinstance(datasets, Mapping) and len({name for name, _ in sources}) < len(sources):
        raise SotddError(f"two datasets have the same name among {', '.join(name for name, _ in sources)}: rename one.")
    return _told_apart(sources)


def _own_name(source: object, *kinds: type) -> str | None:
    """What a dataset calls itself: a path is a name, or has one among its options."""
    if isinstance(source, (LabelledData, *kinds)):
        return str(source.name)  # type: ignore[attr-defined]  # each of these kinds has one
    if isinstance(source, str):
        return str(SourceText.parse(source).options.get("name", source))
    return str(source) if isinstance(source, PathLike) else None


def _told_apart(sources: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Number the names that occur again."""
    result: dict[str, Any] = {}
    for name, source in sources:
        numbered = (f"{name} ({number})" for number in count(2))
        result[next(free for free in chain([name], numbered) if free not in result)] = source
    return list(result.items())


def _matched(datasets: list[LabelledData]) -> list[LabelledData]:
    """The datasets as they are compared: with the same columns, and targets in the same bins."""
    if any(data.columns is not None for data in datasets):
        datasets = matched(datasets)
    return with_common_bins(datasets) if any(data.origin.target is not None for data in datasets) else datasets


def _settings(asked: dict[str, Any]) -> Settings:
    """The settings that were asked for; values that are the defaults themselves need no check."""
    return DEFAULTS if all(asked[name] is value for name, value in NOTHING_ASKED.items()) else checked_settings(asked)


def _is_plain(source: object) -> bool:
    """Whether a source is an array of numbers, or a pair of one and its labels: subclasses of tuple may know more."""
    if type(source) is tuple:
        source = source[0] if len(source) == 2 else None
    return isinstance(source, np.ndarray) and source.dtype.kind in REAL_KINDS
