"""Samples that are taken while a source is read: which rows, how many, and what comes with them."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather
from pyarrow import parquet as pq

import sotdd
from sotdd import open_dataset
from sotdd.basics.remarks import Remark
from sotdd.inputs.sampling import RowSample, sample_rows


@pytest.mark.parametrize("count", [1, 7, 500, 5000])
@pytest.mark.parametrize("size", [1, 64, 1000, 3000])
def test_rows_in_batches_are_those_with_the_smallest_keys(count, size, rng):
    usable = rng.random(3000) < 0.4
    keys = np.random.default_rng(9).random(3000)
    for known in (None, usable):
        able = np.arange(3000) if known is None else np.flatnonzero(known)
        expected = np.sort(able[np.argsort(keys[able])[:count]])
        np.testing.assert_array_equal(sample_rows(3000, count, 9, known), expected)
        sample, kept = RowSample(count, 9), []
        for start in range(0, 3000, size):
            rows = start + sample.offer(min(size, 3000 - start))
            sample.accept(None if known is None else known[rows])
            kept.append(rows)
        np.testing.assert_array_equal(np.concatenate(kept), sample.rows)
        chosen = sample.rows[sample.choose()]
        np.testing.assert_array_equal(chosen if known is None else chosen[known[chosen]], expected)


def test_few_rows_are_kept_of_many():
    sample = RowSample(1000, 0)
    for _ in range(100):
        sample.offer(10_000)
        sample.accept()
    assert (sample.n_offered, len(sample.choose())) == (10**6, 1000)
    assert len(sample.rows) < 25_000


def test_every_row_is_as_likely():
    taken = np.concatenate([sample_rows(200, 20, seed) for seed in range(2000)])
    counts = np.bincount(taken, minlength=200)
    assert np.sum((counts - 200) ** 2 / (200 * 0.9)) < 272  # chi-square with 199 degrees, 0.05 %


N = 150_000


@pytest.fixture
def large(folder, rng):
    """A table with gaps in which every value tells its row."""
    row = np.arange(N)
    frame = pd.DataFrame({
        "x": np.where(row % 7 == 0, np.nan, row), "kind": np.where(row % 11 == 0, None, [f"k{k % 13}" for k in row]),
        "who": row // 3, "label": np.where(row % 2, "odd", "even"),
    })  # fmt: skip
    pq.write_table(pa.Table.from_pandas(frame), "t.parquet", row_group_size=40_000)
    frame.to_csv("t.csv", index=False)
    feather.write_feather(pa.Table.from_pandas(frame), "t.arrow", chunksize=50_000)
    return frame


def test_everything_follows_the_rows_of_the_sample(large):
    rows = sample_rows(N, 400, 5)
    beside = (large.drop(columns="label"), large["label"])
    for source in ("t.parquet", "t.csv", "t.arrow", large, beside):
        data = open_dataset(source, max_points=400, seed=5, groups="who")
        origin = data.origin
        gaps = origin.gaps["x"]
        np.testing.assert_array_equal(gaps, rows % 7 == 0)
        np.testing.assert_array_equal(data.features[~gaps, 0], rows[~gaps])
        known = large["x"] if source is beside else rows[~gaps]  # which is read whole
        np.testing.assert_allclose(data.features[gaps, 0], known.mean(), rtol=1e-6)
        kinds = [
            None if code < 0 else origin.categories["kind"].values[code] for code in origin.categories["kind"].codes
        ]
        assert kinds == [None if row % 11 == 0 else f"k{row % 13}" for row in rows]
        assert [data.classes[code] for code in data.codes] == [("even", "odd")[row % 2] for row in rows]
        together = rows[:, None] // 3 == rows // 3
        np.testing.assert_array_equal(data.groups[:, None] == data.groups, together)
        assert data.remarks[-1] == Remark("sampled", taken=400, n_points=N)
        assert str(data.remarks[-1]) == "400 of the 150,000 points were sampled"
        assert origin.rows_seen == N
    beside = open_dataset("t.parquet", max_points=400, seed=5, blocks=1000)
    np.testing.assert_array_equal(beside.groups, rows // 1000)
    given = open_dataset("t.parquet", max_points=400, seed=5, groups=(np.arange(N) % 17).tolist())
    np.testing.assert_array_equal(given.groups, rows % 17)


def test_a_sample_of_rows_that_lack_nothing_is_as_large(large):
    for source in ("t.parquet", "t.csv", large):
        data = open_dataset(source, max_points=2000, missing="drop", exclude="who")
        rows = data.features[:, 0].astype(int)
        assert len(rows) == 2000
        assert ((rows % 7 > 0) & (rows % 11 > 0)).all()
        whole = (np.arange(N) % 7 > 0) & (np.arange(N) % 11 > 0)
        np.testing.assert_array_equal(rows, sample_rows(N, 2000, 0, whole))
        assert data.origin.rows_lost / data.origin.rows_read == pytest.approx(1 - whole.mean(), abs=0.04)
        assert data.origin.rows_seen == N


def test_small_sources_are_whole_and_say_so(large):
    for most in (N, N + 1, 10**9):
        data = open_dataset("t.parquet", max_points=most)
        assert data.n_points == data.origin.rows_seen == N
        assert [remark.kind for remark in data.remarks] == ["values filled"]
    assert open_dataset((np.zeros((9, 2)), [0] * 9)).origin.rows_seen == 9
    assert open_dataset((np.zeros((9, 2)), [0] * 9), max_points=4).remarks == (Remark("sampled", taken=4, n_points=9),)
    again = open_dataset(open_dataset("t.parquet", max_points=50), max_points=10)
    assert (again.n_points, again.origin.rows_seen) == (10, N)


def test_ids_are_judged_by_the_first_rows_not_by_the_sample(rng, folder):
    frame = pd.DataFrame({"cents": rng.integers(50_000, size=N), "key": rng.permutation(N), "label": 0})
    frame.to_parquet("t.parquet", row_group_size=30_000)
    for source in (frame, "t.parquet"):
        kinds = {remark.kind: remark for remark in open_dataset(source, max_points=30).remarks}
        assert kinds["may be ids"].facts["columns"] == ("key",)


def test_errors_name_the_row_of_the_source(folder):
    frame = pd.DataFrame({"x": [str(row) for row in range(N)], "label": 0})
    frame.loc[140_000:, "x"] = "many"
    frame.to_csv("t.csv", index=False)
    with pytest.raises(sotdd.SotddError, match=r"'many' in row 1[45]") as caught:
        open_dataset("t.csv", max_points=3000)
    [remark] = caught.value.remarks
    assert remark.facts["row"] in sample_rows(N, 100_000, 0)
    assert (remark.kind, remark.facts["column"], remark.facts["after"]) == ("retyped column", "x", "free text")


def test_lists_and_texts_are_sampled_too(folder, rng):
    rows = sample_rows(1000, 60, 0)
    table = pa.table({"v": [[row, 2.0 * row] for row in range(1000)], "label": np.arange(1000) % 3})
    data = open_dataset(table, max_points=60)
    np.testing.assert_array_equal(data.features, np.column_stack([rows, 2 * rows]))
    assert [data.classes[code] for code in data.codes] == (rows % 3).tolist()
    texts = pa.table({"t": ["a" * row for row in range(1000)], "label": np.arange(1000) % 3})
    seen = []
    data = open_dataset(texts, max_points=60, encoder=lambda some: seen.extend(some) or [[len(one)] for one in some])
    assert data.features[:, 0].tolist() == rows.tolist()
    assert len(seen) == 60


def test_whether_labels_are_classes_is_judged_by_all_that_were_read(rng):
    classes, measured = rng.integers(100, size=N).astype(float), rng.normal(size=N)
    for labels, bins in ((classes, None), (measured, 4)):
        frame = pd.DataFrame({"x": measured, "label": labels})
        assert open_dataset(frame, max_points=300, bins=bins).n_points == 300
    with pytest.raises(sotdd.SotddError, match="bins=10"):
        open_dataset(pd.DataFrame({"x": measured, "kind": measured}), label="kind", max_points=10)
