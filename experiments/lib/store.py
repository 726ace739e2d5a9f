"""Results as they come: one CSV file per table, resumed from the last finished unit of work."""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TypeAlias

from experiments.lib.bars import track

Row: TypeAlias = Mapping[str, object]

# What a unit of work is: the columns that tell it from all others.
Unit: TypeAlias = Mapping[str, object]


def read(path: Path) -> list[dict[str, str]]:
    """All rows, or none where there is no file; large tables may be packed, under the same name with ".gz"."""
    packed = path.with_name(f"{path.name}.gz")
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    if packed.exists():
        with gzip.open(packed, "rt", newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    return []


def pack(path: Path) -> None:
    """Put a large table that is complete into a packed file, the same bytes for the same rows."""
    packed = path.with_name(f"{path.name}.gz")
    with packed.open("wb") as file, gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as out:
        out.write(path.read_bytes())
    path.unlink()


def write(path: Path, rows: Sequence[Row]) -> None:
    """Replace the file at once, so that whoever interrupts finds the old file or the new one, never half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    scratch = path.with_suffix(".partial")
    with scratch.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _written(value) for name, value in row.items()} for row in rows)
    os.replace(scratch, path)


def complete(
    path: Path,
    units: Iterable[Unit],
    work: Callable[[Unit], Sequence[Row]],
    *,
    title: str,
    workers: int = 1,
) -> list[dict[str, str]]:
    """Do every unit that the file does not hold yet, and write its rows as soon as they are there.

    Returns all rows of the file.
    """
    rows: list[Row] = list(read(path))
    waiting = [unit for unit in units if not any(_belongs(row, unit) for row in rows)]

    def keep(unit: Unit, found: Sequence[Row]) -> None:
        rows.extend({**unit, **row} for row in found)
        write(path, rows)

    if workers == 1:
        for unit in track(waiting, title):
            keep(unit, work(unit))
    elif waiting:
        with ThreadPoolExecutor(workers) as pool:
            running = {pool.submit(work, unit): unit for unit in waiting}
            for done in track(as_completed(running), title, len(running)):
                keep(running[done], done.result())
    return read(path)


def _belongs(row: Row, unit: Unit) -> bool:
    return all(str(row.get(name)) == _written(value) for name, value in unit.items())


def _written(value: object) -> str:
    """Numbers to six digits: results, not the state of a computation."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
