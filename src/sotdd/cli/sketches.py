"""The commands that keep sketches: ``sotdd sketch`` in a file, ``sotdd catalog ...`` in a folder to be searched."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

import sotdd
from sotdd.basics.errors import SotddError
from sotdd.basics.files import is_remote
from sotdd.basics.remarks import Remarks
from sotdd.basics.text import quote, say_count, show
from sotdd.cli import options as o
from sotdd.cli.compare import print_ranking
from sotdd.cli.options import open_data, open_source
from sotdd.cli.terminal import make_table, print_table, say
from sotdd.inputs.sources import parse_source

SKETCH_EXAMPLES = o.examples(
    "sotdd sketch train.npz -o train.sotdd",
    "sotdd sketch test.npz -o test.sotdd --like train.sotdd",
    "sotdd distance train.sotdd test.sotdd",
)


@o.takes("reading", "drawing", "device", "max_points")
def sketch_command(
    data: Annotated[str, typer.Argument(metavar="SOURCE", help=o.SOURCE_HELP)],
    output: Annotated[str, typer.Option("--output", "-o", help="The file to write; its name ends in .sotdd.")],
    asked: o.Request,
    like: Annotated[
        str | None,
        typer.Option(help="A sketch or a catalog to compare with later: its projections and scaling are used."),
    ] = None,
) -> None:
    """Keep what comparisons need of a dataset in one small file, without its points."""
    o.refuse_output(output, o.SKETCH, "data")
    if like is not None:
        asked.refuse_drawing("together with --like, which brings its own")
    source = open_data(data, asked, "to sketch", asked.sample)
    if source.name == data:
        source = replace(source, name=Path(parse_source(data)[0]).name)
    projections, n_quantiles = _find_recipe(like, source, asked.drawing)
    device = asked.measuring.get("device", "auto")
    made = sotdd.sketch(source, projections, n_quantiles=n_quantiles, device=device, progress=asked.bar)
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


def _find_recipe(
    like: str | None, source: sotdd.LabelledData, drawing: dict[str, Any]
) -> tuple[sotdd.Projections, int]:
    """The projections, and how many quantiles to keep."""
    from sotdd.sketches.quantiles import QUANTILES
    from sotdd.sketches.sketching import require_projections

    if like is None:
        return sotdd.Projections.fit([source], **drawing), QUANTILES
    if Path(like).is_dir() or (is_remote(like) and not o.is_made(like)):
        catalog = sotdd.Catalog(like)
        return catalog.projections, catalog.levels.count
    known = sotdd.Sketch.load(like)
    return require_projections(known), QUANTILES if known.exact else known.n_quantiles


# ------------------------------------------------------------------ catalogs

catalog_app: typer.Typer = typer.Typer(
    name="catalog",
    help="Keep named sketches in a folder, and search them for the datasets nearest to yours.",
    epilog="Start with: sotdd catalog add my_catalog train train.npz",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

Folder = Annotated[str, typer.Argument(metavar="CATALOG", help="The folder of the catalog, or its URL.")]
Where = Annotated[
    str | None,
    typer.Option(help="Only entries that meet this SQL condition on name, n_points, n_classes, added or metadata."),
]


@catalog_app.command(
    "add",
    epilog=o.examples(
        "sotdd catalog add shop march march.npz --meta year=2024 --meta source=web",
        "sotdd catalog add shop april april.sotdd",
    ),
)
@o.takes("reading", "drawing", "device", "max_points")
def add_command(
    path: Folder,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the new entry.")],
    source: Annotated[str, typer.Argument(metavar="SOURCE", help=o.SKETCH_TOO)],
    asked: o.Request,
    meta: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Metadata to keep with the entry; can be given several times."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an entry of this name.")] = False,
) -> None:
    """Add a dataset to a catalog, as a sketch. The first one makes the catalog, and sets its projections."""
    catalog = sotdd.Catalog(path)
    is_new = catalog.recipe is None
    if not is_new:
        asked.refuse_drawing("any more: the first dataset of a catalog sets the projections and scale of all others")
    metadata = dict(_read_pair(text) for text in meta or [])
    made, remarks = _sketch(catalog, source, asked)
    catalog.add_many({name: made}, {name: metadata}, overwrite=overwrite)
    sizes = f"{say_count(made.n_points, 'point')}, {say_count(len(made.classes), 'class', 'classes')}"
    same = f"the same {say_count(made.n_projections, 'projection')} and the same scale"
    asked.print(
        {"catalog": path, **catalog.entry(name).to_dict(), "remarks": [remark.to_dict() for remark in remarks]},
        lambda: say(f"added {quote(name)} to {show(path)}: {sizes}", "bold"),
        remarks=remarks,
        legend=f"New catalog: datasets added later use {same}" if is_new else None,
    )


@catalog_app.command(
    "search",
    epilog=o.examples("sotdd catalog search shop new.npz -k 5 --where \"year > 2020 AND source = 'web'\""),
)
@o.takes("reading", "device", "csv", "max_points")
def search_command(
    path: Folder,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help=o.SKETCH_TOO)],
    asked: o.Request,
    k: Annotated[int, typer.Option("-k", help="How many datasets to show.")] = 10,
    where: Where = None,
) -> None:
    """Show the datasets of a catalog that are nearest to yours, and which are within noise."""
    catalog = _find_catalog(path)
    query, remarks = _sketch(catalog, source, asked)
    order = catalog.nearest(query, k, where=where)
    about = f"Nearest to {show(source)}, of {_say_count(len(catalog))} in {show(path)}:"
    print_ranking(order, asked, {"catalog": path, "source": source}, about, remarks)


@catalog_app.command("list", epilog=o.examples('sotdd catalog list shop --where "n_points > 1000" --json'))
@o.takes("csv")
def list_command(path: Folder, asked: o.Request, where: Where = None) -> None:
    """List the entries of a catalog."""
    catalog = _find_catalog(path)
    entries = catalog.entries(where)
    keys = list(dict.fromkeys(key for entry in entries for key in entry.metadata))
    header = ["name", "points", "classes", "added (UTC)", *keys]
    rows: list[list[Any]] = [
        [entry.name, entry.n_points, entry.n_classes, f"{entry.added:%Y-%m-%d %H:%M}", *map(entry.metadata.get, keys)]
        for entry in entries
    ]

    def write() -> None:
        cells = [
            [name, f"{points:,}", f"{classes:,}", *("" if one is None else str(one) for one in rest)]
            for name, points, classes, *rest in rows
        ]
        if cells:
            print_table(make_table([header, *cells], left=(0, *range(3, len(header)))))

    asked.print(
        {"catalog": path, "entries": [entry.to_dict() for entry in entries]},
        write,
        rows=[dict(zip(header, row, strict=True)) for row in rows],
        legend=f"{_say_count(len(entries))}{'' if where is None else f' of {len(catalog):,}'} in {show(path)}",
    )


@catalog_app.command("remove", epilog=o.examples("sotdd catalog remove shop march"))
@o.takes()
def remove_command(
    path: Folder, name: Annotated[str, typer.Argument(metavar="NAME", help="The name of an entry.")], asked: o.Request
) -> None:
    """Remove one entry."""
    catalog = _find_catalog(path)
    catalog.remove(name)
    left = len(catalog)
    asked.print(
        {"catalog": path, "removed": name, "entries": left},
        lambda: say(f"removed {quote(name)} from {show(path)}; {_say_count(left)} left", "bold"),
    )


def _find_catalog(path: str) -> sotdd.Catalog:
    catalog = sotdd.Catalog(path)
    if catalog.recipe is None:
        raise SotddError(f"there is no catalog at {path!r}: check the path, or create one with sotdd catalog add.")
    return catalog


def _sketch(catalog: sotdd.Catalog, source: str, asked: o.Request) -> tuple[sotdd.Sketch, Remarks]:
    """A source as a sketch that fits the catalog, with what to know of its data; the first brings projections."""
    data = open_source(source, asked)
    if isinstance(data, sotdd.Sketch):
        return data, data.remarks
    how = {"name": source, "device": asked.measuring.get("device", "auto"), "progress": asked.bar}
    if catalog.recipe is not None:
        return catalog.sketch(data, **how), data.remarks
    return sotdd.sketch(data, sotdd.Projections.fit([data], **asked.drawing), **how), data.remarks


def _read_pair(text: str) -> tuple[str, Any]:
    """Split KEY=VALUE; a value that is a JSON number, text, true, false or null is read as that, any other as text."""
    key, equals, value = text.partition("=")
    if not equals:
        raise SotddError(f"cannot read --meta {text!r}: expected KEY=VALUE, such as year=2024.")
    try:
        parsed = json.loads(value)
    except ValueError:
        return key, value
    return key, value if isinstance(parsed, (list, dict)) else parsed


def _say_count(number: int) -> str:
    return say_count(number, "entry", "entries")
