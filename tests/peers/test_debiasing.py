"""OTDD without its sampling floor, against an assignment solver in float64 and against what the floor hides."""

import itertools

import numpy as np
import pytest
from scipy import optimize
from scipy.spatial.distance import cdist

import sotdd
from sotdd import peers
from sotdd.basics.resources import Stream, generator

pytest.importorskip("ot", reason="OTDD needs POT")


def _assigned(cost):
    """The least cost of carrying one uniform sample to another: by assignment of copies, where sizes differ."""
    n, m = cost.shape
    size = np.lcm(n, m)
    whole = np.repeat(np.repeat(cost, size // n, axis=0), size // m, axis=1)
    return whole[optimize.linear_sum_assignment(whole)].mean()


def _bures(a, b):
    (mean, spread), (other, other_spread) = (
        (x.mean(axis=0), np.cov(x.T, bias=True).reshape(x.shape[1], -1)) for x in (a, b)
    )
    values, vectors = np.linalg.eigh(spread)
    root = vectors * np.sqrt(np.maximum(values, 0)) @ vectors.T  # few points leave it singular
    both = np.sum(np.sqrt(np.maximum(np.linalg.eigvalsh(root @ other_spread @ root), 0)))
    return np.sum((mean - other) ** 2) + np.trace(spread) + np.trace(other_spread) - 2 * both


def _power(a, b, inner, p):
    """OTDD to the power p, the slow way."""
    (x, y), (other, other_y) = a, b
    cost = cdist(x, other) ** p
    for c, k in itertools.product(np.unique(y), np.unique(other_y)):
        one, two = x[y == c], other[other_y == k]
        label = _assigned(cdist(one, two) ** p) if inner == "exact" else _bures(one, two) ** (p / 2)
        cost[np.ix_(y == c, other_y == k)] += label
    return _assigned(cost)


def _halves(data, size, seed):
    rows = generator(seed, Stream.DEBIASING_HALVES, 0).permutation(len(data[1]))
    return [tuple(part[rows[start : start + size]] for part in data) for start in (0, size)]


@pytest.mark.parametrize("inner", ["exact", "gaussian"])
@pytest.mark.parametrize("how", ["difference", "powers"])
@pytest.mark.parametrize("p", [1, 2])
def test_against_an_assignment_solver(rng, inner, how, p):
    a = rng.normal(size=(25, 3)), np.arange(25) % 2  # halves are as large as those of the smaller
    b = rng.standard_t(2, size=(17, 3)) + 4, np.arange(17) % 3
    (a1, a2), (b1, b2) = (_halves(data, 8, 7) for data in (a, b))
    powers = np.array([_power(*two, inner, p) for two in ((a1, b2), (a2, b1), (a1, a2), (b1, b2))])
    if how == "powers":
        expected = (powers[:2].mean() - powers[2:].mean()) ** (1 / p)
    else:
        expected = np.mean(powers[:2] ** (1 / p)) - np.mean(powers[2:] ** (1 / p))
    found = peers.otdd(a, b, inner=inner, debias=how, p=p, seed=7)
    assert found.value == pytest.approx(expected, rel=1e-4 if inner == "gaussian" else 1e-9)
    assert "halves of 8 points" in repr(found)


@pytest.mark.parametrize("how", ["difference", "powers"])
def test_samples_of_one_source_are_at_no_distance_and_a_shift_shows(rng, how):
    """Forty dimensions, one class: OTDD of a shift by s is √2 s; without debiasing the floor is several times that."""
    plain, same, shifted = [], [], []
    for seed in range(4):
        x, y = rng.normal(size=(2, 120, 40))
        plain.append(peers.otdd(x, y).value)
        same.append(peers.otdd(x, y, debias=how, seed=seed).value)
        shifted.append(peers.otdd(x, y + 0.8, debias=how, seed=seed).value)
    truth = np.sqrt(2 * 40) * 0.8
    assert np.mean(plain) > 1.2 * truth
    assert np.mean(same) < 0.25 * truth
    if how == "powers":  # whose difference is that of the sources, where the floors add up
        assert np.mean(shifted) == pytest.approx(truth, rel=0.05)
    else:
        assert 0.2 * truth < np.mean(shifted) < truth


@pytest.mark.parametrize("settings", [{}, {"inner": "gaussian"}, {"max_points": 10}])
def test_a_dataset_is_at_no_distance_from_itself(pair, settings):
    for how in ("difference", "powers"):
        assert peers.otdd(pair[0], pair[0], debias=how, **settings).value == pytest.approx(0, abs=1e-4)


def test_below_the_floor_is_zero_and_said(rng):
    x, y = rng.normal(size=(2, 40, 30))
    found = [peers.otdd(x, y, debias="difference", seed=seed) for seed in range(8)]
    below = [r for r in found if r.value == 0]
    assert 0 < len(below) < 8
    assert all("below the sampling floor" in repr(r) for r in below)


def test_what_it_cannot_do_is_said():
    with pytest.raises(sotdd.SotddError, match=r"^debias is 'x': expected 'difference' or 'powers'\.$"):
        peers.otdd(np.eye(4), np.eye(4), debias="x")
    with pytest.raises(sotdd.SotddError, match="debias needs two points of each dataset"):
        peers.otdd(np.eye(4)[:1], np.eye(4), debias="powers")
