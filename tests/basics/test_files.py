"""Files are written completely or not at all; whatever a path is, an error is one clear line."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

import sotdd
from sotdd.basics.files import read_whole, refuse_unwritable, write_whole

X, Y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
posix = pytest.mark.skipif(sys.platform == "win32", reason="pipes and links as POSIX has them")


ODD = ["", "a\0b", "\ud800", "x" * 5000, "y/" * 3000, "missing/folder/x", 5, None, b"x"]


@pytest.fixture(scope="module")
def matrix():
    return sotdd.pairwise({"a": (X, Y), "b": (X + 1, Y)}, n_projections=8)


@pytest.fixture(scope="module")
def sketch():
    return sotdd.sketch((X, Y), sotdd.Projections.fit([(X, Y)], n_projections=8))


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def line(call):
    """What is said, which is one short line that a terminal can show."""
    with pytest.raises(sotdd.SotddError) as caught:
        call()
    said = str(caught.value)
    assert said.isprintable()
    assert len(said) <= 1000
    return said


def test_a_file_is_replaced_however_long_its_name_is(tmp_path):
    path = tmp_path / ("n" * 255)
    for content in (b"old", b"new"):
        write_whole(path, content)
        assert path.read_bytes() == content
    assert os.listdir(tmp_path) == [path.name]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, matrix, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for call in (lambda: write_whole(path, b"new"), lambda: matrix.to_csv(path)):
        assert "no space left" in line(call)
        assert path.read_bytes() == b"old"
        assert os.listdir(tmp_path) == ["file"]


@posix
def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "old").write_bytes(b"old")
    (tmp_path / "link").symlink_to("old")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "old").read_bytes() == b"new"
    assert (tmp_path / "link").is_symlink()


@posix
def test_devices_and_pipes_are_never_replaced(tmp_path):
    """As root, that would take /dev/null from the whole system."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in (pipe, link):
        line(lambda path=path: write_whole(path, b"new"))
        line(lambda path=path: refuse_unwritable(path))
    assert pipe.is_fifo()


def test_paths_are_refused_before_the_work_is_done(here):
    (here / "file").write_bytes(b"")
    for path in (here, here / "missing" / "x", here / "file" / "x"):
        line(lambda path=path: refuse_unwritable(path))
    refuse_unwritable(here / "file")
    refuse_unwritable(here / "new")
    assert os.listdir(here) == ["file"]


@pytest.mark.parametrize("path", ["/", ".", "..", *ODD], ids=lambda path: ascii(path)[:12])
def test_odd_paths_are_refused_wherever_something_is_written(path, matrix, sketch, here):
    if path is not None:  # which asks to_csv for the text alone
        line(lambda: matrix.to_csv(path))
    line(lambda: sotdd.report(matrix, path))
    line(lambda: sketch.save(path))
    assert not os.listdir(here)


@pytest.mark.parametrize("path", ODD, ids=lambda path: ascii(path)[:12])
@pytest.mark.usefixtures("here")
def test_odd_paths_are_refused_wherever_something_is_read(path):
    for call in (
        sotdd.open_dataset,
        sotdd.Sketch.load,
        lambda path: read_whole(path, "a file"),
        lambda path: sotdd.open_dataset((path, path)),
        lambda path: sotdd.open_dataset(f"{path}*.parquet"),
    ):
        line(lambda call=call: call(path))


def test_names_that_are_no_text_do_not_stop_a_file(tmp_path):
    matrix = sotdd.pairwise({"a\udcff": (X, Y), "b": (X + 1, Y)}, n_projections=8)
    matrix.to_csv(tmp_path / "values.csv")
    assert "a\\udcff" in (tmp_path / "values.csv").read_text(encoding="utf-8")
    assert Path(sotdd.report(matrix, tmp_path / "page.html")).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "words",
    [
        ["sketch", "a.npz", "-o", ""],
        ["sketch", "a.npz", "-o", "missing/a.sotdd"],
        ["matrix", "a.npz", "a.npz", "--report", "x" * 4000],
        ["distance", b"\xff.npz", "a.npz"],
        ["distance", "a.npz", "a\n\x1b[31mb.npz"],
        ["catalog", "list", ""],
    ],
    ids=lambda words: "-".join(ascii(word)[:9] for word in words),
)
def test_odd_paths_on_the_command_line(words, here, run):
    np.savez(here / "a.npz", X=X, y=Y)
    code, _, said = run(*map(os.fsdecode, words))
    assert code == 2, said
    assert said[:-1].isprintable()
    assert os.listdir(here) == ["a.npz"]
