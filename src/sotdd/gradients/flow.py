"""Gradient flow: a labelled dataset that moves towards another, down the slope of the distance.

Importing this needs no torch; calling `flow` does.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import Result, SotddError, check_count, check_order, check_positive, describe, require
from sotdd.basics.remarks import Remark, Remarks
from sotdd.basics.resources import Progress, Stream, report_progress, sequence
from sotdd.basics.text import say_count
from sotdd.inputs import open_all
from sotdd.inputs.data import Dataset
from sotdd.projections.projections import Projections
from sotdd.projections.settings import ProjectionKeywords, ProjectionSettings, show_settings

if TYPE_CHECKING:
    import torch

# What a step sees unless the caller says otherwise.
_SETTINGS = ProjectionSettings(n_projections=256)

# Distances along the way are measured by as many projections as `sotdd.distance` takes, and vary by about this share.
_MEASURED_BY, _NOISE = 1000, 0.03


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
        (n,) the source's labels.
    """

    step: int
    distance: float
    features: NDArray[Any]
    labels: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Flow(Result):
    """What `flow` returns: where the dataset went, and the way.

    Attributes
    ----------
    snapshots
        The dataset from step 0 to the last.
    classes
        The source's distinct labels.
    projections
        What the distances were measured through: pass it to `sotdd.distance` to compare with them.

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

    def __repr__(self) -> str:
        """Size, length and success, for people."""
        first, last = self.snapshots[0], self.snapshots[-1]
        size = f"{say_count(len(last.features), 'point')}, {say_count(last.step, 'step')}"
        return f"Flow({size}: {first.distance:.4g} → {last.distance:.4g})" + "".join(f"; {one}" for one in self.remarks)

    @property
    def remarks(self) -> Remarks:
        """Where it ends farther from the target than it was before, by more than noise: how far, and when."""
        nearest, last = min(self.snapshots, key=lambda one: one.distance), self.snapshots[-1]
        if last.distance <= nearest.distance * (1 + _NOISE):
            return ()
        return (Remark("farther again", step=nearest.step, nearest=nearest.distance, end=last.distance),)

    @property
    def features(self) -> NDArray[Any]:
        """The points at the end, (n, ...)."""
        return self.snapshots[-1].features

    @property
    def labels(self) -> NDArray[Any]:
        """The labels, which stay with their points: the source's (n,)."""
        return self.snapshots[-1].labels

    @property
    def steps(self) -> NDArray[np.int64]:
        """The steps of the snapshots, (S,)."""
        return np.array([snapshot.step for snapshot in self.snapshots], np.int64)

    @property
    def distances(self) -> NDArray[np.float64]:
        """The distance to the target at each snapshot, (S,)."""
        return np.array([snapshot.distance for snapshot in self.snapshots])


@show_settings(_SETTINGS)
def flow(
    source: Dataset,
    target: Dataset,
    *,
    p: float = 2,
    steps: int = 200,
    learning_rate: float = 0.3,
    snapshots: int | Sequence[int] = 11,
    device: str | torch.device = "auto",
    progress: Progress = None,
    **drawing: Unpack[ProjectionKeywords],
) -> Flow:
    """Move a labelled dataset towards another by gradient descent on the distance between them.

    Parameters
    ----------
    source, target
        ``(features, labels)`` or features alone, as for `sotdd.distance`. Only the source moves.
        Their sizes and label sets may differ.
    p
        The order of transport. Whatever it is, the flow descends the squared distance.
    n_projections
        How many projections a step sees, each step its own. The distances of the snapshots are by 1,000.
    n_moments, moments, label_law, directions, label_directions, scale
        How datasets are projected, as for `sotdd.distance`. One scaler, learnt at the start,
        serves all steps.
    seed
        An integer, or a NumPy Generator. Step s draws projections keyed by (seed, s).
    steps
        How many steps to take.
    learning_rate
        The length of a step, as a share of the one that would bring the features to the target at once if labels did
        not count. It falls to zero along half a cosine. Much above 0.5, high moments throw points around.
    snapshots
        How many snapshots to take, evenly spaced from step 0 to the last; or the steps to take them
        at, to which the last is added.
    device
        Where to compute: "auto" for a GPU if there is one and the processor otherwise, "cpu", "cuda", or
        a GPU by number such as "cuda:1".
    progress
        True for a bar, or a function of (done, total) steps.

    Returns
    -------
    Flow
        The moved features with their labels, the snapshots, and the distance at each of them.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> angle = np.linspace(0, 2 * np.pi, 100, endpoint=False)
    >>> ring = np.stack([np.cos(angle), np.sin(angle)], axis=1), np.where(angle < np.pi, "upper", "lower")
    >>> centres = np.repeat([[-2.0, 0.0], [2.0, 0.0]], 40, axis=0)
    >>> blobs = rng.normal(centres, 0.3), np.arange(80) // 40
    >>> flow = sotdd.flow(ring, blobs, steps=50, snapshots=3)
    >>> bool(flow.distances[-1] < 0.05 * flow.distances[0])
    True
    """
    require("torch", "sotdd.flow", "'sotdd[torch]'")
    settings = _SETTINGS.but(drawing)
    start, end = open_all({"source": source, "target": target})
    check_positive(learning_rate, "learning_rate")
    stops = _choose_stops(snapshots, check_count(steps, "steps"))
    count = check_count(settings.n_projections, "n_projections")
    projections = replace(settings, n_projections=_MEASURED_BY).fit([start, end])

    from sotdd.gradients.loss import Descent

    moving, labels = Descent(start, end, projections, check_order(p), device), _label_array(start.classes)[start.codes]
    taken = list[Snapshot]()
    dtype = start.features.dtype if start.features.dtype.kind == "f" else np.float64

    def take_snapshot(step: int) -> None:
        distance, points = moving.locate()
        taken.append(Snapshot(step, distance, points.reshape(start.features.shape).astype(dtype), labels))

    with report_progress(progress, "Flowing") as report:
        for step in range(steps):
            if step in stops:
                take_snapshot(step)
            falling = 0.5 * (1 + math.cos(math.pi * step / steps))
            moving.step(_draw_again(projections, count, step), falling * learning_rate)
            report(step + 1, steps)
        take_snapshot(steps)
    return Flow(tuple(taken), start.classes, projections)


def _choose_stops(snapshots: int | Sequence[int], steps: int) -> set[int]:
    """The steps before which snapshots are taken; one more is taken after the last step."""
    if not isinstance(snapshots, (list, tuple)):
        count = min(check_count(snapshots, "snapshots"), steps + 1)
        return {round(stop) for stop in np.linspace(0, steps, count).tolist()}
    if not all(isinstance(step, (int, np.integer)) and 0 <= step <= steps for step in snapshots):
        raise SotddError(f"are {describe(str(snapshots))}: expected steps from 0 to {steps:,}.", setting="snapshots")
    return set(snapshots)


def _draw_again(projections: Projections, count: int, step: int) -> Projections:
    """The projections of one step: the same laws, keyed by (seed, step)."""
    assert projections.seed is not None  # as `ProjectionSettings.fit` makes them
    key = sequence(projections.seed, Stream.FLOW_STEPS, step).generate_state(1, np.uint64)[0]
    return replace(projections, seed=int(key), n_projections=count)


def _label_array(classes: Sequence[Hashable]) -> NDArray[Any]:
    """Labels as an array that keeps each as it is: of one plain kind, or of objects."""
    kinds = {type(label) for label in classes}
    if len(kinds) == 1 and kinds <= {bool, int, float, str}:
        return np.array(classes)
    array = np.empty(len(classes), object)
    array[:] = classes
    return array
