"""The commands ``sotdd reference`` and ``sotdd check``, which look for drift from a reference."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sotdd.basics.checks import check_count
from sotdd.basics.errors import SotddError
from sotdd.basics.files import refuse_unwritable
from sotdd.basics.text import join_names, one_line, say_count, show
from sotdd.cli import options as o
from sotdd.cli.sources import open_data, open_source, refuse_report, show_reading
from sotdd.cli.terminal import complain, print_json, print_remarks, say, say_note, show_work
from sotdd.inputs.reading import write_source

if TYPE_CHECKING:
    from sotdd.drift.gate import BatchVerdict, Criteria, Gate
    from sotdd.drift.reference import DriftReference
    from sotdd.inputs.data import LabelledData
    from sotdd.reports.dataset_facts import Facts
    from sotdd.sketches.sketch import Sketch

REFERENCE_EXAMPLES = o.examples(
    "sotdd reference train.parquet -o train.ref",
    "sotdd reference train.csv -o train.ref --label churned --missing drop",
    "sotdd check train.ref monday.csv tuesday.csv",
)
EXAMPLES = o.examples(
    "sotdd check train.parquet today.parquet",
    "sotdd check train.ref monday.csv tuesday.csv --report gate.html",
    "sotdd check train.ref today.csv --json --log gate.log",
    "sotdd check train.parquet today.parquet --fail-above 0.1",
)

_WORDS = {"passed": ("passed", "green"), "drift": ("FAILED", "red"), "unknown": ("undecided", "yellow")}
_EXIT_CODES = {"passed": 0, "drift": 1, "unknown": 2}

# Settings of a reference, beside how projections are drawn.
_FITTING = ("p", "max_points", "label_names")


@o.takes("reading", "drawing", "p", "max_points", "label_names", n_projections=128, max_points=20_000)
def reference_command(
    data: Annotated[str, typer.Argument(metavar="SOURCE", help=o.SOURCE_HELP)],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write; its name ends in .ref.")],
    asked: o.Asked,
) -> None:
    """Keep a dataset as a reference, which sotdd check tests batches against.

    The file holds projected values and labels, no features, and remembers which
    columns and labels were read, so that batches are read in the same way.
    """
    if output.suffix != o.REFERENCE:
        raise SotddError(f"is {str(output)!r}: call it {(output.stem or 'train') + o.REFERENCE!r}.", setting="output")
    refuse_unwritable(output)
    source = open_data(data, asked, "to test batches against")
    with show_work(f"Projecting {data} …", asked.quiet):
        made = _fit_reference(data, source, asked)
    made.save(output)
    size, columns = output.stat().st_size, made.projections.columns
    if asked.json:
        print_json({
            "file": str(output),
            "bytes": size,
            "name": made.name,
            "n_points": made.n_points,
            "n_classes": len(made.classes),
            "n_features": made.projections.n_features,
            "columns": None if columns is None else list(columns),
            "n_projections": made.projections.n_projections,
            "fingerprint": made.projections.fingerprint,
            "remarks": [remark.to_dict() for remark in made.remarks],
        })  # fmt: skip
        return
    points, classes = say_count(made.n_points, "point"), say_count(len(made.classes), "class", "classes")
    say(f"{show(output)}: {points} in {classes}, {say_count(made.projections.n_features, 'feature')}", "bold")
    if columns is not None:
        say_note(f"columns: {join_names(columns, most=12)}", asked.quiet)
    print_remarks(made.remarks, asked.naming, asked.quiet)
    say_note(f"{size / 1e6:.2g} MB, {asked.seconds}", asked.quiet)
    say_note(f"To check a batch: sotdd check {show(output)} BATCH", asked.quiet)


def _fit_reference(name: str, data: LabelledData, asked: o.Asked) -> DriftReference:
    """The reference that data make, which reads batches as they were read."""
    import sotdd
    from sotdd.drift.reading import BatchReading

    made = sotdd.DriftReference.fit(data, with_sketch=True, **asked.drawing, **_choose(asked, *_FITTING, "device"))
    return replace(made, name=name, reading=BatchReading.of(asked.write_source(name), data))


@o.takes(
    "reading", "drawing", "report", "title", "p", "n_permutations", "max_points", "label_names", "device",
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
    asked: o.Asked,
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
        typer.Option(metavar="N", help="With fewer points a batch does not pass: it is undecided.", show_default="10"),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Add a line for every batch to this file.", rich_help_panel="Output"),
    ] = None,
) -> None:
    """Say whether batches have drifted from a reference.

    Exit code 0: none has. 1: one has drifted. 2: it could not be decided, such as
    for input that cannot be read or has too few rows.

    Without options, a permutation test decides at a level of 5 %: of 20 commands
    whose batches have not drifted, about one fails. Between sketches, which have no points
    to permute, what halves of each differ by decides at that level. --fail-above
    decides by the size of the drift instead, in units of the spread of the reference.
    """
    from sotdd.drift.gate import BatchVerdict, combine_verdicts, refuse_unwritable_log

    gate = None
    run: dict[str, Any] = {"facts": [None] * len(current)}
    try:
        refuse_report(asked)
        if log is not None:
            refuse_unwritable_log(log)
        _refuse_limits(fail_above, p_value)
        gate, data = _make_gate(reference, asked, is_tested=p_value is not None)
        criteria = _make_criteria(gate, asked, len(current), fail_above, p_value, min_points)
        reopen = functools.partial(_open_batch, gate, asked)
        verdicts, facts = _judge_batches(gate, current, asked, criteria)
        code = "" if asked.report is None else _write_code(gate, asked, verdicts, loaded=data is None)
        run = {"facts": facts, "gate": gate, "criteria": criteria, "data": data, "reopen": reopen, "code": code}
    except SotddError as error:
        verdicts = [BatchVerdict(batch, error=error.say(asked.naming)) for batch in current]
    failures = _write_outputs(asked, log, reference, verdicts, run)
    said_below = len(verdicts) > 1 and gate is not None and not asked.json
    errors = [verdict.error for verdict in verdicts if verdict.verdict == "unknown" and not said_below]
    for line in dict.fromkeys([*filter(None, errors), *failures]):
        complain(line)
    whole = combine_verdicts(verdicts)
    if asked.json:
        drifted = {"drift": True, "passed": False}.get(whole)
        each = [verdict.to_dict() for verdict in verdicts]
        # What is said of a single batch stands at the top.
        batches = each[0] if len(each) == 1 else {"batches": each}
        print_json({"reference": reference, "verdict": whole, "drifted": drifted, **batches, **asked.written})
    else:
        if gate is not None:
            _say_all(reference, verdicts, asked)
        if asked.report is not None and not failures:
            say(f"wrote {show(asked.report)}", "bold")
    exit_code = _EXIT_CODES[whole] or (2 if failures else 0)
    if exit_code:
        raise typer.Exit(exit_code)


def _refuse_limits(fail_above: float | None, p_value: float | None) -> None:
    if fail_above is not None and not 0 <= fail_above < math.inf:
        raise SotddError(f"is {fail_above:g}: expected a distance, such as 0.1.", setting="fail_above")
    if p_value is not None and not 0 < p_value < 1:
        raise SotddError(f"is {p_value:g}: expected a number between 0 and 1, such as 0.05.", setting="p_value")


def _make_gate(reference: str, asked: o.Asked, *, is_tested: bool) -> tuple[Gate, LabelledData | None]:
    """The reference: data, a sketch, or what ``sotdd reference`` made, of which nothing can be chosen any more.

    With it the data, where they were opened.
    """
    import sotdd
    from sotdd.drift.gate import Gate

    device = _choose(asked, "device")
    if reference.endswith(o.SKETCH):
        if is_tested:
            advice = "give the data, or leave --p-value out"
            raise SotddError(f"{reference!r} is a sketch, which has no points to permute: {advice}.")
        asked.refuse_drawing("for a sketch, which is already made")
        sketch = replace(sotdd.Sketch.load(reference), name=reference)
        return Gate(reference, sketch, {**_choose(asked, "p"), **device}), None
    if reference.endswith(o.REFERENCE):
        chosen = {**asked.drawing, **_choose(asked, *_FITTING)}
        replace(asked, drawing=chosen).refuse_drawing("for a saved reference, which is already made")
        return Gate(reference, sotdd.DriftReference.load(reference), device), None
    data = open_data(reference, asked)
    return Gate(reference, _fit_reference(reference, data, asked), device), data


def _choose(asked: o.Asked, *names: str) -> dict[str, Any]:
    """Those of some settings that the user chose."""
    return {name: asked.measuring[name] for name in names if name in asked.measuring}


def _make_criteria(
    gate: Gate, asked: o.Asked, n_batches: int, fail_above: float | None, p_value: float | None, fewest: int | None
) -> Criteria:
    """What decides: a test, unless there is a limit and no level."""
    from sotdd.drift.gate import FEWEST, LEVEL, Criteria

    n_permutations = check_count(asked.measuring.get("n_permutations", Criteria.n_permutations), "n_permutations")
    least = FEWEST if fewest is None else check_count(fewest, "min_points")
    level = p_value if p_value is not None else LEVEL if fail_above is None and gate.drift is not None else None
    return Criteria(n_batches, fail_above, level, n_permutations, least)


def _judge_batches(
    gate: Gate, batches: Sequence[str], asked: o.Asked, criteria: Criteria
) -> tuple[list[BatchVerdict], list[Facts | None]]:
    """What is said of each batch, one at a time; and, for a page, what it shows of its data."""
    from sotdd.drift.gate import BatchVerdict
    from sotdd.reports.dataset_facts import collect_facts

    verdicts: list[BatchVerdict] = []
    facts: list[Facts | None] = []
    for batch in batches:
        data = None
        try:
            data = _open_batch(gate, asked, batch)
            verdict = gate.judge(data, criteria, batch, asked.bar)
        except SotddError as error:
            verdict = BatchVerdict(batch, n_points=getattr(data, "n_points", None), error=error.say(asked.naming))
        verdicts.append(verdict)
        facts.append(collect_facts(data) if asked.report is not None and data is not None else None)
    return verdicts, facts


def _open_batch(gate: Gate, asked: o.Asked, batch: str) -> LabelledData | Sketch:
    if batch.endswith(o.REFERENCE):
        raise SotddError(f"{batch!r} is a reference: give it first, and then the batches.")
    if batch.endswith(o.SKETCH):
        if gate.drift is not None:
            advice = f"give the data of {batch!r}, or sketch the reference, and then this one --like it"
            raise SotddError(f"{batch!r} is a sketch but the reference, which sets the unit, is not: {advice}.")
        return open_source(batch, asked)
    with show_reading(batch, asked.quiet):
        return gate.open_batch(batch, **_choose_reading(asked))


def _choose_reading(asked: o.Asked) -> dict[str, Any]:
    """What of how tables are read is asked of batches too; columns are those of the reference."""
    return {name: value for name, value in asked.reading.items() if name != "exclude"}


def _write_code(gate: Gate, asked: o.Asked, verdicts: Sequence[BatchVerdict], *, loaded: bool) -> str:
    """Python that gives the numbers of the batches that could be judged again."""
    from sotdd.reports.code import write_gate_code

    reading = _choose_reading(asked)
    batches = {
        write_source(verdict.batch, **({} if verdict.batch.endswith(o.SKETCH) else reading)): (
            None if verdict.test is None else len(verdict.test.null)
        )
        for verdict in verdicts
        if verdict.distance is not None
    }
    reference = gate.name if loaded else asked.write_source(gate.name)
    settings = {**asked.drawing, **_choose(asked, *_FITTING)}
    return write_gate_code(gate, reference, batches, settings, loaded=loaded) if batches else ""


def _write_outputs(
    asked: o.Asked, log: Path | None, reference: str, verdicts: list[BatchVerdict], run: Mapping[str, Any]
) -> list[str]:
    """Write the page and the lines of the log, whatever the verdict; returns what went wrong with that."""
    from sotdd.drift.gate import append_lines, read_log, write_line
    from sotdd.reports.gate_page import GateRun, make_gate_page
    from sotdd.reports.page import refuse_page

    def write_page(path: Path) -> None:
        history = [] if log is None else read_log(log, reference)
        page = make_gate_page(GateRun(reference, verdicts, history=history, **run), asked.title)
        page.write(refuse_page(path))

    def write_log(path: Path) -> None:
        now = datetime.now(UTC)
        append_lines(path, [write_line(verdict, reference, now) for verdict in verdicts])

    failures = []
    for path, write in ((asked.report, write_page), (log, write_log)):
        try:
            if path is not None:
                write(path)
        except SotddError as error:
            failures.append(error.say(asked.naming))
    return failures


def _say_all(reference: str, verdicts: list[BatchVerdict], asked: o.Asked) -> None:
    """Print what each criterion says of each batch; and the distance, unless one shows it already, and its unit."""
    several = len(verdicts) > 1
    for verdict in verdicts:
        word, colour = _WORDS["passed" if verdict.verdict == "drift" else verdict.verdict]
        name = f"{show(verdict.batch)}: " if several else ""
        if verdict.verdict == "unknown":
            if several:  # the error of a single one is on standard error
                say(f"{word}  {name}{one_line(verdict.error or '')}", colour)
            continue
        for outcome in verdict.outcomes:
            mark, style = _WORDS["drift"] if outcome.failed else (word, colour)
            say(f"{mark}  {name}{outcome.message}", style)
    measured = [verdict for verdict in verdicts if verdict.outcomes]
    remarks = [remark for verdict in measured if verdict.distance for remark in verdict.distance.remarks]
    print_remarks(remarks, asked.naming, asked.quiet)
    if several:
        words = {"passed": "passed", "drift": "drifted", "unknown": "undecided"}
        counts = [(word, sum(one.verdict == kind for one in verdicts)) for kind, word in words.items()]
        said = ", ".join(f"{count:,} {word}" for word, count in counts if count)
        say(f"{say_count(len(verdicts), 'batch', 'batches')}: {said}", "bold")
    if measured:
        _say_how(reference, measured[0], several, asked)


def _say_how(reference: str, verdict: BatchVerdict, several: bool, asked: o.Asked) -> None:
    """Print the distance, unless an outcome shows it already, and how it was measured."""
    from sotdd.drift.gate import say_distance

    shown_already = several or any(outcome.criterion != "p_value" for outcome in verdict.outcomes)
    distance = "" if shown_already else f"{say_distance(verdict.distance)}; "
    how = "" if verdict.distance is None else f"{verdict.distance.how}; the unit is the spread of {show(reference)}; "
    say_note(f"{distance}{how}{asked.seconds}", asked.quiet)
