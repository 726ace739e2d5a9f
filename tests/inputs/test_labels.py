"""Labels: samples of them, measurements, and those that are missing."""

import logging
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

import sotdd
from inputs.helpers import N, Pairs, frame_of, refusal, same
from sotdd import open_dataset


def test_max_points_is_a_seeded_sample(xy, folder):
    x, y = xy
    frame_of(xy).to_parquet("t.parquet")
    frame_of(xy).to_csv("t.csv", index=False)
    np.save("x.npy", x)
    np.save("y.npy", y)
    sources = [(x, y), "t.parquet::label=species", "t.csv::label=species", "x.npy::label=y.npy", Pairs(x, y),
               torch.utils.data.DataLoader(Pairs(x, y), batch_size=32)]  # fmt: skip
    samples = [open_dataset(source, max_points=40, seed=3) for source in sources]
    taken = [np.concatenate([data.rows(block) for block in data.blocks()]) for data in samples]
    place = {tuple(row): number for number, row in enumerate(x)}
    for data, rows in zip(samples, taken, strict=True):
        np.testing.assert_array_equal(rows, taken[0])
        numbers = [place[tuple(row)] for row in rows]
        assert numbers == sorted(set(numbers))
        assert [data.classes[code] for code in data.codes] == y[numbers].tolist()
    assert max(numbers) > 200  # not the head
    other = open_dataset((x, y), max_points=40, seed=4)
    assert not np.array_equal(other.rows(slice(None)), taken[0])
    assert open_dataset((x, y), max_points=10**6).n_points == N
    assert open_dataset((x, np.arange(N)), max_points=5).counts.tolist() == [1] * 5  # without the other classes
    assert open_dataset("t.csv::label=species,max_points=40,seed=3", max_points=9).n_points == 40


def test_regression_targets(xy, folder):
    x, _ = xy
    y = np.random.default_rng(1).gamma(2.0, size=N)
    with pytest.raises(sotdd.SotddError, match=r"300 distinct values.*bins=10"):
        sotdd.distance((x, y), x)
    opened = open_dataset((x, y), bins=10)
    assert opened.counts.tolist() == [30] * 10
    low = [float(str(name).split(" to ")[0]) for name in opened.classes]
    assert low == sorted(low)
    edges = np.quantile(y, np.linspace(0, 1, 11))
    np.testing.assert_array_equal(opened.codes, np.minimum(np.searchsorted(edges, y, side="right") - 1, 9))
    pd.DataFrame({"x": x[:, 0], "y": y}).to_csv("r.csv", index=False)
    assert open_dataset("r.csv::bins=3").counts.tolist() == [100] * 3
    assert "bins=10" in refusal("r.csv")
    assert len(open_dataset((x, np.repeat(np.arange(100.0), 3)), bins=5).classes) == 5
    assert len(open_dataset((x, np.repeat(np.arange(30.0), 10))).classes) == 30  # floats that are classes
    assert len(open_dataset((x, np.zeros(N)), bins=5).classes) == 1
    wide = 1.7e308 * np.linspace(-1, 1, 60)
    assert open_dataset((x[:60], wide), bins=3).counts.tolist() == [20, 20, 20]
    for source in (xy, x, (x[:60], [10**400 + row for row in range(60)])):
        assert "bins" in refusal(source, bins=3) or "beyond float64" in refusal(source, bins=3)


def test_missing_labels(xy, folder, caplog):
    x, y = xy
    holes = y.astype(object)
    holes[[3, 70]] = None
    kept = np.delete(x, [3, 70], axis=0), np.delete(y, [3, 70])
    frame = frame_of((x, holes))
    frame.to_csv("t.csv", index=False)
    frame.to_parquet("t.parquet", row_group_size=50)
    masked = np.ma.array(np.unique(y, return_inverse=True)[1], mask=[place in (3, 70) for place in range(N)])
    for source in [(x, holes), "t.csv::label=species", "t.parquet::label=species", Pairs(x, holes), (x, masked)]:
        assert "2 labels that are missing" in refusal(source)
        with caplog.at_level(logging.INFO, "sotdd.inputs"):
            opened = open_dataset(source, drop_missing=True)
        if not isinstance(source, tuple) or source[1] is not masked:
            same(opened, kept)
        assert opened.n_points == N - 2
        assert "2 rows" in caplog.text
    for source in [frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)]:
        same(open_dataset(source, label="species", drop_missing=True), kept)
    assert "no rows" in refusal((x, [None] * N), drop_missing=True)


@pytest.mark.parametrize("label", ["k" * 1001, "k\n" * 200_000])
def test_names_of_classes_that_are_documents_are_refused(xy, folder, label):
    x, labels = xy[0][:60], [label, "b", "c"] * 20
    frame = pd.DataFrame(x, columns=list("abcd")).assign(y=labels)
    frame.to_parquet("long.parquet")
    for source in ((x, labels), (x, np.array(labels)), frame, "long.parquet", Pairs(x, labels)):
        assert f"label of {len(label):,} characters" in refusal(source)
    assert open_dataset((x[:4], ["k" * 1000, "b"] * 2)).classes == ("k" * 1000, "b")


class Unequal:
    """A label that cannot be compared."""

    def __ne__(self, other):
        raise RuntimeError("no")

    __hash__ = object.__hash__


class Unhashable:
    """A label whose hash fails in its own way."""

    def __hash__(self):
        raise RuntimeError("no")


def test_labels_that_raise_what_they_like(xy):
    x = xy[0][:4]
    one, other = Unequal(), Unequal()
    assert open_dataset((x, [one, other] * 2)).classes == (one, other)
    assert "Unhashable in row 0" in refusal((x, [Unhashable()] * 4))
    assert "2 labels that are missing" in refusal((x, [Decimal("sNaN"), Decimal(1)] * 2))
