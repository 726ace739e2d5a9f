"""A run of a gate as files: its page, which says what drives drift and since when; JUnit XML; a summary to post."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from sotdd.basics.files import write_whole
from sotdd.basics.remarks import Verdict, join_remarks
from sotdd.basics.text import join_names, one_line, write_out
from sotdd.drift.gate import BatchVerdict, Gate
from sotdd.reports.datasets import DatasetSummary
from sotdd.reports.page import shorten_names, write_page

# Earlier batches of a log that are drawn.
_MOST_HISTORY = 60

# Columns that a summary names.
_MOST_COLUMNS = 5


@dataclass(frozen=True, eq=False)
class GateRun:
    """One run of a gate, as its page shows it.

    Attributes
    ----------
    reference
        The reference as it was named.
    verdicts
        What is said of each batch.
    summaries
        The data of the batches that could be opened, by batch.
    gate
        What judged; None where the reference could not be opened.
    history
        Earlier lines of the log: date, batch, verdict and distance.
    asked
        What it takes to ask again: the source of the ``reference``, the number of permutations of all ``batches`` by
        source, ``settings``, and whether the reference ``is_made``; empty where nothing could be judged.
    """

    reference: str
    verdicts: Sequence[BatchVerdict]
    summaries: Mapping[str, DatasetSummary] = field(default_factory=dict)
    gate: Gate | None = None
    history: Sequence[Mapping[str, str]] = ()
    asked: Mapping[str, Any] = field(default_factory=dict)

    @property
    def whole(self) -> Verdict:
        """What is said of all batches together."""
        return Verdict.combine(one.verdict for one in self.verdicts)

    @property
    def counts(self) -> str:
        """How many batches passed, drifted, or are undecided, in words."""
        counts = [(kind.past, sum(one.verdict is kind for one in self.verdicts)) for kind in Verdict]
        return ", ".join(f"{count:,} {word}" for word, count in counts if count)


@dataclass(frozen=True)
class Point:
    """A batch on the line: its distance, what chance gives, and the verdict; None where it is not known.

    ``is_far`` says that it was too far to measure.
    """

    name: str
    date: str
    verdict: str
    value: float | None
    chance: tuple[float, float] | None = None
    is_far: bool = False


def write_gate_page(path: str | os.PathLike[str], run: GateRun, title: str | None = None) -> Path | str:
    """Write the page of a run; returns its path."""
    of_series = [one for verdict in run.verdicts for one in verdict.outcomes if one.criterion == "evidence"]
    history = [entry for entry in run.history if "evidence" in entry or not of_series][-_MOST_HISTORY:]
    shown = "evidence" if of_series else "distance"
    names = shorten_names([run.reference, *(verdict.batch for verdict in run.verdicts)])
    remarks = [() if run.gate is None else run.gate.reference.remarks]
    remarks += [verdict.distance.remarks for verdict in run.verdicts if verdict.distance is not None]
    points = [
        Point(
            shorten_names([entry.get("batch", "")])[0], entry["date"][:10], entry["verdict"],
            _read_number(entry.get(shown)), is_far=entry["verdict"] == "drift" and shown not in entry,
        )
        for entry in history
    ]  # fmt: skip
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    datasets = [] if run.gate is None else [(names[0], DatasetSummary.of(run.gate.reference))]
    for verdict, name in zip(run.verdicts, names[1:], strict=True):
        if verdict.batch in run.summaries:  # which could be opened
            datasets.append((name, run.summaries[verdict.batch]))
        sums = [one.value for one in verdict.outcomes if one.criterion == "evidence"]
        value = sums[0] if sums else None if verdict.distance is None or of_series else verdict.distance.value
        is_far = value is None and verdict.verdict is Verdict.DRIFT
        chance = None if of_series else _find_chance(verdict)
        points.append(Point(name, today, verdict.verdict, value, chance, is_far))
    return write_page(
        path,
        "gate.html",
        run.whole.tone,
        title=title,
        verdicts=run.verdicts,
        reference=names[0],
        batches=names[1:],
        order=_sort_batches(run.verdicts),
        history=history,
        points=points,
        shown=shown,
        line=of_series[0].limit if of_series else None if run.gate is None else run.gate.limit,
        gate=run.gate,
        datasets=datasets,
        remarks=join_remarks(*remarks),
        asked=run.asked,
        data={
            "reference": run.reference,
            "verdict": run.whole.value,
            "batches": [one.to_dict() for one in run.verdicts],
        },
    )


def _read_number(text: str | None) -> float | None:
    """A distance of the log, which anyone may have written in; None for what is none."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < 1e300 else None


def _sort_batches(verdicts: Sequence[BatchVerdict]) -> list[int]:
    """The batches by what drifted most: the smallest p-value, then the largest distance."""

    def rank(place: int) -> tuple[float, float]:
        verdict = verdicts[place]
        p_value = 1.0 if verdict.p_value is None else verdict.p_value
        return p_value, -math.inf if verdict.distance is None else -verdict.distance.value

    return sorted(range(len(verdicts)), key=rank)


def _find_chance(verdict: BatchVerdict) -> tuple[float, float] | None:
    """What chance gives, brought to the unit of the distance that is shown."""
    if verdict.test is None or verdict.distance is None:
        return None
    low, high = verdict.test.quantiles((0.05, 0.95)).values()
    unit = verdict.distance.value / verdict.test.distance if verdict.test.distance > 0 else 1.0
    return low * (unit or 1.0), high * (unit or 1.0)


# ------------------------------------------------------------------ files for machines


def write_junit(path: str, run: GateRun) -> None:
    """Write a test case for every batch: drift is a failure, what is undecided an error.

    Names come with the data, and XML has no control codes at all: they are written out.
    """
    verdicts = [one.verdict for one in run.verdicts]
    tests, failures, errors = (
        str(count) for count in (len(verdicts), verdicts.count(Verdict.DRIFT), verdicts.count(Verdict.UNDECIDED))
    )
    suite = ElementTree.Element("testsuite", name="sotdd check", tests=tests, failures=failures, errors=errors)
    for one in run.verdicts:
        names = {"classname": one_line(run.reference), "name": one_line(one.batch)}
        case = ElementTree.SubElement(suite, "testcase", names)
        if one.verdict is Verdict.DRIFT:
            found = ElementTree.SubElement(case, "failure", type="drift", message=_say_why(one))
            found.text = write_out("\n".join([_say_why(one), *_say_columns(one), *map(str, one.schema)]), keep="\n")
        elif one.verdict is Verdict.UNDECIDED:
            ElementTree.SubElement(case, "error", type="undecided", message=_say_why(one))
    write_whole(path, ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True))


def write_summary(path: str, run: GateRun, report: str | None) -> None:
    """Write what a message about a run needs: one sentence as ``text``, the verdict, batches, and the page."""
    worst = [one.batch for one in run.verdicts if one.verdict is not Verdict.PASSED]
    summary: dict[str, Any] = {
        "text": one_line(f"{run.reference}: {run.counts}" + (f" ({join_names(worst, 3)})" if worst else "")),
        "verdict": run.whole.value,
        "reference": run.reference,
        "batches": [
            {
                "batch": one.batch,
                "verdict": one.verdict.value,
                "p": one.p_value,
                "columns": _say_columns(one)[:_MOST_COLUMNS],
                "schema": [str(remark) for remark in one.schema],
                "why": _say_why(one),
            }
            for one in run.verdicts
        ],
        "report": report,
    }
    write_whole(path, json.dumps(summary, indent=2, allow_nan=False).encode())


def _say_why(one: BatchVerdict) -> str:
    """What decided: the criteria that failed, why it is undecided, or else what all criteria say."""
    failed = [outcome.message for outcome in one.outcomes if outcome.failed]
    said = failed or ([one.error] if one.error else [outcome.message for outcome in one.outcomes])
    return one_line("; ".join(said))


def _say_columns(one: BatchVerdict) -> list[str]:
    return [str(change) for change in one.changes.changed]
