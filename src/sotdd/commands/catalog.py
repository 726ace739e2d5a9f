"""The commands ``sotdd catalog ...``."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sotdd.basics.checks import check_choice
from sotdd.basics.errors import SotddError
from sotdd.basics.text import counted, one_line, quoted, shown
from sotdd.commands import options as o
from sotdd.commands.sources import opened
from sotdd.commands.terminal import bar_wanted, print_json, print_table, say, say_note, table_of, working_on

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sotdd.inputs.data import LabelledData
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
def add_command(
    path: o.NewCatalog,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the new entry.")],
    source: Annotated[str, typer.Argument(metavar="SOURCE", help=o.SKETCH_TOO)],
    meta: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Metadata to keep with the entry; can be given several times."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an entry of this name.")] = False,
    features: o.Features = None,
    label: o.Label = None,
    exclude: o.Exclude = None,
    one_hot: o.OneHot = None,
    dates: o.Dates = False,
    missing: o.Missing = None,
    scale: o.Scale = None,
    device: o.Device = "auto",
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Add a dataset to a catalog, as a sketch. The first one sets the projections of the whole catalog."""
    import sotdd

    catalog = sotdd.Catalog(path)
    metadata = dict(_pair(text) for text in meta or [])
    is_new = catalog.recipe is None
    if scale is not None and not is_new:
        raise SotddError(
            "--scale is only for the first dataset of a catalog, which sets the scale of all others: leave it out."
        )
    data = _opened(source, features, label, o.reading(exclude, one_hot, dates, missing), quiet)
    made = _sketched(catalog, data, source, device, quiet, o.chosen(scale=scale))
    catalog.add_many({name: made}, {name: metadata}, overwrite=overwrite)
    if as_json:
        print_json({"catalog": path, **catalog.entry(name).to_dict()})
        return
    sizes = f"{counted(made.n_points, 'point')}, {counted(len(made.classes), 'class', 'classes')}"
    say(f"added {quoted(name)} to {shown(path)}: {sizes}", "bold")
    if is_new:
        same = f"the same {counted(made.n_projections, 'projection')} and the same scale"
        say_note(f"New catalog: datasets added later use {same}.", quiet)


@app.command(
    "search",
    epilog=o.examples(
        "sotdd catalog search shop new.npz -k 5 --where \"year > 2020 AND source = 'web'\"",
        "sotdd catalog search shop --entry march --rank-by distance",
    ),
)
def search_command(
    path: Folder,
    source: Annotated[str | None, typer.Argument(metavar="SOURCE", help=o.SKETCH_TOO)] = None,
    entry: Annotated[str | None, typer.Option(help="Search for the datasets nearest to this entry instead.")] = None,
    k: Annotated[int, typer.Option("-k", help="How many datasets to show.")] = 10,
    where: Where = None,
    rank_by: Annotated[
        str,
        typer.Option(
            metavar="ORDER",
            help="excess: by what is beyond the noise of the sizes; or distance, which is larger for small samples.",
        ),
    ] = "excess",
    features: o.Features = None,
    label: o.Label = None,
    exclude: o.Exclude = None,
    one_hot: o.OneHot = None,
    dates: o.Dates = False,
    missing: o.Missing = None,
    device: o.Device = "auto",
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Show the datasets of a catalog that are nearest to yours, and which are within noise."""
    began = time.perf_counter()
    catalog, order = _existing(path), check_choice(rank_by, "rank_by", ("excess", "distance"))
    if (source is None) == (entry is None):
        raise SotddError(
            "name one thing to search for: a dataset or sketch after the catalog, or --entry NAME, not both."
        )
    if entry is not None:
        from sotdd.sketches.catalog.entries import quoted

        query = catalog.get(entry)
        others = f"name <> {quoted(entry)}"
        where = others if where is None else f"{others} AND ({where})"
    else:
        data = _opened(str(source), features, label, o.reading(exclude, one_hot, dates, missing), quiet)
        query = _sketched(catalog, data, str(source), device, quiet)
    hits = catalog.nearest(query, k, where=where, rank_by=order)
    if as_json:
        print_json({"catalog": path, "source": source, "entry": entry, **hits.to_dict()})
        return
    if not hits:
        say("No entry matches.")
        return
    say_note(f"Nearest to {shown(entry or source)}, of {_entries(len(catalog))} in {shown(path)}:", quiet)
    rows = hits.rows()
    metadata = range(rows[0].index("classes") + 1, len(rows[0]))
    print_table(table_of(rows, left=(1, *metadata)))
    if hits.remark:
        say(one_line(hits.remark))
    say_note(f"{hits.compared:,} compared in full, {time.perf_counter() - began:.1f} s", quiet)


@app.command("list", epilog=o.examples('sotdd catalog list shop --where "n_points > 1000" --json'))
def list_command(path: Folder, where: Where = None, as_json: o.Json = False, quiet: o.Quiet = False) -> None:
    """List the entries of a catalog."""
    catalog = _existing(path)
    entries = catalog.entries(where)
    if as_json:
        print_json({"catalog": path, "entries": [entry.to_dict() for entry in entries]})
        return
    keys = list(dict.fromkeys(key for entry in entries for key in entry.metadata))
    table = [["name", "points", "classes", "added (UTC)", *keys]]
    for entry in entries:
        values = ["" if entry.metadata.get(key) is None else str(entry.metadata[key]) for key in keys]
        sizes = [f"{entry.n_points:,}", f"{entry.n_classes:,}"]
        table.append([entry.name, *sizes, f"{entry.added:%Y-%m-%d %H:%M}", *values])
    if entries:
        print_table(table_of(table, left=(0, *range(3, len(table[0])))))
    say_note(f"{_entries(len(entries))}{'' if where is None else f' of {len(catalog):,}'} in {shown(path)}", quiet)


@app.command("show", epilog=o.examples("sotdd catalog show shop march"))
def show_command(path: Folder, name: Name, as_json: o.Json = False, quiet: o.Quiet = False) -> None:
    """Show what a catalog knows about one entry."""
    catalog = _existing(path)
    entry, sketch = catalog.entry(name), catalog.get(name)
    if as_json:
        print_json({"catalog": path, **sketch.to_dict(), **entry.to_dict()})
        return
    counts = sorted(zip(sketch.counts.tolist(), map(shown, sketch.classes), strict=True), key=lambda pair: -pair[0])
    largest = ", ".join(f"{label} ({count:,})" for count, label in counts[:10])
    lines = {
        "points": f"{entry.n_points:,}",
        "classes": f"{entry.n_classes:,}: {largest}" + (" …" if len(counts) > 10 else ""),
        "sketch": f"{counted(sketch.n_projections, 'projection')} × "
        + ("all values" if sketch.exact else counted(sketch.n_quantiles, "quantile")),
        "features": f"{sketch.recipe['n_features']:,}",
        "fingerprint": sketch.fingerprint,
        "added": f"{entry.added:%Y-%m-%d %H:%M:%S} UTC",
        **{key: "" if value is None else str(value) for key, value in entry.metadata.items()},
    }
    print_table(table_of([("name", name), *lines.items()], left=(0, 1)))


@app.command("remove", epilog=o.examples("sotdd catalog remove shop march"))
def remove_command(path: Folder, name: Name, as_json: o.Json = False, quiet: o.Quiet = False) -> None:
    """Remove one entry."""
    catalog = _existing(path)
    catalog.remove(name)
    if as_json:
        print_json({"catalog": path, "removed": name, "entries": len(catalog)})
        return
    if not quiet:
        say(f"removed {quoted(name)} from {shown(path)}; {_entries(len(catalog))} left", "bold")


@app.command("rename", epilog=o.examples("sotdd catalog rename shop march 2024-03"))
def rename_command(
    path: Folder,
    name: Name,
    new: Annotated[str, typer.Argument(metavar="NEW", help="The new name.")],
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Give an entry another name."""
    catalog = _existing(path)
    catalog.rename(name, new)
    if as_json:
        print_json({"catalog": path, "renamed": name, **catalog.entry(new).to_dict()})
        return
    if not quiet:
        say(f"renamed {quoted(name)} to {quoted(new)}", "bold")


@app.command("tidy", epilog=o.examples("sotdd catalog tidy shop"))
def tidy_command(path: Folder, as_json: o.Json = False, quiet: o.Quiet = False) -> None:
    """Join the small parts that single additions leave, and free the space of removed entries."""
    began = time.perf_counter()
    catalog = _existing(path)
    catalog.tidy()
    if as_json:
        print_json({"catalog": path, "entries": len(catalog)})
        return
    if not quiet:
        say(f"tidied {shown(path)}: {_entries(len(catalog))}, {time.perf_counter() - began:.1f} s", "bold")


def _existing(path: str) -> Catalog:
    import sotdd

    catalog = sotdd.Catalog(path)
    if catalog.recipe is None:
        raise SotddError(f"there is no catalog at {path!r}: check the path, or create one with sotdd catalog add.")
    return catalog


def _opened(
    source: str, features: str | None, label: str | None, reading: Mapping[str, Any], quiet: bool
) -> LabelledData | Sketch:
    """A source, with a line on what was left out of it."""
    data = opened(source, features, label, quiet, reading)
    with working_on(f"Reading {source} …", quiet) as errors:
        for remark in () if quiet else getattr(data, "remarks", ()):
            errors.print(one_line(f"{source}: {remark}"), style="dim")
    return data


def _sketched(
    catalog: Catalog,
    data: LabelledData | Sketch,
    source: str,
    device: str,
    quiet: bool,
    scaling: Mapping[str, Any] | None = None,
) -> Sketch:
    """A source as a sketch that fits the catalog; a new catalog gets projections of its own."""
    import sotdd

    if isinstance(data, sotdd.Sketch):
        return data
    bar = bar_wanted(quiet)
    if catalog.recipe is not None:
        return catalog.sketch(data, name=source, device=device, progress=bar)
    projections = sotdd.Projections.fit([data], **(scaling or {}))
    return sotdd.sketch(data, projections, name=source, device=device, progress=bar)


def _pair(text: str) -> tuple[str, Any]:
    """Split KEY=VALUE; a value that is a JSON number, text, true, false or null is read as that, any other as text."""
    key, equals, value = text.partition("=")
    if not equals:
        raise SotddError(f"cannot read --meta {text!r}: expected KEY=VALUE, such as year=2024.")
    try:
        parsed = json.loads(value)
    except ValueError:
        return key, value
    return key, value if isinstance(parsed, (list, dict)) else parsed


def _entries(number: int) -> str:
    return counted(number, "entry", "entries")
