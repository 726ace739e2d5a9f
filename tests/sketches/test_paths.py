"""Paths that no file can have, in every call that reads or writes one: one line."""

import os

import numpy as np
import pytest

import sotdd

PATHS = ["", "/", "a\0b", "\ud800", "x" * 5000, "/".join(["y" * 100] * 50), "no/such/x", 5, b"x.sotdd"]


@pytest.fixture(scope="module")
def made():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(50, 3)), rng.integers(2, size=50)
    projections = sotdd.Projections.fit([(x, y)], n_projections=8)
    one = sotdd.sketch((x, y), projections, n_quantiles=8)
    builder, statistics = sotdd.SketchBuilder(projections).add(x, y), sotdd.ClassStatistics(projections).add(x, y)
    return one, builder, statistics, sotdd.pairwise({"a": x, "b": x + 1}, n_projections=8)


@pytest.mark.parametrize("path", PATHS, ids=range(len(PATHS)))
def test_files_at_paths_that_cannot_be_are_refused(made, path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one, builder, statistics, matrix = made
    calls = [
        one.save, builder.save, statistics.save, matrix.to_csv, lambda place: sotdd.report(matrix, place),
        sotdd.Sketch.load, sotdd.SketchBuilder.load, sotdd.ClassStatistics.load,
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(sotdd.SotddError, match=r"^(path is|cannot (read|write)) ") as caught:
            call(path)
        assert len(str(caught.value)) < 400
        assert len(str(caught.value).splitlines()) == 1
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("path", PATHS[4:6])
def test_paths_of_sketches_to_compare(made, path):
    for bad in (path + ".sotdd", "\ud800.sotdd", "a\0b.sotdd"):
        with pytest.raises(sotdd.SotddError, match=r"^(path is|cannot read) ") as caught:
            sotdd.distance(made[0], bad)
        assert len(str(caught.value)) < 400


@pytest.mark.parametrize("path", ["", "a\0b", "\ud800", "x" * 5000, "/".join(["y" * 100] * 50), 5, None, b"x"])
def test_catalogs_at_paths_that_cannot_be_are_refused(made, path):
    pytest.importorskip("lancedb")
    for call in (
        lambda: sotdd.Catalog(path).names,
        lambda: sotdd.Catalog(path).recipe,
        lambda: sotdd.Catalog(path).add("a", made[0]),
        lambda: repr(sotdd.Catalog(path)),
    ):
        with pytest.raises(sotdd.SotddError, match=r"^(path is|cannot (read|write to) the catalog) ") as caught:
            call()
        assert len(str(caught.value)) < 500
        assert len(str(caught.value).splitlines()) == 1


def test_a_csv_is_written_whole(made, tmp_path):
    """A link to it is followed, as by plain writing, but an error half way leaves the old file."""
    matrix = made[3]
    path = tmp_path / "table.csv"
    text = matrix.to_csv(path)
    assert path.read_text(encoding="utf-8") == text
    before = path.stat().st_ino
    matrix.to_csv(path)
    assert path.stat().st_ino != before  # another file took its place, rather than the same being emptied first
