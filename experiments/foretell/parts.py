"""Parts of the results, made by several processes, and how they are put together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments import store
from experiments.foretell import distances
from experiments.store import Row, read, write


def folder(results: Path, part: str) -> Path:
    """Where a part is written."""
    return results / "parts" / part


def join(results: Path, family: str) -> None:
    """Training row by row, distances column by column; a seed and a measure that are there twice count once."""
    every = sorted((results / "parts").iterdir())
    training: dict[tuple[str, ...], Row] = {}
    columns: dict[str, list[str]] = {}
    for part in every:
        for row in read(part / f"foretell_{family}.csv"):
            training[row["seed"], row["target"], row["source"]] = row
        rows = read(part / f"foretell_{family}_distances.csv")
        columns |= {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
        if rows:
            write(results / f"foretell_{family}_sets.csv", read(part / f"foretell_{family}_sets.csv"))
    if training:
        write(results / f"foretell_{family}.csv", sorted(training.values(), key=lambda row: int(str(row["seed"]))))
    if columns:
        order = [name for name in ("source", "target", *distances.MEASURES) if name in columns]
        together = zip(*(columns[name] for name in order), strict=True)
        write(results / f"foretell_{family}_distances.csv", [dict(zip(order, row, strict=True)) for row in together])


def pack(results: Path, families: Sequence[str]) -> None:
    """Pack what was trained and measured, the large tables."""
    for family in families:
        for part in ("", "_distances"):
            store.pack(results / f"foretell_{family}{part}.csv")
