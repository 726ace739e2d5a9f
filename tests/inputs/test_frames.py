"""Data frames of several libraries, and tables that leave a question."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from inputs.helpers import refusal
from sotdd import open_dataset


def test_narrow_dtypes_stay_narrow():
    frame = pd.DataFrame({"a": np.array([1, 2], np.uint8), "b": [True, False], "y": [0, 1]})
    assert open_dataset(frame).features.dtype == np.uint8
    assert open_dataset(frame.astype({"a": np.float32})).features.dtype == np.float32
    assert open_dataset(frame.astype({"a": np.int64})).features.dtype == np.float64


QUESTIONS = [
    ({"x": [1.0], "z": [2.0]}, {}, "'x' (numbers), 'z' (numbers)"),
    ({"x": [1.0], "y": [2], "target": [3]}, {}, "'y' and 'target'"),
    ({"x": [1.0]}, {"label": "kind"}, "no column 'kind', only 'x'"),
    ({"x": [1.0], "y": [1]}, {"features": "z"}, "no column 'z'"),
    ({"y": [1]}, {}, "besides the labels"),
    ({"note": ["a"], "y": [1]}, {}, "'note'"),
    ({"x": [1.0], "v": [[1.0, 2.0]], "y": [1]}, {}, "features="),
    ({"v": [[1.0, 2.0], [1.0]], "y": [1, 2]}, {}, "1 to 2 entries"),
    ({"x": [1.0, None], "y": [1, 2]}, {}, "1 of 2 rows, x (1)"),
    ({"x": [1.0, float("inf")], "y": [1, 2]}, {}, "infinite"),
    ({"x": [1.0], "y": [[1]]}, {}, "list"),
]


@pytest.mark.parametrize(
    "convert", [pd.DataFrame, pl.DataFrame, pa.table, None], ids=["pandas", "polars", "arrow", "file"]
)
@pytest.mark.parametrize(("columns", "how", "said"), QUESTIONS, ids=range(len(QUESTIONS)))
def test_tables_that_leave_a_question(folder, convert, columns, how, said):
    if convert is None:
        pl.DataFrame(columns, strict=False).write_parquet("t.parquet")
    assert said in refusal("t.parquet" if convert is None else convert(columns), **how)


def test_odd_frames():
    assert "no rows" in refusal(pd.DataFrame({"x": [], "y": []}))
    assert "'twice'" in refusal(pd.DataFrame([[1.0, 2.0]], columns=["x", "x"]), name="twice")
    objects = pd.DataFrame({"x": [1.0, 2.0], "o": [1, {}], "y": ["a", 3]})  # which Arrow has no type for
    assert open_dataset(objects).columns == ("x",)
    assert open_dataset(objects).classes == ("a", 3)
