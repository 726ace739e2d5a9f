"""The datasets' files: found in a folder, or downloaded there by name, checked and converted.

Experiments ask for what they need. `python -m experiments.lib.files mnist cifar10` downloads these now, and
`python -m experiments.lib.files amazon_full ARCHIVE` converts an archive that was got by hand; both take `--data DIR`.
"""

from __future__ import annotations

import argparse
import hashlib
import http.client
import os
import sys
import tarfile
import tempfile
import tomllib
import urllib.error
import urllib.request
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

HERE = Path(__file__).parent
_BLOCK = 1 << 20
_SECONDS = 60  # without a byte from the server


class MissingData(SystemExit):
    """A file that cannot be had. An experiment that meets it ends with this one line, without a traceback."""


@dataclass(frozen=True)
class Download:
    """One official file: its address, its size in bytes (0 if not known), and "sha256:…" or "md5:…" of its content."""

    url: str
    size: int
    checksum: str

    @property
    def name(self) -> str:
        """What the file is called."""
        return Path(urlsplit(self.url).path).name


@dataclass(frozen=True)
class Dataset:
    """What is kept of a dataset, and what it is made of.

    Attributes
    ----------
    name
        As experiments ask for it.
    file
        What is kept, in the data folder.
    terms
        What its owners allow.
    made_by
        The function of `experiments.lib.conversions` that makes the file of the downloads.
    downloads
        The official files; none where the dataset has to be got by hand.
    by_hand
        How to get it, for one that is not downloaded.
    """

    name: str
    file: str
    terms: str
    made_by: str = ""
    downloads: tuple[Download, ...] = ()
    by_hand: str = ""


def _table() -> dict[str, Dataset]:
    rows: dict[str, dict[str, Any]] = tomllib.loads((HERE / "datasets.toml").read_text(encoding="utf-8"))
    return {
        name: Dataset(name, **{**row, "downloads": tuple(Download(*one) for one in row.get("downloads", ()))})
        for name, row in rows.items()
    }


DATASETS: Mapping[str, Dataset] = _table()


def default_folder() -> Path:
    """``SOTDD_DATA`` if it is set, else a folder in the user's cache."""
    if chosen := os.environ.get("SOTDD_DATA"):
        return Path(chosen).expanduser()
    cache = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME")
    return Path(cache or Path.home() / ".cache") / "sotdd" / "data"


def at_hand(name: str, folder: Path, datasets: Mapping[str, Dataset] = DATASETS) -> Path:
    """The file of a dataset in a folder, downloaded and converted first unless it is there.

    The official files go into a subfolder, where a later call finds them should it be stopped before it is done.
    """
    dataset = datasets[name]
    path = folder / dataset.file
    if path.exists():
        return path
    if not dataset.downloads:
        raise MissingData(f"expected {path}, which is not there and is not downloaded: {dataset.by_hand}.")
    size = sum(one.size for one in dataset.downloads) / 1e6
    how_much = f"{size:,.0f} MB " if size else ""
    print(f"{name}: downloading {how_much}into {folder}. Terms: {dataset.terms}.", file=sys.stderr)
    got = [fetched(one, folder / "official" / name, folder) for one in dataset.downloads]
    return converted(dataset, got, folder)


def converted(dataset: Dataset, official: Sequence[Path], folder: Path) -> Path:
    """Make what is kept of the official files; it gets its name when it is whole."""
    from experiments.lib import conversions

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / dataset.file
    with tempfile.TemporaryDirectory(dir=folder, prefix=".making-") as drafts:
        draft = Path(drafts) / dataset.file
        try:
            getattr(conversions, dataset.made_by)(official, draft)
        except (OSError, tarfile.TarError, zipfile.BadZipFile, LookupError, StopIteration, ValueError) as error:
            given = ", ".join(path.name for path in official)
            raise MissingData(f"expected the official files of {dataset.name}, got {given} ({error!r}).") from error
        draft.replace(path)
    return path


def fetched(wanted: Download, folder: Path, data: Path) -> Path:
    """Download a file, or go on with what a stopped download left; it gets its name once its checksum is right."""
    path, part = folder / wanted.name, folder / f"{wanted.name}.part"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    other_way = f"or put the dataset into {data} yourself, or pass --data DIR"
    try:
        _transfer(wanted, part)
    except urllib.error.HTTPError as error:
        answer = f"{error.code} {error.reason}"
        raise MissingData(f"expected a file at {wanted.url}, got {answer}: try later, {other_way}.") from error
    except (OSError, http.client.HTTPException) as error:
        kept = part.stat().st_size if part.exists() else 0
        raise MissingData(
            f"expected {wanted.url}, got {kept:,} bytes of it ({getattr(error, 'reason', error)}): "
            f"run again to go on from there, {other_way}."
        ) from error
    kind, _, digest = wanted.checksum.partition(":")
    with part.open("rb") as file:
        found = hashlib.file_digest(file, kind).hexdigest()
    if found != digest:
        part.unlink()
        raise MissingData(
            f"expected {kind} {digest} of {wanted.url}, got {found}: nothing of it was kept; run again, {other_way}."
        )
    part.replace(path)
    return path


def _transfer(wanted: Download, part: Path) -> None:
    """Read what is not there yet; a server that cannot go on in the middle sends all of it again."""
    begun = part.stat().st_size if part.exists() else 0
    if wanted.size and begun >= wanted.size:
        return  # all of it, or more than that: its checksum tells
    request = urllib.request.Request(wanted.url, headers={"Range": f"bytes={begun}-"} if begun else {})
    with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
        begun = begun if answer.status == http.HTTPStatus.PARTIAL_CONTENT else 0
        expected = wanted.size or begun + int(answer.headers.get("Content-Length", 0))
        with part.open("ab" if begun else "wb") as file:
            length = begun
            # One byte more than expected is enough to see that the file is another one.
            while length <= expected and (block := answer.read(min(_BLOCK, expected + 1 - length))):
                length += file.write(block)
    if length < expected:
        raise ConnectionError("the transfer was cut off")


def main(arguments: list[str] | None = None) -> None:
    """Download datasets, or convert an archive."""
    parser = argparse.ArgumentParser(description="Download datasets, or convert an archive that was got by hand.")
    parser.add_argument("--data", type=Path, default=default_folder(), help="folder of the datasets")
    parser.add_argument("names", nargs="+", help=f"some of {', '.join(DATASETS)}; or one of them and its archive")
    given = parser.parse_args(arguments)
    first, *others = given.names
    if first in DATASETS and DATASETS[first].made_by and others and others[0] not in DATASETS:
        print(converted(DATASETS[first], [Path(other) for other in others], given.data))
        return
    for name in given.names:
        if name not in DATASETS:
            parser.error(f"expected one of {', '.join(DATASETS)}, got {name!r}")
        print(at_hand(name, given.data))


if __name__ == "__main__":
    main()
