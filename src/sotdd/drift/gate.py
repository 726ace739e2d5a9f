"""A gate: batches are judged against a reference, each by the same criteria: it passed, drifted, or is undecided.

Its log has one line of JSON for every batch, to be searched by grep or jq and read back by a report.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from sotdd.basics import __version__
from sotdd.basics.errors import OutOfRange, SotddError
from sotdd.basics.files import explain_failure, read_whole, refuse_unwritable, write_whole
from sotdd.basics.remarks import Remark, Remarks
from sotdd.basics.text import json_number, quote, say_count, with_error
from sotdd.basics.verdict import Verdict
from sotdd.compute.distance import Distance
from sotdd.drift.monitor import DriftMonitor
from sotdd.drift.reading import BatchReading
from sotdd.drift.reference import DriftReference
from sotdd.inputs import open_dataset
from sotdd.inputs.data import LabelledData
from sotdd.measure.changes import Changes
from sotdd.measure.distance import distance
from sotdd.measure.permutations import MOST_POINTS
from sotdd.measure.two_sample_result import LEVEL, TwoSampleTest
from sotdd.sketches.sketch import Sketch

# Too few points to conclude that nothing drifted: few differences would be found.
FEWEST = 10
# Nor does one pass that lost more than this share of its rows, since something was missing in them.
_MOST_LOST = 0.5

# Of a long log, this much of the end is read back.
_READ = 1 << 20


@dataclass(frozen=True)
class Outcome:
    """One criterion: its value, the limit, whether it failed, and that in words.

    The criteria are the "p_value" of a test, the "distance", its "noise" between sketches, the "evidence" of a series,
    and the "range" of values that are too large to measure.
    """

    criterion: str
    value: float | None
    limit: float
    failed: bool
    message: str


@dataclass(frozen=True, eq=False)
class BatchVerdict:
    """One batch beside the reference.

    Attributes
    ----------
    batch
        The batch as it was named.
    outcomes
        What each criterion says.
    distance
        How far it is; None where that could not be measured.
    test
        The permutation test; None where it was not asked for.
    n_points
        How many points the batch has; None where it could not be opened.
    judged
        Which columns of it were judged and which were left out; None where it is no table.
    schema
        What changed in the table itself: columns that are new, gone, empty or constant, rows that repeat.
    error
        Why it is undecided; None where it is decided.
    """

    batch: str
    outcomes: tuple[Outcome, ...] = ()
    distance: Distance | None = None
    test: TwoSampleTest | None = None
    n_points: int | None = None
    judged: Remark | None = None
    schema: Remarks = ()
    error: str | None = None

    @property
    def verdict(self) -> Verdict:
        """In one word: drift that is found is drift, whatever else is undecided."""
        if any(outcome.failed for outcome in self.outcomes):
            return Verdict.DRIFT
        return Verdict.PASSED if self.error is None else Verdict.UNDECIDED

    @property
    def changes(self) -> Changes:
        """What changed, as the test has it; nothing where there was none."""
        return Changes() if self.test is None else self.test.changes

    @property
    def p_value(self) -> float | None:
        """The p-value of the test, if there was one."""
        return None if self.test is None else self.test.p_value

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON values."""
        result: dict[str, Any] = {"current": self.batch, "verdict": self.verdict.value, "drifted": self.verdict.drifted}
        result["checks"] = [{**asdict(one), "limit": json_number(one.limit)} for one in self.outcomes]
        result["columns"] = None if self.judged is None else self.judged.to_dict()
        result["schema"] = [remark.to_dict() for remark in self.schema]
        result["changes"] = self.changes.to_dict()
        result["distance"] = None if self.distance is None else self.distance.to_dict()
        if self.test is not None:
            result["test"] = self.test.to_dict()
        if self.error is not None:
            result["error"] = self.error
        return result


@dataclass(frozen=True)
class Criteria:
    """What decides: the distance, if there is a limit; otherwise a test, or noise where there are no points.

    Attributes
    ----------
    n_batches
        How many batches share the level, so that all of them together alarm no more often than it says.
    limit
        The largest distance that passes; None for no limit.
    level
        The level of the test; None where only the limit decides.
    n_permutations
        How many permutations, fewer where the verdict is clear before, and more where a level takes more.
    fewest
        With fewer points, a batch does not pass: it is undecided.
    require_all_columns
        Whether a batch with a column that is left out does not pass either.
    max_points
        A batch of more points is sampled.
    """

    n_batches: int = 1
    limit: float | None = None
    level: float | None = LEVEL
    n_permutations: int = 999
    fewest: int = FEWEST
    require_all_columns: bool = False
    max_points: int | None = MOST_POINTS


@dataclass(frozen=True, eq=False)
class Gate:
    """What batches are judged against.

    Attributes
    ----------
    name
        What the reference is called.
    reference
        The reference; or a sketch, which has no points to permute.
    measuring
        Settings of `sotdd.distance`: the device, and the order of transport for a sketch.
    """

    name: str
    reference: DriftReference | Sketch
    measuring: Mapping[str, Any] = field(default_factory=dict)

    @property
    def drift(self) -> DriftReference | None:
        """The reference that batches are tested against; None for a sketch."""
        return None if isinstance(self.reference, Sketch) else self.reference

    def open_batch(self, batch: str, **asked: Any) -> LabelledData:  # noqa: ANN401  # settings of open_dataset
        """Open a batch with the columns of the reference."""
        if not isinstance(self.reference, Sketch):
            return self.reference.open_batch(batch, **asked)
        columns = self.reference.recipe.get("columns")
        if not columns:
            return open_dataset(batch, **asked)
        return BatchReading(columns=tuple(columns)).open_batch(batch, **asked)

    def judge(
        self, batch: LabelledData | Sketch, criteria: Criteria, name: str, progress: bool = False
    ) -> BatchVerdict:
        """What the criteria say of a batch that is open."""
        measured, test = self._measure(batch, progress), None
        outcomes = []
        if criteria.limit is not None:
            outcomes.append(_judge_by_limit(measured, criteria.limit))
        elif self.drift is None:
            outcomes.append(_judge_by_noise(measured, LEVEL / criteria.n_batches))
        if self.drift is not None and isinstance(batch, LabelledData):
            test = self._run_test(self.drift, batch, criteria, progress)
            if criteria.level is not None:
                outcomes.append(_judge_by_test(test, criteria.level, criteria.n_batches))
            if test.far and criteria.level is None:
                outcomes.append(Outcome("range", None, math.nan, True, f"drift: {test.say_why()}"))
            if measured is not None:
                measured = replace(measured, remarks=(*measured.remarks, *_remark_on_classes(self.drift, batch)))
        judged = self._find_judged(batch)
        doubt = self._doubt(batch, judged, criteria)
        return BatchVerdict(
            name, tuple(outcomes), measured, test, batch.n_points, judged, self._compare_schema(batch), doubt
        )

    def watch(
        self, monitor: DriftMonitor, batch: LabelledData | Sketch, name: str, n_permutations: int
    ) -> tuple[BatchVerdict, DriftMonitor]:
        """What a monitor says of a batch that is open, and the monitor after it; one in doubt is passed over."""
        judged = self._find_judged(batch)
        doubt = self._doubt(batch, judged, Criteria())
        if doubt is not None or isinstance(batch, Sketch):
            return BatchVerdict(name, n_points=batch.n_points, judged=judged, error=doubt), monitor
        after = monitor.after(batch, n_permutations=n_permutations)
        measured, schema = self._measure(batch, progress=False), self._compare_schema(batch)
        outcomes: tuple[Outcome, ...] = (_judge_by_sum(after),)
        if after.last is not None and after.last.far:
            outcomes += (Outcome("range", None, math.nan, True, f"drift: {after.last.say_why()}"),)
        return BatchVerdict(name, outcomes, measured, after.last, batch.n_points, judged, schema), after

    def _compare_schema(self, batch: LabelledData | Sketch) -> Remarks:
        """What changed in the table itself."""
        if self.drift is None or isinstance(batch, Sketch):
            return ()
        return self.drift.compare_schema(batch)

    def _find_judged(self, batch: LabelledData | Sketch) -> Remark | None:
        """Which columns of a batch are judged; None where it is no table."""
        if isinstance(batch, Sketch):
            return None
        return batch.judged if self.drift is None else self.drift.reading.find_judged(batch)

    def _measure(self, batch: LabelledData | Sketch, progress: bool) -> Distance | None:
        """The distance, with projections and unit from the reference alone; None if it is too far to measure."""
        try:
            if isinstance(self.reference, Sketch):
                return distance(self.reference, batch, progress=progress, **self.measuring)
            assert isinstance(batch, LabelledData)
            return self.reference.distance(batch, **self.measuring)
        except OutOfRange:  # too far to measure is still drift
            return None

    def _run_test(
        self, reference: DriftReference, batch: LabelledData, criteria: Criteria, progress: bool
    ) -> TwoSampleTest:
        """The test; if no permutation is as far and there were too few for the level, once more with enough."""
        each = (criteria.level or LEVEL) / criteria.n_batches
        how = {"progress": progress, "level": each, "max_points": criteria.max_points, **self.measuring}
        test = reference.test(batch, n_permutations=criteria.n_permutations, **how)
        farthest = test.p_value <= 1 / (1 + len(test.null))
        if farthest and not test.rejects(each):
            test = reference.test(batch, n_permutations=math.ceil(1 / each), **how)
        return test

    def _doubt(self, batch: LabelledData | Sketch, judged: Remark | None, criteria: Criteria) -> str | None:
        """Why it cannot be said that nothing has drifted: too few points, rows or columns; None if it can."""
        fewest = criteria.fewest
        for who, count in (("the reference", self.reference.n_points), ("the batch", batch.n_points)):
            if count < fewest:
                return f"{who} has only {say_count(count, 'point')}: expected at least {fewest:,}."
        if isinstance(batch, LabelledData) and batch.origin.rows_lost > _MOST_LOST * batch.origin.rows_read:
            lost = f"{batch.origin.rows_lost:,} of {say_count(batch.origin.rows_read, 'row')}"
            return f"{lost} lack a value or a label: too many to judge the batch."
        if criteria.require_all_columns and judged is not None and judged.facts["left_out"]:
            return f"{judged}: all columns are required."
        return None


def _judge_by_limit(measured: Distance | None, limit: float) -> Outcome:
    """Whether a distance is more than a limit; None is one too large to measure."""
    if measured is None:
        return Outcome("distance", None, limit, True, f"{say_distance(None)}, more than {limit:g}")
    failed = measured.value > limit
    message = f"{say_distance(measured)}, {'more than' if failed else 'at most'} {limit:g}"
    low, high = measured.interval(0.95)
    if low <= limit <= high:
        message += f" (close: 95 % interval {low:.4g} to {high:.4g}, use more projections to be sure)"
    return Outcome("distance", measured.value, limit, failed, message)


def _judge_by_noise(measured: Distance | None, level: float) -> Outcome:
    """Between sketches: whether samples of one source, of these sizes, are as far apart less often than a level."""
    if measured is None:
        return Outcome("noise", None, math.nan, True, f"{say_distance(None)}, beyond all noise")
    if measured.noise is None:
        raise SotddError("these sketches do not know how far apart halves of their data are: decide by --fail-above.")
    limit = measured.noise.limit(1 - level)
    failed = measured.value > limit
    noise = f"{'beyond' if failed else 'within'} noise, which is up to {limit:.3g} at a level of {100 * level:.4g} %"
    return Outcome("noise", measured.value, limit, failed, f"{say_distance(measured)}, {noise}")


def _judge_by_test(test: TwoSampleTest, level: float, n_batches: int) -> Outcome:
    """Whether a test finds drift at its share of the level, what decided it, and where it lies."""
    each = level / n_batches
    failed = test.rejects(each) or bool(test.far)
    shared = f" over {say_count(n_batches, 'batch', 'batches')}" if n_batches > 1 else ""
    said = f"p = {test.p_value:.3g} (level {100 * level:g} %{shared})"
    message = f"drift: {said}, {test.say_why()}" if failed else f"no drift: {said}"
    return Outcome("p_value", test.p_value, each, failed, message)


def _judge_by_sum(monitor: DriftMonitor) -> Outcome:
    """Whether the batches so far drifted, the last one included, whose columns may have changed."""
    assert monitor.last is not None
    said = "drift" if monitor.alarm else "no drift so far"
    message = (
        f"{said}: evidence {monitor.total:.2f}, limit {monitor.limit:.2f}; this batch p = {monitor.last.p_value:.3g}"
    )
    if monitor.alarm:
        message += f", {monitor.last.say_why()}"
    return Outcome("evidence", monitor.total, monitor.limit, monitor.alarm, message)


def _remark_on_classes(reference: DriftReference, batch: LabelledData) -> Remarks:
    """A remark on classes that only the batch has: their names do not count unless asked for, but a reader's do."""
    if batch.origin.target is not None or len(reference.classes) < 2:
        return ()
    known = {str(label) for label in reference.classes}
    new = {code: str(label) for code, label in enumerate(batch.classes) if str(label) not in known}
    if not new:
        return ()
    points = int(np.isin(batch.codes, list(new)).sum())
    return (Remark("unknown classes", classes=tuple(new.values()), points=points, n_points=batch.n_points),)


def say_distance(distance: Distance | None) -> str:
    """How far, in words."""
    return "too far to measure" if distance is None else f"distance {with_error(distance.value, distance.stderr)}"


# ------------------------------------------------------------------ the log


def list_values(verdict: BatchVerdict, reference: str) -> dict[str, object]:
    """What a log, or a table, has of a batch; None for what is not known."""
    limits = {outcome.criterion: outcome.limit for outcome in verdict.outcomes}
    distance = verdict.distance
    return {
        "verdict": verdict.verdict.value,
        "batch": verdict.batch,
        "reference": reference,
        "points": verdict.n_points,
        "columns": None if verdict.judged is None else str(verdict.judged),
        "changed": "; ".join(f"{one.column}: {one.what}" for one in verdict.changes.changed) or None,
        "schema": "; ".join(map(str, verdict.schema)) or None,
        "distance": None if distance is None else _round(distance.value),
        "stderr": None if distance is None else _round(distance.stderr),
        "limit": _round(limits.get("distance", limits.get("noise"))),
        "p": _round(verdict.p_value),
        "level": _round(limits.get("p_value")),
        "version": __version__,
        "error": verdict.error,
    }


def write_line(verdict: BatchVerdict, reference: str, now: datetime, **more: object) -> str:
    """One batch as a line of JSON; what is not known is left out."""
    values = {"date": f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}", **list_values(verdict, reference), **more}
    return json.dumps({name: value for name, value in values.items() if value is not None}) + "\n"


def append_lines(path: str | os.PathLike[str], lines: Sequence[str]) -> None:
    """Add whole lines to the end of a file by one write: writers at the same time do not mix their lines.

    Where a line looks cut short, because a writer was stopped in it or is still writing, a line break comes first.
    A store cannot add to an object, so a log there is written anew.
    """
    before, content = refuse_unwritable_log(path), "".join(lines).encode()
    with explain_failure("write", path, "choose another file") as target:
        if isinstance(target, str):
            write_whole(target, before + (b"" if before.endswith(b"\n") or not before else b"\n") + content)
            return
        with target.open("a+b", buffering=0) as file:
            if file.tell() and os.pread(file.fileno(), 1, file.tell() - 1) != b"\n":  # a writer was stopped in a line
                content = b"\n" + content
            file.write(content)
            os.fsync(file.fileno())


def refuse_unwritable_log(path: str | os.PathLike[str]) -> bytes:
    """Refuse a log that cannot be added to, before anything is measured; nothing is written.

    A file that has no line of a gate in it is no log: it may be the reference, or a batch. Returns how it starts; all
    of it where it is on a store.
    """
    with explain_failure("write", path, "choose another file") as target:
        if isinstance(target, str):
            refuse_unwritable(target)
            start = read_whole(target, "a log", missing=b"")
        else:
            with target.open("a+b") as file:
                file.seek(0)
                start = file.read(_READ)
    if start and b'"verdict": "' not in start:
        raise SotddError(
            f"is {quote(path)}, in which no line is that of a gate: choose a new file, or a log.", setting="log"
        )
    return start


def read_log(path: str | os.PathLike[str], reference: str) -> list[dict[str, str]]:
    """The entries of a log about one reference, oldest first; lines that are none are passed over."""
    try:
        text = read_whole(path, "a log")[-_READ:].decode("utf-8", "replace")
    except SotddError:
        return []
    entries = []
    for line in text.splitlines():
        try:
            found = {name: str(value) for name, value in json.loads(line).items()}
        except (ValueError, AttributeError, RecursionError):  # cut short, or none of a gate
            continue
        same = Path(found.get("reference", "")).name == Path(reference).name  # from whichever folder it was named
        if same and "date" in found and found.get("verdict") in set(Verdict):
            entries.append(found)
    return entries


def _round(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")
