"""A gate: batches are judged against a reference, each by the same criteria: it passed, drifted, or is undecided."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from sotdd.basics.errors import OutOfRange, SotddError
from sotdd.basics.remarks import Remark, Remarks
from sotdd.basics.text import json_number, say_count, with_error
from sotdd.basics.verdict import Verdict
from sotdd.compute.distance import Distance
from sotdd.drift.monitor import DriftMonitor
from sotdd.drift.reference import DriftReference
from sotdd.inputs import open_dataset
from sotdd.inputs.data import LabelledData
from sotdd.inputs.sources import split_options
from sotdd.measure.changes import Changes
from sotdd.measure.distance import distance
from sotdd.measure.permutations import MOST_POINTS
from sotdd.measure.two_sample_result import LEVEL, TwoSampleTest
from sotdd.sketches.sketch import Sketch

# A batch does not pass that lost more than this share of its rows, since something was missing in them.
_MOST_LOST = 0.5
# Files that have features under one name, if any, rather than columns.
_ARRAYS = (".npz", ".npy")


@dataclass(frozen=True)
class Outcome:
    """One criterion: its value, the limit, whether it failed, and that in words.

    The criteria are the "p_value" of a test, the "distance", its "noise" between sketches, and the "evidence" of a
    series; each fails too where values are too large to measure.
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


@dataclass(frozen=True, eq=False)
class Gate:
    """What batches are judged against, and what decides.

    That is the distance, if there is a limit; otherwise a test, or noise where there are no points.

    Attributes
    ----------
    name
        What the reference is called.
    reference
        The reference; or a sketch, which has no points to permute.
    measuring
        Settings of `sotdd.distance`: the device, and the order of transport for a sketch.
    n_batches
        How many batches share the level, so that all of them together alarm no more often than it says.
    limit
        The largest distance that passes; None for no limit.
    level
        The level of the test; None where only the limit decides.
    n_permutations
        How many permutations, fewer where the verdict is clear before, and more where a level takes more.
    fewest
        With fewer points, a batch does not pass: it is undecided, since few differences would be found.
    require_all_columns
        Whether a batch with a column that is left out does not pass either.
    max_points
        A batch of more points is sampled.
    """

    name: str
    reference: DriftReference | Sketch
    measuring: Mapping[str, Any] = field(default_factory=dict)
    n_batches: int = 1
    limit: float | None = None
    level: float | None = LEVEL
    n_permutations: int = 999
    fewest: int = 10
    require_all_columns: bool = False
    max_points: int | None = MOST_POINTS

    @property
    def drift(self) -> DriftReference | None:
        """The reference that batches are tested against; None for a sketch."""
        return None if isinstance(self.reference, Sketch) else self.reference

    def open_batch(self, batch: str, **asked: Any) -> LabelledData:  # noqa: ANN401  # settings of open_dataset
        """Open a batch with the columns of the reference."""
        if not isinstance(self.reference, Sketch):
            return self.reference.open_batch(batch, **asked)
        columns = self.reference.recipe.get("columns")
        if columns and Path(split_options(batch)[0]).suffix.lower() not in _ARRAYS:
            asked = {"features": columns, **asked}
        return open_dataset(batch, **asked)

    def judge(self, batch: LabelledData | Sketch, name: str) -> BatchVerdict:
        """What the criteria say of a batch that is open."""
        found, measured, test = self._describe(batch, name), self._measure(batch), None
        each, outcomes = (self.level or LEVEL) / self.n_batches, []
        if self.drift is not None and isinstance(batch, LabelledData):
            enough = max(self.n_permutations, math.ceil(1 / each))  # for a p-value at the level
            how = {"level": each, "max_points": self.max_points, **self.measuring}
            test = self.drift.test(batch, n_permutations=enough, **how)
        if self.limit is not None:
            outcomes.append(_judge_by_limit(measured, self.limit, "" if test is None else test.far))
        elif test is None:
            outcomes.append(_judge_by_noise(measured, each))
        if test is not None and self.level is not None:
            outcomes.append(_judge_by_test(test, self.level, self.n_batches))
        return replace(found, outcomes=tuple(outcomes), distance=measured, test=test)

    def watch(
        self, monitor: DriftMonitor, batch: LabelledData | Sketch, name: str
    ) -> tuple[BatchVerdict, DriftMonitor]:
        """What a monitor says of a batch that is open, and the monitor after it; one in doubt is passed over."""
        found = self._describe(batch, name)
        if found.error is not None or isinstance(batch, Sketch):
            return found, monitor
        after = monitor.after(batch, n_permutations=self.n_permutations)
        return replace(found, outcomes=(_judge_by_sum(after),), distance=self._measure(batch), test=after.last), after

    def _measure(self, batch: LabelledData | Sketch) -> Distance | None:
        """The distance, with projections and unit from the reference alone; None if it is too far to measure."""
        try:
            if isinstance(self.reference, Sketch):
                return distance(self.reference, batch, **self.measuring)
            assert isinstance(batch, LabelledData)
            return self.reference.distance(batch, **self.measuring)
        except OutOfRange:  # too far to measure is still drift
            return None

    def _describe(self, batch: LabelledData | Sketch, name: str) -> BatchVerdict:
        """The verdict on a batch before it is measured: its table, and why it cannot be said that nothing drifted."""
        found = BatchVerdict(name, n_points=batch.n_points)
        if isinstance(batch, LabelledData):
            found = replace(found, judged=batch.judged)
            if self.drift is not None:
                found = replace(found, judged=self.drift.find_judged(batch), schema=self.drift.compare_schema(batch))
        return replace(found, error=self._doubt(batch, found.judged))

    def _doubt(self, batch: LabelledData | Sketch, judged: Remark | None) -> str | None:
        """Too few points, rows or columns to say that nothing has drifted; None if it can be said."""
        for who, count in (("the reference", self.reference.n_points), ("the batch", batch.n_points)):
            if count < self.fewest:
                return f"{who} has only {say_count(count, 'point')}: expected at least {self.fewest:,}."
        if isinstance(batch, LabelledData) and batch.origin.rows_lost > _MOST_LOST * batch.origin.rows_read:
            lost = f"{batch.origin.rows_lost:,} of {say_count(batch.origin.rows_read, 'row')}"
            return f"{lost} lack a value or a label: too many to judge the batch."
        if self.require_all_columns and judged is not None and judged.facts["left_out"]:
            return f"{judged}: all columns are required."
        return None


def _judge_by_limit(measured: Distance | None, limit: float, far: str) -> Outcome:
    """Whether a distance is more than a limit, as one too large to measure is, or one of values too ``far`` off."""
    if measured is None or far:
        said = ": ".join(filter(None, (say_distance(None), far)))
        return Outcome("distance", None, limit, True, f"{said}, more than {limit:g}")
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
    shared = f" over {say_count(n_batches, 'batch', 'batches')}" if n_batches > 1 else ""
    said, drifts = f"p = {test.p_value:.3g} (level {100 * level:g} %{shared})", test.verdict.drifted is True
    message = f"drift: {said}, {test.say_why()}" if drifts else f"no drift: {said}"
    return Outcome("p_value", test.p_value, level / n_batches, drifts, message)


def _judge_by_sum(monitor: DriftMonitor) -> Outcome:
    """Whether the batches so far drifted, the last one included, whose columns may have changed."""
    last = monitor.last
    assert last is not None
    failed = monitor.alarm or bool(last.far)
    said = f"evidence {monitor.total:.2f}, limit {monitor.limit:.2f}; this batch p = {last.p_value:.3g}"
    message = f"drift: {said}, {last.say_why()}" if failed else f"no drift so far: {said}"
    return Outcome("evidence", monitor.total, monitor.limit, failed, message)


def say_distance(distance: Distance | None) -> str:
    """How far, in words."""
    return "too far to measure" if distance is None else f"distance {with_error(distance.value, distance.stderr)}"
