"""Clusters whose processes lack the package, have another version of it, or go away: one line, and no waiting."""

import json
import os
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import ExitStack, contextmanager

import dask
import numpy as np
import pytest
from distributed import Client

import sotdd
from sotdd.sketches.cluster import foreign

WITHOUT = """
    import sys
    class Missing:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] == "sotdd":
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    sys.meta_path.insert(0, Missing())
"""
OLDER = """
    import importlib.abc, importlib.util, sys
    class Older(importlib.abc.Loader):
        def find_spec(self, name, path=None, target=None):
            return importlib.util.spec_from_loader(name, self) if name == "sotdd" else None
        def exec_module(self, module):
            module.__version__ = "0.0.7"
    sys.meta_path.insert(0, Older())
"""


@contextmanager
def process(tmp_path, kind, *arguments):
    """A scheduler or a worker in a process of its own, in which ``kind`` of Python runs first."""
    environment = dict(os.environ)
    if kind is not None:
        folder = tmp_path / f"python-{abs(hash(kind))}"
        folder.mkdir(exist_ok=True)
        (folder / "sitecustomize.py").write_text(textwrap.dedent(kind))
        environment["PYTHONPATH"] = os.pathsep.join([str(folder), environment.get("PYTHONPATH", "")])
    with (tmp_path / f"log-{time.monotonic_ns()}").open("w") as log:
        running = subprocess.Popen([sys.executable, "-m", *arguments], env=environment, stdout=log, stderr=log)
    try:
        yield running
    finally:
        running.kill()
        running.wait()


@contextmanager
def cluster(tmp_path, workers, scheduler=None):
    """The client of a cluster of processes, and its scheduler's process."""
    file = tmp_path / "scheduler.json"
    with ExitStack() as stack:
        quiet = ("--no-dashboard", "--scheduler-file", str(file))
        one = stack.enter_context(process(tmp_path, scheduler, "distributed.cli.dask_scheduler", "--port", "0", *quiet))
        for _ in range(300):
            if file.exists() and file.read_text().strip().endswith("}"):
                break
            time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        for kind in workers:
            stack.enter_context(process(tmp_path, kind, "distributed.cli.dask_worker", "--no-nanny", *quiet))
        client = stack.enter_context(Client(address, set_as_default=False, timeout=8))
        if workers:
            client.wait_for_workers(len(workers), timeout=60)
        yield client, one


@pytest.fixture(scope="module")
def batches():
    rng = np.random.default_rng(0)
    return [rng.normal(size=(200, 3)) for _ in range(6)]


@pytest.fixture(scope="module")
def projections(batches):
    return sotdd.Projections.fit(batches[:1], n_projections=8)


@pytest.mark.parametrize(
    ("workers", "scheduler", "said"),
    [
        ((None, WITHOUT), None, r"^1 of 2 workers cannot import sotdd \(ModuleNotFoundError: No module"),
        ((OLDER,), None, r"^the worker imported sotdd 0\.0\.7: install sotdd"),
        ((None,), WITHOUT, r"^the scheduler cannot import sotdd"),
    ],
)
def test_processes_that_cannot_do_the_work_are_named_at_once(tmp_path, batches, projections, workers, scheduler, said):
    with cluster(tmp_path, workers, scheduler) as (client, _):
        with pytest.raises(sotdd.SotddError, match=said) as caught:
            sotdd.cluster.sketch([dask.delayed(part) for part in batches], projections, client)
        assert len(str(caught.value).splitlines()) == 1
        with pytest.raises(sotdd.SotddError, match=said):  # files are looked at by a worker too
            sotdd.cluster.sketch(tmp_path / "*.parquet", projections, client)


def test_a_cluster_without_workers_is_told_after_a_while(tmp_path, batches, projections, monkeypatch):
    monkeypatch.setattr(foreign, "_ARRIVAL", 0.5)
    with (
        cluster(tmp_path, ()) as (client, _),
        pytest.raises(sotdd.SotddError, match="has no workers, and none came within"),
    ):
        sotdd.cluster.sketch([dask.delayed(part) for part in batches], projections, client)


def test_a_worker_that_comes_late_is_waited_for(tmp_path, batches, projections):
    with cluster(tmp_path, ()) as (client, _), ExitStack() as stack:
        file = ("--scheduler-file", str(tmp_path / "scheduler.json"), "--no-nanny", "--no-dashboard")
        timer = threading.Timer(
            1, lambda: stack.enter_context(process(tmp_path, None, "distributed.cli.dask_worker", *file))
        )
        timer.start()
        made = sotdd.cluster.sketch([dask.delayed(part) for part in batches], projections, client)
        timer.join()
    assert made.n_points == 1200


@pytest.mark.slow
@pytest.mark.parametrize("after", [0, 3])
def test_a_scheduler_that_is_lost_is_one_line(tmp_path, batches, projections, after):
    """It is killed before anything was computed, or in the middle of it."""

    def slow(part):
        import time

        time.sleep(0.2)
        return part

    with cluster(tmp_path, (None,)) as (client, one):

        def lose(done, total):
            if done >= after and one.poll() is None:
                one.kill()
                one.wait()

        if not after:
            lose(0, 1)
        with pytest.raises(
            sotdd.SotddError, match=r"connection to the cluster was lost|client is \w+: expected"
        ) as caught:
            sotdd.cluster.sketch([dask.delayed(slow)(part) for part in batches], projections, client, progress=lose)
        assert len(str(caught.value).splitlines()) == 1
