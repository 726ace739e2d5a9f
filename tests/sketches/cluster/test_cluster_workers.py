"""The work on a Dask cluster: progress, clients, workers that die, tasks that fail."""

import logging
import os
import signal
import time
from pathlib import Path

import dask
import numpy as np
import pytest
from distributed import Client, Future

import sotdd
from sketches.cluster.cases import batch, same
from sotdd.sketches import cluster

# ------------------------------------------------------------------ progress, clients


def test_progress_counts_partitions(whole, threads, projections):
    reports = []
    sotdd.sketches.cluster.sketch(whole, projections, threads, progress=lambda *state: reports.append(state))
    assert reports == [(done, 6) for done in range(1, 7)]


def test_more_classes_than_fit_are_refused(threads, projections, monkeypatch):
    monkeypatch.setattr("sotdd.sketches.quantiles.CLASS_BYTES", 5 * 70 * 4096)
    parts = [(batch(place)[0], batch(place)[1] + 3 * place) for place in range(5)]  # though each of them fits
    with pytest.raises(sotdd.SotddError, match="use fewer projections"):
        sotdd.sketches.cluster.sketch([dask.delayed(part) for part in parts], projections, threads)


def test_without_a_client_threads_of_this_process_do_it(whole, projections, streamed, caplog):
    with caplog.at_level(logging.INFO, "sotdd"):
        same(sotdd.sketches.cluster.sketch(whole, projections), streamed)
    assert "there is no Dask client" in caplog.text
    with pytest.raises(ValueError, match="No clients"):
        Client.current()


def test_the_current_client_is_used(whole, threads, projections, streamed, caplog):
    with caplog.at_level(logging.INFO, "sotdd"), threads.as_current():
        same(sotdd.sketches.cluster.sketch(whole, projections), streamed)
    assert "there is no Dask client" not in caplog.text


def test_clients_that_cannot_be_used(whole, threads, projections):
    closed = Client(threads.cluster, set_as_default=False)
    closed.close()
    for client, said in [(closed, "client is closed"), ("tcp://here:8786", "client is 'tcp://here:8786'")]:
        with pytest.raises(sotdd.SotddError, match=said):
            sotdd.sketches.cluster.sketch(whole, projections, client)


def test_workers_with_another_version_are_refused(whole, threads, projections, monkeypatch):
    versions = threads.get_versions(packages=["sotdd"])
    next(iter(versions["workers"].values()))["packages"]["sotdd"] = None
    monkeypatch.setattr(threads, "get_versions", lambda packages: versions)
    with pytest.raises(sotdd.SotddError, match=r"different versions of sotdd .*None"):
        sotdd.sketches.cluster.sketch(whole, projections, threads)


# ------------------------------------------------------------------ processes


def test_only_the_sketch_comes_to_the_client(whole, processes, projections, streamed, monkeypatch):
    came = []
    result = Future.result
    monkeypatch.setattr(Future, "result", lambda future, *args: came.append(result(future, *args)) or came[-1])
    same(sotdd.sketches.cluster.sketch(whole, projections, processes), streamed)
    assert [type(thing) for thing in came] == [sotdd.Sketch]


def test_a_worker_with_one_thread_uses_one_core(processes):
    def threads():
        from sotdd.basics.resources import Workers

        with Workers() as workers:
            return workers.count

    assert set(processes.run(threads).values()) == {1}


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_a_retry(processes, projections, batches, streamed, tmp_path):
    def slow(place, part, folder):
        import time
        from pathlib import Path

        with (Path(folder) / str(place)).open("a") as file:
            file.write("x")
        time.sleep(0.15)
        return part

    processes.wait_for_workers(2)
    victims = []

    def kill(done, total):
        if victims or done < total // 2:
            return
        holding = processes.has_what()
        for worker, process in processes.run(os.getpid).items():
            if any("sotdd-" in str(key) for key in holding.get(worker, ())):  # it has something to lose
                os.kill(process, signal.SIGKILL)
                victims.append(worker)
                return

    delayed = [dask.delayed(slow)(place, part, str(tmp_path)) for place, part in enumerate(batches)]
    made = sotdd.sketches.cluster.sketch(delayed, projections, processes, progress=kill)
    assert victims
    began = sum(len((tmp_path / str(place)).read_text()) for place in range(len(batches)))
    assert began > len(batches)  # and it was done again
    same(made, streamed)


def test_a_partition_that_kills_every_worker_is_given_up(processes, projections):
    def fatal():
        import os
        import signal

        os.kill(os.getpid(), signal.SIGKILL)

    scheduler = processes.cluster.scheduler
    before, scheduler.allowed_failures = scheduler.allowed_failures, 0
    try:
        with pytest.raises(sotdd.SotddError, match=r"partition 0 could not be computed .KilledWorker"):
            sotdd.sketches.cluster.sketch([dask.delayed(fatal)()], projections, processes)
    finally:
        scheduler.allowed_failures = before


def test_an_error_of_a_batch_itself_is_told_and_the_rest_cancelled(batches, threads, projections, tmp_path):
    def broken():
        raise RuntimeError("the disk is\non fire")

    def slow(place):
        (Path(tmp_path) / str(place)).touch()
        time.sleep(0.05)
        return batches[0]

    delayed = [dask.delayed(broken)(), *(dask.delayed(slow)(place) for place in range(60))]
    before = set(threads.cluster.scheduler.tasks)  # which another test's traceback may still hold
    with pytest.raises(sotdd.SotddError, match=r"partition 0 could not be computed \(RuntimeError: the disk is\)"):
        sotdd.sketches.cluster.sketch(delayed, projections, threads)
    for _ in range(100):
        left = [key for key in set(threads.cluster.scheduler.tasks) - before if "sotdd" in str(key)]
        if not left:
            break
        time.sleep(0.1)
    assert not left
    assert len(list(tmp_path.iterdir())) < 60


def test_merging_leaves_what_is_merged_as_it_was(batches, projections):
    begin = sotdd.SketchBuilder(projections)
    parts = [cluster.count_partition(begin, str(place), part, {}) for place, part in enumerate(batches[:3])]
    once, again = (cluster.merge_builders(begin, parts).finish() for _ in range(2))
    np.testing.assert_array_equal(once.quantiles, again.quantiles)
    assert once.counts.tolist() == again.counts.tolist()
