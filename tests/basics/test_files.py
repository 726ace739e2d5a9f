"""Files are written completely or not at all."""

import os

import pytest

import sotdd
from sotdd.basics.files import read_whole, refuse_unwritable, write_whole


def test_a_file_is_replaced(tmp_path):
    path = tmp_path / "file"
    for content in (b"old", b"new"):
        write_whole(path, content)
        assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["file"]


def test_a_failure_leaves_the_old_file_and_no_draft(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sotdd.basics.files.os.fsync", full)
    with pytest.raises(
        sotdd.SotddError, match=r"^cannot write '.*file' \(no space left on device\): choose another path"
    ):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_link_is_followed_and_kept(tmp_path):
    (tmp_path / "old").write_bytes(b"old")
    (tmp_path / "link").symlink_to("old")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "old").read_bytes() == b"new"
    assert (tmp_path / "link").is_symlink()


def test_a_pipe_is_not_replaced_by_a_file(tmp_path):
    """As root, the same would take /dev/null from the whole system."""
    os.mkfifo(tmp_path / "pipe")
    for call in (lambda: write_whole(tmp_path / "pipe", b"new"), lambda: refuse_unwritable(tmp_path / "pipe")):
        with pytest.raises(sotdd.SotddError, match="device or a pipe"):
            call()
    assert (tmp_path / "pipe").is_fifo()


def test_a_name_as_long_as_names_can_be_is_written(tmp_path):
    write_whole(tmp_path / ("n" * 255), b"new")
    assert os.listdir(tmp_path) == ["n" * 255]


@pytest.mark.parametrize("path", ["", "/", ".", "a\0b", "\ud800", "x" * 5000, "y/" * 2500, "no/such/x", 5, None, b"x"])
def test_paths_that_no_file_can_have_are_one_line(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for call in (lambda: write_whole(path, b""), lambda: refuse_unwritable(path), lambda: read_whole(path, "a file")):
        with pytest.raises(sotdd.SotddError, match=r"^(path is|cannot (read|write)) ") as caught:
            call()
        assert len(str(caught.value)) < 400
        assert len(str(caught.value).splitlines()) == 1
    assert not os.listdir(tmp_path)


def test_paths_that_cannot_be_written_are_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path, tmp_path / "missing" / "x", tmp_path / "file" / "x", tmp_path / "null\0"):
        with pytest.raises(sotdd.SotddError, match=r"^(cannot write|path is) "):
            refuse_unwritable(path)
    refuse_unwritable(tmp_path / "file")
    refuse_unwritable(tmp_path / "new")
    assert os.listdir(tmp_path) == ["file"]
