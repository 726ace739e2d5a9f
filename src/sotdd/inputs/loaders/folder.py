"""Folders of images: the class of an image is the sub-folder it is in."""

from __future__ import annotations

import logging
import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import first_line
from sotdd.basics.errors import SotddError, require
from sotdd.basics.text import counted
from sotdd.inputs.files import files_below, unreadable
from sotdd.inputs.labels import Labels, sample_rows
from sotdd.inputs.loaded import Items, Loaded
from sotdd.inputs.loaders.images import BATCH, fitted, is_grey, other_sizes
from sotdd.inputs.settings import OF_TABLES, Settings

_log = logging.getLogger("sotdd.inputs")

SUFFIXES = {".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}


def open_folder(folder: Path, name: str, settings: Settings) -> Loaded:
    """Find the images of a folder; they are decoded when they are read."""
    named = ["label"] if settings.label_column is not None else []  # the class of an image is its sub-folder
    settings.refuse("a folder of images", "features", *named, *OF_TABLES)
    require("PIL.Image", f"reading images of {folder}", "'sotdd[inputs]'")
    paths, classes = _images(folder, settings.unlabelled)
    if settings.max_points is not None and settings.max_points < len(paths):
        rows = sample_rows(np.arange(len(paths)), settings.max_points, settings.seed)
        paths, classes = [paths[row] for row in rows], [classes[row] for row in rows]
    skip = settings.broken == "skip"
    headers = [_header(path, skip) for path in paths]
    seen = [header for header in headers if header is not None]
    if not seen:
        images = counted(len(paths), "image", "images")
        raise SotddError(f"{folder} has {images} and none can be read: expected at least one.")
    kept = [row for row, header in enumerate(headers) if header is not None]
    paths, classes = [paths[row] for row in kept], [classes[row] for row in kept]
    if settings.image_size is None and settings.encoder is None:
        for size, _ in seen:
            if size != seen[0][0]:
                raise other_sizes(name, seen[0][0], size)
    mode = settings.image_mode or ("L" if all(is_grey(mode) for _, mode in seen) else "RGB")
    items = FolderImages(paths, settings.image_size, mode, skip=skip, broken=len(headers) - len(kept))
    return Loaded(items, Labels.of(classes, len(classes), name), sampled=True, image_mode=mode)


class FolderImages(Items):
    """Image files, decoded and brought to their size on several threads when they are read."""

    batch_size = BATCH

    def __init__(
        self, paths: list[Path], size: tuple[int, int] | None, mode: str, *, skip: bool = False, broken: int = 0
    ) -> None:
        self._paths = paths
        self._size, self._mode = size, mode
        self._skip = skip
        self.broken: int = broken

    def __len__(self) -> int:
        """How many images there are."""
        return len(self._paths)

    def read(self, rows: NDArray[np.integer]) -> list[Any]:
        """The decoded images of some rows; None for broken ones, where these may be skipped."""
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as threads:
            images = list(threads.map(self._decoded, [self._paths[row] for row in rows]))
        self.broken += sum(image is None for image in images)
        return images

    def log_skipped(self, name: str) -> None:
        """Log how many images were skipped."""
        if self.broken:
            images = counted(self.broken, "broken image is", "broken images are")
            _log.info("%s: %s skipped.", name, images)

    def _decoded(self, path: Path) -> Any:  # noqa: ANN401  # Pillow is optional
        pillow = require("PIL.Image", "reading images", "'sotdd[inputs]'")
        try:
            with pillow.open(path) as image:
                image.load()
                return image.copy() if self._size is None else fitted(image, self._size, self._mode)
        except Exception as error:  # noqa: BLE001  # of whatever decoder
            _refuse(path, error, self._skip)
            return None


def _images(folder: Path, unlabelled: bool) -> tuple[list[Path], list[str]]:
    """Paths and their class names, sorted by class and then by path."""
    if unlabelled:
        paths = _below(folder)
        classes = ["all"] * len(paths)
    else:
        groups = sorted(path for path in folder.iterdir() if not path.name.startswith(".") and path.is_dir())
        pairs = [(path, group.name) for group in groups for path in _below(group)]
        paths, classes = [path for path, _ in pairs], [group for _, group in pairs]
    if not paths:
        raise SotddError(
            f"{folder} has no sub-folders with images ({', '.join(sorted(SUFFIXES))}): expected one folder per class, "
            "or pass label=None for images without classes."
        )
    return paths, classes


def _below(folder: Path) -> list[Path]:
    """The images of a folder, and links that should lead to one: what cannot be read is told when it is opened."""
    return sorted(
        path for path in files_below(folder) if path.suffix.lower() in SUFFIXES and not path.name.startswith(".")
    )


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
        raise unreadable(path, error) from error
    if isinstance(error, MemoryError):
        raise error
    if not skip:
        raise SotddError(
            f"the image {path} is broken ({first_line(error)}): mend or remove it, or pass broken='skip'."
        ) from error
