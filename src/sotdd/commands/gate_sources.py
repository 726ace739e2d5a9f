"""The reference and the batches that ``sotdd check`` names, opened one after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sotdd.basics.errors import SotddError
from sotdd.basics.text import shown
from sotdd.commands.option_names import in_options
from sotdd.commands.reference import SUFFIX as REFERENCE
from sotdd.commands.sources import as_settings, as_text, opened_data, reading_of
from sotdd.commands.terminal import bar_wanted

if TYPE_CHECKING:
    from sotdd.inputs.data import LabelledData
    from sotdd.measure.drift_gate import Criteria, Gate
    from sotdd.measure.drift_verdict import BatchVerdict
    from sotdd.sketches.sketch import Sketch

# What of how tables are read is asked of batches too; columns are those of the reference.
_OF_BATCHES = ("one_hot", "dates", "missing")


def gate_of(
    reference: str,
    features: str | None,
    label: str | None,
    reading: Mapping[str, Any],
    drawing: dict[str, Any],
    measuring: dict[str, Any],
    testing: dict[str, Any],
    *,
    is_tested: bool,
    quiet: bool,
) -> Gate:
    """The reference: data, a sketch, or what ``sotdd reference`` made, of which nothing can be chosen any more."""
    import sotdd
    from sotdd.measure.drift_gate import Gate
    from sotdd.measure.drift_reading import Reading
    from sotdd.sketches.making import SUFFIX as SKETCH

    if reference.endswith(SKETCH):
        if is_tested:
            raise _no_points(reference, "give the data, or leave --p-value out")
        _refuse_chosen(drawing, "sketch")
        return Gate(reference, sketch=replace(sotdd.Sketch.load(reference), name=reference), measuring=measuring)
    if reference.endswith(REFERENCE):
        _refuse_chosen({**drawing, **measuring, **testing}, "saved reference")
        return Gate(reference, drift=sotdd.DriftReference.load(reference))
    data = opened_data(reference, "", features, label, quiet, reading)
    order = {name: value for name, value in measuring.items() if name == "p"}
    few = {name: value for name, value in drawing.items() if name != "n_projections"}
    drift = sotdd.DriftReference.fit(data, **few, **order, **testing)
    drift = replace(drift, name=reference, reading=Reading.of(as_text(reference, features, label, reading), data))
    return Gate(reference, drift, data, sotdd.Projections.fit([data], **drawing), measuring=measuring)


def judged_batches(
    gate: Gate,
    criteria: Criteria,
    batches: Sequence[str],
    features: str | None,
    label: str | None,
    reading: Mapping[str, Any],
    quiet: bool,
    wants_data: bool,
) -> tuple[list[BatchVerdict], list[Any]]:
    """What is said of each batch, one at a time; and, where wanted, what a report shows of its data."""
    from sotdd.measure.drift_verdict import BatchVerdict

    asked = as_settings(features, label) | {name: reading[name] for name in _OF_BATCHES if name in reading}
    verdicts, seen = [], []
    for batch in batches:
        between = f"from {shown(gate.name)}" + (f" to {shown(batch)}" if len(batches) == 1 else "")
        data = None
        try:
            data = _opened(gate, batch, asked, quiet)
            verdict = gate.judged(data, criteria, batch, between, bar_wanted(quiet))
        except SotddError as error:
            verdict = BatchVerdict(batch, n_points=getattr(data, "n_points", None), error=in_options(str(error)))
        verdicts.append(verdict)
        seen.append(_facts(data) if wants_data else None)
    return verdicts, seen


def _opened(gate: Gate, batch: str, asked: dict[str, Any], quiet: bool) -> LabelledData | Sketch:
    from sotdd.sketches.making import SUFFIX as SKETCH
    from sotdd.sketches.sketch import Sketch

    if batch.endswith(REFERENCE):
        raise SotddError(f"{batch!r} is a reference: give it first, and then the batches.")
    if batch.endswith(SKETCH):
        if gate.sketch is None:
            advice = f"give the data of {batch!r}, or sketch the reference, and then this one --like it"
            raise SotddError(f"{batch!r} is a sketch but the reference, which sets the unit, is not: {advice}.")
        return replace(Sketch.load(batch), name=batch)
    with reading_of(batch, quiet):
        return gate.opened(batch, **asked)


def _facts(data: LabelledData | Sketch | None) -> object:
    from sotdd.pictures.dataset_facts import facts_of

    return None if data is None else facts_of(data)


def _refuse_chosen(settings: Mapping[str, Any], what: str) -> None:
    chosen = [name for name in settings if name != "device" and not (what == "sketch" and name == "p")]
    if chosen:
        raise SotddError(f"{', '.join(chosen)} cannot be chosen for a {what}, which is already made: leave that out.")


def _no_points(name: str, advice: str) -> SotddError:
    return SotddError(f"{name!r} is a sketch, which has no points to shuffle: {advice}.")
