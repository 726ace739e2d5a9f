"""The one way in: whatever holds points and labels, opened as `LabelledData`, one dataset or several at once.

A source is read by a loader and then completed: gaps are treated, rows chosen, and items become numbers.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, check_name, describe
from sotdd.basics.files import check_path
from sotdd.basics.remarks import Remark, say_gaps
from sotdd.basics.text import join_names, say_count
from sotdd.inputs.agreement import arrange, count_gaps, list_features, match_columns
from sotdd.inputs.arrays import (
    Labels,
    NoRows,
    check_features,
    cut,
    features_and_labels,
    find_edges,
    is_frame,
    is_huggingface_data,
    is_torch_data,
)
from sotdd.inputs.data import Dataset, LabelledData, Origin, Target, cut_alike
from sotdd.inputs.features import take_rows
from sotdd.inputs.loaders.datasets import open_huggingface, open_torch
from sotdd.inputs.loaders.tables import open_frame
from sotdd.inputs.preparation import Items, Loaded, is_image, prepare_rows
from sotdd.inputs.reading import DEFAULTS, OPTIONS, Reading, ReadingSettings, TableSettings
from sotdd.inputs.sampling import sample_rows
from sotdd.inputs.schema import Schema
from sotdd.inputs.sources import open_path, parse_source

if TYPE_CHECKING:
    _Call = TypeVar("_Call", bound=Callable[..., object])


def _shows_reading(call: _Call) -> _Call:
    """Show the options in the signature of a call that takes them as ``**reading``, and in its docstring."""
    shown = inspect.signature(call)
    own = [part for part in shown.parameters.values() if part.kind is not inspect.Parameter.VAR_KEYWORD]
    types = ReadingSettings.__annotations__
    reading = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=getattr(DEFAULTS, name),
            annotation=types[name].__forward_arg__,
        )
        for name in OPTIONS
    ]
    call.__signature__ = shown.replace(parameters=[*own, *reading])  # type: ignore[attr-defined]
    before, found, after = (inspect.getdoc(call) or "").partition("**reading\n")  # without docstrings nothing is found
    if found:
        wrap = textwrap.TextWrapper(116, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
        told = [f"{name}\n{wrap.fill(option.help)}\n" for name, option in OPTIONS.items()]
        call.__doc__ = before + "".join(told) + after.partition("\n")[2]
    return call


@_shows_reading
def open_dataset(source: Dataset, *, name: str | None = None, **reading: Unpack[ReadingSettings]) -> LabelledData:
    """Open data as people have it: arrays, frames, files, image folders, torch and Hugging Face datasets.

    Every call that takes a dataset opens it this way. Call this function yourself to say how: which column
    holds the labels, to what size images are brought, and so on. Files are read in blocks, not whole.

    Parameters
    ----------
    source
        ``(features, labels)``, features alone, a frame, a torch Dataset or DataLoader,
        a Hugging Face dataset, or a path: ``.npz``, ``.npy``; ``.csv``, ``.parquet``, ``.arrow``,
        ``.jsonl`` (a file, a folder or a pattern), ``.xlsx``, ``.sqlite``, ``.duckdb``; a folder of images
        with one sub-folder per class; ``-`` for CSV on standard input. Options may
        follow the path, as in ``"table.csv::label=species"``; they take precedence over the arguments.
    name
        What messages, tables and reports call the dataset.
    **reading
        The options of `sotdd.inputs.reading.Reading`.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> x = np.arange(12.0).reshape(6, 2)
    >>> sotdd.open_dataset((x, [0.1, 0.7, 0.2, 0.9, 0.5, 0.4]), bins=2, name="temperatures")
    LabelledData('temperatures': 6 points, 2 features, 2 classes)
    >>> sotdd.open_dataset((x, ["a", None, "b", "a", "b", "a"]), missing="drop", max_points=4)
    LabelledData('data': 4 points, 2 features, 2 classes)
    >>> texts = ["one", "three", "five"]
    >>> sotdd.open_dataset((texts, [1, 0, 0]), encoder=lambda batch: [[len(text)] for text in batch])
    LabelledData('data': 3 points, 1 feature, 2 classes)
    >>> import pyarrow
    >>> table = pyarrow.table({"age": [31, None, 56], "city": ["Rome", "Oslo", "Rome"], "label": [0, 1, 1]})
    >>> opened = sotdd.open_dataset(table)
    >>> opened.columns
    ('age', 'age is missing', 'city=Oslo', 'city=Rome')
    >>> opened.remarks
    (Remark: values missing in 1 of 3 rows, age (1); numbers are filled in by the mean of their column,)
    """
    return open_alike(source, None, name=name, **reading)


def open_alike(
    source: Dataset, schema: Schema | None, *, name: str | None = None, **reading: Unpack[ReadingSettings]
) -> LabelledData:
    """Open a dataset and, of a table, the columns of another one, whose ``schema`` it is, as what they are there.

    Columns that the other left out are judged but left out too; further ones are not read. Features that are asked for
    by name take precedence.
    """
    check_name(name)
    if isinstance(source, (str, PathLike)):
        text = source if isinstance(source, str) else str(check_path(source))
        path, own = parse_source(source) if isinstance(source, str) else (text, {})
        options = {**reading, **own}
        name = name or options.pop("name", text) or "data"
        asked = Reading.of(**options).like(schema)
        return complete(open_path(path, name, asked), name, asked)
    asked = Reading.of(**reading).like(schema)
    if isinstance(source, LabelledData):
        source, name = LabelledData.of(source, name), name or source.name
        if asked is DEFAULTS:
            return source
    name = name or "data"
    return complete(_open_object(source, name, asked), name, asked)


def _open_object(source: Any, name: str, reading: Reading) -> Loaded:  # noqa: ANN401  # anything
    """Open an object by what its type is called and what it can do: no library is imported to tell."""
    if is_frame(source):
        return open_frame(source, name, reading)
    if is_huggingface_data(source):
        return open_huggingface(source, name, reading)
    if is_torch_data(source):
        tensors = source.tensors if type(source).__name__ == "TensorDataset" else ()
        if len(tensors) == 2 and reading.label_is_auto:
            return _open_arrays(tensors, name, reading)  # as they are, on their device
        return open_torch(source, name, reading)
    return _open_arrays(source, name, reading)


def _open_arrays(source: Any, name: str, reading: Reading) -> Loaded:  # noqa: ANN401  # anything
    """Open ``(features, labels)``, features alone, or a dataset that is open already."""
    if isinstance(source, LabelledData):
        reading.refuse("a dataset that is open")
        known = Labels(source.classes, source.codes)
        return Loaded(source.features, known, source.columns, source.origin, order=source.table)
    if reading.label_column is not None:
        reading.refuse("arrays", "label")
    features, labels = features_and_labels(source, name)
    if is_frame(features):  # beside its labels: the same rules as for one that holds them
        loaded = open_frame(features, name, replace(reading, label=None, max_points=None))
    else:
        reading.refuse("arrays")
        items = _list_items(features)
        held = Items(len(items), lambda rows: [items[row] for row in rows]) if items else check_features(features, name)
        loaded = Loaded(held, None)
    if labels is None or reading.unlabelled:
        return loaded
    return replace(loaded, labels=Labels.of(labels, len(loaded.features), name))


def _list_items(features: Any) -> list[Any]:  # noqa: ANN401  # anything
    """Texts or images in a list, or texts in an array or a column; none for anything else."""
    if type(features).__name__ == "Series" and hasattr(features, "to_list"):
        values = features.to_list()
    elif isinstance(features, np.ndarray) and features.ndim == 1 and features.dtype.kind in "UTO":
        values = features.tolist()
    else:
        values = list(features) if isinstance(features, (list, tuple)) else []
    images = sum(map(is_image, values))
    if 0 < images < len(values):
        raise SotddError("some of the features are images and some are not: expected all of one kind.")
    return values if images or all(isinstance(value, str) for value in values) else []


def complete(loaded: Loaded, name: str, reading: Reading) -> LabelledData:
    """Check that features and labels agree, treat gaps, choose rows, and make numbers of what is none yet."""
    features, origin = loaded.features, loaded.origin
    labels = loaded.labels or Labels.one_class(len(features))
    if loaded.labels is None and not reading.unlabelled:
        origin = replace(origin, labelled=False)
    if reading.bins is None:
        if loaded.rows is None:  # a loader that takes a sample looks at all labels that it has read
            labels.refuse_odd(name)
        origin = origin.also(*labels.remark_many())
    else:
        labels, origin = _cut_target(loaded, origin, reading.bins, name)
    n_seen = len(features) if loaded.rows is None else origin.rows_seen
    groups = _find_groups(loaded, reading, n_seen, name)
    origin = replace(origin, groups=groups, rows_seen=origin.rows_seen or n_seen)
    most = None if loaded.rows is not None else reading.max_points
    rows, origin = _choose_rows(labels, origin, name, reading, most)
    if loaded.rows is not None:
        origin = origin.also(Remark("sampled", taken=len(features) if rows is None else len(rows), n_points=n_seen))
    if isinstance(features, Items):
        mode = loaded.image_mode or reading.image_mode
        features = prepare_rows(features, rows, name, replace(reading, image_mode=mode))
    elif rows is not None:
        features = take_rows(features, rows)
    kept = labels.take(rows)
    origin = origin if rows is None else origin.take(rows)
    data = LabelledData(name, features, kept.classes, kept.codes, loaded.columns, origin)
    if loaded.columns is not None and (origin.categories or origin.gaps):
        data = arrange(data, list_features(loaded.order, [data]))
    prepares = reading.prepares and not loaded.prepared and not isinstance(loaded.features, Items)
    if prepares:
        data = replace(data, features=prepare_rows(data.features, None, name, reading))
    if prepares or not loaded.named:  # what an encoder returns are no longer these columns
        data = replace(data, columns=None, origin=replace(data.origin, categories={}, gaps={}))
    return data


def _find_groups(loaded: Loaded, reading: Reading, n_seen: int, name: str) -> NDArray[np.int64] | None:
    """(n,) which rows belong together: by a column, by what was given, or as neighbours; None if each is by itself."""
    numbers = np.arange(n_seen, dtype=np.int64) if loaded.rows is None else loaded.rows
    if reading.blocks is not None:
        return numbers // reading.blocks
    if reading.groups is None:
        return loaded.origin.groups
    if loaded.groups is not None:
        codes = loaded.groups.codes.astype(np.int64)
        return np.where(codes < 0, len(loaded.groups.classes) + np.arange(len(codes)), codes)  # unknown: by themselves
    if isinstance(reading.groups, str):
        raise SotddError(f"names a column but {name} is no table: give one entry per row.", setting="groups")
    if len(reading.groups) != n_seen:
        entries, rows = say_count(len(reading.groups), "entry", "entries"), say_count(n_seen, "row")
        raise SotddError(f"has {entries} but {name} has {rows}: give one entry per row.", setting="groups")
    places: dict[Any, int] = {}
    return np.array([places.setdefault(entry, len(places)) for entry in reading.groups], np.int64)[numbers]


def _cut_target(loaded: Loaded, origin: Origin, bins: int, name: str) -> tuple[Labels, Origin]:
    """Labels that are numbers cut into classes of about equal size, by quantiles; the origin keeps the numbers."""
    if loaded.labels is None:
        raise SotddError(
            f"is given but {name!r} has no labels: leave it out, or name them", setting="bins", by=("label",)
        )
    values = loaded.labels.numbers(name)
    known = loaded.labels.codes >= 0
    labels = cut(values, find_edges(values[known], bins)) if known.any() else loaded.labels
    fewer = [Remark("fewer bins", bins=len(labels.classes), asked=bins)] if len(labels.classes) < bins else []
    return labels, replace(origin, target=Target(values, bins)).also(*fewer)


def _choose_rows(
    labels: Labels, origin: Origin, name: str, reading: Reading, most: int | None
) -> tuple[NDArray[np.integer] | None, Origin]:
    """At most so many rows to keep, ascending, None for all; and the origin with what a reader should know of gaps."""
    drops, gaps, known = reading.missing == "drop", origin.missing, labels.codes >= 0
    if gaps:
        lacking, facts = count_gaps(gaps)
        if reading.missing == "error":
            raise SotddError(f"{name} has missing values in {say_gaps(**facts)}", use={"missing": "mean"})
        origin = origin.also(Remark("rows dropped" if drops else "values filled", **facts))
    if reading.missing == "error":
        labels.refuse_missing(name)
    whole = known & ~lacking if gaps and drops else known
    lost = int(np.count_nonzero(~whole))
    if lost == len(whole):
        raise NoRows(f"dataset {name!r} has no rows with a label and all features: expected at least one.")
    if lost:
        unlabelled = int(np.count_nonzero(~known))
        remarks = [Remark("labels missing", rows=unlabelled)] if unlabelled else []
        origin = replace(origin, rows_lost=lost, rows_read=len(whole)).also(*remarks)
    if most is not None and most < len(whole) - lost:
        sampled = Remark("sampled", taken=most, n_points=len(whole))
        return sample_rows(len(whole), most, reading.seed, whole if lost else None), origin.also(sampled)
    return np.flatnonzero(whole) if lost else None, origin


def open_all(
    datasets: Sequence[Dataset] | Mapping[str, Dataset], **reading: Unpack[ReadingSettings]
) -> list[LabelledData]:
    """Open several datasets under the names that `name_sources` gives them; columns are matched by name."""
    return _open_together(name_sources(datasets), reading)


def open_pair(a: Dataset, b: Dataset, **reading: Unpack[ReadingSettings]) -> list[LabelledData]:
    """Open two datasets, called a and b unless they have names of their own; columns are matched by name."""
    return _open_together([(_own_name(a) or "a", a), (_own_name(b) or "b", b)], reading)


def _open_together(sources: Sequence[tuple[str, Any]], reading: ReadingSettings) -> list[LabelledData]:
    """Open datasets that are compared; a column that is to be left out must be in one of them."""
    opened = [open_dataset(source, name=name, **reading) for name, source in sources]
    said = [one for data in opened for one in data.origin.remarks if one.kind == "nothing to exclude"]
    nowhere = set.intersection(*({*one.facts["columns"]} for one in said)) if len(said) == len(opened) else ()
    if nowhere:
        raise SotddError(f"no dataset has a column {join_names(sorted(nowhere))} to leave out: check the name.")
    are_tables = any(data.columns is not None for data in opened)
    return cut_alike(match_columns(opened) if are_tables else opened)


def name_sources(datasets: object, *kinds: type) -> list[tuple[str, Any]]:
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
        kind = describe(datasets)
        raise SotddError(
            f"is {kind}: expected a list such as [(X1, y1), (X2, y2)], or a dict by name.", setting="datasets"
        )
    if not sources:
        raise SotddError("there are no datasets: expected at least one.")
    result: dict[str, Any] = {}
    for name, source in sources:
        numbered = (f"{name} ({number})" for number in count(2))
        result[next(free for free in chain([name], numbered) if free not in result)] = source
    return list(result.items())


def _own_name(source: object, *kinds: type) -> str | None:
    """What a dataset calls itself: a path is a name, or has one among its options."""
    if isinstance(source, (LabelledData, *kinds)):
        return str(source.name)  # type: ignore[attr-defined]  # each of these kinds has one
    if isinstance(source, str):
        return str(parse_source(source)[1].get("name", source))
    return str(source) if isinstance(source, PathLike) else None


def split_reading(
    settings: Mapping[str, Any], *, by_peer: bool = False, drawn: bool = False
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings of a call, split into those of reading data and all others.

    Samples have the seed of the call, and it has no other use where projections are ``drawn`` already. Peers take
    samples themselves, some of them two.
    """
    own = {*TableSettings.__annotations__} | (set() if by_peer else {"max_points"})
    reading = {name: value for name, value in settings.items() if name in own}
    others = {name: value for name, value in settings.items() if name not in own}
    if reading.get("max_points") is not None:
        reading["seed"] = others.pop("seed", DEFAULTS.seed) if drawn else others.get("seed", DEFAULTS.seed)
    return reading, others
