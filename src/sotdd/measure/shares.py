"""How much of the sliced distance between points each of their columns makes.

Every feature of both sides is moved half-way to the other's value at its rank: then both have the same distribution in
every feature, and what is left of W_p^p is how features go *together*. On the way back, from there (s = 0) to the
points as they are (s = 1), W_p^p changes by the sum over features of

    ∫ E_θ Σ_pairs ∂|gap|^p/∂gap · θ_j · (how far the pair comes apart in feature j) ds

(Aumann and Shapley). So the shares of features and of what they are together add up to the whole, and a feature with
the same distribution on both sides has none. The integral is by Simpson's rule, exact where features are only moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.resources import Stream, Workers, generator
from sotdd.compute.resampling import Marks, Plan
from sotdd.inputs.data import LabelledData, cut_range
from sotdd.inputs.sampling import sample_rows
from sotdd.inputs.schema import find_columns
from sotdd.measure.changes import Changes, ColumnChange
from sotdd.measure.columns import find_image_shape, name_features, name_label
from sotdd.measure.statistics import Doubles, Floats
from sotdd.projections.directions import Orthogonal
from sotdd.projections.projections import Projections
from sotdd.projections.scaler import Scaler

# Values that a pool holds, and rows of each dataset, at least and at most: more tell features apart no better.
_VALUES = 1 << 22
_FEWEST_ROWS, _MOST_ROWS = 64, 5_000

# Scaled values are cut to this, which is a difference in any case; their squares stay within float32.
_FARTHEST = np.float32(1e12)

# Directions that shares are means over, in groups of this many, which differ by chance and so tell their error.
DIRECTIONS = 256
_GROUP = 16

# How many splits the shares of chance are from, how many halves their errors; and along how many directions.
_SPLITS, _HALVES, _FEW = 8, 6, 16

# Simpson's rule: where on the way, and by which weight.
_PLACES = ((0.0, 1 / 6), (0.5, 4 / 6), (1.0, 1 / 6))

# Columns that a thread sorts at a time.
_COLUMNS = 16


def share_changes(
    changes: Changes,
    pair: Sequence[LabelledData],
    projections: Projections,
    p: float,
    named: Sequence[LabelledData] | None = None,
) -> Changes:
    """The same changes, with the share of every column in the distance between the points of two datasets.

    Only what changed has a share of what is beyond noise. If points carry names of classes beside their features, as
    those that are ``named`` do, these features are the label.
    """
    points = pair if named is None else named
    keys, places = _find_columns(pair, points[0].n_features)
    table, split, halved = (_sum_columns(part, places, len(keys)) for part in _measure_parts(points, projections, p))
    parts, by_chance = table.mean(axis=0), split.mean(axis=0)
    tested = {(one.column, one.kind == "label"): one for one in changes.columns}
    for name, is_label in (keys[place] for place in np.argsort(by_chance[:-1] - parts[:-1]).tolist()):
        one = ColumnChange(name, "label" if is_label else "number", False, "", "not tested by itself", 1.0)
        tested.setdefault((name, is_label), one)
    joint = [one.p_value for one in changes.pairs] + [one.p_value for one in changes.classes if named is not None]
    together = ColumnChange("together", "together", bool(joint), "", "", min(joint, default=1.0))
    found = [*(tested[key] for key in keys), together]
    beyond = np.array([one.changed for one in found])
    total, excess = float(parts.sum()) or 1.0, float((parts - by_chance)[beyond].sum())
    numbers = (np.column_stack([parts, by_chance]) / total).tolist()
    found = [replace(one, raw_share=raw, by_chance=chance) for one, (raw, chance) in zip(found, numbers, strict=True)]
    if excess > 0:
        share = np.where(beyond, (parts - by_chance) / excess, 0.0)
        stderr = _find_errors(table, split, halved, share, beyond) / excess
        for place in np.flatnonzero(beyond).tolist():
            found[place] = replace(found[place], share=float(share[place]), stderr=float(stderr[place]))
    columns = [*(tested | dict(zip(keys, found, strict=False))).values()]
    columns.sort(key=lambda one: (not one.changed, one.p_value, -(one.share or 0.0)))
    shape = None if any(part.columns is not None for part in pair) else find_image_shape(pair[0])
    return replace(changes, columns=tuple(columns), together=found[-1], shape=shape)


def _find_columns(pair: Sequence[LabelledData], n_features: int) -> tuple[list[tuple[str, bool]], NDArray[np.int64]]:
    """The columns that features are made of, with whether each is the label; and which of them each feature is."""
    known = next((data for data in pair if data.columns is not None), None)
    titles = [(name, False) for name in (find_columns(known.columns or ()) if known else name_features(pair))]
    titles += [name_label(pair)] * (n_features - len(titles))
    places = {title: place for place, title in enumerate(dict.fromkeys(titles))}
    return [*places], np.array([places[title] for title in titles])


def _sum_columns(parts: Doubles, places: NDArray[np.int64], count: int) -> Doubles:
    """(R, d + 1) parts of features as parts (R, C + 1) of their columns; what they are together stays last."""
    summed = np.zeros((len(parts), count + 1))
    np.add.at(summed.T, np.append(places, count), parts.T)
    return summed


def _measure_parts(points: Sequence[LabelledData], projections: Projections, p: float) -> tuple[Doubles, ...]:
    """(R, d + 1) the parts of the data, by group of directions; of random splits of the pool; and of half samples."""
    seed, d = projections.split_seed, points[0].n_features
    most = min(max(_VALUES // (2 * d), _FEWEST_ROWS), _MOST_ROWS)
    some = [one if one.n_points <= most else one.take(sample_rows(one.n_points, most, seed)) for one in points]
    splits = Plan.of_pair(some, (0, 1), _SPLITS, seed, (p,))
    halves = Plan.of_half_samples(some, (0, 1), _HALVES, seed, (p,))
    ranks = np.argsort(projections.order or range(d))
    theta, side = find_directions(d, seed)[:, ranks], np.repeat([0, 1], splits.sizes).astype(np.uint8)
    with Workers() as workers:
        pool = sort_columns(some, projections.scaler, seed, workers, ranks)
        whole = find_contributions(pool, side, theta, p, workers)
        split, halved = (
            np.stack([
                find_contributions(pool, marks, theta[:_FEW], p, workers).mean(axis=0)
                for marks in plan.mark_all(range(plan.count))
            ])
            for plan in (splits, halves)
        )  # fmt: skip
    return whole, split, halved


def _find_errors(
    table: Doubles, split: Doubles, halved: Doubles, shares: Doubles, beyond: NDArray[np.bool_]
) -> Doubles:
    """Standard errors of the parts beyond noise, less shares of their sum: over directions, splits and samples."""
    rest, of_splits, of_halves = (
        np.where(beyond, part - shares * part[:, beyond].sum(axis=1, keepdims=True), 0.0)
        for part in (table, split, halved)
    )
    variance = of_halves.var(axis=0, ddof=1) + of_splits.var(axis=0, ddof=1) / len(split)
    return np.asarray(np.sqrt(variance + rest.var(axis=0, ddof=1) / len(rest)))


# ------------------------------------------------------------------ parts of W_p^p


def sort_columns(
    datasets: Sequence[LabelledData], scaler: Scaler | None, seed: int, workers: Workers, ranks: NDArray[np.int64]
) -> tuple[Floats, Floats, NDArray[np.int32]]:
    """Scale the points (N, d) of two datasets together; sort every column (d, N), and say which point a value is of.

    Equal values come in an order of its own in every column, by its rank (d,): in one order, they would seem to go
    together.
    """
    from sotdd.compute.cpu_engine import scale_rows

    rows = [np.concatenate([data.rows(block) for block in data.blocks()]) for data in datasets]
    if scaler is None:  # shares have no unit, so they are kept within float32
        unit = max(float(np.abs(part).max()) for part in rows) or 1.0
        parts = [(part / unit).astype(np.float32) for part in rows]
    else:
        parts = [scale_rows(part, scaler, data.name) for part, data in zip(rows, datasets, strict=True)]
    points = np.clip(np.concatenate(parts), -_FARTHEST, _FARTHEST)
    values = points.T.copy()  # of a single column the transpose would be the points themselves
    order = np.empty(values.shape, np.int32)

    def sort(part: slice) -> None:
        for number in range(part.start, part.stop):
            shuffled = generator(seed, Stream.FEATURE_TIES, int(ranks[number])).permutation(len(points))
            order[number] = shuffled[np.argsort(values[number][shuffled])]
            values[number] = values[number][order[number]]

    workers.each(sort, cut_range(len(values), _COLUMNS))
    return points, values, order


def find_directions(n_features: int, seed: int) -> Floats:
    """(L, d) directions in orthogonal frames."""
    count = max(1, DIRECTIONS // n_features) * n_features if n_features <= DIRECTIONS else DIRECTIONS
    rng = generator(seed, Stream.FEATURE_DIRECTIONS, 0)
    return Orthogonal().draw(rng, count, n_features).theta.astype(np.float32)


def find_contributions(
    pool: tuple[Floats, Floats, NDArray[np.int32]], side: Marks, theta: Floats, p: float, workers: Workers
) -> Doubles:
    """(G, d + 1) the part of W_p^p between two sides of sorted points that each feature makes, in directions (L, d).

    The last is what is left when every feature has the same distribution on both sides. A row for each group of
    directions; the mean over rows is that over directions.
    """
    from sotdd.compute.kernels import couplings

    points, values, order = pool
    gaps, sizes = np.empty_like(values), np.bincount(side, minlength=2)[:2]

    def match(part: slice) -> None:
        couplings.own_gaps(values[part], order[part], side, sizes, gaps[part])

    def work(part: slice) -> Doubles:
        along = theta[part]
        there, back = along @ points.T, along @ gaps  # (B, N)
        slopes, costs, together = np.zeros_like(there), np.empty(len(along)), 0.0
        for place, weight in _PLACES:
            rows = there - np.float32(1 - place) * back
            couplings.add_slopes(rows, np.argsort(rows, axis=1).astype(np.int32), side, sizes, p, weight, slopes, costs)
            together = float(costs.mean()) if place == 0 else together
        with np.errstate(over="ignore", invalid="ignore"):
            return np.append(np.einsum("bj,bj->j", along, slopes @ gaps.T, dtype=np.float64) / len(along), together)

    workers.each(match, cut_range(len(gaps), _COLUMNS))
    groups = cut_range(len(theta), _GROUP)
    counts = np.array([group.stop - group.start for group in groups], np.float64)
    table: Doubles = (counts / counts.mean())[:, None] * np.stack(workers.each(work, groups))
    if not np.isfinite(table).all():
        raise SotddError(f"transport to the power p={p:g} overflows along single features: use a smaller p.")
    return table
