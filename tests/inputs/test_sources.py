"""Paths and source texts: files of every kind, whole and damaged, also on the command line."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather
from pyarrow import parquet as pq

import sotdd
from inputs.helpers import D, frame_of, read, refusal, same
from sotdd import open_dataset


def test_every_source_opens_as_the_same_points_and_labels(xy, folder):
    x, y = xy
    frame, table = frame_of(xy), pa.Table.from_pandas(frame_of(xy))
    for name, how in {
        "t.csv": {}, "t.csv.gz": {}, "t.tsv": {"sep": "\t"}, "utf-16.csv": {"sep": "\t", "encoding": "utf-16"},
        "bars.csv": {"sep": "|", "decimal": ","},
    }.items():  # fmt: skip
        frame.to_csv(name, index=False, **how)
    (folder / "parts").mkdir()
    for number in range(3):
        pq.write_table(table.slice(100 * number, 100), f"parts/part-{number}.parquet", row_group_size=30)
    pq.write_table(table, "t.parquet", row_group_size=70)
    for name, new in (("t.arrow", pa.ipc.new_file), ("stream.arrow", pa.ipc.new_stream)):
        with pa.OSFile(name, "wb") as sink, new(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=70)
    feather.write_feather(table, "t.feather", compression="lz4", chunksize=50)
    lists = pa.table({"v": pa.FixedSizeListArray.from_arrays(x.ravel(), D), "label": pa.array(y).dictionary_encode()})
    pq.write_table(lists, "lists.parquet", row_group_size=64)
    np.savez("a.npz", X=x, y=y)
    np.savez_compressed("b.npz", points=x, kind=y)
    for name, array in {"x": x, "fortran": np.asfortranarray(x), "y": y}.items():
        np.save(f"{name}.npy", array)
    tables = ["t.csv", "t.csv.gz", "t.tsv", "utf-16.csv", "bars.csv::decimal=comma", "t.parquet", "parts", "parts/",
              "parts/part-*.parquet", "t.arrow", "stream.arrow", "t.feather", folder / "t.parquet",
              frame, pl.from_pandas(frame), pl.from_pandas(frame).lazy(), table, pa.RecordBatch.from_pandas(frame),
              frame.astype({"species": "category"}), frame.convert_dtypes()]  # fmt: skip
    for source in tables:
        same(open_dataset(source, label="species"), xy)
    for source in ["a.npz", folder / "a.npz", "b.npz::features=points,label=kind", "x.npy::label=y.npy",
                   "fortran.npy::label=y.npy", ("x.npy", "y.npy"), f"{folder}/x.npy::label=y.npy", "lists.parquet",
                   pd.DataFrame({"v": x.tolist(), "y": y}), pl.DataFrame({"v": x.tolist(), "y": y})]:  # fmt: skip
        same(open_dataset(source), xy)
    for name in ("label", "y", "Class"):
        same(open_dataset(frame.rename(columns={"species": name})), xy)
    same(open_dataset("t.csv::label=species,features=x0+x2"), (x[:, [0, 2]], y))
    same(open_dataset("parts/part-1.parquet", label="species"), (x[100:200], y[100:200]))
    for source in ("t.parquet", "t.arrow"):  # numbers stay in the file
        assert not isinstance(open_dataset(source, label="species").features, np.ndarray)
    assert open_dataset("x.npy::label=").classes == ("all",)


def write(kind):
    """A good file of each kind."""
    x, y = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 2
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "label": y})
    path = f"good.{kind}"
    if kind == "npz":
        np.savez_compressed(path, X=x, y=y)
    elif kind == "npy":
        np.save(path, x)
        np.save("y.npy", y)
    elif kind in ("csv", "csv.gz"):
        frame.to_csv(path, index=False)
    elif kind == "parquet":
        frame.to_parquet(path, row_group_size=50)
    else:
        pl.from_pandas(frame).write_ipc(path)
    return path


KINDS = ["npz", "npy", "csv", "csv.gz", "parquet", "arrow"]


def source(kind, path):
    return f"{path}::label=y.npy" if kind == "npy" else path


@pytest.mark.parametrize("kind", KINDS)
def test_missing_empty_truncated_foreign_and_changed_files(folder, kind):
    """Of bytes changed at random, rows come out, or one line; never another error."""
    path = write(kind)
    assert open_dataset(source(kind, path)).n_points == 200
    assert f"missing.{kind}" in refusal(source(kind, f"missing.{kind}"))
    whole = np.frombuffer((folder / path).read_bytes(), np.uint8)
    half = [] if kind == "csv" else [whole[: len(whole) // 2].tobytes()]  # half a table is a table
    for content in (b"", bytes(range(256)) * 20, *half):
        (folder / path).write_bytes(content)
        assert path in refusal(source(kind, path))
    rng = np.random.default_rng(1)
    refused, lines = 0, set()
    for _ in range(60):
        broken = whole.copy()
        places = np.concatenate([rng.integers(len(whole), size=2), rng.integers(min(200, len(whole)), size=1)])
        broken[places] = rng.integers(256, size=3)
        (folder / path).write_bytes(broken.tobytes())
        try:
            read(source(kind, path))
        except sotdd.SotddError as error:
            refused += 1
            lines.update(str(error).splitlines()[1:])
    assert refused > 3
    assert not lines


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no path"),
        ("::label=y", "no path"),
        ("x.csv::label", "'label'"),
        ("x.csv::colour=red", "'colour=red'"),
        ("x.csv::max_points=many", "max_points=many"),
        ("x.csv::image_size=3xy", "image_size=3xy"),
        ("x.csv::drop_missing=maybe", "drop_missing=maybe"),
        ("nowhere.csv", "nowhere.csv"),
        ("nowhere/", "nowhere"),
        ("hf:nowhere", "nowhere"),
        ("hf:.", "save_to_disk"),
        ("a\0b", "no file"),
        ("a" * 5000, "no file"),
    ],
)
def test_source_texts_that_cannot_be_read(folder, text, said):
    assert said in refusal(text)


@pytest.mark.slow
def test_the_command_line_says_one_line(folder):
    np.savez("good.npz", X=np.eye(3), y=[0, 1, 2])
    (folder / "bad.parquet").write_bytes(b"PAR1")
    for text in ["bad.parquet", "hf:nowhere", "good.npz::label=z"]:
        command = [sys.executable, "-m", "sotdd", "distance", "good.npz", text]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)


def test_the_command_line_takes_the_same_sources(xy, folder, run):
    frame_of(xy).to_csv("t.csv", index=False)
    np.save("x.npy", xy[0])
    np.save("y.npy", xy[1])
    for source in ["t.csv::label=species", "x.npy::label=y.npy"]:
        code, out, errors = run("distance", source, "t.csv::label=species", "--json", "--n-projections", 64)
        assert code == 0, errors
        assert json.loads(out)["value"] == 0
