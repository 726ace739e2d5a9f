"""Parquet and Arrow files as datasets."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather
from pyarrow import parquet as pq

import sotdd
from inputs.helpers import D, frame_of, refusal, same
from sotdd import open_dataset


def test_parquet(xy, folder):
    table = pa.Table.from_pandas(frame_of(xy))
    pq.write_table(table, "one.parquet", row_group_size=70)
    (folder / "parts").mkdir()
    for number in range(3):
        pq.write_table(table.slice(100 * number, 100), f"parts/part-{number}.parquet", row_group_size=30)
    for source in ["one.parquet", "parts", "parts/part-*.parquet", "parts/"]:
        opened = open_dataset(f"{source}::label=species")
        same(opened, xy)
        assert not isinstance(opened.features, np.ndarray)
    same(open_dataset("parts/part-1.parquet", label="species"), (xy[0][100:200], xy[1][100:200]))
    x, y = xy
    lists = pa.table({"v": pa.FixedSizeListArray.from_arrays(x.ravel(), D), "label": pa.array(y).dictionary_encode()})
    pq.write_table(lists, "lists.parquet", row_group_size=64)
    same(open_dataset("lists.parquet"), xy)
    assert sotdd.distance("lists.parquet", "one.parquet::label=species", n_projections=200).value == 0


def test_large_row_groups_go_through_a_file(xy, folder, monkeypatch):
    from sotdd.inputs import spool
    from sotdd.inputs.loaders import parquet

    monkeypatch.setattr(parquet, "HELD_BYTES", 1000)
    monkeypatch.setattr(spool, "HELD_BYTES", 1000)
    pq.write_table(pa.Table.from_pandas(frame_of(xy)), "one.parquet")
    same(open_dataset("one.parquet::label=species"), xy)


def test_index_columns_of_pandas_are_no_features(xy, folder):
    frame = frame_of(xy)
    frame.index = frame.index + 7
    frame.iloc[::-1].to_parquet("indexed.parquet")
    assert open_dataset("indexed.parquet::label=species").n_features == D


def test_arrow_files(xy, folder):
    table = pa.Table.from_pandas(frame_of(xy))
    with pa.OSFile("t.arrow", "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=70)
    with pa.OSFile("stream.arrow", "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=70)
    feather.write_feather(table, "t.feather", compression="lz4", chunksize=50)
    for source in ["t.arrow", "stream.arrow", "t.feather"]:
        same(open_dataset(source, label="species"), xy)


def test_parquet_files_that_do_not_belong_together(folder):
    pq.write_table(pa.table({"x": [1.0], "y": [1]}), "p-1.parquet")
    pq.write_table(pa.table({"z": [1.0], "y": [1]}), "p-2.parquet")
    assert "p-2.parquet has no column 'x', which p-1.parquet has" in refusal("p-*.parquet")
    pq.write_table(pa.table({"x": ["a"], "y": [1]}), "p-2.parquet")
    assert "column 'x' holds text in p-2.parquet but numbers in p-1.parquet" in refusal("p-*.parquet")
    pq.write_table(pa.table({"x": pa.array([2], pa.int8()), "y": pa.array([2], pa.int16())}), "p-2.parquet")
    assert open_dataset("p-*.parquet").rows(slice(None)).tolist() == [[1.0], [2.0]]  # one dtype for all
    pq.write_table(pa.table({"v": [[1.0, 2.0]], "y": [1]}), "q-1.parquet")
    pq.write_table(pa.table({"v": [[1.0]], "y": [1]}), "q-2.parquet")
    assert "expected one length" in refusal("q-*.parquet")
    assert "no file matches" in refusal("r-*.parquet")
    (folder / "p-3.csv").write_text("x,y\n1,2\n")
    assert "p-3.csv is not a Parquet file" in refusal("p-*")


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
    with pytest.raises(sotdd.SotddError, match=r"cannot read t\.parquet") as caught:
        data.rows(slice(10_000, 10_100))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_two_columns_of_one_name_are_refused(tmp_path, kind):
    table = pa.table([pa.array([1.0, 2.0]), pa.array([3.0, 4.0]), pa.array([0, 1])], names=["x", "x", "label"])
    path = tmp_path / f"twice.{kind}"
    if kind == "parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as file:
            file.write(table)
    with pytest.raises(sotdd.SotddError, match="has two columns named 'x': rename one"):
        sotdd.open_dataset(path)
