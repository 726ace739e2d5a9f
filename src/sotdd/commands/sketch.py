"""The commands ``sotdd sketch`` and ``sotdd update``."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sotdd.basics.errors import SotddError
from sotdd.basics.files import refuse_unwritable
from sotdd.basics.text import counted, one_line, shown
from sotdd.commands import options as o
from sotdd.commands.sources import opened_data
from sotdd.commands.terminal import bar_wanted, print_json, say, say_note

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sotdd.inputs.data import LabelledData
    from sotdd.projections.recipe import Projections
    from sotdd.sketches.levels import Levels
    from sotdd.sketches.sketch import Sketch

EXAMPLES = o.examples(
    "sotdd sketch train.npz -o train.sotdd",
    "sotdd sketch test.npz -o test.sotdd --like train.sotdd",
    "sotdd distance train.sotdd test.sotdd",
    "sotdd sketch monday.parquet -o week.sotdd --parts",
)

UPDATE_EXAMPLES = o.examples(
    "sotdd update week.sotdd tuesday.parquet",
    "sotdd update week.sotdd monday-next.parquet --forget monday.parquet",
    "sotdd check reference.sotdd week.sotdd",
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
    parts: Annotated[
        bool, typer.Option("--parts", help="Begin a window: rows can be added and taken out by sotdd update.")
    ] = False,
    features: o.Features = None,
    label: o.Label = None,
    exclude: o.Exclude = None,
    one_hot: o.OneHot = None,
    dates: o.Dates = False,
    missing: o.Missing = None,
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
    if parts and half:
        raise SotddError("--half is given with --parts, whose counts are not rounded: leave one of them out.")
    source = _opened(data, features, label, quiet, o.reading(exclude, one_hot, dates, missing))
    import sotdd
    from sotdd.sketches.levels import checked_levels
    from sotdd.sketches.making import sketch_opened

    projections, levels = _recipe(like, source, drawing)
    if n_quantiles is not None:
        levels = checked_levels(n_quantiles)
    named = _named(source, data)
    if parts:
        window = sotdd.SketchWindow(projections, n_quantiles=levels.count).add(named.name, named)
        window.save(output)
        made = window.finish(output.stem)
    else:
        made = sketch_opened(named, projections, levels, device, progress=bar_wanted(quiet))
        made.save(output, half=half)
    size = output.stat().st_size
    if as_json:
        print_json({"file": str(output), "bytes": size, **made.to_dict()})
        return
    _say_made(output, made, began, quiet)
    if parts:
        say_note(f"To add rows and take them out: sotdd update {shown(output)} OTHER --forget {named.name}", quiet)
    elif like is None:
        say_note(f"To compare it with another dataset: sotdd sketch OTHER -o OTHER.sotdd --like {shown(output)}", quiet)


def update_command(
    window: Annotated[Path, typer.Argument(metavar="FILE", help="A file that sotdd sketch --parts began.")],
    data: Annotated[
        list[str] | None, typer.Argument(metavar="SOURCE", help="Datasets to add, each as a part of its name.")
    ] = None,
    forget: Annotated[
        list[str] | None, typer.Option(metavar="PART", help="Take a part out, by its name; may be repeated.")
    ] = None,
    features: o.Features = None,
    label: o.Label = None,
    exclude: o.Exclude = None,
    one_hot: o.OneHot = None,
    dates: o.Dates = False,
    missing: o.Missing = None,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Add rows to a sketch that is kept in parts, and take parts out.

    A part is called what its file is called. A file that is there already is
    not counted twice: take the old part out in the same command.
    """
    import sotdd

    began = time.perf_counter()
    kept = sotdd.SketchWindow.load(window)
    reading = o.reading(exclude, one_hot, dates, missing)
    for name in forget or []:
        kept.forget(name)
    for one in data or []:
        source = _named(_opened(one, features, label, quiet, reading), one)
        if source.name in kept.parts:
            raise SotddError(
                f"there is a part {source.name!r} in {shown(window)} already: add --forget {source.name} to replace it."
            )
        kept.add(source.name, source)
    if not kept.n_points:
        raise SotddError(f"nothing would be left in {shown(window)}: keep a part, or add a dataset.")
    made = kept.finish(window.stem)
    if data or forget:
        kept.save(window)
    if as_json:
        parts = {name: part.n_points for name, part in kept.parts.items()}
        print_json({"file": str(window), "bytes": window.stat().st_size, "parts": parts, **made.to_dict()})
        return
    _say_made(window, made, began, quiet)
    for name, part in kept.parts.items():
        say(f"  {shown(name)}: {counted(part.n_points, 'point')}")


def _opened(
    data: str, features: str | None, label: str | None, quiet: bool, reading: Mapping[str, Any]
) -> LabelledData:
    """Open a dataset, and say what was left out of it, since a sketch does not."""
    source = opened_data(data, "", features, label, quiet, reading)
    for remark in source.remarks:
        say_note(one_line(remark), quiet)
    return source


def _named(source: LabelledData, data: str) -> LabelledData:
    """A dataset by the name of its file, unless it has a name of its own."""
    return source if source.name != data else replace(source, name=Path(data.partition("::")[0]).name)


def _say_made(output: Path, made: Sketch, began: float, quiet: bool) -> None:
    size = output.stat().st_size
    say(f"{shown(output)}: {repr(made).partition(': ')[2].rstrip(')')}", "bold")
    on_disk = f"{size / 1e6:.2g} MB" if size >= 1e6 else f"{size / 1e3:.3g} kB"
    say_note(f"{on_disk}, {time.perf_counter() - began:.1f} s", quiet)


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
    return projections_of(known), Levels(QUANTILES) if known.exact else known.levels
