"""The command ``sotdd reference``, which makes what ``sotdd check`` tests batches against."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sotdd.basics.errors import SotddError
from sotdd.basics.files import refuse_unwritable
from sotdd.basics.text import counted, listed, one_line, shown
from sotdd.commands import options as o
from sotdd.commands.option_names import in_options
from sotdd.commands.sources import as_text, opened_data
from sotdd.commands.terminal import print_json, say, say_note, working_on

if TYPE_CHECKING:
    from sotdd.measure.drift import DriftReference

EXAMPLES = o.examples(
    "sotdd reference train.parquet -o train.ref",
    "sotdd reference train.csv -o train.ref --label churned --missing drop",
    "sotdd check train.ref monday.csv tuesday.csv",
)

SUFFIX = ".ref"


def reference_command(
    data: Annotated[str, typer.Argument(metavar="SOURCE", help=o.SOURCE_HELP)],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write; its name ends in .ref.")],
    label_names: o.LabelNames = "ignore",
    max_points: Annotated[
        int | None, typer.Option(help="Keep a sample of this many points for the test.", show_default="20000")
    ] = None,
    features: o.Features = None,
    label: o.Label = None,
    exclude: o.Exclude = None,
    one_hot: o.OneHot = None,
    dates: o.Dates = False,
    missing: o.Missing = None,
    n_projections: o.FewProjections = None,
    seed: o.Seed = None,
    p: o.Order = None,
    label_law: o.LabelLaw = None,
    scale: o.Scale = None,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Keep a dataset as a reference, which sotdd check tests batches against.

    The file holds projected values and labels, no features, and remembers which
    columns and labels were read, so that batches are read in the same way.
    """
    began = time.perf_counter()
    if output.suffix != SUFFIX:
        raise SotddError(f"--output is {str(output)!r}: call it {(output.stem or 'train') + SUFFIX!r}.")
    refuse_unwritable(output)
    reading = o.reading(exclude, one_hot, dates, missing)
    source = opened_data(data, "to test batches against", features, label, quiet, reading)
    import sotdd
    from sotdd.measure.drift_reading import Reading

    settings = o.chosen(
        n_projections=n_projections, seed=seed, p=p, label_law=label_law, scale=scale, max_points=max_points
    )
    with working_on(f"Projecting {data} …", quiet):
        made = sotdd.DriftReference.fit(source, label_names=label_names, with_sketch=True, **settings)  # type: ignore[arg-type]  # checked there
    made = replace(made, name=data, reading=Reading.of(as_text(data, features, label, reading), source))
    made.save(output)
    size = output.stat().st_size
    if as_json:
        print_json({"file": str(output), "bytes": size, **_described(made)})
        return
    points, classes = counted(made.n_points, "point"), counted(len(made.classes), "class", "classes")
    say(f"{shown(output)}: {points} in {classes}, {counted(made.projections.n_features, 'feature')}", "bold")
    if made.projections.columns is not None:
        say_note(f"columns: {listed(made.projections.columns, most=12)}", quiet)
    for remark in made.remarks:
        say_note(one_line(in_options(remark)), quiet)
    say_note(f"{size / 1e6:.2g} MB, {time.perf_counter() - began:.1f} s", quiet)
    say_note(f"To check a batch: sotdd check {shown(output)} BATCH", quiet)


def _described(made: DriftReference) -> dict[str, object]:
    """A reference as JSON values."""
    columns = made.projections.columns
    return {
        "name": made.name,
        "n_points": made.n_points,
        "n_classes": len(made.classes),
        "n_features": made.projections.n_features,
        "columns": None if columns is None else list(columns),
        "n_projections": made.projections.n_projections,
        "fingerprint": made.projections.fingerprint,
        "remarks": list(made.remarks),
    }
