"""Sketches as files: what comes back, what is refused, and what a failure leaves."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import sotdd
from sotdd.sketches import file


def test_a_file_brings_everything_back(tmp_path, pair, projections):
    made = sotdd.sketch(pair[0], projections, name="stored")
    made.save(tmp_path / "a.sotdd")
    found = sotdd.Sketch.load(tmp_path / "a.sotdd")
    np.testing.assert_array_equal(found.quantiles, made.quantiles)
    np.testing.assert_array_equal(found.class_terms, made.class_terms)
    assert (found.name, found.classes, found.counts.tolist()) == ("stored", made.classes, made.counts.tolist())
    assert found.fingerprint == made.fingerprint == found.projections.fingerprint
    assert found.distance(made).value == 0
    assert sotdd.distance(found, pair[1]).value == sotdd.distance(made, pair[1]).value
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.sotdd"]


def test_a_file_is_readable_without_this_package(tmp_path, pair, projections):
    from safetensors import safe_open

    made = sotdd.sketch(pair[0], projections)
    made.save(tmp_path / "a.sotdd")
    with safe_open(tmp_path / "a.sotdd", framework="np") as opened:
        np.testing.assert_array_equal(opened.get_tensor("quantiles"), made.quantiles)
        assert json.loads(opened.metadata()["sotdd"])["recipe"]["seed"] == 3


def test_half_a_file_is_half_as_large_and_within_its_bound(tmp_path, pair, projections):
    made, other = (sotdd.sketch(data, projections) for data in pair)
    made.save(tmp_path / "whole")
    made.save(tmp_path / "half", half=True)
    found = sotdd.Sketch.load(tmp_path / "half")
    reach = made.quantiles[:, -1:] - made.quantiles[:, :1]
    assert (np.abs(found.quantiles - made.quantiles) <= reach / 65535 * 0.51 + 1e-6).all()
    assert os.path.getsize(tmp_path / "half") < 0.56 * os.path.getsize(tmp_path / "whole")
    assert found.distance(other).value == pytest.approx(made.distance(other).value, rel=1e-3)


def test_labels_that_json_cannot_hold_become_text(tmp_path, rng):
    x = rng.normal(size=(4, 2))
    y = [("a", 1), ("a", 1), ("b", 2), ("b", 2)]
    made = sotdd.sketch((x, y), sotdd.Projections.fit([x], n_projections=64))
    made.save(tmp_path / "a")
    assert sotdd.Sketch.load(tmp_path / "a").classes == ("('a', 1)", "('b', 2)")


class Coordinates:
    """A law of the user's own."""

    def describe(self):
        return {"law": "coordinates"}

    def draw(self, rng, n_projections, n_features):
        return sotdd.projections.Directions(np.eye(n_features)[rng.integers(n_features, size=n_projections)])


def test_own_laws_come_back_without_projections_to_draw_from(tmp_path, pair):
    own = sotdd.Projections.fit(list(pair), n_projections=64, directions=Coordinates())
    a, b = (sotdd.sketch(data, own) for data in pair)
    a.save(tmp_path / "a")
    found = sotdd.Sketch.load(tmp_path / "a")
    assert found.projections is None
    assert found.distance(b).value == a.distance(b).value
    with pytest.raises(sotdd.SotddError, match="cannot be drawn again"):
        sotdd.distance(found, pair[1])


def test_damage_is_found(tmp_path, pair, projections, rng):
    path = tmp_path / "a"
    small = sotdd.sketch(pair[0], projections, n_quantiles=4)
    small.save(path)
    whole = path.read_bytes()
    for cut in [0, 1, 7, 8, 100, len(whole) // 2, len(whole) - 1]:
        path.write_bytes(whole[:cut])
        with pytest.raises(sotdd.SotddError, match="not a whole sketch"):
            sotdd.Sketch.load(path)
    for place in rng.integers(len(whole), size=200):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with pytest.raises(sotdd.SotddError, match=r"not a whole sketch|checksum|version"):
            sotdd.Sketch.load(path)


def test_a_newer_format_is_refused(tmp_path, pair, projections, monkeypatch):
    monkeypatch.setattr(file, "VERSION", 4)
    sotdd.sketch(pair[0], projections).save(tmp_path / "new")
    monkeypatch.undo()
    with pytest.raises(sotdd.SotddError, match=r"version 4 .* update sotdd"):
        sotdd.Sketch.load(tmp_path / "new")


def test_other_files_are_refused(tmp_path, pair, projections):
    from safetensors.numpy import save_file

    save_file({"x": np.zeros(3)}, tmp_path / "other")
    for name in ("other", "missing", "."):
        with pytest.raises(sotdd.SotddError, match=r"not a whole sketch|cannot read"):
            sotdd.Sketch.load(tmp_path / name)
    with pytest.raises(sotdd.SotddError, match="cannot write"):
        sotdd.sketch(pair[0], projections).save(tmp_path / "no folder" / "a")
    (tmp_path / "kept").mkdir()
    with pytest.raises(sotdd.SotddError, match="cannot write"):
        sotdd.sketch(pair[0], projections).save(tmp_path / "kept")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["kept", "other"]


def test_a_full_disk_leaves_the_old_file(tmp_path, pair, projections, monkeypatch):
    made = sotdd.sketch(pair[0], projections)
    made.save(tmp_path / "a")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sotdd.basics.files.os.fsync", full)
    with pytest.raises(sotdd.SotddError, match="no space left"):
        sotdd.sketch(pair[1], projections).save(tmp_path / "a")
    assert sotdd.Sketch.load(tmp_path / "a").distance(made).value == 0
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_files_of_the_first_version_open():
    """Written before sketches knew what they lost, before moments were cut: they open and compare as they did."""
    folder = Path(__file__).parent / "data"
    a, b = (sotdd.Sketch.load(folder / f"version-1-{name}.sotdd") for name in "ab")
    assert a.distance(b).value == pytest.approx(0.444575214813074, rel=1e-6)
    assert a.distance(b).sketch_error is None
    with pytest.raises(sotdd.SotddError, match="cannot be drawn again"):
        sotdd.distance(a, np.zeros((5, 3)))
