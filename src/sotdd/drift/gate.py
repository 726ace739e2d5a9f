"""A gate judges batches against a reference: each passes, has drifted, or is undecided; and a log of its verdicts.

A log has a line of JSON for each batch, to be searched by grep or jq, and read back by a page and by a monitor.
"""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sotdd.basics import __version__
from sotdd.basics.errors import OutOfRange, SotddError
from sotdd.basics.files import explain_failure, lock_file, read_whole, refuse_unwritable, write_whole
from sotdd.basics.remarks import Remark, Remarks, Verdict
from sotdd.basics.text import json_number, quote, say_count, with_error
from sotdd.compute.distance import Distance
from sotdd.drift.monitor import DriftMonitor
from sotdd.drift.reference import DriftReference
from sotdd.inputs import open_dataset
from sotdd.inputs.data import LabelledData, Origin
from sotdd.inputs.sources import split_options
from sotdd.measure.changes import LEVEL, Changes, TwoSampleTest
from sotdd.measure.comparison import MOST_POINTS
from sotdd.measure.distance import distance
from sotdd.sketches.sketch import Sketch

# A batch does not pass if it lost this much more of its rows than the reference, since something was missing in them,
# and chance gives as much by less than this probability; beside a sketch, if it lost more than half.
_MORE_LOST, _BY_CHANCE, _MOST_LOST = 0.1, 0.001, 0.5
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
        The permutation test; None where there was none.
    n_points
        How many points the batch has; None where it could not be opened.
    judged
        Which columns of it were judged and which were left out; None where it is no table.
    schema
        What changed in the table itself: columns that are new, gone, empty or constant, rows that repeat or are copied.
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
        return {
            "current": self.batch,
            "verdict": self.verdict.value,
            "drifted": self.verdict.drifted,
            "checks": [{**asdict(one), "limit": json_number(one.limit)} for one in self.outcomes],
            "columns": None if self.judged is None else self.judged.to_dict(),
            "schema": [remark.to_dict() for remark in self.schema],
            "changes": self.changes.to_dict(),
            "distance": None if self.distance is None else self.distance.to_dict(),
            **({} if self.test is None else {"test": self.test.to_dict()}),
            **({} if self.error is None else {"error": self.error}),
        }


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

    def open_batch(self, batch: str, **settings: Any) -> LabelledData:  # noqa: ANN401  # settings of open_dataset
        """Open a batch with the columns of the reference."""
        if not isinstance(self.reference, Sketch):
            return self.reference.open_batch(batch, **settings)
        columns = self.reference.recipe.get("columns")
        if columns and Path(split_options(batch)[0]).suffix.lower() not in _ARRAYS:
            settings = {"features": columns, **settings}
        return open_dataset(batch, **settings)

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
            shared = f" over {say_count(self.n_batches, 'batch', 'batches')}" if self.n_batches > 1 else ""
            said = f"p = {test.p_value:.3g} (level {100 * self.level:g} %{shared})"
            failed = test.verdict is Verdict.DRIFT
            message = f"drift: {said}, {test.say_why()}" if failed else f"no drift: {said}"
            outcomes.append(Outcome("p_value", test.p_value, each, failed, message))
        alike = () if test is None else test.too_alike.list_remarks()
        return replace(found, outcomes=tuple(outcomes), distance=measured, test=test, schema=(*found.schema, *alike))

    def watch(
        self, monitor: DriftMonitor, batch: LabelledData | Sketch, name: str
    ) -> tuple[BatchVerdict, DriftMonitor]:
        """What a monitor says of a batch that is open, and the monitor after it; one in doubt is passed over."""
        found = self._describe(batch, name)
        if found.error is not None or isinstance(batch, Sketch):
            return found, monitor
        after = monitor.after(batch, n_permutations=self.n_permutations)
        assert after.last is not None
        said = f"evidence {after.total:.2f}, limit {after.limit:.2f}; this batch p = {after.last.p_value:.3g}"
        failed = after.alarm or bool(after.last.far)
        message = f"drift: {said}, {after.last.say_why()}" if failed else f"no drift so far: {said}"
        outcome = Outcome("evidence", after.total, after.limit, failed, message)
        schema = (*found.schema, *after.last.too_alike.list_remarks())
        distance = self._measure(batch)
        return replace(found, outcomes=(outcome,), distance=distance, test=after.last, schema=schema), after

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
        """The verdict on a batch before it is measured: its table, and why it is undecided.

        That is for too few points, rows or columns.
        """
        found, doubts = BatchVerdict(name, n_points=batch.n_points), []
        for who, count in (("the reference", self.reference.n_points), ("the batch", batch.n_points)):
            if count < self.fewest:
                doubts.append(f"{who} has only {say_count(count, 'point')}: expected at least {self.fewest:,}.")
        if isinstance(batch, LabelledData):
            judged, schema = (batch.judged, ()) if self.drift is None else self.drift.compare_schema(batch)
            found, origin = replace(found, judged=judged, schema=schema), batch.origin
            if _loses_more(origin, self.drift):
                lost = f"{origin.rows_lost:,} of {say_count(origin.rows_read, 'row')}"
                doubts.append(f"{lost} lack a value or a label: too many to judge the batch.")
            if self.require_all_columns and judged is not None and judged.facts["left_out"]:
                doubts.append(f"{judged}: all columns are required.")
        return replace(found, error=doubts[0] if doubts else None)


def _loses_more(batch: Origin, reference: DriftReference | None) -> bool:
    """Whether a batch lost many more of its rows than the reference did, beyond chance; a sketch does not say."""
    from scipy.stats import hypergeom

    if reference is None:
        return batch.rows_lost > _MOST_LOST * batch.rows_read
    usual, read = reference.data.origin.rows_lost, reference.data.origin.rows_read or reference.n_points
    if batch.rows_lost <= (usual / read + _MORE_LOST) * batch.rows_read:
        return False
    both = usual + batch.rows_lost
    return bool(hypergeom.sf(batch.rows_lost - 1, read + batch.rows_read, both, batch.rows_read) < _BY_CHANCE)


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
    alike = "".join(f"; {remark}" for remark in measured.noise.find_alike(measured.n_points).list_remarks())
    return Outcome("noise", measured.value, limit, failed, f"{say_distance(measured)}, {noise}{alike}")


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


def _round(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")


def write_line(verdict: BatchVerdict, reference: str, **more: object) -> str:
    """One batch as a line of JSON; what is not known is left out."""
    values = {"date": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", **list_values(verdict, reference), **more}
    return json.dumps({name: value for name, value in values.items() if value is not None}) + "\n"


def append_lines(path: str | os.PathLike[str], lines: Sequence[str]) -> None:
    """Add lines to the end of a log: all of them are on disk, or the log is as it was."""
    with hold_log(path) as append:
        append(lines)


@contextmanager
def hold_log(path: str | os.PathLike[str]) -> Iterator[Callable[[Sequence[str]], None]]:
    """Hold a log, so that other processes wait to add to it; yields what adds lines, all or none.

    Lines that are not written whole, as on a full disk, are taken back. Where a line was cut short, because its writer
    was stopped, a line break comes first. A store cannot add to an object, so a log there is written anew, and nobody
    waits.
    """
    open_log(path)
    with ExitStack() as held:
        with explain_failure("write", path, "choose another file") as target:
            file = None if isinstance(target, str) else held.enter_context(target.open("ab", buffering=0))
            if file is not None:
                lock_file(file.fileno())

        def append(lines: Sequence[str]) -> None:
            before, content = open_log(path), "".join(lines).encode()
            if before and not before.endswith(b"\n"):
                content = b"\n" + content
            if file is None:
                write_whole(path, before + content)
                return
            with explain_failure("write", path, "choose another file"):
                try:
                    if file.write(content) < len(content):
                        raise OSError(errno.ENOSPC, "no space left")
                    os.fsync(file.fileno())
                except OSError:
                    file.truncate(len(before))
                    raise

        yield append


def open_log(path: str | os.PathLike[str]) -> bytes:
    """What a log holds; one that cannot be added to is refused, before anything is measured.

    A file that has no line of a gate in it is no log: it may be the reference, or a batch.
    """
    with explain_failure("write", path, "choose another file") as target:
        refuse_unwritable(target) if isinstance(target, str) else target.open("ab").close()
    content = read_whole(path, "a log", missing=b"")
    if content and b'"verdict": "' not in content:
        raise SotddError(
            f"is {quote(path)}, in which no line is that of a gate: choose a new file, or a log.", setting="log"
        )
    return content


def read_entries(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """The lines of a log, oldest first; those that were cut short, or are none, are passed over."""
    for line in open_log(path).decode("utf-8", "replace").splitlines():
        with suppress(ValueError, RecursionError):
            entry = json.loads(line)
            if isinstance(entry, dict):
                yield entry


def read_history(path: str | os.PathLike[str], reference: str) -> list[dict[str, str]]:
    """What a log has of batches beside one reference, oldest first, as texts; of a series also its sum of evidence."""
    entries = []
    for entry in read_entries(path):
        state = entry.pop("monitor", None)
        evidence = {"evidence": state.get("total")} if isinstance(state, dict) else {}
        entries.append({name: str(value) for name, value in {**entry, **evidence}.items()})
    name = Path(reference).name  # from whichever folder it was named
    return [one for one in entries if Path(one.get("reference", "")).name == name and "date" in one
            and one.get("verdict") in set(Verdict)]  # fmt: skip


# ------------------------------------------------------------------ the state of a series


def describe_state(monitor: DriftMonitor) -> dict[str, Any]:
    """What a line of a log has of a monitor, by which `resume_monitor` goes on; the reference by its rows."""
    sums = {"total": monitor.total, "limit": monitor.limit, "n_batches": monitor.n_batches}
    return {"reference": monitor.reference.digest, "run_length": monitor.run_length, **sums}


def resume_monitor(monitor: DriftMonitor, log: str | os.PathLike[str]) -> DriftMonitor:
    """A new monitor as the last one in a log was; one of another reference or run length is refused."""
    own = describe_state(monitor)
    for entry in reversed([*read_entries(log)]):
        try:
            state = entry["monitor"]
            total, n_batches = float(state["total"]), int(state["n_batches"])
            found = {name: state[name] for name in ("reference", "run_length")}
        except (ValueError, TypeError, KeyError, OverflowError):  # a line of a check, or of nobody
            continue
        if not 0 <= total < math.inf or n_batches < 0:
            continue
        for name, value in found.items():
            if value != own[name]:
                series = f"a series with another {name.replace('_', ' ')}, {value!r} and not {own[name]!r}"
                raise SotddError(f"is {quote(log)}, which has {series}: choose another file.", setting="log")
        return replace(monitor, total=total, n_batches=n_batches)
    return monitor
