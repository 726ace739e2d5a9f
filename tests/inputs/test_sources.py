"""Paths and source texts: files of every kind, whole and damaged, also on the command line."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from PIL import Image
from typer.testing import CliRunner

import sotdd
from inputs.helpers import frame_of, read, refusal
from sotdd import open_dataset
from sotdd.commands.app import app


def write(kind):
    """A good file of each kind."""
    x = np.random.default_rng(0).normal(size=(200, 3))
    y = np.arange(200) % 2
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
    elif kind == "arrow":
        pl.from_pandas(frame).write_ipc(path)
    return path


KINDS = ["npz", "npy", "csv", "csv.gz", "parquet", "arrow"]


def source(kind, path):
    return f"{path}::label=y.npy" if kind == "npy" else path


@pytest.mark.parametrize("kind", KINDS)
def test_good_files_open(folder, kind):
    assert open_dataset(source(kind, write(kind))).n_points == 200


@pytest.mark.parametrize("kind", KINDS)
def test_missing_empty_truncated_and_foreign_files(folder, kind):
    path = write(kind)
    content = folder.joinpath(path).read_bytes()
    assert "there is no file" in refusal(source(kind, f"missing.{kind}"))
    (folder / path).write_bytes(b"")
    assert path in refusal(source(kind, path))
    (folder / path).write_bytes(bytes(range(256)) * 20)
    assert path in refusal(source(kind, path))
    if kind != "csv":  # half a table is a table
        (folder / path).write_bytes(content[: len(content) // 2])
        assert path in refusal(source(kind, path))


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_changed_at_random(folder, kind):
    """Rows come out, or one line; never another error."""
    rng = np.random.default_rng(1)
    path = write(kind)
    whole = np.frombuffer((folder / path).read_bytes(), np.uint8)
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
        ("", "has no path"),
        ("::label=y", "has no path"),
        ("x.csv::label", "cannot read 'label'"),
        ("x.csv::colour=red", "write options as FILE::features=NAME,label=NAME"),
        ("x.csv::max_points=many", "expected a whole number"),
        ("x.csv::image_size=3xy", "expected a whole number"),
        ("x.csv::drop_missing=maybe", "expected true or false"),
        ("nowhere.csv", "there is no file nowhere.csv"),
        ("nowhere/", "there is no file nowhere"),
        ("hf:nowhere", "there is no file nowhere"),
        ("hf:.", "expected one written by save_to_disk"),
        ("a\0b", "there is no file"),
        ("a" * 5000, "there is no file"),
    ],
)
def test_source_texts_that_cannot_be_read(folder, text, said):
    assert said in refusal(text)


@pytest.mark.slow
def test_the_command_line_says_one_line(folder):
    np.savez("good.npz", X=np.eye(3), y=[0, 1, 2])
    (folder / "bad.parquet").write_bytes(b"PAR1")
    (folder / "t.csv").write_text("a,b\n1,2\n")
    for text in ["bad.parquet", "t.csv", "nowhere.arrow", "hf:nowhere", "good.npz::label=z"]:
        done = subprocess.run(
            [sys.executable, "-m", "sotdd", "distance", "good.npz", text], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        assert done.stdout == ""
        assert len(done.stderr.splitlines()) == 1
        assert done.stderr.startswith("sotdd: ")


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
