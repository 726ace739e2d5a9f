"""What happens under strain: many threads at once, many calls in a row, and an interruption half-way."""

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import sotdd

LINUX = sys.platform == "linux"


def dataset(seed, n=300, width=6, classes=4):
    rng = np.random.default_rng(seed)
    return rng.normal(seed % 3, 1, size=(n, width)), rng.integers(classes, size=n)


def program(code, *arguments, **settings):
    """Run a program in a process of its own."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **settings)


def test_sixteen_threads_at_once_get_what_each_would_get_alone():
    """Bit for bit, with settings of their own, so that an answer given to the wrong caller would show."""
    together = threading.Barrier(16)
    cases = [
        ((dataset(i), dataset(i + 1, n=200 + i)), {"n_projections": 40 + i, "seed": i, "p": 1 + i % 3})
        for i in range(16)
    ]

    def measure(case):
        (a, b), settings = case
        together.wait()
        return [sotdd.distance(a, b, **settings) for _ in range(3)]

    with ThreadPoolExecutor(16) as threads:
        found = list(threads.map(measure, cases))
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("sotdd")]
    for ((a, b), settings), results in zip(cases, found, strict=True):
        alone = sotdd.distance(a, b, **settings)
        for result in results:
            assert (result.value, result.stderr) == (alone.value, alone.stderr)
            np.testing.assert_array_equal(result.per_projection, alone.per_projection)


SOAK = """
import gc, os
import numpy as np, sotdd

def megabytes():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

for i in range(500):
    rng = np.random.default_rng(i)
    a, b = ((rng.normal(size=(n, 8)), rng.integers(3, size=n)) for n in (60, 50 + i % 20))
    sotdd.distance(a, b, n_projections=30, seed=i)
    if i + 1 in (100, 500):
        print(megabytes(), flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(not LINUX, reason="reads the memory of a process from /proc")
def test_hundreds_of_distances_leave_memory_flat():
    """A leak of one result each, about 20 kB with its data, would be 8 MB."""
    done = program(SOAK)
    assert (done.returncode, done.stderr) == (0, "")
    early, late = map(float, done.stdout.split())
    assert late - early < 4


# Interrupts itself by a real signal once the command's worker threads are there; says which outlive it.
INTERRUPTED = """
import json, os, signal, sys, threading, time

def at_work():
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("sotdd")]

def interrupt():
    while not at_work():
        time.sleep(0.005)
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt, daemon=True).start()
from sotdd.cli import main
try:
    main()
finally:
    print(json.dumps(at_work()))
"""
LONG = "3000000"  # projections: many minutes, if nothing stopped it


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal as terminals do elsewhere")
@pytest.mark.parametrize(
    "arguments",
    [
        ("distance", "a.npz", "b.npz", "--n-projections", LONG),
        ("sketch", "a.npz", "-o", "a.sotdd", "--n-projections", "300000"),
        *(
            pytest.param(arguments, marks=pytest.mark.slow)
            for arguments in (
                ("matrix", "a.npz", "b.npz", "--n-projections", LONG, "--report", "page.html"),
                ("explain", "a.npz", "b.npz", "--n-projections", LONG),
                ("test", "a.npz", "b.npz", "--n-projections", "50000"),  # of each of a thousand splits
            )
        ),
    ],
    ids=lambda arguments: arguments[0],
)
def test_an_interruption_ends_at_once_and_leaves_nothing_behind(tmp_path, monkeypatch, run, arguments):
    once = tmp_path / "once"
    once.mkdir()
    for seed, name in enumerate("ab"):
        x, y = dataset(seed, n=2000)
        for folder in (tmp_path, once):
            np.savez(folder / f"{name}.npz", X=x, y=y)
    # Loops that are still to be compiled cannot be interrupted: a small run first has them in the cache.
    monkeypatch.chdir(once)
    run(*("64" if word in (LONG, "300000", "50000") else word for word in arguments), "--device", "cpu")
    before = sorted(tmp_path.iterdir())
    done = program(INTERRUPTED, *arguments, "--device", "cpu", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (130, "")
    assert json.loads(done.stdout) == []
    assert sorted(tmp_path.iterdir()) == before


def test_features_far_out_of_range_beside_others_that_are_not():
    """Three that were found by drawing: all warned of overflow."""
    assert sotdd.explain([[1.8e302, 0.0]], [[1.8e302, 0.0]], n_projections=1).distance.value == 0
    far, near = np.full((1, 2), -9.5e153), np.zeros((1, 2), np.float16)
    assert sotdd.test(far, near, n_permutations=1, n_projections=1).distance > 0
    rng = np.random.default_rng(0)
    wide = [(rng.normal(shift, 1, size=(100, 20)), rng.integers(3, size=100)) for shift in (0, 3)]
    assert "p=60" in repr(sotdd.explain(*wide, p=60, n_projections=256, scale=None))
    with pytest.raises(sotdd.SotddError, match="p=60 overflows along single features"):
        sotdd.explain(*wide, p=60, n_projections=64)
    apart = np.array([[1e100, -1e100], [0, 1e100]]), [0, 1]
    with pytest.raises(sotdd.SotddError, match="too large"):
        sotdd.distance(apart, (np.zeros((2, 2)), [0, 0]), n_projections=4, scale=None)
