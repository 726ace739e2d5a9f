"""Columns that have names are matched by them wherever data meet, and refused where the names differ."""

import json

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from pyarrow import feather

import sotdd
from sotdd import LabelledData, SotddError
from sotdd.inputs import ParquetBatches
from sotdd.inputs.column_names import in_order
from sotdd.inputs.streamed import StreamedFeatures
from sotdd.inputs.tensors import DeviceFeatures

NAMES = ("age", "income", "visits")
OTHER = ("visits", "label", "age", "income")


def people(rng, n=200, shift=0.0):
    """A small table with units of very different size."""
    ages, incomes = rng.normal(40 + shift, 12, n), rng.lognormal(10, 0.5, n)
    return pd.DataFrame({"age": ages, "income": incomes, "visits": rng.poisson(3, n), "label": rng.integers(2, size=n)})


def turned(frame):
    """The same rows with their columns in another order."""
    return frame[list(OTHER)]


@pytest.fixture
def frame(rng):
    return people(rng)


def written(frame, name):
    """A frame as a file of the kind that its name says."""
    if name.endswith(".csv"):
        frame.to_csv(name, index=False)
    elif name.endswith(".parquet"):
        frame.to_parquet(name, row_group_size=70)
    else:
        feather.write_feather(pa.Table.from_pandas(frame, preserve_index=False), name)
    return name


KINDS = {
    "pandas": lambda frame, _: frame,
    "lazy": lambda frame, _: pl.from_pandas(frame).lazy(),
    "arrow": lambda frame, _: pa.Table.from_pandas(frame, preserve_index=False),
    "pair": lambda frame, _: (frame.drop(columns="label"), frame["label"].to_numpy()),
    "csv": lambda frame, name: written(frame, f"{name}.csv"),
    "parquet": lambda frame, name: written(frame, f"{name}.parquet"),
    "feather": lambda frame, name: written(frame, f"{name}.feather"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_is_matched_by_name(folder, frame, kind):
    one, other = KINDS[kind](frame, "one"), KINDS[kind](turned(frame), "other")
    assert sotdd.open_dataset(one).columns == NAMES
    found = sotdd.distance(one, other, n_projections=64)
    assert (found.value, found.columns, found.remarks) == (0, NAMES, ())
    assert sotdd.distance(frame, other, n_projections=64).value == pytest.approx(0, abs=1e-6)  # of another kind
    renamed = sotdd.open_dataset(KINDS[kind](frame.rename(columns={"income": "salary"}), "renamed"), name="b")
    with pytest.raises(SotddError, match=r"'b' .*'income' .*'salary'.* 'a'"):
        sotdd.distance(sotdd.open_dataset(one, name="a"), renamed)


def test_every_call_matches_by_name(folder, frame, rng):
    """What a call gives does not depend on the order of the second dataset's columns."""
    other = people(rng, 150, shift=9)
    projections = sotdd.Projections.fit([frame], n_projections=64)
    assert projections.columns == NAMES
    sotdd.sketch(frame, projections, name="people").save("people.sotdd")
    kept = sotdd.Sketch.load("people.sotdd")
    assert kept.columns == kept.projections.columns == NAMES
    reference, catalog = sotdd.DriftReference.fit(frame), sotdd.Catalog("catalog")
    catalog.add("people", kept)
    calls = {
        "distance": lambda b: sotdd.distance(frame, b, n_projections=64).value,
        "projections": lambda b: sotdd.distance(frame, b, projections=projections).value,
        "rel_tol": lambda b: sotdd.distance(frame, b, rel_tol=0.2, max_projections=128).value,
        "pairwise": lambda b: sotdd.pairwise({"a": frame, "b": b}, n_projections=64)["a", "b"].value,
        "otdd": lambda b: sotdd.peers.otdd(frame, b, scale="auto").value,
        "mmd": lambda b: sotdd.pairwise([frame, b], method="mmd", scale="features").values[0, 1],
        "wte": lambda b: sotdd.peers.wte([frame, b], n_reference=20).matrix.values[0, 1],
        "explain": lambda b: sotdd.explain(frame, b, n_projections=64).distance.value,
        "test": lambda b: sotdd.test(frame, b, n_permutations=9, n_projections=64).statistic,
        "fit": lambda b: float(np.sum(sotdd.Scaler.fit([frame, b]).scale)),
        "sketch": lambda b: sotdd.distance(kept, b).value,
        "stream": lambda b: sotdd.sketch_stream([b[:80], b[80:][[*b.columns[::-1]]]], projections).distance(kept).value,
        "builder": lambda b: sotdd.SketchBuilder(projections).add(b).finish().distance(kept).value,
        "files": lambda b: (
            sotdd.sketch_stream(ParquetBatches.open(written(b, "b.parquet")), projections).vector().sum()
        ),
        "cluster": lambda b: (
            sotdd.sketches.cluster.sketch(dd.from_pandas(b, npartitions=3), projections).distance(kept).value
        ),
        "reference": lambda b: reference.test(b, n_permutations=19).distance,
        "catalog": lambda b: catalog.nearest(b)[0].distance.value,
    }
    for name, call in calls.items():
        assert call(turned(other)) == pytest.approx(call(other), rel=1e-12), name
        with pytest.raises(SotddError, match="'age'"):
            call(other.drop(columns="age"))
        with pytest.raises(SotddError, match="'age'"):
            call(other.rename(columns={"age": "years"}))


def test_missing_extra_and_many_columns_are_listed(rng):
    wide = pd.DataFrame(rng.normal(size=(5, 30)), columns=[f"x{k}" for k in range(30)]).assign(label=0)
    renamed = wide.rename(columns={f"x{k}": f"z{k}" for k in range(10)})
    for other, said in (
        (wide.assign(more=1.0), "'b' has a column 'more'"),
        (wide.drop(columns=["x1", "x2"]), "'b' has no columns 'x1', 'x2'"),
        (renamed, r"'x5' and 4 more and has 'z0', .* and 4 more"),
    ):
        with pytest.raises(SotddError, match=said):
            sotdd.distance(wide, other)


def test_an_array_is_matched_by_position_and_that_is_said(folder, frame):
    array = frame[list(NAMES)].to_numpy(), frame["label"].to_numpy()
    projections = sotdd.Projections.fit([frame], n_projections=64)
    sotdd.SketchBuilder(projections).add(*array).save("builder")
    for found in (
        sotdd.distance(frame, array, n_projections=64),
        sotdd.distance(sotdd.sketch(frame, projections), array),
        sotdd.sketch(frame, sotdd.Projections.fit([array[0]], n_projections=64)),
        sotdd.SketchBuilder.load("builder").finish(),
        sotdd.DriftReference.fit(frame).test(array),
    ):
        assert "by position" in found.remarks[0]
    matrix = sotdd.pairwise({"table": frame, "array": array, "turned": turned(frame)}, n_projections=64)
    assert matrix["table", "turned"].remarks == ()
    assert "'array'" in matrix["array", "turned"].remarks[0]
    assert repr(matrix).count("by position") == 1


def test_what_has_names_and_what_has_none(frame, rng):
    x = pd.DataFrame(rng.normal(size=(20, 3)))  # columns are merely numbered
    lists = pd.DataFrame({"vector": [[1.0, 2.0], [3.0, 4.0]], "label": [0, 1]})
    texts = pd.DataFrame({"text": ["one", "three"], "label": [0, 1]})
    for source, how in (
        (x, {"label": None}),
        ((x, np.zeros(20)), {}),
        (lists, {}),
        (texts, {"encoder": lambda batch: [[len(text)] for text in batch]}),
        (frame, {"transform": lambda batch: batch[:, :2]}),
    ):
        assert sotdd.open_dataset(source, **how).columns is None
    flowers = pytest.importorskip("sklearn.datasets").load_iris(as_frame=True)
    assert sotdd.open_dataset(flowers).columns == tuple(flowers.feature_names)
    opened = sotdd.open_dataset(frame, features=["visits", "age"], max_points=50)
    for data in (opened, sotdd.open_dataset(opened, max_points=10), opened.take(np.arange(3))):
        assert data.columns == ("visits", "age")


def test_columns_are_put_in_order_where_they_are(folder, frame):
    data = sotdd.open_dataset(written(turned(frame), "t.parquet"))
    ordered = in_order(data, NAMES, "another")
    assert isinstance(ordered.features, StreamedFeatures)
    expected = frame[list(NAMES)].to_numpy()
    np.testing.assert_array_equal(ordered.features[60:90], expected[60:90])
    np.testing.assert_array_equal(ordered.features[np.array([199, 3, 77])], expected[[199, 3, 77]])
    device = LabelledData("t", DeviceFeatures(torch.tensor(expected)), ("all",), np.zeros(200, int), NAMES)
    np.testing.assert_array_equal(in_order(device, NAMES[::-1], "another").rows(slice(None)), expected[:, ::-1])


def test_a_scaler_goes_by_name(frame, rng):
    scaler = sotdd.Scaler.fit([frame])
    again = sotdd.distance(turned(frame), people(rng, shift=5), scale=scaler, n_projections=64)
    np.testing.assert_array_equal(again.scaler.scale, scaler.scale[[2, 0, 1]])
    with pytest.raises(SotddError, match=r"scaler .*'pay' .*'income'"):
        sotdd.distance(*[frame.rename(columns={"income": "pay"})] * 2, scale=scaler)


def test_batches_of_files_know_their_columns(folder, frame):
    features, labels = first = next(iter(ParquetBatches.open(written(frame, "a.parquet"), batch_rows=60)))
    assert (features.shape, labels.shape) == ((60, 3), (60,))
    unlabelled = next(iter(ParquetBatches.open("a.parquet", features=list(NAMES), label=None)))
    for batch in (first, unlabelled):
        assert sotdd.Projections.fit([batch], n_projections=64).columns == NAMES


def test_commands_match_by_name_and_say_the_scale(folder, frame, run):
    one, other = written(frame, "one.csv"), written(turned(frame), "other.parquet")
    code, out, _ = run("distance", one, other, "--n-projections", 64, "--json")
    told = json.loads(out)
    assert (code, told["scale"], told["columns"]) == (0, "features", list(NAMES))
    assert told["value"] == pytest.approx(0, abs=1e-6)
    small = written(frame / [100, 1e5, 1, 1], "small.csv")
    for scale in ("pooled", "none", "auto", "features"):
        code, out, _ = run("distance", small, small, "--n-projections", 64, "--json", "--scale", scale)
        assert json.loads(out)["scale"] == ("features" if scale == "auto" else scale)
    renamed = written(frame.rename(columns={"age": "years"}), "renamed.csv")
    for command in ("distance", "check"):
        code, _, error = run(command, one, renamed)
        assert (code, "has no column 'age'" in " ".join(error.split())) == (2, True)
