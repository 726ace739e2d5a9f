"""Parquet and Arrow files as datasets, and what a path of them means, whoever reads it."""

import os

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

import sotdd
from inputs.helpers import frame_of, refusal, same
from sotdd import open_dataset
from sotdd.inputs import ParquetBatches
from sotdd.inputs.files import parquet_files


def test_large_row_groups_go_through_a_file_and_an_index_is_no_feature(xy, folder, monkeypatch):
    monkeypatch.setattr("sotdd.inputs.loaders.parquet.HELD_BYTES", 1000)
    monkeypatch.setattr("sotdd.inputs.spool.HELD_BYTES", 1000)
    frame = frame_of(xy)
    frame.index = frame.index[::-1] + 7
    frame.to_parquet("one.parquet")
    same(open_dataset("one.parquet::label=species"), xy)


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ({"x": [1.0]}, {"z": [1.0]}, ("p-2.parquet", "'x'")),
        ({"x": [1.0]}, {"x": ["a"]}, ("'x' holds text in p-2.parquet but numbers",)),
        ({"v": [[1.0, 2.0]]}, {"v": [[1.0]]}, ("(1,)", "(2,)")),
    ],
)
def test_parquet_files_that_do_not_belong_together(folder, one, other, said):
    pq.write_table(pa.table({**one, "y": [1]}), "p-1.parquet")
    pq.write_table(pa.table({**other, "y": [1]}), "p-2.parquet")
    assert all(part in refusal("p-*.parquet") for part in said)


def test_files_of_other_dtypes_belong_together(folder):
    pq.write_table(pa.table({"x": [1.0], "y": [1]}), "p-1.parquet")
    pq.write_table(pa.table({"x": pa.array([2], pa.int8()), "y": pa.array([2], pa.int16())}), "p-2.parquet")
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


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_two_columns_of_one_name_are_refused(folder, kind):
    table = pa.table([pa.array([1.0, 2.0]), pa.array([3.0, 4.0]), pa.array([0, 1])], names=["x", "x", "label"])
    if kind == "parquet":
        pq.write_table(table, "twice.parquet")
    else:
        with pa.ipc.new_file("twice.arrow", table.schema) as file:
            file.write(table)
    assert "'x'" in refusal(f"twice.{kind}")


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


def rows_in_both_ways(source):
    """How many rows each reader finds, and whether they are the same rows in the same order."""
    opened, batches = sotdd.open_dataset(str(source)), ParquetBatches.open(str(source))
    joined = np.concatenate([features for features, _ in batches])
    np.testing.assert_array_equal(opened.rows(slice(None)), joined)
    assert batches.n_points == opened.n_points
    return opened.n_points


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("", list(DATA)),
        ("*.parquet", ["part-0.parquet", "_old.parquet"]),
        ("year=*", ["year=2024/month=1/part-3.Parquet", "year=2025/part-3.parquet"]),
        ("year=*/*.parquet", ["year=2025/part-3.parquet"]),
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
    inside = [os.path.relpath(path, left_by_a_cluster) for path in parquet_files(str(left_by_a_cluster))]
    assert sorted(inside) == sorted(DATA)
    url = left_by_a_cluster.as_uri()
    assert [path.removeprefix(f"{url}/").replace("%3D", "=") for path in parquet_files(url)] == inside
    for name in ("_metadata", "part-0.parquet.bak"):  # a file that is named is read, whatever its name
        assert ParquetBatches.open(left_by_a_cluster / name).n_points == SIZES[name]


@pytest.mark.parametrize("source", ["empty", "part-*", "r-*.parquet"])
@pytest.mark.parametrize("opener", [open_dataset, ParquetBatches.open])
def test_nothing_to_read_is_said(folder, opener, source):
    (folder / "empty" / "_data").mkdir(parents=True)
    pq.write_table(pa.table({"a": [1.0]}), folder / "empty" / "_data" / "part.parquet")
    (folder / "part-1.csv").write_text("x,y\n1,2\n")
    with pytest.raises(sotdd.SotddError, match="part-1.csv" if source == "part-*" else source[:2]):
        opener(source)
