"""The one way in: whatever holds points and labels, opened as `LabelledData`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import check_seed, described
from sotdd.basics.defaults import default, given
from sotdd.basics.errors import SotddError
from sotdd.inputs import settings as check
from sotdd.inputs.data import Dataset, Features, LabelledData, checked_features
from sotdd.inputs.encode import Encoder
from sotdd.inputs.items import Found, Items
from sotdd.inputs.labels import Labels
from sotdd.inputs.loaders.arrays import is_bunch, open_arrays, open_bunch
from sotdd.inputs.loaders.frames import is_frame, open_frame
from sotdd.inputs.loaders.torch import is_indexed, is_torch_data, open_torch
from sotdd.inputs.prepare import Preparation, prepared
from sotdd.inputs.settings import Settings
from sotdd.inputs.sources import SourceText, open_source
from sotdd.inputs.streamed import ChosenRows, StreamedFeatures
from sotdd.inputs.tensors import DeviceFeatures


def open_dataset(
    source: Dataset,
    *,
    label: str | int | None = default("auto"),
    features: str | int | Sequence[str | int] | None = None,
    image_size: int | tuple[int, int] | None = None,
    image_mode: Literal["L", "RGB"] | None = None,
    transform: Callable[[Any], Any] | None = None,
    encoder: object | None = None,
    encoder_name: str | None = None,
    bins: int | None = None,
    drop_missing: bool = False,
    max_rows: int | None = None,
    seed: int = 0,
    broken: Literal["refuse", "skip"] = "refuse",
    split: str | None = None,
    name: str | None = None,
) -> LabelledData:
    """Open data as people have it: arrays, frames, files, image folders, torch and Hugging Face datasets.

    Every call that takes a dataset opens it this way; call it yourself to say how. Files are read in
    blocks, not whole.

    Parameters
    ----------
    source
        ``(features, labels)``, features alone, a frame, a scikit-learn Bunch, a torch Dataset or
        DataLoader, a Hugging Face dataset, or a path: ``.npz``, ``.npy``, ``.csv``, ``.parquet`` (a
        file, a folder or a pattern), ``.arrow``, a folder of images with one sub-folder per class, a
        folder saved by ``datasets``. Options may follow the path: ``"table.csv::label=species"``;
        they come before the arguments.
    label
        The column or array of labels, the ``.npy`` file with them, or None for one class. By default
        the only column named label, labels, target, y or class.
    features
        The columns or the array of features. By default all other columns of numbers, or the only
        other column.
    image_size, image_mode
        (height, width) to bring images to, or one number for a square; "L" for grey or "RGB".
    transform
        A function of a batch of features (m, ...) that returns as many rows of numbers, each made of
        its own row alone. It comes last.
    encoder, encoder_name
        What turns texts or images into vectors: a function of a batch, an object with ``encode``, or
        the name of a sentence-transformers model. It gets a list of texts, an array of images where
        ``image_size`` is given, or else a list of Pillow's. Vectors are cached on disk under the
        model's name, ``encoder_name`` or the encoder's ``cache_key``; without one they are not.
    bins
        So many classes of about equal size made of labels that are numbers, by quantiles.
    drop_missing
        Leave out rows without a label, rather than refusing them.
    max_rows, seed
        Take a sample of so many rows without replacement; of streams without an end, the first.
    broken
        Whether a broken image in a folder is refused or skipped.
    split
        Which split of a Hugging Face dataset.
    name
        What messages call it.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> x = np.arange(12.0).reshape(6, 2)
    >>> sotdd.open_dataset((x, [0.1, 0.7, 0.2, 0.9, 0.5, 0.4]), bins=2, name="measured")
    LabelledData('measured': 6 points, 2 features, 2 classes)
    >>> sotdd.open_dataset((x, ["a", None, "b", "a", "b", "a"]), drop_missing=True, max_rows=4)
    LabelledData('data': 4 points, 2 features, 2 classes)
    >>> texts = ["one", "three", "five"]
    >>> sotdd.open_dataset((texts, [1, 0, 0]), encoder=lambda batch: [[len(text)] for text in batch])
    LabelledData('data': 3 points, 1 features, 2 classes)
    """
    asked: dict[str, Any] = {
        "features": features, "image_size": image_size, "image_mode": image_mode, "encoder": encoder, "bins": bins,
        "drop_missing": drop_missing, "max_rows": max_rows, "seed": seed, "broken": broken, "split": split,
        **given(label=label),
    }  # fmt: skip
    if not isinstance(name, str | None):
        raise SotddError(f"name is {described(name)}: expected text, or None.")
    path: str | None = None
    if isinstance(source, (str, PathLike)):
        text = fspath(source)
        parsed = SourceText.parse(text) if isinstance(source, str) else SourceText(text, {})
        path, asked, name = parsed.path, {**asked, **parsed.options}, name or parsed.options.get("name", text)
    elif isinstance(source, LabelledData):
        name = name or source.name
    name = name or "data"
    settings = _settings(asked, transform, encoder_name)
    if isinstance(source, LabelledData) and settings == Settings():
        return replace(source, name=name)
    found, settings = (
        open_source(path, name, settings) if path is not None else (_found(source, name, settings), settings)
    )
    return _finished(found, name, settings)


def _settings(asked: dict[str, Any], transform: object, encoder_name: str | None) -> Settings:
    encoder = asked["encoder"]
    if encoder_name is not None and encoder is None:
        raise SotddError("encoder_name is given but no encoder: pass encoder=, or leave it out.")
    if not isinstance(asked["drop_missing"], (bool, np.bool_)):
        raise SotddError(f"drop_missing is {described(asked['drop_missing'])}: expected True or False.")
    return Settings(
        label=check.checked_label(asked.get("label")),
        label_given="label" in asked,
        features=check.checked_features(asked["features"]),
        image_size=check.checked_image_size(asked["image_size"]),
        image_mode=check.checked_choice(asked["image_mode"], "image_mode", (None, "L", "RGB")),
        transform=check.checked_callable(transform, "transform"),
        encoder=None if encoder is None else Encoder(encoder, encoder_name),
        bins=check.checked_count(asked["bins"], "bins"),
        drop_missing=bool(asked["drop_missing"]),
        max_rows=check.checked_count(asked["max_rows"], "max_rows"),
        seed=check_seed(asked["seed"]),
        broken=check.checked_choice(asked["broken"], "broken", ("refuse", "skip")),
        split=asked["split"],
    )


def _found(source: Any, name: str, settings: Settings) -> Found:  # noqa: ANN401, PLR0911  # anything
    """Tell what a Python object is by what it is called and what it can do."""
    if isinstance(source, tuple) and len(source) == 2 and all(isinstance(part, (str, PathLike)) for part in source):
        from sotdd.inputs.loaders.npy import open_npy

        return open_npy(Path(source[0]), name, settings, labels=Path(source[1]))
    if is_bunch(source):
        return open_bunch(source, name, settings)
    if is_frame(source):
        return open_frame(source, name, settings)
    if type(source).__module__.split(".")[0] == "datasets":
        from sotdd.inputs.loaders.huggingface import is_huggingface, open_huggingface

        if is_huggingface(source):
            return open_huggingface(source, name, settings)
    if is_torch_data(source):
        tensors = getattr(source, "tensors", ())
        if type(source).__name__ == "TensorDataset" and len(tensors) == 2 and not settings.label_given:
            return open_arrays(tensors, name, settings)  # as they are, on their device
        return open_torch(source, name, settings)
    if not isinstance(source, (LabelledData, StreamedFeatures)) and is_indexed(source):
        return open_torch(source, name, settings)
    return open_arrays(source, name, settings)


def _finished(found: Found, name: str, settings: Settings) -> LabelledData:
    """Choose rows, make numbers of what is none yet, and check the rest."""
    if isinstance(found.features, StreamedFeatures):
        checked_features(found.features, name)  # looks at shape and dtype; arrays were checked when they were read
    labels = found.labels or Labels.one_class(len(found.features))
    if len(labels) != len(found.features):
        raise SotddError(
            f"dataset {name!r} has {len(labels):,} labels but {len(found.features):,} points: expected one label each."
        )
    if settings.bins is not None and found.labels is None:
        raise SotddError(f"bins is given but dataset {name!r} has no labels: leave it out.")
    labels = labels.as_classes(settings.bins, name)
    rows = labels.wanted_rows(settings.drop_missing, None if found.sampled else settings.max_rows, settings.seed, name)
    prepare = Preparation(name, settings)
    if isinstance(found.features, Items) or (prepare.needed and not found.prepared):
        features, rows = prepared(found.features, rows, prepare, name)
        columns = None  # what a transform or an encoder made has other meanings
    else:
        features, columns = _some(found.features, rows), found.columns
    kept = labels.take(rows)
    return LabelledData(name, features, kept.classes, kept.codes, columns)


def _some(features: Features, rows: NDArray[np.integer] | None) -> Features:
    if rows is None:
        return features
    if isinstance(features, StreamedFeatures):
        return ChosenRows(features, rows)
    if isinstance(features, DeviceFeatures):
        return DeviceFeatures(features.tensor[rows])
    picked: NDArray[Any] = features[rows]
    return picked
