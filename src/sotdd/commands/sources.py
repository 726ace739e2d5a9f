"""The sources that a command line names: datasets, and sketches of them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sotdd.basics.errors import SotddError
from sotdd.basics.text import counted, one_line, shown
from sotdd.commands.terminal import working_on

if TYPE_CHECKING:
    from rich.console import Console

    from sotdd.inputs.data import LabelledData
    from sotdd.sketches.sketch import Sketch


def opened(
    source: str,
    features: str | None,
    label: str | None,
    quiet: bool,
    reading: Mapping[str, Any] | None = None,
) -> LabelledData | Sketch:
    """Open a dataset, or a sketch if the source is a sketch file; ``reading`` says more of how tables are read."""
    from sotdd.sketches.making import SUFFIX
    from sotdd.sketches.sketch import Sketch

    if source.endswith(SUFFIX):
        return replace(Sketch.load(source), name=source)
    return opened_data(source, "", features, label, quiet, reading)


def opened_data(
    source: str,
    purpose: str,
    features: str | None,
    label: str | None,
    quiet: bool,
    reading: Mapping[str, Any] | None = None,
) -> LabelledData:
    """Open a dataset; refuse a sketch, which lacks the points that serve the purpose.

    Commands that say how tables are read show what was left out beside their result; for others it is said here.
    """
    from sotdd.inputs import open_dataset
    from sotdd.sketches.making import SUFFIX

    if source.endswith(SUFFIX):
        raise SotddError(f"{source!r} is a sketch, which has no points {purpose}: give the data.")
    with reading_of(source, quiet) as errors:
        data = open_dataset(source, **as_settings(features, label), **(reading or {}))
        for remark in data.remarks if reading is None and not quiet else ():
            errors.print(one_line(f"{source}: {remark}"), style="dim")
        return data


def as_settings(features: str | None, label: str | None) -> dict[str, Any]:
    """What --features and --label ask for, as `sotdd.open_dataset` takes it.

    Examples
    --------
    >>> as_settings("a+b", "")
    {'features': ['a', 'b'], 'label': None}
    """
    columns = {} if not features else {"features": features.split("+") if "+" in features else features}
    return columns | ({} if label is None else {"label": label or None})


@contextmanager
def reading_of(source: str, quiet: bool) -> Iterator[Console]:
    """Show that a source is read, and what its loader decides; yields standard error."""
    with working_on(f"Reading {source} …", quiet) as errors, _notes(errors, quiet):
        yield errors


def as_text(source: str, features: str | None, label: str | None, reading: Mapping[str, Any] | None = None) -> str:
    """The source with --features, --label and how tables are read written into it, as Python takes it.

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
    named += [f"{name}={_written(value)}" for name, value in (reading or {}).items()]
    options = ",".join([*named, *filter(None, [own])])  # the options of the source itself come last, and win
    return f"{path}::{options}" if options else path


def _written(value: Any) -> str:  # noqa: ANN401  # a list of names, a flag, a number or a word
    return "+".join(value) if isinstance(value, list) else str(value).lower()


def refuse_report(path: Path | None) -> None:
    """Refuse a page that could not be written, before anything is measured."""
    if path is not None:
        from sotdd.pictures.report import refuse_page

        refuse_page(path)


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
