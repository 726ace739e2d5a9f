"""The log of a gate: one line for every batch, to be searched by grep and read back by a report."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sotdd.basics.errors import SotddError
from sotdd.basics.files import reason, shown
from sotdd.basics.version import __version__

if TYPE_CHECKING:
    from sotdd.measure.drift_gate import BatchVerdict

# Of a long log, this much of the end is read back.
_READ = 1 << 20
_BARE = re.compile(r"[\w./:+@%~-]+")
_LINE = re.compile(rb"^\d{4}-\d\d-\d\dT\S* verdict=", re.MULTILINE)
_ENTRY = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\S*)')


def line_of(verdict: BatchVerdict, reference: str, now: datetime) -> str:
    """One line, in which every value follows its name; texts with spaces are in quotes."""
    limits = {outcome.criterion: outcome.limit for outcome in verdict.outcomes}
    distance = verdict.distance
    values: dict[str, object] = {
        "verdict": verdict.verdict,
        "batch": verdict.batch,
        "reference": reference,
        "points": verdict.n_points,
        "distance": None if distance is None else f"{distance.value:.6g}",
        "stderr": None if distance is None else f"{distance.stderr:.2g}",
        "limit": _number(limits.get("distance", limits.get("noise"))),
        "p": _number(verdict.p_value),
        "level": _number(limits.get("p_value")),
        "version": __version__,
        "error": verdict.error,
    }
    said = " ".join(f"{name}={_written(value)}" for name, value in values.items() if value is not None)
    return f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ} {said}\n"


def append(path: Path, lines: Sequence[str]) -> None:
    """Add whole lines to the end of a file by one write: writers at the same time do not mix their lines.

    Where a line looks cut short, because a writer was stopped in it or is still writing, a line break comes first.
    """
    refuse_unwritable_log(path)
    content = "".join(lines).encode("utf-8", "backslashreplace")
    try:
        with path.open("a+b", buffering=0) as file:
            if file.tell() and os.pread(file.fileno(), 1, file.tell() - 1) != b"\n":  # a writer was stopped in a line
                content = b"\n" + content
            file.write(content)
            os.fsync(file.fileno())
    except OSError as error:
        raise SotddError(f"cannot write {shown(path)} ({reason(error)}): choose another --log.") from error


def refuse_unwritable_log(path: Path) -> None:
    """Refuse a log that cannot be added to, before anything is measured; nothing is written.

    A file that has no line of a gate in it is no log: it may be the reference, or a batch.
    """
    try:
        with path.open("a+b") as file:
            file.seek(0)
            start = file.read(_READ)
    except OSError as error:
        raise SotddError(f"cannot write {shown(path)} ({reason(error)}): choose another --log.") from error
    if start and not _LINE.search(start):
        raise SotddError(f"--log is {shown(path)}, in which no line is that of a gate: choose a new file, or a log.")


def read_back(path: Path, reference: str) -> list[dict[str, str]]:
    """The entries of a log about one reference, oldest first; lines that are none are passed over."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _READ))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    entries = []
    for line in text.splitlines():
        when, _, rest = line.partition(" ")
        found = {name: _read(value) for name, value in _ENTRY.findall(rest)}
        same = Path(found.get("reference", "")).name == Path(reference).name  # from whichever folder it was named
        if same and found.get("verdict") in ("passed", "drift", "unknown"):
            entries.append({"date": when, **found})
    return entries


def _written(value: object) -> str:
    text = str(value)
    return text if _BARE.fullmatch(text) else json.dumps(text)


def _read(value: str) -> str:
    with suppress(ValueError):
        return str(json.loads(value)) if value.startswith('"') else value
    return value


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.6g}"
