"""Folders of images or texts: the class of a file is the sub-folder it is in."""

from __future__ import annotations

import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import first_line
from sotdd.basics.errors import SotddError, require
from sotdd.basics.text import say_count
from sotdd.inputs.labels import Labels, sample_rows
from sotdd.inputs.loaders.images import BATCH, fit_image, is_grey, sizes_error
from sotdd.inputs.preparation import Items, Loaded
from sotdd.inputs.reading import Reading
from sotdd.inputs.sources import access_error, files_below

_IMAGES = {".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}
_TEXTS = {".txt", ".md"}


def open_folder(folder: Path, name: str, reading: Reading) -> Loaded:
    """Find the images or texts of a folder; they are read when they are wanted."""
    reading.refuse("a folder")
    if reading.label_column is not None:  # the class of a file is its sub-folder
        reading.refuse("a folder", "label")
    paths, classes = _list_files(folder, reading.unlabelled, _IMAGES)
    if not paths:
        return _open_texts(folder, name, reading)
    require("PIL.Image", f"reading images of {folder}", "'sotdd[inputs]'")
    if reading.max_points is not None and reading.max_points < len(paths):
        rows = sample_rows(np.arange(len(paths)), reading.max_points, reading.seed)
        paths, classes = [paths[row] for row in rows], [classes[row] for row in rows]
    skip = reading.broken == "skip"
    headers = [_header(path, skip) for path in paths]
    seen = [header for header in headers if header is not None]
    if not seen:
        images = say_count(len(paths), "image", "images")
        raise SotddError(f"{folder} has {images} and none can be read: expected at least one.")
    kept = [row for row, header in enumerate(headers) if header is not None]
    paths, classes = [paths[row] for row in kept], [classes[row] for row in kept]
    if reading.image_size is None and reading.encoder is None:
        for size, _ in seen:
            if size != seen[0][0]:
                raise sizes_error(name, seen[0][0], size)
    mode = reading.image_mode or ("L" if all(is_grey(mode) for _, mode in seen) else "RGB")
    decode = partial(_decode, size=reading.image_size, mode=mode, skip=skip)

    def read(rows: NDArray[np.integer]) -> list[Any]:
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as threads:
            return list(threads.map(decode, [paths[row] for row in rows]))

    items = Items(len(paths), read, BATCH, broken=len(headers) - len(kept))
    return Loaded(items, Labels.of(classes, len(classes), name), sampled=True, image_mode=mode)


def _decode(path: Path, size: tuple[int, int] | None, mode: str, skip: bool) -> Any:  # noqa: ANN401  # an image
    """An image brought to its size; None for a broken one, where these may be skipped."""
    pillow = require("PIL.Image", "reading images", "'sotdd[inputs]'")
    try:
        with pillow.open(path) as image:
            image.load()
            return image.copy() if size is None else fit_image(image, size, mode)
    except Exception as error:  # noqa: BLE001  # of whatever decoder
        _refuse(path, error, skip)
        return None


def _open_texts(folder: Path, name: str, reading: Reading) -> Loaded:
    """The texts of a folder, which an encoder turns into numbers."""
    paths, classes = _list_files(folder, reading.unlabelled, _TEXTS)
    if not paths:
        raise SotddError(
            f"{folder} has no sub-folders with images or texts: expected one per class, or pass label=None."
        )
    if reading.encoder is None:
        raise SotddError(f"{folder} holds texts: pass encoder=, such as the name of a model.")

    def read(rows: NDArray[np.integer]) -> list[Any]:
        return [paths[row].read_text(encoding="utf-8", errors="replace") for row in rows]

    return Loaded(Items(len(paths), read), Labels.of(classes, len(classes), name))


def _list_files(folder: Path, unlabelled: bool, suffixes: set[str]) -> tuple[list[Path], list[str]]:
    """Files by how their names end, and the names of their classes, sorted by class and then by path.

    Links that should lead to a file are among them: what cannot be read is told when it is opened.
    """
    groups = sorted(path for path in folder.iterdir() if not path.name.startswith(".") and path.is_dir())
    pairs = sorted(
        (path, "all" if unlabelled else group.name)
        for group in ([folder] if unlabelled else groups)
        for path in files_below(group)
        if path.suffix.lower() in suffixes and not path.name.startswith(".")
    )
    return [path for path, _ in pairs], [group for _, group in pairs]


def _header(path: Path, skip: bool) -> tuple[tuple[int, int], str] | None:
    """Size and mode of an image, from its first bytes; None for a broken one, where these may be skipped."""
    pillow = require("PIL.Image", "reading images", "'sotdd[inputs]'")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pillow.DecompressionBombWarning)
            with pillow.open(path) as image:
                return (image.height, image.width), image.mode
    except Exception as error:  # noqa: BLE001  # of whatever decoder, and for more pixels than Pillow considers safe
        _refuse(path, error, skip)
        return None


def _refuse(path: Path, error: Exception, skip: bool) -> None:
    """Refuse a broken image unless such are skipped; one that may not be read is whole, and is never skipped."""
    if isinstance(error, PermissionError):
        raise access_error(path, error) from error
    if isinstance(error, MemoryError):
        raise error
    if not skip:
        raise SotddError(f"the image {path} is broken ({first_line(error)})", use={"broken": "skip"}) from error
