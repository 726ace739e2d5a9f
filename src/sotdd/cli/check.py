"""The commands that look for drift from a reference: ``sotdd reference``, ``check`` and ``monitor``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer

import sotdd
from sotdd.basics.errors import SotddError
from sotdd.basics.remarks import Verdict
from sotdd.basics.text import join_names, one_line, say_count, show
from sotdd.cli import options as o
from sotdd.cli.options import Opened, open_data, open_source
from sotdd.cli.terminal import complain, make_table, print_table, say, say_note, show_work
from sotdd.inputs.sources import write_source

if TYPE_CHECKING:
    from sotdd.drift.gate import BatchVerdict, Gate
    from sotdd.reports.gate import GateRun

REFERENCE_EXAMPLES = o.examples(
    "sotdd reference train.parquet -o train.ref",
    "sotdd reference train.csv -o train.ref --label churned --missing drop",
    "sotdd check train.ref monday.csv tuesday.csv",
)
CHECK_EXAMPLES = o.examples(
    "sotdd check train.parquet today.parquet",
    "sotdd check train.ref monday.csv tuesday.csv --report gate.html",
    "sotdd check train.ref today.csv --json --log gate.log",
    "sotdd check train.parquet today.parquet --fail-above 0.1",
)
MONITOR_EXAMPLES = o.examples(
    "sotdd monitor train.ref today.csv --log monitor.log",
    "sotdd monitor train.ref monday.csv tuesday.csv --log monitor.log --run-length 50",
    "sotdd monitor train.ref today.csv --log monitor.log --report monitor.html",
)

# Rows that a reference is made of, at least: those that are kept, and more for its sketch.
_MOST_READ = 200_000

# Settings of a reference, beside how projections are drawn.
_FITTING = ("p", "max_points", "label_names")


@o.takes("reading", "drawing", "p", "max_points", "label_names", n_projections=128, max_points=20_000)
def reference_command(
    data: Annotated[str, typer.Argument(metavar="SOURCE", help=o.SOURCE_HELP)],
    output: Annotated[str, typer.Option("--output", "-o", help="The file to write; its name ends in .ref.")],
    asked: o.Request,
) -> None:
    """Keep a dataset as a reference, which sotdd check tests batches against.

    The file holds a sample of rows as they were read, at most 20,000 and about four
    million values, and a sketch of up to 200,000 for the distance: treat it as you treat
    the data. It remembers which columns and labels were read, so that batches are read in
    the same way.
    """
    o.refuse_output(output, o.REFERENCE, "train")
    most = max(_MOST_READ, asked.measuring.get("max_points", 0))
    source = open_data(data, asked, "to test batches against", most)
    with show_work(f"Keeping rows of {data} …", asked.quiet):
        made = _fit_reference(data, source, asked)
    made.save(output)
    columns = made.projections.columns
    numbers = {
        "file": output,
        "name": made.name,
        "n_points": made.n_points,
        "n_classes": len(made.classes),
        "n_features": made.projections.n_features,
        "columns": None if columns is None else list(columns),
        "n_projections": made.projections.n_projections,
        "fingerprint": made.projections.fingerprint,
        "remarks": [remark.to_dict() for remark in made.remarks],
    }

    def write() -> None:
        points, classes = say_count(made.n_points, "point"), say_count(len(made.classes), "class", "classes")
        say(f"{show(output)}: {points} in {classes}, {say_count(made.projections.n_features, 'feature')}", "bold")
        if columns is not None:
            say_note(f"columns: {join_names(columns, most=12)}", asked.quiet)

    asked.print(numbers, write, remarks=made.remarks, legend=f"to check a batch: sotdd check {show(output)} BATCH")


def _fit_reference(name: str, data: sotdd.LabelledData, asked: o.Request) -> sotdd.DriftReference:
    """The reference that data make, which reads batches as they were read."""
    made = sotdd.DriftReference.fit(data, with_sketch=True, **asked.drawing, **asked.choose(*_FITTING, "device"))
    return made.opened_as(asked.write_source(name))


@o.takes(
    "reading", "drawing", "report", "title", "junit", "summary", "csv", "p", "fail_above", "p_value",
    "n_permutations", "min_points", "require_all_columns", "max_points", "label_names", "device",
    n_projections=128, max_points=20_000,
)  # fmt: skip
def check_command(
    reference: Annotated[
        str,
        typer.Argument(
            metavar="REFERENCE",
            help="A dataset, given as in sotdd distance; what sotdd reference made (.ref); or a sketch (.sotdd).",
        ),
    ],
    current: Annotated[list[str], typer.Argument(metavar="BATCH...", help="Datasets that may have drifted from it.")],
    asked: o.Request,
    log: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Add a line for every batch to this file.", rich_help_panel="Output"),
    ] = None,
) -> None:
    """Say whether batches have drifted from a reference.

    Exit code 0: none has. 1: one has drifted. 2: it could not be decided, such as
    for input that cannot be read or has too few rows.

    By default a permutation test decides at a level of 5 %: the false-alarm rate is 5 %
    of commands. Sketches have no points to permute: their random halves decide, at the
    same level. --fail-above decides by the size of the drift instead, in units of the
    spread of the reference.

    The verdict is that of `sotdd test` for the rows of the reference and of the batch,
    of which at most --max-points each are used. It says what decided and in which column;
    below are the columns that changed, with p-values corrected for their number, and what
    changed in the table itself, such as new columns.
    """
    from sotdd.drift.gate import BatchVerdict, open_log
    from sotdd.measure.changes import LEVEL
    from sotdd.reports.datasets import DatasetSummary
    from sotdd.reports.gate import GateRun

    try:
        asked.refuse_report()
        if log is not None:
            open_log(log)
        for name, value in asked.measuring.items():
            o.MEASURING[name][0].take(value, name)  # refuses what is no level, limit or count
        gate = _make_gate(reference, asked)
        chosen, limit = asked.measuring, asked.measuring.get("fail_above")
        gate = replace(
            gate,
            n_batches=len(current),
            limit=limit,
            level=chosen.get("p_value", LEVEL if limit is None and gate.drift is not None else None),
            fewest=chosen.get("min_points", gate.fewest),
            **asked.choose("n_permutations", "require_all_columns", "max_points"),
        )
        verdicts, summaries = [], {}
        for verdict, opened in _judge_batches(gate, current, asked, gate.judge):
            verdicts.append(verdict)
            if asked.report is not None and opened is not None:
                summaries[verdict.batch] = DatasetSummary.of(opened)
        run = GateRun(gate.name, verdicts, summaries, gate, asked=_list_sources(gate, asked, verdicts))
    except SotddError as error:
        run = GateRun(reference, [BatchVerdict(batch, error=error.say(asked.naming)) for batch in current])
    _end_run(asked, run, _write_outputs(asked, log, run))


@o.takes(
    "reading", "drawing", "page", "p", "run_length", "n_permutations", "max_points", "label_names", "device",
    n_projections=128, max_points=20_000, n_permutations=499,
)  # fmt: skip
def monitor_command(
    reference: Annotated[
        str, typer.Argument(metavar="REFERENCE", help="A dataset, or what sotdd reference made (.ref).")
    ],
    current: Annotated[list[str], typer.Argument(metavar="BATCH...", help="Datasets, in the order they came in.")],
    log: Annotated[str, typer.Option(metavar="FILE", help="The file that keeps the series, a line for every batch.")],
    asked: o.Request,
) -> None:
    """Say whether a series of batches has drifted, by the evidence of all of them.

    A drift too small for any single batch adds up. If nothing drifts, there is one
    false alarm in --run-length batches on average. Each call continues where the log
    ends, and waits while another one writes it; after an alarm the sum starts again
    from zero. Pass every batch once.

    Exit code 0: no alarm. 1: an alarm, with the columns that changed. 2: a batch
    could not be judged, and was skipped.
    """
    from sotdd.drift.gate import describe_state, hold_log, open_log, read_history, resume_monitor, write_line
    from sotdd.reports.datasets import DatasetSummary
    from sotdd.reports.gate import GateRun, write_gate_page

    open_log(log)
    gate = replace(_make_gate(reference, asked), n_permutations=asked.measuring.get("n_permutations", 499))
    if gate.drift is None:
        raise SotddError(f"{reference!r} is a sketch, which has no points to permute: give the data.")
    monitor = gate.drift.monitor(asked.measuring.get("run_length", 200))

    def watch(opened: Opened, batch: str) -> BatchVerdict:
        nonlocal monitor
        verdict, monitor = gate.watch(monitor, opened, batch)
        return verdict

    verdicts: list[BatchVerdict] = []
    failures: list[str] = []
    summaries = {}
    with hold_log(log) as append:  # from where the series stands to its last line, so that no batch is lost
        monitor, history = resume_monitor(monitor, log), read_history(log, reference)
        for verdict, opened in _judge_batches(gate, current, asked, watch):
            verdicts.append(verdict)
            if asked.report is not None and opened is not None:
                summaries[verdict.batch] = DatasetSummary.of(opened)
            try:
                append([write_line(verdict, reference, monitor=describe_state(monitor))])
            except SotddError as error:  # an alarm is an alarm all the same; the series cannot go on
                failures.append(error.say(asked.naming))
                break
    so_far = f"{say_count(monitor.n_batches, 'batch', 'batches')} so far"
    note = f"{so_far}, {monitor.run_length:,} to a false alarm on average"
    if monitor.last is not None:
        low, high = monitor.expected
        note += f" ({low:.0f} to {high:.0f} for two of three references of this size)"
    run = GateRun(reference, verdicts, summaries, gate, history)
    if asked.report is not None:
        try:
            write_gate_page(asked.report, run, asked.title)
        except SotddError as error:  # the verdict stands all the same
            failures.append(error.say(asked.naming))
    _end_run(asked, run, failures, {"monitor": describe_state(monitor)}, note)


def _make_gate(reference: str, asked: o.Request) -> Gate:
    """The reference: data, a sketch, or what ``sotdd reference`` made, of which nothing can be chosen any more."""
    from sotdd.drift.gate import Gate
    from sotdd.measure.comparison import MOST_POINTS

    device = asked.choose("device")
    if o.is_made(reference):
        if "p_value" in asked.measuring:
            advice = "give the data, or leave --p-value out"
            raise SotddError(f"{reference!r} is a sketch, which has no points to permute: {advice}.")
        asked.refuse_drawing("for a sketch, which is already made")
        sketch = replace(sotdd.Sketch.load(reference), name=reference)
        return Gate(reference, sketch, {**asked.choose("p"), **device})
    if o.is_made(reference, o.REFERENCE):
        chosen = {**asked.drawing, **asked.choose("p", "label_names")}
        replace(asked, drawing=chosen).refuse_drawing("for a saved reference, which is already made")
        return Gate(reference, sotdd.DriftReference.load(reference), device)
    opened = open_data(reference, asked, most=asked.measuring.get("max_points", MOST_POINTS))
    with show_work(f"Keeping rows of {reference} …", asked.quiet):
        return Gate(reference, _fit_reference(reference, opened, asked), device)


def _judge_batches(
    gate: Gate, batches: Sequence[str], asked: o.Request, judge: Callable[[Opened, str], BatchVerdict]
) -> Iterator[tuple[BatchVerdict, Opened | None]]:
    """What is said of each batch, one at a time, and the batch itself; None where it could not be opened."""
    from sotdd.drift.gate import BatchVerdict

    for batch in batches:
        opened = None
        try:
            opened = _open_batch(gate, asked, batch)
            with show_work(f"Checking {batch} …", asked.quiet):
                verdict = judge(opened, batch)
        except SotddError as error:
            n_points = getattr(opened, "n_points", None)
            verdict = BatchVerdict(batch, n_points=n_points, schema=error.remarks, error=error.say(asked.naming))
        yield verdict, opened


def _open_batch(gate: Gate, asked: o.Request, batch: str) -> Opened:
    """Open a batch as the reference was, or a sample of it where it is large; a sketch only beside a sketch."""
    from sotdd.measure.comparison import MOST_POINTS

    if o.is_made(batch, o.REFERENCE):
        raise SotddError(f"{batch!r} is a reference: give it first, and then the batches.")
    if o.is_made(batch):
        if gate.drift is not None:
            advice = f"give the data of {batch!r}, or sketch the reference, and then this one --like it"
            raise SotddError(f"{batch!r} is a sketch but the reference, which sets the unit, is not: {advice}.")
        return open_source(batch, asked)
    with show_work(f"Reading {batch} …", asked.quiet):
        return gate.open_batch(batch, **asked.reading, max_points=asked.measuring.get("max_points", MOST_POINTS))


def _list_sources(gate: Gate, asked: o.Request, verdicts: Sequence[BatchVerdict]) -> dict[str, Any]:
    """What it takes to ask for the same numbers in Python, of the batches that could be judged."""
    reading = {name: value for name, value in asked.reading.items() if name != "exclude"}  # as the reference has
    reading |= asked.choose("max_points")
    batches = {
        write_source(verdict.batch, **({} if o.is_made(verdict.batch) else reading)): (
            None if verdict.test is None else len(verdict.test.null)
        )
        for verdict in verdicts
        if verdict.distance is not None
    }
    is_made = o.is_made(gate.name, o.REFERENCE, o.SKETCH)
    most = asked.choose("max_points")  # rows are sampled when they are read
    reference = gate.name if is_made else write_source(gate.name, **asked.reading, **most)
    settings = {**asked.drawing, **asked.choose(*_FITTING)}
    found = {"reference": reference, "batches": batches, "settings": settings, "is_made": is_made}
    return {**found, "level": (gate.level or 1.0) / gate.n_batches} if batches else {}


def _write_outputs(asked: o.Request, log: str | None, run: GateRun) -> list[str]:
    """Write all files that were asked for, whatever the verdict; returns what went wrong with that."""
    from sotdd.drift.gate import append_lines, read_history, write_line
    from sotdd.reports.gate import write_gate_page, write_junit, write_summary

    failures: list[str] = []

    @contextmanager
    def go_on() -> Iterator[None]:
        try:
            yield
        except SotddError as error:
            failures.append(error.say(asked.naming))

    with go_on():
        if asked.report is not None:
            history = [] if log is None else read_history(log, run.reference)
            write_gate_page(asked.report, replace(run, history=history), asked.title)
    with go_on():
        if log is not None:
            append_lines(log, [write_line(verdict, run.reference) for verdict in run.verdicts])
    with go_on():
        if asked.junit is not None:
            write_junit(asked.junit, run)
        if asked.summary is not None:
            write_summary(asked.summary, run, None if failures else asked.report)
    return failures


def _end_run(
    asked: o.Request,
    run: GateRun,
    failures: Sequence[str] = (),
    more: Mapping[str, object] = MappingProxyType({}),
    note: str = "",
) -> None:
    """Print a run, with ``more`` in its JSON and a note, and leave by its exit code; failures are of files to write."""
    from sotdd.drift.gate import list_values

    # The error of one batch beside others stands in its line.
    has_lines = len(run.verdicts) > 1 and run.gate is not None and not (asked.json or asked.csv)
    errors = [one.error for one in run.verdicts if one.verdict is Verdict.UNDECIDED and not has_lines]
    for line in dict.fromkeys([*filter(None, errors), *failures]):
        complain(line)
    each = [verdict.to_dict() for verdict in run.verdicts]
    # What is said of a single batch stands at the top.
    batches = each[0] if len(each) == 1 else {"batches": each}
    measured = [one.distance for one in run.verdicts if one.distance]
    # Columns that were left out stand beside the verdict; gaps were told when a saved reference was made.
    told = {"columns left out"} | ({"values filled"} if o.is_made(run.reference, o.REFERENCE) else set())
    replace(asked, report=None if failures else asked.report).print(
        {"reference": run.reference, "verdict": run.whole.value, "drifted": run.whole.drifted, **more, **batches},
        lambda: _print_verdicts(run),
        rows=[list_values(verdict, run.reference) for verdict in run.verdicts],
        remarks=[remark for one in measured for remark in one.remarks if remark.kind not in told],
        legend="; ".join(filter(None, (note, _say_how(run)))) or None,
    )
    exit_code = run.whole.exit_code or (2 if failures else 0)
    if exit_code:
        raise typer.Exit(exit_code)


def _print_verdicts(run: GateRun) -> None:
    """Print what each criterion says of each batch, which columns changed, and how many batches passed.

    The error of a single batch is printed apart.
    """
    several = len(run.verdicts) > 1
    for verdict in run.verdicts:
        found = sorted(verdict.outcomes, key=lambda one: not one.failed)
        lines = [(Verdict.DRIFT if one.failed else Verdict.PASSED, one.message) for one in found]
        if verdict.verdict is Verdict.UNDECIDED:
            lines = [(verdict.verdict, one_line(verdict.error or ""))] if several and run.gate is not None else []
        for kind, text in lines:
            say(f"{kind.label}  {show(verdict.batch)}: {text}" if several else f"{kind.label}  {text}", kind.colour)
        is_drift = verdict.verdict is Verdict.DRIFT
        if is_drift and verdict.changes.changed:  # as much of the table as fits
            rows = verdict.changes.list_rows()
            print_table(make_table(rows, left=(0, 1, 2)), make_table([row[:3] for row in rows], left=(0, 1, 2)))
        for text in verdict.changes.say_rest() if is_drift else ():
            say(text)
        for remark in verdict.schema:
            say(f"{show(verdict.batch)}: {remark}" if several else f"schema: {remark}")
    for text in dict.fromkeys(verdict.judged.say() for verdict in run.verdicts if verdict.judged is not None):
        say(text)
    if several and run.gate is not None:
        say(f"{say_count(len(run.verdicts), 'batch', 'batches')}: {run.counts}", "bold")


def _say_how(run: GateRun) -> str | None:
    """The distance, unless a line shows it already, and how it was measured; None where nothing was."""
    from sotdd.drift.gate import say_distance

    measured = [verdict for verdict in run.verdicts if verdict.outcomes]
    if not measured:
        return None
    first = measured[0]
    shown = len(run.verdicts) > 1 or any(outcome.criterion in ("distance", "noise") for outcome in first.outcomes)
    said = [] if shown else [say_distance(first.distance)]
    if first.distance is not None:
        said += [first.distance.how, f"the unit is the spread of {show(run.reference)}"]
    return "; ".join(said)
