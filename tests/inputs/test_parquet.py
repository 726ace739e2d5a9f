"""Parquet files: what a path or an address of them means; and their distances."""

import functools
import http.server
import os
import sys
import threading
from unittest.mock import Mock

import fsspec
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

import sotdd
from inputs.helpers import frame_of, refusal, same
from sotdd import open_dataset
from sotdd.compute.comparison import compare
from sotdd.compute.torch.engine import TorchEngine
from sotdd.inputs.features import StreamedFeatures
from sotdd.inputs.sources import list_files


def test_files_that_belong_together_and_files_that_do_not(folder):
    def written(number, **columns):
        pq.write_table(pa.table({**columns, "y": [number]}), f"p-{number}.parquet")

    for one, other, said in (
        ({"x": [1.0]}, {"z": [1.0]}, "'x'"),
        ({"x": [1.0]}, {"x": ["a"]}, "'x'"),
        ({"v": [[1.0, 2.0]]}, {"v": [[1.0]]}, "1 to 2"),
    ):
        written(1, **one)
        written(2, **other)
        assert said in refusal("p-*.parquet")
    written(1, x=[1.0])
    written(2, x=pa.array([2], pa.int8()))  # another dtype
    assert open_dataset("p-*.parquet").rows(slice(None)).tolist() == [[1.0], [2.0]]


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
def test_what_a_folder_or_pattern_means(left_by_a_cluster, pattern, names):
    source = f"{left_by_a_cluster}/{pattern}"
    assert open_dataset(source).n_points == sum(SIZES[name] for name in names)


def test_urls_and_paths_mean_the_same(left_by_a_cluster):
    inside = [os.path.relpath(path, left_by_a_cluster) for path in list_files(str(left_by_a_cluster))]
    assert sorted(inside) == sorted(DATA)
    url = left_by_a_cluster.as_uri()
    assert [path.removeprefix(f"{url}/").replace("%3D", "=") for path in list_files(url)] == inside


def test_nothing_to_read_is_said(folder):
    (folder / "empty" / "_data").mkdir(parents=True)
    pq.write_table(pa.table({"a": [1.0]}), folder / "empty" / "_data" / "part.parquet")
    (folder / "part-1.csv").write_text("x,y\n1,2\n")
    for source, said in (("empty", "empty"), ("r-*.parquet", "r-")):
        assert said in refusal(source)


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
    for name in ("t.csv", "t.parquet", "parts", "parts/part-*.parquet"):
        same(open_dataset(f"{memory}/{name}", label="species"), xy)
    for name in ("t.csv", "t.parquet", "t.csv?version=3"):
        same(open_dataset(f"{web}/{name}", label="species"), xy)
    for place in stores:
        same(open_dataset(f"{place}/t.npz"), xy)


def test_addresses_that_lead_nowhere(stores, monkeypatch):
    memory, web = stores
    for address in (f"{memory}/no.csv", f"{memory}/no", f"{web}/no.csv", "klingon://bucket/t.csv", "https://:0/t.csv",
                    f"{memory}/parts/x*.parquet"):  # fmt: skip
        assert address in refusal(address)
    monkeypatch.setattr(fsspec.core, "url_to_fs", Mock(side_effect=ImportError("Install gcsfs")))
    assert "Install gcsfs" in refusal("hf://datasets/a/b.csv")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    assert "pip install fsspec" in refusal("hf://datasets/a/b.csv")


def test_large_tables_are_mapped(xy, folder, monkeypatch):
    monkeypatch.setattr("sotdd.inputs.features.HELD_BYTES", 1000)
    monkeypatch.setattr("sotdd.inputs.loaders.tables.LOOK_ROWS", 100)
    frame = frame_of(xy).assign(city=["Rome", "Oslo", None] * 100)
    frame.loc[[3, 299], "x1"] = np.nan
    frame.index = frame.index[::-1] + 7  # which is no feature
    frame.to_parquet("one.parquet", row_group_size=70)
    whole, mapped = open_dataset(frame, label="species"), open_dataset("one.parquet::label=species")
    assert isinstance(mapped.features, StreamedFeatures)
    assert whole.columns == mapped.columns
    np.testing.assert_array_equal(mapped.features[60:90], whole.rows(slice(60, 90)))
    np.testing.assert_array_equal(mapped.features[np.array([299, 3, 77])], whole.features[[299, 3, 77]])
    assert sotdd.distance(whole, mapped, n_projections=16).value < 1e-6


def test_very_wide_tables_are_read_at_once(folder):
    pq.write_table(pa.table([pa.array([1.0, 2.0])] * 5000, names=[f"x{k}" for k in range(5000)]), "wide.parquet")
    assert open_dataset("wide.parquet", label=None).n_features == 5000


def test_distances_of_streamed_data_are_those_of_arrays(folder, rng):
    x, y = rng.normal(size=(3000, 6)).astype(np.float32), rng.integers(4, size=3000)
    table = pa.table({**{f"x{j}": x[:, j] for j in range(6)}, "y": y})
    pq.write_table(table, "t.parquet", row_group_size=700)
    np.save("x.npy", x)
    np.save("y.npy", y)
    other = rng.normal(1, 1, size=(500, 6)), np.arange(500) % 2
    calls = (
        lambda a: sotdd.distance(a, other, n_projections=256, scale="features").value,
        lambda a: sotdd.peers.otdd(a, other, max_points=50).value,
    )
    for call in calls:  # columns with names are put in an order that arrays are not
        assert call("t.parquet") == call(table)
        assert call("x.npy::label=y.npy") == call((x, y)) == pytest.approx(call(table), rel=0.01)
    data = [open_dataset("x.npy::label=y.npy"), open_dataset("t.parquet"), open_dataset(other)]
    projections = sotdd.Projections.fit(data, n_projections=64)
    both = [compare(data, [(0, 1), (1, 2)], projections, 2, engine=engine) for engine in (None, TorchEngine("cpu"))]
    assert both[0][1, 2].value == pytest.approx(both[1][1, 2].value, rel=1e-5)
