"""Crafted files: bytes flipped, cut and put in; headers and arrays altered under a checksum that matches."""

from __future__ import annotations

import copy
import gzip
import io
import json
import random
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import sotdd
from attack.calls import find_outcome
from sotdd.sketches.catalog_store import CatalogSettings
from sotdd.sketches.codec import pack, read_header

Content = tuple[str, dict[str, Any], dict[str, np.ndarray]]

# Files with a header and arrays, which this package writes; then files of others.
OWN = (
    "sketch", "all values", "sketch builder", "drift reference",
    "drift reference with a sketch", "catalog recipe",
)  # fmt: skip
TABLES = ("npz", "npy", "csv", "csv.gz", "jsonl", "db", "parquet", "arrow")
KINDS = (*OWN, *TABLES, "catalog")
_NEEDS = {"catalog": "lancedb", **dict.fromkeys(("csv", "csv.gz", "jsonl", "db", "parquet", "arrow"), "pyarrow")}


def make(kind: str) -> Any:  # whatever can be saved
    """What is saved in a file of each kind of our own."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(90, 3)), rng.integers(3, size=90)
    projections = sotdd.Projections.fit([(x, y)], n_projections=5)
    if kind in ("sketch", "all values"):
        return sotdd.sketch((x, y), projections, n_quantiles=None if kind == "all values" else 8)
    if kind.startswith("drift reference"):
        return sotdd.DriftReference.fit((x, y), n_projections=5, with_sketch=kind != "drift reference")
    return sotdd.SketchBuilder(projections).add(x, y)


@cache
def _write(kind: str, folder: Path) -> bytes:
    """The content of a whole file."""
    path = folder / f"whole.{kind}"
    if kind == "catalog recipe":
        return CatalogSettings.of(make("sketch")).pack()
    if kind in OWN:
        make(kind).save(path)
        return path.read_bytes()
    return _write_table(kind, path)


def _write_table(kind: str, path: Path) -> bytes:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 3)).round(3), rng.integers(3, size=40)
    rows = [{"a": a, "b": b, "c": f"k{int(c > 0)}", "label": int(label)} for (a, b, c), label in zip(x, y, strict=True)]
    lines = "\n".join(["a,b,c,label", *(",".join(map(str, row.values())) for row in rows)]).encode()
    if kind in ("npz", "npy"):
        file = io.BytesIO()
        np.save(file, x) if kind == "npy" else np.savez(file, X=x, y=y)
        return file.getvalue()
    if kind in ("csv", "csv.gz"):
        return lines if kind == "csv" else gzip.compress(lines, mtime=0)
    if kind == "jsonl":
        return "\n".join(map(json.dumps, rows)).encode()
    if kind == "db":
        with closing(sqlite3.connect(path)) as base, base:
            base.execute("CREATE TABLE t (a REAL, b REAL, c TEXT, label INTEGER)")
            base.executemany("INSERT INTO t VALUES (:a, :b, :c, :label)", rows)
    else:
        import pyarrow
        from pyarrow import feather, parquet

        (parquet.write_table if kind == "parquet" else feather.write_feather)(pyarrow.Table.from_pylist(rows), path)
    return path.read_bytes()


@cache
def read_content(kind: str, folder: Path) -> Content:
    """The kind that the header of a whole file names, the header and the arrays."""
    from safetensors.numpy import load

    content = _write(kind, folder)
    header = read_header(content)
    header.pop("checksum"), header.pop("format")
    return header.pop("kind"), header, load(content)


def use(kind: str, path: Path) -> Any:  # what the file holds
    """Do with a file what people do: open it, look at it, merge it, compare it."""
    if kind in TABLES:
        return sotdd.distance(str(path), sotdd.open_dataset(path), n_projections=4)
    if kind == "catalog recipe":
        one = make("sketch")
        CatalogSettings.unpack(path.read_bytes()).entry_vector(one)
        return one
    if kind.startswith("drift reference"):
        reference = sotdd.DriftReference.load(path)
        repr(reference)
        batch = np.zeros((5, 3)), [0, 1, 2, 1, 0]
        reference.test(batch, n_permutations=3)
        reference.distance(batch)
        return reference
    if kind in ("sketch", "all values"):
        sketch = sotdd.Sketch.load(path)
        repr(sketch)
        sketch.distance(sketch)
        sketch.vector(8)
        return sketch
    builder = sotdd.SketchBuilder.load(path)
    repr(builder)
    return builder.merge(sotdd.SketchBuilder.load(path)).finish()


# ------------------------------------------------------------------ what is altered

_NUMBERS = (0, -1, 1, 2, 7, 2**31, 2**63 - 1, -(2**63), 10**30, 10**400, 0.5, -0.0, 1e308, 1e-308)
_ODD = (*_NUMBERS, None, True, "", "x", [], {}, [[1, 2]])
_WRITTEN = (b"NaN", b"-Infinity", b"1e999", b"-1", b"99999999999999999999", b'"', b"\0", b"[" * 5000, b"\xff", b"\n")
_ARRAY_CHANGES: tuple[Callable[[np.ndarray], np.ndarray], ...] = (
    *(lambda array, kind=kind: array.astype(kind) for kind in ("f4", "f8", "i8", "u2", "i4", "u1")),
    lambda array: array[:0],
    lambda array: array[:-1],
    lambda array: np.concatenate([array, array]),
    lambda array: array.reshape(-1),
)


def alter_bytes(rng: random.Random, content: bytes) -> bytes:
    """Flip bits, cut, put bytes in, write over some, or replace a number that is written out."""
    place, other = sorted(rng.choices(range(len(content) + 1), k=2))
    manner = rng.randrange(6)
    if manner == 0:
        return content[:place]
    if manner == 1:
        return content[:place] + content[other:]
    if manner == 2:
        more = rng.randbytes(rng.choice((1, 4, 300))) if rng.random() < 0.7 else content[place:other]
        return content[:place] + more + content[place:]
    if manner == 3 and (found := list(re.finditer(rb"\d+", content[:20_000]))):
        one = rng.choice(found)
        return content[: one.start()] + rng.choice(_WRITTEN) + content[one.end() :]
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 9))):
        where = rng.randrange(len(changed))
        value = changed[where] ^ 1 << rng.randrange(8) if manner == 4 else rng.choice((0, 127, 128, 255))
        changed[where] = value
    return bytes(changed)


def alter_content(rng: random.Random, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Take away or replace something in the header or in a part of it, or make an array another."""
    parts = [part for part in (header, *header.values()) if isinstance(part, dict) and part]
    if parts and rng.random() < 0.5:
        target = rng.choice(parts)
        key = rng.choice(sorted(target))
        if rng.random() < 0.5:
            del target[key]
        else:
            target[key] = rng.choice(_ODD)
        return
    name, other = (rng.choice(sorted(arrays)) for _ in range(2))
    array = arrays[name]
    manner = rng.randrange(len(_ARRAY_CHANGES) + 2)
    if manner < len(_ARRAY_CHANGES):
        arrays[name] = _ARRAY_CHANGES[manner](array)
    elif manner == len(_ARRAY_CHANGES):
        arrays[name], arrays[other] = arrays[other], array
    elif array.size:
        number = np.array(rng.choice([np.nan, np.inf, -np.inf, -1.0, 0.0, 1e300, 255.0]))
        array.reshape(-1)[rng.randrange(array.size)] = number.astype(array.dtype)


def craft(kind: str, rng: random.Random, folder: Path) -> bytes:
    """The content of an altered file."""
    if kind in TABLES or rng.random() < 0.3:
        return alter_bytes(rng, _write(kind, folder))
    name, header, arrays = copy.deepcopy(read_content(kind, folder))
    with np.errstate(all="ignore"):
        for _ in range(rng.randint(1, 3)):
            alter_content(rng, header, arrays)
    try:
        return pack(name, header, arrays)
    except (TypeError, ValueError, OverflowError):  # JSON has no such value
        return alter_bytes(rng, _write(kind, folder))


def run_file(number: int, folder: Path, kinds: tuple[str, ...] = KINDS) -> tuple[str, str]:
    """What was read, and what came of it."""
    kind, rng = kinds[number % len(kinds)], random.Random(number)
    if kind in _NEEDS and find_spec(_NEEDS[kind]) is None:
        return kind, "skipped"
    if kind == "catalog":
        return _run_catalog(rng, folder)
    path = folder / f"crafted.{kind}"
    path.write_bytes(craft(kind, rng, folder))
    return kind, find_outcome(partial(use, kind, path))


def _run_catalog(rng: random.Random, folder: Path) -> tuple[str, str]:
    """Alter one of the files of a catalog."""
    whole, place = folder / "whole.catalog", folder / "crafted.catalog"
    sketch = make("sketch")
    if not whole.exists():
        sotdd.Catalog(whole).add_many({"a": sketch, "b": sketch})
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(whole, place)
    file = rng.choice(sorted(path for path in place.rglob("*") if path.is_file()))
    file.write_bytes(alter_bytes(rng, file.read_bytes()) if file.stat().st_size else b"x")

    def search() -> object:
        catalog = sotdd.Catalog(place)
        catalog.get("a")
        return catalog.nearest(sketch)

    return f"catalog: {file.relative_to(place).parts[0]}", find_outcome(search)
