"""Columns that have names are matched by them wherever data meet, and refused where the names differ."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather

import sotdd
from sotdd import LabelledData

NAMES = ("age", "income", "visits")
OTHER = ("visits", "label", "age", "income")


def people(rng, n=200, shift=0.0):
    """A small table with units of very different size."""
    return pd.DataFrame(
        {
            "age": rng.normal(40 + shift, 12, n),
            "income": rng.lognormal(10, 0.5, n),
            "visits": rng.poisson(3, n),
            "label": rng.integers(2, size=n),
        }
    )


def turned(frame):
    """The same rows with their columns in another order."""
    return frame[list(OTHER)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


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
    "polars": lambda frame, _: pl.from_pandas(frame),
    "lazy": lambda frame, _: pl.from_pandas(frame).lazy(),
    "arrow": lambda frame, _: pa.Table.from_pandas(frame, preserve_index=False),
    "pair": lambda frame, _: (frame.drop(columns="label"), frame["label"].to_numpy()),
    "csv": lambda frame, name: written(frame, f"{name}.csv"),
    "parquet": lambda frame, name: written(frame, f"{name}.parquet"),
    "feather": lambda frame, name: written(frame, f"{name}.feather"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_rows_with_columns_in_another_order_are_at_distance_0(folder, frame, kind):
    one, other = KINDS[kind](frame, "one"), KINDS[kind](turned(frame), "other")
    assert sotdd.open_dataset(one).columns == NAMES
    found = sotdd.distance(one, other, n_projections=64)
    assert found.value == 0
    assert found.columns == NAMES
    assert found.remarks == ()
    assert sotdd.distance(frame, other, n_projections=64).value == pytest.approx(0, abs=1e-6)  # of another kind


@pytest.mark.parametrize("kind", KINDS)
def test_a_renamed_column_is_refused_with_both_names(folder, frame, kind):
    other = KINDS[kind](frame.rename(columns={"income": "salary"}), "other")
    expected = (
        "'b' has no column 'income' and has 'salary', which dataset 'a' does not have: give both the same columns"
    )
    one, data = sotdd.open_dataset(frame, name="a"), sotdd.open_dataset(other, name="b")
    with pytest.raises(sotdd.SotddError, match=expected):
        sotdd.distance(one, data)


def test_every_call_matches_by_name(frame, rng):
    """What a call gives does not depend on the order of the second dataset's columns."""
    other = people(rng, 150, shift=9)
    calls = {
        "distance": lambda b: sotdd.distance(frame, b, n_projections=64).value,
        "rel_tol": lambda b: sotdd.distance(frame, b, rel_tol=0.2, max_projections=128).value,
        "pairwise": lambda b: sotdd.pairwise({"a": frame, "b": b}, n_projections=64)["a", "b"].value,
        "otdd": lambda b: sotdd.peers.otdd(frame, b, scale="auto").value,
        "mmd": lambda b: sotdd.pairwise([frame, b], method="mmd", scale="features").values[0, 1],
        "wte": lambda b: sotdd.peers.wte([frame, b], n_reference=20).matrix.values[0, 1],
        "explain": lambda b: sotdd.explain(frame, b, n_projections=64).distance.value,
        "test": lambda b: sotdd.test(frame, b, n_permutations=9, n_projections=64).statistic,
        "fit": lambda b: float(np.sum(sotdd.Scaler.fit([frame, b]).scale)),
    }
    for name, call in calls.items():
        assert call(turned(other)) == call(other), name
        with pytest.raises(sotdd.SotddError, match="has no column 'age', which"):
            call(other.drop(columns="age"))


def test_missing_extra_and_many_columns_are_listed(rng):
    wide = pd.DataFrame(rng.normal(size=(5, 30)), columns=[f"x{k}" for k in range(30)]).assign(label=0)
    with pytest.raises(
        sotdd.SotddError, match="dataset 'b' has a column 'more', which dataset 'a' does not have: give"
    ):
        sotdd.distance(wide, wide.assign(more=1.0))
    with pytest.raises(sotdd.SotddError, match="dataset 'b' has no columns 'x1', 'x2', which dataset 'a' has: give"):
        sotdd.distance(wide, wide.drop(columns=["x1", "x2"]))
    renamed = wide.rename(columns={f"x{k}": f"z{k}" for k in range(10)})
    with pytest.raises(
        sotdd.SotddError, match=r"'x5' and 4 more and has 'z0', .* and 4 more, which dataset 'a' does not have"
    ):
        sotdd.distance(wide, renamed)


def test_an_array_is_matched_by_position_and_that_is_said(frame):
    x = frame[list(NAMES)].to_numpy()
    found = sotdd.distance(frame, (x, frame["label"]), n_projections=64)
    assert found.value == 0
    assert found.remarks == ("the columns of 'b' have no names and are matched by position",)
    matrix = sotdd.pairwise({"table": frame, "array": (x, frame["label"]), "turned": turned(frame)}, n_projections=64)
    assert matrix["table", "turned"].remarks == ()
    assert "the columns of 'array' have no names" in matrix["array", "turned"].remarks[0]
    assert repr(matrix).count("matched by position") == 1


def test_columns_that_are_numbered_have_no_names(rng):
    x = pd.DataFrame(rng.normal(size=(20, 3)))
    assert sotdd.open_dataset(x, label=None).columns is None
    assert sotdd.open_dataset((x, np.zeros(20))).columns is None


def test_texts_lists_and_transforms_have_no_names(frame):
    texts = pd.DataFrame({"text": ["one", "three"], "label": [0, 1]})
    assert sotdd.open_dataset(texts, encoder=lambda batch: [[len(text)] for text in batch]).columns is None
    lists = pd.DataFrame({"vector": [[1.0, 2.0], [3.0, 4.0]], "label": [0, 1]})
    assert sotdd.open_dataset(lists).columns is None
    assert sotdd.open_dataset(frame, transform=lambda batch: batch[:, :2]).columns is None


def test_bunches_of_frames_and_hugging_face_columns_have_names(frame):
    loaders = pytest.importorskip("sklearn.datasets")
    flowers = loaders.load_iris(as_frame=True)
    assert sotdd.open_dataset(flowers).columns == tuple(flowers.feature_names)
    assert sotdd.open_dataset(loaders.load_digits()).columns is None  # pixels
    datasets = pytest.importorskip("datasets")
    opened = sotdd.open_dataset(datasets.Dataset.from_pandas(turned(frame), preserve_index=False))
    assert opened.columns == ("visits", "age", "income")
    assert sotdd.distance(opened, frame, n_projections=64).value == pytest.approx(0, abs=1e-6)


def test_names_stay_with_samples_and_choices(frame):
    opened = sotdd.open_dataset(frame, features=["visits", "age"], max_points=50)
    assert opened.columns == ("visits", "age")
    assert sotdd.open_dataset(opened, max_points=10).columns == ("visits", "age")
    assert opened.take(np.arange(3)).columns == ("visits", "age")
    np.testing.assert_array_equal(opened.rows(slice(0, 3))[:, 1], opened.features[:3, 1])


def test_streamed_columns_are_put_in_order_as_they_are_read(folder, frame):
    from sotdd.inputs.column_names import in_order
    from sotdd.inputs.streamed import StreamedFeatures

    data = sotdd.open_dataset(written(turned(frame), "t.parquet"))
    ordered = in_order(data, NAMES, "another")
    assert isinstance(ordered.features, StreamedFeatures)
    expected = frame[list(NAMES)].to_numpy()
    np.testing.assert_array_equal(ordered.features[60:90], expected[60:90])
    np.testing.assert_array_equal(ordered.features[np.array([199, 3, 77])], expected[[199, 3, 77]])


def test_tensors_on_a_device_are_put_in_order(rng):
    torch = pytest.importorskip("torch")
    from sotdd.inputs.column_names import in_order
    from sotdd.inputs.tensors import DeviceFeatures

    x = rng.normal(size=(4, 3))
    data = LabelledData("t", DeviceFeatures(torch.tensor(x)), ("all",), np.zeros(4, int), ("c", "a", "b"))
    np.testing.assert_array_equal(in_order(data, ("a", "b", "c"), "another").rows(slice(None)), x[:, [1, 2, 0]])


def test_a_scaler_goes_by_name(frame, rng):
    other = people(rng, shift=5)
    scaler = sotdd.Scaler.fit([frame])
    expected = sotdd.distance(frame, other, scale=scaler, n_projections=64)
    again = sotdd.distance(turned(frame), other, scale=scaler, n_projections=64)
    np.testing.assert_array_equal(again.scaler.scale, scaler.scale[[2, 0, 1]])
    assert again.value == pytest.approx(expected.value, rel=0.3)  # other draws
    with pytest.raises(sotdd.SotddError, match="the scaler has no column 'pay' and has 'income', which the dataset"):
        sotdd.distance(*(part.rename(columns={"income": "pay"}) for part in (frame, other)), scale=scaler)


# ------------------------------------------------------------------ what is kept knows its columns


def test_projections_know_their_columns(frame):
    projections = sotdd.Projections.fit([frame], n_projections=64)
    assert projections.columns == NAMES
    assert projections.recipe()["columns"] == list(NAMES)
    renamed = sotdd.Projections.fit([frame.rename(columns={"age": "years"})], n_projections=64)
    assert renamed.fingerprint != projections.fingerprint
    assert sotdd.distance(frame, turned(frame), projections=projections).value == 0
    with pytest.raises(sotdd.SotddError, match="no column 'age' and has 'years', which the dataset that the"):
        sotdd.distance(*[frame.rename(columns={"age": "years"})] * 2, projections=projections)


def test_sketches_keep_names_and_match_by_them(folder, frame, rng):
    projections = sotdd.Projections.fit([frame], n_projections=64)
    sotdd.sketch(frame, projections, name="people").save("people.sotdd")
    kept = sotdd.Sketch.load("people.sotdd")
    assert kept.columns == NAMES
    assert kept.projections.columns == NAMES
    assert sotdd.distance(kept, turned(frame)).value == 0
    assert sotdd.distance(kept, turned(frame)).to_dict()["columns"] == list(NAMES)
    with pytest.raises(sotdd.SotddError, match="has no column 'age' and has 'years'"):
        sotdd.distance(kept, frame.rename(columns={"age": "years"}))
    array = sotdd.distance(kept, (frame[list(NAMES)].to_numpy(), frame["label"]))
    assert array.value == 0
    assert array.remarks == ("the columns of 'b' have no names and are matched by position",)


def test_a_table_through_projections_without_names_is_told(frame):
    projections = sotdd.Projections.fit([frame[list(NAMES)].to_numpy()], n_projections=64)
    found = sotdd.sketch(frame, projections, name="people").remarks
    assert found[0].endswith("fitted on columns without names, so those of 'people' are matched by position")


def test_streams_match_every_batch_by_name(folder, frame):
    projections = sotdd.Projections.fit([frame], n_projections=64)
    parts = [frame[:80], turned(frame[80:])]
    whole = sotdd.sketch_stream([frame], projections)
    assert whole.columns == NAMES
    assert sotdd.sketch_stream(parts, projections).distance(whole).value < 1e-6
    statistics = sotdd.ClassStatistics(projections)
    for part in parts:
        statistics.add(part)
    second = sotdd.SketchBuilder(projections, statistics).add(turned(frame)).finish()
    assert second.distance(whole).value < 0.02
    assert second.remarks == ()
    with pytest.raises(sotdd.SotddError, match="'batch' has no column 'age', which the dataset that the projections"):
        sotdd.SketchBuilder(projections).add(frame.drop(columns="age"))
    unnamed = sotdd.SketchBuilder(projections).add(frame[list(NAMES)].to_numpy(), frame["label"].to_numpy())
    unnamed.save("builder")
    assert "by position" in sotdd.SketchBuilder.load("builder").finish("array").remarks[0]


def test_parquet_batches_know_their_columns(folder, frame):
    from sotdd.inputs import ParquetBatches

    written(frame, "a.parquet")
    written(turned(frame), "b.parquet")
    first = next(iter(ParquetBatches.open("a.parquet", batch_rows=60)))
    features, labels = first
    assert (features.shape, labels.shape) == ((60, 3), (60,))
    projections = sotdd.Projections.fit([first], n_projections=64)
    assert projections.columns == NAMES
    one, other = (sotdd.sketch_stream(ParquetBatches.open(name), projections) for name in ("a.parquet", "b.parquet"))
    assert one.distance(other).value == 0
    unlabelled = next(iter(ParquetBatches.open("a.parquet", features=list(NAMES), label=None)))
    assert sotdd.Projections.fit([unlabelled], n_projections=64).columns == NAMES


def test_a_cluster_matches_by_name(folder, frame):
    dataframe = pytest.importorskip("dask.dataframe")
    projections = sotdd.Projections.fit([frame], n_projections=64)
    whole = sotdd.sketch_stream([frame], projections)
    partitions = dataframe.from_pandas(turned(frame), npartitions=3)
    for source in (partitions, written(turned(frame), "t.parquet")):
        assert sotdd.cluster.sketch(source, projections).distance(whole).value < 1e-6
    with pytest.raises(sotdd.SotddError, match="has no column 'age' and has 'years'"):
        sotdd.cluster.sketch(partitions.rename(columns={"age": "years"}), projections)


def test_references_and_catalogs_match_by_name(folder, frame, rng):
    reference = sotdd.DriftReference.fit(frame)
    batch = people(rng, 50, shift=20)
    found = reference.test(batch, n_permutations=19)
    assert reference.test(turned(batch), n_permutations=19).distance == found.distance
    assert found.remarks == ()
    assert "by position" in reference.test((batch[list(NAMES)].to_numpy(), batch["label"])).remarks[0]
    with pytest.raises(sotdd.SotddError, match="has no column 'age'"):
        reference.test(batch.drop(columns="age"))
    catalog = sotdd.Catalog("catalog")
    catalog.add("people", sotdd.sketch(frame, sotdd.Projections.fit([frame], n_projections=64)))
    catalog.add("turned", turned(frame))
    assert [hit.distance.value for hit in catalog.nearest(turned(frame))] == [0, 0]
    with pytest.raises(sotdd.SotddError, match="has no column 'age'"):
        sotdd.Catalog("catalog").nearest(frame.drop(columns="age"))


# ------------------------------------------------------------------ the command line


def test_tables_of_commands_say_the_scale(folder, frame, run):
    one, other = written(frame, "one.csv"), written(turned(frame), "other.csv")
    for command in ("matrix", "rank", "check"):
        said = " ".join(" ".join(run(command, one, other, "--n-projections", 64)[1:]).split())
        assert "each column scaled" in said, command


def test_commands_match_by_name_and_say_the_scale(folder, frame, run):
    one, other = written(frame, "one.csv"), written(turned(frame), "other.parquet")
    code, out, _ = run("distance", one, other, "--n-projections", 64, "--json")
    told = json.loads(out)
    assert (code, told["scale"], told["columns"]) == (0, "features", list(NAMES))
    assert told["value"] == pytest.approx(0, abs=1e-6)
    assert "each column scaled" in run("distance", one, other, "--n-projections", 64)[1]
    small = written(frame.assign(income=frame["income"] / 1e5, age=frame["age"] / 100), "small.csv")
    for scale in ("pooled", "none", "auto", "features"):
        code, out, _ = run("distance", small, small, "--n-projections", 64, "--json", "--scale", scale)
        assert json.loads(out)["scale"] == ("features" if scale == "auto" else scale)
    code, _, error = run("distance", one, other, "--scale", "column")
    assert (code, "expected auto, features, pooled or none" in error) == (2, True)


@pytest.mark.parametrize("command", ["distance", "matrix", "rank", "test", "explain", "check"])
def test_commands_refuse_other_names_in_one_line(folder, frame, run, command):
    one, other = written(frame, "one.csv"), written(frame.rename(columns={"age": "years"}), "other.csv")
    code, _, error = run(command, one, other)
    assert code == 2
    wanted = "'other.csv' has no column 'age' and has 'years', which"
    if command == "check":  # whose reference says which columns there are
        wanted = "other.csv has no column 'age', only"
    assert wanted in " ".join(error.split())


def test_a_remark_reaches_every_command(folder, rng, run):
    x = rng.normal(size=(100, 4))
    x[:, 0] *= 100
    for name, shift in (("a", 0), ("b", 1)):
        np.savez(f"{name}.npz", X=x + shift, y=np.zeros(100))
    for command in ("distance", "matrix", "rank", "explain", "check"):
        out = " ".join(" ".join(run(command, "a.npz", "b.npz", "--n-projections", 64)[1:]).split())
        assert "feature 0 carries nearly all of the spread" in out, command
