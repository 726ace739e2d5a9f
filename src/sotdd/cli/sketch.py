"""The command ``sotdd sketch``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sotdd.basics.files import is_remote
from sotdd.basics.text import say_count, show
from sotdd.cli import options as o
from sotdd.cli.options import open_data
from sotdd.cli.terminal import say
from sotdd.inputs.sources import SourceText

if TYPE_CHECKING:
    from sotdd.inputs.data import LabelledData
    from sotdd.projections.projections import Projections
    from sotdd.sketches.quantiles import Levels

EXAMPLES = o.examples(
    "sotdd sketch train.npz -o train.sotdd",
    "sotdd sketch test.npz -o test.sotdd --like train.sotdd",
    "sotdd distance train.sotdd test.sotdd",
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
) -> None:
    """Keep what comparisons need of a dataset in one small file, without its points."""
    o.refuse_output(output, o.SKETCH, "data")
    if like is not None:
        asked.refuse_drawing("together with --like, which brings its own")
    source = open_data(data, asked, "to sketch")
    if source.name == data:
        source = replace(source, name=Path(SourceText.parse(data).path).name)
    from sotdd.sketches.sketching import sketch_opened

    projections, levels = _find_recipe(like, source, asked.drawing)
    made = sketch_opened(source, projections, levels, asked.measuring.get("device", "auto"), progress=asked.bar)
    made.save(output)
    sizes = f"{say_count(made.n_points, 'point')}, {say_count(len(made.classes), 'class', 'classes')}"
    kept = "all values" if made.exact else say_count(made.n_quantiles, "quantile")
    advice = f"to compare it with another: sotdd sketch OTHER -o OTHER.sotdd --like {show(output)}"
    asked.print(  # with what was left out of the data, which no sketch says
        {"file": output, **made.to_dict(), "remarks": [remark.to_dict() for remark in source.remarks]},
        lambda: say(f"{show(output)}: {sizes}, {say_count(made.n_projections, 'projection')} × {kept}", "bold"),
        remarks=source.remarks,
        legend=advice if like is None else "",
    )


def _find_recipe(like: str | None, source: LabelledData, drawing: dict[str, Any]) -> tuple[Projections, Levels]:
    """The projections, and which quantiles to keep."""
    import sotdd
    from sotdd.sketches.quantiles import QUANTILES, Levels
    from sotdd.sketches.sketching import require_projections

    if like is None:
        return sotdd.Projections.fit([source], **drawing), Levels(QUANTILES)
    if Path(like).is_dir() or (is_remote(like) and not o.is_made(like)):
        catalog = sotdd.Catalog(like)
        return catalog.projections, catalog.levels
    known = sotdd.Sketch.load(like)
    return require_projections(known), Levels(QUANTILES) if known.exact else known.levels
