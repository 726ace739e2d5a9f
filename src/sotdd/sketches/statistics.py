"""What the label term needs to know of the data, class by class; it adds up over batches, shards and parties."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sotdd.data import Dataset, LabelledData
from sotdd.engines.faults import LARGEST_TERM, too_large, unusable_term
from sotdd.errors import SotddError
from sotdd.projections.draws import BLOCK
from sotdd.projections.labels import Polynomials
from sotdd.projections.recipe import Projections
from sotdd.sketches.portions import Portion, for_each_portion


class ClassStatistics:
    """Counts of each class, and the sums of the label polynomial over it.

    The first of two passes over data that come in batches; `SketchBuilder` makes the second.

    Parameters
    ----------
    projections
        What the data are seen through. Their label law must add up over parts of a dataset, as
        moments do.

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
        self.projections = _mergeable(projections)
        self.counts: dict[Hashable, int] = {}
        self.sums: dict[Hashable, NDArray[np.float64]] = {}  # (L,) of each class

    def __repr__(self) -> str:
        """Sizes, for people."""
        classes = "1 class" if len(self.counts) == 1 else f"{len(self.counts):,} classes"
        return f"ClassStatistics({self.n_points:,} points, {classes}, {self.projections.n_projections:,} projections)"

    @property
    def n_points(self) -> int:
        """How many points were added."""
        return sum(self.counts.values())

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """The labels, in an order that does not depend on how they arrived."""
        try:
            return tuple(sorted(self.counts))  # type: ignore[type-var]  # what cannot be compared says so
        except TypeError:
            return tuple(sorted(self.counts, key=lambda label: (type(label).__name__, str(label))))

    def add(self, features: Dataset, labels: ArrayLike | Sequence[Hashable] | None = None) -> Self:
        """Add a batch; features alone are one class."""
        batch = as_batch(features, labels, self.projections)
        if batch is not None:
            self.expect(counts_of(batch))
            for_each_portion(batch, self.projections, self.gather)
        return self

    def merge(self, other: ClassStatistics) -> Self:
        """Add what another has gathered through the same projections."""
        refuse_unlike(self, other)
        self.expect(other.counts)
        for label, sums in other.sums.items():
            self.sums[label] += sums
        return self

    def expect(self, counts: Mapping[Hashable, int]) -> None:
        """Make room for so many points of each class, before they are gathered."""
        _refuse_mixed([*self.counts, *counts])
        for label, count in counts.items():
            self.counts[label] = self.counts.get(label, 0) + count
            self.sums.setdefault(label, np.zeros(self.projections.n_projections))

    def gather(self, portion: Portion) -> None:
        """Add the sums of one portion."""
        from sotdd.engines.cpu import class_sums

        assert isinstance(portion.terms, Polynomials)
        sums = class_sums(portion.label_rows, portion.offsets, portion.terms)
        fits = (np.abs(sums) < LARGEST_TERM).all(axis=1)  # NaN is not smaller than anything
        if not fits.all():
            line = int(np.argmin(fits))
            largest = float(np.abs(portion.label_rows[line]).max())
            raise unusable_term("stream", largest, portion.terms, line, portion.part.start + line)
        for label, column in zip(portion.classes, sums.T, strict=True):
            self.sums[label][portion.part] += column

    def terms(self) -> NDArray[np.float64]:
        """Where each class stands, (L, C)."""
        return np.stack([self.sums[label] / self.counts[label] for label in self.classes], axis=1)


def as_batch(
    features: Dataset, labels: ArrayLike | Sequence[Hashable] | None, projections: Projections
) -> LabelledData | None:
    """A batch, checked; None for one without points."""
    shape = getattr(features, "shape", None)
    if shape is not None and len(shape) > 1 and shape[0] == 0:
        if labels is not None and len(labels):  # type: ignore[arg-type]  # whatever it is, it should be empty
            raise SotddError("a batch has labels but no features: expected one label per row.")
        return None
    batch = LabelledData.of(features if labels is None else (features, labels), "batch")  # type: ignore[arg-type]
    projections.check(batch)
    return batch


def counts_of(batch: LabelledData) -> dict[Hashable, int]:
    """How many points of each class there are."""
    return dict(zip(batch.classes, batch.counts.tolist(), strict=True))


def refuse_unlike(one: ClassStatistics, other: object) -> None:
    """Refuse to merge what is of another kind or was seen through other projections."""
    from sotdd.sketches.sketch import refuse_other_recipes

    if not isinstance(other, type(one)):
        raise SotddError(f"a {type(other).__name__} cannot be merged into a {type(one).__name__}: expected another.")
    mine, theirs = one.projections, other.projections
    refuse_other_recipes(mine.recipe(), mine.fingerprint, theirs.recipe(), theirs.fingerprint, "what is merged")


def refuse_not_finite(portion: Portion, line: int) -> None:
    """Explain a row that could not be counted."""
    if line >= 0:
        raise too_large("stream", portion.part.start + line)


def _mergeable(projections: Projections) -> Projections:
    if not isinstance(projections, Projections):
        raise SotddError(
            f"projections is a {type(projections).__name__}: expected Projections.fit(...) or from_arrays(...)."
        )
    if not isinstance(projections.draw(0, BLOCK).terms, Polynomials):
        raise SotddError(
            "the label law of these projections does not add up over parts of a dataset: use sotdd.sketch on all of "
            "it, or the law of moments."
        )
    return projections


def _refuse_mixed(labels: Sequence[Hashable]) -> None:
    """Refuse labels that are text in one batch and numbers in another: one class would count as two."""
    kinds = {isinstance(label, str) for label in labels}
    if len(kinds) > 1:
        text = next(label for label in labels if isinstance(label, str))
        other = next(label for label in labels if not isinstance(label, str))
        raise SotddError(f"labels are text in one batch ({text!r}) and not in another ({other!r}): give them one type.")
