"""Drafts of killed writers are swept up; those of live writers, and the files of others, are left alone."""

import os
import subprocess
import sys
import textwrap
import time
from contextlib import contextmanager

import pytest

from sotdd.basics import drafts
from sotdd.basics.files import write_whole

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="locks as POSIX has them")


@contextmanager
def writer(folder):
    """A process that has half written a file in a folder, and then waits."""
    code = """
        import sys, time
        from pathlib import Path
        from sotdd.basics.drafts import drafted
        with drafted(Path(sys.argv[1]) / "file") as (file, _):
            file.write(b"half of it")
            file.flush()
            print("writing", flush=True)
            time.sleep(600)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), str(folder)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "writing\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_the_draft_of_a_killed_writer_is_swept_up_by_the_next(tmp_path):
    with writer(tmp_path) as process:
        process.kill()
    (draft,) = os.listdir(tmp_path)
    assert draft.endswith(".part")
    write_whole(tmp_path / "another", b"new")
    assert os.listdir(tmp_path) == ["another"]


def test_the_draft_of_a_live_writer_is_left_alone(tmp_path):
    with writer(tmp_path):
        write_whole(tmp_path / "file", b"new")
        assert len(os.listdir(tmp_path)) == 2
    write_whole(tmp_path / "file", b"newer")
    assert os.listdir(tmp_path) == ["file"]


def test_files_that_are_not_drafts_of_ours_are_left_alone(tmp_path):
    others = [".file.part", "x.part", ".sotdd-zz-1.part", ".sotdd-00000000-000000000000.part.bak", "sotdd.part"]
    for name in others:
        (tmp_path / name).write_bytes(b"")
        os.utime(tmp_path / name, (0, 0))
    write_whole(tmp_path / "file", b"new")
    assert sorted(os.listdir(tmp_path)) == sorted([*others, "file"])


def test_drafts_of_other_machines_are_left_alone_for_a_day(tmp_path):
    """Their locks may not reach this one, as on some network drives."""
    old, new = (tmp_path / f".sotdd-00000000-00000000000{digit}.part" for digit in "12")
    for path, hours in ((old, 25), (new, 23)):
        path.write_bytes(b"")
        os.utime(path, (time.time() - 3600 * hours,) * 2)
    write_whole(tmp_path / "file", b"new")
    assert sorted(os.listdir(tmp_path)) == sorted([new.name, "file"])


def test_a_draft_swept_up_before_it_was_locked_is_made_again(tmp_path, monkeypatch):
    """Between making a file and locking it, another process may take it for an abandoned one."""
    flock, swept = drafts.flock, []

    def late(file, how):
        if not swept and how == drafts.LOCK_EX:
            swept.append(file.name)
            os.unlink(file.name)
        flock(file, how)

    monkeypatch.setattr(drafts, "flock", late)
    write_whole(tmp_path / "file", b"new")
    assert swept
    assert (tmp_path / "file").read_bytes() == b"new"
