"""The command ``sotdd sketch``."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sotdd.basics.errors import SotddError
from sotdd.basics.files import refuse_unwritable
from sotdd.basics.text import shown
from sotdd.commands import options as o
from sotdd.commands.sources import opened_data
from sotdd.commands.terminal import bar_wanted, print_json, say, say_note

if TYPE_CHECKING:
    from sotdd.inputs.data import LabelledData
    from sotdd.projections.recipe import Projections
    from sotdd.sketches.levels import Levels

EXAMPLES = o.examples(
    "sotdd sketch train.npz -o train.sotdd",
    "sotdd sketch test.npz -o test.sotdd --like train.sotdd",
    "sotdd distance train.sotdd test.sotdd",
)


def sketch_command(
    data: Annotated[str, typer.Argument(metavar="SOURCE", help=o.SOURCE_HELP)],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write; its name ends in .sotdd.")],
    like: Annotated[
        Path | None,
        typer.Option(help="A sketch or a catalog to compare with later: its projections and scaling are used."),
    ] = None,
    n_quantiles: Annotated[
        int | None,
        typer.Option(help="How many numbers to keep of each projection.", show_default="384, or as in --like"),
    ] = None,
    half: Annotated[bool, typer.Option("--half", help="Store 16-bit values, which halves the file.")] = False,
    features: o.Features = None,
    label: o.Label = None,
    n_projections: o.Projections = None,
    seed: o.Seed = None,
    label_law: o.LabelLaw = None,
    scale: o.Scale = None,
    device: o.Device = "auto",
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Keep what comparisons need of a dataset in one small file, without its points."""
    began = time.perf_counter()
    if output.suffix != ".sotdd":
        raise SotddError(f"--output is {str(output)!r}: call it {(output.stem or 'data') + '.sotdd'!r}.")
    refuse_unwritable(output)
    drawing = o.chosen(n_projections=n_projections, seed=seed, label_law=label_law, scale=scale)
    if like is not None and drawing:
        raise SotddError(
            f"{', '.join(drawing)} cannot be chosen together with --like, which brings its own: leave that out."
        )
    if data.endswith(".sotdd"):
        raise SotddError(f"{data!r} is already a sketch: name a dataset.")
    source = opened_data(data, "", features, label, quiet)
    from sotdd.sketches.levels import checked_levels
    from sotdd.sketches.making import sketch_opened

    projections, levels = _recipe(like, source, drawing)
    if n_quantiles is not None:
        levels = checked_levels(n_quantiles, levels.spacing)
    named = source if source.name != data else replace(source, name=Path(data.partition("::")[0]).name)
    made = sketch_opened(named, projections, levels, device, progress=bar_wanted(quiet))
    made.save(output, half=half)
    size = output.stat().st_size
    if as_json:
        print_json({"file": str(output), "bytes": size, **made.to_dict()})
        return
    say(f"{shown(output)}: {repr(made).partition(': ')[2].rstrip(')')}", "bold")
    on_disk = f"{size / 1e6:.2g} MB" if size >= 1e6 else f"{size / 1e3:.3g} kB"
    say_note(f"{on_disk}, {time.perf_counter() - began:.1f} s", quiet)
    if like is None:
        say_note(f"To compare it with another dataset: sotdd sketch OTHER -o OTHER.sotdd --like {shown(output)}", quiet)


def _recipe(like: Path | None, source: LabelledData, drawing: dict[str, Any]) -> tuple[Projections, Levels]:
    """The projections, and which quantiles to keep unless the user says how many."""
    import sotdd
    from sotdd.sketches.levels import QUANTILES, Levels
    from sotdd.sketches.making import projections_of

    if like is None:
        return sotdd.Projections.fit([source], **drawing), Levels(QUANTILES)
    if like.is_dir():
        catalog = sotdd.Catalog(like)
        return catalog.projections, catalog.levels
    known = sotdd.Sketch.load(like)
    return projections_of(known), Levels(QUANTILES, known.spacing) if known.exact else known.levels
