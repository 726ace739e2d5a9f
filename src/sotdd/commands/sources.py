"""The sources that a command line names: datasets, and sketches of them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sotdd.basics.errors import SotddError
from sotdd.basics.text import counted, one_line, shown
from sotdd.commands.terminal import working_on

if TYPE_CHECKING:
    from rich.console import Console

    from sotdd.inputs.data import LabelledData
    from sotdd.sketches.sketch import Sketch


def opened(source: str, features: str | None, label: str | None, quiet: bool) -> LabelledData | Sketch:
    """Open a dataset, or a sketch if the source is a sketch file."""
    from sotdd.sketches.making import SUFFIX
    from sotdd.sketches.sketch import Sketch

    if source.endswith(SUFFIX):
        return replace(Sketch.load(source), name=source)
    return opened_data(source, "", features, label, quiet)


def opened_data(source: str, purpose: str, features: str | None, label: str | None, quiet: bool) -> LabelledData:
    """Open a dataset; refuse a sketch, which lacks the points that serve the purpose."""
    from sotdd.inputs import open_dataset
    from sotdd.sketches.making import SUFFIX

    if source.endswith(SUFFIX):
        raise SotddError(f"{source!r} is a sketch, which has no points {purpose}: give the data.")
    named: dict[str, Any] = {} if label is None else {"label": label or None}
    columns = features.split("+") if features and "+" in features else features
    with working_on(f"Reading {source} …", quiet) as errors, _notes(errors, quiet):
        return open_dataset(source, features=columns, **named)


def as_text(source: str, features: str | None, label: str | None) -> str:
    """The source with --features and --label written into it, as Python takes it.

    Examples
    --------
    >>> as_text("a.csv::max_points=9", None, "kind")
    'a.csv::label=kind,max_points=9'
    """
    from sotdd.sketches.making import SUFFIX

    if source.endswith(SUFFIX):
        return source
    path, _, own = source.partition("::")
    named = [f"{name}={value}" for name, value in (("features", features), ("label", label)) if value is not None]
    options = ",".join([*named, *filter(None, [own])])  # the options of the source itself come last, and win
    return f"{path}::{options}" if options else path


def sizes_of(data: LabelledData | Sketch) -> str:
    """How many points, features and classes there are, in words."""
    features = data.recipe["n_features"] if hasattr(data, "recipe") else data.n_features
    sizes = (
        counted(data.n_points, "point"),
        counted(features, "feature"),
        counted(len(data.classes), "class", "classes"),
    )
    return ", ".join(sizes)


def sizes_by_line(datasets: Sequence[LabelledData | Sketch]) -> str:
    """Names and sizes, one dataset per line."""
    return "\n".join(f"{shown(data.name)}: {sizes_of(data)}" for data in datasets)


@contextmanager
def _notes(errors: Console, quiet: bool) -> Iterator[None]:
    """Print what loaders decide for the user, which they log."""

    class Printing(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            errors.print(one_line(record.getMessage()), style="dim")

    logger, handler = logging.getLogger("sotdd.inputs"), Printing()
    before = logger.level
    if not quiet:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
