"""Parquet files: what a path or an address of them means, rows that are decoded in groups, and their distances."""

import functools
import http.server
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import fsspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet as pq

import sotdd
from inputs.helpers import frame_of, refusal, same
from sotdd import open_dataset
from sotdd.compute.comparison import compare
from sotdd.compute.torch.engine import TorchEngine
from sotdd.inputs import ParquetBatches
from sotdd.inputs.row_groups import GroupCache, GroupedRows
from sotdd.inputs.sources import list_parquet


def test_large_row_groups_go_through_a_file_and_an_index_is_no_feature(xy, folder, monkeypatch):
    monkeypatch.setattr("sotdd.inputs.loaders.parquet.HELD_BYTES", 1000)
    monkeypatch.setattr("sotdd.inputs.streamed.SPOOLED_BYTES", 1000)
    frame = frame_of(xy)
    frame.index = frame.index[::-1] + 7
    frame.to_parquet("one.parquet")
    same(open_dataset("one.parquet::label=species"), xy)


def test_files_that_belong_together_and_files_that_do_not(folder):
    def written(number, **columns):
        pq.write_table(pa.table({**columns, "y": [number]}), f"p-{number}.parquet")

    for one, other, said in (
        ({"x": [1.0]}, {"z": [1.0]}, "'x'"),
        ({"x": [1.0]}, {"x": ["a"]}, "'x'"),
        ({"v": [[1.0, 2.0]]}, {"v": [[1.0]]}, "(2,)"),
    ):
        written(1, **one)
        written(2, **other)
        assert said in refusal("p-*.parquet")
    written(1, x=[1.0])
    written(2, x=pa.array([2], pa.int8()))  # another dtype
    assert open_dataset("p-*.parquet").rows(slice(None)).tolist() == [[1.0], [2.0]]


def test_a_page_damaged_further_down_is_found_when_it_is_read(folder):
    """Opening reads the footer and the labels only."""
    table = pa.table({"x": np.random.default_rng(0).normal(size=20_000), "y": np.arange(20_000) % 3})
    pq.write_table(table, "t.parquet", row_group_size=5000, compression="snappy", use_dictionary=False)
    offset = pq.ParquetFile("t.parquet").metadata.row_group(2).column(0).data_page_offset
    with open("t.parquet", "r+b") as file:
        file.seek(offset)
        file.write(b"\xff" * 2000)
    data = open_dataset("t.parquet")
    data.rows(slice(0, 100))
    with pytest.raises(sotdd.SotddError, match=r"t\.parquet"):
        data.rows(slice(10_000, 10_100))


DATA = ("part-0.parquet", "PART-1.PARQUET", "short.pq", "nested/deep/er/part-2.parquet", "a.b/part-4.parquet",
        "year=2024/month=1/part-3.Parquet", "year=2025/part-3.parquet")  # fmt: skip
OTHERS = ("_metadata", "_old.parquet", ".hidden.parquet", "_temporary/0/part-0.parquet", ".staging/part-0.parquet",
          "year=2024/.part-3.parquet", "year=2024/_tmp/part-3.parquet", "part-0.parquet.bak")  # fmt: skip
SIZES = {name: 10 * (place + 1) for place, name in enumerate((*DATA, *OTHERS))}


@pytest.fixture
def left_by_a_cluster(tmp_path, rng):
    """A folder as clusters leave them, itself below folders whose names begin with a dot and an underscore."""
    root = tmp_path / "_runs" / ".latest" / "data"
    for name, rows in SIZES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        columns = {"a": rng.normal(size=rows), "b": rng.normal(size=rows), "label": np.arange(rows) % 2}
        pq.write_table(pa.table(columns), root / name, row_group_size=16)
    (root / "_SUCCESS").touch()
    (root / "README.txt").write_text("how this was made")
    return root


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("", list(DATA)),
        ("*.parquet", ["part-0.parquet", "_old.parquet"]),
        ("year=*", ["year=2024/month=1/part-3.Parquet", "year=2025/part-3.parquet"]),
        ("[sy]*", ["short.pq", "year=2024/month=1/part-3.Parquet", "year=2025/part-3.parquet"]),
        ("n*/**/*.parquet", ["nested/deep/er/part-2.parquet"]),
    ],
)
def test_a_folder_or_pattern_means_the_same_for_all(left_by_a_cluster, pattern, names):
    source = f"{left_by_a_cluster}/{pattern}"
    opened, batches = open_dataset(source), ParquetBatches.open(source)
    np.testing.assert_array_equal(opened.rows(slice(None)), np.concatenate([features for features, _ in batches]))
    assert batches.n_points == opened.n_points == sum(SIZES[name] for name in names)


def test_urls_and_paths_mean_the_same(left_by_a_cluster):
    inside = [os.path.relpath(path, left_by_a_cluster) for path in list_parquet(str(left_by_a_cluster))]
    assert sorted(inside) == sorted(DATA)
    url = left_by_a_cluster.as_uri()
    assert [path.removeprefix(f"{url}/").replace("%3D", "=") for path in list_parquet(url)] == inside
    for name in ("_metadata", "part-0.parquet.bak"):  # a file that is named is read, whatever its name
        assert ParquetBatches.open(left_by_a_cluster / name).n_points == SIZES[name]


@pytest.mark.parametrize("opener", [open_dataset, ParquetBatches.open])
def test_nothing_to_read_is_said(folder, opener):
    (folder / "empty" / "_data").mkdir(parents=True)
    pq.write_table(pa.table({"a": [1.0]}), folder / "empty" / "_data" / "part.parquet")
    (folder / "part-1.csv").write_text("x,y\n1,2\n")
    for source, said in (("empty", "empty"), ("part-*", "part-1.csv"), ("r-*.parquet", "r-")):
        with pytest.raises(sotdd.SotddError, match=said):
            opener(source)


@pytest.fixture
def stores(xy, folder):
    """A small dataset in several forms: its address in fsspec's memory, and behind a web server on this machine."""
    frame = frame_of(xy)
    frame.to_csv("t.csv", index=False)
    frame.to_parquet("t.parquet")
    np.savez("t.npz", X=xy[0], y=xy[1])
    (folder / "parts").mkdir()
    frame.iloc[:100].to_parquet("parts/part-0.parquet")
    frame.iloc[100:].to_parquet("parts/part-1.parquet")
    (folder / "parts" / "_log.parquet").write_text("not data")
    system = fsspec.filesystem("memory")
    system.put(f"{folder}/", "/bucket/", recursive=True)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,)).start()
        yield "memory://bucket", f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
    system.rm("/bucket", recursive=True)


def test_a_store_and_the_web(stores, xy):
    memory, web = stores
    for name in ("t.csv", "t.parquet", "parts", "parts/*.parquet", "parts/part-*.parquet"):
        same(open_dataset(f"{memory}/{name}", label="species"), xy)
    for name in ("t.csv", "t.parquet", "t.csv?version=3"):
        same(open_dataset(f"{web}/{name}", label="species"), xy)
    for place in stores:
        same(open_dataset(f"{place}/t.npz"), xy)
    batches = ParquetBatches.open(f"{memory}/parts", label="species")
    assert sum(len(labels) for _, labels in batches) == batches.n_points == len(xy[1])


def test_addresses_that_lead_nowhere(stores, monkeypatch):
    memory, web = stores
    for address in (f"{memory}/no.csv", f"{memory}/no", f"{web}/no.csv", "klingon://bucket/t.csv", "https://:0/t.csv",
                    f"{memory}/parts/x*.parquet"):  # fmt: skip
        assert address in refusal(address)
    monkeypatch.setattr(fsspec.core, "url_to_fs", Mock(side_effect=ImportError("Install gcsfs")))
    assert "Install gcsfs" in refusal("hf://datasets/a/b.csv")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    assert "pip install fsspec" in refusal("hf://datasets/a/b.csv")


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
        lambda a: sotdd.distance(a, other, n_projections=256, scale="features").value,
        lambda a: sotdd.peers.otdd(a, other, max_points=50).value,
    )
    for call in calls:
        assert call("t.parquet") == call("x.npy::label=y.npy") == call((x, y))
    data = [open_dataset("x.npy::label=y.npy"), open_dataset("t.parquet"), open_dataset(other)]
    projections = sotdd.Projections.fit(data, n_projections=64)
    both = [compare(data, [(0, 1), (1, 2)], projections, 2, engine=engine) for engine in (None, TorchEngine("cpu"))]
    assert both[0][1, 2].value == pytest.approx(both[1][1, 2].value, rel=1e-5)
