"""What loaders return, and how it is completed: gaps are treated, rows chosen, texts and images become numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import describe, first_line
from sotdd.basics.errors import SotddError
from sotdd.basics.remarks import Remark, Remarks, say_gaps
from sotdd.inputs.data import Features, LabelledData, check_features, take_rows
from sotdd.inputs.labels import Labels, cut, find_edges
from sotdd.inputs.loaders.images import Uniform, fit_arrays, is_image
from sotdd.inputs.origin import PLAIN, Names, Origin, Target
from sotdd.inputs.reading import Reading
from sotdd.inputs.sparse import SparseRows
from sotdd.inputs.streamed import DerivedFeatures, Spool, StreamedFeatures, choose_rows, refuse_non_finite
from sotdd.inputs.tensors import DeviceFeatures, host_array

# This many rows of numbers are prepared at a time; items say themselves how many.
BATCH = 256


@dataclass(frozen=True, eq=False)
class Loaded:
    """A dataset as its loader read it.

    Attributes
    ----------
    features
        Numbers, or items that have yet to become numbers.
    labels
        One for each row, or None where the source has none.
    columns
        The names of the features, where they have names.
    origin
        What the loader decided.
    sampled
        Whether the loader has taken the sample that was asked for.
    prepared
        Whether the loader has applied the encoder and the transform that were asked for.
    image_mode
        The mode that suits all images, where the loader has looked at all of them.
    gaps
        Whether values may be missing, so that all of them have to be looked at.
    """

    features: Features | Items
    labels: Labels | None
    columns: tuple[str, ...] | None = None
    origin: Origin = PLAIN
    sampled: bool = False
    prepared: bool = False
    image_mode: str | None = None
    gaps: bool = False


@dataclass(frozen=True, eq=False)
class Items:
    """Texts or images by row number.

    Attributes
    ----------
    count
        How many there are.
    read
        A function of row numbers (m,) that returns these items, with None in place of those to leave out.
    batch_size
        How many are read at a time.
    broken
        How many were left out already.
    """

    count: int
    read: Callable[[NDArray[np.integer]], list[Any]]
    batch_size: int = BATCH
    broken: int = 0

    @classmethod
    def of(cls, items: Sequence[Any]) -> Items:
        """Items that are in memory."""
        return cls(len(items), lambda rows: [items[row] for row in rows])

    def __len__(self) -> int:
        """How many items there are."""
        return self.count


def complete(loaded: Loaded, name: str, reading: Reading) -> LabelledData:
    """Check that features and labels agree, choose rows, and make numbers of what is none yet."""
    features, columns, origin = loaded.features, loaded.columns, loaded.origin
    if isinstance(features, StreamedFeatures):
        check_features(features, name)  # their shape and dtype; arrays were checked when they were read
    labels = loaded.labels or Labels.one_class(len(features))
    if loaded.labels is None and not reading.unlabelled:
        origin = replace(origin, labelled=False)
    if reading.bins is None:
        labels.refuse_numbers(name)
    else:
        labels, origin = _cut_target(loaded, reading.bins, name)
    there = None
    if not isinstance(features, (Items, DeviceFeatures)) and (loaded.gaps or reading.missing != "error"):
        titles = name_features(features, columns, origin.one_hot)
        features, there, said = treat_gaps(features, titles, reading.missing, name)
        origin = origin.also(*said)
    most = None if loaded.sampled else reading.max_points
    drops = reading.drop_missing or reading.missing == "drop"
    rows = labels.pick_rows(drops, most, reading.seed, name, there)
    origin = _count_lost(origin, labels.codes < 0, there)
    if isinstance(features, Items) or (reading.prepares and not loaded.prepared):
        chosen = replace(reading, image_mode=loaded.image_mode or reading.image_mode)
        features, rows, skipped = _prepare_rows(features, rows, Preparation(name, chosen), name)
        # What a transform or an encoder returns are no longer these columns.
        columns, origin = None, replace(origin, one_hot={}).also(*skipped)
    elif rows is not None:
        if isinstance(features, StreamedFeatures) and not isinstance(features, SparseRows):
            features = choose_rows(features, rows)
        else:
            features = take_rows(features, rows)
    kept = labels.take(rows)
    return LabelledData(
        name, features, kept.classes, kept.codes, columns, origin if rows is None else origin.take(rows)
    )


def _cut_target(loaded: Loaded, bins: int, name: str) -> tuple[Labels, Origin]:
    """Labels that are numbers cut into classes of about equal size, by quantiles; the origin keeps the numbers."""
    if loaded.labels is None:
        raise SotddError(f"is given but dataset {name!r} has no labels: leave it out.", setting="bins")
    values = loaded.labels.numbers(name)
    known = loaded.labels.codes >= 0
    labels = cut(values, find_edges(values[known], bins)) if known.any() else loaded.labels
    fewer = [Remark("fewer bins", bins=len(labels.classes), asked=bins)] if len(labels.classes) < bins else []
    return labels, replace(loaded.origin, target=Target(values, bins)).also(*fewer)


def _count_lost(origin: Origin, unlabelled: NDArray[np.bool_], there: NDArray[np.bool_] | None) -> Origin:
    """The origin with how many rows were left out for want of a label or of a feature."""
    lost = unlabelled if there is None else unlabelled | ~there
    if not lost.any():
        return origin
    remarks = [Remark("labels missing", rows=int(np.count_nonzero(unlabelled)))] if unlabelled.any() else []
    return replace(origin, rows_lost=int(np.count_nonzero(lost)), rows_read=len(lost)).also(*remarks)


def name_features(features: Features, columns: Names | None, one_hot: Mapping[str, Names]) -> list[str]:
    """What messages call each feature: its column, which one-hot features share."""
    if columns is None:
        return [f"feature {number}" for number in range(features.size // max(1, len(features)))]
    bases = {name: column for column, names in one_hot.items() for name in names}
    return [bases.get(name, name) for name in columns]


class Preparation:
    """What is done to every batch: images are made uniform, then the encoder and then the transform are applied."""

    def __init__(self, name: str, reading: Reading) -> None:
        self._name = name
        self._reading = reading
        self._uniform = Uniform(name, reading.image_size, reading.image_mode)

    def __call__(self, batch: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
        """The numbers (m, ...) that a batch of m items or rows becomes."""
        encoder, transform = self._reading.encoder, self._reading.transform
        count = len(batch)
        ready = self._as_images(batch)
        if encoder is not None:
            ready = encoder(ready)
        elif len(ready) and isinstance(ready[0], str):
            raise SotddError(f"dataset {self._name!r} holds text: pass encoder=, such as the name of a model.")
        if transform is not None:
            ready = self._transform(ready, count)
        if not isinstance(ready, np.ndarray):
            raise SotddError(f"dataset {self._name!r} holds {describe(ready[0])}: expected numbers, texts or images.")
        return ready

    def _as_images(self, batch: Sequence[Any] | NDArray[Any]) -> Sequence[Any] | NDArray[Any]:
        if isinstance(batch, np.ndarray):
            return fit_arrays(batch, self._reading.image_size, self._reading.image_mode, self._name)
        if not len(batch) or not is_image(batch[0]):
            return batch
        if self._reading.encoder is not None and self._reading.image_size is None:
            return self._uniform.images(batch)  # an encoder may bring images to a size of its own
        return self._uniform.array(batch)

    def _transform(self, batch: Sequence[Any] | NDArray[Any], count: int) -> NDArray[Any]:
        assert self._reading.transform is not None
        try:
            result = host_array(self._reading.transform(batch))
        except (ValueError, TypeError, IndexError, AttributeError, RuntimeError) as error:
            cause = f"{type(error).__name__}: {first_line(error)}"
            raise SotddError(f"failed on a batch of dataset {self._name!r} ({cause}).", setting="transform") from error
        if result.ndim == 0 or len(result) != count:
            raise SotddError(
                f"made shape {result.shape} of {count:,} rows: expected one row for each.", setting="transform"
            )
        return result


def _prepare_rows(
    features: Features | Items, rows: NDArray[np.integer] | None, prepare: Preparation, name: str
) -> tuple[Any, NDArray[np.integer] | None, Remarks]:
    """Numbers made of the items or features of these rows (None for all), the rows that were not left out, and why."""
    spool = Spool(name)
    wanted = np.arange(len(features)) if rows is None else rows
    size, broken = (features.batch_size, features.broken) if isinstance(features, Items) else (BATCH, 0)
    kept = [wanted[:0]]
    for start in range(0, len(wanted), size):
        part = wanted[start : start + size]
        if isinstance(features, Items):
            items = features.read(part)
            part = part[[item is not None for item in items]]
            batch: Any = [item for item in items if item is not None]
        else:
            batch = np.asarray(features[part])
        kept.append(part)
        if len(part):
            spool.add(prepare(batch))
    used = np.concatenate(kept)
    broken += len(wanted) - len(used)
    remarks = (Remark("images skipped", images=broken),) if broken else ()
    return spool.features(), None if rows is None and len(used) == len(features) else used, remarks


# Rows that are looked at together.
_ROWS = 4096


@dataclass(frozen=True, eq=False)
class Gaps:
    """Where the features of a dataset are missing.

    Attributes
    ----------
    n_points
        How many rows there are.
    rows
        (r,) the numbers of those in which something is missing, ascending.
    columns
        How many values of each column are missing, where any are; features that share a title were one column.
    means
        (d,) the mean of the values of each feature that are there; NaN where there are none.
    """

    n_points: int
    rows: NDArray[np.int64]
    columns: dict[str, int]
    means: NDArray[np.float64]

    @classmethod
    def of(cls, features: NDArray[Any] | StreamedFeatures, titles: Sequence[str], name: str) -> Gaps:
        """Look at all values; infinite ones are refused."""
        counts, sums = np.zeros(len(titles), np.int64), np.zeros(len(titles))
        rows: list[NDArray[np.int64]] = []
        for start in range(0, len(features), _ROWS):
            stop = min(start + _ROWS, len(features))
            part = features.read(start, stop) if isinstance(features, StreamedFeatures) else features[start:stop]
            block = np.asarray(part).reshape(stop - start, -1)
            missing = np.isnan(block) if block.dtype.kind == "f" else np.zeros(block.shape, bool)
            known = np.where(missing, 0, block)
            if block.dtype.kind == "f":
                refuse_non_finite(known, range(start, stop), name)
            counts += missing.sum(axis=0)
            sums += known.sum(axis=0, dtype=np.float64)
            rows.append(start + np.flatnonzero(missing.any(axis=1)))
        with np.errstate(invalid="ignore"):
            means = sums / (len(features) - counts)
        columns: dict[str, int] = {}
        for title, count in zip(titles, counts.tolist(), strict=True):
            if count:
                columns[title] = max(count, columns.get(title, 0))
        return cls(len(features), np.concatenate([*rows, np.empty(0, np.int64)]), columns, means)

    @property
    def facts(self) -> dict[str, Any]:
        """How many rows lack something, and which columns."""
        return {"rows": len(self.rows), "n_points": self.n_points, "columns": self.columns}

    @property
    def empty(self) -> str | None:
        """A column without any value, which has no mean."""
        return next((title for title, count in self.columns.items() if count == self.n_points), None)

    def refuse(self, name: str) -> None:
        """Refuse values that are missing, and say how many and where."""
        if len(self.rows):
            empty = "" if self.empty is None else f"; {self.empty!r} is empty, exclude it"
            raise SotddError(f"{name} has missing values in {say_gaps(**self.facts)}{empty}", use={"missing": "drop"})


def _fill(block: NDArray[Any], fill: NDArray[np.float64]) -> NDArray[Any]:
    """A block with the missing values of each column filled in."""
    return np.where(np.isnan(block), fill.astype(block.dtype), block) if block.dtype.kind == "f" else block


def treat_gaps(
    features: NDArray[Any] | StreamedFeatures, titles: Sequence[str], missing: str, name: str
) -> tuple[NDArray[Any] | StreamedFeatures, NDArray[np.bool_] | None, Remarks]:
    """Features without missing values, which rows to keep (None for all), and what a reader should know."""
    gaps = Gaps.of(features, titles, name)
    if not len(gaps.rows):
        return features, None, ()
    if missing == "error":
        gaps.refuse(name)
    if missing == "drop":
        kept = np.ones(len(features), bool)
        kept[gaps.rows] = False
        if not kept.any():
            raise SotddError(
                f"every row of {name} lacks a value, {say_gaps(**gaps.facts)}: leave out columns by exclude=."
            )
        return features, kept, (Remark("rows dropped", **gaps.facts),)
    if gaps.empty is not None:
        raise SotddError(f"column {gaps.empty!r} of {name} has no values, and so no mean: leave it out with exclude=.")
    remark, means = Remark("values filled", **gaps.facts), gaps.means
    if isinstance(features, StreamedFeatures):
        filled = DerivedFeatures(
            features, features.shape, features.dtype, lambda *rows: _fill(features.read(*rows), means)
        )
        return filled, None, (remark,)
    return _fill(features, means), None, (remark,)
