"""Sources as text: a path, and after two colons how to open it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from sotdd.basics.errors import SotddError
from sotdd.inputs.files import (
    SUFFIXES,
    downloaded,
    in_folder,
    is_magic,
    is_pattern,
    is_remote,
    is_web,
    matching,
    parquet_files,
    refuse_missing,
    unreadable,
)
from sotdd.inputs.loaded import Loaded
from sotdd.inputs.settings import Settings

_ADVICE = "write options as FILE::features=NAME,label=NAME"

_CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
_ARROW = (".arrow", ".feather", ".ipc")

# What folders are called that hold a part of a dataset.
_SPLITS = {"train", "training", "test", "testing", "val", "valid", "validation", "dev", "eval", "holdout"}

# The options that a source text may hold, and those of them that are numbers or flags.
_OPTIONS = {"name", *(field.name for field in fields(Settings))} - {"transform"}
_NUMBERS = {"bins", "image_size", "max_points", "seed"}
_FLAGS = ("drop_missing", "dates", "one_hot")


@dataclass(frozen=True)
class SourceText:
    """A path and the options that follow it.

    Examples
    --------
    >>> from sotdd.inputs.sources import SourceText
    >>> SourceText.parse("table.csv::label=species,features=length+width,max_points=1000")
    SourceText(path='table.csv', options={'label': 'species', 'features': ['length', 'width'], 'max_points': 1000})
    """

    path: str
    options: dict[str, Any]

    @classmethod
    def parse(cls, text: str) -> SourceText:
        """Read ``PATH`` or ``PATH::KEY=VALUE,KEY=VALUE``."""
        path, _, options = text.partition("::")
        if not path:
            raise SotddError(f"the source {text!r} has no path: expected the name of a file or folder.")
        values: dict[str, Any] = {}
        for option in filter(None, options.split(",")):
            key, equals, value = option.partition("=")
            if key not in _OPTIONS or not equals or not (value or key == "label"):
                raise SotddError(f"cannot read {option!r} in {text!r}: {_ADVICE}.")
            values[key] = _value(key, value, text)
        return cls(path, values)


def open_path(path: str, name: str, settings: Settings) -> Loaded:
    """Open a file or folder by what it is."""
    try:
        return _open(path, name, settings)
    except PermissionError as error:
        raise unreadable(error.filename or path, error) from error


def _open(path: str, name: str, settings: Settings) -> Loaded:  # noqa: PLR0911  # one for each kind of source
    from sotdd.inputs.loaders.huggingface import is_saved, open_saved

    if is_remote(path):
        return _open_remote(path, name, settings)
    if path.startswith("hub:"):
        from sotdd.inputs.loaders.hub import open_hub

        return open_hub(path, name, settings)
    if path.startswith("hf:"):
        folder = Path(path.removeprefix("hf:"))
        refuse_missing(folder)
        return open_saved(folder, name, settings)
    if is_pattern(path):
        return _open_parquet(matching(path), name, settings)
    target = Path(path)
    refuse_missing(target)
    if not target.is_dir():
        return _open_file(target, name, settings)
    if is_saved(target):
        return open_saved(target, name, settings)
    target, settings = _in_split(target, settings)
    files = in_folder(target)
    if files:
        return _open_parquet(files, name, settings)
    from sotdd.inputs.loaders.folder import open_folder

    return open_folder(target, name, settings)


def _open_remote(url: str, name: str, settings: Settings) -> Loaded:
    """Open something elsewhere: Parquet files and folders of them where they are, other files from a copy."""
    plain = url.partition("?")[0].lower()
    known = (".npz", ".npy", *_CSV, *_ARROW)
    if is_web(url) or (plain.endswith(known) and not is_magic(plain)):
        return _open_file(downloaded(url), name, settings)
    return _open_parquet(parquet_files(url), name, settings)


def _in_split(folder: Path, settings: Settings) -> tuple[Path, Settings]:
    """The folder of the split that was asked for; one that holds nothing but splits is one level too high."""
    below = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith((".", "_")))
    if settings.unlabelled and settings.split is None:
        return folder, settings
    if settings.split is not None:
        found = [path for path in below if path.name == settings.split]
        if not found:
            names = ", ".join(repr(path.name) for path in below) or "none"
            raise SotddError(f"{folder} has no sub-folder {settings.split!r}, only {names}: check split=.")
        return found[0], replace(settings, split=None)
    if len(below) > 1 and all(path.name.lower() in _SPLITS for path in below) and any(map(_holds_more, below)):
        names = ", ".join(repr(path.name) for path in below)
        raise SotddError(
            f"{folder} holds {names}, which look like splits of one dataset rather than classes: open one of them, "
            f"such as {below[0]}, or name it with split=."
        )
    return folder, settings


def _holds_more(folder: Path) -> bool:
    """Whether a folder has folders of its own, as a split of images has, or tables."""
    return any(path.is_dir() or path.suffix.lower() in SUFFIXES for path in folder.iterdir())


def _open_file(path: Path, name: str, settings: Settings) -> Loaded:
    """Open a file by how its name ends; each loader is imported only when it is used."""
    lower = path.name.lower()
    if lower.endswith((".npz", ".npy")):
        from sotdd.inputs.loaders.numpy_files import open_npy, open_npz

        return (open_npz if lower.endswith(".npz") else open_npy)(path, name, settings)
    if lower.endswith(_CSV):
        from sotdd.inputs.loaders.csv import open_csv

        return open_csv(path, name, settings)
    if lower.endswith(SUFFIXES):
        return _open_parquet([str(path)], name, settings)
    if lower.endswith(_ARROW):
        from sotdd.inputs.loaders.arrow import open_arrow

        return open_arrow(path, name, settings)
    raise SotddError(
        f"cannot tell what {path} is: expected .npz, .npy, .csv, .csv.gz, .parquet, .arrow, or a folder of images."
    )


def _open_parquet(paths: list[str], name: str, settings: Settings) -> Loaded:
    from sotdd.inputs.loaders.parquet import open_parquet

    if not paths:
        raise SotddError(f"no file matches {name}: check the pattern.")
    return open_parquet(paths, name, settings)


def _value(key: str, value: str, text: str) -> Any:  # noqa: ANN401  # numbers, names and lists of them
    if key == "label":
        return value or None
    if key in ("features", "exclude"):
        return value.split("+") if "+" in value else value
    if key in _FLAGS and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if key not in _NUMBERS and key not in _FLAGS:
        return value
    try:
        numbers = [int(number) for number in value.lower().split("x")]
    except ValueError:
        expected = "true, false or a number" if key in _FLAGS else "a whole number"
        raise SotddError(f"cannot read '{key}={value}' in {text!r}: expected {expected}.") from None
    return numbers[0] if len(numbers) == 1 else numbers
