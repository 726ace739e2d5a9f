"""Data as people have it: each kind of source gives the same dataset, and so the same distance."""

import gzip
import json
import logging

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from PIL import Image
from pyarrow import feather
from pyarrow import parquet as pq
from sklearn import datasets as toys
from typer.testing import CliRunner

import sotdd
from sotdd import LabelledData, open_dataset
from sotdd.commands.app import app

N, D = 300, 4


@pytest.fixture
def xy(rng):
    x = rng.normal(size=(N, D)).round(3)
    return x, np.array(["cat", "dog", "emu"])[rng.integers(3, size=N)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def frame_of(xy):
    x, y = xy
    return pd.DataFrame({**{f"x{j}": x[:, j] for j in range(D)}, "species": y})


def same(opened, xy):
    """The dataset is the pair that went in: every number, every label."""
    x, y = xy
    assert isinstance(opened, LabelledData)
    np.testing.assert_array_equal(
        np.concatenate([opened.rows(block) for block in opened.blocks()]), x.reshape(len(x), -1)
    )
    assert [opened.classes[code] for code in opened.codes] == list(y)


# ------------------------------------------------------------------ in memory


def test_arrays_and_options(xy):
    x, y = xy
    same(open_dataset((x, y)), xy)
    same(open_dataset(open_dataset((x, y))), xy)
    assert open_dataset(x).classes == ("all",)
    assert open_dataset((x, y), label=None).classes == ("all",)
    assert open_dataset((x, y), name="animals").name == "animals"


class OnlyDLPack:
    """An array that shares its memory and offers nothing else."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def test_dlpack_without_array(xy):
    x, y = xy
    opened = open_dataset((OnlyDLPack(x), y))
    same(opened, xy)
    assert np.shares_memory(opened.features, x)


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


def test_bunches():
    digits = toys.load_iris()
    same(open_dataset(digits), (digits.data, digits.target_names[digits.target]))
    framed = toys.load_iris(as_frame=True)
    assert open_dataset(framed).classes == ("setosa", "versicolor", "virginica")
    with pytest.raises(sotdd.SotddError, match="bins=10"):
        open_dataset(toys.load_diabetes())
    assert open_dataset(toys.load_diabetes(), bins=4).counts.min() > 100


# ------------------------------------------------------------------ files


def test_npz_and_npy(xy, folder):
    x, y = xy
    np.savez("a.npz", X=x, y=y)
    np.savez_compressed("b.npz", points=x, kind=y)
    np.save("x.npy", x)
    np.save("fortran.npy", np.asfortranarray(x))
    np.save("y.npy", y)
    for source in ["a.npz", "b.npz::features=points,label=kind", "x.npy::label=y.npy", "fortran.npy::label=y.npy",
                   folder / "a.npz", ("x.npy", "y.npy"), str(folder / "x.npy") + "::label=y.npy"]:  # fmt: skip
        same(open_dataset(source), xy)
    same(open_dataset(folder / "x.npy", label="y.npy"), xy)
    assert sotdd.distance("a.npz", "x.npy::label=y.npy", n_projections=64).value == 0
    assert open_dataset("x.npy::label=").classes == ("all",)


def test_csv(xy, folder):
    frame = frame_of(xy)
    frame.to_csv("t.csv", index=False)
    frame.to_csv("t.csv.gz", index=False)
    frame.to_csv("t.tsv", index=False, sep="\t")
    for source in ["t.csv", "t.csv.gz", "t.tsv"]:
        same(open_dataset(f"{source}::label=species"), xy)
    same(open_dataset("t.csv::label=species,features=x0+x2"), (xy[0][:, [0, 2]], xy[1]))


def test_csv_labels_keep_their_kind(folder):
    for written, expected in [
        (["1", "2", "1"], [1, 2, 1]),
        (["01", "2", "01"], ["01", "2", "01"]),
        (["0.5", "2", "0.5"], [0.5, 2.0, 0.5]),
        (["1.0", "1.00", "2"], [1.0, 1.0, 2.0]),
        (["10", "9", "x"], ["10", "9", "x"]),
        (["10", "9", "10"], [10, 9, 10]),
    ]:
        folder.joinpath("l.csv").write_text("x,y\n" + "".join(f"{i},{label}\n" for i, label in enumerate(written)))
        opened = open_dataset("l.csv")
        assert [opened.classes[code] for code in opened.codes] == expected


def test_csv_types_may_change_further_down(folder):
    """The first rows look like integers; fractions and letters come megabytes later."""
    rows = 700_000
    with open("long.csv", "w", encoding="ascii") as file:
        file.write("x,y\n" + "1,1\n" * (4 * rows) + "2.5,a\n")
    opened = open_dataset("long.csv")
    assert opened.n_points == 4 * rows + 1
    assert set(opened.classes) == {"1", "a"}
    assert opened.rows(slice(4 * rows, None))[0, 0] == 2.5


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


# ------------------------------------------------------------------ torch


class Pairs(torch.utils.data.Dataset):
    """Points and labels, with a transform or without."""

    def __init__(self, x, y, transform=None):
        self.x, self.y, self.transform = x, y, transform

    def __len__(self):
        return len(self.x)

    def __getitem__(self, row):
        x = torch.tensor(self.x[row])
        return (x if self.transform is None else self.transform(x)), self.y[row]


class Fields(Pairs):
    """The same as a mapping."""

    def __getitem__(self, row):
        return {"pixels": self.x[row], "label": self.y[row]}


class Stream(torch.utils.data.IterableDataset):
    """Without an end."""

    def __iter__(self):
        number = 0
        while True:
            yield torch.tensor([float(number), 1.0]), number % 3
            number += 1


def test_torch_datasets(xy):
    x, y = xy
    codes = np.unique(y, return_inverse=True)[1]
    same(open_dataset(Pairs(x, y)), xy)
    same(open_dataset(Fields(x, y)), xy)
    same(open_dataset(torch.utils.data.Subset(Pairs(x, y), range(50, 90))), (x[50:90], y[50:90]))
    same(open_dataset(torch.utils.data.ConcatDataset([Pairs(x, y), Pairs(x, y)])), (np.tile(x, (2, 1)), np.tile(y, 2)))
    same(open_dataset(Pairs(x, y, lambda point: 2 * point)), (2 * x, y))
    both = torch.utils.data.TensorDataset(torch.tensor(x), torch.tensor(codes))
    same(open_dataset(both), (x, codes))
    assert np.shares_memory(open_dataset(both).features, both.tensors[0].numpy())
    part, _ = torch.utils.data.random_split(both, [200, 100], torch.Generator().manual_seed(0))
    same(open_dataset(part), (x[part.indices], codes[part.indices]))
    three = torch.utils.data.TensorDataset(torch.tensor(x), torch.zeros(N), torch.tensor(codes))
    same(open_dataset(three, features=0, label=2), (x, codes))
    assert sotdd.distance(Pairs(x, y), (x, y), n_projections=64).value == 0


@pytest.mark.parametrize("workers", [0, 2])
def test_torch_loaders(xy, workers):
    x, y = xy
    same(open_dataset(torch.utils.data.DataLoader(Pairs(x, y), batch_size=64, num_workers=workers)), xy)
    same(open_dataset(torch.utils.data.DataLoader(Fields(x, y), batch_size=7, num_workers=workers)), xy)


def test_loaders_that_do_not_batch(xy):
    same(open_dataset(torch.utils.data.DataLoader(Pairs(*xy), batch_size=None)), xy)


def test_streams_need_an_end(caplog):
    for source in (Stream(), torch.utils.data.DataLoader(Stream(), batch_size=8)):
        with pytest.raises(sotdd.SotddError, match="a stream whose end cannot be seen: pass max_points="):
            open_dataset(source)
        with caplog.at_level(logging.INFO, "sotdd.inputs"):
            opened = open_dataset(source, max_points=11)
        assert opened.rows(slice(None))[:, 0].tolist() == list(range(11))
        assert "the first 11 rows of the stream are taken" in caplog.text


def test_points_alone_are_one_class_when_asked_for():
    class Points(Pairs):
        def __getitem__(self, row):
            return torch.tensor(self.x[row])

    with pytest.raises(sotdd.SotddError, match="pass label=None for one class"):
        open_dataset(Points(np.eye(3), [0, 1, 2]))
    assert open_dataset(Points(np.eye(3), [0, 1, 2]), label=None).counts.tolist() == [3]


# ------------------------------------------------------------------ Hugging Face


@pytest.fixture
def hub():
    return pytest.importorskip("datasets")


def test_huggingface(xy, folder, hub):
    x, y = xy
    names = ["cat", "dog", "emu"]
    schema = hub.Features({"v": hub.List(hub.Value("float64"), length=D), "animal": hub.ClassLabel(names=names)})
    data = hub.Dataset.from_dict({"v": x.tolist(), "animal": y.tolist()}, features=schema)
    same(open_dataset(data), xy)
    assert not isinstance(open_dataset(data).features, np.ndarray)
    order = np.random.default_rng(0).permutation(N)
    same(open_dataset(data.select(order)), (x[order], y[order]))
    data.save_to_disk("saved")
    same(open_dataset("saved"), xy)
    same(open_dataset("hf:saved"), xy)
    hub.DatasetDict({"train": data, "test": data.select(range(10))}).save_to_disk("splits")
    same(open_dataset("hf:splits::split=test"), (x[:10], y[:10]))
    with pytest.raises(sotdd.SotddError, match="splits 'train', 'test': choose one with split="):
        open_dataset("hf:splits")
    with pytest.raises(sotdd.SotddError, match="and no 'dev'"):
        open_dataset("hf:splits::split=dev")
    same(open_dataset(data.to_iterable_dataset(), max_points=20), (x[:20], y[:20]))
    with pytest.raises(sotdd.SotddError, match="pass max_points="):
        open_dataset(data.to_iterable_dataset())
    doubled = data.with_transform(lambda rows: {"v": [np.array(v) * 2 for v in rows["v"]], "label": rows["animal"]})
    assert open_dataset(doubled).rows(slice(0, 1))[0].tolist() == (2 * x[0]).tolist()
    assert sotdd.distance(data, (x, y), n_projections=64).value == 0


def test_huggingface_columns(xy, hub):
    x, y = xy
    data = hub.Dataset.from_dict({"a": x[:, 0], "b": x[:, 1], "kind": y.tolist()})
    same(open_dataset(data, label="kind"), (x[:, :2], y))
    same(open_dataset(data, label="kind", features=["b"]), (x[:, 1:2], y))
    same(open_dataset(data.to_iterable_dataset(), label="kind", max_points=N), (x[:, :2], y))
    grid = hub.Dataset.from_dict(
        {"m": x.reshape(N, 2, 2), "label": y.tolist()},
        features=hub.Features({"m": hub.Array2D((2, 2), "float64"), "label": hub.Value("string")}),
    )
    opened = open_dataset(grid)
    same(opened, xy)
    assert opened.point_shape == (2, 2)


def test_unknown_class_labels_are_missing(hub):
    schema = hub.Features({"x": hub.Value("float32"), "label": hub.ClassLabel(names=["a", "b"])})
    data = hub.Dataset.from_dict({"x": [1, 2, 3, 4], "label": [0, -1, 1, None]}, features=schema)
    for source, more in [(data, {}), (data.to_iterable_dataset(), {"max_points": 4})]:
        with pytest.raises(sotdd.SotddError, match="2 labels that are missing"):
            open_dataset(source, **more)
        assert open_dataset(source, drop_missing=True, **more).rows(slice(None))[:, 0].tolist() == [1, 3]


# ------------------------------------------------------------------ the command line


def test_the_command_line_takes_the_same_sources(xy, folder, hub):
    x, y = xy
    frame_of(xy).to_csv("t.csv", index=False)
    frame_of(xy).to_parquet("t.parquet")
    np.save("x.npy", x)
    np.save("y.npy", y)
    hub.Dataset.from_pandas(frame_of(xy)).save_to_disk("saved")
    for animal in ["cat", "dog"]:
        (folder / "photos" / animal).mkdir(parents=True)
        Image.new("L", (2, 2), 50 * len(animal)).save(folder / "photos" / animal / "1.png")
    named = [f"{source}::label=species" for source in ("t.csv", "t.parquet", "saved", "hf:saved")]
    for source in [*named, "x.npy::label=y.npy", "photos/::image_size=2"]:
        other = "photos" if "photos" in source else "t.csv::label=species"
        done = CliRunner().invoke(app, ["distance", source, other, "--json", "--n-projections", "64"])
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["value"] == 0
    both = CliRunner().invoke(app, ["distance", "t.csv", "t.parquet", "--label", "species", "--features", "x0+x1"])
    assert "t.parquet: 300 points, 2 features, 3 classes" in both.stdout


def test_real_texts(real_files):
    path = real_files("ag_news.csv.gz")
    seen = []
    data = open_dataset(path, features="text", label="label_name", max_points=300, seed=1,
                        encoder=lambda texts: [[seen.append(text) or len(text)] for text in texts])  # fmt: skip
    assert data.n_points == len(seen) == 300  # what is not in the sample is not encoded
    assert set(data.classes) == {"World", "Sports", "Business", "Sci/Tech"}


# ------------------------------------------------------------------ rows and labels


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


def test_transforms(xy, folder):
    x, y = xy
    frame_of(xy).to_parquet("t.parquet", row_group_size=70)
    for source in [(x, y), "t.parquet::label=species", Pairs(x, y)]:
        same(open_dataset(source, transform=lambda batch: batch[:, :2] * 3), (x[:, :2] * 3, y))
        same(open_dataset(source, transform=lambda batch: torch.tensor(batch) + 1), (x + 1, y))
    with pytest.raises(sotdd.SotddError, match="expected one row of numbers per row"):
        open_dataset((x, y), transform=lambda batch: batch[:3])
    with pytest.raises(sotdd.SotddError, match="transform failed on a batch"):
        open_dataset((x, y), transform=lambda batch: batch @ np.ones(3))


def test_gz_is_read_as_a_stream(folder):
    with gzip.open("t.csv.gz", "wt") as file:
        file.write("x,label\n" + "".join(f"{i},{i % 2}\n" for i in range(1000)))
    assert open_dataset("t.csv.gz").counts.tolist() == [500, 500]
