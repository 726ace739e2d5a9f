"""Noise floors: what two samples of the same data would give."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import sotdd
from sotdd import commands
from sotdd.comparison import compare
from sotdd.engines.cpu import CpuEngine
from sotdd.engines.torch import TorchEngine
from sotdd.inputs import labelled_pair
from sotdd.noise import NoiseFloor
from sotdd.splits import Splits


def sample(rng, n, shift=0.0):
    labels = rng.integers(3, size=n)
    return rng.normal(size=(n, 5)) + 2 * np.eye(3, 5)[labels] + shift, labels


@pytest.fixture
def pair(rng):
    return sample(rng, 90), sample(rng, 70)


def test_the_floor_is_the_distance_of_actual_splits(pair):
    """Through the public call alone: each split as a pair of datasets of its own."""
    projections = sotdd.Projections.fit(list(pair), n_projections=150)
    found = sotdd.distance(*pair, projections=projections, p=1.5, noise_floor=3)
    splits = Splits.of(labelled_pair(*pair), (90, 70), 3, int(projections.fingerprint, 16))
    x, y = (np.concatenate(parts) for parts in zip(*pair, strict=True))
    expected = [
        sotdd.distance(
            *((x[side.index], y[side.index]) for side in splits.draw(k)), projections=projections, p=1.5
        ).value
        for k in range(3)
    ]
    np.testing.assert_allclose(found.noise.distances, expected, rtol=1e-6)
    assert found.noise_floor == pytest.approx(np.mean(np.array(expected) ** 1.5) ** (1 / 1.5))
    assert found.noise.spread == pytest.approx(np.std(expected, ddof=1))


def test_the_distance_itself_is_the_same_to_the_bit(pair):
    for settings in ({}, {"shared_directions": False}):
        plain = sotdd.distance(*pair, n_projections=150, **settings)
        floored = sotdd.distance(*pair, n_projections=150, noise_floor=True, **settings)
        np.testing.assert_array_equal(plain.per_projection, floored.per_projection)
        assert plain.noise is plain.noise_floor is plain.within_noise is None
        assert len(floored.noise.distances) == 8


def test_the_same_floor_for_any_chunk_thread_and_engine(pair):
    data = labelled_pair(*pair)
    projections = sotdd.Projections.fit(data, n_projections=150)
    engines = [CpuEngine(), CpuEngine(threads=1, chunk=64), CpuEngine(threads=16)]
    floors = [compare(data, [(0, 1)], projections, 2, engine=engine, n_splits=4)[0, 1] for engine in engines]
    for floor in floors[1:]:
        np.testing.assert_array_equal(floor.noise.distances, floors[0].noise.distances)
    by_torch = compare(data, [(0, 1)], projections, 2, engine=TorchEngine("cpu"), n_splits=4)[0, 1]
    np.testing.assert_allclose(by_torch.noise.distances, floors[0].noise.distances, rtol=1e-5)


@pytest.mark.parametrize(("n", "m"), [(60, 60), (150, 40)])
def test_independent_samples_are_at_their_floor(n, m):
    found = [
        sotdd.distance(sample(rng, n), sample(rng, m), n_projections=100, noise_floor=True)
        for rng in map(np.random.default_rng, range(40))
    ]
    ratio = np.array([r.value / r.noise_floor for r in found])
    # The ratio varies by some 0.15 from pair to pair, so by 0.025 in the mean.
    assert abs(ratio.mean() - 1) < 0.08
    # A share of 5 % of 40 is expected to be beyond; 7 or more have a chance of 0.3 %.
    assert sum(not r.within_noise for r in found) < 7


def test_a_difference_is_beyond_noise(rng):
    found = sotdd.distance(sample(rng, 90), sample(rng, 70, shift=1), n_projections=200, noise_floor=True)
    assert found.within_noise is False
    assert found.value > 2 * found.noise_floor


def test_real_halves_are_at_their_floor(real_data):
    found = []
    for name in ("mnist", "fashion_mnist", "usps"):
        images, labels = (real_data(name)[key] for key in ("X_test", "y_test"))
        order = np.random.default_rng(0).permutation(len(images))[:1200]
        halves = [(images[half], labels[half]) for half in np.split(order, 2)]
        found.append(sotdd.distance(*halves, n_projections=200, noise_floor=True))
    assert np.mean([r.value / r.noise_floor for r in found]) == pytest.approx(1, abs=0.1)
    assert all(r.within_noise for r in found)


def test_what_is_printed(pair, rng):
    near = sotdd.distance(*pair, n_projections=100, noise_floor=True)
    assert f"within noise (floor {near.noise_floor:.3f}" in repr(near)
    far = sotdd.distance(pair[0], sample(rng, 70, shift=1), n_projections=100, noise_floor=True)
    assert ", noise floor 0." in repr(far)
    told = json.loads(json.dumps(far.to_dict(), allow_nan=False))
    assert told["noise_floor"] == far.noise_floor
    assert told["noise_spread"] == far.noise.spread
    assert told["noise_limit_95"] == far.noise.limit(0.95)
    assert (told["noise_splits"], told["within_noise"]) == (8, False)
    assert "noise_floor" not in sotdd.distance(*pair, n_projections=64).to_dict()
    same = sotdd.distance(pair[0], pair[0], n_projections=64, noise_floor=2)
    assert same.value == 0
    assert same.within_noise


def test_pairwise_marks_what_is_within_noise(pair, rng):
    datasets = {"one": pair[0], "two": pair[1], "far": sample(rng, 50, shift=1)}
    matrix = sotdd.pairwise(datasets, n_projections=100, noise_floor=True)
    assert matrix.within_noise.tolist() == [[True, True, False], [True, True, False], [False, False, True]]
    lines = repr(matrix).splitlines()
    assert lines[1].count("~") == 1
    assert lines[3].count("~") == 0
    assert "~ within noise" in lines[-1]
    told = json.loads(json.dumps(matrix.to_dict(), allow_nan=False))
    assert told["within_noise"] == matrix.within_noise.tolist()
    assert [pair["within_noise"] for pair in told["distances"]] == [True, False, False]
    assert matrix.noise_floors[0, 2] == matrix["one", "far"].noise_floor
    alone = sotdd.distance(
        pair[0],
        pair[1],
        noise_floor=True,
        projections=matrix.projections,
    )
    np.testing.assert_array_equal(matrix["one", "two"].noise.distances, alone.noise.distances)
    plain = sotdd.pairwise(datasets, n_projections=64)
    assert "~" not in repr(plain)
    assert "within_noise" not in plain.to_dict()
    assert np.isnan(plain.noise_floors[0, 1])


def test_the_command_line_says_it(pair, tmp_path):
    for name, (x, y) in zip("ab", pair, strict=True):
        np.savez(tmp_path / f"{name}.npz", X=x, y=y)
    files = [str(tmp_path / "a.npz"), str(tmp_path / "b.npz")]
    done = CliRunner().invoke(commands.app, ["distance", *files, "--noise-floor", "--json"])
    expected = sotdd.distance(*pair, noise_floor=True)
    told = json.loads(done.stdout)
    assert (told["noise_floor"], told["within_noise"]) == (expected.noise_floor, expected.within_noise)
    shown = CliRunner().invoke(commands.app, ["distance", *files, "--noise-floor"]).stdout
    assert repr(expected) in shown
    plain = json.loads(CliRunner().invoke(commands.app, ["distance", *files, "--json"]).stdout)
    assert "noise_floor" not in plain


def test_the_limit_holds_for_a_further_split(rng):
    """From 8 skewed numbers it covers the next in 95 % of cases; and a known answer where one is zero."""
    draws = rng.lognormal(0, 0.1, size=(4000, 9))
    covered = [NoiseFloor(row[:8], 2).limit(0.95) >= row[8] for row in draws]
    assert np.mean(covered) == pytest.approx(0.95, abs=4 * np.sqrt(0.95 * 0.05 / 4000))
    # Student's quantile at 95 % with one degree of freedom is 6.314; mean 1, deviation √2.
    assert NoiseFloor(np.array([0.0, 2.0]), 2).limit(0.95) == pytest.approx(1 + 6.314 * np.sqrt(2 * 1.5), rel=1e-3)


def test_bad_input(pair):
    for bad in (1, 0, -3, 2.5, "yes", None):
        with pytest.raises(sotdd.SotddError, match=r"noise_floor is .*: expected True, False or a number of splits"):
            sotdd.distance(*pair, noise_floor=bad)
    with pytest.raises(sotdd.SotddError, match="method 'otdd' has no setting noise_floor"):
        sotdd.pairwise(list(pair), method="otdd", noise_floor=True)
    with pytest.raises(sotdd.SotddError, match="level is 1"):
        sotdd.distance(*pair, n_projections=64, noise_floor=True).noise.limit(1)
