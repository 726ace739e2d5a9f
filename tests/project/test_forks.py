"""Processes that fork while threads compute: no child waits for a thread that it does not have."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def run(code, *arguments):
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    return done.stdout.splitlines()[-1:], done.stdout + done.stderr[-2000:]


# Children that hang are ended by their own alarm, so that the parent can count them.
FORKING = """
    import os, signal, sys, threading, time
    import numpy as np, sotdd

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 4)), rng.integers(2, size=60)
    common = sotdd.Projections.fit([(x, y)], n_projections=16)

    def work():
        sotdd.Projections.fit([(x, y)], n_projections=16).fingerprint
        sotdd.distance(sys.argv[1], (x + 1, y), n_projections=16)
        sotdd.sketch((x, y), common)

    work()  # compiles
    stop = threading.Event()

    def loop():
        while not stop.is_set():
            work()

    threads = [threading.Thread(target=loop, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    ends = []
    for _ in range(20):
        time.sleep(0.003 * rng.random())
        child = os.fork()
        if not child:
            signal.alarm(20)
            try:
                work()
            except BaseException as error:
                print(type(error).__name__, error, flush=True)
                os._exit(1)
            os._exit(0)
        ends.append(os.waitpid(child, 0)[1])
        if any(ends):
            break
    stop.set()
    for thread in threads:
        thread.join()
    print("ends", set(ends), flush=True)
"""


@pytest.mark.slow
def test_children_forked_while_threads_compute_do_not_hang(tmp_path):
    """Arrow reads with threads of its own."""
    pandas = pytest.importorskip("pandas")
    x = np.random.default_rng(1).normal(size=(60, 4))
    table = pandas.DataFrame(x, columns=list("abcd")).assign(y=np.arange(60) % 2)
    table.to_parquet(tmp_path / "data.parquet", row_group_size=20)
    last, said = run(FORKING, tmp_path / "data.parquet")
    assert last == ["ends {0}"], said


def test_a_child_uses_the_threads_that_its_parent_may_use():
    """It is forked while the parent holds BLAS to one thread, which nobody in the child would give back."""
    code = """
        import os
        from sotdd.engines.cpu.workers import Workers
        with Workers() as outer:
            whole = outer.count
            child = os.fork()
            if child:
                print(os.waitpid(child, 0)[1], flush=True)
            else:
                with Workers() as workers:
                    code = 0 if workers.count == whole else 1
        if not child:
            with Workers() as workers:
                os._exit(code if workers.count == whole else 2)
    """
    last, said = run(code)
    assert last == ["0"], said
