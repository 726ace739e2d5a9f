"""OTDD: optimal transport between datasets on features and labels together (Alvarez-Melis and Fusi, 2020)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import combinations, product
from typing import Literal, TypeAlias

import numpy as np

from sotdd.basics.errors import LARGEST_COUNT, SotddError, check_choice, check_count, check_order, check_seed, require
from sotdd.basics.remarks import Remark, join_remarks
from sotdd.basics.resources import Report, Stream, Workers, generator
from sotdd.inputs.data import LabelledData
from sotdd.peers.features import Gaussian
from sotdd.peers.points import (
    Distances,
    Doubles,
    Measured,
    Pairs,
    PointSets,
    check_plan_fits,
    peer,
    point_costs,
    split_classes,
)
from sotdd.projections.scaler import Scale

Inner: TypeAlias = Literal["exact", "gaussian"]
Debias: TypeAlias = Literal["difference", "powers"]
Between: TypeAlias = Callable[[int, int], Measured]


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
    if debias is not None:
        check_choice(debias, "debias", ("difference", "powers"))
        method += f", debiased ({debias})"
        if max_points is not None:  # of each half
            max_points = min(2 * check_count(max_points, "max_points"), LARGEST_COUNT)
    key = check_seed(seed)
    loaded = PointSets.load(datasets, scale=scale, seed=key, max_points=max_points)

    def solve(one: LabelledData, other: LabelledData) -> Measured:
        check_plan_fits(one.n_points, other.n_points, "OTDD")
        labels = measure_labels(split_classes(one), split_classes(other), inner, p)
        cost = point_costs(one.rows(slice(None)), other.rows(slice(None)), p)
        cost += labels[one.codes[:, None], other.codes[None, :]]
        return Measured(exact_transport(cost) ** (1 / p), labels)

    def measure(i: int, j: int) -> Measured:
        return solve(loaded.points[i], loaded.points[j])

    between = measure if debias is None else _compare_halves(loaded.points, key, solve, p if debias == "powers" else 1)
    return loaded.measure(pairs, report, method, between, p)


def _compare_halves(
    points: Sequence[LabelledData], seed: int, solve: Callable[[LabelledData, LabelledData], Measured], power: float
) -> Between:
    """How far apart two datasets are without their sampling floor: what halves of one give, of the same size.

    Floors are subtracted from distances to this power.
    """

    @cache
    def split(number: int, size: int) -> tuple[LabelledData, LabelledData, Measured]:
        """Two random sides of this size, and the transport between them; datasets of one size are split alike."""
        rows = generator(seed, Stream.DEBIASING_HALVES, 0).permutation(points[number].n_points)
        first, second = (points[number].take(np.sort(half)) for half in (rows[:size], rows[size : 2 * size]))
        return first, second, solve(first, second)

    def compare(i: int, j: int) -> Measured:
        smaller = min(points[i], points[j], key=lambda side: side.n_points)
        size = smaller.n_points // 2
        if size == 0:
            raise SotddError(f"debias needs two points of each dataset and {smaller.name!r} has one: pass debias=None.")
        (a, other_a, floor_a), (b, other_b, floor_b) = split(i, size), split(j, size)
        # Each half is compared with the other half of the other dataset: a dataset and its copy, or rows that belong
        # together, would otherwise meet themselves, which is nearer than any floor.
        found = solve(a, other_b), solve(other_a, b), floor_a, floor_b
        across, floor = np.power([one.value for one in found], power).reshape(2, 2).mean(axis=1).tolist()
        value = math.copysign(abs(across - floor) ** (1 / power), across - floor)
        below = (Remark("below floor", by=-value),) if value < 0 else ()
        others = [one.remarks for one in (*found[2:], *found[:2])]
        return Measured(max(0.0, value), None, join_remarks((Remark("halves compared", size=size), *below), *others))

    return compare


# ------------------------------------------------------------------ transport between samples, and between classes


def find_plan(cost: Doubles) -> Doubles:
    """How much of one uniform sample to carry to which point of another at the least cost, by network simplex."""
    transport = require("ot", "exact transport", "'sotdd[peers]'")
    largest = float(cost.max())
    if not np.isfinite(largest):
        raise SotddError("transport costs overflow: use a smaller p, or scale='pooled'.")
    # The solver's tolerances are absolute, so it gets costs in units of the largest.
    plan, log = transport.emd([], [], cost / (largest or 1.0), numItermax=50_000_000, log=True)
    if log["warning"] is not None:
        raise SotddError(f"exact transport did not finish: {log['warning']}; pass max_points.")
    found: Doubles = plan
    return found


def exact_transport(cost: Doubles) -> float:
    """The least total cost of carrying one uniform sample to another."""
    return float(np.sum(find_plan(cost) * cost))


def measure_labels(a: Sequence[Doubles], b: Sequence[Doubles], inner: Inner, p: float = 2) -> Doubles:
    """W_p^p between every class of a and every class of b, (len(a), len(b)); each is computed once.

    ``inner="gaussian"`` gives W_2 of fitted Gaussians to the power p. Where ``a is b`` only one
    half is computed.
    """
    exact = check_choice(inner, "inner", ("exact", "gaussian")) == "exact"
    if exact:
        check_plan_fits(max(map(len, a)), max(map(len, b)), "exact label distance")

    def measure(pair: tuple[int, int]) -> float:
        i, j = pair
        if exact:
            return exact_transport(point_costs(a[i], b[j], p))
        return float(fitted[0][i].squared_distance(fitted[-1][j]) ** (p / 2))

    pairs = list(combinations(range(len(a)), 2) if a is b else product(range(len(a)), range(len(b))))
    pairs.sort(key=lambda pair: -len(a[pair[0]]) * len(b[pair[1]]))  # the longest work first
    with Workers() as workers:
        fitted: list[list[Gaussian]] = (
            [] if exact else [workers.each(Gaussian.fit, side) for side in ([a] if a is b else [a, b])]
        )
        values = workers.each(measure, pairs)
    distances = np.zeros((len(a), len(b)))
    for (i, j), value in zip(pairs, values, strict=True):
        distances[i, j] = value
        if a is b:
            distances[j, i] = value
    return distances
