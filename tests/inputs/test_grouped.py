"""Rows that are decoded in groups, and distances of data that are read in blocks."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet as pq

import sotdd
from sotdd import open_dataset
from sotdd.engines.comparison import compare
from sotdd.engines.torch.engine import TorchEngine
from sotdd.inputs.grouped import GroupCache, GroupedRows


def grouped(sizes, log, fail=()):
    edges = np.concatenate([[0], np.cumsum(sizes)])

    def decode(group):
        log.append(group)
        if group in fail:
            raise sotdd.SotddError("broken")
        return np.arange(edges[group], edges[group + 1], dtype=float)[:, None]

    return GroupedRows("g", sizes, (1,), float, decode)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.data())
@settings(max_examples=100)
def test_any_rows_of_any_groups(sizes, data):
    rows = grouped(sizes, [])
    n = sum(sizes)
    start = data.draw(st.integers(0, n))
    stop = data.draw(st.integers(start, n))
    assert rows[start:stop][:, 0].tolist() == list(range(start, stop))
    if n:
        picked = data.draw(st.lists(st.integers(0, n - 1), max_size=20))
        assert rows[np.array(picked, int)][:, 0].tolist() == picked
        assert rows[::-1][:, 0].tolist() == list(range(n))[::-1]


def test_groups_are_decoded_once_by_many_threads():
    log = []
    rows = grouped([1000] * 20, log)

    def work(seed):
        starts = np.random.default_rng(seed).integers(0, 19_000, size=200).tolist()
        return [at for at in starts if rows[at : at + 900][:, 0].tolist() != list(range(at, at + 900))]

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(work, range(8))) == [[]] * 8
    assert sorted(log) == sorted(set(log))


def test_the_cache_stays_within_its_budget():
    cache = GroupCache(budget=10_000)
    made = []
    for _ in range(3):
        for key in range(20):
            cache.get((0, key), lambda key=key: made.append(key) or np.zeros(100))  # 800 bytes each, 12 are held
            assert cache._bytes <= 10_000
    assert made[:20] == list(range(20))
    assert len(made) < 45  # rounds after the first find about half of it; the oldest first would find nothing
    cache.get((1, 0), lambda: np.zeros(10_000))  # larger than the budget: kept alone
    assert cache._bytes == 80_000
    cache.forget(1)
    assert cache._bytes == 0


def test_a_group_that_fails_fails_again_and_harms_no_other():
    rows = grouped([5, 5], [], fail={1})
    for _ in range(2):
        with pytest.raises(sotdd.SotddError, match="broken"):
            rows[3:7]
    assert len(rows[:5]) == 5


def test_distances_of_streamed_data_are_those_of_arrays(folder, rng):
    x, y = rng.normal(size=(3000, 6)).astype(np.float32), rng.integers(4, size=3000)
    pq.write_table(pa.table({**{f"x{j}": x[:, j] for j in range(6)}, "y": y}), "t.parquet", row_group_size=700)
    np.save("x.npy", x)
    np.save("y.npy", y)
    other = rng.normal(1, 1, size=(500, 6)), np.arange(500) % 2
    calls = (
        lambda a: sotdd.distance(a, other, n_projections=256, scale="pooled").value,
        lambda a: sotdd.distance(a, other, n_projections=256, scale="features").value,
        lambda a: sotdd.peers.otdd(a, other, max_points=50).value,
    )
    for call in calls:
        assert call("t.parquet") == call("x.npy::label=y.npy") == call((x, y))
    data = [open_dataset("x.npy::label=y.npy"), open_dataset("t.parquet"), open_dataset(other)]
    projections = sotdd.Projections.fit(data, n_projections=64)
    both = [compare(data, [(0, 1), (1, 2)], projections, 2, engine=engine) for engine in (None, TorchEngine("cpu"))]
    assert both[0][1, 2].value == pytest.approx(both[1][1, 2].value, rel=1e-5)
