"""The reference and the batches that ``sotdd check`` names, opened one after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sotdd.basics.errors import SotddError
from sotdd.basics.text import shown
from sotdd.commands.option_names import in_options
from sotdd.commands.reference import SUFFIX as REFERENCE
from sotdd.commands.sources import as_settings, as_text, opened_data, reading_of
from sotdd.commands.terminal import bar_wanted

if TYPE_CHECKING:
    from sotdd.inputs.data import LabelledData
    from sotdd.measure.drift_gate import BatchVerdict, Criteria, Gate
    from sotdd.pictures.gate_page import Seen
    from sotdd.sketches.sketch import Sketch

# What of how tables are read is asked of batches too; columns are those of the reference.
_OF_BATCHES = ("one_hot", "dates", "missing")


@dataclass(frozen=True)
class Asked:
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

    @property
    def of_batches(self) -> dict[str, Any]:
        """How batches are to be read, as `sotdd.open_dataset` takes it."""
        named = {name: self.reading[name] for name in _OF_BATCHES if name in self.reading}
        return as_settings(self.features, self.label) | named

    def in_python(self, source: str, of_batch: bool = False) -> str:
        """A source with everything that was said about it, as Python takes it."""
        reading = {name: value for name, value in self.reading.items() if not of_batch or name in _OF_BATCHES}
        return as_text(source, self.features, self.label, reading)


def gate_of(asked: Asked, *, is_tested: bool) -> Gate:
    """The reference: data, a sketch, or what ``sotdd reference`` made, of which nothing can be chosen any more."""
    import sotdd
    from sotdd.measure.drift_gate import Gate
    from sotdd.measure.drift_reading import Reading
    from sotdd.sketches.making import SUFFIX as SKETCH

    reference, drawing = asked.reference, dict(asked.drawing)
    if reference.endswith(SKETCH):
        if is_tested:
            advice = "give the data, or leave --p-value out"
            raise SotddError(f"{reference!r} is a sketch, which has no points to shuffle: {advice}.")
        _refuse_chosen(drawing, "sketch")
        sketch = replace(sotdd.Sketch.load(reference), name=reference)
        return Gate(reference, sketch=sketch, measuring=dict(asked.measuring))
    if reference.endswith(REFERENCE):
        _refuse_chosen({**drawing, **asked.order, **asked.testing}, "saved reference")
        return Gate(reference, drift=sotdd.DriftReference.load(reference))
    data = opened_data(reference, "", asked.features, asked.label, asked.quiet, asked.reading)
    few = {name: value for name, value in drawing.items() if name != "n_projections"}
    drift = sotdd.DriftReference.fit(data, **few, **asked.order, **asked.testing)
    drift = replace(drift, name=reference, reading=Reading.of(asked.in_python(reference), data))
    projections = sotdd.Projections.fit([data], **drawing)
    return Gate(reference, drift, data, projections, measuring=dict(asked.measuring))


def judged_batches(
    asked: Asked, gate: Gate, criteria: Criteria, with_facts: bool
) -> tuple[list[BatchVerdict], list[Seen | None]]:
    """What is said of each batch, one at a time; and, where wanted, what a page shows of its data."""
    from sotdd.measure.drift_gate import BatchVerdict

    verdicts: list[BatchVerdict] = []
    seen: list[Seen | None] = []
    for batch in asked.batches:
        between = f"from {shown(gate.name)}" + (f" to {shown(batch)}" if len(asked.batches) == 1 else "")
        data = None
        try:
            data = _opened(gate, batch, asked)
            verdict = gate.judged(data, criteria, batch, between, bar_wanted(asked.quiet))
        except SotddError as error:
            verdict = BatchVerdict(batch, n_points=getattr(data, "n_points", None), error=in_options(str(error)))
        verdicts.append(verdict)
        seen.append(_seen(gate, batch, asked, data) if with_facts and data is not None else None)
    return verdicts, seen


def gate_code(asked: Asked, gate: Gate, verdicts: Sequence[BatchVerdict]) -> str:
    """Python that gives the numbers of the batches that could be judged again."""
    from sotdd.pictures.verdict_code import data_gate_code, saved_gate_code, sketch_gate_code

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


def _opened(gate: Gate, batch: str, asked: Asked) -> LabelledData | Sketch:
    from sotdd.sketches.making import SUFFIX as SKETCH
    from sotdd.sketches.sketch import Sketch

    if batch.endswith(REFERENCE):
        raise SotddError(f"{batch!r} is a reference: give it first, and then the batches.")
    if batch.endswith(SKETCH):
        if gate.sketch is None:
            advice = f"give the data of {batch!r}, or sketch the reference, and then this one --like it"
            raise SotddError(f"{batch!r} is a sketch but the reference, which sets the unit, is not: {advice}.")
        return replace(Sketch.load(batch), name=batch)
    with reading_of(batch, asked.quiet):
        return gate.opened(batch, **asked.of_batches)


def _seen(gate: Gate, batch: str, asked: Asked, data: LabelledData | Sketch) -> Seen:
    from sotdd.pictures.dataset_facts import facts_of
    from sotdd.pictures.gate_page import Seen

    return Seen(facts_of(data), lambda: _opened(gate, batch, asked))


def _refuse_chosen(settings: Mapping[str, Any], what: str) -> None:
    if settings:
        raise SotddError(f"{', '.join(settings)} cannot be chosen for a {what}, which is already made: leave that out.")
