"""Clusters of Dask, and data for them as batches and as files."""

import logging

import pytest
from distributed import Client, LocalCluster
from pyarrow import parquet

import sotdd
from sketches.cluster.cases import batch, table


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
def folder(tmp_path, batches):
    """The batches as files, of which one has two row groups and one has no rows."""
    for place, part in enumerate(batches[:-1]):
        parquet.write_table(table(*part), tmp_path / f"part-{place:02}.parquet", row_group_size=1000)
    (tmp_path / "more").mkdir()
    parquet.write_table(table(*batches[-1]), tmp_path / "more" / "last.parquet")
    parquet.write_table(table(*batches[0]).slice(0, 0), tmp_path / "empty.parquet")
    (tmp_path / "_metadata.parquet").write_text("not for readers")
    return tmp_path
