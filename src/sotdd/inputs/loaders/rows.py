"""The rows of a table as they are read: all of them, or those that a random sample may need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sotdd.inputs.labels import Labels
from sotdd.inputs.loaders.columns import Columns
from sotdd.inputs.loaders.values import NO_LABEL, Array, Batch, RowNumbers, arrow, clean_texts, find_kind, find_range
from sotdd.inputs.preparation import Loaded
from sotdd.inputs.reading import Reading
from sotdd.inputs.sampling import BATCH_ROWS, RowSample


class TableRows:
    """Reads the batches of a table once, and keeps labels, groups and the ranges of dates on the way.

    Attributes
    ----------
    labels, groups
        The columns of these, batch by batch; nothing where there is no such column.
    chosen
        The places of the sample among the rows that were read, once all are read; None for all of them.
    """

    def __init__(self, batches: Iterable[Batch], columns: Columns, reading: Reading) -> None:
        self.labels: list[Array] = []
        self.groups: list[Array] = []
        self.chosen: NDArray[np.int64] | None = None
        self._batches, self._columns, self._reading = batches, columns, reading
        self._n_seen, self._ranges = 0, {title: list[str]() for title in columns.dates}
        most = None if columns.alone == "image" else reading.max_points  # images are chosen before they are read
        self._sample = None if most is None else RowSample(most, reading.seed)

    def read(self) -> Iterator[tuple[Batch, RowNumbers]]:
        """Batches of rows with their numbers; say of each, by `accept`, which rows lack something."""
        origin = self._columns.origin
        for batch in self._batches:
            for date, ends in self._ranges.items():
                ends.extend(find_range(batch.column(date), self._reading))
            for part, rows in self._pick(batch):
                for title, kept in ((origin.label_column, self.labels), (origin.group_column, self.groups)):
                    if title is not None:
                        kept.append(part.column(title))
                yield part, rows
        if self._sample is not None:
            chosen = self._sample.choose()
            self.chosen = chosen if len(chosen) < self._n_seen else None

    def _pick(self, batch: Batch) -> Iterator[tuple[Batch, RowNumbers]]:
        """A batch whole, or the rows of it that a sample may need."""
        start, self._n_seen = self._n_seen, self._n_seen + batch.num_rows
        if self._sample is None:
            yield batch, range(start, self._n_seen)
            return
        for first in range(0, batch.num_rows, BATCH_ROWS):
            part = batch.slice(first, BATCH_ROWS)
            places = self._sample.offer(part.num_rows)
            if len(places) < part.num_rows:
                part = part.take(arrow().array(places))
            yield part, start + first + places

    def accept(self, lacking: NDArray[np.bool_] | None = None) -> None:
        """Say which rows (m,) of the last batch lack a value: a sample is to have as many rows that are used."""
        if self._sample is None:
            return
        unusable = [] if lacking is None or self._reading.missing != "drop" else [lacking]
        if self.labels:
            last = self.labels[-1]
            known = clean_texts(last, self._reading, NO_LABEL) if find_kind(last.type) == "text" else last
            unusable.append(np.asarray(known.is_null(nan_is_null=True)))
        self._sample.accept(~np.logical_or.reduce(unusable) if unusable else None)

    def finish(self, loaded: Loaded, labels: Labels | None, groups: Labels | None) -> Loaded:
        """A dataset with its labels and groups, all of which were read, and with what is known of dates and rows."""
        ranges = {title: (min(ends), max(ends)) for title, ends in self._ranges.items() if ends}
        left_out = {
            title: replace(left, first=ranges[title][0], last=ranges[title][1]) if title in ranges else left
            for title, left in loaded.origin.left_out.items()
        }
        if self.chosen is not None and self._sample is not None:
            loaded = replace(loaded, rows=self._sample.rows[self.chosen], rows_seen=self._n_seen)
            labels, groups = (
                one if one is None else Labels(one.classes, one.codes[self.chosen]) for one in (labels, groups)
            )
        return replace(loaded, labels=labels, groups=groups, origin=replace(loaded.origin, left_out=left_out))
