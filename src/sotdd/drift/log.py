"""A log of batches: a line of JSON for each, to be searched by grep or jq, read back by a page and by a monitor."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sotdd.basics import __version__
from sotdd.basics.errors import SotddError
from sotdd.basics.files import explain_failure, read_whole, refuse_unwritable, write_whole
from sotdd.basics.text import quote
from sotdd.basics.verdict import Verdict
from sotdd.drift.gate import BatchVerdict
from sotdd.drift.monitor import DriftMonitor


def list_values(verdict: BatchVerdict, reference: str) -> dict[str, object]:
    """What a log, or a table, has of a batch; None for what is not known."""
    limits = {outcome.criterion: outcome.limit for outcome in verdict.outcomes}
    distance = verdict.distance
    return {
        "verdict": verdict.verdict.value,
        "batch": verdict.batch,
        "reference": reference,
        "points": verdict.n_points,
        "columns": None if verdict.judged is None else str(verdict.judged),
        "changed": "; ".join(f"{one.column}: {one.what}" for one in verdict.changes.changed) or None,
        "schema": "; ".join(map(str, verdict.schema)) or None,
        "distance": None if distance is None else _round(distance.value),
        "stderr": None if distance is None else _round(distance.stderr),
        "limit": _round(limits.get("distance", limits.get("noise"))),
        "p": _round(verdict.p_value),
        "level": _round(limits.get("p_value")),
        "version": __version__,
        "error": verdict.error,
    }


def _round(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")


def write_line(verdict: BatchVerdict, reference: str, **more: object) -> str:
    """One batch as a line of JSON; what is not known is left out."""
    values = {"date": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", **list_values(verdict, reference), **more}
    return json.dumps({name: value for name, value in values.items() if value is not None}) + "\n"


def append_lines(path: str | os.PathLike[str], lines: Sequence[str]) -> None:
    """Add whole lines to the end of a log by one write: writers at the same time do not mix their lines.

    Where a line looks cut short, because a writer was stopped in it or is still writing, a line break comes first.
    A store cannot add to an object, so a log there is written anew.
    """
    before, content = open_log(path), "".join(lines).encode()
    if before and not before.endswith(b"\n"):
        content = b"\n" + content
    with explain_failure("write", path, "choose another file") as target:
        if isinstance(target, str):
            write_whole(target, before + content)
            return
        with target.open("ab", buffering=0) as file:
            file.write(content)
            os.fsync(file.fileno())


def open_log(path: str | os.PathLike[str]) -> bytes:
    """What a log holds; one that cannot be added to is refused, before anything is measured.

    A file that has no line of a gate in it is no log: it may be the reference, or a batch.
    """
    with explain_failure("write", path, "choose another file") as target:
        refuse_unwritable(target) if isinstance(target, str) else target.open("ab").close()
    content = read_whole(path, "a log", missing=b"")
    if content and b'"verdict": "' not in content:
        raise SotddError(
            f"is {quote(path)}, in which no line is that of a gate: choose a new file, or a log.", setting="log"
        )
    return content


def read_entries(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The lines of a log, oldest first; those that were cut short, or are none, are passed over."""
    entries = []
    for line in open_log(path).decode("utf-8", "replace").splitlines():
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict):
            entries.append(entry)
    return entries


def read_history(path: str | os.PathLike[str], reference: str) -> list[dict[str, str]]:
    """What a log has of batches beside one reference, oldest first, as texts."""
    entries = [{name: str(value) for name, value in entry.items()} for entry in read_entries(path)]
    name = Path(reference).name  # from whichever folder it was named
    return [one for one in entries if Path(one.get("reference", "")).name == name and "date" in one
            and one.get("verdict") in set(Verdict)]  # fmt: skip


# ------------------------------------------------------------------ the state of a series


def describe_state(monitor: DriftMonitor) -> dict[str, Any]:
    """What a line of a log has of a monitor, by which `resume_monitor` goes on; the reference by its rows."""
    sums = {"total": monitor.total, "limit": monitor.limit, "n_batches": monitor.n_batches}
    return {"reference": monitor.reference.digest, "run_length": monitor.run_length, **sums}


def resume_monitor(monitor: DriftMonitor, log: str | os.PathLike[str]) -> DriftMonitor:
    """A new monitor as the last one in a log was; one of another reference or run length is refused."""
    own = {"reference": monitor.reference.digest, "run length": monitor.run_length}
    for entry in reversed(read_entries(log)):
        try:
            state = entry["monitor"]
            total, n_batches = float(state["total"]), int(state["n_batches"])
            found = {"reference": state["reference"], "run length": state["run_length"]}
        except (ValueError, TypeError, KeyError, OverflowError):  # a line of a check, or of nobody
            continue
        if not 0 <= total < math.inf or n_batches < 0:
            continue
        for what, value in own.items():
            if found[what] != value:
                series = f"a series with another {what}, {found[what]!r} and not {value!r}"
                raise SotddError(f"is {quote(log)}, which has {series}: choose another file.", setting="log")
        return replace(monitor, total=total, n_batches=n_batches)
    return monitor
