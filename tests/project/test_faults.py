"""Faults: killed writers, a full disk, two writers at once, too little memory, and forks while threads compute.

Of a file the old one or the new one is there, never a half; catalogs are under the same faults in their own tests.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import sotdd

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and limits as POSIX has them")

OF_PROJECTIONS = {
    "sketch": sotdd.Sketch,
    "builder": sotdd.SketchBuilder,
    "drift reference": sotdd.DriftReference,
}
KINDS = [*OF_PROJECTIONS, "csv", "report.html"]


def made(version):
    """What writes each kind of file; those of version 1 are larger, so that a half would be seen."""
    rng = np.random.default_rng(version)
    x, y = rng.normal(size=(200 + 50 * version, 3)), rng.integers(3, size=200 + 50 * version)
    projections = sotdd.Projections.fit([(x, y)], n_projections=64 * (1 + version), seed=1)
    matrix = sotdd.pairwise({"a": x, f"version {version}": x + 1}, n_projections=16)
    return {
        "sketch": sotdd.sketch((x, y), projections).save,
        "builder": sotdd.SketchBuilder(projections).add(x, y).save,
        "drift reference": sotdd.DriftReference.fit((x, y), n_projections=64 * (1 + version)).save,
        "csv": matrix.to_csv,
        "report.html": lambda path: sotdd.report(matrix, path),
    }


def version_of(kind, path):
    """Read a file, all of it, and say which version it is."""
    if kind in OF_PROJECTIONS:
        return OF_PROJECTIONS[kind].load(path).projections.n_projections // 64 - 1
    text = Path(path).read_text(encoding="utf-8")
    assert text.rstrip().endswith("</html>") if kind == "report.html" else text.count("\n") == 3
    return int(text.partition("version ")[2][0])


def run(code, *arguments):
    """Python in another process, which knows how to make every kind of file."""
    begin = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r})\nfrom project.test_faults import *\n"
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", begin + code, *map(str, arguments)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


KILLED = """
saves = [made(version) for version in (0, 1)]
print("ready", flush=True)
while True:
    for kind in KINDS:
        for save in saves:
            save[kind](sys.argv[1] + "/" + kind)
"""


def test_killed_writers_leave_whole_files(tmp_path):
    """Two at once, of the same files."""
    rng = np.random.default_rng(0)
    for kind, save in made(0).items():
        save(tmp_path / kind)
    two = [run(KILLED, tmp_path) for _ in range(2)]
    for one in two:
        assert one.stdout.readline() == "ready\n", one.stderr.read()
    for number in range(16):  # a stop is a kill as far as the files are concerned, and the process goes on from there
        time.sleep(rng.uniform(0.001, 0.03))
        for one in two:
            one.send_signal(signal.SIGSTOP if number < 15 else signal.SIGKILL)
        assert {version_of(kind, tmp_path / kind) for kind in KINDS} <= {0, 1}
        for one in two:
            one.send_signal(signal.SIGCONT)
    for one in two:
        one.communicate()
    for kind, save in made(1).items():
        save(tmp_path / kind)
        assert version_of(kind, tmp_path / kind) == 1


LIMITED = """
import resource
new = made(1)
resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))
for kind, save in new.items():
    try:
        save(sys.argv[1] + "/" + kind)
    except sotdd.SotddError as error:
        print(error)
"""


@pytest.mark.slow
def test_a_file_beyond_the_limit_leaves_the_old_one(tmp_path):
    """A limit on the size of files ends a write in the middle, as a full disk does."""
    for kind, save in made(0).items():
        save(tmp_path / kind)
    output, errors = run(LIMITED, tmp_path).communicate(timeout=200)
    assert output.count("file too large") == len(output.splitlines()) == len(KINDS), output + errors
    assert [version_of(kind, tmp_path / kind) for kind in KINDS] == [0] * len(KINDS)
    assert sorted(os.listdir(tmp_path)) == sorted(KINDS)


# The program in a process that may have this much more address space than it has at its start.
PROGRAM = """
import resource
some = np.zeros((60_000, 4), np.float32) + np.arange(60_000, dtype=np.float32)[:, None]
sotdd.distance(some, some)  # load what it needs, and begin its threads, while there is room for them
size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (200 << 20), resource.getrlimit(resource.RLIMIT_AS)[1]))
from sotdd.cli import main
sys.argv = ["sotdd", "distance", *2 * [sys.argv[1] + "::label="]]
main()
"""


@pytest.mark.parametrize(("call", "setting"), [(sotdd.test, "n_permutations"), (sotdd.distance, "n_projections")])
def test_requests_that_never_fit_are_refused(rng, call, setting):
    points = rng.normal(size=(60, 3))
    with pytest.raises(sotdd.SotddError, match="GB are free: use n_") as refused:
        call(points, points, **{setting: 10**9})
    assert 1 <= min(refused.value.use.values()) < 10**9


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of address space are Linux's")
def test_the_program_ends_in_one_line(tmp_path, rng):
    np.save(tmp_path / "many.npy", rng.normal(size=(3_000_000, 4)).astype(np.float32))
    with run(PROGRAM, tmp_path / "many.npy") as one:
        _, errors = one.communicate(timeout=200)
    assert one.returncode == 2
    assert "memory" in errors.splitlines()[-1]
    assert "Traceback" not in errors


# Children that hang are ended by their own alarm, so that the parent can count them.
FORKING = """
import threading

rng = np.random.default_rng(0)
x, y = rng.normal(size=(60, 4)), rng.integers(2, size=60)
common = sotdd.Projections.fit([(x, y)], n_projections=16)

def work():
    sotdd.Projections.fit([(x, y)], n_projections=16).fingerprint
    sotdd.distance(sys.argv[1], (x + 1, y), n_projections=16)
    sotdd.sketch((x, y), common)

work()  # compiles

def loop():
    while True:
        work()

for _ in range(4):
    threading.Thread(target=loop, daemon=True).start()
ends = []
for _ in range(20):
    time.sleep(0.003 * rng.random())
    child = os.fork()
    if not child:
        signal.alarm(20)
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    ends.append(os.waitpid(child, 0)[1])
    if any(ends):
        break
print("ends", set(ends), flush=True)
os._exit(0)  # the threads go on
"""


@pytest.mark.slow
def test_children_forked_while_threads_compute_do_not_hang(tmp_path):
    """Arrow reads with threads of its own."""
    pandas = pytest.importorskip("pandas")
    x = np.random.default_rng(1).normal(size=(60, 4))
    table = pandas.DataFrame(x, columns=list("abcd")).assign(y=np.arange(60) % 2)
    table.to_parquet(tmp_path / "data.parquet", row_group_size=20)
    output, errors = run(FORKING, tmp_path / "data.parquet").communicate(timeout=300)
    assert output.splitlines()[-1:] == ["ends {0}"], errors


CHILD = """
from sotdd.basics.resources import Workers
with Workers() as outer:
    whole = outer.submit(lambda: outer.count).result(60)  # which starts a thread
    child = os.fork()
    if child:
        print(os.waitpid(child, 0)[1], flush=True)
    else:
        with Workers() as workers:
            done = workers.submit(lambda: "by a thread of the child").result(60)
            code = 0 if workers.count == whole and done else 1
if not child:
    with Workers() as workers:
        os._exit(code if workers.count == whole else 2)
"""


def test_a_child_uses_the_threads_that_its_parent_may_use():
    """It is forked while the parent holds BLAS to one thread, which nobody in the child would give back."""
    output, errors = run(CHILD).communicate(timeout=300)
    assert output.splitlines()[-1:] == ["0"], errors
