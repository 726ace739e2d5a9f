"""A fault at every step of every write: what a call, or exit code 0, says is written is on disk, whole.

Otherwise the old file is there, whole, and nothing beside it; `test_faults` has kills and writers at the same time.
"""

import errno
import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import sotdd
from project.test_faults import KINDS, made
from sotdd.drift.gate import append_lines, hold_log

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits as POSIX has them")

STEPS = {"open": (os, "open"), "mode": (Path, "chmod"), "fsync": (os, "fsync"), "replace": (Path, "replace")}


@contextmanager
def limit_files(most):
    """Let no file grow beyond so many bytes: what is written until then is, as on a disk that becomes full."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture(scope="module")
def versions():
    return made(0), made(1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_at_any_step_leaves_the_old_file(tmp_path, versions, monkeypatch, kind):
    old, new = (version[kind] for version in versions)
    old(tmp_path / kind)
    before = (tmp_path / kind).read_bytes()
    for (place, name), fault in (
        (step, fault)
        for step in STEPS.values()
        for fault in (OSError(errno.ENOSPC, ""), OSError(errno.EINTR, ""), OSError(errno.EIO, ""), KeyboardInterrupt())
    ):

        def fail(*_, fault=fault, **__):
            raise fault

        with monkeypatch.context() as patched:
            patched.setattr(place, name, fail)
            with pytest.raises((sotdd.SotddError, KeyboardInterrupt)) as caught:
                new(tmp_path / kind)
        assert isinstance(caught.value, type(fault) if isinstance(fault, KeyboardInterrupt) else sotdd.SotddError)
        assert (tmp_path / kind).read_bytes() == before
        assert os.listdir(tmp_path) == [kind]


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_does_not_fit_leaves_the_old_one_and_one_that_fits_is_whole(tmp_path, versions, kind):
    """Cut at its first bytes, and in the middle."""
    old, new = (version[kind] for version in versions)
    new(tmp_path / "whole.html")
    size = (tmp_path / "whole.html").stat().st_size
    old(tmp_path / kind)
    before = (tmp_path / kind).read_bytes()
    for most in (0, 1, size // 2):
        with limit_files(most), pytest.raises(sotdd.SotddError, match="file too large"):
            new(tmp_path / kind)
        assert (tmp_path / kind).read_bytes() == before
    with limit_files(size + 9):  # some hold a date
        new(tmp_path / kind)
    assert abs(len((tmp_path / kind).read_bytes()) - size) < 9
    assert sorted(os.listdir(tmp_path)) == sorted([kind, "whole.html"])


@pytest.fixture
def files(tmp_path, monkeypatch, rng, run):
    monkeypatch.chdir(tmp_path)
    for name, n, mean in (("train", 300, 0), ("same", 50, 0), ("gone", 50, 9)):  # as text, read without further files
        np.savetxt(f"{name}.csv", rng.normal(mean, 1, size=(n, 2)), delimiter=",", header="u,v", comments="")
    assert run("reference", "train.csv", "-o", "train.ref", "--n-projections", 16)[0] == 0
    return tmp_path


@pytest.mark.parametrize("command", ["check", "monitor"])
def test_a_line_of_a_log_is_whole_or_not_there(files, run, monkeypatch, command):
    line = command, "train.ref", "same.csv", "--n-permutations", "39", "--log", "gate.log"
    line = (*line, "--run-length", "10") if command == "monitor" else line
    assert run(*line)[0] == 0
    before = Path("gate.log").read_bytes()
    for more in (0, 60):
        with limit_files(len(before) + more):
            code, said, errors = run(*line, "--json")
            alarm = run(*line[:2], "gone.csv", *line[3:])
        assert (json.loads(said)["verdict"], code, errors.count("\n")) == ("passed", 2, 1)
        assert (alarm[0], "FAILED" in alarm[1]) == (1, True)  # whoever waits for drift learns of it
        assert Path("gate.log").read_bytes() == before
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.EIO, "")))
        assert run(*line)[0] == 2
    assert Path("gate.log").read_bytes() == before
    assert run(*line)[0] == 0
    assert Path("gate.log").read_bytes().startswith(before)
    assert Path("gate.log").read_bytes().count(b"\n") == 2


def test_two_runs_of_a_monitor_count_every_batch(files):
    """The second one waits for the log, and goes on where the first one ended."""
    line = [sys.executable, "-m", "sotdd", "monitor", "train.ref", *["same.csv"] * 3, "--log", "gate.log"]
    runs = [subprocess.Popen([*line, "--n-permutations", "199"], stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [run.wait(timeout=200) for run in runs] in ([0, 0], [0, 1], [1, 0])
    states = [json.loads(line)["monitor"]["n_batches"] for line in Path("gate.log").read_text().splitlines()]
    assert states == [1, 2, 3, 4, 5, 6]


def test_a_line_that_does_not_fit_takes_no_other_writer_with_it(files):
    """Another process waits with its line while a log is held, and adds it behind lines that were taken back."""
    append_lines("gate.log", ['"verdict": "a"\n'])
    code = "from sotdd.drift.gate import append_lines; append_lines('gate.log', ['\"verdict\": \"b\"\\n'])"
    with hold_log("gate.log") as append:
        other = subprocess.Popen([sys.executable, "-c", code])
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(timeout=4)
        with limit_files(20), pytest.raises(sotdd.SotddError, match="cannot write"):
            append(['"verdict": "c"\n'] * 9)
        append(['"verdict": "d"\n'])
    assert other.wait(timeout=60) == 0
    assert Path("gate.log").read_text().split() == [part for name in "adb" for part in ('"verdict":', f'"{name}"')]


@pytest.mark.parametrize("line", [
    "check train.ref same.csv --junit out.xml", "check train.ref same.csv --summary out.json",
    "reference train.csv -o out.ref", "sketch train.csv -o out.sotdd --n-projections 16",
    "distance train.csv same.csv --n-projections 16 --report out.html",
])  # fmt: skip
def test_exit_code_0_means_that_the_file_is_there(files, run, line):
    for most in (0, 100):
        with limit_files(most):
            code, _, errors = run(*line.split())
        assert (code, errors.count("\n"), "file too large" in errors) == (2, 1, True), errors
        assert not list(files.glob("out.*"))
    assert run(*line.split())[0] == 0
    assert len(list(files.glob("out.*"))) == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no full device")
def test_output_that_does_not_fit_is_no_success(files):
    command = [sys.executable, "-m", "sotdd", "distance", "train.csv", "same.csv", "--n-projections", "16", "--json"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=100)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1
