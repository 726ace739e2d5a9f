"""Files are written completely or not at all."""

import os

import pytest

import sotdd
from sotdd.basics.files import refuse_unwritable, write_whole


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


def test_paths_that_cannot_be_written_are_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path, tmp_path / "missing" / "x", tmp_path / "file" / "x", tmp_path / "null\0"):
        with pytest.raises(sotdd.SotddError, match=r"^cannot write "):
            refuse_unwritable(path)
    refuse_unwritable(tmp_path / "file")
    refuse_unwritable(tmp_path / "new")
    assert os.listdir(tmp_path) == ["file"]
