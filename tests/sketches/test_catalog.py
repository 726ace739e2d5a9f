"""Catalogs: against brute force, with awkward names, filters and metadata."""

import pickle
import shutil
import sys
from datetime import UTC, datetime

import numpy as np
import pytest

import sotdd

pytest.importorskip("lancedb")

SMALL = {"n_quantiles": 32}


def labelled(rng, n=200, shift=0.0, classes=3):
    labels = rng.integers(classes, size=n)
    return rng.normal(size=(n, 4)) * rng.uniform(0.5, 1.5, size=4) + 0.3 * labels[:, None] + shift, labels


@pytest.fixture(scope="module")
def projections():
    return sotdd.Projections.fit([labelled(np.random.default_rng(1), 500)], n_projections=64, seed=3)


@pytest.fixture(scope="module")
def sketches(projections):
    rng = np.random.default_rng(2)
    return {
        f"set {i}": sotdd.sketch(labelled(rng, 150 + i, shift=0.05 * i, classes=1 + i % 4), projections, **SMALL)
        for i in range(60)
    }


@pytest.fixture(scope="module")
def original(tmp_path_factory, sketches):
    made = sotdd.Catalog(tmp_path_factory.mktemp("original") / "catalog")
    made.add_many(sketches, {name: {"place": i, "even": i % 2 == 0} for i, name in enumerate(sketches)})
    return made


@pytest.fixture
def catalog(tmp_path, original):
    """A copy of one's own."""
    shutil.copytree(original.path, tmp_path / "catalog")
    return sotdd.Catalog(tmp_path / "catalog")


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


def test_the_nearest_are_those_of_brute_force(catalog, sketches, rng, projections):
    for _ in range(5):
        query = sotdd.sketch(labelled(rng, 300, shift=rng.uniform(0, 3)), projections, **SMALL)
        hits = catalog.nearest(query, k=7)
        expected = sorted(sketches, key=lambda name: query.distance(sketches[name]).excess)
        assert hits.names == tuple(expected[:7])
        assert hits.sure
        for hit in hits:
            direct = query.distance(sketches[hit.name])
            assert hit.distance.value == direct.value
            assert hit.distance.classes == direct.classes


def test_data_are_sketched_through_the_catalog(catalog, rng, projections):
    data = labelled(rng, 300)
    assert catalog.projections.fingerprint == projections.fingerprint
    by_data, by_sketch = catalog.nearest(data), catalog.nearest(sotdd.sketch(data, projections, **SMALL))
    assert by_data.names == by_sketch.names
    assert [hit.distance.value for hit in by_data] == [hit.distance.value for hit in by_sketch]
    catalog.add("data", data)
    (first,) = catalog.nearest(data, k=1)
    assert (first.name, first.distance.value) == ("data", 0)


def test_long_sketches_are_searched_by_projected_vectors(tmp_path, rng):
    """Clusters of datasets, so that the nearest are told apart, and vectors of 1,024 instead of 8,192 numbers."""
    centres = rng.normal(size=(40, 4))
    data = {f"{c} {i}": rng.normal(size=(200, 4)) + centres[c] + 0.05 * i for c in range(40) for i in range(10)}
    projections = sotdd.Projections.fit(data, n_projections=128)
    sketches = {name: sotdd.sketch(points, projections, n_quantiles=64) for name, points in data.items()}
    catalog = sotdd.Catalog(tmp_path / "catalog")
    catalog.add_many(sketches)
    right = 0
    for c in range(40):
        query = sotdd.sketch(rng.normal(size=(300, 4)) + centres[c], projections, n_quantiles=64)
        hits = catalog.nearest(query)
        right += len(set(hits.names) & set(sorted(sketches, key=lambda n: query.distance(sketches[n]).value)[:10]))
    assert right >= 0.99 * 400


def test_large_catalogs_are_searched_by_an_index(tmp_path, rng, projections, sketches, monkeypatch):
    monkeypatch.setattr("sotdd.sketches.catalog.store._INDEXED", 300)
    near = {f"{name} {i}": one for name, one in sketches.items() for i in range(5)}
    catalog = sotdd.Catalog(tmp_path / "catalog")
    catalog.add_many(near)
    before = catalog.nearest(sketches["set 30"], k=15)
    catalog.tidy()
    assert len(catalog._store._entries().list_indices()) == 1
    catalog.add("late", sketches["set 30"])  # which the index does not know yet
    after = catalog.nearest(sketches["set 30"], k=16)
    assert set(after.names) == {*before.names, "late"}
    catalog.tidy()
    assert set(catalog.nearest(sketches["set 30"], k=16).names) == set(after.names)
    assert len(catalog.nearest(sketches["set 30"], where="name = 'late'")) == 1


def test_a_search_that_stops_early_says_so(tmp_path, catalog, rng, projections):
    alike = sotdd.Catalog(tmp_path / "alike")
    alike.add_many({str(i): sotdd.sketch(labelled(rng), projections, **SMALL) for i in range(30)})
    hits = alike.nearest(labelled(rng), k=5, max_compared=6)
    assert (len(hits), hits.compared, hits.sure) == (5, 6, False)
    assert repr(hits).endswith("others may be about as near: the search stopped after 6 comparisons")
    assert alike.nearest(labelled(rng), k=5).sure
    far = catalog.nearest(labelled(rng), k=1000)
    assert (len(far), far.compared, far.sure) == (60, 60, True)


def test_a_small_sample_of_the_same_source_comes_before_a_large_one_of_another(tmp_path, rng):
    here, few = rng.normal(size=(2000, 5)), rng.normal(size=(50, 5))
    moved = rng.normal([0.25, 0, 0, 0, 0], 1, size=(2000, 5))
    through = sotdd.Projections.fit([here], n_projections=200)
    catalog = sotdd.Catalog(tmp_path / "made")
    catalog.add_many({name: sotdd.sketch(data, through) for name, data in (("few", few), ("moved", moved))})
    hits = catalog.nearest(here)
    assert hits.names == ("few", "moved")
    assert hits[0].distance.value > hits[1].distance.value  # by distance it would be the other way round
    assert hits.ranked_by == hits[0].ranked_by == hits.to_dict()["hits"][0]["ranked_by"] == "excess"
    assert hits[0].distance.within_noise is None  # the floor is too rough to say so
    assert hits.sure
    assert "the order is by what is beyond the noise of these sizes" in hits.remark


def test_sketches_of_streams_are_ranked_by_distance(tmp_path, rng):
    here, few = rng.normal(size=(2000, 5)), rng.normal(size=(50, 5))
    moved = rng.normal([0.25, 0, 0, 0, 0], 1, size=(2000, 5))
    through = sotdd.Projections.fit([here], n_projections=200)
    catalog = sotdd.Catalog(tmp_path / "made")
    catalog.add_many({name: sotdd.sketch_stream([data], through) for name, data in (("few", few), ("moved", moved))})
    hits = catalog.nearest(sotdd.sketch_stream([here], through))
    assert hits.names == ("moved", "few")
    assert hits.ranked_by == hits[0].ranked_by == "distance"
    assert hits.rows()[0][:4] == ["", "name", "distance", "points"]


def test_hits_read_as_a_table(catalog, rng):
    hits = catalog.nearest(labelled(rng), k=2, where="place < 10")
    lines = repr(hits).splitlines()
    assert lines[0].split() == ["name", "distance", "excess", "points", "classes", "place", "even"]
    assert lines[1].startswith("1  set ")
    assert lines[2].startswith("2  set ")
    assert [hit.name for hit in hits[:2]] == list(hits.names)
    assert hits.to_dict()["hits"][0]["distance"]["value"] == hits[0].distance.value
    assert repr(catalog.nearest(labelled(rng), where="place > 1000")) == "no entry matches"


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("place < 3", {0, 1, 2}),
        ("place >= 58 AND even", {58}),
        ("NOT even AND place < 4", {1, 3}),
        ("name = 'set 7'", {7}),
        ("name LIKE 'set 5_' AND n_classes = 1", {52, 56}),
        ("n_points > 208", {59}),
        ("place IN (1, 2) OR name = 'set 4'", {1, 2, 4}),
        ("added > timestamp '2020-01-01' AND place = 9", {9}),
        ("added < timestamp '2020-01-01'", set()),
        ("place IS NULL", set()),
    ],
)
def test_conditions(catalog, rng, where, expected):
    assert {entry.metadata["place"] for entry in catalog.entries(where)} == expected
    assert {hit.metadata["place"] for hit in catalog.nearest(labelled(rng), k=60, where=where)} == expected


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("colour = 'red'", "No field named"),
        ("place >", "expected an SQL condition on name, n_points, n_classes, added, place, even"),
        ("place = 'three'", "could not convert"),
        ("place", "boolean"),
        ("", "where is ''"),
        (3, "where is 3: expected SQL"),
    ],
)
def test_conditions_that_cannot_be_used(catalog, rng, where, said):
    for call in (lambda: catalog.entries(where), lambda: catalog.nearest(labelled(rng), where=where)):
        with pytest.raises(sotdd.SotddError, match=said) as caught:
            call()
        assert ".rs" not in str(caught.value)
        assert "\n" not in str(caught.value)


AWKWARD = [
    "it's",
    "a''b",
    "back\\slash",
    "' OR 1=1 --",
    "50 %_",
    'say "hi"',
    "числа ①",
    "name = 'x'",
    "`tick`",
    "a/b:c",
]


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
    catalog.rename("' OR 1=1 --", "x' OR 'x' = 'x")
    catalog.remove("x' OR 'x' = 'x")
    assert len(catalog) == len(AWKWARD) - 1


@pytest.mark.parametrize("name", ["", " ", "two\nlines", "nul\0", 3, None])
def test_names_that_are_refused(catalog, sketches, name):
    with pytest.raises(sotdd.SotddError, match="the name of an entry is"):
        catalog.add(name, sketches["set 1"])
    assert len(catalog) == 60


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"tags": ["a"]}, "metadata 'tags' is a list: expected text, a number, True, False or None"),
        ({"day": datetime(2024, 1, 1, tzinfo=UTC)}, "metadata 'day' is a datetime"),
        ({"x": float("nan")}, "expected a finite number"),
        ({"x": 2**60}, r"expected a finite number up to 2\^53"),
        ({"Source": "web"}, "expected lower-case letters"),
        ({"a b": 1}, "expected lower-case letters"),
        ({"_rowid": 1}, "expected lower-case letters"),
        ({"vector": 1}, "which every entry has"),
        ({"place": "ten"}, "metadata 'place' is a number and text"),
        ({"even": 1}, "metadata 'even' is true or false and a number"),
    ],
)
def test_metadata_that_are_refused(catalog, sketches, metadata, said):
    with pytest.raises(sotdd.SotddError, match=said):
        catalog.add("new", sketches["set 1"], **metadata)
    assert "new" not in catalog


def test_metadata_of_one_call_are_of_one_kind(catalog, sketches):
    two = {"a": sketches["set 1"], "b": sketches["set 2"]}
    with pytest.raises(sotdd.SotddError, match="metadata 'size' is text and a number"):
        catalog.add_many(two, {"a": {"size": "large"}, "b": {"size": 3}})
    with pytest.raises(sotdd.SotddError, match="metadata of 'c' but no sketch"):
        catalog.add_many(two, {"c": {}})
    catalog.add_many({})
    assert len(catalog) == 60


def test_a_taken_name_is_refused_or_overwritten(catalog, sketches):
    with pytest.raises(sotdd.SotddError, match=r"there is an entry 'set 1' in the catalog .* already"):
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


def test_rename_and_remove(catalog, sketches):
    before = catalog.entry("set 5")
    catalog.rename("set 5", "five")
    after = catalog.entry("five")
    assert (after.metadata, after.added, after.n_points) == (before.metadata, before.added, before.n_points)
    assert catalog.entries("place = 5") == (after,)
    assert np.array_equal(catalog.get("five").quantiles, sketches["set 5"].quantiles)
    assert catalog.nearest(sketches["set 5"], k=1).names == ("five",)
    with pytest.raises(sotdd.SotddError, match="there is an entry 'set 6'"):
        catalog.rename("five", "set 6")
    with pytest.raises(sotdd.SotddError, match="there is an entry 'five'"):
        catalog.rename("five", "five")
    catalog.remove("five")
    assert len(catalog) == 59
    for call in (catalog.get, catalog.entry, catalog.remove, lambda name: catalog.rename(name, "x")):
        with pytest.raises(sotdd.SotddError, match=r"there is no entry 'five' .* only set 0, .* and 51 more"):
            call("five")


@pytest.mark.parametrize(
    "meanwhile", ["the new name is taken", "the old entry is replaced", "the old entry is removed"]
)
def test_rename_beside_another_process(catalog, sketches, monkeypatch, meanwhile):
    """What another process does between looking and renaming is kept, and nothing is lost."""
    other = sotdd.Catalog(catalog.path)
    swap = type(catalog._store).replace

    def late(store, old, new):
        if meanwhile == "the new name is taken":
            other.add("new", sketches["set 9"], place=9)
        elif meanwhile == "the old entry is replaced":
            other.add("set 1", sketches["set 9"], overwrite=True, place=9)
        else:
            other.remove("set 1")
        return swap(store, old, new)

    monkeypatch.setattr(type(catalog._store), "replace", late)
    with pytest.raises(sotdd.SotddError, match=r"there is an entry 'new'|changed by another process"):
        catalog.rename("set 1", "new")
    found = {entry.name: entry.metadata["place"] for entry in other.entries("place < 2 or place = 9")}
    expected = {"set 0": 0, "set 9": 9}
    if meanwhile == "the new name is taken":
        expected |= {"set 1": 1, "new": 9}
    elif meanwhile == "the old entry is replaced":
        expected["set 1"] = 9
    assert found == expected


def test_one_recipe(catalog, rng, sketches):
    other = sotdd.Projections.fit([labelled(rng, 500)], n_projections=64, seed=4, scale=None, label_law=sotdd.Moments())
    stranger = sotdd.sketch(labelled(rng), other, name="stranger", **SMALL)
    for call in (lambda: catalog.add("x", stranger), lambda: catalog.nearest(stranger)):
        with pytest.raises(sotdd.SotddError, match=r"'stranger' are through different projections: seed is 3 and 4"):
            call()
    for name in catalog.names:
        catalog.remove(name)
    with pytest.raises(sotdd.SotddError, match="different projections"):  # even when it is empty
        sotdd.Catalog(catalog.path).add("x", stranger)
    assert len(catalog) == 0
    assert len(catalog.nearest(sketches["set 1"])) == 0
    assert catalog.projections.n_projections == 64


def test_finer_and_whole_sketches_fit_coarser_ones_do_not(catalog, rng, projections):
    data = labelled(rng, 700)
    for name, count in {"finer": 64, "whole": None, "small": 32}.items():
        catalog.add(name, sotdd.sketch(data, projections, n_quantiles=count))
    assert catalog.get("finer").n_quantiles == 64
    assert catalog.get("whole").exact
    assert set(catalog.nearest(sotdd.sketch(data, projections, n_quantiles=32), k=3).names) == {
        "finer",
        "whole",
        "small",
    }
    with pytest.raises(sotdd.SotddError, match=r"'coarse' has 48 quantiles but the catalog .* keeps 32"):
        catalog.add("x", sotdd.sketch(data, projections, n_quantiles=48, name="coarse"))


def test_a_catalog_may_begin_with_a_whole_sketch(tmp_path, rng, projections):
    catalog = sotdd.Catalog(tmp_path / "whole")
    catalog.add("first", sotdd.sketch(labelled(rng, 40), projections))
    catalog.add("second", sotdd.sketch(labelled(rng, 4000), projections))
    assert catalog.nearest(labelled(rng, 100), k=2).sure
    assert catalog.sketch(labelled(rng, 4000)).n_quantiles == 512


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
    for call in (
        lambda: again.projections,
        lambda: again.nearest(labelled(rng)),
        lambda: again.add("x", labelled(rng)),
    ):
        with pytest.raises(sotdd.SotddError, match="cannot be drawn again"):
            call()


def test_places_without_a_catalog(tmp_path, rng, sketches):
    absent = sotdd.Catalog(tmp_path / "typo")
    for call in (lambda: absent.nearest(sketches["set 1"]), lambda: absent.projections, absent.tidy,
                 lambda: absent.add("x", labelled(rng))):  # fmt: skip
        with pytest.raises(sotdd.SotddError, match=r"there is no catalog at .*typo.*: check the path"):
            call()
    with pytest.raises(sotdd.SotddError, match=r"there is no entry 'x' .* only none"):
        absent.get("x")
    assert not (tmp_path / "typo").exists()
    (tmp_path / "file").write_text("text")
    with pytest.raises(sotdd.SotddError, match="cannot write to the catalog"):
        sotdd.Catalog(tmp_path / "file").add("x", sketches["set 1"])
    for wrong in (3, "", None):
        with pytest.raises(sotdd.SotddError, match="path is"):
            sotdd.Catalog(wrong)


def test_a_newer_catalog_is_refused(tmp_path, sketches, monkeypatch):
    from sotdd.sketches.catalog import store

    monkeypatch.setattr(store, "_VERSION", 2)
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
