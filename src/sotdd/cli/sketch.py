"""The commands ``sotdd sketch`` and ``sotdd update``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sotdd.basics.errors import SotddError
from sotdd.basics.files import find_size, is_remote
from sotdd.basics.remarks import Remark
from sotdd.basics.text import say_count, show
from sotdd.cli import options as o
from sotdd.cli.options import open_data, say_quantiles
from sotdd.cli.terminal import say
from sotdd.inputs.sources import SourceText

if TYPE_CHECKING:
    from sotdd.inputs.data import LabelledData
    from sotdd.projections.recipe import Projections
    from sotdd.sketches.quantiles import Levels
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


@o.takes("reading", "drawing", "device")
def sketch_command(
    data: Annotated[str, typer.Argument(metavar="SOURCE", help=o.SOURCE_HELP)],
    output: Annotated[str, typer.Option("--output", "-o", help="The file to write; its name ends in .sotdd.")],
    asked: o.Asked,
    like: Annotated[
        str | None,
        typer.Option(help="A sketch or a catalog to compare with later: its projections and scaling are used."),
    ] = None,
    n_quantiles: Annotated[
        int | None,
        typer.Option(help="How many numbers to keep of each projection.", show_default="384, or as in --like"),
    ] = None,
    parts: Annotated[
        bool, typer.Option("--parts", help="Begin a window: rows can be added and taken out by sotdd update.")
    ] = False,
) -> None:
    """Keep what comparisons need of a dataset in one small file, without its points."""
    o.refuse_output(output, o.SKETCH, "data")
    if like is not None:
        asked.refuse_drawing("together with --like, which brings its own")
    if data.endswith(o.SKETCH):
        raise SotddError(f"{data!r} is already a sketch: name a dataset.")
    source = _open_named(data, asked)
    import sotdd
    from sotdd.sketches.quantiles import check_quantiles
    from sotdd.sketches.sketching import sketch_opened

    projections, levels = _find_recipe(like, source, asked.drawing)
    if n_quantiles is not None:
        levels = check_quantiles(n_quantiles)
    if parts:
        window = sotdd.SketchWindow(projections, n_quantiles=levels.count).add(source.name, source)
        window.save(output)
        made = window.finish(Path(output).stem)
    else:
        made = sketch_opened(source, projections, levels, asked.measuring.get("device", "auto"), progress=asked.bar)
        made.save(output)
    advice = f"to compare it with another: sotdd sketch OTHER -o OTHER.sotdd --like {show(output)}"
    if parts:
        advice = f"to add rows and take them out: sotdd update {show(output)} OTHER --forget {source.name}"
    _print_made(output, made, source.remarks, asked, advice=advice if parts or like is None else None)


@o.takes("reading")
def update_command(
    window: Annotated[str, typer.Argument(metavar="FILE", help="A file that sotdd sketch --parts began.")],
    asked: o.Asked,
    data: Annotated[
        list[str] | None, typer.Argument(metavar="SOURCE", help="Datasets to add, each as a part of its name.")
    ] = None,
    forget: Annotated[
        list[str] | None, typer.Option(metavar="PART", help="Take a part out, by its name; may be repeated.")
    ] = None,
) -> None:
    """Add rows to a sketch that is kept in parts, and take parts out.

    A part is called what its file is called. A file that is there already is
    not counted twice: take the old part out in the same command.
    """
    import sotdd

    kept = sotdd.SketchWindow.load(window)
    for name in forget or []:
        kept.forget(name)
    remarks: list[Remark] = []
    for one in data or []:
        source = _open_named(one, asked)
        remarks += [remark.of(source.name) for remark in source.remarks]
        if source.name in kept.parts:
            raise SotddError(
                f"there is a part {source.name!r} in {show(window)} already: add --forget {source.name} to replace it."
            )
        kept.add(source.name, source)
    if not kept.n_points:
        raise SotddError(f"nothing would be left in {show(window)}: keep a part, or add a dataset.")
    made = kept.finish(Path(window).stem)
    if data or forget:
        kept.save(window)
    _print_made(window, made, remarks, asked, {name: part.n_points for name, part in kept.parts.items()})


def _open_named(data: str, asked: o.Asked) -> LabelledData:
    """A dataset by the name of its file, unless it has one of its own."""
    source = open_data(data, asked, "to sketch")
    return source if source.name != data else replace(source, name=Path(SourceText.parse(data).path).name)


def _print_made(
    file: str,
    made: Sketch,
    remarks: Sequence[Remark],
    asked: o.Asked,
    parts: Mapping[str, int] | None = None,
    advice: str | None = None,
) -> None:
    """Print what a file holds, and what was left out of its data, which no sketch says."""
    size = find_size(file)
    numbers = {"file": file, "bytes": size, **({} if parts is None else {"parts": parts}), **made.to_dict()}

    def write() -> None:
        sizes = f"{say_count(made.n_points, 'point')}, {say_count(len(made.classes), 'class', 'classes')}"
        say(f"{show(file)}: {sizes}, {say_quantiles(made)}", "bold")
        for name, points in (parts or {}).items():
            say(f"  {show(name)}: {say_count(points, 'point')}")

    on_disk = f"{size / 1e6:.2g} MB" if size >= 1e6 else f"{size / 1e3:.3g} kB"
    numbers["remarks"] = [remark.to_dict() for remark in remarks]
    asked.print(numbers, write, remarks=remarks, legend="; ".join(filter(None, (advice, on_disk))))


def _find_recipe(like: str | None, source: LabelledData, drawing: dict[str, Any]) -> tuple[Projections, Levels]:
    """The projections, and which quantiles to keep unless the user says how many."""
    import sotdd
    from sotdd.sketches.quantiles import QUANTILES, Levels
    from sotdd.sketches.sketching import require_projections

    if like is None:
        return sotdd.Projections.fit([source], **drawing), Levels(QUANTILES)
    if Path(like).is_dir() or (is_remote(like) and not like.endswith(o.SKETCH)):
        catalog = sotdd.Catalog(like)
        return catalog.projections, catalog.levels
    known = sotdd.Sketch.load(like)
    return require_projections(known), Levels(QUANTILES) if known.exact else known.levels
