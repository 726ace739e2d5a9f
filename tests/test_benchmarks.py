"""The benchmarks run, and their yardstick computes the same distance."""

import re

import numpy as np
import pytest
import torch
from benchmarks import core, peers, plain_torch, scale

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


def test_the_benchmark_of_large_data_runs_at_a_small_size(tmp_path):
    paths = scale.write(tmp_path, 5, rows=2000)
    lines = [
        *scale.one_process(paths, 1, count=64, count_for_memory=64),
        *scale.two_workers(paths, 1, count=64),
    ]
    assert len(lines) == 5
    assert all(any(digit.isdigit() for digit in line.measured) for line in lines)
