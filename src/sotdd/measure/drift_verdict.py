"""What a gate says of one batch: it passed, it has drifted, or there is no telling."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from sotdd.basics.text import counted, json_number, with_error
from sotdd.measure.drift_values import Stuck
from sotdd.results.distance import Distance
from sotdd.results.two_sample import TwoSampleTest

Verdict: TypeAlias = Literal["passed", "drift", "unknown"]


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
        Why there is no telling; None where there is.
    """

    batch: str
    outcomes: tuple[Outcome, ...] = ()
    distance: Distance | None = None
    test: TwoSampleTest | None = None
    n_points: int | None = None
    error: str | None = None

    @property
    def verdict(self) -> Verdict:
        """In one word: drift that is found is drift, whatever else could not be told."""
        if any(outcome.failed for outcome in self.outcomes):
            return "drift"
        return "passed" if self.error is None else "unknown"

    @property
    def drifted(self) -> bool | None:
        """Whether it has drifted; None where there is no telling."""
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
    """What several batches say: one that drifted counts most, then one that there is no telling of."""
    found = {verdict.verdict for verdict in verdicts}
    return "drift" if "drift" in found else "passed" if found == {"passed"} else "unknown"


def by_limit(distance: Distance | None, limit: float, between: str) -> Outcome:
    """Whether a distance is more than a limit; None is one too large to measure."""
    if distance is None:
        return Outcome("distance", None, limit, True, f"{far(distance, between)}, more than {limit:g}")
    failed = distance.value > limit
    message = f"{far(distance, between)}, {'more than' if failed else 'at most'} {limit:g}"
    low, high = distance.interval(0.95)
    if low <= limit <= high:
        message += f" (close: 95 % interval {low:.4g} to {high:.4g}, use more projections to be sure)"
    return Outcome("distance", distance.value, limit, failed, message)


def by_noise(distance: Distance | None, limit: float, level: float, between: str) -> Outcome:
    """Between sketches: whether samples of one source, of these sizes, are often as far apart."""
    if distance is None:
        return Outcome("noise", None, limit, True, f"{far(distance, between)}, beyond all noise")
    failed = distance.value > limit
    than = "farther than" if failed else "no farther than"
    share = f"{100 * (1 - level):.4g} % of samples of one source would be ({limit:.3g})"
    return Outcome("noise", distance.value, limit, failed, f"{far(distance, between)}, {than} {share}")


def by_chance(test: TwoSampleTest, level: float, n_batches: int) -> Outcome:
    """Whether a test finds drift at its share of the level."""
    each = level / n_batches
    failed = test.rejects(each)
    shared = f" over {counted(n_batches, 'batch', 'batches')}" if n_batches > 1 else ""
    drift = f"{'drift' if failed else 'no drift'} at a level of {100 * level:g} %{shared}"
    most = test.most_by if failed else ""
    message = f"{drift} (p = {test.p_value:.3g}{most}): {100 * test.p_value:.3g} % of shuffles are as far apart"
    return Outcome("p_value", test.p_value, each, failed, message)


def by_values(stuck: Stuck, limit: float, feature: str) -> Outcome:
    """Whether a feature has one value far more often than the reference ever has one."""
    failed = stuck.p_value <= limit
    often = f"{stuck.count:,} of {counted(stuck.n_rows, 'point')}"
    usual = f"the reference has no value in more than {100 * stuck.usual:.2g} %"
    message = f"{feature} is {stuck.value:.4g} in {often}, and {usual}"
    return Outcome("values", stuck.p_value, limit, failed, message if failed else f"no feature is stuck ({message})")


def far(distance: Distance | None, between: str) -> str:
    """How far, in words."""
    if distance is None:
        return f"too far to measure {between}"
    return f"{with_error(distance.value, distance.stderr)} {between}"
