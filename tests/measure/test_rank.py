"""Datasets in order of their distance to a target."""

import json
from dataclasses import replace

import numpy as np
import pytest

import sotdd
from sotdd import LabelledData
from sotdd.compute import ranking


@pytest.fixture
def target(rng):
    return rng.normal(size=(300, 4))


@pytest.fixture
def candidates(target):
    return {"far": target + 2, "near": target + 0.5, "middle": target + 1}


@pytest.mark.parametrize("method", ["sotdd", "otdd"])
def test_the_nearest_comes_first(target, candidates, method):
    few = {name: data[:60] for name, data in candidates.items()}
    order = sotdd.rank(target[:60], few, method=method)
    assert [(line.rank, line.name, line.tied) for line in order] == [
        (1, "near", False), (2, "middle", False), (3, "far", False),
    ]  # fmt: skip
    assert (order.nearest, order.target, len(order)) == ("near", "target", 3)
    told = json.loads(json.dumps(order.to_dict()))["ranking"]
    assert [line["value"] for line in told] == [line.distance.value for line in order]
    with pytest.raises(sotdd.SotddError, match="no candidate 'else' here: the names are near, middle, far"):
        order["else"]


def test_distances_are_those_of_the_matrix(target, candidates):
    """Every source is seen through the same projections in both; the target comes first."""
    order = sotdd.rank(target, candidates, n_projections=200)
    matrix = sotdd.pairwise({"target": target, **candidates}, n_projections=200)
    for name in candidates:
        assert order[name].value == matrix["target", name].value
        assert order[name].stderr == matrix["target", name].stderr
        assert order[name].excess == matrix["target", name].excess
    assert [line.name for line in order] == [line.name for line in matrix.ranking("target")]


def test_what_noise_does_not_tell_apart_is_tied(rng, target):
    same = {name: rng.normal(size=(300, 4)) for name in "abc"}
    order = sotdd.rank(target, {**same, "far": target + 3}, n_projections=200)
    assert [(line.rank, line.tied) for line in order] == [(1, True), (1, True), (1, True), (4, False)]
    assert [line.name for line in order][-1] == "far"
    assert "1=" in repr(order)


def test_a_small_sample_of_the_same_source_comes_first(rng):
    here = rng.normal(size=(2000, 4))
    order = sotdd.rank(here, {"moved": rng.normal(0.1, 1, size=(2000, 4)), "few": rng.normal(size=(50, 4))})
    assert order.nearest == "few"
    assert order["few"].value > order["moved"].value
    assert "50 to 2,000 points" in repr(order)


def test_sketches_are_candidates_and_targets(target, candidates):
    projections = sotdd.Projections.fit([target, *candidates.values()], n_projections=200)
    sketches = {name: sotdd.sketch(data, projections) for name, data in candidates.items()}
    of_sketches = sotdd.rank(target, sketches)
    assert [line.name for line in of_sketches] == ["near", "middle", "far"]
    assert sotdd.rank(sotdd.sketch(target, projections), candidates).nearest == "near"
    mixed = sotdd.rank(target, {**candidates, "far": sketches["far"]})
    assert mixed["near"].value == pytest.approx(of_sketches["near"].value, rel=1e-3)


def test_names_are_the_callers_own(target):
    mine = LabelledData.of(target + 1, "mine")
    assert [line.name for line in sotdd.rank(target, [target + 2, mine], n_projections=64)] == ["mine", "0"]
    assert sotdd.rank(mine, {"mine": target}, n_projections=64).target == "mine (target)"
    only = sotdd.rank(target, {"target": target + 1}, n_projections=64, noise_floor=True)
    assert (only.target, only.nearest) == ("target (target)", "target")
    assert only["target"].value == sotdd.distance(target, target + 1, n_projections=64).value
    assert only["target"].within_noise is False
    assert "~" in repr(sotdd.rank(target[::2], {"same": target[1::2]}, n_projections=64, noise_floor=True))


def test_long_rankings_compare_neighbours_only(target, monkeypatch):
    found = sotdd.distance(target, target + 1, n_projections=64, estimator="plain")
    asked, farther = [], ranking.clearly_farther
    monkeypatch.setattr(ranking, "clearly_farther", lambda *pair: asked.append(pair) or farther(*pair))
    steps = {str(k): replace(found, value=found.value + k, contributions=found.contributions + k) for k in range(50)}
    assert [line.rank for line in ranking.Ranking.of("target", steps)] == list(range(1, 51))
    ties = dict.fromkeys(map(str, range(50)), found)
    assert {line.rank for line in ranking.Ranking.of("target", ties)} == {1}
    assert len(asked) <= 4 * 50


@pytest.mark.parametrize("candidates", [{}, [], 5, "a.csv", iter([]), None, {"other": np.zeros((10, 3))}])
def test_candidates_that_cannot_be_ranked(target, candidates):
    with pytest.raises(sotdd.SotddError, match=r"candidates|features"):
        sotdd.rank(target, candidates)
