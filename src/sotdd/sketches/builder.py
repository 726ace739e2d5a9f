"""Sketches of data that arrive in batches: in bounded memory, in any order, on any number of machines.

A point's projection includes the label term of its class, which is known only when all points have been seen. So each
class has histograms of its own, which are shifted and put together at the end.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from os import PathLike
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sotdd.basics.errors import SotddError, describe
from sotdd.basics.files import read_whole, write_whole
from sotdd.basics.remarks import Remarks, join_remarks
from sotdd.basics.resources import Workers
from sotdd.basics.text import say_count
from sotdd.inputs.arrays import NoRows, is_frame, is_tensor
from sotdd.inputs.data import Dataset, LabelledData, find_unlabelled, remark_position
from sotdd.inputs.opening import open_alike
from sotdd.inputs.schema import Schema
from sotdd.projections.maps import BLOCK, Block
from sotdd.projections.projections import Projections
from sotdd.sketches.codec import pack, pack_labels, pack_remarks, unpack
from sotdd.sketches.quantiles import CLASS_BYTES, QUANTILES, Levels, check_quantiles, find_quantiles, fit_classes
from sotdd.sketches.saved_projections import SavedProjections, check_projections, read_projections
from sotdd.sketches.sketch import Sketch
from sotdd.sketches.sums import Doubles, Sums, draw_weights
from sotdd.sketches.uncertainty import find_stream_halves


def check_name(name: object) -> None:
    """Refuse a name that no file could keep."""
    if not isinstance(name, str):
        raise SotddError(f"is {describe(name)}: expected text.", setting="name")


def open_batch(
    features: Dataset,
    labels: ArrayLike | Sequence[Hashable] | None,
    projections: Projections,
    reading: Mapping[str, Any] = MappingProxyType({}),
) -> LabelledData | None:
    """A batch as labelled data, its columns in the order of the projections; None for one without points.

    A table is read by the columns of the projections, whatever else a batch would be judged to hold.
    """
    several = features if isinstance(features, list) and all(map(is_tensor, features)) else []
    if [min(part.ndim, 2) for part in several] == [2, 1]:  # as loaders of torch put points and labels together
        features = several[0], several[1]
    source = features if labels is None else (features, labels)
    points, classes = source if isinstance(source, tuple) and len(source) == 2 else (source, None)
    shape = getattr(points, "shape", None)
    if isinstance(shape, tuple) and len(shape) > 1 and shape[0] == 0:
        if classes is not None and (not isinstance(classes, Sized) or getattr(classes, "ndim", 1) == 0 or len(classes)):
            raise SotddError("a batch has labels but no features: expected one label per row.")
        return None
    schema = None
    if is_frame(points) and projections.columns is not None:
        schema = Schema.of_features(projections.columns)
    try:
        batch = projections.align(open_alike(source, schema, name="batch", **reading))
    except NoRows:
        return None
    if not is_frame(source):
        return batch
    for remark in find_unlabelled(batch):
        for column, why in remark.facts.get("passed", {}).items():
            if why == "empty":  # like a batch of which every label is missing
                return None
            raise SotddError(f"a batch alone does not tell whether {column!r} holds labels: say so", by=("label",))
    return batch


class SketchBuilder:
    """Makes a sketch from batches, keeping counts of projected values in place of the values.

    Each class has histograms of its own, 4 kB for each projection, since the label term that its points share is known
    only at the end. Builders merge in any order and grouping.

    Parameters
    ----------
    projections
        What the data are projected by. Their label law must be moments, whose sums add up over parts of a dataset.
    n_quantiles
        How many numbers the sketch keeps of each projection.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(20_000, 3)), rng.integers(2, size=20_000)
    >>> projections = sotdd.Projections.fit([(x, y)], n_projections=64)
    >>> halves = [sotdd.SketchBuilder(projections).add(x[k::2], y[k::2]) for k in range(2)]
    >>> streamed = halves[0].merge(halves[1]).finish("streamed")
    >>> streamed
    Sketch('streamed': 20,000 points, 2 classes, 64 projections × 384 quantiles)
    >>> streamed.distance(sotdd.sketch((x, y), projections)).value < 0.001
    True
    """

    def __init__(self, projections: Projections, *, n_quantiles: int = QUANTILES) -> None:
        self.n_quantiles: int = check_quantiles(n_quantiles).count
        projections = check_projections(projections)
        if not adds_up(projections):
            raise SotddError("streams take label_law='moments': use sotdd.sketch on the whole dataset for other laws.")
        self.projections = projections
        self.by_position: bool = False  # whether columns could not be matched by name
        self.remarks: Remarks = ()
        self.sums = Sums(projections)
        self._half_added = False  # whether an error interrupted a batch

    @property
    def n_points(self) -> int:
        """How many points were added."""
        return sum(self.sums.counts.values())

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """The labels, in an order that does not depend on how they arrived."""
        return self.sums.classes

    def __repr__(self) -> str:
        """Sizes, for people."""
        points, projections = say_count(self.n_points, "point"), say_count(self.projections.n_projections, "projection")
        return f"SketchBuilder({points}, {projections})"

    def add(self, features: Dataset, labels: ArrayLike | Sequence[Hashable] | None = None) -> Self:
        """Add a batch; features alone are one class."""
        return self.add_read(features, labels, {})

    def add_read(
        self, features: Dataset, labels: ArrayLike | Sequence[Hashable] | None, reading: Mapping[str, Any]
    ) -> Self:
        """Add a batch; if it is a table, it is read by these options."""
        batch = open_batch(features, labels, self.projections, reading)
        if batch is None:
            return self
        with self._adding(batch.classes):
            self.by_position |= (batch.columns is None) != (self.projections.columns is None)
            self.remarks = join_remarks(self.remarks, find_unlabelled(batch))
            self.sums.add_batch(batch)
        return self

    def merge(self, other: SketchBuilder) -> Self:
        """Add the counts of another builder through the same projections."""
        if not isinstance(other, SketchBuilder):
            raise SotddError(f"is {describe(other)}: expected a SketchBuilder.", setting="other")
        SavedProjections.of(self.projections).refuse_other(SavedProjections.of(other.projections), "the parts to merge")
        other.refuse_half_added()
        with self._adding(other.sums.counts):
            self.by_position |= other.by_position
            self.remarks = join_remarks(self.remarks, other.remarks)
            self.sums.merge(other.sums)
        return self

    def refuse_half_added(self) -> None:
        """Refuse to go on after an error left a batch half added."""
        if self._half_added:
            raise SotddError("an error interrupted a batch while it was added: start again with a new builder.")

    @contextmanager
    def _adding(self, classes: Iterable[Hashable]) -> Iterator[None]:
        """Refuse points of some classes before anything is changed, or note that it is not done half way."""
        self.refuse_half_added()
        labels = [*self.sums.counts, *classes]
        texts, others = ([label for label in labels if isinstance(label, str) is kind] for kind in (True, False))
        if texts and others:  # one class would count as two
            raise SotddError(
                f"labels are text in one batch ({texts[0]!r}) and not in another ({others[0]!r}): use one type for all."
            )
        n_classes, n_projections = len(set(labels)), self.projections.n_projections
        if not fit_classes(n_classes, n_projections):
            raise SotddError(
                f"histograms of {say_count(n_classes, 'class', 'classes')} × {say_count(n_projections, 'projection')} "
                f"take more than {CLASS_BYTES >> 20} MB: use fewer projections, or sotdd.sketch on the whole dataset."
            )
        self._half_added = True
        yield
        self._half_added = False

    def finish(self, name: str = "data") -> Sketch:
        """The sketch of all points added."""
        check_name(name)
        self.refuse_half_added()
        if not self.n_points:
            raise SotddError("there are no points to sketch: add some first.")
        projections, sums, classes = self.projections, self.sums, self.classes
        counts = np.array([sums.counts[label] for label in classes], np.int64)
        terms = np.stack([sums.by_class[label]["terms sums"] for label in classes], axis=1) / counts  # (L, C)
        values, levels = [sums.by_class[label]["values values"] for label in classes], Levels(self.n_quantiles)

        def find(drawn: tuple[slice, Block]) -> tuple[NDArray[np.float32], Doubles]:
            part, block = drawn
            return find_quantiles(values, part, block.terms.weights, terms[part], levels)

        with Workers() as workers:
            quantiles, lost = map(np.concatenate, zip(*workers.each(find, projections.blocks()), strict=True))
        by_position = [remark_position(name, projections.columns is not None)] if self.by_position else []
        return Sketch(
            name,
            SavedProjections.of(projections),
            quantiles,
            False,
            classes,
            counts,
            terms.astype(np.float32),
            draw_weights(projections),
            lost,
            (*self.remarks, *by_position),
            halves=find_stream_halves(sums),
            controls=sums.find_controls(),
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write a file of counts and sums, whole or not at all, for another machine or a party that may see them."""
        write_whole(path, pack_builder(self))

    @staticmethod
    def load(path: str | PathLike[str], projections: Projections | None = None) -> SketchBuilder:
        """Read a file that `save` wrote; pass projections only if they use laws of your own."""
        return unpack_builder(read_whole(path, "a file of a SketchBuilder"), path, projections)


def adds_up(projections: Projections) -> bool:
    """Whether label terms are sums over points, which add up over parts of a dataset."""
    return projections.draw(0, BLOCK).terms.additive


def pack_builder(builder: SketchBuilder) -> bytes:
    """The content of a file: what its projections need, the classes and their counts, and the totals of `Sums`."""
    builder.refuse_half_added()
    header, arrays = SavedProjections.of(builder.projections).pack()
    header |= {
        "n_quantiles": builder.n_quantiles,
        "classes": pack_labels(list(builder.sums.counts)),
        "counts": list(builder.sums.counts.values()),
        "by_position": builder.by_position,
        "remarks": pack_remarks(builder.remarks),
        "kept": builder.sums.parts,
    }
    return pack("sketch builder", header, arrays | builder.sums.pack())


def unpack_builder(content: bytes, path: str | PathLike[str], projections: Projections | None = None) -> SketchBuilder:
    """A builder from the content of a file; messages call it by its path."""
    reader = unpack("sketch builder", content, path)
    drawn, count = read_projections(reader, projections), reader.count("n_quantiles")
    builder = SketchBuilder(drawn, n_quantiles=count)
    classes, counts = reader.labels(), reader.get("counts", list)
    whole = all(type(count) is int and count > 0 for count in counts) and sum(counts) < 2**62
    if len(counts) != len(classes) or not whole:
        raise reader.refuse("its 'counts' are not one for each class")
    builder.by_position = reader.get("by_position", bool)
    if reader.has("remarks"):  # as older files have not
        builder.remarks = reader.remarks("remarks")
    builder.sums.read(reader, dict(zip(classes, counts, strict=True)), reader.texts("kept"))
    return builder
