"""The commands ``sotdd distance``, ``matrix``, ``rank`` and ``demo``, and their tables."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sotdd.basics.errors import SotddError, require
from sotdd.basics.text import shown, with_error
from sotdd.commands import options as o
from sotdd.commands.sources import as_text, opened, refuse_report, sizes_by_line, sizes_of
from sotdd.commands.terminal import (
    bar_wanted,
    console,
    print_csv,
    print_json,
    print_table,
    say,
    say_note,
    table_of,
    working_on,
)

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from sotdd.inputs.data import LabelledData
    from sotdd.results.matrix import DistanceMatrix
    from sotdd.results.ranking import Ranked
    from sotdd.sketches.sketch import Sketch

DISTANCE_EXAMPLES = o.examples(
    "sotdd distance train.parquet test.parquet",
    "sotdd distance photos/::image_size=28 digits.npz --noise-floor",
    "sotdd distance a.csv b.csv --label kind --rel-tol 0.01",
    "sotdd distance table.csv::label=species other.csv::label=kind --json",
)
MATRIX_EXAMPLES = o.examples(
    "sotdd matrix mnist.npz usps.npz photos/::image_size=28",
    "sotdd matrix data/*.parquet --label species --noise-floor",
    "sotdd matrix *.npz --report report.html",
    "sotdd matrix *.sotdd --csv > distances.csv",
)
RANK_EXAMPLES = o.examples(
    "sotdd rank mine.npz data/*.npz",
    "sotdd rank mine.csv::label=kind a.parquet b.parquet --noise-floor",
    "sotdd rank mine.sotdd catalog/*.sotdd --json",
)
DEMO_EXAMPLES = o.examples("sotdd demo", "sotdd demo --report demo.html", "sotdd demo --n-projections 5000 --json")

# Marks distances that are no larger than chance gives; and what legends say about it.
_NOISE_MARK = " ~"
_WITHIN_NOISE = "~ within noise, as near as two samples of the same data"


def distance_command(
    a: o.A,
    b: o.B,
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
    rel_tol: o.RelTol = None,
    noise_floor: o.NoiseFloor = False,
    label_names: o.LabelNames = None,
    method: o.Method = "sotdd",
    max_points: o.SampledPoints = None,
    device: o.Device = "auto",
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Measure how far apart two labelled datasets are. Either may be a sketch (.sotdd)."""
    began = time.perf_counter()
    reading = o.reading(exclude, one_hot, dates, missing)
    datasets = [opened(source, features, label, quiet, reading) for source in (a, b)]
    import sotdd

    settings = o.chosen(
        n_projections=n_projections, seed=seed, p=p, label_law=label_law, scale=scale, estimator=estimator,
        rel_tol=rel_tol, max_points=max_points, label_names=label_names,
    )  # fmt: skip
    result = sotdd.distance(
        *datasets, method=method, noise_floor=noise_floor, device=device, progress=bar_wanted(quiet), **settings
    )
    if as_json:
        print_json({"a": a, "b": b, **result.to_dict()})
        return
    say_note(sizes_by_line(datasets), quiet)
    say(repr(result), "bold")
    low, high = result.interval(0.95)
    interval = "" if math.isnan(low) else f"95 % interval {low:.4g} to {high:.4g} over the choice of projections, "
    say_note(f"{interval}{time.perf_counter() - began:.1f} s", quiet)


def matrix_command(
    sources: Annotated[
        list[str], typer.Argument(metavar="A B ...", help=f"{o.SOURCE_HELP} Sketches (.sotdd) work too.")
    ],
    report: o.Report = None,
    classes: Annotated[
        bool,
        typer.Option(help="On the page, also compare every pair class by class, which takes several times as long."),
    ] = True,
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
    label_names: o.LabelNames = None,
    method: o.Method = "sotdd",
    max_points: o.SampledPoints = None,
    device: o.Device = "auto",
    as_csv: o.Csv = False,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Measure the distance between every two of several datasets, projecting each only once."""
    began = time.perf_counter()
    if len(sources) < 2:
        raise SotddError("only one dataset is named: name at least two to compare.")
    if as_csv and as_json:
        raise SotddError("--csv and --json are both given: choose one.")
    _refuse_matrix_report(report)
    reading = o.reading(exclude, one_hot, dates, missing)
    datasets = [opened(source, features, label, quiet, reading) for source in sources]
    import sotdd
    from sotdd.results.distance import remarks_of
    from sotdd.results.matrix import Asked

    settings = o.chosen(
        n_projections=n_projections, seed=seed, p=p, label_law=label_law, scale=scale, estimator=estimator,
        max_points=max_points, label_names=label_names,
    )  # fmt: skip
    bar = bar_wanted(quiet)
    matrix = sotdd.pairwise(datasets, method=method, noise_floor=noise_floor, device=device, progress=bar, **settings)
    if report is not None:
        texts = {
            name: as_text(source, features, label, reading) for name, source in zip(matrix.names, sources, strict=True)
        }  # which the Python code on the page shows
        asked = Asked(texts, {} if matrix.asked is None else matrix.asked.settings)
        _write_report(replace(matrix, asked=asked), report, datasets if classes else [], bar)
    if as_json:
        print_json({**matrix.to_dict(), **({} if report is None else {"report": str(report)})})
        return
    if as_csv:
        print_csv(matrix.to_csv())
        return
    errors = _print_matrix(matrix, errors=True)
    for remark in remarks_of(matrix.distances.values()):
        say_note(remark, quiet)
    say_note(f"{_matrix_legend(matrix, errors)}; {time.perf_counter() - began:.1f} s", quiet)
    if report is not None:
        say(f"wrote {shown(report)}", "bold")


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
        max_points=max_points,
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
    print_table(*(table_of(_rank_rows(lines, sizes), left=(1,), styles=styles) for sizes in (True, False)))
    for remark in order.remarks:
        say_note(remark, quiet)
    say_note(f"{_rank_legend(lines)}; {time.perf_counter() - began:.1f} s", quiet)


def demo_command(
    report: o.Report = None,
    n_projections: o.Projections = None,
    seed: o.Seed = None,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Compare handwritten digits with variants of them, and with pictures of stripes."""
    began = time.perf_counter()
    _refuse_matrix_report(report)
    with working_on("Loading (the first run on a machine compiles for a few seconds) …", quiet):
        import sotdd
        from sotdd import demo

        datasets = {name: sotdd.open_dataset(source, name=name) for name, source in demo.datasets().items()}
    bar = bar_wanted(quiet)
    matrix = sotdd.pairwise(datasets, progress=bar, **o.chosen(n_projections=n_projections, seed=seed))
    if report is not None:
        _write_report(matrix, report, list(datasets.values()), bar)
    if as_json:
        print_json({**matrix.to_dict(), **({} if report is None else {"report": str(report)})})
        return
    if not quiet:
        say("Six datasets", "bold")
        for name, meaning in demo.STORY.items():
            say(f"  {name:<12} {meaning}")
        say("\nDistances (s-OTDD)", "bold")
    _print_matrix(matrix, errors=False)
    if quiet:
        return
    say("\nHow to read it", "bold")
    for sentence in demo.reading(matrix):
        console().print(f"  {sentence}")
    say_note(f"\n{len(matrix.distances)} distances in {time.perf_counter() - began:.1f} s, no model trained.")
    if report is not None:
        say(f"wrote {shown(report)}", "bold")


def _refuse_matrix_report(path: Path | None) -> None:
    """Refuse a page that could not be written, or for which there is no Plotly, before anything is measured."""
    if path is not None:
        require("plotly", "a report", "'sotdd[report]'")
        refuse_report(path)


def _write_report(matrix: DistanceMatrix, path: Path, datasets: Sequence[LabelledData | Sketch], bar: bool) -> None:
    """Write the page; classes are compared if s-OTDD was used and every dataset has its points."""
    import sotdd

    points = [data for data in datasets if isinstance(data, sotdd.LabelledData)]
    by_class = matrix.projections is not None and len(points) == len(matrix)
    named = dict(zip(matrix.names, points, strict=True)) if by_class else None
    sotdd.report(matrix, path, datasets=named, progress=bar)


def _print_matrix(matrix: DistanceMatrix, *, errors: bool) -> bool:
    """Print the first layout that fits: with errors or without, columns by name or by number.

    Returns whether errors are shown.
    """
    layouts = [(named, shown) for shown in ([True, False] if errors else [False]) for named in (True, False)]
    return layouts[print_table(*(_matrix_table(matrix, errors=shown, named=named) for named, shown in layouts))][1]


def _matrix_table(matrix: DistanceMatrix, *, errors: bool, named: bool) -> Table:
    """Distances, with near ones standing out; columns are named, or numbered like the rows."""
    from rich.table import Table
    from rich.text import Text

    size = range(len(matrix))
    cells, itself = _matrix_cells(matrix, errors), Text("·", style="dim")
    names = [shown(name) for name in matrix.names]
    rows = names if named else [f"{number}  {name}" for number, name in enumerate(names, 1)]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("", no_wrap=True)
    for number, name in enumerate(names, 1):
        table.add_column(Text(name if named else str(number)), justify="right", no_wrap=True)
    for i in size:
        table.add_row(Text(rows[i]), *(itself if i == j else cells[min(i, j), max(i, j)] for j in size))
    return table


def _matrix_cells(matrix: DistanceMatrix, errors: bool) -> dict[tuple[int, int], Text]:
    """The text of every pair (i, j) with i < j."""
    from rich.text import Text

    largest = max(distance.value for distance in matrix.distances.values()) or 1.0
    no_mark = " " * len(_NOISE_MARK) if any(distance.within_noise for distance in matrix.distances.values()) else ""
    form = ".3f" if 0.1 <= largest < 1000 else ".3g"
    cells = {}
    for pair, distance in matrix.distances.items():
        text = with_error(distance.value, distance.stderr) if errors else f"{distance.value:{form}}"
        mark = _NOISE_MARK if distance.within_noise else no_mark
        near = distance.value < 0.3 * largest
        cells[pair] = Text(text + mark, style="green" if near else "")
    return cells


def _matrix_legend(matrix: DistanceMatrix, errors: bool) -> str:
    """One line that says how to read the table."""
    text = next(iter(matrix.distances.values())).how
    largest = max(distance.stderr for distance in matrix.distances.values())
    if math.isfinite(largest):
        text += f"; {'±' if errors else f'± up to {largest:.2g},'} one standard error over the choice of projections"
    if any(distance.within_noise for distance in matrix.distances.values()):
        text += f"; {_WITHIN_NOISE}"
    return text


def _rank_rows(lines: Sequence[Ranked], sizes: bool) -> list[list[str]]:
    """The cells of the table, header first; intervals and noise floors only where there are some."""
    distances = [line.distance for line in lines]
    no_tie = " " if any(line.tied for line in lines) else ""
    no_mark = " " * len(_NOISE_MARK) if any(distance.within_noise for distance in distances) else ""
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
        columns["noise floor"] = [f"{floor:.4g}{_NOISE_MARK if within else no_mark}" for floor, within in floors]
    return [list(columns), *map(list, zip(*columns.values(), strict=True))]


def _rank_legend(lines: Sequence[Ranked]) -> str:
    first = lines[0].distance
    parts = [first.how]
    if first.n_projections is not None:
        parts.append("± one standard error over the choice of projections")
    if all(line.distance.excess is not None for line in lines):
        parts.append("beyond chance: the distance less what samples of these sizes give by chance")
    if any(line.tied for line in lines):
        parts.append("= tied: the error of the projections does not tell them apart")
    if any(line.distance.within_noise for line in lines):
        parts.append(_WITHIN_NOISE)
    return "; ".join(parts)
