"""The command that makes a sketch file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sotdd.errors import SotddError
from sotdd.terminal import bar_wanted, print_json, say

if TYPE_CHECKING:
    from sotdd.projections.recipe import Projections

EXAMPLES = (
    "Example: sotdd sketch train.npz -o train.sotdd\n\n"
    "then: sotdd sketch test.npz -o test.sotdd --like train.sotdd\n\n"
    "and: sotdd distance train.sotdd test.sotdd"
)
_QUANTILES = 512


def sketch_command(
    context: typer.Context,
    data: Annotated[str, typer.Argument(help="A dataset, as in sotdd distance.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write, called .sotdd.")],
    like: Annotated[
        Path | None,
        typer.Option(
            help="A sketch, or a catalog, to take projections and scaling from: only then can they be compared."
        ),
    ] = None,
    n_projections: Annotated[int | None, typer.Option(help="How many projections.", show_default="1000")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the projections.", show_default="0")] = None,
    n_quantiles: Annotated[
        int | None, typer.Option(help="Numbers kept of each projection.", show_default="512, or as in --like")
    ] = None,
    half: Annotated[bool, typer.Option("--half", help="Half the size: values in 16 bits.")] = False,
    features: Annotated[str | None, typer.Option(help="Name of the features in the file.", show_default="X")] = None,
    label: Annotated[str | None, typer.Option(help="Name of the labels in the file.", show_default="y")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or such as cuda:1 (with torch), or auto.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no notes beside the result.")] = False,
) -> None:
    """Keep of a dataset what comparisons need, in one small file without its points."""
    began = time.perf_counter()
    if output.suffix != ".sotdd":
        raise SotddError(f"the output is {str(output)!r}: call it {output.with_suffix('.sotdd').name!r}.")
    drawing = {"n_projections": n_projections, "seed": seed}
    given = {name: value for name, value in drawing.items() if value is not None}
    if like is not None and given:
        raise SotddError(f"{', '.join(given)} cannot be chosen with --like, which brings its own: leave that out.")
    source = context.obj(data, features, label, quiet)
    import sotdd

    if isinstance(source, sotdd.Sketch):
        raise SotddError(f"{data!r} is a sketch already: name a dataset.")
    projections, kept = _recipe(like, source, given)
    made = sotdd.sketch(
        source,
        projections,
        n_quantiles=kept if n_quantiles is None else n_quantiles,
        name=Path(data.partition("::")[0]).name,
        device=device,
        progress=bar_wanted(quiet),
    )
    made.save(output, half=half)
    size = output.stat().st_size
    if as_json:
        print_json({"file": str(output), "bytes": size, **made.to_dict()})
        return
    say(f"{output}: {repr(made).partition(': ')[2].rstrip(')')}", "bold")
    if not quiet:
        say(f"{size / 1e6:.2g} MB, {time.perf_counter() - began:.1f} s", "dim")
        if like is None:
            say(f"Sketch what you will compare it with by: sotdd sketch OTHER -o OTHER.sotdd --like {output}", "dim")


def _recipe(like: Path | None, source: Any, given: dict[str, Any]) -> tuple[Projections, int]:  # noqa: ANN401
    """Projections, and how many quantiles, by default."""
    import sotdd
    from sotdd.sketches.making import drawable

    if like is None:
        return sotdd.Projections.fit([source], **given), _QUANTILES
    if like.is_dir():
        catalog = sotdd.Catalog(like)
        return catalog.projections, catalog.n_quantiles
    known = sotdd.Sketch.load(like)
    return drawable(known), _QUANTILES if known.exact else known.n_quantiles
