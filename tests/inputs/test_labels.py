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


def test_max_points_is_a_seeded_sample(xy, folder, hub):
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
    assert open_dataset("t.csv::label=species,max_points=40,seed=3").n_points == 40


def test_a_sample_drops_classes_that_it_lacks():
    opened = open_dataset((np.arange(1000.0), np.arange(1000)), max_points=5)
    assert len(opened.classes) == 5
    assert opened.counts.tolist() == [1] * 5


def test_regression_targets(xy, folder):
    x, _ = xy
    y = np.random.default_rng(1).gamma(2.0, size=N)
    with pytest.raises(sotdd.SotddError, match="300 distinct values, as of a regression: pass bins=10"):
        sotdd.distance((x, y), x)
    opened = open_dataset((x, y), bins=10)
    assert opened.counts.tolist() == [30] * 10
    low = [float(str(name).split(" to ")[0]) for name in opened.classes]
    assert low == sorted(low)
    edges = np.quantile(y, np.linspace(0, 1, 11))
    np.testing.assert_array_equal(opened.codes, np.minimum(np.searchsorted(edges, y, side="right") - 1, 9))
    pd.DataFrame({"x": x[:, 0], "y": y}).to_csv("r.csv", index=False)
    assert open_dataset("r.csv::bins=3").counts.tolist() == [100] * 3
    with pytest.raises(sotdd.SotddError, match="regression"):
        open_dataset("r.csv")
    assert len(open_dataset((x, np.repeat(np.arange(100.0), 3)), bins=5).classes) == 5
    assert len(open_dataset((x, np.repeat(np.arange(30.0), 10))).classes) == 30  # floats that are classes
    assert len(open_dataset((x, np.zeros(N)), bins=5).classes) == 1
    with pytest.raises(sotdd.SotddError, match="bins are for numbers only"):
        open_dataset(xy, bins=3)
    with pytest.raises(sotdd.SotddError, match="has no labels"):
        open_dataset(x, bins=3)


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
        with pytest.raises(sotdd.SotddError, match="2 labels that are missing"):
            open_dataset(source)
        with caplog.at_level(logging.INFO, "sotdd.inputs"):
            opened = open_dataset(source, drop_missing=True)
        if not isinstance(source, tuple) or source[1] is not masked:
            same(opened, kept)
        assert opened.n_points == N - 2
        assert "2 rows without a label are dropped" in caplog.text
    for source in [frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)]:
        same(open_dataset(source, label="species", drop_missing=True), kept)
    with pytest.raises(sotdd.SotddError, match="no rows with a label"):
        open_dataset((x, [None] * N), drop_missing=True)


@pytest.mark.parametrize("label", ["k" * 1001, b"k" * 1001, 10**1001, "k\n" * 200_000])
def test_names_of_classes_that_are_documents_are_refused(xy, folder, label):
    x = xy[0][:60]
    labels = [label, "b", "c"] * 20
    said = [refusal((x, labels)), refusal((pd.DataFrame(x), labels))]
    if isinstance(label, str):
        said.append(refusal((x, np.array(labels))))
        np.savez("long.npz", X=x, y=np.array(labels))
        said.append(refusal("long.npz"))
        frame = pd.DataFrame(x, columns=list("abcd")).assign(y=labels)
        frame.to_parquet("long.parquet")
        frame.to_csv("long.csv", index=False)
        said += [refusal(frame), refusal("long.parquet"), refusal("long.csv"), refusal(pl.from_pandas(frame))]
        said.append(refusal(Pairs(x, labels)))
    assert all("has a label of " in line and "expected names of classes, of at most 1,000" in line for line in said)


def test_long_names_of_classes_are_fine_up_to_a_bound(xy):
    assert sotdd.open_dataset((xy[0][:4], ["k" * 1000, "b"] * 2)).classes == ("k" * 1000, "b")


class Unequal:
    """A label that cannot be compared."""

    def __ne__(self, other):
        raise RuntimeError("no")

    __hash__ = object.__hash__


class Unhashable:
    """A label whose hash fails in its own way."""

    def __hash__(self):
        raise RuntimeError("no")


def test_signalling_nan_is_missing(xy):
    x = xy[0][:60]
    labels = [Decimal("sNaN"), Decimal(1), Decimal(2)] * 20
    for source in ((x, labels), pd.DataFrame(x, columns=list("abcd")).assign(y=labels)):
        assert "20 labels that are missing" in refusal(source)
        assert open_dataset(source, drop_missing=True).counts.tolist() == [20, 20]


def test_labels_that_raise_what_they_like(xy):
    x = xy[0][:4]
    one, other = Unequal(), Unequal()
    assert open_dataset((x, [one, other] * 2)).classes == (one, other)
    assert "which is not hashable" in refusal((x, [Unhashable()] * 4))


@pytest.mark.parametrize("sign", [1, -1])
def test_labels_beyond_floats_have_no_bins(xy, sign):
    labels = [sign * 10**400 + row for row in range(60)]
    assert "infinite or beyond float64" in refusal((xy[0][:60], labels), bins=3)
    wide = 1.7e308 * np.linspace(-1, 1, 60)
    assert open_dataset((xy[0][:60], wide), bins=3).counts.tolist() == [20, 20, 20]


@pytest.mark.parametrize("kind", [pl.Int128, pl.UInt128])
def test_integers_of_128_bits(kind, folder):
    wide = pl.Series("a", [2**100, 2**100 + 1, 5] * 4, dtype=kind)
    few = [1, 2, 3] * 4
    assert open_dataset(pl.DataFrame({"x": [1.0] * 12, "y": wide})).classes == (2**100, 2**100 + 1, 5)
    assert open_dataset((np.ones((12, 1)), wide)).classes == (2**100, 2**100 + 1, 5)
    read = open_dataset(pl.DataFrame({"a": wide, "y": few})).features
    assert read[:3, 0].tolist() == [2.0**100, 2.0**100, 5.0]
    assert open_dataset((pl.DataFrame({"a": wide, "b": wide}), few)).columns == ("a", "b")
    refusal((wide, few))
    assert "expected one of" in refusal((np.ones((12, 1)), few), image_mode=np.array([1, 2]))
