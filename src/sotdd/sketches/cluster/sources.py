"""The data that a cluster goes over, divided into partitions; none of them comes to the client."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sotdd.basics.checks import described
from sotdd.basics.errors import SotddError, require
from sotdd.inputs import ParquetBatches
from sotdd.inputs.loaders.arrow import kind_of
from sotdd.inputs.loaders.columns import Columns
from sotdd.inputs.settings import DEFAULTS, NOTHING_ASKED, checked_settings
from sotdd.sketches.cluster.clients import Client, result_of
from sotdd.sketches.cluster.tasks import Refusal

# Dask's own types are not checked, since it is optional.
Source = Any


@dataclass(frozen=True, eq=False)
class Partition:
    """A part of the data that one task goes over.

    Attributes
    ----------
    name
        What messages call it.
    source
        Row groups of a Parquet file; or a Delayed or a Future of a frame or of a batch.
    columns
        The columns to read from a frame; None for other sources.
    missing
        What is done about rows of a frame in which a value is missing: "error" or "drop".
    """

    name: str
    source: object
    columns: Columns | None = None
    missing: str = "error"


def partitions_of(
    source: Source, reading: Mapping[str, Any], client: Client, wanted: tuple[str, ...] | None = None
) -> list[Partition]:
    """The partitions of a Dask DataFrame, of Parquet files, or of a list of delayed batches.

    ``reading`` says how tables are read, as `ParquetBatches.open` takes it. The ``wanted`` columns, which are those of
    the projections, are the features where none are named.
    """
    if hasattr(source, "to_delayed") and hasattr(source, "_meta") and hasattr(source, "npartitions"):
        return _of_frame(source, reading, wanted)
    several = isinstance(source, (list, tuple)) and len(source) > 0
    if isinstance(source, (str, Path)) or (several and all(isinstance(part, (str, Path)) for part in source)):
        return _of_parquet(source, reading, client, wanted)
    if several and all(_is_to_come(part) for part in source):
        if checked_settings({**NOTHING_ASKED, **reading}) != DEFAULTS:
            raise SotddError("features and label name columns: a batch is (features, labels) and needs neither.")
        return [Partition(f"batch {place}", part) for place, part in enumerate(source)]
    raise SotddError(
        f"source is {described(source)}: expected a Dask DataFrame, the path of Parquet files, or a list of delayed "
        "batches (features, labels); sotdd.sketch takes data in memory."
    )


def _is_to_come(part: object) -> bool:
    from dask.delayed import Delayed
    from distributed import Future

    return isinstance(part, (Delayed, Future))


def _of_frame(frame: Source, reading: Mapping[str, Any], wanted: tuple[str, ...] | None) -> list[Partition]:
    arrow = require("pyarrow", "sketching frames", "'sotdd[cluster]'")
    try:
        schema = arrow.Schema.from_pandas(frame._meta, preserve_index=False)
    except (arrow.ArrowException, ValueError, TypeError, AttributeError) as error:
        raise SotddError(f"the columns of this frame cannot be read ({error}): expected a Dask DataFrame.") from error
    settings = checked_settings({**NOTHING_ASKED, **reading})
    settings.refuse("a Dask DataFrame, whose values are not known beforehand", "one_hot")
    if settings.features is None and wanted is not None and set(wanted) <= set(schema.names):
        settings = replace(settings, features=wanted)
    columns = Columns.choose({field.name: kind_of(field.type) for field in schema}, settings, "the frame")
    parts = frame[columns.all].to_delayed()
    return [Partition(f"partition {index}", part, columns, settings.missing) for index, part in enumerate(parts)]


def _of_parquet(
    source: Source, reading: Mapping[str, Any], client: Client, wanted: tuple[str, ...] | None
) -> list[Partition]:
    """The footers are read by a worker, since the client may not have access to the files."""
    paths = [_absolute(path) for path in ([source] if isinstance(source, (str, Path)) else source)]
    found = result_of(client.submit(_pieces, paths, dict(reading), wanted, pure=False), "reading footers")
    return [Partition(piece.name, piece) for piece in found.pieces]


def _absolute(path: str | Path) -> str:
    """A path that means the same to a worker, which may run in another folder."""
    return str(path) if "://" in str(path) else str(Path(path).absolute())


def _pieces(source: list[str], reading: dict[str, Any], wanted: tuple[str, ...] | None) -> ParquetBatches | Refusal:
    if reading["features"] is None and wanted is not None:
        with suppress(SotddError):  # what these files have instead is told where they meet the projections
            return ParquetBatches.open(source, **{**reading, "features": wanted})
    try:
        return ParquetBatches.open(source, **reading)
    except SotddError as error:
        return Refusal(str(error))
