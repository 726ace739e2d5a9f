"""Data frames of several libraries, and tables that leave a question."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sotdd
from inputs.helpers import D, frame_of, refusal, same
from sotdd import open_dataset


@pytest.mark.parametrize(
    "convert",
    [
        lambda frame: frame,
        pl.from_pandas,
        lambda frame: pl.from_pandas(frame).lazy(),
        pa.Table.from_pandas,
        pa.RecordBatch.from_pandas,
        lambda frame: frame.astype({"species": "category"}),
        lambda frame: frame.convert_dtypes(),
    ],
    ids=["pandas", "polars", "lazy", "arrow", "batch", "category", "nullable"],
)
def test_frames(xy, convert):
    same(open_dataset(convert(frame_of(xy)), label="species"), xy)


@pytest.mark.parametrize("name", ["label", "labels", "target", "y", "class", "Class"])
def test_the_usual_name_of_labels(xy, name):
    same(open_dataset(frame_of(xy).rename(columns={"species": name})), xy)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_one_column_of_lists(xy, library):
    x, y = xy
    same(open_dataset(library({"vector": x.tolist(), "y": y.tolist()})), xy)


def test_frames_in_calls(xy):
    x, y = xy
    frame = frame_of(xy).rename(columns={"species": "y"})
    assert sotdd.distance(frame, (x, y), n_projections=64).value == 0
    assert sotdd.pairwise({"a": frame, "b": (x + 1, y)}, n_projections=64).values[0, 1] > 0
    assert sotdd.Scaler.fit([frame]).centre.shape == (D,)
    assert sotdd.Projections.fit([frame]).n_features == D
    assert sotdd.peers.frechet(frame, (x, y)).value < 1e-6


def test_narrow_dtypes_stay_narrow():
    frame = pd.DataFrame({"a": np.array([1, 2], np.uint8), "b": [True, False], "y": [0, 1]})
    assert open_dataset(frame).features.dtype == np.uint8
    assert open_dataset(frame.astype({"a": np.float32})).features.dtype == np.float32
    assert open_dataset(frame.astype({"a": np.int64})).features.dtype == np.float64


@pytest.mark.parametrize("convert", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
@pytest.mark.parametrize("stored", [False, True])
def test_tables_that_leave_a_question(folder, convert, stored):
    def table(columns):
        made = convert(columns)
        if not stored:
            return made
        pl.DataFrame(columns, strict=False).write_parquet("t.parquet")
        return "t.parquet"

    assert "'x' (numbers), 'z' (numbers), of which none is named label" in refusal(table({"x": [1.0], "z": [2.0]}))
    assert "'y' and 'target' are named" in refusal(table({"x": [1.0], "y": [2], "target": [3]}))
    assert "has no column 'kind', only 'x' (numbers)" in refusal(table({"x": [1.0]}), label="kind")
    assert "has no column 'z'" in refusal(table({"x": [1.0], "y": [1]}), features="z")
    assert "no column besides the labels" in refusal(table({"y": [1]}))
    assert open_dataset(table({"x": [1.0], "note": ["a"], "y": [1]})).remarks == ("left out: note (text)",)
    assert "'note' of" in refusal(table({"note": ["a"], "y": [1]}))
    assert "name the features with features=" in refusal(table({"x": [1.0], "v": [[1.0, 2.0]], "y": [1]}))
    assert "have 1 to 2 entries" in refusal(table({"v": [[1.0, 2.0], [1.0]], "y": [1, 2]}))
    assert "has missing values in 1 of 2 rows, x (1)" in refusal(table({"x": [1.0, None], "y": [1, 2]}))
    assert "NaN or infinite" in refusal(table({"x": [1.0, float("inf")], "y": [1, 2]}))
    assert "list" in refusal(table({"x": [1.0], "y": [[1]]}))
    assert "has no rows" in refusal(convert({"x": pa.array([], pa.float64()), "y": pa.array([], pa.int64())})
                                    if convert is pa.table else convert({"x": [], "y": []}))  # fmt: skip


def test_frames_with_one_name_twice():
    assert "cannot read the table" in refusal(pd.DataFrame([[1.0, 2.0]], columns=["x", "x"]), name="twice")
