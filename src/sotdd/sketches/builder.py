"""Sketches of data that arrive in batches: in bounded memory, in any order, on any number of machines.

A point's projection includes the label term of its class, which is known only when all points have been seen. So each
class has histograms of its own, which are shifted and put together at the end.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from os import PathLike
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sotdd.basics.errors import SotddError, describe
from sotdd.basics.files import read_whole, write_whole
from sotdd.basics.remarks import Remarks, join_remarks
from sotdd.basics.text import say_count
from sotdd.compute.slices import ProjectedPoints
from sotdd.inputs.agreement import find_unlabelled, meets_by_position, remark_position
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.inputs.labels import NoRows
from sotdd.inputs.loaders.tables import is_frame
from sotdd.inputs.opening import open_alike
from sotdd.inputs.schema import Schema
from sotdd.inputs.tensors import is_tensor
from sotdd.projections.blocks import BLOCK, Block
from sotdd.projections.recipe import Projections
from sotdd.sketches.controls import PowerSums, draw_weights
from sotdd.sketches.histograms import check_classes, find_quantiles
from sotdd.sketches.quantiles import QUANTILES, Levels, check_quantiles
from sotdd.sketches.recipe import Recipe, check_projections
from sotdd.sketches.sketch import Sketch
from sotdd.sketches.sums import Doubles, Sums, TermSums, ValueCounts, cut_blocks, project_batch
from sotdd.sketches.uncertainty import GroupCounts


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
        self.counts: dict[Hashable, int] = {}
        self.by_position: bool = False  # whether columns could not be matched by name
        self.remarks: Remarks = ()
        self.sums: dict[str, Sums] = {
            "controls": PowerSums(projections),
            "terms": TermSums(projections),
            "groups": GroupCounts(projections),
            "values": ValueCounts(projections),
        }
        self._half_added = False  # whether an error interrupted a batch

    @property
    def n_points(self) -> int:
        """How many points were added."""
        return sum(self.counts.values())

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """The labels, in an order that does not depend on how they arrived."""
        try:
            return tuple(sorted(self.counts))  # type: ignore[type-var]  # labels that cannot be compared raise
        except TypeError:
            return tuple(sorted(self.counts, key=lambda label: (type(label).__name__, str(label))))

    def __repr__(self) -> str:
        """Sizes, for people."""
        points, projections = say_count(self.n_points, "point"), say_count(self.projections.n_projections, "projection")
        return f"SketchBuilder({points}, {projections})"

    def add(self, features: Dataset, labels: ArrayLike | Sequence[Hashable] | None = None) -> Self:
        """Add a batch; features alone are one class."""
        batch = open_batch(features, labels, self.projections)
        if batch is not None:
            self.add_opened(batch)
        return self

    def add_opened(self, batch: LabelledData) -> None:
        """Add a batch whose columns are in the order of the projections."""
        before = self.n_points
        with self._adding(dict(zip(batch.classes, batch.counts.tolist(), strict=True))):
            self.by_position |= meets_by_position(batch, self.projections.columns)
            self.remarks = join_remarks(self.remarks, find_unlabelled(batch))
            for sums in self.sums.values():
                sums.add_points(batch)
            for points, some, start in project_batch(batch, self.projections):
                self._add_points(points, some, before + start)

    def _add_points(self, points: ProjectedPoints, batch: LabelledData, before: int) -> None:
        def add(block: ProjectedPoints) -> None:
            for sums in self.sums.values():
                if sums.kept:
                    sums.add(block, batch, before)

        points.engine.workers.each(add, cut_blocks(points))

    def merge(self, other: SketchBuilder) -> Self:
        """Add the counts of another builder through the same projections."""
        if not isinstance(other, SketchBuilder):
            raise SotddError(f"is {describe(other)}: expected a SketchBuilder.", setting="other")
        Recipe.of(self.projections).refuse_other(Recipe.of(other.projections), "the parts to merge")
        other.refuse_half_added()
        with self._adding(dict(other.counts)):  # which may be this one's own
            self.by_position |= other.by_position
            self.remarks = join_remarks(self.remarks, other.remarks)
            for name, sums in self.sums.items():
                sums.merge(other.sums[name])
        return self

    def refuse_half_added(self) -> None:
        """Refuse to go on after an error left a batch half added."""
        if self._half_added:
            raise SotddError("an error interrupted a batch while it was added: start again with a new builder.")

    @contextmanager
    def _adding(self, counts: Mapping[Hashable, int]) -> Iterator[None]:
        """Make room for this many more points of each class, or refuse before anything is changed."""
        self.refuse_half_added()
        _refuse_mixed([*self.counts, *counts])
        check_classes(len({*self.counts, *counts}), self.projections.n_projections)
        self._half_added = True
        for label, count in counts.items():
            self.counts[label] = self.counts.get(label, 0) + count
        for sums in self.sums.values():
            sums.expect(counts)
        yield
        self._half_added = False

    def finish(self, name: str = "data") -> Sketch:
        """The sketch of all points added."""
        check_name(name)
        self.refuse_half_added()
        if not self.n_points:
            raise SotddError("there are no points to sketch: add some first.")
        projections, classes, sums = self.projections, self.classes, self.sums["terms"].by_class
        terms = np.stack([sums[label]["sums"] / self.counts[label] for label in classes], axis=1)  # (L, C)
        counts = np.array([self.counts[label] for label in classes], np.int64)
        quantiles, lost = self._find_quantiles(terms, Levels(self.n_quantiles))
        controls, groups = self.sums["controls"], self.sums["groups"]
        assert isinstance(controls, PowerSums)
        assert isinstance(groups, GroupCounts)
        return Sketch(
            name,
            Recipe.of(projections),
            quantiles,
            False,
            classes,
            counts,
            terms.astype(np.float32),
            draw_weights(projections),
            lost,
            (*self.remarks, *([remark_position(name, projections.columns is not None)] if self.by_position else [])),
            halves=groups.find_halves(),
            controls=controls.result(dict(zip(classes, counts.tolist(), strict=True))),
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write a file of counts and sums, whole or not at all, for another machine or a party that may see them."""
        from sotdd.sketches.file import pack_builder

        write_whole(path, pack_builder(self))

    @staticmethod
    def load(path: str | PathLike[str], projections: Projections | None = None) -> SketchBuilder:
        """Read a file that `save` wrote; pass projections only if they use laws of your own."""
        from sotdd.sketches.file import unpack_builder

        return unpack_builder(read_whole(path, "a file of a SketchBuilder"), path, projections)

    def _find_quantiles(self, terms: Doubles, levels: Levels) -> tuple[NDArray[np.float32], Doubles]:
        """Quantile functions (L, Q) of the counted values, and what is lost by them (L, 3).

        The counted values lack the label terms (L, C), which are added here.
        """
        from sotdd.basics.resources import Workers

        values = self.sums["values"]
        groups = [values.by_class[label]["values"] for label in self.classes]

        def find(drawn: tuple[slice, Block]) -> tuple[NDArray[np.float32], Doubles]:
            part, block = drawn
            return find_quantiles(groups, part, block.terms.weights, terms[part], levels)

        with Workers() as workers:
            rows, lost = zip(*workers.each(find, self.projections.blocks()), strict=True)
        return np.concatenate(rows), np.concatenate(lost)


def adds_up(projections: Projections) -> bool:
    """Whether label terms are sums over points, which add up over parts of a dataset."""
    return projections.draw(0, BLOCK).terms.additive


def _refuse_mixed(labels: Sequence[Hashable]) -> None:
    """Refuse labels that are text in one batch and numbers in another: one class would count as two."""
    kinds = {isinstance(label, str) for label in labels}
    if len(kinds) > 1:
        text = next(label for label in labels if isinstance(label, str))
        other = next(label for label in labels if not isinstance(label, str))
        raise SotddError(
            f"labels are text in one batch ({text!r}) and not in another ({other!r}): use one type for all."
        )
