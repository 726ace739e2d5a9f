"""The page of a gate: have batches drifted from their reference, since when, and what drives it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sotdd.basics.errors import SotddError
from sotdd.basics.files import write_whole
from sotdd.basics.text import counted, listed, with_error
from sotdd.engines.class_comparison import are_too_many
from sotdd.inputs.data import LabelledData
from sotdd.measure.drift_gate import BatchVerdict, Criteria, Gate, together
from sotdd.measure.explain import explain
from sotdd.measure.permutation import sampled
from sotdd.pictures.dataset_facts import Facts, class_sizes, data_section, facts_of
from sotdd.pictures.page import recipe_in_words
from sotdd.pictures.pair_pages import drivers, say_why
from sotdd.pictures.parts import (
    Section,
    Tone,
    VerdictPage,
    aspects_section,
    reliability,
    scrolling,
    sentence,
    short_names,
    stacking,
    table,
)
from sotdd.pictures.report import refuse_page
from sotdd.pictures.verdict_charts import Point, history_chart
from sotdd.results.explanation import Explanation
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
class Seen:
    """What a page needs of a batch: its numbers, and a way to open it once more."""

    facts: Facts
    reopened: Callable[[], LabelledData | Sketch]


@dataclass(frozen=True, eq=False)
class GateRun:
    """One run of a gate, as its page shows it.

    Attributes
    ----------
    reference
        The reference as it was named.
    verdicts, seen
        What is said of each batch, and its numbers; None where it could not be opened.
    gate, criteria
        What judged; None where the reference could not be opened.
    history
        Earlier lines of the log: date, batch, verdict and distance.
    code
        Python that gives the same numbers.
    """

    reference: str
    verdicts: Sequence[BatchVerdict]
    seen: Sequence[Seen | None]
    gate: Gate | None = None
    criteria: Criteria | None = None
    history: Sequence[Mapping[str, str]] = ()
    code: str = ""


def write_gate_page(path: str | os.PathLike[str], run: GateRun, *, title: str | None, now: datetime) -> None:
    """Write the page of a gate, whole or not at all."""
    target = refuse_page(path)
    content = gate_page(run, title).html(now)
    write_whole(target, content.encode("utf-8", "backslashreplace"))


def gate_page(run: GateRun, title: str | None = None) -> VerdictPage:
    """Everything that the page shows."""
    names = short_names([run.reference, *(verdict.batch for verdict in run.verdicts)])
    reference, batches = names[0], names[1:]
    whole = together(list(run.verdicts))
    why = _explained(run, reference, batches)
    sections = [_batches(run, batches), *_history(run, batches)]
    worst = _worst_of(run.verdicts)
    test = None if worst is None else run.verdicts[worst].test
    if worst is not None and test is not None:
        sections += aspects_section(test.aspects, f"Of {batches[worst]}. ")
    if why is not None:
        about = f"{why.names[1]} beside {why.names[0]}, by samples where there are many points. "
        sections += drivers(why, about)
    sections += _data_sections(run, names)
    several = len(batches) > 1
    asked = f"Have these {len(batches):,} batches drifted?" if several else f"Has {batches[0]} drifted?"
    return VerdictPage(
        title or asked,
        f"{counted(len(batches), 'batch', 'batches')} beside {reference}",
        _TONES[whole],
        _verdict_of(run.verdicts, reference, batches),
        [*_details_of(run.verdicts, batches), *([] if why is None else say_why(why))],
        sections,
        _settings_of(run.gate, run.criteria, run.verdicts, reference),
        run.code,
        _data(run, whole),
    )


def _batches(run: GateRun, batches: Sequence[str]) -> Section:
    rows, marks = [], []
    for number, (verdict, name) in enumerate(zip(run.verdicts, batches, strict=True), _first(run)):
        distance, test = verdict.distance, verdict.test
        far = "–" if distance is None else with_error(distance.value, distance.stderr)
        if distance is None and verdict.outcomes:
            far = "too far to measure"
        chance = _chance_of(verdict)
        rows.append((
            f"{number}. {name}",
            _KINDS[verdict.verdict],
            "–" if verdict.n_points is None else f"{verdict.n_points:,}",
            far,
            "–" if chance is None else f"{chance[0]:.3g} to {chance[1]:.3g}",
            "–" if test is None else f"{test.p_value:.3g}",
            "; ".join(_remarks_on(verdict)),
        ))  # fmt: skip
        marks.append(_MARKS[verdict.verdict])
    header = ("batch", "verdict", "points", "distance", "by chance", "p-value", "remark")
    body = stacking(table(header, rows, numbers=(2,), marks=marks), "Batches")
    note = (
        "The distance is in units of the spread of the reference; ± is its standard error over the choice of "
        "projections. By chance: where 90 % of distances lie after points are permuted between batch and reference. "
        "The p-value is how often permuted points differ as much, in their features, their labels or their means."
    )
    if run.history:
        note += " Numbers are those of the chart below, which begins with earlier batches."
    return Section("Batches", body, note)


def _first(run: GateRun) -> int:
    return 1 + len(run.history[-_MOST_HISTORY:])


def _history(run: GateRun, batches: Sequence[str]) -> list[Section]:
    """The line over time, where there are several batches or earlier ones."""
    earlier = list(run.history)[-_MOST_HISTORY:]
    points = [Point(_named(entry), entry["verdict"], _number(entry.get("distance"))) for entry in earlier]  # type: ignore[arg-type]
    points += [
        Point(name, verdict.verdict, None if verdict.distance is None else verdict.distance.value, _chance_of(verdict))
        for verdict, name in zip(run.verdicts, batches, strict=True)
    ]
    if len(points) < 2:
        return []
    limit = None if run.criteria is None else run.criteria.limit
    chart = history_chart(points, limit, "Distances of the batches in order; the table has the same numbers")
    note = "Dots are batches that passed, diamonds those that drifted, open circles those that are undecided."
    if any(point.chance for point in points):
        note += " The band is what chance gives."
    body = chart
    if earlier:
        rows = [
            (f"{number}. {point.name}", entry["date"].replace("T", " "), _KINDS[entry["verdict"]],
             entry.get("distance", "–"), entry.get("p", "–"))
            for number, (point, entry) in enumerate(zip(points, earlier, strict=False), 1)
        ]  # fmt: skip
        marks = [_MARKS[entry["verdict"]] for entry in earlier]
        shown = scrolling(
            table(("batch", "date", "verdict", "distance", "p-value"), rows, marks=marks), "Earlier batches"
        )
        body += f"<details><summary>Earlier batches, from the log</summary>{shown}</details>"
    return [Section("Over time", body, note)]


def _named(entry: Mapping[str, str]) -> str:
    return short_names([entry.get("batch", "")])[0]


def _number(text: str | None) -> float | None:
    try:
        value = None if text is None else float(text)
    except ValueError:
        return None
    return value if value is not None and 0 <= value < 1e300 else None


def _explained(run: GateRun, reference: str, batches: Sequence[str]) -> Explanation | None:
    """Why the batch that drifted most is apart; None where points are not at hand, or there is nothing to explain."""
    worst = _worst_of(run.verdicts)
    if worst is None or run.gate is None or run.gate.data is None or run.gate.projections is None:
        return None
    seen = run.seen[worst]
    if seen is None:
        return None
    try:
        batch = seen.reopened()
        assert isinstance(batch, LabelledData)
        [one, other], _ = sampled([run.gate.data, batch], _EXPLAINED_POINTS, seed=0)
        if are_too_many(len(one.classes), len(other.classes)):
            return None
        scale = run.gate.projections.scaler
        why = explain(one, other, n_projections=_EXPLAINED_PROJECTIONS, scale=scale)
    except SotddError:  # such as for points too far to measure: the verdict stands without it
        return None
    return replace(why, names=(reference, batches[worst]))


def _data_sections(run: GateRun, names: Sequence[str]) -> list[Section]:
    known: list[tuple[Facts, str]] = []
    if run.gate is not None:
        source = run.gate.data if run.gate.data is not None else run.gate.drift or run.gate.sketch
        assert source is not None
        known.append((facts_of(source), names[0]))
    known += [(seen.facts, name) for seen, name in zip(run.seen, names[1:], strict=True) if seen is not None]
    if not known:
        return []
    place = _worst_of(run.verdicts) or 0
    seen = run.seen[place]
    sections = []
    if run.gate is not None and seen is not None:
        sections = class_sizes((names[0], names[1 + place]), (known[0][0], seen.facts))
    return [*sections, data_section([facts for facts, _ in known], [name for _, name in known])]


def _data(run: GateRun, whole: str) -> dict[str, object]:
    """The numbers of the page, for programs."""
    batches = [
        {
            "batch": verdict.batch,
            "verdict": verdict.verdict,
            "n_points": verdict.n_points,
            "p_value": verdict.p_value,
            "distance": None if verdict.distance is None else verdict.distance.value,
            "error": verdict.error,
        }
        for verdict in run.verdicts
    ]
    return {"reference": run.reference, "verdict": whole, "batches": batches}


def _verdict_of(verdicts: Sequence[BatchVerdict], reference: str, batches: Sequence[str]) -> str:
    """The verdict in one sentence."""
    by = {
        kind: [name for verdict, name in zip(verdicts, batches, strict=True) if verdict.verdict == kind]
        for kind in _KINDS
    }
    if len(batches) == 1:
        return {
            "passed": f"No drift was found: {batches[0]} is like {reference}.",
            "drift": f"{batches[0]} has drifted from {reference}.",
            "unknown": f"It could not be decided whether {batches[0]} has drifted from {reference}.",
        }[verdicts[0].verdict]
    if by["drift"]:
        have = "has" if len(by["drift"]) == 1 else "have"
        count = f"{len(by['drift']):,} of {len(batches):,} batches {have} drifted from {reference}"
        return f"{count}: {listed(by['drift'], most=4)}."
    if by["unknown"]:
        return f"{len(by['unknown']):,} of {len(batches):,} batches are undecided; no drift was found in others."
    return f"No drift was found: all {len(batches):,} batches are like {reference}."


def _details_of(verdicts: Sequence[BatchVerdict], batches: Sequence[str]) -> list[str]:
    """What decided about the batch that stands out most, and why others are undecided."""
    worst = _worst_of(verdicts)
    several = len(batches) > 1
    said = []
    if worst is not None:
        name = f"{batches[worst]}: " if several else ""
        messages = [outcome.message for outcome in verdicts[worst].outcomes]
        said += [f"{name}{message}." if several else sentence(message) for message in messages]
    unknown = [place for place, verdict in enumerate(verdicts) if verdict.verdict == "unknown"]
    why = [str(verdicts[place].error) for place in unknown]
    reasons = [f"{batches[place]}: {text}" for place, text in zip(unknown, why, strict=True)] if several else why
    said += [reason if several else sentence(reason) for reason in reasons[:3]]
    if len(reasons) > 3:
        said.append(f"And {len(reasons) - 3:,} more are undecided.")
    return said


def _worst_of(verdicts: Sequence[BatchVerdict]) -> int | None:
    """The batch that drifted most: the smallest p-value, then the largest distance; None where none drifted."""

    def rank(place: int) -> tuple[float, float]:
        verdict = verdicts[place]
        p_value = 1.0 if verdict.p_value is None else verdict.p_value
        return p_value, -float("inf") if verdict.distance is None else -verdict.distance.value

    drifted = [place for place, verdict in enumerate(verdicts) if verdict.verdict == "drift"]
    return min(drifted, key=rank) if drifted else None


def _remarks_on(verdict: BatchVerdict) -> list[str]:
    """What went wrong; noise and roughness."""
    said = [] if verdict.error is None else [verdict.error.rstrip(".")]
    return said if verdict.distance is None else [*said, *reliability(verdict.distance)]


def _chance_of(verdict: BatchVerdict) -> tuple[float, float] | None:
    """What chance gives, brought to the unit of the distance that is shown."""
    if verdict.test is None or verdict.distance is None:
        return None
    low, high = verdict.test.quantiles((0.05, 0.95)).values()
    unit = verdict.distance.value / verdict.test.distance if verdict.test.distance > 0 else 1.0
    return low * (unit or 1.0), high * (unit or 1.0)


def _settings_of(
    gate: Gate | None, criteria: Criteria | None, verdicts: Sequence[BatchVerdict], reference: str
) -> dict[str, str]:
    """What decided, in words."""
    if criteria is None or gate is None:
        return {"reference": reference}
    drift = gate.drift
    said = {"reference": reference}
    if criteria.limit is not None:
        said["decided by the distance"] = f"at most {criteria.limit:g}"
    shared = f", shared by {criteria.n_batches:,} batches" if criteria.n_batches > 1 else ""
    if criteria.level is not None and drift is not None:
        said["decided by a test"] = f"at a level of {100 * criteria.level:g} %{shared}"
        said["permutations"] = f"{criteria.n_permutations:,} or more"
    elif criteria.limit is None:
        said["decided by noise"] = f"at a level of 5 %{shared}"
    said["points it takes to pass"] = f"{criteria.fewest:,}"
    if drift is not None:
        said |= {"order of transport": f"p = {drift.p:g}", "names of labels": drift.label_names}
        said |= recipe_in_words(drift.projections)
    measured = next((verdict.distance for verdict in verdicts if verdict.distance is not None), None)
    if measured is not None:
        said["distance"] = measured.how
    return said
