"""How batches are opened: as their reference was, with the same columns, labels and bins."""

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
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.inputs.labels import cut, find_edges
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
    columns
        The features that were made of the columns of the table; None where it was no table.
    labelled
        Whether there were labels, or one class was asked for.
    edges
        Between which numbers targets were cut into classes; None where they were not.
    suffix
        How the file was called, since batches that are called so are written alike.
    left_out
        Columns of the table that are no features, and why.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    columns: tuple[str, ...] | None = None
    labelled: bool = True
    edges: tuple[float, ...] | None = None
    suffix: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, source: object, data: LabelledData, asked: Mapping[str, Any] | None = None) -> BatchReading:
        """What there is to know of a reference, from its source, what was asked for, and as it was opened."""
        parsed = SourceText.parse(source) if isinstance(source, str) else None
        options = {**(asked or {}), **({} if parsed is None else parsed.options)}
        if not isinstance(options.get("groups"), str):  # those of the rows of one dataset are of no other
            options.pop("groups", None)
        target = data.origin.target
        return cls(
            {name: value for name, value in options.items() if name in SETTINGS},
            data.columns,
            data.origin.labelled,
            None if target is None else tuple(find_edges(target.values, target.bins).tolist()),
            "" if parsed is None else Path(parsed.path).suffix.lower(),
            {column: left.why for column, left in data.origin.left_out.items()},
        )

    def open_batch(self, batch: Dataset, **asked: Any) -> LabelledData:  # noqa: ANN401  # as open_dataset
        """Open a batch with the columns of the reference and labels as it has them; what is ``asked`` goes first.

        Letters are read as the reference's are only where they are no UTF-8: other encodings read anything, wrongly.
        """
        data = batch if isinstance(batch, LabelledData) and not asked else self._read(batch, asked)
        return self._with_classes(self._without_others(data))

    def find_judged(self, batch: LabelledData) -> Remark | None:
        """Which columns of a batch are judged, and which are not, since it or the reference left them out."""
        own = batch.judged
        if own is None:
            return None
        others = [remark for remark in batch.remarks if remark.kind == "columns not in reference"]
        unknown = {column: "not in the reference" for remark in others for column in remark.facts["columns"]}
        left_out = {column: {"why": why} for column, why in {**self.left_out, **unknown}.items()}
        return Remark("columns judged", columns=own.facts["columns"], left_out={**left_out, **own.facts["left_out"]})

    def _read(self, batch: Dataset, asked: Mapping[str, Any]) -> LabelledData:
        name = None if isinstance(batch, (LabelledData, str, PathLike)) else "batch"
        if isinstance(batch, (tuple, np.ndarray, LabelledData)):  # of which nothing was to be chosen
            kept = {name: value for name, value in self.settings.items() if name in ("bins", "blocks")}
            return open_dataset(batch, name=name, **{**kept, **asked})
        suffix = Path(str(batch).partition("::")[0]).suffix.lower() if isinstance(batch, (str, PathLike)) else ""
        settings = {
            name: value for name, value in self.settings.items() if suffix == self.suffix or name not in _OF_TEXT
        }
        if self.columns is not None and suffix not in _ARRAYS:
            settings["features"] = list(self.columns)
        settings |= asked
        encoding = settings.pop("encoding", None)
        try:
            return open_dataset(batch, name=name, **settings)
        except SotddError:
            if encoding is None:
                raise
            return open_dataset(batch, name=name, encoding=encoding, **settings)

    def _without_others(self, data: LabelledData) -> LabelledData:
        """A batch without the columns that the reference does not have, which a remark names."""
        if self.columns is None or data.columns is None:
            return data
        wanted = set(data.find_columns(self.columns))
        others = tuple(column for column in data.table if column not in wanted)
        if not others or len(others) == len(data.table):
            return data
        fewer = drop_columns(data, others)
        return replace(fewer, origin=fewer.origin.also(Remark("columns not in reference", columns=others)))

    def _with_classes(self, data: LabelledData) -> LabelledData:
        """A batch with its targets cut where those of the reference were: bins of its own would hide a shift."""
        if self.edges is None:
            return data
        if data.origin.target is None:
            raise SotddError(
                f"targets of the reference are cut into bins but dataset {data.name!r} has none: open it with bins=."
            )
        labels = cut(data.origin.target.values, np.array(self.edges)).take(None)
        return replace(data, classes=labels.classes, codes=labels.codes)

    def refuse_half_labelled(self, data: LabelledData, n_classes: int) -> None:
        """Refuse labels on one side alone, where they say anything."""
        count = n_classes if self.labelled else len(data.classes)
        if self.labelled != data.origin.labelled and count > 1:
            sides = f"dataset {data.name!r}", "the reference"
            bare, other = sides if self.labelled else sides[::-1]
            raise SotddError(f"{bare} has no labels but {other} has {count:,} classes: give labels to both, or none.")
