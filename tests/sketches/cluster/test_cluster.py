"""Sketches on a Dask cluster: of every kind of source, against streams in this process, and of bad ones."""

from dataclasses import replace

import dask
import dask.dataframe
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import sotdd.sketches.cluster
from sketches.cluster.cases import D, batch, frame, same, table

# ------------------------------------------------------------------ sources


def test_frames_of_columns_and_of_lists(batches, threads, projections, streamed):
    made = sotdd.sketches.cluster.sketch(frame(batches, 6), projections, threads, name="rows")
    same(made, streamed)
    assert (made.name, made.fingerprint, made.projections) == ("rows", projections.fingerprint, projections)
    with pytest.raises(ValueError, match="read-only"):
        made.quantiles[0, 0] = 0
    same(sotdd.sketches.cluster.sketch(frame(batches, 3, lists=True), projections, threads, features="point"), streamed)


@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.reset_index")  # Dask calls pandas so
def test_frames_read_from_lists_in_parquet(tmp_path, batches, threads, projections, streamed):
    for place, part in enumerate(batches):
        parquet.write_table(table(*part, lists=True), tmp_path / f"{place}.parquet")
    same(sotdd.sketches.cluster.sketch(dask.dataframe.read_parquet(tmp_path), projections, threads), streamed)


def test_delayed_batches_and_futures(batches, threads, projections, streamed):
    delayed = [dask.delayed(part) for part in batches]
    same(sotdd.sketches.cluster.sketch(delayed, projections, threads), streamed)
    futures = [threads.submit(lambda part: part, part, pure=False) for part in batches]
    same(sotdd.sketches.cluster.sketch(tuple(futures), projections, threads), streamed)
    assert all(future.status == "finished" for future in futures)


def test_tails_that_count_by_their_logarithm(batches, threads):
    heavy = [(np.exp(3 * features), labels) for features, labels in batches[:4]]
    projections = sotdd.Projections.fit(heavy[:2], n_projections=70, scale="arcsinh")
    found = sotdd.sketches.cluster.sketch(frame(heavy, 3), projections, threads)
    same(found, sotdd.sketch_stream(heavy, projections))
    by_hand = [(projections.scaler.apply(features), labels) for features, labels in heavy]
    plain = sotdd.sketch_stream(by_hand, replace(projections, scaler=None))
    np.testing.assert_allclose(found.quantiles, plain.quantiles, atol=1e-4)


def test_features_alone_are_one_class(batches, threads, projections):
    names = [f"x{k}" for k in range(D)]
    alone = sotdd.sketch_stream([part[0] for part in batches], projections)
    same(sotdd.sketches.cluster.sketch(frame(batches, 2), projections, threads, features=names, label=None), alone)
    same(sotdd.sketches.cluster.sketch([dask.delayed(part[0]) for part in batches], projections, threads), alone)


# ------------------------------------------------------------------ bad input


def test_empty_partitions_add_nothing(batches, threads, projections, streamed):
    whole = frame(batches, 4)
    nothing = whole[whole.x0 > 1e9]
    same(sotdd.sketches.cluster.sketch(dask.dataframe.concat([nothing, whole]), projections, threads), streamed)
    empty = (np.empty((0, D), np.float32), np.empty(0, int))
    same(
        sotdd.sketches.cluster.sketch([dask.delayed(part) for part in [empty, *batches]], projections, threads),
        streamed,
    )
    for source in (nothing, [dask.delayed(empty)]):
        with pytest.raises(sotdd.SotddError, match="no points to sketch"):
            sotdd.sketches.cluster.sketch(source, projections, threads)


@pytest.mark.parametrize(
    ("change", "settings", "said"),
    [
        (lambda t: t, {"label": "species"}, "has no column 'species'"),
        (lambda t: t, {"label": None}, "has 6 features but the projections are for 5"),
        (lambda t: t.drop_columns("x3"), {}, "partition 1: dataset 'batch' has 4 features"),
        (
            lambda t: t.set_column(0, "x0", pa.array([np.inf, *t["x0"].to_pylist()[1:]], pa.float32())),
            {},
            r"values that are NaN or infinite, .*column 'x0'",
        ),
    ],
)
def test_tables_that_do_not_go_together(threads, projections, change, settings, said):
    parts = [dask.delayed(table(*batch(4))), dask.delayed(change(table(*batch(5))))]
    with pytest.raises(sotdd.SotddError, match=said) as caught:
        sotdd.sketches.cluster.sketch(parts, projections, threads, **settings)
    assert "\n" not in str(caught.value)


def test_partitions_of_a_frame_with_mixed_types(batches, threads, projections):
    def changed(part, partition_info=None):
        if partition_info is not None and partition_info["number"] == 1:
            return part.assign(label=part["label"].map(str))
        return part

    mixed = frame(batches[:2], 2).map_partitions(changed, meta=frame(batches[:1], 1)._meta)
    with pytest.raises(sotdd.SotddError, match="labels are text in one batch"):
        sotdd.sketches.cluster.sketch(mixed, projections, threads)


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ((np.ones((4, 3)), [0, 1, 0, 1]), "partition 11: dataset 'batch' has 3 features but the projections are for 5"),
        ((np.ones((4, D)), ["a", "b", "a", "b"]), "labels are text in one batch"),
    ],
)
def test_bad_batches(batches, threads, projections, part, said):
    delayed = [dask.delayed(each) for each in [*batches, part]]
    with pytest.raises(sotdd.SotddError, match=said):
        sotdd.sketches.cluster.sketch(delayed, projections, threads)


@pytest.mark.parametrize(
    ("source", "settings", "said"),
    [
        (lambda part: part, {}, "source is a tuple"),
        (lambda _: [], {}, "source is a list"),
        (lambda part: [dask.delayed(part)], {"label": "y"}, "label is given"),
        (lambda _: "data/*.parquet", {}, "read_parquet"),
        (lambda part: [dask.delayed(part)], {"groups": "y"}, "groups is given"),
        (lambda part: [dask.delayed(part)], {"n_quantiles": 0}, "n_quantiles is 0"),
        (lambda part: frame([part], 2), {"label": "species"}, "batch has no column 'species'"),
    ],
)
def test_sources_and_settings_that_are_refused(batches, threads, projections, source, settings, said):
    with pytest.raises(sotdd.SotddError, match=said):
        sotdd.sketches.cluster.sketch(source(batches[0]), projections, threads, **settings)
