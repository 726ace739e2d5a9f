"""Folders of images: the class of an image is the sub-folder it is in."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, first_line, require
from sotdd.inputs.arrays import Labels
from sotdd.inputs.data import Origin
from sotdd.inputs.preparation import IMAGES, Items, Loaded, fit_image, is_grey
from sotdd.inputs.reading import Reading
from sotdd.inputs.sampling import sample_rows
from sotdd.inputs.sources import access_error, files_below, refuse_irregular

_IMAGES = {".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}


def open_folder(folder: Path, name: str, reading: Reading) -> Loaded:
    """Find the images of a folder; they are read when they are wanted."""
    reading.refuse("a folder")
    if reading.label_column is not None:  # the class of a file is its sub-folder
        reading.refuse("a folder", "label")
    paths, classes = _list_files(folder, reading.unlabelled)
    if not paths:
        raise SotddError(f"{folder} has no sub-folders with images: expected one per class, or pass label=None.")
    pillow = require("PIL.Image", f"reading images of {folder}", "'sotdd[inputs]'")
    count, chosen = len(paths), None
    if reading.max_points is not None and reading.max_points < count:
        chosen = sample_rows(count, reading.max_points, reading.seed)
        paths, classes = [paths[row] for row in chosen], [classes[row] for row in chosen]
    with warnings.catch_warnings():
        warnings.simplefilter("error", pillow.DecompressionBombWarning)
        modes = {_read_image(path, lambda image: image.mode) for path in paths}
    mode, size = reading.image_mode or ("L" if all(map(is_grey, modes)) else "RGB"), reading.image_size

    def decode(row: int) -> Any:  # noqa: ANN401  # an image
        image = _read_image(paths[row], lambda image: image.copy())
        return image if size is None else fit_image(image, size, mode)

    def read(rows: NDArray[np.integer]) -> list[Any]:
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as threads:
            return list(threads.map(decode, rows))

    labels = Labels.of(classes, len(classes), name)
    return Loaded(Items(len(paths), read, IMAGES), labels, rows=chosen, origin=Origin(rows_seen=count), image_mode=mode)


def _read_image(path: Path, use: Callable[[Any], Any]) -> Any:  # noqa: ANN401  # of an image
    """What is made of an image."""
    refuse_irregular(path)
    try:
        with require("PIL.Image", "reading images", "'sotdd[inputs]'").open(path) as image:
            return use(image)
    except PermissionError as error:
        raise access_error(path, error) from error
    except MemoryError:
        raise
    except Exception as error:  # of whatever decoder, and for more pixels than Pillow considers safe
        raise SotddError(f"the image {path} is broken ({first_line(error)}): mend or remove it.") from error


def _list_files(folder: Path, unlabelled: bool) -> tuple[list[Path], list[str]]:
    """Images, and the names of their classes, sorted by class and then by path.

    Links that should lead to a file are among them: what cannot be read is reported when it is opened. A link back to
    this folder, or to one above it, is no class.
    """
    own = folder.resolve()
    inside = (path for path in folder.iterdir() if not path.name.startswith(".") and path.is_dir())
    groups = sorted(path for path in inside if not own.is_relative_to(path.resolve()))
    pairs = sorted(
        (path, "all" if unlabelled else group.name)
        for group in ([folder] if unlabelled else groups)
        for path in files_below(group)
        if path.suffix.lower() in _IMAGES and not path.name.startswith(".")
    )
    return [path for path, _ in pairs], [group for _, group in pairs]
