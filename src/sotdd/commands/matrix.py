"""The command ``sotdd matrix``."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sotdd.basics.errors import SotddError, require
from sotdd.basics.text import shown
from sotdd.commands import options as o
from sotdd.commands.matrix_table import legend, print_matrix
from sotdd.commands.option_names import in_options
from sotdd.commands.sources import as_text, opened, refuse_report
from sotdd.commands.terminal import bar_wanted, print_csv, print_json, say, say_note

if TYPE_CHECKING:
    from sotdd.inputs.data import LabelledData
    from sotdd.results.matrix import DistanceMatrix
    from sotdd.sketches.sketch import Sketch

EXAMPLES = o.examples(
    "sotdd matrix mnist.npz usps.npz photos/::image_size=28",
    "sotdd matrix data/*.parquet --label species --noise-floor",
    "sotdd matrix *.npz --report report.html",
    "sotdd matrix *.sotdd --csv > distances.csv",
)


def matrix_command(
    sources: Annotated[
        list[str], typer.Argument(metavar="A B ...", help=f"{o.SOURCE_HELP} Sketches (.sotdd) work too.")
    ],
    report: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Also write the result as a web page, which works offline.")
    ] = None,
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
    label_names: o.NamesInDistance = None,
    method: o.Method = "sotdd",
    max_points: o.SampledPoints = None,
    max_samples: o.MaxSamples = None,
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
    if report is not None:
        refuse_matrix_report(report)
    reading = o.reading(exclude, one_hot, dates, missing)
    datasets = [opened(source, features, label, quiet, reading) for source in sources]
    import sotdd
    from sotdd.results.distance import remarks_of

    settings = o.chosen(
        n_projections=n_projections, seed=seed, p=p, label_law=label_law, scale=scale, estimator=estimator,
        max_points=max_points, max_samples=max_samples, label_names=label_names,
    )  # fmt: skip
    bar = bar_wanted(quiet)
    matrix = sotdd.pairwise(datasets, method=method, noise_floor=noise_floor, device=device, progress=bar, **settings)
    if report is not None:
        texts = [as_text(source, features, label, reading) for source in sources]
        write_report(with_sources(matrix, texts), report, datasets if classes else None, bar)
    if as_json:
        print_json({**matrix.to_dict(), **({} if report is None else {"report": str(report)})})
    elif as_csv:
        print_csv(matrix.to_csv())
    else:
        errors = print_matrix(matrix, errors=True)
        for remark in remarks_of(matrix.distances.values()):
            say_note(in_options(remark), quiet)
        say_note(f"{legend(matrix, errors)}; {time.perf_counter() - began:.1f} s", quiet)
        if report is not None:
            say(f"wrote {shown(report)}", "bold")


def with_sources(matrix: DistanceMatrix, texts: list[str]) -> DistanceMatrix:
    """The same matrix with the sources of its datasets, which the Python code on the page shows."""
    from sotdd.results.matrix import Asked

    settings = {} if matrix.asked is None else matrix.asked.settings
    return replace(matrix, asked=Asked(dict(zip(matrix.names, texts, strict=True)), settings))


def refuse_matrix_report(path: Path) -> None:
    """Refuse a page that could not be written, or for which there is no Plotly, before anything is measured."""
    require("plotly", "a report", "'sotdd[report]'")
    refuse_report(path)


def write_report(matrix: DistanceMatrix, path: Path, datasets: list[LabelledData | Sketch] | None, bar: bool) -> None:
    """Write the page; classes are compared if s-OTDD was used and every dataset has its points."""
    import sotdd

    points = [data for data in datasets or () if isinstance(data, sotdd.LabelledData)]
    by_class = matrix.projections is not None and len(points) == len(matrix)
    named = dict(zip(matrix.names, points, strict=True)) if by_class else None
    sotdd.report(matrix, path, datasets=named, progress=bar)
