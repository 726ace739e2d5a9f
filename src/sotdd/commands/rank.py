"""The command ``sotdd rank``."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Annotated

import typer

from sotdd.basics.text import shown
from sotdd.commands import options as o
from sotdd.commands.matrix_table import NOISE_MARK, WITHIN_NOISE
from sotdd.commands.option_names import in_options
from sotdd.commands.sources import opened, sizes_of
from sotdd.commands.terminal import bar_wanted, print_json, print_table, say_note, table_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sotdd.results.ranking import Ranked

EXAMPLES = o.examples(
    "sotdd rank mine.npz data/*.npz",
    "sotdd rank mine.csv::label=kind a.parquet b.parquet --noise-floor",
    "sotdd rank mine.sotdd catalog/*.sotdd --json",
)


def rank_command(
    target: Annotated[str, typer.Argument(metavar="TARGET", help=o.SKETCH_TOO)],
    candidates: Annotated[list[str], typer.Argument(metavar="CANDIDATE ...", help="The datasets to rank.")],
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
    estimator: o.Estimator = None,
    noise_floor: o.NoiseFloor = False,
    method: o.Method = "sotdd",
    max_points: o.SampledPoints = None,
    max_samples: o.MaxSamples = None,
    device: o.Device = "auto",
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Rank datasets by their distance from a target, nearest first: which one to start from."""
    began = time.perf_counter()
    reading = o.reading(exclude, one_hot, dates, missing)
    datasets = [opened(source, features, label, quiet, reading) for source in (target, *candidates)]
    import sotdd

    settings = o.chosen(
        n_projections=n_projections, seed=seed, p=p, label_law=label_law, scale=scale, estimator=estimator,
        max_points=max_points, max_samples=max_samples,
    )  # fmt: skip
    order = sotdd.rank(
        datasets[0], datasets[1:], method=method, noise_floor=noise_floor, device=device,
        progress=bar_wanted(quiet), **settings,
    )  # fmt: skip
    if as_json:
        print_json({**order.to_dict(), "target": target})
        return
    lines = order.lines
    say_note(f"Nearest to {shown(target)}: {sizes_of(datasets[0])}", quiet)
    styles = ["bold" if line.rank == 1 else "" for line in lines]
    print_table(*(table_of(_rows(lines, sizes), left=(1,), styles=styles) for sizes in (True, False)))
    for remark in order.remarks:
        say_note(in_options(remark), quiet)
    say_note(f"{_legend(lines)}; {time.perf_counter() - began:.1f} s", quiet)


def _rows(lines: Sequence[Ranked], sizes: bool) -> list[list[str]]:
    """The cells of the table, header first; intervals and noise floors only where there are some."""
    from sotdd.basics.text import with_error

    distances = [line.distance for line in lines]
    no_tie = " " if any(line.tied for line in lines) else ""
    no_mark = " " * len(NOISE_MARK) if any(distance.within_noise for distance in distances) else ""
    columns = {
        "rank": [f"{line.rank}{'=' if line.tied else no_tie}" for line in lines],
        "candidate": [line.name for line in lines],
    }
    if sizes:
        columns["points"] = [f"{distance.n_points[1]:,}" for distance in distances]
        columns["classes"] = [f"{len(distance.classes[1]):,}" for distance in distances]
    columns["distance"] = [with_error(distance.value, distance.stderr) for distance in distances]
    if any(math.isfinite(distance.stderr) for distance in distances):
        columns["95 % interval"] = ["{:.4g} to {:.4g}".format(*distance.interval(0.95)) for distance in distances]
    if all(distance.excess is not None for distance in distances):
        columns["beyond chance"] = [
            f"{max(0.0, distance.excess or 0.0) ** (1 / distance.p):.3g}" for distance in distances
        ]
    floors = [(distance.noise.value, distance.within_noise) for distance in distances if distance.noise is not None]
    if floors:
        columns["noise floor"] = [f"{floor:.4g}{NOISE_MARK if within else no_mark}" for floor, within in floors]
    return [list(columns), *map(list, zip(*columns.values(), strict=True))]


def _legend(lines: Sequence[Ranked]) -> str:
    first = lines[0].distance
    parts = [first.how]
    if first.n_projections is not None:
        parts.append("± one standard error over the choice of projections")
    if all(line.distance.excess is not None for line in lines):
        parts.append("beyond chance: the distance less what samples of these sizes give by chance")
    if any(line.tied for line in lines):
        parts.append("= tied: the error of the projections does not tell them apart")
    if any(line.distance.within_noise for line in lines):
        parts.append(WITHIN_NOISE)
    return "; ".join(parts)
