"""Processes that fork while threads compute: no child waits for a thread that it does not have."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

# Children that hang are ended by their own alarm, so that the parent can count them.
FORKING = """
    import os, signal, sys, threading, time, warnings
    warnings.simplefilter("ignore")  # newer Pythons warn of this very thing
    import numpy as np, sotdd

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 4)), rng.integers(2, size=60)
    source = sys.argv[1]
    common = sotdd.Projections.fit([(x, y)], n_projections=16)

    def work():
        sotdd.Projections.fit([(x, y)], n_projections=16).fingerprint
        sotdd.distance(source, (x + 1, y), n_projections=16)
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
    for _ in range(40):
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
@pytest.mark.parametrize("kind", ["npz", "parquet", "arrow"])
def test_children_forked_while_threads_compute_do_not_hang(tmp_path, kind):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(60, 4)), rng.integers(2, size=60)
    path = tmp_path / f"data.{kind}"
    if kind == "npz":
        np.savez(path, X=x, y=y)
    else:
        import pyarrow
        from pyarrow import feather, parquet

        table = pyarrow.table({**{f"x{k}": column for k, column in enumerate(x.T)}, "y": y})
        if kind == "parquet":
            parquet.write_table(table, path, row_group_size=20)
        else:
            feather.write_feather(table, path, chunksize=20)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FORKING), str(path)], capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1:] == ["ends {0}"], done.stdout + done.stderr[-2000:]


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
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "0\n", done.stderr
