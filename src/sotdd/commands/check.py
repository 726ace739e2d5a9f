"""The command check: a dataset that may have drifted from a reference."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sotdd.commands import options as o
from sotdd.commands.sources import opened
from sotdd.commands.terminal import bar_wanted, print_json, say, say_note
from sotdd.errors import SotddError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sotdd.data import LabelledData
    from sotdd.result import Distance
    from sotdd.sketches.sketch import Sketch
    from sotdd.two_sample import TwoSampleTest

EXAMPLES = o.examples(
    "sotdd check reference.parquet today.parquet --fail-above 0.1",
    "sotdd check reference.npz today.npz --p-value 0.01",
    "sotdd check reference.sotdd today.npz --fail-above 0.1 --json",
)


@dataclass(frozen=True)
class Outcome:
    """One thing that was checked: what was found, what would have been allowed, and how that reads."""

    criterion: str
    value: float
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
        typer.Option(metavar="LEVEL", help="Fail if one source is ruled out at this level, such as 0.05."),
    ] = None,
    n_permutations: o.Permutations = 999,
    max_points: o.MaxPoints = None,
    features: o.Features = None,
    label: o.Label = None,
    n_projections: o.Projections = None,
    seed: o.Seed = None,
    p: o.Order = None,
    label_law: o.LabelLaw = None,
    scale: o.Scale = None,
    noise_floor: o.NoiseFloor = False,
    device: o.Device = "auto",
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Fail, with exit code 1, if a dataset has drifted from a reference.

    Drift is what --fail-above or --p-value say; without them, what is beyond noise.
    Distances are in units of the spread of the reference, so one limit serves
    for everything that is checked against it.
    """
    began = time.perf_counter()
    _refuse(fail_above, p_value)
    by_noise = fail_above is None and p_value is None
    needs_points = by_noise or p_value is not None or noise_floor
    sides = [opened(source, features, label, quiet) for source in (reference, current)]
    _refuse_sketches(sides[0], sides[1], needs_points)
    bar = bar_wanted(quiet)
    drawing = {**o.given(n_projections=n_projections, seed=seed, label=label_law), **o.scaling(scale)}
    order = o.given(p=p)
    found = _distance(sides, drawing, order, by_noise or noise_floor, device, bar)
    where = f"from {reference} to {current}"
    outcomes = [] if fail_above is None else [_by_limit(found, fail_above, where)]
    tested = None
    if p_value is not None:
        shuffling = {**o.given(seed=seed, label=label_law, max_points=max_points), **o.scaling(scale), **order}
        tested = _tested(sides, n_permutations=n_permutations, device=device, progress=bar, **shuffling)
        outcomes.append(_by_chance(tested, p_value))
    if by_noise:
        outcomes.append(_by_noise(found, where))
    drifted = any(outcome.failed for outcome in outcomes)
    if as_json:
        told = {"reference": reference, "current": current, "drifted": drifted}
        checks = [asdict(outcome) for outcome in outcomes]
        tests = {} if tested is None else {"test": tested.to_dict()}
        print_json({**told, "checks": checks, "distance": found.to_dict(), **tests})
    else:
        for outcome in outcomes:
            say(f"{'FAILED' if outcome.failed else 'passed'}  {outcome.message}", "red" if outcome.failed else "green")
        for remark in found.remarks:
            say_note(remark, quiet)
        apart = f"{_far(found, where)}; " if fail_above is None and p_value is not None else ""
        how = f"{apart}{found.how}"
        floor = "" if found.noise is None else f"; noise floor {found.noise.value:.4g}"
        took = f"{time.perf_counter() - began:.1f} s"
        say_note(f"{how}{floor}; the unit is the spread of {reference}; {took}", quiet)
    if drifted:
        raise typer.Exit(1)


def _refuse(fail_above: float | None, p_value: float | None) -> None:
    if fail_above is not None and not 0 <= fail_above < math.inf:
        raise SotddError(f"--fail-above is {fail_above:g}: expected a distance, such as 0.1.")
    if p_value is not None and not 0 < p_value < 1:
        raise SotddError(f"--p-value is {p_value:g}: expected a number between 0 and 1, such as 0.05.")


def _refuse_sketches(reference: LabelledData | Sketch, current: LabelledData | Sketch, needs_points: bool) -> None:
    """A sketch has no points to shuffle; and only that of the reference brings units."""
    is_sketch = [hasattr(side, "quantiles") for side in (reference, current)]
    if needs_points and any(is_sketch):
        name = (reference if is_sketch[0] else current).name
        advice = "give the data, or --fail-above alone"
        raise SotddError(f"{name!r} is a sketch, which has no points to judge chance by: {advice}.")
    if is_sketch == [False, True]:
        advice = f"give the data of {current.name!r}, or sketch the reference too and this one --like it"
        raise SotddError(f"{current.name!r} is a sketch but the reference, whose units count, is not: {advice}.")


def _distance(
    sides: Sequence[Any], drawing: dict[str, Any], order: dict[str, Any], noise_floor: bool, device: str, bar: bool
) -> Distance:
    """The distance, through projections and in units that only the reference has a say in."""
    import sotdd

    if not any(isinstance(side, sotdd.Sketch) for side in sides):
        drawing = {"projections": sotdd.Projections.fit([sides[0]], **drawing)}
    one, other = sides
    return sotdd.distance(one, other, noise_floor=noise_floor, device=device, progress=bar, **drawing, **order)


def _tested(sides: Sequence[Any], **settings: Any) -> TwoSampleTest:  # noqa: ANN401  # what sotdd.test takes
    import sotdd

    return sotdd.test(*sides, **settings)


def _by_limit(found: Distance, limit: float, where: str) -> Outcome:
    failed = found.value > limit
    said = f"{_far(found, where)}, {'more than' if failed else 'at most'} {limit:g}"
    low, high = found.interval(0.95)
    if low <= limit <= high:
        said += f" (close: 95 % interval {low:.4g} to {high:.4g}, more projections would tell)"
    return Outcome("distance", found.value, limit, failed, said)


def _by_noise(found: Distance, where: str) -> Outcome:
    limit = found.noise.limit(0.95) if found.noise is not None else math.nan
    chance = f"{'within' if found.within_noise else 'beyond'} noise: 95 % of shuffles of the two stay below {limit:.4g}"
    return Outcome("noise", found.value, limit, not found.within_noise, f"{_far(found, where)}, {chance}")


def _by_chance(tested: TwoSampleTest, level: float) -> Outcome:
    failed = tested.rejects(level)
    said = f"p = {tested.p_value:.3g}, {'at most' if failed else 'more than'} {level:g}: "
    said += f"{100 * tested.p_value:.3g} % of shuffles of the two are as far apart"
    return Outcome("p_value", tested.p_value, level, failed, said)


def _far(found: Distance, where: str) -> str:
    from sotdd.result import with_error

    return f"{with_error(found.value, found.stderr)} {where}"
