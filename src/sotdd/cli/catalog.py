"""The commands ``sotdd catalog ...``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sotdd.basics.errors import SotddError
from sotdd.basics.text import quote, say_count, show
from sotdd.cli import options as o
from sotdd.cli.compare import print_ranking
from sotdd.cli.sources import note_remarks, open_source, say_quantiles
from sotdd.cli.terminal import make_table, print_json, print_table, say, say_note

if TYPE_CHECKING:
    from sotdd.sketches.catalog.catalog import Catalog
    from sotdd.sketches.sketch import Sketch

app: typer.Typer = typer.Typer(
    name="catalog",
    help="Keep named sketches in a folder, and search them for the datasets nearest to yours.",
    epilog="Start with: sotdd catalog add my_catalog train train.npz",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

Folder = Annotated[str, typer.Argument(metavar="CATALOG", help="The folder of the catalog, or its URL.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of an entry.")]
Where = Annotated[
    str | None,
    typer.Option(help="Only entries that meet this SQL condition on name, n_points, n_classes, added or metadata."),
]


@app.command(
    "add",
    epilog=o.examples(
        "sotdd catalog add shop march march.npz --meta year=2024 --meta source=web",
        "sotdd catalog add shop april april.sotdd",
    ),
)
@o.takes("reading", "drawing", "device")
def add_command(
    path: o.NewCatalog,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the new entry.")],
    source: Annotated[str, typer.Argument(metavar="SOURCE", help=o.SKETCH_TOO)],
    asked: o.Asked,
    meta: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Metadata to keep with the entry; can be given several times."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an entry of this name.")] = False,
) -> None:
    """Add a dataset to a catalog, as a sketch. The first one sets the projections of the whole catalog."""
    catalog, is_new = _open_catalog(path, asked)
    metadata = dict(_read_pair(text) for text in meta or [])
    made = _sketch(catalog, source, asked)
    catalog.add_many({name: made}, {name: metadata}, overwrite=overwrite)
    if asked.json:
        print_json({"catalog": path, **catalog.entry(name).to_dict()})
        return
    sizes = f"{say_count(made.n_points, 'point')}, {say_count(len(made.classes), 'class', 'classes')}"
    say(f"added {quote(name)} to {show(path)}: {sizes}", "bold")
    if is_new:
        same = f"the same {say_count(made.n_projections, 'projection')} and the same scale"
        say_note(f"New catalog: datasets added later use {same}.", asked.quiet)


@app.command(
    "search",
    epilog=o.examples(
        "sotdd catalog search shop new.npz -k 5 --where \"year > 2020 AND source = 'web'\"",
        "sotdd catalog search shop --entry march",
    ),
)
@o.takes("reading", "device")
def search_command(
    path: Folder,
    asked: o.Asked,
    source: Annotated[str | None, typer.Argument(metavar="SOURCE", help=o.SKETCH_TOO)] = None,
    entry: Annotated[str | None, typer.Option(help="Search for the datasets nearest to this entry instead.")] = None,
    k: Annotated[int, typer.Option("-k", help="How many datasets to show.")] = 10,
    where: Where = None,
) -> None:
    """Show the datasets of a catalog that are nearest to yours, and which are within noise."""
    from sotdd.sketches.catalog.store import quote_text

    catalog = _find_catalog(path)
    if (source is None) == (entry is None):
        raise SotddError(
            "name one thing to search for: a dataset or sketch after the catalog, or --entry NAME, not both."
        )
    if entry is not None:
        query = catalog.get(entry)
        others = f"name <> {quote_text(entry)}"
        where = others if where is None else f"{others} AND ({where})"
    else:
        query = _sketch(catalog, str(source), asked)
    order = catalog.nearest(query, k, where=where)
    if not order and not asked.json:
        say("No entry matches.")
        return
    about = f"Nearest to {show(entry or source)}, of {_say_count(len(catalog))} in {show(path)}:"
    print_ranking(order, asked, {"catalog": path, "source": source, "entry": entry}, about)


@app.command("list", epilog=o.examples('sotdd catalog list shop --where "n_points > 1000" --json'))
@o.takes()
def list_command(path: Folder, asked: o.Asked, where: Where = None) -> None:
    """List the entries of a catalog."""
    catalog = _find_catalog(path)
    entries = catalog.entries(where)
    if asked.json:
        print_json({"catalog": path, "entries": [entry.to_dict() for entry in entries]})
        return
    keys = list(dict.fromkeys(key for entry in entries for key in entry.metadata))
    table = [["name", "points", "classes", "added (UTC)", *keys]]
    for entry in entries:
        values = ["" if entry.metadata.get(key) is None else str(entry.metadata[key]) for key in keys]
        sizes = [f"{entry.n_points:,}", f"{entry.n_classes:,}"]
        table.append([entry.name, *sizes, f"{entry.added:%Y-%m-%d %H:%M}", *values])
    if entries:
        print_table(make_table(table, left=(0, *range(3, len(table[0])))))
    say_note(
        f"{_say_count(len(entries))}{'' if where is None else f' of {len(catalog):,}'} in {show(path)}",
        asked.quiet,
    )


@app.command("show", epilog=o.examples("sotdd catalog show shop march"))
@o.takes()
def show_command(path: Folder, name: Name, asked: o.Asked) -> None:
    """Show what a catalog knows about one entry."""
    catalog = _find_catalog(path)
    entry, sketch = catalog.entry(name), catalog.get(name)
    if asked.json:
        print_json({"catalog": path, **sketch.to_dict(), **entry.to_dict()})
        return
    counts = sorted(zip(sketch.counts.tolist(), map(show, sketch.classes), strict=True), key=lambda pair: -pair[0])
    largest = ", ".join(f"{label} ({count:,})" for count, label in counts[:10])
    lines = {
        "points": f"{entry.n_points:,}",
        "classes": f"{entry.n_classes:,}: {largest}" + (" …" if len(counts) > 10 else ""),
        "sketch": say_quantiles(sketch),
        "features": f"{sketch.recipe['n_features']:,}",
        "fingerprint": sketch.fingerprint,
        "added": f"{entry.added:%Y-%m-%d %H:%M:%S} UTC",
        **{key: "" if value is None else str(value) for key, value in entry.metadata.items()},
    }
    print_table(make_table([("name", name), *lines.items()], left=(0, 1)))


@app.command("remove", epilog=o.examples("sotdd catalog remove shop march"))
@o.takes()
def remove_command(path: Folder, name: Name, asked: o.Asked) -> None:
    """Remove one entry."""
    catalog = _find_catalog(path)
    catalog.remove(name)
    if asked.json:
        print_json({"catalog": path, "removed": name, "entries": len(catalog)})
        return
    if not asked.quiet:
        say(f"removed {quote(name)} from {show(path)}; {_say_count(len(catalog))} left", "bold")


def _find_catalog(path: str) -> Catalog:
    import sotdd

    catalog = sotdd.Catalog(path)
    if catalog.recipe is None:
        raise SotddError(f"there is no catalog at {path!r}: check the path, or create one with sotdd catalog add.")
    return catalog


def _open_catalog(path: str, asked: o.Asked) -> tuple[Catalog, bool]:
    """A catalog to add to, and whether it is new: only its first dataset can say how projections are drawn."""
    import sotdd

    catalog = sotdd.Catalog(path)
    is_new = catalog.recipe is None
    if not is_new:
        asked.refuse_drawing("any more: the first dataset of a catalog sets the projections and scale of all others")
    return catalog, is_new


def _sketch(catalog: Catalog, source: str, asked: o.Asked, name: str | None = None) -> Sketch:
    """A source as a sketch that fits the catalog; a new catalog gets projections of its own."""
    import sotdd

    data = open_source(source, asked)
    note_remarks(name or source, data, asked)
    if isinstance(data, sotdd.Sketch):
        return data
    device = asked.measuring.get("device", "auto")
    if catalog.recipe is not None:
        return catalog.sketch(data, name=name or source, device=device, progress=asked.bar)
    projections = sotdd.Projections.fit([data], **asked.drawing)
    return sotdd.sketch(data, projections, name=name or source, device=device, progress=asked.bar)


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
