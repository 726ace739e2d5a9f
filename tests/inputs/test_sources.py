"""Paths and source texts: files of every kind, whole and damaged, also on the command line."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

import sotdd
from inputs.helpers import frame_of, read, refusal
from sotdd import open_dataset


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
