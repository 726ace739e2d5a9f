"""What MLflow keeps of a result: numbers as metrics, settings as parameters, words as tags."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from sotdd.basics.checks import described
from sotdd.basics.errors import SotddError
from sotdd.basics.version import __version__
from sotdd.measure.drift_monitor import DriftMonitor
from sotdd.results.distance import Distance
from sotdd.results.matrix import DistanceMatrix
from sotdd.results.two_sample import TwoSampleTest

# What can be logged.
Result = Distance | DistanceMatrix | TwoSampleTest | DriftMonitor

# Names of MLflow have letters, digits and a few signs; others are replaced.
_NOT_IN_NAMES = re.compile(r"[^\w\-. ]")
_LONGEST_NAME = 100
_LONGEST_TEXT = 4000


@dataclass(frozen=True)
class Entries:
    """Metrics, parameters and tags, by their names within a result."""

    metrics: Mapping[str, float]
    params: Mapping[str, object] = field(default_factory=dict)
    tags: Mapping[str, object] = field(default_factory=dict)

    def under(self, name: str) -> Entries:
        """The same with full names, without numbers that are not finite and settings that there are none of.

        An error is named after its number, so that both are neighbours in any list that is sorted.
        """
        return Entries(
            {f"{name}/{key}": float(value) for key, value in self.metrics.items() if math.isfinite(value)},
            {f"{name}/{key}": _text(value) for key, value in self.params.items() if value is not None},
            {f"{name}/{key}": _text(value) for key, value in self.tags.items() if value is not None},
        )


def entries_of(result: Result) -> Entries:
    """What there is to log of a result."""
    match result:
        case Distance():
            return _of_distance(result)
        case DistanceMatrix():
            return _of_matrix(result)
        case TwoSampleTest():
            return _of_test(result)
        case DriftMonitor():
            return _of_monitor(result)
    raise SotddError(
        f"result is {described(result)}: expected what sotdd.distance, sotdd.pairwise or sotdd.test returned, or a "
        "DriftMonitor."
    )


def checked_name(name: object) -> str:
    """A name that MLflow takes for what is logged, or refuse."""
    if not isinstance(name, str) or not name or name.startswith("/") or ".." in name:
        raise SotddError(f"name is {described(name)}: expected text, such as 'drift' or 'drift/today'.")
    return "/".join(_plain(part) for part in name.split("/"))


def _of_distance(distance: Distance) -> Entries:
    low, high = distance.interval(0.95)
    metrics = {"distance": distance.value, "distance_stderr": distance.stderr}
    metrics |= {"distance_95_low": low, "distance_95_high": high}
    if distance.noise is not None:
        metrics |= {"noise_floor": distance.noise.value, "within_noise": float(distance.noise.within)}
    if distance.excess is not None and distance.excess_stderr is not None:
        metrics |= {"excess": distance.excess, "excess_stderr": distance.excess_stderr}
    metrics |= _sizes(distance.n_points)
    if distance.n_projections is not None:  # a number that rel_tol may choose anew each time, so it is no setting
        metrics["n_projections"] = float(distance.n_projections)
    params = {"method": distance.method, "p": distance.p, "scale": distance.scale}
    return Entries(metrics, params, {**_said(repr(distance), distance.fingerprint), "estimator": distance.estimator})


def _of_matrix(matrix: DistanceMatrix) -> Entries:
    metrics: dict[str, float] = {}
    names = [_plain(name) for name in matrix.names]
    for (i, j), distance in matrix.distances.items():
        pair = f"{names[i]} - {names[j]}"
        if pair in metrics:
            raise SotddError(f"two pairs of datasets would both be called {pair!r} in MLflow: give them plainer names.")
        metrics |= {pair: distance.value, f"{pair}_stderr": distance.stderr}
    params: dict[str, object] = {"datasets": ", ".join(matrix.names)}
    tags = _said(None, None)
    if matrix.distances:
        first = _of_distance(next(iter(matrix.distances.values())))
        params |= first.params
        tags |= {"fingerprint": first.tags["fingerprint"]}
    return Entries(metrics, params, tags)


def _of_test(test: TwoSampleTest) -> Entries:
    chance = test.quantiles((0.05, 0.95))
    metrics = {
        "p_value": test.p_value,
        "distance": test.distance,
        "distance_by_chance_05": chance[0.05],
        "distance_by_chance_95": chance[0.95],
        "effect_size": test.effect_size,
        **_sizes(test.n_points),
    }
    params = {
        "judged_by": test.judged_by,
        "p": test.p,
        "n_projections": test.n_projections,
        "n_permutations": len(test.null),
    }
    return Entries(metrics, params, {**_said(repr(test), test.fingerprint), "strongest": test.strongest})


def _of_monitor(monitor: DriftMonitor) -> Entries:
    sums = {"drift_sum": monitor.total, "drift_limit": monitor.limit, "drift_alarm": float(monitor.alarm)}
    params: dict[str, object] = {"run_length": monitor.run_length}
    if monitor.last is None:
        return Entries(sums, params, _said(repr(monitor), None))
    last = _of_test(monitor.last)
    return Entries({**sums, **last.metrics}, {**params, **last.params}, {**last.tags, "summary": repr(monitor)})


def _sizes(n_points: tuple[int, int]) -> dict[str, float]:
    return {"n_points_a": float(n_points[0]), "n_points_b": float(n_points[1])}


def _said(summary: str | None, fingerprint: str | None) -> dict[str, object]:
    return {"summary": summary, "fingerprint": fingerprint, "sotdd": __version__}


def _plain(name: str) -> str:
    """A part of a name, with signs that MLflow does not take replaced."""
    return _NOT_IN_NAMES.sub("_", name)[:_LONGEST_NAME] or "_"


def _text(value: object) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…"
