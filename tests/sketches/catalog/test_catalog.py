"""Catalogs: what is added is kept, with awkward names and metadata, through one recipe."""

import pickle
import sys
from datetime import UTC, datetime

import numpy as np
import pytest

import sotdd
from sketches.catalog.cases import SMALL, labelled

pytest.importorskip("lancedb")


def test_what_is_added_is_there(tmp_path, sketches):
    catalog = sotdd.Catalog(tmp_path / "new")
    assert (len(catalog), list(catalog), catalog.names) == (0, [], ())
    assert "set 1" not in catalog
    assert not (tmp_path / "new").exists()
    before = datetime.now(UTC)
    catalog.add("set 1", sketches["set 1"], source="web", year=2024, score=0.5, checked=True, licence=None)
    again = sotdd.Catalog(str(tmp_path / "new"))
    assert "set 1" in again
    assert (len(again), list(again), repr(again)) == (1, ["set 1"], f"Catalog({str(tmp_path / 'new')!r}: 1 entry)")
    found = again.get("set 1")
    assert found.name == "set 1"
    assert np.array_equal(found.quantiles, sketches["set 1"].quantiles)
    entry = again.entry("set 1")
    assert (entry.n_points, entry.n_classes) == (151, 2)
    assert before <= entry.added <= datetime.now(UTC)
    assert entry.metadata == {"source": "web", "year": 2024, "score": 0.5, "checked": True, "licence": None}
    assert isinstance(entry.metadata["year"], int)
    assert entry.to_dict()["metadata"] == entry.metadata


AWKWARD = [
    "it's", "a''b", "back\\slash", "' OR 1=1 --", "50 %_", 'say "hi"', "числа ①", "name = 'x'", "`tick`", "a/b:c",
]  # fmt: skip


def test_awkward_names_and_texts(tmp_path, sketches):
    catalog = sotdd.Catalog(tmp_path / "it's a catalog")
    for name, sketch in zip(AWKWARD, sketches.values(), strict=False):
        catalog.add(name, sketch, said=name)
    assert catalog.names == tuple(sorted(AWKWARD))
    for name, sketch in zip(AWKWARD, sketches.values(), strict=False):
        assert name in catalog
        assert catalog.entry(name).metadata == {"said": name}
        assert np.array_equal(catalog.get(name).quantiles, sketch.quantiles)
        quoted = name.replace("'", "''")
        assert [entry.name for entry in catalog.entries(f"said = '{quoted}'")] == [name]
    catalog.remove("' OR 1=1 --")
    assert len(catalog) == len(AWKWARD) - 1


@pytest.mark.parametrize(
    ("given", "metadata", "said"),
    [
        *((lambda one, name=name: {name: one}, None, "the name of an entry is") for name in ("", "nul\0", "a\nb", 3)),
        (lambda one: [one], None, "sketches is a list"),
        (lambda one: {"new": one, "other": None}, None, "dataset 'other' is None"),
        (lambda one: {"new": one}, ["x"], "metadata is a list"),
        (lambda one: {"new": one}, {"new": None}, "the metadata of an entry is None"),
        (lambda one: {"new": one}, {"c": {}}, "metadata of 'c' but no sketch"),
        (lambda one: {"new": one, "b": one}, {"new": {"size": "large"}, "b": {"size": 3}}, "'size' is 3 but a string"),
    ],
)  # fmt: skip
def test_additions_that_are_refused(catalog, given, metadata, said):
    with pytest.raises(sotdd.SotddError, match=said):
        catalog.add_many(given(catalog.get("set 1")), metadata)
    assert len(catalog) == 60
    catalog.add_many({})


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"tags": ["a"]}, "metadata 'tags' is a list"),
        ({"x": float("nan")}, "a finite number"),
        ({"x": 2**60}, r"a finite number up to 2\^53"),
        ({"k": "\ud800"}, "metadata 'k' is .*: expected text"),
        ({"Source": "web"}, "expected lower-case letters"),
        ({"vector": 1}, "which every entry has"),
        ({"place": "ten"}, "metadata 'place' is 'ten' but a double"),
        ({"even": 1}, "metadata 'even' is 1 but a bool"),
    ],
)
def test_metadata_that_are_refused(catalog, sketches, metadata, said):
    with pytest.raises(sotdd.SotddError, match=said):
        catalog.add("new", sketches["set 1"], **metadata)
    assert "new" not in catalog


def test_a_taken_name_is_refused_or_overwritten(catalog, sketches):
    with pytest.raises(sotdd.SotddError, match=r"there is an entry 'set 1' in the catalog .*: choose another name"):
        catalog.add("set 1", sketches["set 2"], place=77)
    with pytest.raises(sotdd.SotddError, match="there is an entry 'set 2'"):
        catalog.add_many({"free": sketches["set 1"], "set 2": sketches["set 1"]})
    assert "free" not in catalog
    assert catalog.entry("set 1").metadata["place"] == 1
    catalog.add("set 1", sketches["set 2"], overwrite=True, colour="red")
    assert len(catalog) == 60
    assert catalog.entry("set 1").metadata == {"colour": "red"}
    assert np.array_equal(catalog.get("set 1").quantiles, sketches["set 2"].quantiles)
    assert catalog.entries("place = 1") == ()  # nothing is left of what it was
    assert [entry.name for entry in catalog.entries("colour = 'red'")] == ["set 1"]
    catalog.add("another", sketches["set 3"], overwrite=True)
    assert len(catalog) == 61


def test_remove(catalog, sketches):
    catalog.remove("set 5")
    assert len(catalog) == 59
    assert catalog.nearest(sketches["set 5"], k=1).names != ("set 5",)
    for call in (catalog.get, catalog.entry, catalog.remove):
        with pytest.raises(sotdd.SotddError, match=r"there is no entry 'set 5' .* only set 0, .* and 51 more"):
            call("set 5")


def test_a_new_catalog_takes_data(tmp_path, rng):
    """Its projections are fitted on what is added first: on all of it, or are those of a sketch among it."""
    data = {"a": labelled(rng), "b": labelled(rng, shift=1.0)}
    catalog = sotdd.Catalog(tmp_path / "new")
    catalog.add_many(data)
    assert catalog.projections.fingerprint == sotdd.Projections.fit(data).fingerprint
    assert catalog.nearest(data["b"], k=1).names == ("b",)
    other = sotdd.Catalog(tmp_path / "other")
    other.add_many({"data": data["a"], "sketch": catalog.get("b")})
    assert other.projections.fingerprint == catalog.projections.fingerprint


def test_one_recipe(catalog, rng, sketches):
    other = sotdd.Projections.fit(
        [labelled(rng, 500)], n_projections=64, seed=4, scale=None, label_law=sotdd.projections.Moments(), tilt=False
    )
    stranger = sotdd.sketch(labelled(rng), other, name="stranger", **SMALL)
    for call in (lambda: catalog.add("x", stranger), lambda: catalog.nearest(stranger)):
        with pytest.raises(sotdd.SotddError, match=r"'stranger' are through different projections: directions law is"):
            call()
    for name in catalog.names:
        catalog.remove(name)
    with pytest.raises(sotdd.SotddError, match="different projections"):  # even when it is empty
        sotdd.Catalog(catalog.path).add("x", stranger)
    assert len(catalog) == 0
    assert len(catalog.nearest(sketches["set 1"])) == 0
    assert catalog.projections.n_projections == 64


@pytest.mark.slow
def test_whole_sketches_fit_and_those_of_other_quantiles_do_not(catalog, rng, projections):
    data = labelled(rng, 700)
    for name, count in {"whole": None, "small": 32}.items():
        catalog.add(name, sotdd.sketch(data, projections, n_quantiles=count))
    assert catalog.get("whole").exact
    nearest = catalog.nearest(sotdd.sketch(data, projections, n_quantiles=32), k=2)
    assert set(nearest.names) == {"whole", "small"}
    with pytest.raises(sotdd.SotddError, match=r"'finer' has 64 quantiles but the catalog keeps 32"):
        catalog.add("x", sotdd.sketch(data, projections, n_quantiles=64, name="finer"))


def test_a_catalog_may_begin_with_a_whole_sketch(tmp_path, rng, projections):
    catalog = sotdd.Catalog(tmp_path / "whole")
    catalog.add("first", sotdd.sketch(labelled(rng, 40), projections))
    catalog.add("second", sotdd.sketch(labelled(rng, 4000), projections))
    assert len(catalog.nearest(labelled(rng, 100), k=2)) == 2
    assert catalog.sketch(labelled(rng, 4000)).n_quantiles == 384


class Coordinates:
    """A law of the user's own."""

    def describe(self):
        return {"law": "coordinates"}

    def draw(self, rng, n_projections, n_features):
        return sotdd.projections.Directions(np.eye(n_features)[rng.integers(n_features, size=n_projections)])


def test_projections_of_ones_own_are_compared_but_not_drawn(tmp_path, rng):
    own = sotdd.Projections.fit([labelled(rng)], n_projections=64, directions=Coordinates())
    catalog = sotdd.Catalog(tmp_path / "own")
    catalog.add("first", sotdd.sketch(labelled(rng), own, **SMALL))
    again = sotdd.Catalog(catalog.path)
    assert again.nearest(sotdd.sketch(labelled(rng), own, **SMALL)).names == ("first",)
    data = labelled(rng)
    for call in (lambda: again.projections, lambda: again.nearest(data), lambda: again.add("x", data)):
        with pytest.raises(sotdd.SotddError, match="cannot be drawn again"):
            call()


def test_places_without_a_catalog(tmp_path, sketches):
    absent = sotdd.Catalog(tmp_path / "typo")
    for call in (lambda: absent.nearest(sketches["set 1"]), lambda: absent.projections, absent.tidy):
        with pytest.raises(sotdd.SotddError, match=r"there is no catalog at .*typo.*: check the path"):
            call()
    with pytest.raises(sotdd.SotddError, match=r"there is no entry 'x' .* only none"):
        absent.get("x")
    assert not (tmp_path / "typo").exists()
    (tmp_path / "file").write_text("text")
    with pytest.raises(sotdd.SotddError, match="cannot write to the catalog"):
        sotdd.Catalog(tmp_path / "file").add("x", sketches["set 1"])
    with pytest.raises(sotdd.SotddError, match="path is"):
        sotdd.Catalog(3)


def test_a_newer_catalog_is_refused(tmp_path, sketches, monkeypatch):
    monkeypatch.setattr("sotdd.sketches.codec.VERSION", 2)
    sotdd.Catalog(tmp_path / "new").add("x", sketches["set 1"])
    monkeypatch.undo()
    with pytest.raises(sotdd.SotddError, match=r"version 2 .* update sotdd"):
        sotdd.Catalog(tmp_path / "new").nearest(sketches["set 1"])


def test_without_lancedb_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "lancedb", None)
    with pytest.raises(sotdd.SotddError, match=r"a catalog needs lancedb, .* pip install 'sotdd\[catalog\]'"):
        sotdd.Catalog(tmp_path / "new")


def test_a_catalog_travels_to_other_processes(catalog):
    assert len(catalog) == 60
    assert len(pickle.loads(pickle.dumps(catalog))) == 60
