"""Datasets in order of their distance to a target."""

import json

import numpy as np
import pytest

import sotdd
from sotdd import LabelledData


@pytest.fixture
def target(rng):
    return rng.normal(size=(300, 4))


@pytest.fixture
def candidates(target):
    return {"far": target + 2, "near": target + 0.5, "middle": target + 1}


def test_the_nearest_comes_first(target, candidates):
    order = sotdd.rank(target, candidates, n_projections=200)
    assert [line.name for line in order] == ["near", "middle", "far"]
    assert [line.rank for line in order] == [1, 2, 3]
    assert not any(line.tied for line in order)
    assert (order.nearest, order.target, len(order)) == ("near", "target", 3)


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
    assert "= tied: noise does not tell them apart" in repr(order)
    assert "1=" in repr(order)


def test_a_small_sample_of_the_same_source_comes_first(rng):
    here = rng.normal(size=(2000, 4))
    order = sotdd.rank(here, {"moved": rng.normal(0.1, 1, size=(2000, 4)), "few": rng.normal(size=(50, 4))})
    assert order.nearest == "few"
    assert order["few"].value > order["moved"].value
    assert "sizes go from 50 to 2,000 points" in repr(order)


def test_candidates_in_a_list_are_named_by_number_or_by_themselves(target):
    own = LabelledData.of(target + 1, "mine")
    order = sotdd.rank(target, [target + 2, own], n_projections=100)
    assert [line.name for line in order] == ["mine", "0"]


def test_the_target_keeps_its_own_name(target):
    assert sotdd.rank(LabelledData.of(target, "here"), {"there": target + 1}, n_projections=64).target == "here"


def test_a_candidate_may_have_the_targets_name(target):
    order = sotdd.rank(target, {"target": target + 1, "target (target)": target + 2}, n_projections=64)
    assert order.target == "target (target) (target)"
    assert [line.name for line in order] == ["target", "target (target)"]
    named = LabelledData.of(target, "mine")
    assert sotdd.rank(named, {"mine": target + 1}, n_projections=64).target == "mine (target)"


def test_sketches_are_candidates_and_targets(target, candidates):
    projections = sotdd.Projections.fit([target, *candidates.values()], n_projections=200)
    sketches = {name: sotdd.sketch(data, projections) for name, data in candidates.items()}
    of_sketches = sotdd.rank(target, sketches)
    assert [line.name for line in of_sketches] == ["near", "middle", "far"]
    assert sotdd.rank(sotdd.sketch(target, projections), candidates).nearest == "near"
    mixed = sotdd.rank(target, {**candidates, "far": sketches["far"]})
    assert mixed["near"].value == pytest.approx(of_sketches["near"].value, rel=1e-3)


def test_a_peer_ranks_too(target, candidates):
    pytest.importorskip("ot", reason="OTDD needs POT")
    few = {name: data[:60] for name, data in candidates.items()}
    order = sotdd.rank(target[:60], few, method="otdd")
    assert [line.name for line in order] == ["near", "middle", "far"]
    for name, data in few.items():
        assert order[name].value == sotdd.distance(target[:60], data, method="otdd").value


def test_a_noise_floor_is_measured_for_every_candidate(rng, target):
    order = sotdd.rank(target, {"same": rng.normal(size=(200, 4)), "far": target + 2}, noise_floor=True)
    assert (order["same"].within_noise, order["far"].within_noise) == (True, False)
    assert order["far"].noise_floor > 0
    assert "~ within noise: no farther from the target than two samples of the two together" in repr(order)


def test_one_candidate(target):
    order = sotdd.rank(target, {"only": target + 1})
    assert [(line.rank, line.name, line.tied) for line in order] == [(1, "only", False)]
    assert order["only"].value == sotdd.distance(target, target + 1).value


@pytest.mark.parametrize("none", [{}, [], ()])
def test_no_candidates(target, none):
    with pytest.raises(sotdd.SotddError, match="there are no candidates: expected at least one"):
        sotdd.rank(target, none)


def test_an_unknown_name_is_told(target, candidates):
    with pytest.raises(sotdd.SotddError, match="there is no candidate 'else' here: the names are near, middle, far"):
        sotdd.rank(target, candidates, n_projections=64)["else"]


def test_repr_is_a_table(target):
    lines = repr(sotdd.rank(target, {"here": target, "there": target + 3}, n_projections=200)).splitlines()
    assert lines[0].split() == ["rank", "candidate", "distance"]
    assert [line.split()[:2] for line in lines[1:]] == [["1", "here"], ["2", "there"]]


def test_to_dict_is_json(target, candidates):
    order = sotdd.rank(target, candidates, n_projections=64)
    told = json.loads(json.dumps(order.to_dict()))
    assert told["target"] == "target"
    assert [(line["rank"], line["tied"], line["name"]) for line in told["ranking"]] == [
        (1, False, "near"), (2, False, "middle"), (3, False, "far"),
    ]  # fmt: skip
    assert [line["value"] for line in told["ranking"]] == [line.distance.value for line in order]


def test_features_must_fit(target):
    with pytest.raises(sotdd.SotddError, match="features"):
        sotdd.rank(target, {"other": np.zeros((10, 3))})


@pytest.mark.parametrize("candidates", [5, "a.csv", iter([]), None])
def test_candidates_of_another_kind_are_named_as_such(candidates):
    with pytest.raises(sotdd.SotddError, match=r"candidates is .*: expected a list of datasets, or a dict by name"):
        sotdd.rank([[0.0], [1.0]], candidates)
