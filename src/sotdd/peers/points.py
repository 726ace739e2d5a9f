"""What the peers share: a call on two datasets, the datasets in memory, and the distances between them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import update_wrapper
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, check_count, check_seed
from sotdd.basics.remarks import Remark, Remarks, join_remarks
from sotdd.basics.resources import Report, check_fits
from sotdd.compute.distance import Distance
from sotdd.inputs import open_pair
from sotdd.inputs.data import Dataset, LabelledData, gather_side_remarks, remark_positions, same_features
from sotdd.inputs.reading import OPTIONS
from sotdd.projections.scaler import Scale, Scaler, find_scaler

Doubles = NDArray[np.float64]
Pairs: TypeAlias = Sequence[tuple[int, int]]
Distances: TypeAlias = dict[tuple[int, int], Distance]
Settings = ParamSpec("Settings")

# Costs, plan and what solvers keep beside them: this many arrays of n × m numbers.
_ARRAYS = 6

# Features must lie between this and its inverse, so that their squares and sums stay in float64.
_SMALLEST = 1e-120


def peer(
    method: Callable[Concatenate[Sequence[LabelledData], Pairs, Report, Settings], Distances],
) -> Callable[Concatenate[Dataset, Dataset, Settings], Distance]:
    """Make a call ``(a, b, *, settings)`` of a method ``(datasets, pairs, report, *, settings)``.

    The docstring of the method describes the call, and `inspect.unwrap` gives the method. The datasets are opened here,
    and nowhere below.
    """

    def call(a: Dataset, b: Dataset, *none: Settings.args, **settings: Settings.kwargs) -> Distance:
        given: dict[str, Any] = dict(settings)
        pair = open_pair(a, b, **{name: given.pop(name) for name in [*given] if name in OPTIONS and name not in known})
        return method(pair, [(0, 1)], lambda done, total: None, *none, **given)[0, 1]

    update_wrapper(call, method, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    known = find_settings(method)
    own, whole = (inspect.signature(one, follow_wrapped=False) for one in (call, method))
    shown = [*list(own.parameters.values())[:2], *(whole.parameters[name] for name in known)]
    call.__signature__ = own.replace(parameters=shown)  # type: ignore[attr-defined]  # what help() shows
    return call  # type: ignore[return-value]  # a and b may be named too


def find_settings(method: Callable[..., object]) -> list[str]:
    """The names of what a method takes by keyword only."""
    parameters = inspect.signature(method).parameters.values()
    return [part.name for part in parameters if part.kind is inspect.Parameter.KEYWORD_ONLY]


class Measured(NamedTuple):
    """What a method says of two datasets; ``label_distances`` (C, C') are W_p^p between their classes."""

    value: float
    label_distances: Doubles | None = None
    remarks: Remarks = ()


@dataclass(frozen=True, eq=False)
class PointSets:
    """Datasets in memory.

    Attributes
    ----------
    datasets
        The datasets as they were opened.
    points
        The points of each that are measured, scaled, in float64.
    scaler
        How they were scaled; None for features as they are.
    """

    datasets: Sequence[LabelledData]
    points: Sequence[LabelledData]
    scaler: Scaler | None

    @classmethod
    def load(cls, datasets: Sequence[LabelledData], *, scale: Scale, seed: int, max_points: int | None) -> PointSets:
        """Read datasets, or a random sample of at most ``max_points`` points of each.

        With one seed, datasets of the same size are sampled at the same rows, so that a dataset stays at distance zero
        from itself.
        """
        same_features(datasets)
        if max_points is not None:
            check_count(max_points, "max_points")
        key = check_seed(seed)
        sizes = [min(data.n_points, max_points or data.n_points) for data in datasets]
        check_fits(8 * sum(sizes) * datasets[0].n_features, "the datasets in float64", "max_points", max(sizes))
        scaler = find_scaler(scale, list(datasets))
        points, largest = [], 0.0
        for data, size in zip(datasets, sizes, strict=True):
            taken = data
            if size < data.n_points:
                taken = data.take(np.sort(np.random.default_rng(key).choice(data.n_points, size, replace=False)))
            features = np.concatenate([taken.rows(block).astype(np.float64) for block in taken.blocks()])
            features = features if scaler is None else scaler.apply(features)
            points.append(replace(taken, features=features))
            largest = max(largest, float(np.max(np.abs(features))))
        if not (largest == 0 or _SMALLEST < largest < 1 / _SMALLEST):
            raise SotddError(
                f"features as large as {largest:.3g} cannot be squared in float64", use={"scale": "pooled"}
            )
        return cls(datasets, points, scaler)

    def measure(
        self, pairs: Pairs, report: Report, method: str, between: Callable[[int, int], Measured], p: float = 2.0
    ) -> Distances:
        """Distances without projections, in units of the features: what ``between`` says of each pair."""
        distances = {}
        for done, (i, j) in enumerate(pairs, 1):
            found, pair, taken = between(i, j), (self.datasets[i], self.datasets[j]), (self.points[i], self.points[j])
            sizes = taken[0].n_points, taken[1].n_points
            distances[i, j] = Distance(
                value=found.value,
                stderr=math.nan,
                p=p,
                n_points=sizes,
                classes=(taken[0].classes, taken[1].classes),
                method=method,
                scaler=self.scaler,
                label_distances=found.label_distances,
                columns=pair[0].columns or pair[1].columns,
                remarks=join_remarks(remarks_on(pair, sizes, self.scaler), found.remarks),
            )
            report(done, len(pairs))
        return distances


def remarks_on(pair: tuple[LabelledData, LabelledData], sizes: tuple[int, int], scaler: Scaler | None) -> Remarks:
    """Which of two datasets were sampled, down to these sizes, and remarks on their scale and their columns."""
    sampled = [
        Remark("sampled", taken=size, n_points=data.n_points, name=data.name)
        for data, size in zip(pair, sizes, strict=True)
        if size < data.n_points
    ]
    return (
        *sampled,
        *(() if scaler is None else scaler.remarks),
        *remark_positions(pair, None),
        *gather_side_remarks(pair),
    )


def split_classes(points: LabelledData) -> list[Doubles]:
    """The features of each class."""
    return np.split(points.rows(points.group()), points.offsets[1:-1])


def point_costs(a: Doubles, b: Doubles, p: float) -> Doubles:
    """‖x − x'‖^p between every row of a and every row of b, through a matrix product."""
    centre = a.mean(axis=0)  # distances do not change, and digits are kept on data far from zero
    a, b = a - centre, b - centre
    squares: Doubles = np.einsum("ij,ij->i", a, a)[:, None] + np.einsum("ij,ij->i", b, b)[None, :]
    squares -= 2 * (a @ b.T)
    np.maximum(squares, 0, out=squares)
    if p == 2:
        return squares
    with np.errstate(over="ignore"):  # `find_plan` refuses infinite costs
        powered: Doubles = squares ** (p / 2)
    return powered


def check_plan_fits(n: int, m: int, what: str) -> None:
    """Refuse a transport plan between n and m points whose arrays do not fit in memory."""
    check_fits(8 * _ARRAYS * n * m, f"{what} between {n:,} and {m:,} points", "max_points", math.sqrt(n * m), power=2)
