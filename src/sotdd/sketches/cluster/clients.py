"""The Dask client that does the work, and the results of its tasks."""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sotdd.basics.checks import described, first_line
from sotdd.basics.errors import SotddError, require
from sotdd.sketches.cluster.foreign import refuse_foreign_processes
from sotdd.sketches.cluster.tasks import Refusal
from sotdd.sketches.statistics import ClassesDoNotFit

# Dask's own types are not checked, since it is optional.
Client = Any
Future = Any

_log = logging.getLogger("sotdd")


@contextmanager
def connected(client: Client) -> Iterator[Client]:
    """Yield this client, the current one, or one of a cluster of threads that lasts as long as the call."""
    distributed = require("distributed", "sotdd.cluster", "'sotdd[cluster]'")
    if client is None:
        client = _current(distributed)
    if client is None:
        with _threads(distributed) as own:
            yield own
        return
    if not isinstance(client, distributed.Client):
        raise SotddError(f"client is {described(client)}: expected a dask.distributed Client, or None.")
    if client.asynchronous:
        raise SotddError("client is asynchronous: expected one made without asynchronous=True.")
    if client.status != "running":
        raise SotddError(f"client is {client.status}: expected one that is connected to a cluster.")
    try:
        refuse_foreign_processes(client)
        yield client
    except Exception as error:  # versions of distributed differ in what they raise once the connection is gone
        if isinstance(error, SotddError) or client.status == "running":  # an error of someone else's
            raise
        raise SotddError(
            f"the connection to the cluster was lost ({first_line(error)}): check its scheduler, and run it again."
        ) from error


def result_of(future: Future, what: str) -> Any:  # noqa: ANN401  # what the task returned
    """The result of a task, or an error that says in one line why there is none."""
    from distributed import CancelledError, KilledWorker

    try:
        result = future.result()
    except KilledWorker:
        raise SotddError(
            f"{what} was given up: workers died at it again and again, likely for lack of memory. Give workers more "
            "memory, or make partitions smaller."
        ) from None
    except CancelledError:
        raise SotddError(f"{what} was cancelled, or the connection to the cluster was lost: run it again.") from None
    except SotddError as error:
        raise SotddError(f"{what}: {error}") from None
    except Exception as error:  # the user's own task failed, or a worker lacks a library
        kind = type(error).__name__
        raise SotddError(f"{what} could not be computed ({kind}: {first_line(error)}).") from error
    if isinstance(result, Refusal):
        raise (ClassesDoNotFit if result.too_many_classes else SotddError)(result.message)
    return result


def _current(distributed: Any) -> Client:  # noqa: ANN401  # a module
    try:
        return distributed.Client.current()
    except ValueError:
        return None


@contextmanager
def _threads(distributed: Any) -> Iterator[Client]:  # noqa: ANN401  # a module
    """A cluster of threads in this process: data are not copied, and scripts need no ``__main__`` guard."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    _log.info("there is no Dask client: using %d threads of this process", cores)
    state = random.getstate()  # the scheduler draws from Python's random numbers
    try:
        with (
            distributed.LocalCluster(
                n_workers=1,
                threads_per_worker=cores,
                processes=False,
                dashboard_address=":0",  # any free port
                silence_logs=logging.CRITICAL,
            ) as cluster,
            distributed.Client(cluster, set_as_default=False) as client,
        ):
            yield client
    finally:
        random.setstate(state)
