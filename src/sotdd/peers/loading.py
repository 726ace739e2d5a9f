"""Datasets read into memory for a method, and the distances that it returns of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sotdd.basics.checks import check_count, check_seed
from sotdd.basics.errors import SotddError
from sotdd.inputs.column_names import by_position
from sotdd.inputs.data import LabelledData, same_features
from sotdd.inputs.origin import remarks_of_sides
from sotdd.peers.points import Doubles, Points, refuse_beyond_memory
from sotdd.projections.scaler import Scale, Scaler, scaler_for
from sotdd.results.distance import Distance

# Features must lie between this and its inverse, so that their squares and sums stay in float64.
_SMALLEST = 1e-120


@dataclass(frozen=True, eq=False)
class Loaded:
    """Datasets in memory.

    Attributes
    ----------
    datasets
        The datasets as they were opened.
    points
        The points of each that are measured, scaled.
    scaler
        How they were scaled; None for features as they are.
    """

    datasets: Sequence[LabelledData]
    points: Sequence[Points]
    scaler: Scaler | None

    @classmethod
    def of(cls, datasets: Sequence[LabelledData], *, scale: Scale, seed: int, max_points: int | None) -> Loaded:
        """Read datasets, or a random sample of at most ``max_points`` points of each."""
        same_features(datasets)
        if max_points is not None:
            check_count(max_points, "max_points")
        key = check_seed(seed)
        n_values = sum(min(data.n_points, max_points or data.n_points) * data.n_features for data in datasets)
        refuse_beyond_memory(8 * n_values, "holding the datasets in float64", None)
        scaler = scaler_for(scale, list(datasets))
        points = [Points.of(data, max_points, key).scaled(scaler) for data in datasets]
        largest = max(float(np.max(np.abs(part.features))) for part in points)
        if not (largest == 0 or _SMALLEST < largest < 1 / _SMALLEST):
            raise SotddError(f"features as large as {largest:.3g} cannot be squared in float64: use scale='pooled'.")
        return cls(datasets, points, scaler)

    def distance(
        self,
        pair: tuple[int, int],
        value: float,
        method: str,
        *,
        p: float = 2.0,
        label_distances: Doubles | None = None,
        remarks: tuple[str, ...] = (),
    ) -> Distance:
        """The result for one pair: a distance without projections, in units of the features."""
        i, j = pair
        sizes = len(self.points[i]), len(self.points[j])
        return Distance(
            value=value,
            stderr=math.nan,
            p=p,
            n_points=sizes,
            classes=(self.points[i].classes, self.points[j].classes),
            method=method,
            scaler=self.scaler,
            label_distances=label_distances,
            columns=self.datasets[i].columns or self.datasets[j].columns,
            remarks=(*remarks_on((self.datasets[i], self.datasets[j]), sizes, self.scaler), *remarks),
        )


def remarks_on(
    pair: tuple[LabelledData, LabelledData], sizes: tuple[int, int], scaler: Scaler | None
) -> tuple[str, ...]:
    """Which of two datasets were sampled, down to these sizes, and remarks on their scale and their columns."""
    sampled = [
        f"{size:,} of the {data.n_points:,} points of {data.name!r} were sampled"
        for data, size in zip(pair, sizes, strict=True)
        if size < data.n_points
    ]
    on_scale = () if scaler is None else scaler.remarks
    return (*sampled, *on_scale, *by_position(pair, None), *remarks_of_sides(pair))
