"""Gradient flow: a labelled dataset that moves towards another, down the slope of the distance.

Importing this needs no torch; calling `flow` does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Literal, Unpack

import numpy as np

from sotdd.basics.checks import check_choice, check_count, check_flag, check_order, check_positive, described
from sotdd.basics.errors import SotddError, require
from sotdd.basics.progress import Progress, reporting
from sotdd.basics.streams import Stream, sequence
from sotdd.inputs import open_dataset
from sotdd.inputs.column_names import matched
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.projections.drawing import Drawing, DrawingSettings, shows_drawing
from sotdd.projections.draws import Laws
from sotdd.projections.recipe import Projections
from sotdd.results.flow import Flow, Snapshot, label_array

if TYPE_CHECKING:
    import torch

    from sotdd.gradients.descent import Descent

# What a step sees unless the caller says otherwise.
_DRAWING = Drawing(n_projections=256)

# Distances along the way are measured by as many projections as `sotdd.distance` takes.
_MEASURED_BY = 1000


@shows_drawing(_DRAWING)
def flow(
    source: Dataset,
    target: Dataset,
    *,
    p: float = 2,
    steps: int = 200,
    learning_rate: float = 0.3,
    labels: Literal["keep", "move"] = "keep",
    label_learning_rate: float = 0.2,
    snapshots: int | Sequence[int] = 11,
    fresh: bool = True,
    device: str | torch.device = "auto",
    progress: Progress = None,
    **drawing: Unpack[DrawingSettings],
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
        How many projections a step sees. The distances of the snapshots are by 1,000.
    n_moments, moments, label_law, directions, shared_directions, scale
        How datasets are projected, as for `sotdd.distance`. One scaler, learnt at the start,
        serves all steps.
    seed
        An integer, or a NumPy Generator. Step s draws projections keyed by (seed, s).
    steps
        How many steps to take.
    learning_rate
        The length of a step, as a share of the one that would bring the features to the target at
        once if labels had no say. It falls to zero along half a cosine. Much above 0.5, high
        moments throw points about.
    labels
        "keep" the label of every point; or let labels "move": they become class probabilities over the
        source's classes, which start at 0.9 for a point's own class. Moving labels can mend class shares
        that differ from the target's, which moving points alone cannot.
    label_learning_rate
        The step of Adam on the logits of moving labels.
    snapshots
        How many snapshots to take, evenly spaced from step 0 to the last; or the steps to take them
        at, to which the last is added.
    fresh
        Whether every step draws its own projections, or one set serves all.
    device
        Where to compute: "auto" for a GPU if there is one and the processor otherwise, "cpu", "cuda", or
        a GPU by number such as "cuda:1".
    progress
        True for a bar, or a function of (done, total) steps.

    Returns
    -------
    Flow
        The moved features and labels, the snapshots, and the distance at each of them.

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
    settings = _DRAWING.but(drawing)
    datasets = matched(
        [
            open_dataset(data, name=None if isinstance(data, LabelledData) else name)
            for name, data in (("source", source), ("target", target))
        ]
    )
    order = check_order(p)
    pace = _Pace(
        check_count(steps, "steps"),
        check_positive(learning_rate, "learning_rate"),
        check_positive(label_learning_rate, "label_learning_rate"),
        check_count(settings.n_projections, "n_projections"),
        check_flag(fresh, "fresh"),
    )
    stops = _stops(snapshots, pace.steps)
    check_choice(labels, "labels", ("keep", "move"))
    projections = replace(settings, n_projections=_MEASURED_BY).fit(datasets)

    from sotdd.gradients.descent import Descent

    moving = Descent(datasets[0], datasets[1], projections, order, labels == "move", device)
    taken = _travel(moving, datasets[0], projections, pace, stops, progress)
    how = {
        **asdict(pace),
        "labels": labels,
        "p": order,
        "device": str(moving.device),
        "projections": projections.recipe(),
    }
    return Flow(taken, datasets[0].classes, projections, how)


@dataclass(frozen=True)
class _Pace:
    """How steps are taken: settings of `flow`."""

    steps: int
    learning_rate: float
    label_learning_rate: float
    n_projections: int
    fresh: bool


def _stops(snapshots: int | Sequence[int], steps: int) -> set[int]:
    """The steps before which snapshots are taken; one more is taken after the last step."""
    if isinstance(snapshots, (int, np.integer)) and not isinstance(snapshots, bool) and snapshots >= 2:
        return {round(stop) for stop in np.linspace(0, steps, min(int(snapshots), steps + 1)).tolist()}
    try:
        stops = {int(check_count(stop + 1, "a snapshot")) - 1 for stop in snapshots}  # type: ignore[union-attr]
    except (TypeError, SotddError):
        stops = {steps + 1}
    if max(stops, default=0) > steps:
        raise SotddError(
            f"snapshots is {described(snapshots)}: expected how many, 2 or more, or steps from 0 to {steps:,}."
        )
    return stops


def _travel(
    moving: Descent, source: LabelledData, projections: Projections, pace: _Pace, stops: set[int], progress: Progress
) -> tuple[Snapshot, ...]:
    """Take all steps, and snapshots on the way."""
    taken = []
    with reporting(progress, "Flowing") as report:
        for step in range(pace.steps):
            if step in stops:
                taken.append(_snapshot(step, moving, source))
            falling = 0.5 * (1 + math.cos(math.pi * step / pace.steps))
            drawn = _keyed(projections, pace.n_projections, step if pace.fresh else 0)
            moving.step(drawn, falling * pace.learning_rate, falling * pace.label_learning_rate)
            report(step + 1, pace.steps)
        taken.append(_snapshot(pace.steps, moving, source))
    return tuple(taken)


def _keyed(projections: Projections, count: int, step: int) -> Projections:
    """The projections of one step: the same laws, keyed by (seed, step)."""
    laws = projections.source
    assert isinstance(laws, Laws)  # as `Drawing.fit` makes them
    key = sequence(laws.seed, Stream.FLOW_STEPS, step).generate_state(1, np.uint64)[0]
    return replace(projections, n_projections=count, source=replace(laws, seed=int(key)))


def _snapshot(step: int, moving: Descent, source: LabelledData) -> Snapshot:
    probabilities = moving.probabilities()
    labels = label_array(source.classes)[source.codes] if probabilities is None else probabilities
    return Snapshot(step, moving.distance(), moving.features(), labels)
