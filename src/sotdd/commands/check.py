"""The commands ``sotdd reference`` and ``sotdd check``, which look for drift from a reference."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sotdd.basics.errors import SotddError
from sotdd.basics.files import refuse_unwritable
from sotdd.basics.text import counted, listed, one_line, shown
from sotdd.commands import options as o
from sotdd.commands.gate_log import append, line_of, read_back, refuse_unwritable_log
from sotdd.commands.sources import as_settings, as_text, opened_data, reading_of, refuse_report
from sotdd.commands.terminal import bar_wanted, complain, print_json, say, say_note, working_on

if TYPE_CHECKING:
    from sotdd.inputs.data import LabelledData
    from sotdd.measure.drift_gate import BatchVerdict, Criteria, Gate
    from sotdd.pictures.gate_page import Seen
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

_REFERENCE, _SKETCH = ".ref", ".sotdd"
_WORDS = {"passed": ("passed", "green"), "drift": ("FAILED", "red"), "unknown": ("undecided", "yellow")}
_COUNTED = {"passed": "passed", "drift": "drifted", "unknown": "undecided"}
_EXIT_CODES = {"passed": 0, "drift": 1, "unknown": 2}

# What of how tables are read is asked of batches too; columns are those of the reference.
_OF_BATCHES = ("one_hot", "dates", "missing")


def reference_command(
    data: Annotated[str, typer.Argument(metavar="SOURCE", help=o.SOURCE_HELP)],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write; its name ends in .ref.")],
    label_names: o.LabelNames = None,
    max_points: Annotated[
        int | None, typer.Option(help="Keep a sample of this many points for the test.", show_default="20000")
    ] = None,
    features: o.Features = None,
    label: o.Label = None,
    exclude: o.Exclude = None,
    one_hot: o.OneHot = None,
    dates: o.Dates = False,
    missing: o.Missing = None,
    n_projections: o.FewProjections = None,
    seed: o.Seed = None,
    p: o.Order = None,
    label_law: o.LabelLaw = None,
    scale: o.Scale = None,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Keep a dataset as a reference, which sotdd check tests batches against.

    The file holds projected values and labels, no features, and remembers which
    columns and labels were read, so that batches are read in the same way.
    """
    began = time.perf_counter()
    if output.suffix != _REFERENCE:
        raise SotddError(f"--output is {str(output)!r}: call it {(output.stem or 'train') + _REFERENCE!r}.")
    refuse_unwritable(output)
    reading = o.reading(exclude, one_hot, dates, missing)
    source = opened_data(data, "to test batches against", features, label, quiet, reading)
    import sotdd
    from sotdd.measure.drift_reading import Reading

    settings = o.chosen(
        n_projections=n_projections, seed=seed, p=p, label_law=label_law, scale=scale, max_points=max_points,
        label_names=label_names,
    )  # fmt: skip
    with working_on(f"Projecting {data} …", quiet):
        made = sotdd.DriftReference.fit(source, with_sketch=True, **settings)
    made = replace(made, name=data, reading=Reading.of(as_text(data, features, label, reading), source))
    made.save(output)
    size, columns = output.stat().st_size, made.projections.columns
    if as_json:
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
            "remarks": list(made.remarks),
        })  # fmt: skip
        return
    points, classes = counted(made.n_points, "point"), counted(len(made.classes), "class", "classes")
    say(f"{shown(output)}: {points} in {classes}, {counted(made.projections.n_features, 'feature')}", "bold")
    if columns is not None:
        say_note(f"columns: {listed(columns, most=12)}", quiet)
    for remark in made.remarks:
        say_note(one_line(remark), quiet)
    say_note(f"{size / 1e6:.2g} MB, {time.perf_counter() - began:.1f} s", quiet)
    say_note(f"To check a batch: sotdd check {shown(output)} BATCH", quiet)


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
        typer.Option(metavar="N", help="With fewer points a batch does not pass: it is undecided.", show_default="10"),
    ] = None,
    n_permutations: o.Permutations = 999,
    max_points: o.MaxPoints = None,
    label_names: o.LabelNames = None,
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

    Exit code 0: none has. 1: one has drifted. 2: it could not be decided, such as
    for input that cannot be read or has too few rows.

    Without options, a permutation test decides at a level of 5 %: of 20 commands
    whose batches have not drifted, about one fails. Between sketches, which have no points
    to permute, what halves of each differ by decides at that level. --fail-above
    decides by the size of the drift instead, in units of the spread of the reference.
    """
    began = time.perf_counter()
    gate = None
    run: dict[str, Any] = {"seen": [None] * len(current)}
    try:
        refuse_report(report)
        if log is not None:
            refuse_unwritable_log(log)
        _refuse_limits(fail_above, p_value)
        asked = _Asked(
            reference, current, features, label, o.reading(exclude, one_hot, dates, missing),
            o.chosen(n_projections=n_projections, seed=seed, label_law=label_law, scale=scale),
            o.chosen(p=p, device=None if device == "auto" else device),
            o.chosen(max_points=max_points, label_names=label_names), quiet,
        )  # fmt: skip
        gate = _make_gate(asked, is_tested=p_value is not None)
        criteria = _criteria(gate, len(current), fail_above, p_value, n_permutations, min_points)
        verdicts, seen = _judge_batches(asked, gate, criteria, with_facts=report is not None)
        run = {"seen": seen, "gate": gate, "criteria": criteria, "code": _gate_code(asked, gate, verdicts)}
    except SotddError as error:
        from sotdd.measure.drift_gate import BatchVerdict

        verdicts = [BatchVerdict(batch, error=str(error)) for batch in current]
    failures = _write_outputs(report, title, log, reference, verdicts, run)
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


@dataclass(frozen=True)
class _Asked:
    """What the command line asks of a gate.

    Attributes
    ----------
    reference, batches
        As they were named.
    features, label, reading
        How tables are to be read.
    drawing, measuring, testing
        Settings that the user chose: of projections, of distances and of the test.
    quiet
        Whether notes and bars are unwanted.
    """

    reference: str
    batches: Sequence[str]
    features: str | None = None
    label: str | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    drawing: Mapping[str, Any] = field(default_factory=dict)
    measuring: Mapping[str, Any] = field(default_factory=dict)
    testing: Mapping[str, Any] = field(default_factory=dict)
    quiet: bool = False

    @property
    def order(self) -> dict[str, Any]:
        """The order of transport, if it was chosen."""
        return {name: value for name, value in self.measuring.items() if name == "p"}

    def in_python(self, source: str, of_batch: bool = False) -> str:
        """A source with everything that was said about it, as Python takes it."""
        reading = {name: value for name, value in self.reading.items() if not of_batch or name in _OF_BATCHES}
        return as_text(source, self.features, self.label, reading)


def _refuse_limits(fail_above: float | None, p_value: float | None) -> None:
    if fail_above is not None and not 0 <= fail_above < math.inf:
        raise SotddError(f"--fail-above is {fail_above:g}: expected a distance, such as 0.1.")
    if p_value is not None and not 0 < p_value < 1:
        raise SotddError(f"--p-value is {p_value:g}: expected a number between 0 and 1, such as 0.05.")


def _make_gate(asked: _Asked, *, is_tested: bool) -> Gate:
    """The reference: data, a sketch, or what ``sotdd reference`` made, of which nothing can be chosen any more."""
    import sotdd
    from sotdd.measure.drift_gate import Gate
    from sotdd.measure.drift_reading import Reading

    reference, drawing = asked.reference, dict(asked.drawing)
    if reference.endswith(_SKETCH):
        if is_tested:
            advice = "give the data, or leave --p-value out"
            raise SotddError(f"{reference!r} is a sketch, which has no points to permute: {advice}.")
        _refuse_chosen(drawing, "sketch")
        sketch = replace(sotdd.Sketch.load(reference), name=reference)
        return Gate(reference, sketch=sketch, measuring=dict(asked.measuring))
    if reference.endswith(_REFERENCE):
        _refuse_chosen({**drawing, **asked.order, **asked.testing}, "saved reference")
        return Gate(reference, drift=sotdd.DriftReference.load(reference))
    data = opened_data(reference, "", asked.features, asked.label, asked.quiet, asked.reading)
    few = {name: value for name, value in drawing.items() if name != "n_projections"}
    drift = sotdd.DriftReference.fit(data, **few, **asked.order, **asked.testing)
    drift = replace(drift, name=reference, reading=Reading.of(asked.in_python(reference), data))
    projections = sotdd.Projections.fit([data], **drawing)
    return Gate(reference, drift, data, projections, measuring=dict(asked.measuring))


def _refuse_chosen(settings: Mapping[str, Any], what: str) -> None:
    if settings:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in settings)
        raise SotddError(f"{options} cannot be chosen for a {what}, which is already made: leave that out.")


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


def _judge_batches(
    asked: _Asked, gate: Gate, criteria: Criteria, with_facts: bool
) -> tuple[list[BatchVerdict], list[Seen | None]]:
    """What is said of each batch, one at a time; and, where wanted, what a page shows of its data."""
    from sotdd.measure.drift_gate import BatchVerdict
    from sotdd.pictures.dataset_facts import facts_of
    from sotdd.pictures.gate_page import Seen

    verdicts: list[BatchVerdict] = []
    seen: list[Seen | None] = []
    for batch in asked.batches:
        between = f"from {shown(gate.name)}" + (f" to {shown(batch)}" if len(asked.batches) == 1 else "")
        data = None
        try:
            data = _open_batch(gate, batch, asked)
            verdict = gate.judged(data, criteria, batch, between, bar_wanted(asked.quiet))
        except SotddError as error:
            verdict = BatchVerdict(batch, n_points=getattr(data, "n_points", None), error=str(error))
        verdicts.append(verdict)
        reopen = lambda batch=batch: _open_batch(gate, batch, asked)  # noqa: E731
        seen.append(Seen(facts_of(data), reopen) if with_facts and data is not None else None)
    return verdicts, seen


def _open_batch(gate: Gate, batch: str, asked: _Asked) -> LabelledData | Sketch:
    from sotdd.sketches.sketch import Sketch

    if batch.endswith(_REFERENCE):
        raise SotddError(f"{batch!r} is a reference: give it first, and then the batches.")
    if batch.endswith(_SKETCH):
        if gate.sketch is None:
            advice = f"give the data of {batch!r}, or sketch the reference, and then this one --like it"
            raise SotddError(f"{batch!r} is a sketch but the reference, which sets the unit, is not: {advice}.")
        return replace(Sketch.load(batch), name=batch)
    reading = {name: asked.reading[name] for name in _OF_BATCHES if name in asked.reading}
    with reading_of(batch, asked.quiet):
        return gate.opened(batch, **as_settings(asked.features, asked.label), **reading)


def _gate_code(asked: _Asked, gate: Gate, verdicts: Sequence[BatchVerdict]) -> str:
    """Python that gives the numbers of the batches that could be judged again."""
    from sotdd.pictures.code import data_gate_code, saved_gate_code, sketch_gate_code

    batches = {
        asked.in_python(verdict.batch, of_batch=True): None if verdict.test is None else len(verdict.test.null)
        for verdict in verdicts
        if verdict.distance is not None
    }
    if not batches:
        return ""
    if gate.sketch is not None:
        return sketch_gate_code(gate.name, batches, asked.order)
    if gate.data is None:
        return saved_gate_code(gate.name, batches)
    return data_gate_code(asked.in_python(gate.name), batches, asked.testing, asked.drawing, asked.order)


def _write_outputs(
    report: Path | None, title: str | None, log: Path | None, reference: str, verdicts: list[BatchVerdict],
    run: Mapping[str, Any],
) -> list[str]:  # fmt: skip
    """Write the page and the lines of the log, whatever the verdict; returns what went wrong with that."""
    failures = []
    now = datetime.now(UTC)
    if report is not None:
        from sotdd.pictures.gate_page import GateRun, write_gate_page

        history = [] if log is None else read_back(log, reference)
        try:
            write_gate_page(report, GateRun(reference, verdicts, history=history, **run), title=title, now=now)
        except SotddError as error:
            failures.append(str(error))
    if log is not None:
        try:
            append(log, [line_of(verdict, reference, now) for verdict in verdicts])
        except SotddError as error:
            failures.append(str(error))
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
        if verdict.verdict == "unknown":
            if several:  # the error of a single one is on standard error
                say(f"{word}  {name}{one_line(verdict.error or '')}", colour)
            continue
        for outcome in verdict.outcomes:
            mark, style = _WORDS["drift"] if outcome.failed else (word, colour)
            say(f"{mark}  {name}{outcome.message}", style)
    measured = [verdict for verdict in verdicts if verdict.outcomes]
    remarks = [remark for verdict in measured if verdict.distance for remark in verdict.distance.remarks]
    for remark in dict.fromkeys(remarks):
        say_note(one_line(remark), quiet)
    if several:
        counts = [(word, sum(one.verdict == kind for one in verdicts)) for kind, word in _COUNTED.items()]
        said = ", ".join(f"{count:,} {word}" for word, count in counts if count)
        say(f"{counted(len(verdicts), 'batch', 'batches')}: {said}", "bold")
    if measured:
        _say_how(reference, measured[0], several, seconds, quiet)


def _say_how(reference: str, verdict: BatchVerdict, several: bool, seconds: float, quiet: bool) -> None:
    """Print the distance, unless an outcome shows it already, and how it was measured."""
    from sotdd.measure.drift_gate import far

    shown_already = several or any(outcome.criterion != "p_value" for outcome in verdict.outcomes)
    between = "" if shown_already else f"from {shown(reference)} to {shown(verdict.batch)}"
    distance = f"{far(verdict.distance, between)}; " if between else ""
    how = "" if verdict.distance is None else f"{verdict.distance.how}; the unit is the spread of {shown(reference)}; "
    say_note(f"{distance}{how}{seconds:.1f} s", quiet)
