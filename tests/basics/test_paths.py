"""Every path that comes in or goes out: whatever it is, one clear line."""

import os
import stat
import sys
from pathlib import Path

import numpy as np
import pytest

import sotdd
from sotdd.inputs import ParquetBatches

X, Y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2


class Raising:
    """A path that cannot be told."""

    def __fspath__(self):
        raise RuntimeError("no")


class Bytes:
    """A path in bytes."""

    def __fspath__(self):
        return b"x"


ODD = [
    "",
    "/",
    ".",
    "..",
    "a\0b",
    "x" * 5000,
    "y/" * 3000,
    "\ud800",
    "missing/folder/x",
    5,
    None,
    b"x",
    Raising(),
    Bytes(),
]


@pytest.fixture(scope="module")
def matrix():
    return sotdd.pairwise({"a": (X, Y), "b": (X + 1, Y)}, n_projections=8)


@pytest.fixture(scope="module")
def sketch():
    return sotdd.sketch((X, Y), sotdd.Projections.fit([(X, Y)], n_projections=8))


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path / "inside")
    return tmp_path / "inside"


def line(call):
    """What is said, which is one short line that a terminal can show."""
    with pytest.raises(sotdd.SotddError) as caught:
        call()
    said = str(caught.value)
    assert said.isprintable()
    assert len(said) <= 1000
    return said


@pytest.mark.parametrize("path", ODD, ids=lambda path: ascii(path)[:12])
def test_odd_paths_are_refused_wherever_something_is_written(path, matrix, sketch, here):
    before = sorted(here.parent.rglob("*"))
    if path is not None:  # which asks to_csv for the text alone
        line(lambda: matrix.to_csv(path))
    line(lambda: sotdd.report(matrix, path))
    line(lambda: sketch.save(path))
    assert sorted(here.parent.rglob("*")) == before


@pytest.mark.parametrize("path", [odd for odd in ODD if odd not in ("/", ".", "..")], ids=lambda path: ascii(path)[:12])
@pytest.mark.usefixtures("here")
def test_odd_paths_are_refused_wherever_something_is_read(path):
    np.save("x.npy", X)
    line(lambda: sotdd.open_dataset(path))
    line(lambda: sotdd.distance(path, (X, Y)))
    line(lambda: sotdd.Sketch.load(path))
    line(lambda: ParquetBatches.open(path))
    if isinstance(path, str) and path:
        line(lambda: sotdd.open_dataset("x.npy", label=path))
        line(lambda: sotdd.open_dataset((path, path)))
        line(lambda: sotdd.open_dataset(f"hf:{path}"))
        line(lambda: sotdd.open_dataset(f"{path}*.parquet"))


def test_folders_that_hold_no_data_are_refused(here):
    for folder in (".", ".."):
        line(lambda folder=folder: sotdd.open_dataset(folder))
        line(lambda folder=folder: sotdd.Sketch.load(folder))
        line(lambda folder=folder: ParquetBatches.open(folder))


def test_a_table_is_written_whole_or_not_at_all(matrix, tmp_path, monkeypatch):
    path = tmp_path / "values.csv"
    text = matrix.to_csv(path)
    assert path.read_text() == text
    path.write_text("old")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sotdd.basics.files.os.fsync", full)
    assert "no space left" in line(lambda: matrix.to_csv(path))
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["values.csv"]


@pytest.mark.skipif(sys.platform == "win32", reason="pipes and links as POSIX has them")
def test_devices_and_pipes_are_never_replaced(matrix, sketch, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    link = tmp_path / "link.sotdd"
    link.symlink_to(pipe)
    for path in (pipe, link):
        assert "is a device or a pipe" in line(lambda path=path: sketch.save(path))
        assert "is a device or a pipe" in line(lambda path=path: sotdd.report(matrix, path))
        assert "is a device or a pipe" in line(lambda path=path: matrix.to_csv(path))
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.skipif(sys.platform == "win32", reason="links as POSIX has them")
def test_a_link_stays_a_link(matrix, tmp_path):
    (tmp_path / "real.csv").write_text("old")
    link = tmp_path / "link.csv"
    link.symlink_to("real.csv")
    text = matrix.to_csv(link)
    assert link.is_symlink()
    assert (tmp_path / "real.csv").read_text() == text


def test_names_that_are_no_text_do_not_stop_a_file(tmp_path):
    matrix = sotdd.pairwise({"a\udcff": (X, Y), "b": (X + 1, Y)}, n_projections=8)
    matrix.to_csv(tmp_path / "values.csv")
    assert "a\\udcff" in (tmp_path / "values.csv").read_text(encoding="utf-8")
    page = sotdd.report(matrix, tmp_path / "page.html")
    assert isinstance(page, Path)
    page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "words",
    [
        ["sketch", "a.npz", "-o", ""],
        ["sketch", "a.npz", "-o", "/"],
        ["sketch", "a.npz", "-o", "x" * 4000 + ".sotdd"],
        ["sketch", "a.npz", "-o", "missing/a.sotdd"],
        ["matrix", "a.npz", "a.npz", "--report", ""],
        ["matrix", "a.npz", "a.npz", "--report", "/"],
        ["matrix", "a.npz", "a.npz", "--report", "x" * 4000],
        ["matrix", "a.npz", "a.npz", "--report", "missing/a.html"],
        ["distance", "", "a.npz"],
        ["distance", "x" * 4000, "a.npz"],
        ["distance", b"\xff.npz", "a.npz"],
        ["distance", "a.npz", "a\n\x1b[31mb.npz"],
        ["catalog", "list", ""],
        ["catalog", "list", "x" * 4000],
        ["catalog", "add", "x" * 4000, "name", "a.npz"],
    ],
    ids=lambda words: "-".join(ascii(word)[:9] for word in words),
)
def test_odd_paths_on_the_command_line(words, here, run):
    np.savez(here / "a.npz", X=X, y=Y)
    code, _, said = run(*map(os.fsdecode, words))
    assert code == 2, said
    assert said.startswith("sotdd: ")
    assert said[:-1].isprintable()
    assert len(said) <= 1000
    assert os.listdir(here) == ["a.npz"]
