"""What results are asked for is checked; each of these raised something foreign once."""

from decimal import Decimal

import numpy as np
import pytest

import sotdd

X = np.random.default_rng(0).normal(size=(12, 2))


@pytest.fixture(scope="module")
def why():
    return sotdd.explain((X, np.arange(12) % 3), (X + 1, np.arange(12) % 2), n_projections=8, n_splits=19)


@pytest.mark.parametrize("limit", [2.5, "x", -1, 0, True, 10**30, np.nan])
def test_a_table_has_a_count_of_lines(why, limit):
    with pytest.raises(sotdd.SotddError, match=r"limit is .*: expected"):
        why.table(limit)
    assert "… and 1 more" in why.table(np.int64(2))
    assert "… and" not in why.table(None)


@pytest.mark.parametrize("side", [2, -1, 0.5, "x", None, [[1]], np.array([0, 1])])
def test_lines_are_of_one_of_two_sides(why, side):
    with pytest.raises(sotdd.SotddError, match="expected 0 or 1"):
        why.lines(side)
    assert len(why.lines(np.int64(0))) == 3


@pytest.mark.parametrize("strange", [None, "x", np.zeros(2)])
def test_odd_questions_of_distances_and_rankings(strange):
    ranking = sotdd.rank(X, [X + 1], n_projections=4)
    with pytest.raises(sotdd.SotddError, match="expected True or False"):
        ranking["0"].to_dict(per_projection=strange)
    with pytest.raises(sotdd.SotddError, match="there is no candidate"):
        ranking[strange]


@pytest.mark.parametrize("levels", [0.5, None, "x", [2], [np.nan], [Decimal("0.5")], np.array("x"), [[0.5]]])
def test_quantiles_are_of_levels(levels):
    result = sotdd.test(X, X + 1, n_permutations=9, n_projections=4)
    with pytest.raises(sotdd.SotddError, match="expected numbers from 0 to 1"):
        result.quantiles(levels)
    assert list(result.quantiles(iter([0.25, np.float32(0.5)]))) == [0.25, 0.5]


def test_a_limit_of_an_absurd_level_is_a_number():
    floor = sotdd.NoiseFloor(np.array([1e-3, 1.0]), 2.0, 0.5)
    assert floor.limit(0.5) < floor.limit(1 - 1e-16) < np.inf
