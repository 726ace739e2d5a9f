"""The page of a gate: have batches drifted from their reference, since when, and what drives it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sotdd.basics.errors import SotddError
from sotdd.basics.files import write_whole
from sotdd.basics.text import counted, with_error
from sotdd.engines.class_comparison import are_too_many
from sotdd.inputs.data import LabelledData
from sotdd.measure.drift_gate import BatchVerdict, Criteria, Gate, together
from sotdd.measure.explain import explain
from sotdd.measure.permutation import sampled
from sotdd.pictures.data_section import data_section
from sotdd.pictures.dataset_facts import Facts, facts_of
from sotdd.pictures.explained import class_sizes, drivers, said_of
from sotdd.pictures.gate_words import KINDS, chance_of, details_of, remark_on, settings_of, verdict_of, worst_of
from sotdd.pictures.html_parts import scrolling, stacking, table
from sotdd.pictures.report import refuse_page
from sotdd.pictures.short_names import short_names
from sotdd.pictures.verdict_charts import Point, history_chart
from sotdd.pictures.verdict_page import Section, Tone, VerdictPage
from sotdd.results.explanation import Explanation
from sotdd.sketches.sketch import Sketch

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
    sections = [_batches(run, batches), *_history(run, batches), *_aspects(run, batches)]
    if why is not None:
        about = f"{why.names[1]} beside {why.names[0]}, by samples where there are many points. "
        sections += drivers(why, about)
    sections += _sizes_and_data(run, names)
    several = len(batches) > 1
    asked = f"Have these {len(batches):,} batches drifted?" if several else f"Has {batches[0]} drifted?"
    return VerdictPage(
        title or asked,
        f"{counted(len(batches), 'batch', 'batches')} beside {reference}",
        _TONES[whole],
        verdict_of(run.verdicts, reference, batches),
        [*details_of(run.verdicts, batches), *([] if why is None else said_of(why))],
        sections,
        settings_of(run.gate, run.criteria, run.verdicts, reference),
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
        chance = chance_of(verdict)
        rows.append((
            f"{number}. {name}",
            KINDS[verdict.verdict],
            "–" if verdict.n_points is None else f"{verdict.n_points:,}",
            far,
            "–" if chance is None else f"{chance[0]:.3g} to {chance[1]:.3g}",
            "–" if test is None else f"{test.p_value:.3g}",
            remark_on(verdict),
        ))  # fmt: skip
        marks.append(_MARKS[verdict.verdict])
    header = ("batch", "verdict", "points", "distance", "by chance", "p-value", "remark")
    body = stacking(table(header, rows, numbers=(2,), marks=marks), "Batches")
    note = (
        "The distance is in units of the spread of the reference; ± is its standard error over the choice of "
        "projections. By chance: where 90 % of distances lie after points are shuffled between batch and reference. "
        "The p-value is how often shuffled points differ as much, in their features, their labels or their means."
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
        Point(name, verdict.verdict, None if verdict.distance is None else verdict.distance.value, chance_of(verdict))
        for verdict, name in zip(run.verdicts, batches, strict=True)
    ]
    if len(points) < 2:
        return []
    limit = None if run.criteria is None else run.criteria.limit
    chart = history_chart(points, limit, "Distances of the batches in order; the table has the same numbers")
    note = "Dots are batches that passed, diamonds those that drifted, open circles those that there is no telling of."
    if any(point.chance for point in points):
        note += " The band is what chance gives."
    body = chart
    if earlier:
        rows = [
            (f"{number}. {point.name}", entry["date"].replace("T", " "), KINDS[entry["verdict"]],
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


def _aspects(run: GateRun, batches: Sequence[str]) -> list[Section]:
    """What stands out of the batch that drifted most."""
    worst = worst_of(run.verdicts)
    test = None if worst is None else run.verdicts[worst].test
    if worst is None or test is None or not test.aspects:
        return []
    rows = sorted(test.aspects.items(), key=lambda item: item[1])
    body = table(
        ("what is compared", "p-value by itself"), [(name, f"{value:.3g}") for name, value in rows], numbers=(1,)
    )
    note = (
        f"Of {batches[worst]}. Order 1 sees small shifts of everything, order 2 what few points do; labels are where "
        "classes lie. Single p-values are not corrected for there being several."
    )
    return [Section("What stands out", body, note)]


def _explained(run: GateRun, reference: str, batches: Sequence[str]) -> Explanation | None:
    """Why the batch that drifted most is apart; None where points are not at hand, or there is nothing to explain."""
    worst = worst_of(run.verdicts)
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


def _sizes_and_data(run: GateRun, names: Sequence[str]) -> list[Section]:
    known: list[tuple[Facts, str]] = []
    if run.gate is not None:
        source = run.gate.data if run.gate.data is not None else run.gate.drift or run.gate.sketch
        assert source is not None
        known.append((facts_of(source), names[0]))
    known += [(seen.facts, name) for seen, name in zip(run.seen, names[1:], strict=True) if seen is not None]
    if not known:
        return []
    sections = []
    place = worst_of(run.verdicts) or 0
    if run.gate is not None and run.seen and run.seen[place] is not None:
        counts = [dict(known[0][0].counts), dict(run.seen[place].facts.counts)]  # type: ignore[union-attr]
        sizes = class_sizes((names[0], names[1 + place]), counts)
        sections += [] if sizes is None else [sizes]
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
