"""Sketches on a Dask cluster: of every kind of source, against streams in this process, and of bad ones."""

import random

import dask
import dask.dataframe
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import sotdd
from sketches.cluster.cases import D, batch, frame, same, table
from sotdd.inputs import ParquetBatches
from sotdd.inputs.loaders import parquet_batches

# ------------------------------------------------------------------ sources


def test_parquet_files_in_any_form(folder, threads, projections, streamed):
    paths = sorted(folder.rglob("[!_]*.parquet"))
    for source in (
        folder,
        str(folder),
        f"{folder}/**/[!_]*.parquet",
        paths,
        folder.as_uri(),
        [path.as_uri() for path in paths],
    ):
        made = sotdd.cluster.sketch(source, projections, threads, name="files")
        same(made, streamed)
        assert (made.name, made.fingerprint, made.projections) == ("files", projections.fingerprint, projections)
        with pytest.raises(ValueError, match="read-only"):
            made.quantiles[0, 0] = 0


def test_frames_of_columns_and_of_lists(batches, threads, projections, streamed):
    same(sotdd.cluster.sketch(frame(batches, 6), projections, threads), streamed)
    same(sotdd.cluster.sketch(frame(batches, 3, lists=True), projections, threads, features="point"), streamed)


@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.reset_index")  # Dask calls pandas so
def test_frames_read_from_lists_in_parquet(tmp_path, batches, threads, projections, streamed):
    for place, part in enumerate(batches):
        parquet.write_table(table(*part, lists=True), tmp_path / f"{place}.parquet")
    same(sotdd.cluster.sketch(dask.dataframe.read_parquet(tmp_path), projections, threads), streamed)
    same(sotdd.cluster.sketch(tmp_path, projections, threads), streamed)


def test_delayed_batches_and_futures(batches, threads, projections, streamed):
    delayed = [dask.delayed(part) for part in batches]
    same(sotdd.cluster.sketch(delayed, projections, threads), streamed)
    futures = [threads.submit(lambda part: part, part, pure=False) for part in batches]
    same(sotdd.cluster.sketch(tuple(futures), projections, threads), streamed)
    assert all(future.status == "finished" for future in futures)


def test_random_numbers_of_the_caller_stay_where_they_are(batches, projections):
    """The scheduler of threads in this process draws from them."""
    state = random.getstate()
    sotdd.cluster.sketch([dask.delayed(batches[0])], projections)
    assert random.getstate() == state
    with pytest.raises(sotdd.SotddError, match="there is no file"):
        sotdd.cluster.sketch("missing.parquet", projections)
    assert random.getstate() == state


def test_features_alone_are_one_class(folder, batches, threads, projections):
    names = [f"x{k}" for k in range(D)]
    alone = sotdd.sketch_stream([part[0] for part in batches], projections)
    same(sotdd.cluster.sketch(folder, projections, threads, features=names, label=None), alone)
    same(sotdd.cluster.sketch(frame(batches, 2), projections, threads, features=names, label=None), alone)
    same(sotdd.cluster.sketch([dask.delayed(part[0]) for part in batches], projections, threads), alone)


def test_labels_of_many_types(tmp_path, threads, projections):
    features, codes = batch(0)
    texts = np.array(["ant", "bee", "cat"])[codes]
    expected = sotdd.sketch_stream([(features, texts)], projections)
    made = pa.table({"point": list(features), "label": pa.array(texts).dictionary_encode(), "weight": features[:, 0]})
    parquet.write_table(made, tmp_path / "texts.parquet")
    same(sotdd.cluster.sketch(tmp_path, projections, threads, features="point"), expected)
    named = pd.DataFrame(features, columns=[f"x{k}" for k in range(D)]).assign(kind=pd.Categorical(texts))
    parts = dask.dataframe.from_pandas(named, npartitions=2)
    same(sotdd.cluster.sketch(parts, projections, threads, label="kind"), expected)


def test_small_row_groups_are_read_together(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_batches, "PIECE_ROWS", 2500)
    parquet.write_table(table(*batch(0, n=6100)), tmp_path / "a.parquet", row_group_size=1000)
    found = ParquetBatches.open(tmp_path, batch_rows=700)
    assert [piece.groups for piece in found.pieces] == [(0, 1), (2, 3), (4, 5, 6)]
    assert [piece.n_points for piece in found.pieces] == [2000, 2000, 2100]
    assert found.n_points == sum(len(features) for features, _ in found) == 6100
    assert max(len(features) for features, _ in found) == 700
    np.testing.assert_array_equal(np.concatenate([part for part, _ in found]), batch(0, n=6100)[0])


# ------------------------------------------------------------------ bad input


def test_a_class_may_be_in_one_partition_only(batches, threads, projections):
    features, labels = batches[0]
    shards = [(features[labels == label], labels[labels == label]) for label in range(3)]
    made = sotdd.cluster.sketch([dask.delayed(part) for part in shards], projections, threads)
    same(made, sotdd.sketch_stream(shards, projections))
    assert made.classes == (0, 1, 2)


def test_empty_partitions_add_nothing(batches, threads, projections, streamed):
    whole = frame(batches, 4)
    nothing = whole[whole.x0 > 1e9]
    same(sotdd.cluster.sketch(dask.dataframe.concat([nothing, whole]), projections, threads), streamed)
    empty = (np.empty((0, D), np.float32), np.empty(0, int))
    same(sotdd.cluster.sketch([dask.delayed(part) for part in [empty, *batches]], projections, threads), streamed)
    for source in (nothing, [dask.delayed(empty)]):
        with pytest.raises(sotdd.SotddError, match="no points to sketch"):
            sotdd.cluster.sketch(source, projections, threads)


def test_numbers_of_other_types_are_numbers(tmp_path, batches, threads, projections):
    parts = [(features.astype(kind), labels) for (features, labels), kind in zip(batches, "fdhe", strict=False)]
    for place, part in enumerate(parts):
        parquet.write_table(table(*part), tmp_path / f"{place}.parquet")
    same(sotdd.cluster.sketch(tmp_path, projections, threads), sotdd.sketch_stream(parts, projections))


def other_file(folder, made):
    parquet.write_table(made, folder / "part-99.parquet")


@pytest.mark.parametrize(
    ("change", "settings", "said"),
    [
        (lambda t: t, {"label": "species"}, "has no column 'species', only 'x0' "),
        (lambda t: t, {"features": ["x0", "x9"]}, "has no column 'x9'"),
        (lambda t: t, {"features": []}, "features is a list"),
        (lambda t: t, {"label": None}, "has 6 features but the projections are for 5"),
        (lambda t: t.rename_columns(["x0", "x1", "x2", "x3", "x4", "kind"]), {}, r"99.parquet has no column 'label'"),
        (lambda t: t.drop_columns("x3"), {}, r"part-99.parquet has no column 'x3', which .*empty.parquet has"),
        (
            lambda t: t.set_column(5, "label", pa.array(["a"] * len(t))),
            {},
            r"column 'label' holds text in .*99.parquet but numbers in .*empty.parquet",
        ),
        (
            lambda t: t.set_column(0, "x0", pa.array(["a"] * len(t))),
            {},
            r"column 'x0' holds text in .*99.parquet but numbers in",
        ),
        (
            lambda t: t.set_column(0, "x0", pa.array([None, *t["x0"].to_pylist()[1:]], pa.float32())),
            {},
            r"part-99.parquet has missing values in 1 of 1,500 rows, x0",
        ),
        (
            lambda t: t.set_column(5, "label", pa.array([None, *t["label"].to_pylist()[1:]])),
            {},
            r"label column 'label' of .*part-99.parquet has 1 missing value",
        ),
        (
            lambda t: t.set_column(0, "x0", pa.array([np.inf, *t["x0"].to_pylist()[1:]], pa.float32())),
            {},
            r"part-99.parquet \(row group 0\): dataset 'batch' has values that are NaN or infinite",
        ),
    ],
)
def test_files_that_do_not_go_together(folder, threads, projections, change, settings, said):
    other_file(folder, change(table(*batch(5))))
    with pytest.raises(sotdd.SotddError, match=said) as caught:
        sotdd.cluster.sketch(folder, projections, threads, **settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("point", "said"),
    [
        ([[1.0, 2.0], [1.0]], "have 1 to 2 entries"),
        ([[1.0, 2.0], None], "1 missing value"),
        ([[1.0, 2.0], [1.0, None]], "have 1 missing value"),
        ([[[1.0]], [[2.0]]], "has 1 feature but the projections are for 5"),
        ([["a"], ["b"]], "expected columns of numbers"),
        ([[1.0, 2.0], [3.0, 4.0]], "has 2 features but the projections are for 5"),
    ],
)
def test_lists_that_are_no_points(tmp_path, threads, projections, point, said):
    parquet.write_table(pa.table({"point": point, "label": [0, 1]}), tmp_path / "lists.parquet")
    with pytest.raises(sotdd.SotddError, match=said) as caught:
        sotdd.cluster.sketch(tmp_path, projections, threads)
    assert "lists.parquet" in str(caught.value)


def test_files_that_cannot_be_read(folder, threads, projections):
    damaged = folder / "part-03.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-100])
    with pytest.raises(sotdd.SotddError, match=r"cannot read .*part-03.parquet"):
        sotdd.cluster.sketch(folder, projections, threads)
    whole = (folder / "part-04.parquet").read_bytes()
    damaged.write_bytes(whole[:4] + b"\xff" * 3000 + whole[3004:])
    with pytest.raises(sotdd.SotddError, match=r"part-03.parquet"):
        sotdd.cluster.sketch(folder, projections, threads)
    for source, said in [
        (folder / "none", "there is no file or folder"),
        (f"{folder}/none*.parquet", "there are no Parquet files"),
        (f"{folder.as_uri()}/none", "there is no file or folder"),
    ]:
        with pytest.raises(sotdd.SotddError, match=said):
            sotdd.cluster.sketch(source, projections, threads)


def test_frames_with_bad_columns(batches, threads, projections):
    whole = frame(batches[:2], 2)
    for source, settings, said in [
        (whole, {"label": "species"}, "the frame has no column 'species'"),
        (whole.rename(columns={"label": "kind"}), {}, "none is named label"),
        (
            whole.assign(note="a"),
            {"features": ["x0", "note"]},
            "column 'note' of (the frame|partition .) holds (text|other)",
        ),
        (whole[["label"]], {}, "no column besides the labels"),
    ]:
        with pytest.raises(sotdd.SotddError, match=said):
            sotdd.cluster.sketch(source, projections, threads, **settings)


def test_partitions_of_a_frame_with_mixed_types(batches, threads, projections):
    def changed(part, partition_info=None):
        if partition_info is not None and partition_info["number"] == 1:
            return part.assign(label=part["label"].map(str))
        return part

    mixed = frame(batches[:2], 2).map_partitions(changed, meta=frame(batches[:1], 1)._meta)
    with pytest.raises(sotdd.SotddError, match=r"partition \d does not go with partition \d: labels are text"):
        sotdd.cluster.sketch(mixed, projections, threads)
    objects = frame(batches[:1], 1).map_partitions(
        lambda part: part.astype({"label": object}).assign(label=[1, "a"] * (len(part) // 2)),
        meta=frame(batches[:1], 1)._meta,
    )
    with pytest.raises(sotdd.SotddError, match="partition 0 cannot be read as a table"):
        sotdd.cluster.sketch(objects, projections, threads)


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ((np.ones((4, 3)), [0, 1, 0, 1]), "batch 11: dataset 'batch' has 3 features but the projections are for 5"),
        ((np.ones((4, D)), [0, 1, 0]), "batch 11: labels"),
        ((np.ones((4, D)), ["a", "b", "a", "b"]), "labels are text in one batch"),
        ("nothing", "batch 11: there is no file nothing"),
    ],
)
def test_bad_batches(batches, threads, projections, part, said):
    delayed = [dask.delayed(each) for each in [*batches, part]]
    with pytest.raises(sotdd.SotddError, match=said):
        sotdd.cluster.sketch(delayed, projections, threads)


def test_sources_that_are_none(batches, threads, projections):
    for source, settings, said in [
        (batches[0], {}, "source is a tuple"),
        ([], {}, "source is a list"),
        (7, {}, "source is 7"),
        ([dask.delayed(batches[0])], {"label": "y"}, "needs neither"),
        ([dask.delayed(batches[0])], {"label": np.arange(3)}, "label is a ndarray: expected the name of a column"),
    ]:
        with pytest.raises(sotdd.SotddError, match=said):
            sotdd.cluster.sketch(source, projections, threads, **settings)
    for settings, said in [({"n_quantiles": 0}, "n_quantiles is 0"), ({"progress": 3}, "progress is 3")]:
        with pytest.raises(sotdd.SotddError, match=said):
            sotdd.cluster.sketch([dask.delayed(batches[0])], projections, threads, **settings)
    with pytest.raises(sotdd.SotddError, match="projections is a NoneType"):
        sotdd.cluster.sketch([dask.delayed(batches[0])], None, threads)
