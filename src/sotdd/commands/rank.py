"""The command rank."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Annotated

import typer

from sotdd.commands import options as o
from sotdd.commands.matrix_table import NOISE_MARK
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
    candidates: Annotated[list[str], typer.Argument(metavar="CANDIDATE ...", help="What to bring into order.")],
    features: o.Features = None,
    label: o.Label = None,
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
    """Bring datasets into order, the nearest to a target first: which source to start from."""
    began = time.perf_counter()
    datasets = [opened(source, features, label, quiet) for source in (target, *candidates)]
    import sotdd

    drawing = {**o.given(n_projections=n_projections, seed=seed, label_law=label_law), **o.scaling(scale)}
    settings = {**drawing, **o.given(p=p, estimator=estimator), **o.sampling(max_points, max_samples)}
    order = sotdd.rank(
        datasets[0], datasets[1:], method=method, noise_floor=noise_floor, device=device,
        progress=bar_wanted(quiet), **settings,
    )  # fmt: skip
    if as_json:
        print_json({**order.to_dict(), "target": target})
        return
    lines = order.lines
    say_note(f"Nearest to {target}: {sizes_of(datasets[0])}", quiet)
    styles = ["bold" if line.rank == 1 else "" for line in lines]
    print_table(*(table_of(_rows(lines, sizes), left=(1,), styles=styles) for sizes in (True, False)))
    for remark in order.remarks:
        say_note(remark, quiet)
    say_note(f"{_legend(lines)}; {time.perf_counter() - began:.1f} s", quiet)


def _rows(lines: Sequence[Ranked], sizes: bool) -> list[list[str]]:
    """Texts of the table, with a header; intervals and noise floors only where there are some."""
    from sotdd.basics.text import with_error

    distances = [line.distance for line in lines]
    no_tie = " " if any(line.tied for line in lines) else ""
    no_mark = " " * len(NOISE_MARK) if any(found.within_noise for found in distances) else ""
    columns = {
        "rank": [f"{line.rank}{'=' if line.tied else no_tie}" for line in lines],
        "candidate": [line.name for line in lines],
    }
    if sizes:
        columns["points"] = [f"{found.n_points[1]:,}" for found in distances]
        columns["classes"] = [f"{len(found.classes[1]):,}" for found in distances]
    columns["distance"] = [with_error(found.value, found.stderr) for found in distances]
    if any(math.isfinite(found.stderr) for found in distances):
        columns["95 % interval"] = ["{:.4g} to {:.4g}".format(*found.interval(0.95)) for found in distances]
    if all(found.excess is not None for found in distances):
        columns["beyond sizes"] = [f"{max(0.0, found.excess or 0.0) ** (1 / found.p):.3g}" for found in distances]
    floors = [(found.noise.value, found.within_noise) for found in distances if found.noise is not None]
    if floors:
        columns["noise floor"] = [f"{floor:.4g}{NOISE_MARK if within else no_mark}" for floor, within in floors]
    return [list(columns), *map(list, zip(*columns.values(), strict=True))]


def _legend(lines: Sequence[Ranked]) -> str:
    first = lines[0].distance
    said = [first.how]
    if first.n_projections is not None:
        said.append("± and interval over their choice")
    if any(line.tied for line in lines):
        said.append("= tied, not told apart by noise")
    if any(line.distance.within_noise for line in lines):
        said.append(f"{NOISE_MARK.strip()} within noise, as near as two samples of the same data")
    return "; ".join(said)
