"""Folders of images: the class of an image is the sub-folder it is in."""

from __future__ import annotations

import logging
import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import first_line
from sotdd.basics.errors import SotddError, require
from sotdd.inputs.items import Found, Items
from sotdd.inputs.labels import Labels, sampled
from sotdd.inputs.loaders.images import BATCH, fitted, is_grey, other_sizes
from sotdd.inputs.reading import UNREADABLE, files_below
from sotdd.inputs.settings import Settings

_log = logging.getLogger("sotdd.inputs")

SUFFIXES = {".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}


def open_folder(folder: Path, name: str, settings: Settings) -> tuple[Found, Settings]:
    """Find the images of a folder; what is uniform about them completes the settings."""
    settings.refuse("the class of an image is the sub-folder it is in", "features", "split")
    if settings.label is not None:
        settings.refuse("the class of an image is the sub-folder it is in", "label")
    require("PIL.Image", f"reading images of {folder}", "'sotdd[inputs]'")
    paths, classes = _images(folder, settings.unlabelled)
    if settings.max_rows is not None and settings.max_rows < len(paths):
        rows = sampled(np.arange(len(paths)), settings.max_rows, settings.seed)
        paths, classes = [paths[row] for row in rows], [classes[row] for row in rows]
    skip = settings.broken == "skip"
    headers = [_header(path, skip) for path in paths]
    seen = [header for header in headers if header is not None]
    if not seen:
        raise SotddError(f"none of the {len(paths):,} images of {folder} can be read: expected at least one.")
    kept = [row for row, header in enumerate(headers) if header is not None]
    paths, classes = [paths[row] for row in kept], [classes[row] for row in kept]
    completed = _completed(settings, seen, name)
    items = FolderImages(paths, completed, broken=len(headers) - len(kept))
    return Found(items, Labels.of(classes, len(classes), name), sampled=True), completed


class FolderImages(Items):
    """Image files, decoded and brought to their size on several threads when they are read."""

    batch = BATCH

    def __init__(self, paths: list[Path], settings: Settings, broken: int = 0) -> None:
        self._paths = paths
        self._size, self._mode = settings.image_size, settings.image_mode or "RGB"
        self._skip = settings.broken == "skip"
        self.broken = broken

    def __len__(self) -> int:
        """How many there are."""
        return len(self._paths)

    def read(self, rows: NDArray[np.integer]) -> list[Any]:
        """Decoded images; None for those that are broken, where they may be skipped."""
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as threads:
            images = list(threads.map(self._decoded, [self._paths[row] for row in rows]))
        self.broken += sum(image is None for image in images)
        return images

    def tell(self, name: str) -> None:
        """Say how many images were skipped."""
        if self.broken:
            _log.info("%s: %s broken images are skipped.", name, f"{self.broken:,}")

    def _decoded(self, path: Path) -> Any:  # noqa: ANN401  # Pillow is optional
        pillow = require("PIL.Image", "reading images", "'sotdd[inputs]'")
        try:
            with pillow.open(path) as image:
                image.load()
                return image.copy() if self._size is None else fitted(image, self._size, self._mode)
        except UNREADABLE as error:
            _refuse(path, error, self._skip)
            return None


def _images(folder: Path, unlabelled: bool) -> tuple[list[Path], list[str]]:
    """Paths and class names, in the order of their names."""
    if unlabelled:
        paths = _below(folder)
        classes = ["all"] * len(paths)
    else:
        groups = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
        found = [(path, group.name) for group in groups for path in _below(group)]
        paths, classes = [path for path, _ in found], [group for _, group in found]
    if not paths:
        raise SotddError(
            f"{folder} has no sub-folders with images ({', '.join(sorted(SUFFIXES))}): expected one folder per class, "
            "or pass label=None for images without classes."
        )
    return paths, classes


def _below(folder: Path) -> list[Path]:
    return sorted(
        path
        for path in files_below(folder)
        if path.suffix.lower() in SUFFIXES and not path.name.startswith(".") and path.is_file()
    )


def _header(path: Path, skip: bool) -> tuple[tuple[int, int], str] | None:
    """Size and mode of an image, from its first bytes; None for one that is broken and may be skipped."""
    pillow = require("PIL.Image", "reading images", "'sotdd[inputs]'")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pillow.DecompressionBombWarning)
            with pillow.open(path) as image:
                return (image.height, image.width), image.mode
    except (*UNREADABLE, pillow.DecompressionBombError, pillow.DecompressionBombWarning) as error:
        _refuse(path, error, skip)
        return None


def _refuse(path: Path, error: BaseException, skip: bool) -> None:
    if not skip:
        raise SotddError(
            f"the image {path} is broken ({first_line(error)}): mend or remove it, or pass broken='skip'."
        ) from error


def _completed(settings: Settings, seen: list[tuple[tuple[int, int], str]], name: str) -> Settings:
    """The mode that suits all images; sizes that differ are refused where no size was asked for."""
    first = seen[0][0]
    if settings.image_size is None and settings.encoder is None:
        for size, _ in seen:
            if size != first:
                raise other_sizes(name, first, size)
    mode = settings.image_mode or ("L" if all(is_grey(mode) for _, mode in seen) else "RGB")
    return replace(settings, image_mode=mode)
