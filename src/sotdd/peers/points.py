"""Datasets as the peers need them: in memory, in float64, or a random sample; and the distances between them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import check_count, check_seed
from sotdd.basics.errors import SotddError
from sotdd.basics.memory import available_bytes
from sotdd.inputs.column_names import by_position
from sotdd.inputs.data import LabelledData, same_features
from sotdd.inputs.origin import remarks_of_sides
from sotdd.projections.scaler import Scale, Scaler, scaler_for
from sotdd.results.distance import Distance

Doubles = NDArray[np.float64]

# The share of free memory that a method may take.
_SHARE = 0.8

# Features must lie between this and its inverse, so that their squares and sums stay in float64.
_SMALLEST = 1e-120


@dataclass(frozen=True, eq=False)
class Points:
    """A dataset in memory: features (n, d) in float64, and of every row the index of its class."""

    name: str
    features: Doubles
    codes: NDArray[np.integer]
    classes: tuple[Hashable, ...]

    @classmethod
    def of(cls, data: LabelledData, max_points: int | None = None, seed: int = 0) -> Points:
        """Read a dataset, or a random sample of at most ``max_points`` of its points.

        With one seed, datasets of the same size are sampled at the same rows, so that a dataset stays
        at distance zero from itself. Classes without a point in the sample are dropped.
        """
        if max_points is None or max_points >= data.n_points:
            features = np.concatenate([data.rows(block).astype(np.float64) for block in data.blocks()])
            return cls(data.name, features, data.codes, data.classes)
        rows = np.sort(np.random.default_rng(seed).choice(data.n_points, max_points, replace=False))
        features = np.asarray(data.features[rows]).reshape(len(rows), -1).astype(np.float64)
        present, codes = np.unique(data.codes[rows], return_inverse=True)
        return cls(data.name, features, codes, tuple(data.classes[code] for code in present))

    def scaled(self, scaler: Scaler | None) -> Points:
        """The same points, centred and scaled."""
        if scaler is None:
            return self
        features = (self.features - scaler.centre) / scaler.scale
        return Points(self.name, features, self.codes, self.classes)

    def rows(self, rows: NDArray[np.integer]) -> Points:
        """Some of the points, and the classes that have one among them."""
        present, codes = np.unique(self.codes[rows], return_inverse=True)
        return Points(self.name, self.features[rows], codes, tuple(self.classes[code] for code in present))

    def __len__(self) -> int:
        """How many points there are."""
        return len(self.features)

    def groups(self) -> list[Doubles]:
        """The features of each class."""
        order = np.argsort(self.codes, kind="stable")
        edges = np.cumsum(np.bincount(self.codes, minlength=len(self.classes)))[:-1]
        return np.split(self.features[order], edges)


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


def costs(a: Doubles, b: Doubles, p: float) -> Doubles:
    """‖x − x'‖^p between every row of a and every row of b, through a matrix product."""
    centre = a.mean(axis=0)  # distances do not change, and digits are kept on data far from zero
    a, b = a - centre, b - centre
    squares: Doubles = np.einsum("ij,ij->i", a, a)[:, None] + np.einsum("ij,ij->i", b, b)[None, :]
    squares -= 2 * (a @ b.T)
    np.maximum(squares, 0, out=squares)
    if p == 2:
        return squares
    with np.errstate(over="ignore"):  # `cost_unit` refuses infinite costs
        powered: Doubles = squares ** (p / 2)
    return powered


def refuse_large_plans(n: int, m: int, copies: int, what: str) -> None:
    """Refuse to allocate this many copies of n × m numbers if they do not fit."""
    fitting = math.isqrt(int(_SHARE * available_bytes()) // (8 * copies))
    refuse_beyond_memory(8 * copies * n * m, f"{what} between {n:,} and {m:,} points", fitting)


def refuse_beyond_memory(needed: int, what: str, fitting: int | None) -> None:
    """Refuse work that needs more bytes than are free, and say how many points of each dataset would fit."""
    free = available_bytes()
    if needed > _SHARE * free:
        sample = "max_points" if fitting is None else f"max_points={fitting:,}"
        raise SotddError(
            f"{what} needs about {needed / 1e9:,.1f} GB of memory and {free / 1e9:,.1f} GB are free: pass {sample}, or "
            "use method 'sotdd', whose memory does not grow this way."
        )
