"""OTDD: optimal transport between datasets on features and labels together (Alvarez-Melis and Fusi, 2020)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import numpy as np

from sotdd.basics.errors import LARGEST_COUNT, SotddError, check_choice, check_count, check_order, check_seed
from sotdd.basics.remarks import Remark, join_remarks
from sotdd.basics.resources import Report, Stream, generator
from sotdd.inputs.data import LabelledData
from sotdd.peers.label_distances import Inner, exact_transport, measure_labels
from sotdd.peers.points import (
    Distances,
    Measured,
    Pairs,
    Points,
    PointSets,
    check_plan_fits,
    peer,
    point_costs,
)
from sotdd.projections.scaler import Scale

Debias: TypeAlias = Literal["difference", "powers"]
Solve: TypeAlias = Callable[[Points, Points], Measured]


@peer
def otdd(
    datasets: Sequence[LabelledData],
    pairs: Pairs,
    report: Report,
    *,
    p: float = 2,
    scale: Scale = None,
    seed: int = 0,
    inner: Inner = "exact",
    debias: Debias | None = None,
    max_points: int | None = None,
) -> Distances:
    """OTDD, the optimal transport dataset distance that s-OTDD stands in for.

    Transport with cost ‖x − x'‖^p + W_p^p(y, y'), where labels are as far apart as the features
    of their classes. The value is rooted; ``label_distances`` of the result holds W_p^p between
    classes. Time grows with the cube of the number of points, memory with its square.

    Parameters
    ----------
    a, b
        As in `sotdd.distance`.
    p
        The order of transport.
    scale
        How features are scaled, as in `sotdd.distance`: "auto", "features", "pooled" or a `Scaler`. The default
        is None, features as they are, because that is how the method is defined.
    seed
        The seed of the sample that ``max_points`` asks for.
    inner
        How far apart two classes are: "exact" transport between their points, or "gaussian", the
        Bures–Wasserstein distance of Gaussians fitted to them.
    debias
        None for the distance between the points at hand, which is large even between two samples of one source:
        points in many dimensions have no near neighbours. Otherwise this sampling floor is taken off: each dataset is
        split at random into two halves, as large as half of the smaller dataset; halves of different datasets are
        compared, and the mean distance between the halves of one dataset is subtracted: "difference". "powers"
        subtracts the p-th powers, squares at p = 2, and takes the root. What would be negative is 0, and a remark
        says by how much. Cost: four transports of half of the points, about half of the time of one of all of them;
        with ``max_points``, twice as many points are drawn and each transport has ``max_points`` of them: four times
        the time. In `sotdd.pairwise` a dataset's halves are compared once. ``label_distances`` is then None.
    max_points
        Take a random sample of at most this many points of each dataset.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> x = np.array([[0.0], [1.0]])
    >>> r = sotdd.peers.otdd((x, ["a", "b"]), (x + 3, ["a", "b"]))
    >>> r
    4.243 (OTDD, exact labels, p=2)
    >>> r.label_distances
    array([[ 9., 16.],
           [ 4.,  9.]])

    Two samples of one source, and one that is shifted by 1 in each of 20 directions: OTDD would be √40 = 6.3.

    >>> rng = np.random.default_rng(0)
    >>> a, b, c = rng.normal(size=(3, 400, 20)) + np.array([0, 0, 1])[:, None, None]
    >>> sotdd.peers.otdd(a, b), sotdd.peers.otdd(a, c)
    (5.816 (OTDD, exact labels, p=2), 8.614 (OTDD, exact labels, p=2))
    >>> sotdd.peers.otdd(a, c, debias="powers")
    6.332 (OTDD, exact labels, debiased (powers), p=2); halves of 200 points were compared
    """
    p = check_order(p)
    method = f"OTDD, {inner} labels"

    def solve(one: Points, other: Points) -> Measured:
        check_plan_fits(len(one), len(other), "OTDD")
        labels = measure_labels(one.groups, other.groups, inner, p)
        cost = point_costs(one.features, other.features, p)
        cost += labels[one.codes[:, None], other.codes[None, :]]
        return Measured(exact_transport(cost) ** (1 / p), labels)

    if debias is not None:
        check_choice(debias, "debias", ("difference", "powers"))
        method += f", debiased ({debias})"
        if max_points is not None:  # of each half
            max_points = min(2 * check_count(max_points, "max_points"), LARGEST_COUNT)
    key = check_seed(seed)
    loaded = PointSets.load(datasets, scale=scale, seed=key, max_points=max_points)
    halves = None if debias is None else _Halves(loaded.points, key, solve, debias, p)

    def between(i: int, j: int) -> Measured:
        return solve(loaded.points[i], loaded.points[j]) if halves is None else halves.compare(i, j)

    return loaded.measure(pairs, report, method, between, p)


class _Halves:
    """Halves of datasets, compared across two of them and within each, whose distance is its sampling floor."""

    def __init__(self, points: Sequence[Points], seed: int, solve: Solve, debias: Debias, p: float) -> None:
        self._points, self._seed, self._solve, self._debias, self._p = points, seed, solve, debias, p
        self._known: dict[tuple[int, int], tuple[Points, Points, Measured]] = {}

    def compare(self, i: int, j: int) -> Measured:
        """How far apart two datasets are without their sampling floor, which depends on the size of the halves."""
        sides = self._points[i], self._points[j]
        size = min(map(len, sides)) // 2
        if size == 0:
            name = min(sides, key=len).name
            raise SotddError(f"debias needs two points of each dataset and {name!r} has one: pass debias=None.")
        (a, other_a, floor_a), (b, other_b, floor_b) = self._split(i, size), self._split(j, size)
        # Each half is compared with the other half of the other dataset: a dataset and its copy, or rows that belong
        # together, would otherwise meet themselves, which is nearer than any floor.
        across, floors = (self._solve(a, other_b), self._solve(other_a, b)), (floor_a, floor_b)
        value = self._subtract([found.value for found in across], [found.value for found in floors])
        below = (Remark("below floor", by=-value),) if value < 0 else ()
        compared = (Remark("halves compared", size=size), *below)
        remarks = join_remarks(compared, *(found.remarks for found in (*floors, *across)))
        return Measured(max(0.0, value), None, remarks)

    def _split(self, number: int, size: int) -> tuple[Points, Points, Measured]:
        """Two random sides of this size, and the transport between them; datasets of one size are split alike."""
        if (number, size) not in self._known:
            points = self._points[number]
            rows = generator(self._seed, Stream.DEBIASING_HALVES, 0).permutation(len(points))
            first, second = points.take(np.sort(rows[:size])), points.take(np.sort(rows[size : 2 * size]))
            self._known[number, size] = first, second, self._solve(first, second)
        return self._known[number, size]

    def _subtract(self, across: Sequence[float], floors: Sequence[float]) -> float:
        """What is left of the distance less the floors; it may be negative."""
        power = self._p if self._debias == "powers" else 1.0
        left = float(np.mean(np.power(across, power)) - np.mean(np.power(floors, power)))
        return math.copysign(abs(left) ** (1 / power), left)
