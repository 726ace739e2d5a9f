"""The command check: a dataset that may have drifted from a reference."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sotdd.basics.errors import OutOfRange, SotddError
from sotdd.commands import options as o
from sotdd.commands.sources import opened
from sotdd.commands.terminal import bar_wanted, print_json, say, say_note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sotdd.inputs.data import LabelledData
    from sotdd.results.distance import Distance
    from sotdd.results.two_sample import TwoSampleTest
    from sotdd.sketches.sketch import Sketch

EXAMPLES = o.examples(
    "sotdd check reference.parquet today.parquet",
    "sotdd check reference.parquet today.parquet --fail-above 0.1",
    "sotdd check reference.npz today.npz --p-value 0.01 --label-names match",
    "sotdd check reference.sotdd today.npz --fail-above 0.1 --json",
)

# The level of the decision where no other is asked for.
_LEVEL = 0.05


@dataclass(frozen=True)
class Outcome:
    """One thing that was checked: what was found, what would have been allowed, and how that reads."""

    criterion: str
    value: float | None
    limit: float
    failed: bool
    message: str


def check_command(
    reference: Annotated[str, typer.Argument(metavar="REFERENCE", help=o.SKETCH_TOO)],
    current: Annotated[str, typer.Argument(metavar="CURRENT", help="What may have drifted from it.")],
    fail_above: Annotated[
        float | None, typer.Option(metavar="X", help="Fail if the distance is more than this.")
    ] = None,
    p_value: Annotated[
        float | None,
        typer.Option(metavar="LEVEL", help="Fail if one source is ruled out at this level; 0.05 by default."),
    ] = None,
    n_permutations: o.Permutations = 999,
    max_points: o.MaxPoints = None,
    label_names: o.LabelNames = "ignore",
    features: o.Features = None,
    label: o.Label = None,
    n_projections: o.Projections = None,
    seed: o.Seed = None,
    p: o.Order = None,
    label_law: o.LabelLaw = None,
    scale: o.Scale = None,
    device: o.Device = "auto",
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Fail, with exit code 1, if a dataset has drifted from a reference.

    Without options that is decided by a permutation test at a level of 5 %: of 20
    datasets that have not drifted, one fails. --fail-above decides by the size of
    the drift instead, in units of the spread of the reference.
    """
    began = time.perf_counter()
    _refuse(fail_above, p_value)
    tests = p_value is not None or fail_above is None
    sides = [opened(source, features, label, quiet) for source in (reference, current)]
    _refuse_sketches(sides[0], sides[1], tests)
    bar = bar_wanted(quiet)
    drawing = {**o.given(n_projections=n_projections, seed=seed, label_law=label_law), **o.scaling(scale)}
    found = _distance(sides, drawing, o.given(p=p), device, bar)
    where = f"from {reference} to {current}"
    outcomes = [] if fail_above is None else [_by_limit(found, fail_above, where)]
    tested = None
    if tests:
        shuffling = {
            **o.given(seed=seed, label_law=label_law, max_points=max_points),
            **o.scaling(scale),
            **o.given(p=p),
        }
        tested = _tested(sides, n_permutations, bar, label_names=label_names, **shuffling)
        outcomes.append(_by_chance(tested, _LEVEL if p_value is None else p_value))
    drifted = any(outcome.failed for outcome in outcomes)
    if as_json:
        told = {"reference": reference, "current": current, "drifted": drifted}
        checks = [asdict(outcome) for outcome in outcomes]
        distance = {"distance": None if isinstance(found, OutOfRange) else found.to_dict()}
        print_json({**told, "checks": checks, **distance, **({} if tested is None else {"test": tested.to_dict()})})
    else:
        for outcome in outcomes:
            say(f"{'FAILED' if outcome.failed else 'passed'}  {outcome.message}", "red" if outcome.failed else "green")
        _say_how(found, where if fail_above is None else "", reference, time.perf_counter() - began, quiet)
    if drifted:
        raise typer.Exit(1)


def _say_how(found: Distance | OutOfRange, where: str, reference: str, seconds: float, quiet: bool) -> None:
    """How far it is, and by what that was measured, where the criteria have not said it."""
    far = f"{_far(found, where)}; " if where else ""
    if isinstance(found, OutOfRange):
        say_note(f"{far}{seconds:.1f} s", quiet)
        return
    for remark in found.remarks:
        say_note(remark, quiet)
    say_note(f"{far}{found.how}; the unit is the spread of {reference}; {seconds:.1f} s", quiet)


def _refuse(fail_above: float | None, p_value: float | None) -> None:
    if fail_above is not None and not 0 <= fail_above < math.inf:
        raise SotddError(f"--fail-above is {fail_above:g}: expected a distance, such as 0.1.")
    if p_value is not None and not 0 < p_value < 1:
        raise SotddError(f"--p-value is {p_value:g}: expected a number between 0 and 1, such as 0.05.")


def _refuse_sketches(reference: LabelledData | Sketch, current: LabelledData | Sketch, tests: bool) -> None:
    """A sketch has no points to shuffle; and only that of the reference brings units."""
    is_sketch = [hasattr(side, "quantiles") for side in (reference, current)]
    if tests and any(is_sketch):
        name = (reference if is_sketch[0] else current).name
        advice = "give the data, or --fail-above alone"
        raise SotddError(f"{name!r} is a sketch, which has no points to judge chance by: {advice}.")
    if is_sketch == [False, True]:
        advice = f"give the data of {current.name!r}, or sketch the reference too and this one --like it"
        raise SotddError(f"{current.name!r} is a sketch but the reference, whose units count, is not: {advice}.")


def _distance(
    sides: Sequence[Any], drawing: dict[str, Any], order: dict[str, Any], device: str, bar: bool
) -> Distance | OutOfRange:
    """The distance, through projections and in units that only the reference has a say in; or why it has none."""
    import sotdd

    if not any(isinstance(side, sotdd.Sketch) for side in sides):
        drawing = {"projections": sotdd.Projections.fit([sides[0]], **drawing)}
    one, other = sides
    try:
        return sotdd.distance(one, other, device=device, progress=bar, **drawing, **order)
    except OutOfRange as error:  # drift, however large, is drift
        return error


def _tested(sides: Sequence[Any], n_permutations: int, bar: bool, **settings: Any) -> TwoSampleTest:  # noqa: ANN401
    import sotdd

    reference, current = sides
    return sotdd.DriftReference.fit(reference, **settings).test(current, n_permutations=n_permutations, progress=bar)


def _by_limit(found: Distance | OutOfRange, limit: float, where: str) -> Outcome:
    if isinstance(found, OutOfRange):
        return Outcome("distance", None, limit, True, f"{_far(found, where)}, more than {limit:g}")
    failed = found.value > limit
    said = f"{_far(found, where)}, {'more than' if failed else 'at most'} {limit:g}"
    low, high = found.interval(0.95)
    if low <= limit <= high:
        said += f" (close: 95 % interval {low:.4g} to {high:.4g}, more projections would tell)"
    return Outcome("distance", found.value, limit, failed, said)


def _by_chance(tested: TwoSampleTest, level: float) -> Outcome:
    failed = tested.rejects(level)
    drift = f"drift at a level of {100 * level:g} %" if failed else f"no drift at a level of {100 * level:g} %"
    most = f", most by {tested.strongest}" if failed and tested.strongest is not None else ""
    said = f"{drift} (p = {tested.p_value:.3g}{most}): {100 * tested.p_value:.3g} % of shuffles of the two go as far"
    return Outcome("p_value", tested.p_value, level, failed, said)


def _far(found: Distance | OutOfRange, where: str) -> str:
    from sotdd.basics.text import with_error

    if isinstance(found, OutOfRange):
        return f"farther than can be measured {where}"
    return f"{with_error(found.value, found.stderr)} {where}"
