"""A run of a gate as files for machines: JUnit XML, which pipelines show as tests, and a short summary to post."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

from sotdd.basics.files import write_whole
from sotdd.basics.remarks import Verdict
from sotdd.basics.text import join_names, one_line, write_out
from sotdd.drift.gate import BatchVerdict
from sotdd.reports.gate_page import GateRun

# Columns that a summary names.
_MOST_COLUMNS = 5


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
    counts = [(kind.past, sum(one.verdict is kind for one in run.verdicts)) for kind in Verdict]
    said = ", ".join(f"{count:,} {word}" for word, count in counts if count)
    worst = [one.batch for one in run.verdicts if one.verdict is not Verdict.PASSED]
    summary: dict[str, Any] = {
        "text": one_line(f"{run.reference}: {said}" + (f" ({join_names(worst, 3)})" if worst else "")),
        "verdict": Verdict.combine(one.verdict for one in run.verdicts).value,
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
