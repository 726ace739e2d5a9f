"""The benchmarks run, and their yardstick computes the same distance."""

import re

import numpy as np
import pytest
import torch
from benchmarks import core, estimators, peers, plain_torch

import reference
import sotdd
from sotdd.peers.methods import METHODS


@pytest.mark.parametrize("m", [50, 37])
def test_the_plain_reading_agrees(rng, m):
    a = rng.normal(size=(50, 6)), rng.integers(0, 4, size=50)
    b = rng.normal(0.5, 1, size=(m, 6)), rng.integers(0, 3, size=m)
    drawn = reference.draw(rng, 30, 6)
    theirs = plain_torch.per_projection(
        *((torch.tensor(x), torch.tensor(y)) for x, y in (a, b)),
        *(torch.tensor(drawn[key]) for key in ("theta", "psi", "orders")),
    )
    ours = sotdd.distance(a, b, projections=sotdd.Projections.from_arrays(**drawn))
    np.testing.assert_allclose(ours.per_projection, theirs.numpy(), rtol=1e-4)


def test_the_benchmark_of_peers_runs_at_a_small_size():
    assert {method for method, _ in peers.METHODS.values()} == {"sotdd", *METHODS}
    found = peers.measure("otdd", {"max_samples": 50}, 100, patience=120)
    assert re.fullmatch(r"[\d.e+-]+ s, -?[\d,]+ MB", found), found
    assert peers.measure("otdd", {}, 100, patience=0.01) == "over 0 s"
    assert peers.label_distances_ratio(100).endswith(" ×")


def test_every_benchmark_runs_at_a_small_size():
    small = {"n": 200, "d": 8, "count": 64}
    lines = [
        *core.product(1, **small),
        *core.against_torch(1, **small),
        *core.classes(1, n=2000, d=8, count=64),
        *core.growth(1, **small),
        *core.cores(1, **small),
        *core.command_line(1),
        *core.memory(**small),
    ]
    assert len(lines) == 12
    assert all(any(digit.isdigit() for digit in line.measured) for line in lines)
    assert core.table(lines).count("\n") == 13


def test_every_technique_measures_the_same_distance(rng):
    pair = (
        (rng.normal(size=(40, 6)), rng.integers(0, 3, size=40)),
        (rng.normal(0.5, 1, size=(30, 6)), rng.integers(0, 2, size=30)),
    )
    plain, controlled = estimators.reference(pair, 4000, 2000)
    assert abs(plain.value - controlled.value) < 4 * np.hypot(plain.stderr, controlled.stderr)
    for measure in estimators.TECHNIQUES.values():
        found, took = estimators.replicates(measure, pair, 8, 256)
        values = np.array([one.value for one in found])
        assert abs(values.mean() - controlled.value) < 5 * values.std() / np.sqrt(8) + 4 * controlled.stderr
        assert estimators.coverage(found, controlled.value) >= 0.5
        assert took > 0
