"""Who does the work: a cluster that is there, or threads of this process."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sotdd.checks import described
from sotdd.errors import SotddError, require

# Dask's own types are not checked, since it is optional.
Client = Any

_log = logging.getLogger("sotdd")


@contextmanager
def connected(client: Client) -> Iterator[Client]:
    """Yield the given client, the current one, or one of a cluster of threads made for the time of the call."""
    distributed = require("distributed", "sotdd.cluster", "'sotdd[cluster]'")
    if client is None:
        client = _current(distributed)
    if client is None:
        with _threads(distributed) as made:
            yield made
        return
    if not isinstance(client, distributed.Client):
        raise SotddError(f"client is {described(client)}: expected a dask.distributed Client, or None.")
    if client.asynchronous:
        raise SotddError("client is asynchronous: expected one made without asynchronous=True.")
    if client.status != "running":
        raise SotddError(f"client is {client.status}: expected one that is connected to a cluster.")
    yield client


def _current(distributed: Any) -> Client:  # noqa: ANN401  # a module
    try:
        return distributed.Client.current()
    except ValueError:
        return None


@contextmanager
def _threads(distributed: Any) -> Iterator[Client]:  # noqa: ANN401  # a module
    """A cluster inside this process: nothing is copied, and scripts need no guard against being run again."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    _log.info("there is no Dask client: using %d threads of this process", cores)
    with (
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=cores,
            processes=False,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client
