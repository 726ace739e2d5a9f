"""The command ``sotdd catalog add-hub``: datasets of the Hugging Face Hub, one entry after another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sotdd.basics.errors import SotddError
from sotdd.basics.text import counted, one_line, quoted, shown
from sotdd.commands import options as o
from sotdd.commands.sources import as_text, reading_of, sizes_of
from sotdd.commands.terminal import bar_wanted, complain, print_json, say, say_note

if TYPE_CHECKING:
    from sotdd.inputs.data import LabelledData
    from sotdd.sketches.catalog.catalog import Catalog

EXAMPLES = o.examples(
    "sotdd catalog add-hub digits ylecun/mnist zalando-datasets/fashion_mnist --features image --label label",
    "sotdd catalog add-hub s3://bucket/digits OWNER/NAME:CONFIG --split test --limit 5000 --image-size 28",
)


def add_hub_command(
    path: o.NewCatalog,
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help="Datasets on the Hub: OWNER/NAME or OWNER/NAME:CONFIG, with options as in NAME::label=LABEL.",
        ),
    ],
    split: Annotated[str, typer.Option(help="Which split of each.")] = "train",
    limit: Annotated[int, typer.Option(help="How many rows of each, at most; a sample by row groups.")] = 10_000,
    features: o.Features = None,
    label: o.Label = None,
    image_size: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Bring images to this size, such as 28 or 28x32.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Read again what is there already.")] = False,
    scale: o.Scale = None,
    device: o.Device = "auto",
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Add samples of datasets on the Hugging Face Hub, by name; only the rows that are read are fetched.

    Entries that are there are left alone, so a command that was interrupted can be given again. What cannot be used is
    skipped, and said: exit code 1 then, or 2 if that goes for all.
    """
    import sotdd

    catalog = sotdd.Catalog(path)
    if scale is not None and catalog.recipe is not None:
        raise SotddError(
            "--scale is only for the first dataset of a catalog, which sets the scale of all others: leave it out."
        )
    added: list[str] = []
    kept: list[str] = []
    skipped: dict[str, str] = {}
    for text in names:
        entry = _entry_name(text, split)
        if entry in catalog and not overwrite:
            kept.append(entry)
            say_note(f"{shown(entry)} is there already", quiet or as_json)
            continue
        try:
            data = _opened(text, split, limit, features, label, image_size, quiet or as_json)
            made = _sketched(catalog, data, device, quiet or as_json, o.chosen(scale=scale))
            catalog.add_many({entry: made}, {entry: _metadata(text, split)}, overwrite=overwrite)
        except SotddError as error:
            skipped[entry] = one_line(str(error))
            complain(f"skipped {shown(entry)}: {skipped[entry]}")
            continue
        added.append(entry)
        if not as_json:
            say(f"added {quoted(entry)} to {shown(path)}: {sizes_of(data)}", "bold")
    if as_json:
        print_json({"catalog": path, "added": added, "there": kept, "skipped": skipped})
    else:
        counts = f"{len(added):,} added, {len(kept):,} there already, {len(skipped):,} skipped"
        say_note(f"{counts}, of {counted(len(names), 'dataset')}", quiet)
    if skipped:
        raise typer.Exit(1 if added or kept else 2)


def _entry_name(text: str, split: str) -> str:
    """What a dataset is called in the catalog: as on the Hub, and with its split where that is not the usual one."""
    name, options = _parsed(text)
    split = options.get("split", split)
    return name if split == "train" else f"{name}::split={split}"


def _metadata(text: str, split: str) -> dict[str, Any]:
    from sotdd.inputs.loaders.hub import HubName

    name, options = _parsed(text)
    hub = HubName.parse(name)
    return {"hub": hub.dataset, "config": hub.config, "split": options.get("split", split)}


def _parsed(text: str) -> tuple[str, dict[str, Any]]:
    from sotdd.inputs.loaders.hub import PREFIX
    from sotdd.inputs.sources import SourceText

    parsed = SourceText.parse(text)
    return parsed.path.removeprefix(PREFIX), parsed.options


def _opened(
    text: str, split: str, limit: int, features: str | None, label: str | None, image_size: str | None, quiet: bool
) -> LabelledData:
    from sotdd.inputs import open_dataset
    from sotdd.inputs.loaders.hub import PREFIX

    name, _ = _parsed(text)
    asked = o.chosen(split=split, max_points=limit, image_size=image_size)
    source = as_text(PREFIX + text.removeprefix(PREFIX), features, label, asked)
    with reading_of(name, quiet) as errors:
        data = open_dataset(source, name=name)
        for remark in () if quiet else data.remarks:
            errors.print(one_line(f"{name}: {remark}"), style="dim")
        if len(data.classes) == 1 and data.origin.labelled:
            errors.print(one_line(f"{name}: all rows that were read are of one class; raise --limit."), style="dim")
    return data


def _sketched(catalog: Catalog, data: LabelledData, device: str, quiet: bool, scaling: dict[str, Any]) -> Any:  # noqa: ANN401
    """A sketch that fits the catalog; a new catalog gets projections of its own."""
    import sotdd

    if catalog.recipe is not None:
        return catalog.sketch(data, device=device, progress=bar_wanted(quiet))
    projections = sotdd.Projections.fit([data], **scaling)
    return sotdd.sketch(data, projections, device=device, progress=bar_wanted(quiet))
