"""Every file that the package writes, under faults: killed writers, full and read-only disks, two writers at once.

The old file or the new one is there, never a half; the error is one line. Catalogs are under the same faults in
``tests/sketches/catalog/test_catalog_faults.py``, closed pipes in ``tests/commands/test_pipes.py``, lost schedulers in
``tests/sketches/cluster/test_foreign.py``.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import sotdd
from project.written_files import KINDS, made, version_of
from sotdd.sketches import file as sketch_file

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and mounts as POSIX has them")

SOURCE = Path(sotdd.__file__).parent
TESTS = str(Path(__file__).parents[1])

# What every child begins with.
BEGIN = """
    import os, sys, tempfile
    from pathlib import Path
    sys.path.insert(0, os.environ["SOTDD_TESTS"])
    import sotdd
    from project.written_files import made, version_of
"""


def run(code, *arguments):
    """Python in another process, which knows how to make every kind of file."""
    whole = textwrap.dedent(BEGIN) + textwrap.dedent(code)
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", whole, *map(str, arguments)],
        env={**os.environ, "SOTDD_TESTS": TESTS}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_every_file_is_written_by_one_function():
    """A new place that writes a file belongs to `KINDS`."""
    writing = re.compile(
        r"write_whole\(|\.write_(text|bytes)\(|savefig|np\.save|json\.dump\(|open\([^)]*[\"'][wax]b?[\"']"
    )
    found = {
        str(path.relative_to(SOURCE)): len(lines)
        for path in SOURCE.rglob("*.py")
        if (lines := [line for line in path.read_text(encoding="utf-8").splitlines() if writing.search(line)
                      and ">>>" not in line and "..." not in line and "def " not in line])
    }  # fmt: skip
    assert found == {
        "basics/drafts.py": 1,  # where it is done
        "commands/gate_log.py": 1,  # nothing: whether lines can be added
        "commands/pipes.py": 1,  # to nowhere
        "engines/cpu/row_sort.py": 1,  # in a cache, so that a fault is silent
        "inputs/encode.py": 2,  # vectors, to memory and then to a file
        "inputs/files.py": 1,  # a copy in a temporary folder
        "integrations/mlflow.py": 1,  # in a temporary folder, from which MLflow takes it
        "measure/drift_file.py": 1,
        "pictures/gate_page.py": 1,
        "pictures/report.py": 2,  # of a matrix, and of two datasets
        "results/matrix.py": 1,
        "sketches/builder_file.py": 3,  # statistics, builders, windows
        "sketches/file.py": 1,
        "sketches/private_file.py": 2,  # statistics, counts
    }


KILLED = """
    kind, path = sys.argv[1:]
    saves = [made(version)[kind] for version in (0, 1)]
    print("ready", flush=True)
    sys.stdin.readline()
    while True:
        for save in saves:
            save(path)
"""


@pytest.mark.parametrize("kind", [KINDS[0], *(pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS[1:])])
def test_a_killed_writer_leaves_a_whole_file(tmp_path, kind):
    path = tmp_path / "file"
    made(0)[kind](path)
    rng = np.random.default_rng(0)
    with run(KILLED, kind, path) as one:
        one.stdout.readline()
        one.stdin.write("go\n")
        one.stdin.flush()
        for _ in range(20):  # a stop is a kill as far as the file is concerned, and the process goes on from there
            time.sleep(rng.uniform(0.001, 0.02))
            one.send_signal(signal.SIGSTOP)
            assert version_of(kind, path) in (0, 1)
            one.send_signal(signal.SIGCONT)
        time.sleep(rng.uniform(0.001, 0.02))
        one.kill()
        one.communicate()
    assert version_of(kind, path) in (0, 1)
    made(1)[kind](path)
    assert version_of(kind, path) == 1
    assert os.listdir(tmp_path) == ["file"]  # what the killed one left is swept up


ONE_LINE = """
    import logging
    logging.basicConfig(format="%(message)s", stream=sys.stdout)
    place, fault = Path(sys.argv[1]), sys.argv[2]
    new = made(1)
    with tempfile.TemporaryDirectory() as other:  # so that everything is loaded and compiled before the fault
        for kind, save in new.items():
            save(Path(other) / kind)
            version_of(kind, Path(other) / kind)
    exec(fault)
    for kind, save in new.items():
        try:
            save(place / kind)
        except sotdd.SotddError as error:
            print(error)
        print(kind, version_of(kind, place / kind), sorted(os.listdir(place)), flush=True)
"""


def check_one_line(done, why, names):
    output, errors = done.communicate(timeout=200)
    assert done.returncode == 0, errors
    lines = output.splitlines()
    assert len(lines) == 2 * len(KINDS), output
    for said, left, kind in zip(lines[::2], lines[1::2], KINDS, strict=True):
        assert why in said
        assert left == f"{kind} 0 {names}"


@pytest.fixture
def folder(tmp_path):
    """A folder with the first version of every file."""
    place = tmp_path / "place"
    place.mkdir()
    for kind, save in made(0).items():
        save(place / kind)
    return place


@pytest.mark.slow
def test_a_file_beyond_the_limit_leaves_the_old_one(folder):
    """A limit on the size of files ends a write in the middle, as a full disk does."""
    fault = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))"
    check_one_line(run(ONE_LINE, folder, fault), "(file too large)", sorted(KINDS))


def mounted(folder, mount):
    """Run what writes every file in a place that is mounted for it alone, where the system lets us."""
    if shutil.which("unshare") is None:
        pytest.skip("this system has no unshare")
    probe = subprocess.run(
        ["unshare", "-rm", "sh", "-c", mount], cwd=folder.parent, capture_output=True, text=True, check=False
    )
    if probe.returncode:
        pytest.skip(f"this system lets nobody mount: {probe.stderr.strip()}")
    script = folder.parent / "script.py"
    script.write_text(textwrap.dedent(BEGIN) + textwrap.dedent(ONE_LINE))
    return subprocess.Popen(
        ["unshare", "-rm", "sh", "-c", f'{mount} && "{sys.executable}" -W ignore script.py place pass'],
        cwd=folder.parent, env={**os.environ, "SOTDD_TESTS": TESTS}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip


@pytest.mark.slow
def test_a_full_disk_leaves_the_old_file(folder):
    mount = (
        "mkdir -p copy && cp place/* copy && mount -t tmpfs -o size=16m none place && cp copy/* place && "
        "(cat /dev/zero > place/zzz || true) 2> /dev/null"
    )
    check_one_line(mounted(folder, mount), "(no space left on device)", [*sorted(KINDS), "zzz"])


@pytest.mark.slow
def test_a_read_only_disk_leaves_the_old_file(folder):
    mount = "mount --bind place place && mount -o remount,bind,ro place"
    check_one_line(mounted(folder, mount), "(read-only file system)", sorted(KINDS))


@pytest.mark.slow
def test_a_folder_of_another_user_is_left_alone(folder):
    if os.getuid():
        pytest.skip("only root can become another user")
    for place in (folder, *folder.parents):
        if place == Path(place.anchor) or place.stat().st_uid != 0:
            break
        place.chmod(place.stat().st_mode | 0o055)
    for path in folder.iterdir():
        path.chmod(0o644)
    check_one_line(run(ONE_LINE, folder, "os.setgid(65534); os.setuid(65534)"), "(permission denied)", sorted(KINDS))


WRITERS = """
    kind, path, version = sys.argv[1], sys.argv[2], int(sys.argv[3])
    save = made(version)[kind]
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(25):
        save(path)
        assert version_of(kind, path) in (0, 1)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sketch", "report"])
def test_two_writers_at_once_leave_a_whole_file(tmp_path, kind):
    path = tmp_path / "file"
    two = [run(WRITERS, kind, path, version) for version in (0, 1)]
    for one in two:
        one.stdout.readline()
    for one in two:
        one.stdin.write("go\n")
        one.stdin.flush()
    for one in two:
        _, errors = one.communicate(timeout=200)
        assert one.returncode == 0, errors
    assert version_of(kind, path) in (0, 1)
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("kind", ["sketch", "builder", "statistics"])
def test_files_of_a_newer_version_are_refused(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(sketch_file, "VERSION", sketch_file.VERSION + 1)
    made(0)[kind](tmp_path / "new")
    monkeypatch.undo()
    with pytest.raises(sotdd.SotddError, match=r"has version \d+ of the format but .*: update sotdd\.$"):
        version_of(kind, tmp_path / "new")
