"""The command ``sotdd check``, which looks for drift from a reference."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sotdd.basics.errors import SotddError
from sotdd.basics.text import counted, one_line, shown
from sotdd.commands import options as o
from sotdd.commands.gate_log import append, line_of, refuse_unwritable_log
from sotdd.commands.gate_sources import Asked, gate_code, gate_of, judged_batches
from sotdd.commands.option_names import in_options
from sotdd.commands.sources import refuse_report
from sotdd.commands.terminal import complain, print_json, say, say_note

if TYPE_CHECKING:
    from sotdd.measure.drift_gate import BatchVerdict, Criteria, Gate

EXAMPLES = o.examples(
    "sotdd check train.parquet today.parquet",
    "sotdd check train.ref monday.csv tuesday.csv --report gate.html",
    "sotdd check train.ref today.csv --json --log gate.log",
    "sotdd check train.parquet today.parquet --fail-above 0.1",
)

_WORDS = {"passed": ("passed", "green"), "drift": ("FAILED", "red"), "unknown": ("unknown", "yellow")}
_EXIT_CODES = {"passed": 0, "drift": 1, "unknown": 2}


def check_command(
    reference: Annotated[
        str,
        typer.Argument(
            metavar="REFERENCE",
            help="A dataset, given as in sotdd distance; what sotdd reference made (.ref); or a sketch (.sotdd).",
        ),
    ],
    current: Annotated[list[str], typer.Argument(metavar="BATCH...", help="Datasets that may have drifted from it.")],
    fail_above: Annotated[
        float | None, typer.Option(metavar="X", help="Fail if the distance is more than this.")
    ] = None,
    p_value: Annotated[
        float | None,
        typer.Option(
            metavar="LEVEL",
            help="Fail if a permutation test finds drift at this level, shared by all batches; 0.05 by default.",
        ),
    ] = None,
    min_points: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="With fewer points there is no telling that nothing has drifted.", show_default="10"
        ),
    ] = None,
    n_permutations: o.Permutations = 999,
    max_points: o.MaxPoints = None,
    label_names: Annotated[
        str | None,
        typer.Option(
            help="match: classes that swap names count as a difference; ignore: only where classes lie counts.",
            show_default="ignore, or as the reference was made",
        ),
    ] = None,
    features: o.Features = None,
    label: o.Label = None,
    exclude: o.Exclude = None,
    one_hot: o.OneHot = None,
    dates: o.Dates = False,
    missing: o.Missing = None,
    n_projections: o.Projections = None,
    seed: o.Seed = None,
    p: o.Order = None,
    label_law: o.LabelLaw = None,
    scale: o.Scale = None,
    device: o.Device = "auto",
    report: o.Report = None,
    title: o.Title = None,
    log: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Add a line for every batch to this file.", rich_help_panel="Output"),
    ] = None,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Say whether batches have drifted from a reference.

    Exit code 0: none has. 1: one has drifted. 2: there is no telling, such as
    for input that cannot be read or has too few rows.

    Without options, a permutation test decides at a level of 5 %: of 20 commands
    whose batches have not drifted, about one fails. Between sketches, which have no points
    to shuffle, what halves of each differ by decides at that level. --fail-above
    decides by the size of the drift instead, in units of the spread of the reference.
    """
    began = time.perf_counter()
    gate, code = None, ""
    run: dict[str, Any] = {}
    try:
        _refuse_outputs(report, log)
        _refuse_limits(fail_above, p_value)
        asked = Asked(
            reference, current, features, label, o.reading(exclude, one_hot, dates, missing),
            o.chosen(n_projections=n_projections, seed=seed, label_law=label_law, scale=scale),
            o.chosen(p=p, device=None if device == "auto" else device),
            o.chosen(max_points=max_points, label_names=label_names), quiet,
        )  # fmt: skip
        gate = gate_of(asked, is_tested=p_value is not None)
        criteria = _criteria(gate, len(current), fail_above, p_value, n_permutations, min_points)
        verdicts, seen = judged_batches(asked, gate, criteria, with_facts=report is not None)
        code = gate_code(asked, gate, verdicts)
        run = {"seen": seen, "gate": gate, "criteria": criteria, "code": code}
    except SotddError as error:
        from sotdd.measure.drift_gate import BatchVerdict

        verdicts = [BatchVerdict(batch, error=in_options(str(error))) for batch in current]
    failures = _written(report, title, log, reference, verdicts, run)
    said_below = len(verdicts) > 1 and gate is not None and not as_json
    errors = [verdict.error for verdict in verdicts if verdict.verdict == "unknown" and not said_below]
    for line in dict.fromkeys([*filter(None, errors), *failures]):
        complain(line)
    from sotdd.measure.drift_gate import together

    whole = together(verdicts)
    if as_json:
        print_json(_as_json(reference, verdicts, whole, report))
    else:
        if gate is not None:
            _say_all(reference, verdicts, time.perf_counter() - began, quiet)
        if report is not None and not failures:
            say(f"wrote {shown(report)}", "bold")
    exit_code = _EXIT_CODES[whole] or (2 if failures else 0)
    if exit_code:
        raise typer.Exit(exit_code)


def _refuse_outputs(report: Path | None, log: Path | None) -> None:
    if report is not None:
        refuse_report(report)
    if log is not None:
        refuse_unwritable_log(log)


def _refuse_limits(fail_above: float | None, p_value: float | None) -> None:
    if fail_above is not None and not 0 <= fail_above < math.inf:
        raise SotddError(f"--fail-above is {fail_above:g}: expected a distance, such as 0.1.")
    if p_value is not None and not 0 < p_value < 1:
        raise SotddError(f"--p-value is {p_value:g}: expected a number between 0 and 1, such as 0.05.")


def _criteria(
    gate: Gate, n_batches: int, fail_above: float | None, p_value: float | None, n_permutations: int, fewest: int | None
) -> Criteria:
    """What decides: a test, unless there is a limit and no level."""
    from sotdd.basics.checks import check_count
    from sotdd.measure.drift_gate import FEWEST, LEVEL, Criteria

    check_count(n_permutations, "n_permutations")
    least = FEWEST if fewest is None else check_count(fewest, "min_points")
    level = p_value if p_value is not None else LEVEL if fail_above is None and gate.drift is not None else None
    return Criteria(n_batches, fail_above, level, n_permutations, least)


def _written(
    report: Path | None, title: str | None, log: Path | None, reference: str, verdicts: list[BatchVerdict],
    run: dict[str, Any],
) -> list[str]:  # fmt: skip
    """Write the page and the lines of the log, whatever the verdict; returns what went wrong with that."""
    failures = []
    now = datetime.now(UTC)
    if report is not None:
        from sotdd.commands.gate_log import read_back
        from sotdd.pictures.gate_page import GateRun, write_gate_page

        history = [] if log is None else read_back(log, reference)
        seen = run.pop("seen", [None] * len(verdicts))
        try:
            write_gate_page(report, GateRun(reference, verdicts, seen, history=history, **run), title=title, now=now)
        except SotddError as error:
            failures.append(in_options(str(error)))
    if log is not None:
        try:
            append(log, [line_of(verdict, reference, now) for verdict in verdicts])
        except SotddError as error:
            failures.append(in_options(str(error)))
    return failures


def _as_json(reference: str, verdicts: list[BatchVerdict], whole: str, report: Path | None) -> dict[str, Any]:
    """All of it; with a single batch, what is said of it stands at the top as well."""
    drifted = {"drift": True, "passed": False}.get(whole)
    result: dict[str, Any] = {"reference": reference, "verdict": whole, "drifted": drifted}
    if len(verdicts) == 1:
        result |= verdicts[0].to_dict()
    else:
        result["batches"] = [verdict.to_dict() for verdict in verdicts]
    return result | ({} if report is None else {"report": str(report)})


def _say_all(reference: str, verdicts: list[BatchVerdict], seconds: float, quiet: bool) -> None:
    several = len(verdicts) > 1
    for verdict in verdicts:
        word, colour = _WORDS["passed" if verdict.verdict == "drift" else verdict.verdict]
        name = f"{shown(verdict.batch)}: " if several else ""
        if several and verdict.verdict == "unknown":
            say(f"{word}  {name}{one_line(verdict.error or '')}", colour)
            continue
        for outcome in verdict.outcomes:
            mark, style = _WORDS["drift"] if outcome.failed else (word, colour)
            say(f"{mark}  {name}{outcome.message}", style)
    measured = [verdict for verdict in verdicts if verdict.outcomes]
    remarks = [remark for verdict in measured if verdict.distance for remark in verdict.distance.remarks]
    for remark in dict.fromkeys(remarks):
        say_note(one_line(in_options(remark)), quiet)
    if several:
        counts = [(word, sum(one.verdict == kind for one in verdicts)) for kind, word in _COUNTED.items()]
        said = ", ".join(f"{count:,} {word}" for word, count in counts if count)
        say(f"{counted(len(verdicts), 'batch', 'batches')}: {said}", "bold")
    if measured:
        _say_how(reference, measured[0], several, seconds, quiet)


_COUNTED = {"passed": "passed", "drift": "drifted", "unknown": "could not be told"}


def _say_how(reference: str, verdict: BatchVerdict, several: bool, seconds: float, quiet: bool) -> None:
    """Print the distance, unless an outcome shows it already, and how it was measured."""
    from sotdd.measure.drift_gate import far

    shown_already = several or any(outcome.criterion != "p_value" for outcome in verdict.outcomes)
    between = "" if shown_already else f"from {shown(reference)} to {shown(verdict.batch)}"
    distance = f"{far(verdict.distance, between)}; " if between else ""
    if verdict.distance is None:
        say_note(f"{distance}{seconds:.1f} s", quiet)
    else:
        how = f"{verdict.distance.how}; the unit is the spread of {shown(reference)}"
        say_note(f"{distance}{how}; {seconds:.1f} s", quiet)
