"""The page of a gate: have batches drifted from their reference, since when, and what drives it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sotdd.basics.errors import SotddError
from sotdd.basics.text import join_names, say_count, with_error
from sotdd.drift.gate import BatchVerdict, Criteria, Gate, combine_verdicts
from sotdd.inputs.data import LabelledData
from sotdd.measure.explanation.call import explain
from sotdd.measure.explanation.classes import are_too_many
from sotdd.measure.explanation.result import Explanation
from sotdd.measure.two_sample import sample_datasets
from sotdd.reports.dataset_facts import Facts, collect_facts, make_class_sizes, make_data_section
from sotdd.reports.page import (
    Page,
    Section,
    Tone,
    make_table,
    say_recipe,
    say_reliability,
    scroll,
    sentence,
    shorten_names,
)
from sotdd.reports.pair_pages import Point, draw_history, make_aspects, make_drivers, say_why
from sotdd.sketches.sketch import Sketch

_KINDS = {"passed": "passed", "drift": "drift", "unknown": "undecided"}
_TONES: dict[str, Tone] = {"passed": "good", "drift": "bad", "unknown": "unsure"}
_MARKS = {"passed": "", "drift": "bad-row", "unknown": "unsure-row"}

# What drives a drift is explained by a sample of this many points of each side: a page is not worth hours.
_EXPLAINED_POINTS = 4000
_EXPLAINED_PROJECTIONS = 300
# Earlier batches of a log that are drawn.
_MOST_HISTORY = 60


@dataclass(frozen=True, eq=False)
class GateRun:
    """One run of a gate, as its page shows it.

    Attributes
    ----------
    reference
        The reference as it was named.
    verdicts, facts
        What is said of each batch, and its numbers; None where it could not be opened.
    gate, criteria
        What judged; None where the reference could not be opened.
    reopen
        Opens a batch once more.
    data
        The points of the reference, where they are at hand.
    history
        Earlier lines of the log: date, batch, verdict and distance.
    code
        Python that gives the same numbers.
    """

    reference: str
    verdicts: Sequence[BatchVerdict]
    facts: Sequence[Facts | None]
    gate: Gate | None = None
    criteria: Criteria | None = None
    reopen: Callable[[str], LabelledData | Sketch] | None = None
    data: LabelledData | None = None
    history: Sequence[Mapping[str, str]] = ()
    code: str = ""


def make_gate_page(run: GateRun, title: str | None = None) -> Page:
    """Everything that the page shows."""
    run = replace(run, history=run.history[-_MOST_HISTORY:])
    names = shorten_names([run.reference, *(verdict.batch for verdict in run.verdicts)])
    reference, batches = names[0], names[1:]
    whole = combine_verdicts(list(run.verdicts))
    worst = _find_worst(run.verdicts)
    why = None if worst is None else _explain_drift(run, worst)
    sections = [_make_batches(run, batches), *_make_history(run, batches)]
    if worst is not None and (test := run.verdicts[worst].test) is not None:
        sections += make_aspects(test.aspects, f"Of {batches[worst]}. ")
    if worst is not None and why is not None:
        why = replace(why, names=(reference, batches[worst]))
        sections += make_drivers(why, f"{batches[worst]} beside {reference}, by samples where there are many points. ")
    sections += _make_data_sections(run, names, worst or 0)
    asked = f"Have these {len(batches):,} batches drifted?" if len(batches) > 1 else f"Has {batches[0]} drifted?"
    return Page(
        title or asked,
        f"{say_count(len(batches), 'batch', 'batches')} beside {reference}",
        _TONES[whole],
        _say_verdict(run.verdicts, reference, batches),
        [*_say_details(run.verdicts, batches, worst), *([] if why is None else say_why(why))],
        sections,
        _list_settings(run, reference),
        run.code,
        {"reference": run.reference, "verdict": whole, "batches": [verdict.to_dict() for verdict in run.verdicts]},
    )


def _make_batches(run: GateRun, batches: Sequence[str]) -> Section:
    rows, marks = [], []
    for number, (verdict, name) in enumerate(zip(run.verdicts, batches, strict=True), 1 + len(run.history)):
        distance, test = verdict.distance, verdict.test
        far = "–" if distance is None else with_error(distance.value, distance.stderr)
        if distance is None and verdict.outcomes:
            far = "too far to measure"
        chance = _find_chance(verdict)
        rows.append((
            f"{number}. {name}",
            _KINDS[verdict.verdict],
            "–" if verdict.n_points is None else f"{verdict.n_points:,}",
            far,
            "–" if chance is None else f"{chance[0]:.3g} to {chance[1]:.3g}",
            "–" if test is None else f"{test.p_value:.3g}",
            "; ".join(_say_remarks(verdict)),
        ))  # fmt: skip
        marks.append(_MARKS[verdict.verdict])
    header = ("batch", "verdict", "points", "distance", "by chance", "p-value", "remark")
    body = scroll(make_table(header, rows, numbers=(2,), marks=marks), "Batches", stacks=True)
    note = (
        "The distance is in units of the spread of the reference; ± is its standard error over the choice of "
        "projections. By chance: where 90 % of distances lie after points are permuted between batch and reference. "
        "The p-value is how often permuted points differ as much, in their features, their labels or their means."
    )
    if run.history:
        note += " Numbers are those of the chart below, which begins with earlier batches."
    return Section("Batches", body, note)


def _make_history(run: GateRun, batches: Sequence[str]) -> list[Section]:
    """The line over time, where there are several batches or earlier ones."""
    earlier = [shorten_names([entry.get("batch", "")])[0] for entry in run.history]
    points = [
        Point(name, entry["verdict"], _read_number(entry.get("distance")))  # type: ignore[arg-type]
        for name, entry in zip(earlier, run.history, strict=True)
    ]
    points += [
        Point(
            name, verdict.verdict, None if verdict.distance is None else verdict.distance.value, _find_chance(verdict)
        )
        for verdict, name in zip(run.verdicts, batches, strict=True)
    ]
    if len(points) < 2:
        return []
    limit = None if run.criteria is None else run.criteria.limit
    body = draw_history(points, limit, "Distances of the batches in order; the table has the same numbers")
    note = "Dots are batches that passed, diamonds those that drifted, open circles those that are undecided."
    if any(point.chance for point in points):
        note += " The band is what chance gives."
    if earlier:
        rows = [
            (f"{number}. {name}", entry["date"].replace("T", " "), _KINDS[entry["verdict"]],
             entry.get("distance", "–"), entry.get("p", "–"))
            for number, (name, entry) in enumerate(zip(earlier, run.history, strict=True), 1)
        ]  # fmt: skip
        marks = [_MARKS[entry["verdict"]] for entry in run.history]
        header = ("batch", "date", "verdict", "distance", "p-value")
        log = scroll(make_table(header, rows, marks=marks), "Earlier batches")
        body += f"<details><summary>Earlier batches, from the log</summary>{log}</details>"
    return [Section("Over time", body, note)]


def _read_number(text: str | None) -> float | None:
    """A distance of the log, which anyone may have written in; None for what is none."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < 1e300 else None


def _explain_drift(run: GateRun, worst: int) -> Explanation | None:
    """Why a batch is apart; None where points are not at hand, or it cannot be explained."""
    if run.reopen is None or run.gate is None or run.gate.drift is None or run.data is None:
        return None
    try:
        batch = run.reopen(run.verdicts[worst].batch)
        assert isinstance(batch, LabelledData)
        [one, other], _ = sample_datasets([run.data, batch], _EXPLAINED_POINTS, seed=0)
        if are_too_many(len(one.classes), len(other.classes)):
            return None
        return explain(one, other, n_projections=_EXPLAINED_PROJECTIONS, scale=run.gate.drift.projections.scaler)
    except SotddError:  # such as for points too far to measure: the verdict stands without it
        return None


def _make_data_sections(run: GateRun, names: Sequence[str], worst: int) -> list[Section]:
    known = [(facts, name) for facts, name in zip(run.facts, names[1:], strict=True) if facts is not None]
    sections = []
    if run.gate is not None:
        known.insert(0, (collect_facts(run.gate.reference if run.data is None else run.data), names[0]))
        of_worst = run.facts[worst]
        if of_worst is not None:
            sections = make_class_sizes((names[0], names[1 + worst]), (known[0][0], of_worst))
    return [*sections, make_data_section(*zip(*known, strict=True))] if known else []


def _say_verdict(verdicts: Sequence[BatchVerdict], reference: str, batches: Sequence[str]) -> str:
    """The verdict in one sentence."""
    drifted, undecided = (
        [name for verdict, name in zip(verdicts, batches, strict=True) if verdict.verdict == kind]
        for kind in ("drift", "unknown")
    )
    of_all = f"of {len(batches):,} batches"
    if drifted and len(batches) > 1:
        have = "has" if len(drifted) == 1 else "have"
        return f"{len(drifted):,} {of_all} {have} drifted from {reference}: {join_names(drifted, most=4)}."
    if drifted:
        return f"{batches[0]} has drifted from {reference}."
    if undecided and len(batches) > 1:
        return f"{len(undecided):,} {of_all} are undecided; no drift was found in others."
    if undecided:
        return f"It could not be decided whether {batches[0]} has drifted from {reference}."
    like = f"{batches[0]} is" if len(batches) == 1 else f"all {len(batches):,} batches are"
    return f"No drift was found: {like} like {reference}."


def _say_details(verdicts: Sequence[BatchVerdict], batches: Sequence[str], worst: int | None) -> list[str]:
    """What decided about the batch that stands out most, and why others are undecided."""
    said = [] if worst is None else [(batches[worst], f"{one.message}.") for one in verdicts[worst].outcomes]
    undecided = [
        (name, str(verdict.error))
        for verdict, name in zip(verdicts, batches, strict=True)
        if verdict.verdict == "unknown"
    ]
    said += undecided[:3]
    more = [f"And {len(undecided) - 3:,} more are undecided."] if len(undecided) > 3 else []
    return [f"{name}: {text}" if len(batches) > 1 else sentence(text) for name, text in said] + more


def _find_worst(verdicts: Sequence[BatchVerdict]) -> int | None:
    """The batch that drifted most: the smallest p-value, then the largest distance; None where none drifted."""

    def rank(place: int) -> tuple[float, float]:
        verdict = verdicts[place]
        p_value = 1.0 if verdict.p_value is None else verdict.p_value
        return p_value, -float("inf") if verdict.distance is None else -verdict.distance.value

    drifted = [place for place, verdict in enumerate(verdicts) if verdict.verdict == "drift"]
    return min(drifted, key=rank) if drifted else None


def _say_remarks(verdict: BatchVerdict) -> list[str]:
    """What went wrong; noise and roughness."""
    said = [] if verdict.error is None else [str(verdict.error).rstrip(".")]
    return said if verdict.distance is None else [*said, *say_reliability(verdict.distance)]


def _find_chance(verdict: BatchVerdict) -> tuple[float, float] | None:
    """What chance gives, brought to the unit of the distance that is shown."""
    if verdict.test is None or verdict.distance is None:
        return None
    low, high = verdict.test.quantiles((0.05, 0.95)).values()
    unit = verdict.distance.value / verdict.test.distance if verdict.test.distance > 0 else 1.0
    return low * (unit or 1.0), high * (unit or 1.0)


def _list_settings(run: GateRun, reference: str) -> dict[str, str]:
    """What decided, in words."""
    said = {"reference": reference}
    gate, criteria = run.gate, run.criteria
    if criteria is None or gate is None:
        return said
    if criteria.limit is not None:
        said["decided by the distance"] = f"at most {criteria.limit:g}"
    shared = f", shared by {criteria.n_batches:,} batches" if criteria.n_batches > 1 else ""
    if criteria.level is not None and gate.drift is not None:
        said["decided by a test"] = f"at a level of {100 * criteria.level:g} %{shared}"
        said["permutations"] = f"{criteria.n_permutations:,} or more"
    elif criteria.limit is None:
        said["decided by noise"] = f"at a level of 5 %{shared}"
    said["points it takes to pass"] = f"{criteria.fewest:,}"
    if gate.drift is not None:
        said |= {"order of transport": f"p = {gate.drift.p:g}", "names of labels": gate.drift.label_names}
        said |= say_recipe(gate.drift.projections)
    measured = next((verdict.distance for verdict in run.verdicts if verdict.distance is not None), None)
    return said if measured is None else {**said, "distance": measured.how}
