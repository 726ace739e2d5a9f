"""How batches are opened: as their reference was, with the same columns and labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from sotdd.basics.errors import SotddError
from sotdd.basics.remarks import Remark
from sotdd.inputs import open_dataset
from sotdd.inputs.agreement import drop_columns
from sotdd.inputs.data import Dataset, LabelledData, Schema
from sotdd.inputs.opening import open_alike
from sotdd.inputs.reading import OPTIONS
from sotdd.inputs.sources import SourceText

# What of the options of a source goes for the batches as well. An encoder does not: a file must not name code to load.
SETTINGS = tuple(name for name, option in OPTIONS.items() if option.kept)
# Those that only text has.
_OF_TEXT = ("separator", "decimal", "encoding")
# Files that have features under one name, if any, rather than columns.
_ARRAYS = (".npz", ".npy")


@dataclass(frozen=True, eq=False)
class BatchReading:
    """How the reference was opened, kept for its batches.

    Attributes
    ----------
    settings
        Options of its source, such as the column of labels, by name.
    suffix
        How the file was called, since batches that are called so are written alike.
    columns
        The features that were made of the columns of the table; None where it was no table.
    schema
        What the columns of its table are; None where that is not known, and batches are read by their features.
    labelled
        Whether there were labels, or one class was asked for.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    suffix: str = ""
    columns: tuple[str, ...] | None = None
    schema: Schema | None = None
    labelled: bool = True

    @classmethod
    def of(cls, source: object, data: LabelledData, asked: Mapping[str, Any] | None = None) -> BatchReading:
        """What there is to know of a reference, from its source, what was asked for, and as it was opened."""
        parsed = SourceText.parse(source) if isinstance(source, str) else None
        options = {**(asked or {}), **({} if parsed is None else parsed.options)}
        if not isinstance(options.get("groups"), str):  # those of the rows of one dataset are of no other
            options.pop("groups", None)
        if data.origin.group_column is not None:
            options["groups"] = data.origin.group_column
        if data.origin.target is not None:
            options["bins"] = data.origin.target.bins
        kept = {name: value for name, value in options.items() if name in SETTINGS}
        suffix = "" if parsed is None else Path(parsed.path).suffix.lower()
        return cls(kept, suffix, data.columns, data.schema, data.origin.labelled)

    def open_batch(self, batch: Dataset, **asked: Any) -> LabelledData:  # noqa: ANN401  # as open_dataset
        """Open a batch with the columns of the reference and labels as it has them; what is ``asked`` goes first.

        Letters are read as the reference's are only where they are no UTF-8: other encodings read anything, wrongly.
        """
        if isinstance(batch, LabelledData):
            data = open_dataset(batch, **asked) if asked else batch
        else:
            data = self._read(batch, asked)
        if self.settings.get("bins") is not None and data.origin.target is None:
            raise SotddError(
                f"targets of the reference are cut into bins but dataset {data.name!r} has none: open it with bins=."
            )
        return self._without_others(data)

    def find_judged(self, batch: LabelledData) -> Remark | None:
        """Which columns of a batch are judged, and which are not, since it or the reference left them out."""
        own = batch.judged
        if own is None:
            return None
        others = [remark for remark in batch.remarks if remark.kind == "columns not in reference"]
        unknown = {column: "not in the reference" for remark in others for column in remark.facts["columns"]}
        known = {} if self.schema is None else {column: left.why for column, left in self.schema.left_out.items()}
        left_out = {column: {"why": why} for column, why in {**known, **unknown}.items()}
        return Remark("columns judged", columns=own.facts["columns"], left_out={**left_out, **own.facts["left_out"]})

    def _read(self, batch: Dataset, asked: Mapping[str, Any]) -> LabelledData:
        name = None if isinstance(batch, (str, PathLike)) else "batch"
        if isinstance(batch, (tuple, np.ndarray)):  # of which hardly anything was to be chosen
            kept = {name: value for name, value in self.settings.items() if name in ("bins", "blocks")}
            return open_alike(batch, self.schema, name=name, **{**kept, **asked})
        suffix = Path(str(batch).partition("::")[0]).suffix.lower() if isinstance(batch, (str, PathLike)) else ""
        settings = {
            name: value for name, value in self.settings.items() if suffix == self.suffix or name not in _OF_TEXT
        }
        if self.schema is None and self.columns is not None and suffix not in _ARRAYS:
            settings["features"] = list(self.columns)
        settings |= asked
        encoding = settings.pop("encoding", None)
        try:
            return open_alike(batch, self.schema, name=name, **settings)
        except SotddError:
            if encoding is None:
                raise
            return open_alike(batch, self.schema, name=name, encoding=encoding, **settings)

    def _without_others(self, data: LabelledData) -> LabelledData:
        """A batch without the columns that the reference does not have, which a remark names."""
        if self.columns is None or data.columns is None:
            return data
        wanted = set(data.find_columns(self.columns) if self.schema is None else self.schema.kinds)
        others = tuple(column for column in data.table if column not in wanted)
        if not others or len(others) == len(data.table):
            return data
        fewer = drop_columns(data, others)
        origin = fewer.origin.also(Remark("columns not in reference", columns=others))
        return replace(fewer, origin=replace(origin, unread=(*origin.unread, *others)))

    def refuse_half_labelled(self, data: LabelledData, n_classes: int) -> None:
        """Refuse labels on one side alone, where they say anything."""
        count = n_classes if self.labelled else len(data.classes)
        if self.labelled != data.origin.labelled and count > 1:
            sides = f"dataset {data.name!r}", "the reference"
            bare, other = sides if self.labelled else sides[::-1]
            raise SotddError(f"{bare} has no labels but {other} has {count:,} classes: give labels to both, or none.")
