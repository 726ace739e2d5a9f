"""Files of every version of the format, kept as they were written: they open for ever, and give what they gave.

`tests/fixtures/formats/make.py` writes the archive of a new version. An archive that is there is never written again,
from the first release on.
"""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import sotdd
from sotdd.sketches.codec import VERSION

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


def test_there_is_an_archive_of_every_version():
    assert [path.stem for path in ARCHIVES] == [f"format-{version}" for version in range(1, VERSION + 1)]


def test_files_open_and_give_what_they_gave(kept):
    folder, numbers = kept
    a, b, wide = (sotdd.Sketch.load(folder / f"{name}.sotdd") for name in ("a", "b", "many-features"))
    assert a.n_points == 60
    assert set(a.classes) == {"cat", "dog"}
    builder = sotdd.SketchBuilder.load(folder / "a.builder")
    reference = sotdd.DriftReference.load(folder / "a.reference")
    found = {
        "sketch": a.distance(b).value,
        "many features": sotdd.distance(wide, points(0.2, 20, 130)).value,  # whose directions are drawn again
        "builder": builder.finish("a").distance(b).value,
        "reference, distance": reference.distance(points(0.5)).value,
        "reference, statistic": reference.test(points(0.5)).statistic,
    }
    assert found == pytest.approx({name: numbers[name] for name in found}, **SAME)
    assert builder.add(*points(0.5)).finish("more").n_points == 120


def test_catalogs_open_and_find_what_they_found(kept):
    pytest.importorskip("lancedb")
    folder, numbers = kept
    catalog = sotdd.Catalog(folder / "catalog")
    hits = catalog.nearest(sotdd.Sketch.load(folder / "a.sotdd"), k=2)
    assert [hit.name for hit in hits] == ["a", "b"]
    assert hits.lines[1].metadata["year"] == 2025
    assert hits.lines[1].distance.value == pytest.approx(numbers["catalog"], **SAME)


def test_a_file_of_another_version_is_refused_in_one_line(kept, monkeypatch):
    folder, _ = kept
    monkeypatch.setattr("sotdd.sketches.codec.VERSION", VERSION + 1)
    with pytest.raises(sotdd.SotddError, match=rf"version {VERSION} of the format.*update sotdd"):
        sotdd.Sketch.load(folder / "a.sotdd")
