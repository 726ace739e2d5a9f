"""Sources as text: a path, and after two colons how to open it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sotdd.basics.errors import SotddError
from sotdd.inputs.loaded import Loaded
from sotdd.inputs.loaders.parquet_files import SUFFIXES, in_folder, is_pattern, matching
from sotdd.inputs.reading import refuse_missing, unreadable
from sotdd.inputs.settings import Settings

_ADVICE = "write options as FILE::features=NAME,label=NAME"

_CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
_ARROW = (".arrow", ".feather", ".ipc")

# The options that a source text may hold.
_NUMBERS = {"bins", "max_points", "max_rows", "seed"}  # max_rows is the old name of max_points
_OPTIONS = {
    "name",
    "features",
    "label",
    "split",
    "encoder",
    "image_size",
    "image_mode",
    "broken",
    "drop_missing",
    "exclude",
    "one_hot",
    "dates",
    "missing",
    "separator",
    "decimal",
    "encoding",
} | _NUMBERS
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


def _open(path: str, name: str, settings: Settings) -> Loaded:
    from sotdd.inputs.loaders.huggingface import is_saved, open_saved

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
    files = in_folder(target)
    if files:
        return _open_parquet(files, name, settings)
    from sotdd.inputs.loaders.folder import open_folder

    return open_folder(target, name, settings)


def _open_file(path: Path, name: str, settings: Settings) -> Loaded:
    """Open a file by how its name ends; each loader is imported only when it is used."""
    lower = path.name.lower()
    if lower.endswith(".npz"):
        from sotdd.inputs.loaders.npz import open_npz

        return open_npz(path, name, settings)
    if lower.endswith(".npy"):
        from sotdd.inputs.loaders.npy import open_npy

        return open_npy(path, name, settings)
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
    if key in ("drop_missing", "dates"):
        raise SotddError(f"cannot read '{key}={value}' in {text!r}: expected true or false.")
    if key not in ("image_size", "one_hot") and key not in _NUMBERS:
        return value
    try:
        numbers = [int(number) for number in value.lower().split("x")]
    except ValueError:
        raise SotddError(f"cannot read '{key}={value}' in {text!r}: expected a whole number.") from None
    return numbers[0] if len(numbers) == 1 else numbers
