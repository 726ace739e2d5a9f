"""Clusters of Dask, and data for them as batches and as a frame."""

import logging

import pytest
from distributed import Client, LocalCluster

import sotdd
from sketches.cluster.cases import batch, frame


@pytest.fixture(scope="module")
def threads():
    """Two workers in this process."""
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0", silence_logs=logging.CRITICAL
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def processes():
    """Two workers in processes of their own, with as many threads as Dask gives them, whatever the tests have."""
    with pytest.MonkeyPatch.context() as environment:
        for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
            environment.delenv(name, raising=False)
        with (
            LocalCluster(
                n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
            ) as made,
            Client(made, set_as_default=False) as client,
        ):
            yield client


@pytest.fixture(scope="module")
def batches():
    return [batch(seed) for seed in range(11)]


@pytest.fixture(scope="module")
def projections(batches):
    return sotdd.Projections.fit(batches[:2], n_projections=70, seed=1)


@pytest.fixture(scope="module")
def streamed(batches, projections):
    return sotdd.sketch_stream(batches, projections)


@pytest.fixture
def whole(batches):
    """The batches as one frame."""
    return frame(batches, 6)
