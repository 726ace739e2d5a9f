"""Files of every version of every format, kept as they were written: they open for ever, and give what they gave.

`tests/fixtures/formats/make.py` writes the archive of a new version. An archive that is there is never written again.
"""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import sotdd
from sotdd.sketches.file import VERSION

ARCHIVES = sorted((Path(__file__).parents[1] / "fixtures" / "formats").glob("format-*.zip"))
SAME = {"rel": 1e-5}  # as another processor rounds


def points(shift, n=60, d=3):
    """What the files were made of, as `make.data` has it; written out again, so that neither can move unnoticed."""
    at = np.arange(n * d).reshape(n, d)
    return np.round(np.sin(1.7 * at) + shift, 6), [("cat", "dog")[row % 2] for row in range(n)]


@pytest.fixture(params=ARCHIVES, ids=lambda path: path.stem)
def kept(request, tmp_path):
    """The files of one version, unpacked, and the numbers that its sotdd gave for them."""
    with zipfile.ZipFile(request.param) as archive:
        archive.extractall(tmp_path)
    return tmp_path, json.loads((tmp_path / "numbers.json").read_text(encoding="utf-8"))


@pytest.fixture
def newest(tmp_path):
    """The files of the version that is written today."""
    with zipfile.ZipFile(ARCHIVES[-1]) as archive:
        archive.extractall(tmp_path)
    return tmp_path, json.loads((tmp_path / "numbers.json").read_text(encoding="utf-8"))


def test_there_is_an_archive_of_every_version():
    assert [path.stem for path in ARCHIVES] == [f"format-{version}" for version in range(1, VERSION + 1)]


def test_sketches_open_and_compare_as_they_did(kept):
    folder, numbers = kept
    a, b, half = (sotdd.Sketch.load(folder / f"{name}.sotdd") for name in ("a", "b", "a-half"))
    assert a.n_points == 60
    assert set(a.classes) == {"cat", "dog"}
    assert a.distance(b).value == pytest.approx(numbers["sketch"], **SAME)
    assert half.distance(b).value == pytest.approx(numbers["sketch"], rel=1e-3)


@pytest.mark.parametrize("kept", ARCHIVES[1:], indirect=True, ids=lambda path: path.stem)
def test_class_statistics_and_builders_open_and_go_on(kept):
    folder, _ = kept
    statistics = sotdd.ClassStatistics.load(folder / "a.statistics")
    assert statistics.counts == {"cat": 30, "dog": 30}
    builder = sotdd.SketchBuilder.load(folder / "a.builder")
    same = sotdd.sketch(points(0.0), builder.projections, n_quantiles=16)
    assert builder.finish("a").distance(same).value < 0.01
    assert builder.add(*points(0.5)).finish("more").n_points == 120


def test_catalogs_open_and_find_what_they_found(kept):
    pytest.importorskip("lancedb")
    folder, numbers = kept
    catalog = sotdd.Catalog(folder / "catalog")
    hits = catalog.nearest(sotdd.Sketch.load(folder / "a.sotdd"), k=2)
    assert [hit.name for hit in hits] == ["a", "b"]
    assert hits[1].metadata["year"] == 2025
    assert hits[1].distance.value == pytest.approx(numbers["catalog"], **SAME)


def test_sketches_of_many_features_draw_their_directions_again(newest):
    folder, numbers = newest
    wide = sotdd.Sketch.load(folder / "many-features.sotdd")
    assert sotdd.distance(wide, points(0.2, 20, 130)).value == pytest.approx(numbers["many features"], **SAME)


def test_builders_and_windows_compare_as_they_did(newest):
    folder, numbers = newest
    b = sotdd.Sketch.load(folder / "b.sotdd")
    builder = sotdd.SketchBuilder.load(folder / "a.builder")
    assert builder.finish("a").distance(b).value == pytest.approx(numbers["builder"], **SAME)
    window = sotdd.SketchWindow.load(folder / "days.window")
    assert list(window.names) == ["monday", "tuesday"]
    assert window.finish("days").distance(b).value == pytest.approx(numbers["window"], **SAME)


@pytest.mark.parametrize(
    ("load", "name"),
    [(sotdd.SketchBuilder.load, "a.builder"), (sotdd.ClassStatistics.load, "a.statistics")],
    ids=["builder", "statistics"],
)
def test_of_the_first_version_only_sketches_and_catalogs_open(load, name, tmp_path):
    """It is older than any release: builders counted in bins that lost outliers, and moments had no cut."""
    with zipfile.ZipFile(ARCHIVES[0]) as opened:
        opened.extract(name, tmp_path)
    with pytest.raises(sotdd.SotddError) as said:
        load(tmp_path / name)
    assert "\n" not in str(said.value)


def test_private_files_open_and_compare_as_they_did(newest):
    folder, numbers = newest
    statistics = sotdd.PrivateStatistics.load(folder / "a.private-statistics")
    assert list(statistics.classes) == ["cat", "dog"]
    released = sotdd.PrivateCounts.load(folder / "a.private-counts")
    found = released.finish("a").distance(sotdd.Sketch.load(folder / "b.sotdd"))
    assert found.value == pytest.approx(numbers["private"], **SAME)


def test_references_open_and_judge_as_they_did(newest):
    folder, numbers = newest
    reference = sotdd.DriftReference.load(folder / "a.reference")
    batch = points(0.5)
    assert reference.distance(batch).value == pytest.approx(numbers["reference, distance"], **SAME)
    assert reference.test(batch).statistic == pytest.approx(numbers["reference, statistic"], **SAME)


def test_a_file_of_a_later_version_is_refused_in_one_line(newest, monkeypatch):
    """As an older sotdd would see the files of today."""
    folder, _ = newest
    monkeypatch.setattr("sotdd.sketches.file.VERSION", VERSION - 1)
    with pytest.raises(sotdd.SotddError, match=rf"version {VERSION} of the format.*update sotdd\.$"):
        sotdd.Sketch.load(folder / "a.sotdd")
