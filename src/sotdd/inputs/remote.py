"""Files that are not on this machine: ``s3://``, ``gs://``, ``hf://``, ``https://`` and whatever else fsspec knows.

Parquet files are read where they are, a part at a time. Anything else is copied into a temporary folder first.
"""

from __future__ import annotations

import shutil
import tempfile
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

from sotdd.basics.checks import first_line
from sotdd.basics.errors import SotddError, require

# What pyarrow reads by itself; everything else goes by way of fsspec.
_OF_PYARROW = ("file", "s3", "gs", "gcs", "hdfs", "abfs", "abfss")

# Seconds to wait for a server that does not answer.
_PATIENCE = 60

# What to install for the kinds of addresses that need something else beside fsspec.
_ALSO = {"hf": "huggingface_hub", "http": "aiohttp", "https": "aiohttp", "s3": "s3fs", "gs": "gcsfs", "gcs": "gcsfs"}


def store_of(url: str) -> tuple[Any, str]:
    """A file system of pyarrow's, and the path within it; a store that cannot be reached is told in one line."""
    stores = require("pyarrow.fs", f"reading {url}", "'sotdd[inputs]'")
    if scheme_of(url) in _OF_PYARROW:
        try:
            return stores.FileSystem.from_uri(url)  # type: ignore[no-any-return]  # a pair
        except (OSError, ValueError, NotImplementedError) as error:  # such as a pyarrow built without that store
            if scheme_of(url) == "file":
                raise SotddError(f"cannot read {url} ({first_line(error)}): check the address.") from error
    system, path = _by_fsspec(url)
    return stores.PyFileSystem(stores.FSSpecHandler(system)), path


def downloaded(url: str) -> Path:
    """A copy of a remote file in a temporary folder, which is removed when the process ends."""
    name = PurePosixPath(url.partition("?")[0]).name
    target = Path(tempfile.mkdtemp(dir=_folder().name)) / name
    try:
        with _opened(url) as source, target.open("wb") as copy:
            shutil.copyfileobj(source, copy, 1 << 20)
    except SotddError:
        raise
    except Exception as error:  # of whatever library talks to the store
        if isinstance(error, HTTPError):
            error.close()
        if isinstance(error, FileNotFoundError) or getattr(error, "code", None) == 404:
            raise SotddError(f"there is no file {url}: check the address.") from error
        raise SotddError(
            f"cannot read {url} ({type(error).__name__}: {first_line(error)}): check the address, the connection and "
            "who may read it."
        ) from error
    return target


def _opened(url: str) -> Any:  # noqa: ANN401  # something that reads like a file
    if is_web(url):  # Python reads these by itself
        return urlopen(url, timeout=_PATIENCE)
    system, path = store_of(url)
    return system.open_input_stream(path)


def is_web(url: str) -> bool:
    """Whether this is the address of a web page or file."""
    return scheme_of(url) in ("http", "https")


def scheme_of(url: str) -> str:
    """What an address begins with."""
    return url.partition("://")[0].lower()


def _by_fsspec(url: str) -> tuple[Any, str]:
    """A file system of fsspec's, and the path within it."""
    scheme = scheme_of(url)
    fsspec = require("fsspec", f"reading {url}", " ".join(["fsspec", *([_ALSO[scheme]] if scheme in _ALSO else [])]))
    try:
        return fsspec.core.url_to_fs(url)  # type: ignore[no-any-return]  # a pair
    except ImportError as error:
        needed = _ALSO.get(scheme, f"what fsspec needs for {scheme}://")
        raise SotddError(f"reading {url} needs {needed}: run 'pip install {_ALSO.get(scheme, 'fsspec')}'.") from error
    except ValueError as error:
        raise SotddError(
            f"cannot tell what {url} is ({first_line(error)}): expected s3://, gs://, hf://, https:// or another "
            "address that fsspec knows."
        ) from error


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Where copies are kept as long as the process lasts."""
    return tempfile.TemporaryDirectory(prefix="sotdd-")
