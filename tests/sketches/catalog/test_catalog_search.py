"""Searches of catalogs: against brute force, by vectors, with conditions."""

from dataclasses import replace

import numpy as np
import pytest

import sotdd
from sketches.catalog.cases import SMALL, labelled
from sotdd.results import Ranking
from sotdd.sketches.catalog_store import CatalogSettings

pytest.importorskip("lancedb")


def test_the_nearest_are_those_of_brute_force(catalog, sketches, rng, projections):
    for _ in range(5):
        query = sotdd.sketch(labelled(rng, 300, shift=rng.uniform(0, 3)), projections, **SMALL)
        hits = catalog.nearest(query, k=7)
        every = {name: query.distance(sketches[name], estimator="plain") for name in sketches}
        assert hits.names == Ranking.of("", every, k=7).names
        for hit in hits:
            direct = query.distance(sketches[hit.name], estimator="plain")
            assert hit.distance.value == direct.value
            assert hit.distance.classes == direct.classes


@pytest.mark.parametrize("query_knows", [True, False])
def test_inner_products_of_vectors_are_distances_less_noise(rng, query_knows):
    """Sketches so small that vectors hold them whole; some entries do not know their noise."""
    projections = sotdd.Projections.fit([labelled(rng)], n_projections=16, scale=None)
    made = [
        sotdd.sketch(labelled(rng, 20 + 40 * i, shift=100.0 + 0.1 * i), projections, n_quantiles=8) for i in range(9)
    ]
    query, *others = made if query_knows else [replace(made[0], halves=None), *made[1:]]
    if query_knows:
        others[::3] = [replace(one, halves=None) for one in others[::3]]
    recipe = CatalogSettings.of(made[5])
    squares = [np.sum((query.vector(n_quantiles=8) - one.vector(n_quantiles=8)).astype(float) ** 2) for one in others]
    distances = [query.distance(one, estimator="plain") for one in others]
    found = -np.array([recipe.entry_vector(one) for one in others], np.float64) @ recipe.query_vector(query)
    expected = np.array(squares) - [one.value**2 - one.excess for one in distances]
    apart, expected = found - found.min(), expected - expected.min()  # in other units
    np.testing.assert_allclose(apart / apart.max(), expected / expected.max(), atol=1e-3)


def test_data_are_sketched_through_the_catalog(catalog, rng, projections):
    data = labelled(rng, 300)
    assert catalog.projections.fingerprint == projections.fingerprint
    by_data, by_sketch = catalog.nearest(data), catalog.nearest(sotdd.sketch(data, projections, **SMALL))
    assert by_data.names == by_sketch.names
    assert [hit.distance.value for hit in by_data] == [hit.distance.value for hit in by_sketch]
    catalog.add("data", data)
    (first,) = catalog.nearest(data, k=1)
    assert (first.name, first.distance.value) == ("data", 0)


def test_a_small_sample_of_the_same_source_comes_before_a_large_one_of_another(tmp_path, rng):
    here, few = rng.normal(size=(2000, 5)), rng.normal(size=(50, 5))
    moved = rng.normal([0.25, 0, 0, 0, 0], 1, size=(2000, 5))
    through = sotdd.Projections.fit([here], n_projections=200)
    catalog = sotdd.Catalog(tmp_path / "made")
    catalog.add_many({name: sotdd.sketch(data, through) for name, data in (("few", few), ("moved", moved))})
    hits = catalog.nearest(here)
    assert hits.names == ("few", "moved")
    assert hits["few"].value > hits["moved"].value  # by distance it would be the other way round
    assert [one["within_noise"] for one in hits.to_dict()["ranking"]] == [True, False]
    assert "beyond noise: distance minus its expected sampling noise" in repr(hits)


def test_sketches_that_do_not_know_their_halves_are_ranked_by_distance(tmp_path, rng):
    here, few = rng.normal(size=(2000, 5)), rng.normal(size=(50, 5))
    moved = rng.normal([0.25, 0, 0, 0, 0], 1, size=(2000, 5))
    through = sotdd.Projections.fit([here], n_projections=200)
    catalog = sotdd.Catalog(tmp_path / "made")
    sets = {"few": few, "moved": moved, "here": here}
    made = {name: replace(sotdd.sketch(data, through), halves=None) for name, data in sets.items()}
    here = made.pop("here")
    catalog.add_many(made)
    hits = catalog.nearest(here)
    assert hits.names == ("moved", "few")
    assert hits["moved"].within_noise is None
    assert "beyond noise" not in repr(hits)


def test_hits_read_as_a_table(catalog, rng):
    hits = catalog.nearest(labelled(rng), k=2, where="place < 10")
    lines = repr(hits).splitlines()
    assert lines[0].split() == ["rank", "candidate", "points", "distance", "beyond", "noise", "place", "even"]
    assert [line.split()[1] for line in lines[1:3]] == ["set", "set"]
    assert hits.to_dict()["ranking"][0]["metadata"] == hits.lines[0].metadata
    assert len(catalog.nearest(labelled(rng), where="place > 1000")) == 0


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
        ("lower(name) = 'set 1' OR starts_with(name, 'set 58')", {1, 58}),
    ],
)
def test_conditions(catalog, rng, where, expected):
    assert {entry.metadata["place"] for entry in catalog.entries(where)} == expected
    assert {hit.metadata["place"] for hit in catalog.nearest(labelled(rng), k=60, where=where)} == expected


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("colour = 'red'", "No field named"),
        ("place >", "cannot find 'place >' in the catalog .*sql parser error"),
        ("place = 'three'", "could not convert"),
        ("place", "boolean"),
        ("", "parser error"),
        ("name = '" + "x" * 2000, "parser|Unterminated"),
        ("name = '\ud800'", "cannot find"),
        ("n_points / 0 = 1", "Divide by zero"),
        (3, "where is 3: expected SQL"),
    ],
)
def test_conditions_that_cannot_be_used(catalog, rng, where, said):
    for call in (lambda: catalog.entries(where), lambda: catalog.nearest(labelled(rng), where=where)):
        with pytest.raises(sotdd.SotddError, match=said) as caught:
            call()
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 1000
