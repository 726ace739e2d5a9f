"""Pooled points split into two sides: which they are, and what they cost, against float64 brute force."""

from dataclasses import replace

import numpy as np
import pytest

import reference
import sotdd
from laws import Circles, Medians
from sotdd.compute.cpu_engine import CpuEngine
from sotdd.compute.numpy_engine import NumpyEngine
from sotdd.compute.resampling import Plan, Resampling, pool_codes
from sotdd.compute.slices import ProjectedPoints, project_datasets, slice_datasets
from sotdd.compute.torch.engine import TorchEngine
from sotdd.inputs import open_pair
from sotdd.inputs.data import LabelledData

ENGINES = {
    "cpu": CpuEngine,
    "cpu, one thread, small chunks": lambda: CpuEngine(threads=1, chunk=64),
    "torch": lambda: TorchEngine("cpu"),
    "torch, small chunks": lambda: TorchEngine("cpu", chunk=64),
    "numpy": NumpyEngine,
}


@pytest.fixture
def pair(rng):
    """Labels in no order, some of one dataset only, some of a single point."""
    a = rng.normal(size=(23, 4)), [*rng.choice(["cat", "dog"], size=22), "lone"]
    b = rng.normal(1, 2, size=(17, 4)), rng.choice(["dog", "bird"], size=17).tolist()
    return a, b


def plan_pair(data, count, seed, p=2.0, *, actual=False):
    return replace(Plan.of_pair(data, (0, 1), count, seed, (p,)), actual=actual, n_projections=1000)


def costs(engine, data, projections, plan):
    with engine as active:
        resampling = Resampling([plan])
        for slices in slice_datasets(data, projections, active, unsorted=plan.n_projections):
            resampling.add(slices)
        return resampling.result()[0][:, :, 0]


def brute_force(a, b, plan, splits, drawn, p):
    x, y = np.concatenate([a[0], b[0]]), [*a[1], *b[1]]
    columns = []
    for number in splits:
        left, right = ((x[side.index], [y[point] for point in side.index.tolist()]) for side in plan.draw(number))
        columns.append(reference.per_projection(left, right, p=p, **drawn))
    return np.stack(columns, axis=1)


@pytest.mark.parametrize(("p", "clamp", "own"), [(2, None, 0), (1, None, 0), (3.5, None, 0), (2, 0.9, 0), (2, 0.9, 1)])
def test_brute_force_in_float64(rng, pair, p, clamp, own):
    drawn = {**reference.draw(rng, 70, 4, own=own), "clamp": clamp}
    data = open_pair(*pair)
    plan = plan_pair(data, 3, 7, p, actual=True)
    expected = brute_force(*pair, plan, range(3), drawn, p)
    for engine in ENGINES.values():
        found = costs(engine(), data, sotdd.Projections.from_arrays(**drawn), plan)
        np.testing.assert_allclose(found, expected, rtol=3e-4, atol=1e-7)


def find_means(values, cells):
    """Of every point, the mean of its cell."""
    return (np.bincount(cells, values) / np.maximum(np.bincount(cells), 1))[cells]


@pytest.mark.parametrize(
    ("engine", "labels", "n_cells"),
    [("cpu", True, 60), ("cpu", False, 60), ("cpu", False, None), ("torch", False, None), ("numpy", False, None)],
)
def test_large_pools_are_compared_in_cells(rng, engine, labels, n_cells):
    """Against sides of points that are brought to the middle of their cell; those of equal value are in one cell."""
    x, y = rng.normal(size=(2200, 2)).round(2), rng.choice(3, size=2200, p=[0.6, 0.399, 0.001])
    data = open_pair((x[:1900], y[:1900]), (x[1900:], y[1900:]))
    projections = sotdd.Projections.from_arrays(**reference.draw(rng, 3, 2))
    plan = replace(plan_pair(data, 3, 0), orders=(1.0, 2.0), n_cells=n_cells, labels=labels)
    with ENGINES[engine]() as active:
        resampling = Resampling([plan])
        for points in project_datasets(data, projections, active):
            resampling.add_points(ProjectedPoints.pool(points))
    block, codes = projections.draw(0, 3), plan.codes if labels else np.zeros(2200, int)
    t = block.features.theta.astype(np.float32) @ x.T.astype(np.float32)
    for line, number in np.ndindex(3, 3):
        order = np.lexsort([t[line], codes])
        is_first = np.diff(codes[order] * 1000.0 + t[line, order], prepend=-np.inf) > 0
        cells, edges = np.empty(2200, int), np.arange(2201) if n_cells is None else plan.cells[1]
        cells[order] = np.searchsorted(edges, np.flatnonzero(is_first)[np.cumsum(is_first) - 1], "right") - 1
        middles = find_means(t[line], cells)
        terms = find_means(np.polynomial.Polynomial(block.terms.coefficients[line])(t[line]), cells)
        sides = [
            block.terms.weights[line] * middles[side.index] + find_means(terms[side.index], codes[side.index])
            if labels
            else middles[side.index]
            for side in plan.draw(number)
        ]
        expected = [reference.wasserstein(*sides, p) for p in (1, 2)]
        np.testing.assert_allclose(resampling.result()[0][line, number], expected, rtol=1e-4)


def test_any_label_law_and_any_law_of_directions(rng, pair):
    data = open_pair(*pair)
    projections = sotdd.Projections.fit(data, n_projections=70, label_law=Medians(), directions=Circles(), scale=None)
    plan = plan_pair(data, 4, 0)
    block = projections.draw(0, 70)
    x, y = np.concatenate([pair[0][0], pair[1][0]]), np.array([*pair[0][1], *pair[1][1]])
    t = block.features(x)

    def place(line, index):
        values, labels = t[line, index], y[index]
        shift = {label: block.terms.coefficients[line, 0] * np.median(values[labels == label]) for label in set(labels)}
        return block.terms.weights[line] * values + np.array([shift[label] for label in labels])

    expected = [
        [reference.wasserstein(*(place(line, side.index) for side in plan.draw(number)), 2) for number in range(4)]
        for line in range(70)
    ]
    for name in ("cpu", "torch", "numpy"):
        np.testing.assert_allclose(costs(ENGINES[name](), data, projections, plan), expected, rtol=1e-4)


def test_long_rows_and_many_splits_at_once(rng):
    """Long rows, more splits than threads, and shares of rows where there are few splits."""
    a = rng.normal(size=(1100, 3)), rng.integers(4, size=1100)
    b = rng.normal(size=(1050, 3)), rng.integers(4, size=1050)
    drawn = reference.draw(rng, 9, 3)
    data, projections = open_pair(a, b), sotdd.Projections.from_arrays(**drawn)
    plan = plan_pair(data, 12, 0)
    together = costs(CpuEngine(threads=2), data, projections, plan)
    alone = costs(CpuEngine(threads=8), data, projections, replace(plan, count=1))
    np.testing.assert_array_equal(together[:, :1], alone)
    two = {name: values[:2] for name, values in drawn.items()}
    expected = brute_force(a, b, plan, [11], two, 2)
    np.testing.assert_allclose(together[:2, 11:], expected, rtol=1e-3)


def test_sides_hold_every_point_once_grouped_by_class(pair):
    data = open_pair(*pair)
    codes = pool_codes(data)
    plan = plan_pair(data, 50, 3)
    for number in range(50):
        left, right = plan.draw(number)
        assert sorted([*left.index, *right.index]) == list(range(40))
        for side, size in ((left, 23), (right, 17)):
            assert len(side.index) == side.offsets[-1] == size
            groups = np.split(codes[side.index], side.offsets[1:-1])
            assert all(len(set(group.tolist())) == 1 for group in groups)
            assert len({int(group[0]) for group in groups}) == len(groups)
    again = replace(plan, count=20).draw(15)
    np.testing.assert_array_equal(again[0].index, plan.draw(15)[0].index)
    np.testing.assert_array_equal(plan.mark_sides(15) == 0, np.isin(np.arange(40), again[0].index))


def test_labels_are_pooled_by_value():
    def data(labels):
        return LabelledData.of((np.zeros((len(labels), 1)), labels))

    assert pool_codes([data(["cat", "dog"]), data(["dog", "cat"])]).tolist() == [0, 1, 1, 0]
    assert pool_codes([data([1, 2]), data([2.0, 1.0])]).tolist() == [0, 1, 1, 0]
    assert pool_codes([data([0, 1]), data(["0", "1"])]).tolist() == [0, 1, 2, 3]
    assert pool_codes([data([False, True]), data([0, 1])]).tolist() == [0, 1, 0, 1]
    assert pool_codes([LabelledData.of(np.zeros((2, 1))), LabelledData.of(np.ones((1, 1)))]).tolist() == [0, 0, 0]
