"""The commands of catalogs: parse, call, print."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sotdd.basics.errors import SotddError
from sotdd.commands import options as o
from sotdd.commands.sources import opened
from sotdd.commands.terminal import bar_wanted, print_json, print_table, say, say_note, table_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sotdd.sketches.catalog.catalog import Catalog
    from sotdd.sketches.sketch import Sketch

app = typer.Typer(
    name="catalog",
    help="Named sketches in a folder, searched for the datasets most like another.",
    epilog="Start with: sotdd catalog add my_catalog train train.npz",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

Place = Annotated[str, typer.Argument(metavar="CATALOG", help="The folder of the catalog, or the URL of one.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of an entry.")]
Where = Annotated[
    str | None,
    typer.Option(help="Only entries that this SQL holds for: on name, n_points, n_classes, added and metadata."),
]


@app.command(
    "add",
    epilog=o.examples(
        "sotdd catalog add shop march march.npz --meta year=2024 --meta source=web",
        "sotdd catalog add shop april april.sotdd",
    ),
)
def add_command(
    place: Annotated[
        str, typer.Argument(metavar="CATALOG", help="The folder of the catalog; made if it is not there.")
    ],
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call it.")],
    source: Annotated[str, typer.Argument(metavar="SOURCE", help=o.SKETCH_TOO)],
    meta: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="What else to keep of it; can be given several times.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an entry of this name.")] = False,
    features: o.Features = None,
    label: o.Label = None,
    scale: o.Scale = None,
    device: o.Device = "auto",
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Add a dataset to a catalog, as a sketch; the first one settles the projections of all."""
    import sotdd

    catalog = sotdd.Catalog(place)
    metadata = dict(_pair(text) for text in meta or [])
    is_new = catalog.recipe is None
    if scale is not None and not is_new:
        raise SotddError("--scale is for the first dataset of a catalog, by which all others are scaled: leave it out.")
    made = _sketched(catalog, source, features, label, device, quiet, o.scaling(scale))
    catalog.add_many({name: made}, {name: metadata}, overwrite=overwrite)
    if as_json:
        print_json({"catalog": place, **catalog.entry(name).to_dict()})
        return
    say(f"added {name!r} to {place}: {_sizes(made)}", "bold")
    if is_new:
        through = f"the same {made.n_projections:,} projections, scaled as this one"
        say_note(f"A new catalog: what is added later goes through {through}.", quiet)


@app.command(
    "search",
    epilog=o.examples(
        "sotdd catalog search shop new.npz -k 5 --where \"year > 2020 AND source = 'web'\"",
        "sotdd catalog search shop --entry march",
    ),
)
def search_command(
    place: Place,
    source: Annotated[str | None, typer.Argument(metavar="SOURCE", help=o.SKETCH_TOO)] = None,
    entry: Annotated[str | None, typer.Option(help="Search for what is most like this entry, instead.")] = None,
    k: Annotated[int, typer.Option("-k", help="How many to show.")] = 10,
    where: Where = None,
    features: o.Features = None,
    label: o.Label = None,
    device: o.Device = "auto",
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Show the datasets of a catalog that are most like another."""
    began = time.perf_counter()
    catalog = _existing(place)
    if (source is None) == (entry is None):
        raise SotddError("name one thing to search for: a dataset or sketch after the catalog, or --entry NAME.")
    if entry is not None:
        from sotdd.sketches.catalog.entries import quoted

        query = catalog.get(entry)
        others = f"name <> {quoted(entry)}"
        where = others if where is None else f"{others} AND ({where})"
    else:
        query = _sketched(catalog, str(source), features, label, device, quiet)
    hits = catalog.nearest(query, k, where=where)
    if as_json:
        print_json({"catalog": place, "source": source, "entry": entry, **hits.to_dict()})
        return
    if not hits:
        say("no entry matches")
        return
    say_note(f"Nearest to {entry or source}, of {_count(len(catalog))} in {place}:", quiet)
    rows = hits.rows()
    said = len(rows[0]) - rows[0].index("classes") - 1  # columns of metadata
    print_table(table_of(rows, left=(1, *range(len(rows[0]) - said, len(rows[0])))))
    for remark in filter(None, [hits.remark]):
        say(remark)
    say_note(f"{hits.compared:,} compared in full, {time.perf_counter() - began:.1f} s", quiet)


@app.command("list", epilog=o.examples('sotdd catalog list shop --where "n_points > 1000" --json'))
def list_command(place: Place, where: Where = None, as_json: o.Json = False, quiet: o.Quiet = False) -> None:
    """List the entries of a catalog."""
    catalog = _existing(place)
    entries = catalog.entries(where)
    if as_json:
        print_json({"catalog": place, "entries": [entry.to_dict() for entry in entries]})
        return
    keys = list(dict.fromkeys(key for entry in entries for key in entry.metadata))
    table = [["name", "points", "classes", "added (UTC)", *keys]]
    for entry in entries:
        said = ["" if entry.metadata.get(key) is None else str(entry.metadata[key]) for key in keys]
        sizes = [f"{entry.n_points:,}", f"{entry.n_classes:,}"]
        table.append([entry.name, *sizes, f"{entry.added:%Y-%m-%d %H:%M}", *said])
    if entries:
        print_table(table_of(table, left=(0, *range(3, len(table[0])))))
    say_note(f"{_count(len(entries))}{'' if where is None else f' of {len(catalog):,}'} in {place}", quiet)


@app.command("show", epilog=o.examples("sotdd catalog show shop march"))
def show_command(place: Place, name: Name, as_json: o.Json = False, quiet: o.Quiet = False) -> None:
    """Show what is known of one entry."""
    catalog = _existing(place)
    entry, sketch = catalog.entry(name), catalog.get(name)
    if as_json:
        print_json({"catalog": place, **sketch.to_dict(), **entry.to_dict()})
        return
    counts = sorted(zip(sketch.counts.tolist(), map(str, sketch.classes), strict=True), key=lambda pair: -pair[0])
    shown = ", ".join(f"{label} ({count:,})" for count, label in counts[:10])
    lines = {
        "points": f"{entry.n_points:,}",
        "classes": f"{entry.n_classes:,}: {shown}" + (" …" if len(counts) > 10 else ""),
        "sketch": f"{sketch.n_projections:,} projections × "
        + ("all values" if sketch.exact else f"{sketch.n_quantiles:,} quantiles"),
        "features": f"{sketch.recipe['n_features']:,}",
        "through": sketch.fingerprint,
        "added": f"{entry.added:%Y-%m-%d %H:%M:%S} UTC",
        **{key: "" if value is None else str(value) for key, value in entry.metadata.items()},
    }
    print_table(table_of([("name", name), *lines.items()], left=(0, 1)))


@app.command("remove", epilog=o.examples("sotdd catalog remove shop march"))
def remove_command(place: Place, name: Name, as_json: o.Json = False, quiet: o.Quiet = False) -> None:
    """Remove one entry."""
    catalog = _existing(place)
    catalog.remove(name)
    if as_json:
        print_json({"catalog": place, "removed": name, "entries": len(catalog)})
        return
    if not quiet:
        say(f"removed {name!r} from {place}; {_count(len(catalog))} left", "bold")


@app.command("rename", epilog=o.examples("sotdd catalog rename shop march 2024-03"))
def rename_command(
    place: Place,
    name: Name,
    new: Annotated[str, typer.Argument(metavar="NEW", help="Its new name.")],
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Give an entry another name."""
    catalog = _existing(place)
    catalog.rename(name, new)
    if as_json:
        print_json({"catalog": place, "renamed": name, **catalog.entry(new).to_dict()})
        return
    if not quiet:
        say(f"{name!r} is called {new!r} now", "bold")


def _existing(place: str) -> Catalog:
    import sotdd

    catalog = sotdd.Catalog(place)
    if catalog.recipe is None:
        raise SotddError(f"there is no catalog at {place!r}: check the path, or make one with sotdd catalog add.")
    return catalog


def _sketched(
    catalog: Catalog,
    source: str,
    features: str | None,
    label: str | None,
    device: str,
    quiet: bool,
    scaling: Mapping[str, Any] | None = None,
) -> Sketch:
    """A source as a sketch that fits the catalog; of a new catalog, with projections of its own."""
    import sotdd

    data = opened(source, features, label, quiet)
    if isinstance(data, sotdd.Sketch):
        return data
    bar = bar_wanted(quiet)
    if catalog.recipe is not None:
        return catalog.sketch(data, name=source, device=device, progress=bar)
    projections = sotdd.Projections.fit([data], **(scaling or {}))
    return sotdd.sketch(data, projections, name=source, device=device, progress=bar)


def _pair(text: str) -> tuple[str, Any]:
    """KEY=VALUE; what reads as a JSON number, true, false, null or text is that, anything else is text."""
    key, equals, value = text.partition("=")
    if not equals:
        raise SotddError(f"cannot read --meta {text!r}: expected KEY=VALUE, such as year=2024.")
    try:
        found = json.loads(value)
    except ValueError:
        return key, value
    return key, value if isinstance(found, (list, dict)) else found


def _sizes(sketch: Sketch) -> str:
    classes = "1 class" if len(sketch.classes) == 1 else f"{len(sketch.classes):,} classes"
    return f"{sketch.n_points:,} points, {classes}"


def _count(number: int) -> str:
    return "1 entry" if number == 1 else f"{number:,} entries"
