"""A drift reference that grows: what it keeps is a random sample of all points it was ever given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.streams import Stream, generator
from sotdd.inputs import open_dataset
from sotdd.inputs.data import Dataset
from sotdd.measure.drift import DriftReference, Projected


@dataclass(frozen=True, eq=False)
class GrowingReference:
    """A drift reference and what it takes to add points to it.

    Every point draws a number between zero and one, and those with the smallest numbers are kept. So each point is as
    likely to be kept as any other, in however many parts they came.

    Attributes
    ----------
    reference
        The points kept so far; its projections and scale are those of the first part.
    keys
        (n,) the numbers that they drew.
    most
        How many points are kept at most; None for all.
    n_seen
        How many points there were.
    """

    reference: DriftReference
    keys: NDArray[np.float64]
    most: int | None
    n_seen: int

    @classmethod
    def begin(cls, data: Dataset, most: int | None, **settings: Any) -> GrowingReference:  # noqa: ANN401  # as fit takes them
        """The first part, which decides on projections and scale."""
        opened = open_dataset(data, name="reference")
        reference = DriftReference.fit(opened, max_points=most, **settings)
        rng = generator(reference.seed, Stream.REFERENCE_KEYS, 0)
        # A sample of n points may be thought of as those with the smallest keys, whichever point has which of them.
        keys = rng.permutation(np.sort(rng.random(opened.n_points))[: reference.n_points])
        return cls(replace(reference, commonest=None), keys, most, opened.n_points)

    def after(self, data: Dataset) -> GrowingReference:
        """The reference after one more part."""
        opened = self.reference.opened(data)
        rng = generator(self.reference.seed, Stream.REFERENCE_KEYS, self.n_seen)
        keys = np.concatenate([self.keys, rng.random(opened.n_points)])
        kept = np.arange(len(keys)) if self.most is None else np.sort(np.argsort(keys)[: self.most])
        n_known = len(self.keys)
        known, new = kept[kept < n_known], kept[kept >= n_known] - n_known
        points = self.reference.points.take(known)
        if len(new):
            points = _joined(points, Projected.of(opened.take(new), self.reference.projections))
        return replace(
            self,
            reference=replace(self.reference, points=points),
            keys=keys[kept],
            n_seen=self.n_seen + opened.n_points,
        )

    def without_labels(self) -> DriftReference:
        """The reference as if it had been fitted on features alone."""
        points = self.reference.points
        one_class = replace(points, classes=("all",), codes=np.zeros(points.n_points, np.int64))
        return replace(self.reference, points=one_class, reading=replace(self.reference.reading, labelled=False))


def _joined(one: Projected, other: Projected) -> Projected:
    """The points of both, with classes pooled by value."""
    places = {label: place for place, label in enumerate(dict.fromkeys((*one.classes, *other.classes)))}
    renumbered = np.array([places[label] for label in other.classes], np.int64)
    label_rows = None
    if one.label_rows is not None and other.label_rows is not None:
        label_rows = np.concatenate([one.label_rows, other.label_rows], axis=1)
    return Projected(
        np.concatenate([one.rows, other.rows], axis=1),
        label_rows,
        tuple(places),
        np.concatenate([one.codes, renumbered[other.codes]]),
    )
