"""Datasets in order of their distance to a target."""

import json
from dataclasses import replace

import numpy as np
import pytest

import sotdd
from sotdd import LabelledData
from sotdd.compute import matrix


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
    of_matrix = matrix.ranking("target")
    assert [(line.name, line.rank) for line in order] == [(line.name, line.rank) for line in of_matrix]
    assert (order.target, order.best, order.nearest) == (of_matrix.target, of_matrix.best, matrix.nearest("target"))
    assert list(order.to_pandas().columns) == list(of_matrix.to_pandas().columns)


def test_the_answer_is_what_noise_cannot_tell_apart_from_the_first(rng, target):
    same = {name: rng.normal(size=(300, 4)) for name in "abc"}
    order = sotdd.rank(target, {**same, "far": target + 3}, n_projections=200)
    assert [(line.rank, line.tied) for line in order] == [(1, True), (1, True), (1, True), (4, False)]
    assert sorted(order.best) == ["a", "b", "c"]
    assert order.nearest == order.best[0] == order.names[0]
    assert order.to_dict()["best"] == list(order.best)
    header, *lines = repr(order).splitlines()
    assert header.split()[:4] == ["rank", "candidate", "points", "distance"]
    assert [line.split()[0] for line in lines[:4]] == ["1=", "1=", "1=", "4"]
    assert lines[4] == f"nearest: one of these 3, which noise cannot tell apart: {', '.join(order.best)}"
    assert lines[4] == order.answer
    assert sotdd.rank(target, {"only": target + 3}, n_projections=64).answer == "nearest: only"


def test_large_shifts_come_after_a_small_sample_of_the_same_source(rng):
    here = rng.normal(size=(2000, 20))
    sources = {"moved": rng.normal(0.15, 1, size=(2000, 20)), "few": rng.normal(size=(40, 20))}
    order = sotdd.rank(here, sources, n_projections=200)
    assert order.nearest == "few"
    assert order["few"].value > order["moved"].value


def test_of_two_that_noise_cannot_tell_apart_the_one_with_less_noise_comes_first(rng):
    """By the excess alone the small one would come first about every other time."""
    small_first = 0
    for _ in range(20):
        here, large, small = (rng.normal(size=(n, 4)) for n in (1000, 2000, 40))
        order = sotdd.rank(here, {"small": small, "large": large}, n_projections=64)
        assert sorted(order.best) == ["large", "small"]
        small_first += order.nearest == "small"
    assert small_first <= 4


def test_neither_order_nor_names_of_candidates_matter(rng, target):
    sources = {f"shift {step}": rng.normal(step / 10, 1, size=(100 + 80 * step, 4)) for step in range(6)}
    order = sotdd.rank(target, sources, n_projections=200)
    turned = sotdd.rank(target, dict(reversed(sources.items())), n_projections=200)
    assert [(line.name, line.rank) for line in turned] == [(line.name, line.rank) for line in order]
    renamed = {name: f"{9 - place} other" for place, name in enumerate(sources)}
    others = sotdd.rank(target, {renamed[name]: data for name, data in sources.items()}, n_projections=200)
    assert [(line.name, line.rank) for line in others] == [(renamed[line.name], line.rank) for line in order]


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
    asked, farther = [], matrix.clearly_farther
    monkeypatch.setattr(matrix, "clearly_farther", lambda *pair: asked.append(pair) or farther(*pair))
    steps = {str(k): replace(found, value=found.value + k, contributions=found.contributions + k) for k in range(50)}
    assert [line.rank for line in matrix.Ranking.of("target", steps)] == list(range(1, 51))
    ties = dict.fromkeys(map(str, range(50)), found)
    assert {line.rank for line in matrix.Ranking.of("target", ties)} == {1}
    assert len(asked) <= 4 * 50
    assert matrix.Ranking.of("target", ties, k=1).lines[0].tied


def test_ties_with_the_first_need_not_follow_each_other(target):
    """One that is too noisy to tell apart from the first shares its rank, though a third one lies between."""
    found = sotdd.distance(target, target + 1, n_projections=64, estimator="plain", noise_floor=True)

    def stand(excess, noise):
        contributions = np.full_like(found.contributions, 1 + excess)
        floor = replace(found.noise, distances=np.sqrt(1 + noise * np.linspace(-1, 1, 9)))
        value = float(np.sqrt(contributions.mean()))
        return replace(found, value=value, contributions=contributions, noise=floor)

    distances = {"first": stand(0.0, 0.01), "second": stand(0.1, 0.01), "noisy": stand(0.3, 0.9)}
    order = matrix.Ranking.of("target", distances)
    assert [(line.rank, line.name) for line in order] == [(1, "first"), (1, "noisy"), (3, "second")]


@pytest.mark.parametrize("candidates", [{}, [], 5, "a.csv", iter([]), None, {"other": np.zeros((10, 3))}])
def test_candidates_that_cannot_be_ranked(target, candidates):
    with pytest.raises(sotdd.SotddError, match=r"candidates|features"):
        sotdd.rank(target, candidates)
