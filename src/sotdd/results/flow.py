"""A flow as a value: where a dataset went, and the way."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.text import counted
from sotdd.projections.recipe import Projections


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A dataset on its way.

    Attributes
    ----------
    step
        After how many steps.
    distance
        How far from the target it is.
    features
        (n, ...) the points, in the shape of the source.
    labels
        (n,) the source's labels; or (n, C) class probabilities where labels move.
    """

    step: int
    distance: float
    features: NDArray[Any]
    labels: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Flow:
    """What `flow` returns: where the dataset went, and the way.

    Attributes
    ----------
    snapshots
        The dataset from step 0 to the last.
    classes
        The source's labels, in the order of the columns of probabilities.
    projections
        What the distances were measured through: pass it to `sotdd.distance` to compare with them.
    settings
        How the flow was made, in plain values.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> flow = sotdd.flow(rng.normal(size=(60, 2)), rng.normal(3, 1, size=(60, 2)), steps=20, snapshots=3)
    >>> isinstance(flow, sotdd.results.Flow), flow.steps.tolist(), flow.features.shape
    (True, [0, 10, 20], (60, 2))
    """

    snapshots: tuple[Snapshot, ...]
    classes: tuple[Hashable, ...]
    projections: Projections
    settings: Mapping[str, object]

    def __repr__(self) -> str:
        """Size, length and success, for people."""
        first, last = self.snapshots[0], self.snapshots[-1]
        size = f"{counted(len(last.features), 'point')}, {counted(last.step, 'step')}"
        return f"Flow({size}: {first.distance:.4g} → {last.distance:.4g})"

    @property
    def features(self) -> NDArray[Any]:
        """The points at the end, (n, ...)."""
        return self.snapshots[-1].features

    @property
    def labels(self) -> NDArray[Any]:
        """The labels at the end: the source's (n,), or class probabilities (n, C) where labels move."""
        return self.snapshots[-1].labels

    @property
    def likeliest(self) -> NDArray[Any]:
        """One label per point at the end, (n,): the likeliest where labels move."""
        labels = self.labels
        return labels if labels.ndim == 1 else label_array(self.classes)[labels.argmax(axis=1)]

    @property
    def steps(self) -> NDArray[np.int64]:
        """The steps of the snapshots, (S,)."""
        return np.array([snapshot.step for snapshot in self.snapshots], np.int64)

    @property
    def distances(self) -> NDArray[np.float64]:
        """The distance to the target at each snapshot, (S,)."""
        return np.array([snapshot.distance for snapshot in self.snapshots])


def label_array(classes: Sequence[Hashable]) -> NDArray[Any]:
    """Labels as an array that keeps each as it is: of one plain kind, or of objects."""
    kinds = {type(label) for label in classes}
    if len(kinds) == 1 and kinds <= {bool, int, float, str}:
        return np.array(classes)
    array = np.empty(len(classes), object)
    array[:] = classes
    return array
