"""The sources that a command line names: datasets, and sketches of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sotdd.basics.errors import SotddError
from sotdd.basics.text import one_line, say_count
from sotdd.cli.options import SKETCH, Asked
from sotdd.cli.terminal import say_remark, show_work

if TYPE_CHECKING:
    from sotdd.inputs.data import LabelledData
    from sotdd.sketches.sketch import Sketch


def open_source(source: str, asked: Asked) -> LabelledData | Sketch:
    """Open a dataset, or a sketch if the source is a sketch file."""
    from sotdd.sketches.sketch import Sketch

    if source.endswith(SKETCH):
        return replace(Sketch.load(source), name=source)
    return open_data(source, asked)


def open_data(source: str, asked: Asked, purpose: str = "") -> LabelledData:
    """Open a dataset; refuse a sketch, which lacks the points that serve the purpose."""
    from sotdd.inputs import open_dataset

    if source.endswith(SKETCH):
        raise SotddError(f"{source!r} is a sketch, which has no points {purpose}: give the data.")
    with show_work(f"Reading {source} …", asked.quiet):
        return open_dataset(source, **asked.reading)


def note_remarks(source: str, data: LabelledData | Sketch, asked: Asked) -> None:
    """Say on standard error what was left out of a source, where no result says so."""
    with show_work(f"Reading {source} …", quiet=True) as errors:
        for remark in () if asked.quiet else data.remarks:
            errors.print(one_line(f"{source}: {say_remark(remark, asked.naming)}"), style="dim")


def refuse_report(asked: Asked) -> None:
    """Refuse a page that could not be written before anything is measured."""
    if asked.report is not None:
        from sotdd.reports.page import refuse_page

        refuse_page(asked.report)


def say_sizes(data: LabelledData | Sketch) -> str:
    """How many points, features and classes there are, in words."""
    features = data.recipe["n_features"] if hasattr(data, "recipe") else data.n_features
    sizes = (
        say_count(data.n_points, "point"),
        say_count(features, "feature"),
        say_count(len(data.classes), "class", "classes"),
    )
    return ", ".join(sizes)


def say_quantiles(sketch: Sketch) -> str:
    """How much a sketch keeps, in words."""
    kept = "all values" if sketch.exact else say_count(sketch.n_quantiles, "quantile")
    return f"{say_count(sketch.n_projections, 'projection')} × {kept}"
