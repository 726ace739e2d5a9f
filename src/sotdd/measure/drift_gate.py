"""A gate: batches are judged against a reference, each by the same criteria: it passed, drifted, or is undecided."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from sotdd.basics.errors import OutOfRange, SotddError
from sotdd.basics.text import counted, json_number, shown, with_error
from sotdd.inputs import open_dataset
from sotdd.inputs.data import LabelledData
from sotdd.measure.distance import distance
from sotdd.measure.drift import DriftReference
from sotdd.measure.drift_reading import Reading
from sotdd.measure.drift_values import STUCK_LEVEL
from sotdd.projections.recipe import Projections
from sotdd.results.distance import Distance
from sotdd.results.two_sample import TwoSampleTest
from sotdd.sketches.sketch import Sketch

Verdict: TypeAlias = Literal["passed", "drift", "unknown"]

# The level of the decision unless another is asked for.
LEVEL = 0.05

# Too few points to conclude that nothing drifted: few differences would be found.
FEWEST = 10
# Nor does one pass that lost more than this share of its rows, since something was missing in them.
_MOST_LOST = 0.5
# Classes that a remark names.
_SHOWN = 5


@dataclass(frozen=True)
class Outcome:
    """One criterion: its value, the limit, whether it failed, and that in words."""

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
    error
        Why it is undecided; None where it is decided.
    """

    batch: str
    outcomes: tuple[Outcome, ...] = ()
    distance: Distance | None = None
    test: TwoSampleTest | None = None
    n_points: int | None = None
    error: str | None = None

    @property
    def verdict(self) -> Verdict:
        """In one word: drift that is found is drift, whatever else is undecided."""
        if any(outcome.failed for outcome in self.outcomes):
            return "drift"
        return "passed" if self.error is None else "unknown"

    @property
    def drifted(self) -> bool | None:
        """Whether it has drifted; None where that is undecided."""
        return {"drift": True, "passed": False}.get(self.verdict)

    @property
    def p_value(self) -> float | None:
        """The p-value of the test, if there was one."""
        return None if self.test is None else self.test.p_value

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON values."""
        result: dict[str, Any] = {"current": self.batch, "verdict": self.verdict, "drifted": self.drifted}
        result["checks"] = [{**asdict(one), "limit": json_number(one.limit)} for one in self.outcomes]
        result["distance"] = None if self.distance is None else self.distance.to_dict()
        if self.test is not None:
            result["test"] = self.test.to_dict()
        if self.error is not None:
            result["error"] = self.error
        return result


def together(verdicts: list[BatchVerdict]) -> Verdict:
    """What several batches say: one that drifted counts most, then one that is undecided."""
    found = {verdict.verdict for verdict in verdicts}
    return "drift" if "drift" in found else "passed" if found == {"passed"} else "unknown"


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
        How many shuffles, or more where a level takes more.
    fewest
        With fewer points, a batch does not pass: it is undecided.
    """

    n_batches: int = 1
    limit: float | None = None
    level: float | None = LEVEL
    n_permutations: int = 999
    fewest: int = FEWEST


@dataclass(frozen=True, eq=False)
class Gate:
    """A reference as a gate takes it: its data, a sketch of it, or what was saved to test batches.

    Attributes
    ----------
    name
        What the reference is called.
    drift
        What batches are tested against; None for a sketch.
    data, projections
        Its points, and what distances from them are measured through; None where they are not there.
    sketch
        The sketch that was given as the reference.
    measuring
        Settings of `sotdd.distance`.
    """

    name: str
    drift: DriftReference | None = None
    data: LabelledData | None = None
    projections: Projections | None = None
    sketch: Sketch | None = None
    measuring: dict[str, Any] = field(default_factory=dict)

    def opened(self, batch: str, **asked: Any) -> LabelledData:  # noqa: ANN401  # settings of open_dataset
        """A batch with the columns of the reference."""
        if self.drift is not None:
            return self.drift.opened(batch, **asked)
        assert self.sketch is not None
        columns = self.sketch.recipe.get("columns")
        if not columns or any("=" in column for column in columns):  # of which some may be values of one column
            return open_dataset(batch, **asked)
        return Reading(columns=tuple(columns)).opened(batch, **asked)

    def judged(
        self, batch: LabelledData | Sketch, criteria: Criteria, name: str, between: str, progress: bool = False
    ) -> BatchVerdict:
        """What the criteria say of a batch that is open."""
        measured = self._distance(batch, progress)
        outcomes = [] if criteria.limit is None else [_outcome_by_limit(measured, criteria.limit, between)]
        test = None
        if self.drift is None and criteria.limit is None:
            outcomes.append(self._by_noise(measured, criteria, between))
        elif self.drift is not None and criteria.level is not None:
            assert isinstance(batch, LabelledData)
            test = self._tested(batch, criteria, progress)
            outcomes.append(_outcome_by_chance(test, criteria.level, criteria.n_batches))
            outcomes += self._stuck(batch, criteria)
        if isinstance(batch, LabelledData) and measured is not None:
            measured = replace(measured, remarks=(*measured.remarks, *self._unknown_classes(batch)))
        why = self._too_few(batch.n_points, criteria.fewest) or _too_incomplete(batch)
        return BatchVerdict(name, tuple(outcomes), measured, test, batch.n_points, why)

    def _unknown_classes(self, batch: LabelledData) -> list[str]:
        """A remark on classes that only the batch has: their names do not count unless asked for, but a reader's do."""
        if self.drift is None or batch.origin.target is not None or len(self.drift.classes) < 2:
            return []
        known = {str(label) for label in self.drift.classes}
        new = {code: str(label) for code, label in enumerate(batch.classes) if str(label) not in known}
        if not new:
            return []
        points = int(np.isin(batch.codes, list(new)).sum())
        names = ", ".join(shown(label) for label in list(new.values())[:_SHOWN])
        more = f" and {len(new) - _SHOWN:,} more" if len(new) > _SHOWN else ""
        count = f"{points:,} of {counted(batch.n_points, 'point')}"
        return [f"classes that the reference does not have: {names}{more} ({count})"]

    def _distance(self, batch: LabelledData | Sketch, progress: bool) -> Distance | None:
        """The distance, with projections and unit from the reference alone; None if it is too far to measure."""
        try:
            if self.sketch is None and self.data is None:
                assert self.drift is not None
                assert isinstance(batch, LabelledData)
                return self.drift.distance(batch)
            given = self.sketch if self.sketch is not None else self.data
            through = {} if self.projections is None else {"projections": self.projections}
            return distance(given, batch, progress=progress, **through, **self.measuring)  # type: ignore[arg-type]
        except OutOfRange:  # too far to measure is still drift
            return None

    def _tested(self, batch: LabelledData, criteria: Criteria, progress: bool) -> TwoSampleTest:
        """The test; if no shuffle is as far and there were too few for the level, once more with enough."""
        assert self.drift is not None
        each = (criteria.level or LEVEL) / criteria.n_batches
        test = self.drift.test(batch, n_permutations=criteria.n_permutations, progress=progress)
        farthest = test.p_value <= 1 / (1 + len(test.null))
        if farthest and not test.rejects(each):
            test = self.drift.test(batch, n_permutations=math.ceil(1 / each), progress=progress)
        return test

    def _stuck(self, batch: LabelledData, criteria: Criteria) -> list[Outcome]:
        """Whether a feature has one value far more often than the reference ever has one; nothing where none has."""
        usual = None if self.drift is None else self.drift.commonest
        stuck = None if usual is None else usual.most_stuck(batch)
        limit = STUCK_LEVEL / criteria.n_batches
        if stuck is None or stuck.p_value > limit:
            return []
        feature = f"feature {stuck.feature}" if batch.columns is None else f"column {batch.columns[stuck.feature]!r}"
        often = f"{stuck.count:,} of {counted(stuck.n_rows, 'point')}"
        usually = f"the reference has no value in more than {100 * stuck.usual:.2g} %"
        return [
            Outcome("values", stuck.p_value, limit, True, f"{feature} is {stuck.value:.4g} in {often}, and {usually}")
        ]

    def _by_noise(self, measured: Distance | None, criteria: Criteria, between: str) -> Outcome:
        """Between sketches: whether samples of one source, of these sizes, are often as far apart."""
        each = LEVEL / criteria.n_batches
        if measured is None:
            return Outcome("noise", None, math.nan, True, f"{far(None, between)}, beyond all noise")
        if measured.noise is None:
            raise SotddError(
                "these sketches do not know how far apart halves of their data are: decide by --fail-above."
            )
        limit = measured.noise.limit(1 - each)
        failed = measured.value > limit
        than = "farther than" if failed else "no farther than"
        share = f"{100 * (1 - each):.4g} % of samples of one source would be ({limit:.3g})"
        return Outcome("noise", measured.value, limit, failed, f"{far(measured, between)}, {than} {share}")

    def _too_few(self, n_points: int, fewest: int) -> str | None:
        known = self.drift.n_points if self.drift is not None else self.sketch.n_points if self.sketch else n_points
        for who, count in (("the reference", known), ("the batch", n_points)):
            if count < fewest:
                return (
                    f"{who} has only {counted(count, 'point')}: too few to say that nothing has drifted, for which "
                    f"{fewest:,} are asked for."
                )
        return None


def _too_incomplete(batch: LabelledData | Sketch) -> str | None:
    """Why rows that are complete do not speak for a batch, most of whose rows are not; None where they do."""
    if not isinstance(batch, LabelledData) or batch.origin.rows_lost <= _MOST_LOST * batch.origin.rows_read:
        return None
    lost = f"{batch.origin.rows_lost:,} of {counted(batch.origin.rows_read, 'row')}"
    return f"{lost} lack a value or a label and were left out: too many to say that nothing has drifted."


def _outcome_by_limit(distance: Distance | None, limit: float, between: str) -> Outcome:
    """Whether a distance is more than a limit; None is one too large to measure."""
    if distance is None:
        return Outcome("distance", None, limit, True, f"{far(distance, between)}, more than {limit:g}")
    failed = distance.value > limit
    message = f"{far(distance, between)}, {'more than' if failed else 'at most'} {limit:g}"
    low, high = distance.interval(0.95)
    if low <= limit <= high:
        message += f" (close: 95 % interval {low:.4g} to {high:.4g}, use more projections to be sure)"
    return Outcome("distance", distance.value, limit, failed, message)


def _outcome_by_chance(test: TwoSampleTest, level: float, n_batches: int) -> Outcome:
    """Whether a test finds drift at its share of the level."""
    each = level / n_batches
    failed = test.rejects(each)
    shared = f" over {counted(n_batches, 'batch', 'batches')}" if n_batches > 1 else ""
    drift = f"{'drift' if failed else 'no drift'} at a level of {100 * level:g} %{shared}"
    most = test.most_by if failed else ""
    message = f"{drift} (p = {test.p_value:.3g}{most}): {100 * test.p_value:.3g} % of shuffles are as far apart"
    return Outcome("p_value", test.p_value, each, failed, message)


def far(distance: Distance | None, between: str) -> str:
    """How far, in words."""
    if distance is None:
        return f"too far to measure {between}"
    return f"{with_error(distance.value, distance.stderr)} {between}"
