"""One rule for folders of Parquet files, whoever reads them: what a path means, and what is left out."""

import os

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import sotdd
from sotdd.inputs import ParquetBatches
from sotdd.inputs.files import parquet_files

DATA = {
    "part-0.parquet": 10,
    "PART-1.PARQUET": 20,
    "short.pq": 30,
    "nested/deep/er/part-2.parquet": 40,
    "year=2024/month=1/part-3.Parquet": 50,
    "year=2025/part-3.parquet": 60,
    "a.b/part-4.parquet": 70,
}
OTHERS = {
    "_metadata": 1000,
    "_common_metadata": 1000,
    "_old.parquet": 1000,
    ".hidden.parquet": 1000,
    "_temporary/0/part-0.parquet": 1000,
    ".staging/part-0.parquet": 1000,
    "year=2024/.part-3.parquet": 1000,
    "year=2024/_tmp/part-3.parquet": 1000,
    "part-0.parquet.bak": 1000,
}


@pytest.fixture
def folder(tmp_path, rng):
    """A folder as clusters leave them, itself below folders whose names begin with a dot and an underscore."""
    root = tmp_path / "_runs" / ".latest" / "data"
    for name, rows in {**DATA, **OTHERS}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        columns = {"a": rng.normal(size=rows), "b": rng.normal(size=rows), "label": np.arange(rows) % 2}
        parquet.write_table(pa.table(columns), root / name, row_group_size=16)
    (root / "_SUCCESS").touch()
    (root / "README.txt").write_text("how this was made")
    return root


def rows_in_both_ways(source):
    """How many rows each reader finds, and whether they are the same rows in the same order."""
    opened, batches = sotdd.open_dataset(str(source)), ParquetBatches.open(str(source))
    joined = np.concatenate([features for features, _ in batches])
    np.testing.assert_array_equal(opened.rows(slice(None)), joined)
    assert batches.n_points == opened.n_points
    return opened.n_points


@pytest.mark.parametrize("form", ["{}", "{}/"])
def test_a_folder_is_one_dataset_for_all(folder, form):
    assert rows_in_both_ways(form.format(folder)) == sum(DATA.values()) == 280


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.parquet", ["part-0.parquet", "_old.parquet"]),
        ("part-*", None),
        ("year=*", ["year=2024/month=1/part-3.Parquet", "year=2025/part-3.parquet"]),
        ("year=*/*.parquet", ["year=2025/part-3.parquet"]),
        ("[sy]*", ["short.pq", "year=2024/month=1/part-3.Parquet", "year=2025/part-3.parquet"]),
        ("n*/**/*.parquet", ["nested/deep/er/part-2.parquet"]),
    ],
)
def test_a_pattern_means_what_it_matches(folder, pattern, names):
    if names is None:
        for read in (sotdd.open_dataset, ParquetBatches.open):
            with pytest.raises(sotdd.SotddError, match=r"part-0\.parquet\.bak is not a Parquet file"):
                read(f"{folder}/{pattern}")
        return
    assert rows_in_both_ways(f"{folder}/{pattern}") == sum({**DATA, **OTHERS}[name] for name in names)


def test_urls_and_paths_mean_the_same(folder):
    inside = [os.path.relpath(path, folder) for path in parquet_files(str(folder))]
    assert sorted(inside) == sorted(DATA)
    url = folder.as_uri()
    assert [path.removeprefix(f"{url}/").replace("%3D", "=") for path in parquet_files(url)] == inside
    assert ParquetBatches.open(url).n_points == 280


def test_the_cluster_reads_the_same_files(folder):
    pytest.importorskip("distributed")
    from distributed import Client

    import sotdd.cluster

    projections = sotdd.Projections.fit([np.zeros((2, 2))], n_projections=64, scale=None)
    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
        made = sotdd.cluster.sketch(str(folder), projections, client=client)
    assert made.n_points == 280


@pytest.mark.parametrize("name", ["_metadata", "part-0.parquet.bak"])
def test_a_file_that_is_named_is_read_whatever_its_name(folder, name):
    assert ParquetBatches.open(folder / name).n_points == 1000


def test_nothing_to_read_is_said(tmp_path):
    (tmp_path / "_data").mkdir()
    parquet.write_table(pa.table({"a": [1.0]}), tmp_path / "_data" / "part.parquet")
    with pytest.raises(sotdd.SotddError, match=r"no Parquet files in .*expected names that end in \.parquet or \.pq"):
        ParquetBatches.open(tmp_path)
    with pytest.raises(sotdd.SotddError) as caught:
        sotdd.open_dataset(tmp_path)
    assert "\n" not in str(caught.value)
