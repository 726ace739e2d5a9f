"""What the label term needs to know of each class, which adds up over batches, shards and parties."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from functools import partial
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.files import read_whole, write_whole
from sotdd.basics.text import say_count
from sotdd.compute.engine import LARGEST_TERM, describe_bad_term
from sotdd.inputs import open_dataset
from sotdd.inputs.agreement import meets_by_position
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.projections.draws import BLOCK, Block
from sotdd.projections.labels import Quantiles
from sotdd.projections.moments import Polynomials
from sotdd.projections.recipe import Projections
from sotdd.sketches.controls import PowerSums
from sotdd.sketches.histograms import (
    Histograms,
    Portion,
    Sums,
    check_classes,
    count_classes,
    find_quantiles,
    for_each_portion,
)
from sotdd.sketches.quantiles import Levels
from sotdd.sketches.recipe import Recipe, check_projections


class Stored:
    """Counts and sums of data through some projections, as one file."""

    projections: Projections

    def save(self, path: str | PathLike[str]) -> None:
        """Write a file, whole or not at all, for another machine or party; it holds counts and sums, no data points."""
        from sotdd.sketches.file import pack_counts

        write_whole(path, pack_counts(self))

    @classmethod
    def load(cls, path: str | PathLike[str], projections: Projections | None = None) -> Self:
        """Read a file that `save` wrote; pass projections only if they use laws of your own."""
        from sotdd.sketches.file import unpack_counts

        return unpack_counts(cls, read_whole(path, f"a file of a {cls.__name__}"), path, projections)


class ClassStatistics(Stored):
    """How many points each class has, and what its label term is computed from.

    For moments that is the sum of the label polynomial over the class; for class quantiles it is
    histograms of its projected values.

    Class statistics are the first of two passes over data that come in batches; `SketchBuilder` makes the
    second.

    Parameters
    ----------
    projections
        What the data are projected by. Their label law must be one that can be merged over parts of a
        dataset: moments or class quantiles.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> x, y = np.random.default_rng(0).normal(size=(100, 3)), np.arange(100) % 2
    >>> projections = sotdd.Projections.fit([x], n_projections=64)
    >>> first, second = sotdd.ClassStatistics(projections), sotdd.ClassStatistics(projections)
    >>> first.add(x[:30], y[:30]).merge(second.add(x[30:], y[30:]))
    ClassStatistics(100 points, 2 classes, 64 projections)
    """

    def __init__(self, projections: Projections) -> None:
        self.terms_kind: type = _check_label_law(projections)
        self.projections = projections
        self.counts: dict[Hashable, int] = {}
        self.by_position: bool = False  # whether columns could not be matched by name
        count = projections.n_projections
        # The sum of the label polynomial over a class, or the class's projected values.
        terms = Sums({"sums": partial(np.zeros, count)})
        if self.terms_kind is Quantiles:
            terms = Sums({"values": partial(Histograms.empty, count)}, required=True)
        self.powers: PowerSums = PowerSums(projections)
        self.sums: dict[str, Sums] = {"terms": terms, "controls": self.powers.sums}
        self._half_added = False  # whether an error interrupted a batch

    def __repr__(self) -> str:
        """Sizes, for people."""
        points, classes = say_count(self.n_points, "point"), say_count(len(self.counts), "class", "classes")
        return f"ClassStatistics({points}, {classes}, {say_count(self.projections.n_projections, 'projection')})"

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

    @property
    def counts_features(self) -> bool:
        """Whether the histograms kept for the label term also describe the features."""
        return self.terms_kind is Quantiles and self.projections.draw(0, BLOCK).label_features is None

    def add(self, features: Dataset, labels: ArrayLike | Sequence[Hashable] | None = None) -> Self:
        """Add a batch; features alone are one class."""
        batch = open_batch(features, labels, self.projections)
        if batch is not None:
            self.add_opened(batch)
        return self

    def add_opened(self, batch: LabelledData, work: Callable[[Portion], None] | None = None) -> None:
        """Add a batch whose columns are in the order of the projections; ``work`` does so portion by portion."""
        with self._adding(dict(zip(batch.classes, batch.counts.tolist(), strict=True))):
            self.by_position |= meets_by_position(batch, self.projections.columns)
            self.powers.add_points(batch)
            for_each_portion(batch, self.projections, work or self.gather)

    def merge(self, other: ClassStatistics) -> Self:
        """Add the statistics of other data through the same projections."""
        refuse_unlike(self, other)
        other.refuse_half_added()
        with self._adding(dict(other.counts)):  # which may be this one's own
            self.by_position |= other.by_position
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
        if any(sums.required for sums in self.sums.values()):
            check_classes(len({*self.counts, *counts}), self.projections.n_projections)
        self._half_added = True
        for label, count in counts.items():
            self.counts[label] = self.counts.get(label, 0) + count
        for sums in self.sums.values():
            sums.expect(counts)
        yield
        self._half_added = False

    def gather(self, portion: Portion) -> None:
        """Add one portion to the label terms and to what controls are made of."""
        from sotdd.compute.cpu.rows import sum_classes

        self.powers.gather(portion)
        terms = self.sums["terms"].by_class
        if not isinstance(portion.terms, Polynomials):
            count_classes(self.sums["terms"], portion, portion.label_rows)
            return
        sums = sum_classes(portion.label_rows, portion.offsets, portion.terms)
        means = sums / np.diff(portion.offsets)
        fits = (np.abs(means) < LARGEST_TERM).all(axis=1)  # NaN is not smaller than anything
        if not fits.all():
            line = int(np.argmin(fits))
            largest = float(np.abs(portion.label_rows[line]).max())
            raise describe_bad_term("stream", largest, portion.terms, line, portion.part.start + line)
        for label, column in zip(portion.classes, sums.T, strict=True):
            terms[label]["sums"][portion.part] += column

    def terms(self) -> NDArray[np.float64]:
        """The label term of each class, (L, C)."""
        self._refuse_empty()
        if self.terms_kind is Polynomials:
            sums = self.sums["terms"].by_class
            return np.stack([sums[label]["sums"] / self.counts[label] for label in self.classes], axis=1)
        return np.concatenate([self._find_quantile_terms(*drawn) for drawn in self.projections.blocks()])

    def term_errors(self) -> NDArray[np.float64]:
        """How far the label term of each class may be off, (L, C): the root mean square over draws of the label law.

        Sums are exact; quantiles come from counts in bins.
        """
        self._refuse_empty()
        if self.terms_kind is Polynomials:
            return np.zeros((self.projections.n_projections, len(self.classes)))
        return np.concatenate([self._bound_quantile_terms(*drawn) for drawn in self.projections.blocks()])

    def _refuse_empty(self) -> None:
        if not self.counts:
            raise SotddError("there are no points yet, and so no label terms: add some first.")

    def _histograms(self) -> list[Histograms]:
        """The counted values of each class, where its label term is made of quantiles."""
        return [self.sums["terms"].by_class[label]["values"] for label in self.classes]

    def _bound_quantile_terms(self, part: slice, block: Block) -> NDArray[np.float64]:
        """A term is Σ c_k q_k with c in any direction, and the K means q_k are off by a bin's width / √3 together."""
        lengths = np.linalg.norm(block.terms.coefficients, axis=1) / np.sqrt(3)
        return np.stack([lengths * one.widths(part) for one in self._histograms()], axis=1)

    def _find_quantile_terms(self, part: slice, block: Block) -> NDArray[np.float64]:
        terms, count = block.terms, len(block)
        assert isinstance(terms, Quantiles)
        levels = Levels(terms.levels, "even")
        unchanged = np.ones(count), np.zeros((count, 1))  # weights and shifts of the values
        means = [find_quantiles([one], part, *unchanged, levels)[0] for one in self._histograms()]
        wide = np.stack(means, axis=1).astype(np.float64)  # (B, C, K)
        by_class: NDArray[np.float64] = np.einsum("bck,bk->bc", wide, terms.coefficients)
        return by_class


def open_batch(
    features: Dataset, labels: ArrayLike | Sequence[Hashable] | None, projections: Projections
) -> LabelledData | None:
    """A batch as labelled data, its columns in the order of the projections; None for one without points."""
    source = features if labels is None else (features, labels)
    points, classes = source if isinstance(source, tuple) and len(source) == 2 else (source, None)
    shape = getattr(points, "shape", None)
    if isinstance(shape, tuple) and len(shape) > 1 and shape[0] == 0:
        if classes is not None and (not isinstance(classes, Sized) or len(classes)):
            raise SotddError("a batch has labels but no features: expected one label per row.")
        return None
    return projections.align(open_dataset(source, name="batch"))


def refuse_unlike(one: Any, other: Any) -> None:  # noqa: ANN401  # builders or class statistics
    """Refuse to merge with another type, or with what was made through other projections."""
    if not isinstance(other, type(one)):
        raise SotddError(
            f"a {type(other).__name__} cannot be merged into a {type(one).__name__}: expected the same type."
        )
    Recipe.of(one.projections).refuse_other(Recipe.of(other.projections), "the parts to merge")


def _check_label_law(projections: Projections) -> type:
    kind = type(check_projections(projections).draw(0, BLOCK).terms)
    if kind not in (Polynomials, Quantiles):
        raise SotddError(
            "the label law of these projections does not add up over parts of a dataset: use sotdd.sketch on the "
            "whole dataset, or label_law='moments' or 'quantiles'."
        )
    return kind


def _refuse_mixed(labels: Sequence[Hashable]) -> None:
    """Refuse labels that are text in one batch and numbers in another: one class would count as two."""
    kinds = {isinstance(label, str) for label in labels}
    if len(kinds) > 1:
        text = next(label for label in labels if isinstance(label, str))
        other = next(label for label in labels if not isinstance(label, str))
        raise SotddError(
            f"labels are text in one batch ({text!r}) and not in another ({other!r}): use one type for all."
        )
