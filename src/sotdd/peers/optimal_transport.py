"""OTDD: optimal transport between datasets on features and labels together (Alvarez-Melis and Fusi, 2020)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from sotdd.basics.checks import LARGEST_COUNT, check_choice, check_count, check_order, check_positive, check_seed
from sotdd.basics.errors import SotddError, require
from sotdd.basics.progress import Report
from sotdd.basics.streams import Stream, generator
from sotdd.basics.text import counted
from sotdd.inputs.data import LabelledData
from sotdd.peers.call import Distances, Pairs, peer
from sotdd.peers.label_distances import Inner, exact_transport, label_distances
from sotdd.peers.points import Doubles, Loaded, Points, costs, refuse_large_plans
from sotdd.projections.scaler import Scale

Debias: TypeAlias = Literal["difference", "powers"]
Solve: TypeAlias = "Callable[[Points, Points], DatasetTransport]"

# Beyond this ratio of cost to regularisation, products of exp(-cost / regularisation) may leave float64.
_DEEPEST = 100.0
_MOST_ITERATIONS = 20_000
_TOLERANCE = 1e-7


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
    outer: Literal["exact", "sinkhorn"] = "exact",
    regularisation: float | None = None,
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
    outer
        How points are transported: "exact" by network simplex, or "sinkhorn", the debiased
        entropic divergence, iterated until it converges; if it does not, a remark says so.
    regularisation
        Strength of the entropy, in units of the cost; None for a twentieth of the mean cost.
    debias
        None for the distance between the points at hand, which is large even between two samples of one source:
        points in many dimensions have no near neighbours. Otherwise this sampling floor is taken off: each dataset
        is dealt at random to two halves, as large as half of the smaller dataset; halves of different datasets are
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
    check_choice(outer, "outer", ("exact", "sinkhorn"))
    method = f"OTDD, {inner} labels" + (", Sinkhorn" if outer == "sinkhorn" else "")

    def solve(one: Points, other: Points) -> DatasetTransport:
        return transport_datasets(one, other, inner=inner, outer=outer, regularisation=regularisation, p=p)

    if debias is not None:
        check_choice(debias, "debias", ("difference", "powers"))
        key, drawn = check_seed(seed), None if max_points is None else check_count(max_points, "max_points")
        most = None if drawn is None else min(2 * drawn, LARGEST_COUNT)
        loaded = Loaded.of(datasets, scale=scale, seed=key, max_points=most)
        return _without_floors(loaded, pairs, report, solve, key, debias, p, method)
    loaded = Loaded.of(datasets, scale=scale, seed=seed, max_points=max_points)
    distances = {}
    for done, (i, j) in enumerate(pairs, 1):
        solution = solve(loaded.points[i], loaded.points[j])
        distances[i, j] = loaded.distance(
            (i, j),
            solution.total ** (1 / p),
            method,
            p=p,
            label_distances=solution.label_distances,
            remarks=solution.remarks,
        )
        report(done, len(pairs))
    return distances


@dataclass(frozen=True, eq=False)
class DatasetTransport:
    """The solution of the transport problem between two datasets.

    Attributes
    ----------
    total
        The value of the transport problem: OTDD to the power p.
    label_distances
        (C, C') W_p^p between the classes of one and of the other.
    remarks
        What the user should know about the solution.
    """

    total: float
    label_distances: Doubles
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Halves:
    """Two samples of one dataset, of one size and without a point in common, and the transport between them."""

    first: Points
    second: Points
    floor: DatasetTransport

    @classmethod
    def of(cls, points: Points, size: int, seed: int, solve: Solve) -> Halves:
        """Split points at random into two sides of this size; datasets of one size are split alike."""
        rows = generator(seed, Stream.DEBIASING_HALVES, 0).permutation(len(points))
        first, second = points.rows(np.sort(rows[:size])), points.rows(np.sort(rows[size : 2 * size]))
        return cls(first, second, solve(first, second))


def _without_floors(
    loaded: Loaded, pairs: Pairs, report: Report, solve: Solve, seed: int, debias: Debias, p: float, method: str
) -> Distances:
    """Every pair without its sampling floor; the halves of a dataset are compared once for all of its pairs."""
    known: dict[tuple[int, int], Halves] = {}
    distances = {}
    for done, (i, j) in enumerate(pairs, 1):
        size = _common_size(loaded.points[i], loaded.points[j])
        for place in (i, j):
            if (place, size) not in known:
                known[place, size] = Halves.of(loaded.points[place], size, seed, solve)
        a, b = known[i, size], known[j, size]
        # Each half is compared with the other half of the other dataset: a dataset and its copy, or rows that belong
        # together, would otherwise meet themselves, which is nearer than any floor.
        across = solve(a.first, b.second), solve(a.second, b.first)
        value = _debiased_value(across, (a.floor, b.floor), debias, p)
        remarks = [f"halves of {counted(size, 'point')} were compared"]
        if value < 0:
            remarks.append(f"{-value:.4g} below the sampling floor, which counts as 0")
        remarks += dict.fromkeys(said for solution in (a.floor, b.floor, *across) for said in solution.remarks)
        named = f"{method}, debiased ({debias})"
        distances[i, j] = loaded.distance((i, j), max(0.0, value), named, p=p, remarks=tuple(remarks))
        report(done, len(pairs))
    return distances


def _common_size(a: Points, b: Points) -> int:
    """How many points a half has: as many for both datasets, since the floor depends on the size."""
    size = min(len(a), len(b)) // 2
    if size == 0:
        alone = a if len(a) < 2 else b
        raise SotddError(f"debias needs two points of each dataset and {alone.name!r} has one: pass debias=None.")
    return size


def _debiased_value(
    across: Sequence[DatasetTransport], floors: Sequence[DatasetTransport], how: Debias, p: float
) -> float:
    """What is left of the distance between two datasets less their sampling floors; it may be negative."""
    between, within = (np.array([solution.total for solution in side]) for side in (across, floors))
    if how == "powers":
        left = float(between.mean() - within.mean())
        return math.copysign(float(abs(left) ** (1 / p)), left)
    return float(np.mean(between ** (1 / p)) - np.mean(within ** (1 / p)))


def transport_datasets(
    a: Points,
    b: Points,
    *,
    inner: Inner,
    outer: Literal["exact", "sinkhorn"],
    regularisation: float | None,
    p: float,
) -> DatasetTransport:
    """Solve the transport problem with cost ‖x − x'‖^p + W_p^p(y, y')."""
    refuse_large_plans(len(a), len(b), copies=6, what="OTDD")
    labels = label_distances(a.groups(), b.groups(), inner, p)
    if outer == "exact":
        if regularisation is not None:
            raise SotddError("regularisation is given with outer='exact': it belongs to outer='sinkhorn'.")
        return DatasetTransport(exact_transport(_joint_cost(a, b, labels, p)), labels)
    return _debiased(a, b, labels, inner, regularisation, p)


def _joint_cost(a: Points, b: Points, labels: Doubles, p: float) -> Doubles:
    cost = costs(a.features, b.features, p)
    cost += labels[a.codes[:, None], b.codes[None, :]]
    return cost


def _debiased(
    a: Points, b: Points, labels: Doubles, inner: Inner, regularisation: float | None, p: float
) -> DatasetTransport:
    """Sinkhorn's divergence: the entropic cost between a and b, minus half the cost of each to itself."""
    if regularisation is not None:
        regularisation = check_positive(regularisation, "regularisation", "a positive number, in units of the cost")
    across = _joint_cost(a, b, labels, p)
    strength = regularisation or 0.05 * float(np.mean(across)) or 1.0
    value, error = _entropic(across, strength)
    del across  # n × m numbers that are not needed again
    errors = [error]
    for side in (a, b):
        groups = side.groups()
        own = _joint_cost(side, side, label_distances(groups, groups, inner, p), p)
        itself, error = _entropic(own, strength)
        value -= itself / 2
        errors.append(error)
    remarks: tuple[str, ...] = ()
    if max(errors) > _TOLERANCE:
        remarks = (
            f"Sinkhorn did not converge in {_MOST_ITERATIONS:,} iterations (marginals off by {max(errors):.1e}): "
            "use a larger regularisation or outer='exact'",
        )
    return DatasetTransport(max(0.0, value), labels, remarks)


def _entropic(cost: Doubles, strength: float) -> tuple[float, float]:
    """Min ⟨P, C⟩ + ε KL(P | uniform), and by how much its marginals are off.

    With P = u K v and uniform marginals the optimum is ε (mean log n u + mean log m v).
    """
    transport = require("ot", "entropic transport", "'sotdd[peers]'")
    n, m = cost.shape
    method = "sinkhorn" if float(cost.max()) < _DEEPEST * strength else "sinkhorn_log"
    with np.errstate(over="ignore"):  # the logarithmic method also returns u itself, which is not used
        _, log = transport.sinkhorn(
            np.full(n, 1 / n),
            np.full(m, 1 / m),
            cost,
            strength,
            method=method,
            numItermax=_MOST_ITERATIONS,
            stopThr=_TOLERANCE,
            log=True,
            warn=False,
        )
    log_u = log["log_u"] if method == "sinkhorn_log" else np.log(log["u"])
    log_v = log["log_v"] if method == "sinkhorn_log" else np.log(log["v"])
    value = strength * float(np.mean(log_u) + np.log(n) + np.mean(log_v) + np.log(m))
    return value, float(log["err"][-1])
