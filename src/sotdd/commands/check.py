"""The command ``sotdd check``, which looks for drift from a reference."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sotdd.basics.errors import OutOfRange, SotddError
from sotdd.basics.text import one_line, shown
from sotdd.commands import options as o
from sotdd.commands.option_names import in_options
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

# The level of the test unless --p-value sets another.
_LEVEL = 0.05


@dataclass(frozen=True)
class Outcome:
    """One criterion: its value, the limit, whether it failed, and that in words."""

    criterion: str
    value: float | None
    limit: float
    failed: bool
    message: str


def check_command(
    reference: Annotated[str, typer.Argument(metavar="REFERENCE", help=o.SKETCH_TOO)],
    current: Annotated[str, typer.Argument(metavar="CURRENT", help="The dataset that may have drifted from it.")],
    fail_above: Annotated[
        float | None, typer.Option(metavar="X", help="Fail if the distance is more than this.")
    ] = None,
    p_value: Annotated[
        float | None,
        typer.Option(metavar="LEVEL", help="Fail if a permutation test finds drift at this level; 0.05 by default."),
    ] = None,
    n_permutations: o.Permutations = 999,
    max_points: o.MaxPoints = None,
    label_names: o.LabelNames = "ignore",
    features: o.Features = None,
    label: o.Label = None,
    exclude: o.Exclude = None,
    one_hot: o.OneHot = None,
    dates: o.Dates = False,
    missing: o.Missing = None,
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

    Without options, a permutation test decides at a level of 5 %: of 20 datasets
    that have not drifted, about one fails. Between sketches, which have no points
    to shuffle, what halves of each differ by decides at that level. --fail-above
    decides by the size of the drift instead, in units of the spread of the reference.
    """
    began = time.perf_counter()
    _refuse_limits(fail_above, p_value)
    reading = o.reading(exclude, one_hot, dates, missing)
    sides = [opened(source, features, label, quiet, reading) for source in (reference, current)]
    has_sketches = _refuse_sketches(sides[0], sides[1], p_value is not None)
    is_tested = p_value is not None or (fail_above is None and not has_sketches)
    bar = bar_wanted(quiet)
    common = o.chosen(seed=seed, label_law=label_law, scale=scale)
    order = o.chosen(p=p)
    distance = _distance(sides, common | o.chosen(n_projections=n_projections), order, device, bar)
    between = f"from {shown(reference)} to {shown(current)}"
    outcomes = [] if fail_above is None else [_by_limit(distance, fail_above, between)]
    if has_sketches and fail_above is None:
        outcomes.append(_by_noise(distance, between))
    test = None
    if is_tested:
        settings = {**common, **order, **o.chosen(max_points=max_points)}
        test = _test(sides, n_permutations, bar, label_names=label_names, **settings)
        outcomes.append(_by_chance(test, _LEVEL if p_value is None else p_value))
    drifted = any(outcome.failed for outcome in outcomes)
    if as_json:
        result: dict[str, Any] = {"reference": reference, "current": current, "drifted": drifted}
        result["checks"] = [asdict(outcome) for outcome in outcomes]
        result["distance"] = None if isinstance(distance, OutOfRange) else distance.to_dict()
        print_json(result if test is None else {**result, "test": test.to_dict()})
    else:
        for outcome in outcomes:
            say(f"{'FAILED' if outcome.failed else 'passed'}  {outcome.message}", "red" if outcome.failed else "green")
        shown_already = fail_above is not None or has_sketches
        _say_how(distance, "" if shown_already else between, reference, time.perf_counter() - began, quiet)
    if drifted:
        raise typer.Exit(1)


def _say_how(distance: Distance | OutOfRange, between: str, reference: str, seconds: float, quiet: bool) -> None:
    """Print the distance, unless an outcome shows it already, and how it was measured."""
    far = f"{_far(distance, between)}; " if between else ""
    if isinstance(distance, OutOfRange):
        say_note(f"{far}{seconds:.1f} s", quiet)
        return
    for remark in distance.remarks:
        say_note(one_line(in_options(remark)), quiet)
    say_note(f"{far}{distance.how}; the unit is the spread of {shown(reference)}; {seconds:.1f} s", quiet)


def _refuse_limits(fail_above: float | None, p_value: float | None) -> None:
    if fail_above is not None and not 0 <= fail_above < math.inf:
        raise SotddError(f"--fail-above is {fail_above:g}: expected a distance, such as 0.1.")
    if p_value is not None and not 0 < p_value < 1:
        raise SotddError(f"--p-value is {p_value:g}: expected a number between 0 and 1, such as 0.05.")


def _refuse_sketches(reference: LabelledData | Sketch, current: LabelledData | Sketch, is_tested: bool) -> bool:
    """A sketch has no points to shuffle, and only one of the reference sets the unit; returns whether there is one."""
    is_sketch = [hasattr(side, "quantiles") for side in (reference, current)]
    if is_tested and any(is_sketch):
        name = (reference if is_sketch[0] else current).name
        advice = "give the data, or leave --p-value out"
        raise SotddError(f"{name!r} is a sketch, which has no points to shuffle: {advice}.")
    if is_sketch == [False, True]:
        advice = f"give the data of {current.name!r}, or sketch the reference, and then this one --like it"
        raise SotddError(f"{current.name!r} is a sketch but the reference, which sets the unit, is not: {advice}.")
    return any(is_sketch)


def _distance(
    sides: Sequence[Any], drawing: dict[str, Any], order: dict[str, Any], device: str, bar: bool
) -> Distance | OutOfRange:
    """The distance, with projections and unit from the reference alone; or the error, if it is too far to measure."""
    import sotdd

    if not any(isinstance(side, sotdd.Sketch) for side in sides):
        drawing = {"projections": sotdd.Projections.fit([sides[0]], **drawing)}
    one, other = sides
    try:
        return sotdd.distance(one, other, device=device, progress=bar, **drawing, **order)
    except OutOfRange as error:  # too far to measure is still drift
        return error


def _test(sides: Sequence[Any], n_permutations: int, bar: bool, **settings: Any) -> TwoSampleTest:  # noqa: ANN401
    import sotdd

    reference, current = sides
    return sotdd.DriftReference.fit(reference, **settings).test(current, n_permutations=n_permutations, progress=bar)


def _by_limit(distance: Distance | OutOfRange, limit: float, between: str) -> Outcome:
    if isinstance(distance, OutOfRange):
        return Outcome("distance", None, limit, True, f"{_far(distance, between)}, more than {limit:g}")
    failed = distance.value > limit
    message = f"{_far(distance, between)}, {'more than' if failed else 'at most'} {limit:g}"
    low, high = distance.interval(0.95)
    if low <= limit <= high:
        message += f" (close: 95 % interval {low:.4g} to {high:.4g}, use more projections to be sure)"
    return Outcome("distance", distance.value, limit, failed, message)


def _by_noise(distance: Distance | OutOfRange, between: str) -> Outcome:
    """Between sketches: whether samples of one source, of these sizes, are often as far apart."""
    if isinstance(distance, OutOfRange):
        return Outcome("noise", None, math.nan, True, f"{_far(distance, between)}, beyond all noise")
    if distance.noise is None:
        raise SotddError("these sketches do not know how far apart halves of their data are: decide by --fail-above.")
    failed, limit = not distance.within_noise, distance.noise.limit()
    than = "farther than" if failed else "no farther than"
    message = f"{_far(distance, between)}, {than} 95 % of samples of one source would be ({limit:.3g})"
    return Outcome("noise", distance.value, limit, failed, message)


def _by_chance(test: TwoSampleTest, level: float) -> Outcome:
    failed = test.rejects(level)
    drift = f"drift at a level of {100 * level:g} %" if failed else f"no drift at a level of {100 * level:g} %"
    most = f", most by {test.strongest}" if failed and test.strongest is not None else ""
    message = f"{drift} (p = {test.p_value:.3g}{most}): {100 * test.p_value:.3g} % of shuffles are as far apart"
    return Outcome("p_value", test.p_value, level, failed, message)


def _far(distance: Distance | OutOfRange, between: str) -> str:
    from sotdd.basics.text import with_error

    if isinstance(distance, OutOfRange):
        return f"too far to measure {between}"
    return f"{with_error(distance.value, distance.stderr)} {between}"
