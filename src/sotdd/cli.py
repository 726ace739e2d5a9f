"""The command line: parse, call, print.

Nothing heavy is imported before a command runs, so that ``--help`` answers at once.
"""

from __future__ import annotations

import io
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sotdd import cli_catalog, cli_sketch
from sotdd.errors import SotddError
from sotdd.terminal import bar_wanted as _bar_wanted
from sotdd.terminal import console as _console
from sotdd.terminal import print_json as _print_json

if TYPE_CHECKING:
    from rich.console import Console

    from sotdd.data import LabelledData
    from sotdd.matrix import DistanceMatrix
    from sotdd.sketches.sketch import Sketch

app = typer.Typer(
    name="sotdd",
    help="How far apart are labelled datasets? The sliced optimal transport dataset distance.",
    epilog="Start with: sotdd demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from sotdd import __version__

        typer.echo(f"sotdd {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and leave.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    context.obj = _source  # for the commands of other files


@app.command("distance", epilog="Example: sotdd distance train.parquet test.csv::label=species --json")
def distance_command(
    a: Annotated[
        str,
        typer.Argument(
            help="A file (.npz, .npy, .csv, .parquet, .arrow), a sketch (.sotdd), a folder of images or one saved by "
            "datasets (hf:DIR); options follow as in FILE::features=NAME,label=NAME."
        ),
    ],
    b: Annotated[str, typer.Argument(help="Another.")],
    features: Annotated[str | None, typer.Option(help="Name of the features in both; several columns as a+b.")] = None,
    label: Annotated[str | None, typer.Option(help="Name of the labels in both; '' for one class.")] = None,
    n_projections: Annotated[
        int | None, typer.Option(help="How many projections; more is more exact.", show_default="1000")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the projections, or of samples.", show_default="0")] = None,
    p: Annotated[float | None, typer.Option("--p", help="Order of transport, from 1.", show_default="2")] = None,
    method: Annotated[
        str, typer.Option(help="sotdd, or a peer: otdd, otdd-gaussian, wte, chsw, frechet, sw, mmd.")
    ] = "sotdd",
    label_law: Annotated[
        str | None, typer.Option(help="How classes enter: moments or quantiles.", show_default="moments")
    ] = None,
    max_samples: Annotated[
        int | None, typer.Option(help="Sample so many points of each dataset, for methods that cannot take all.")
    ] = None,
    noise_floor: Annotated[
        bool, typer.Option("--noise-floor", help="Also say what two samples of the same data would give.")
    ] = False,
    device: Annotated[str, typer.Option(help="cpu, cuda or such as cuda:1 (with torch), or auto.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no notes beside the result.")] = False,
) -> None:
    """Say how far apart two labelled datasets are."""
    began = time.perf_counter()
    datasets = [_source(source, features, label, quiet) for source in (a, b)]
    import sotdd

    asked = {"n_projections": n_projections, "seed": seed, "p": p, "max_samples": max_samples, "label": label_law}
    settings: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    matrix = sotdd.pairwise(
        datasets, method=method, noise_floor=noise_floor, device=device, progress=_bar_wanted(quiet), **settings
    )
    result = matrix.distances[0, 1]
    if as_json:
        _print_json({"a": a, "b": b, **result.to_dict()})
        return
    console = _console()
    for data in datasets:
        console.print(_described(data), style="dim", highlight=False, markup=False)
    console.print(repr(result), style="bold", highlight=False, markup=False)
    last = f"{time.perf_counter() - began:.1f} s"
    low, high = result.interval(0.95)
    if low <= high:  # neither is NaN
        last = f"95 % interval {low:.4g} to {high:.4g} over the choice of projections, {last}"
        if not result.reliable:
            last = f"{last}; rough: {result.unreliable}"
    console.print(last, style="dim", highlight=False)


# The commands that live in files of their own.
app.command("sketch", epilog=cli_sketch.EXAMPLES)(cli_sketch.sketch_command)
app.add_typer(cli_catalog.app)


@app.command("demo", epilog="Example: sotdd demo --n-projections 5000")
def demo_command(
    n_projections: Annotated[int, typer.Option(help="How many projections; more is more exact.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the projections.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the matrix as JSON.")] = False,
) -> None:
    """Compare handwritten digits with their relatives and with a stranger."""
    began = time.perf_counter()
    console = _console()
    if sys.stderr.isatty():
        typer.echo("Measuring (the first run on a machine compiles for some seconds) …", err=True)
    import sotdd
    from sotdd import demo

    matrix = sotdd.pairwise(demo.datasets(), n_projections=n_projections, seed=seed, progress=_bar_wanted(False))
    if as_json:
        _print_json(matrix.to_dict())
        return
    console.print("[bold]Six datasets[/bold]")
    for name, meaning in demo.STORY.items():
        console.print(f"  [bold]{name:<12}[/bold] {meaning}", highlight=False)
    console.print()
    _print_matrix(console, matrix)
    console.print()
    for name in matrix.names:
        console.print(f"  nearest to [bold]{name:<12}[/bold] {matrix.nearest(name)}", highlight=False)
    console.print()
    console.print("[bold]How to read it[/bold]")
    for sentence in demo.reading(matrix):
        console.print(f"  {sentence}", highlight=False)
    took = time.perf_counter() - began
    console.print(
        f"\n{len(matrix.distances)} distances in {took:.1f} s, no model trained.", style="dim", highlight=False
    )


def main() -> None:
    """Run the command line; errors of input are one line and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without ± shows something else, rather than failing
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except SotddError as error:
        typer.echo(f"sotdd: {error}", err=True)
        raise SystemExit(2) from None
    except OSError as error:
        typer.echo(f"sotdd: cannot write the result ({error}).", err=True)
        raise SystemExit(2) from None


def _open(source: str, features: str | None, label: str | None, quiet: bool) -> LabelledData:
    import logging

    from sotdd.inputs import open_dataset

    named: dict[str, Any] = {} if label is None else {"label": label or None}
    columns = features.split("+") if features and "+" in features else features
    notes = logging.getLogger("sotdd.inputs")
    handler = logging.StreamHandler(sys.stderr)
    before = notes.level
    if not quiet:
        notes.addHandler(handler)
        notes.setLevel(logging.INFO)
    try:
        return open_dataset(source, features=columns, **named)
    finally:
        notes.removeHandler(handler)
        notes.setLevel(before)


def _source(source: str, features: str | None, label: str | None, quiet: bool) -> LabelledData | Sketch:
    """What a word on the command line stands for: a sketch file, or a dataset."""
    from sotdd.sketches.sketch import Sketch

    if source.endswith(".sotdd"):
        return replace(Sketch.load(source), name=source)
    return _open(source, features, label, quiet)


def _described(data: LabelledData | Sketch) -> str:
    classes = "1 class" if len(data.classes) == 1 else f"{len(data.classes):,} classes"
    features = data.recipe["n_features"] if hasattr(data, "recipe") else data.n_features
    return f"{data.name}: {data.n_points:,} points, {features:,} features, {classes}"


def _print_matrix(console: Console, matrix: DistanceMatrix) -> None:
    """Draw the matrix as a table; nearer is brighter."""
    from rich.table import Table

    table = Table(title="Distances (s-OTDD)", title_justify="left", box=None, pad_edge=False)
    table.add_column("")
    for name in matrix.names:
        table.add_column(name, justify="right")
    values = matrix.values
    largest = float(values.max()) or 1.0
    for i, name in enumerate(matrix.names):
        cells = [
            "·" if i == j else f"[{_shade(values[i, j] / largest)}]{values[i, j]:.3f}[/]" for j in range(len(matrix))
        ]
        table.add_row(name, *cells)
    console.print(table, soft_wrap=False)


def _shade(share: float) -> str:
    return "bold green" if share < 0.1 else "green" if share < 0.3 else "yellow" if share < 0.6 else "red"
