"""Noise floors: what two samples of the same data would give."""

import json

import numpy as np
import pytest

import sotdd
from sotdd.compute.comparison import compare
from sotdd.compute.cpu_engine import CpuEngine
from sotdd.compute.distance import NoiseFloor
from sotdd.compute.numpy_engine import NumpyEngine
from sotdd.compute.resampling import Plan
from sotdd.compute.torch.engine import TorchEngine
from sotdd.inputs import open_pair


def sample(rng, n, shift=0.0):
    labels = rng.integers(3, size=n)
    return rng.normal(size=(n, 5)) + 2 * np.eye(3, 5)[labels] + shift, labels


@pytest.fixture
def pair(rng):
    return sample(rng, 90), sample(rng, 70)


def test_the_distance_itself_is_the_same_to_the_bit(pair):
    plain = sotdd.distance(*pair, n_projections=70)
    floored = sotdd.distance(*pair, n_projections=70, noise_floor=True)
    np.testing.assert_array_equal(plain.per_projection, floored.per_projection)
    assert plain.noise is plain.noise_floor is plain.within_noise is None
    assert len(floored.noise.distances) == 59


def test_the_same_floor_for_any_chunk_thread_and_engine(pair):
    data = open_pair(*pair)
    projections = sotdd.Projections.fit(data, n_projections=150)
    engines = [CpuEngine(), CpuEngine(threads=1, chunk=64), CpuEngine(threads=16)]
    floors = [compare(data, [(0, 1)], projections, 2, engine=engine, n_splits=4)[0, 1] for engine in engines]
    for floor in floors[1:]:
        np.testing.assert_array_equal(floor.noise.distances, floors[0].noise.distances)
    for engine in (TorchEngine("cpu"), NumpyEngine()):
        other = compare(data, [(0, 1)], projections, 2, engine=engine, n_splits=4)[0, 1]
        np.testing.assert_allclose(other.noise.distances, floors[0].noise.distances, rtol=1e-5)


@pytest.mark.parametrize("count", [3, 18, 59])
def test_a_difference_is_beyond_noise(rng, count):
    """By rank alone the data could never be among the farthest 5 % of so few."""
    data = open_pair(sample(rng, 90), sample(rng, 70, shift=3))
    projections = sotdd.Projections.fit(data, n_projections=128, tilt=True)
    far = compare(data, [(0, 1)], projections, 2, estimator="controlled", n_splits=count)[0, 1]
    assert far.within_noise is False
    assert far.value > 2 * far.noise_floor
    assert "beyond noise" in repr(far)
    told = json.loads(json.dumps(far.to_dict(), allow_nan=False))
    assert (told["noise_floor"], told["noise_limit_95"]) == (far.noise_floor, far.noise.limit(0.95))
    assert (told["noise_splits"], told["within_noise"]) == (count, False)
    same = sotdd.distance(*2 * [sample(rng, 90)], n_projections=64, noise_floor=True)
    assert same.value == 0
    assert same.within_noise


def test_halves_of_pictures_are_nearest_and_at_their_floor(pictures):
    sets = {}
    for name in ("mnist", "fashion_mnist", "kmnist"):
        arrays = pictures(name)
        for number, half in enumerate(np.split(np.random.default_rng(0).permutation(len(arrays["X_train"])), 2)):
            sets[f"{name} {number}"] = arrays["X_train"][half], arrays["y_train"][half]
    matrix = sotdd.pairwise(sets, n_projections=200)
    for name in sets:
        assert matrix.nearest(name).split()[0] == name.split()[0]
    found = [sotdd.distance(*list(sets.values())[k : k + 2], n_projections=200, noise_floor=True) for k in (0, 2, 4)]
    assert np.mean([one.value / one.noise_floor for one in found]) == pytest.approx(1, abs=0.15)


def test_pairwise_marks_what_is_within_noise(pair, rng):
    datasets = {"one": pair[0], "two": pair[1], "far": sample(rng, 50, shift=1)}
    matrix = sotdd.pairwise(datasets, n_projections=100, noise_floor=True)
    assert matrix.within_noise.tolist() == [[True, True, False], [True, True, False], [False, False, True]]
    lines = repr(matrix).splitlines()
    assert [line.count("~") for line in lines[1:4]] == [1, 1, 0]
    told = json.loads(json.dumps(matrix.to_dict(), allow_nan=False))
    assert told["within_noise"] == matrix.within_noise.tolist()
    assert [pair["within_noise"] for pair in told["distances"]] == [True, False, False]
    assert matrix.noise_floors[0, 2] == matrix["one", "far"].noise_floor
    alone = sotdd.distance(*pair, noise_floor=True, projections=matrix.projections)
    found = matrix["one", "two"]  # controlled, where given projections are plain: each in the unit of its value
    np.testing.assert_allclose(found.noise.distances / found.value, alone.noise.distances / alone.value)
    plain = sotdd.pairwise(datasets, n_projections=64)
    assert "~" not in repr(plain)
    assert np.isnan(plain.noise_floors[0, 1])


def test_the_limit_holds_for_a_further_split(rng):
    """From 8 skewed numbers it covers the next in 95 % of cases; and a known answer where one is zero."""
    draws = rng.lognormal(0, 0.1, size=(4000, 9))
    covered = [NoiseFloor(row[:8], 2).limit(0.95) >= row[8] for row in draws]
    assert np.mean(covered) == pytest.approx(0.95, abs=4 * np.sqrt(0.95 * 0.05 / 4000))
    assert NoiseFloor(np.array([1e-3, 1.0]), 2.0, 0.5).limit(1 - 1e-16) < np.inf
    # Student's quantile at 95 % with one degree of freedom is 6.314; mean 1, deviation √2.
    assert NoiseFloor(np.array([0.0, 2.0]), 2).limit(0.95) == pytest.approx(1 + 6.314 * np.sqrt(2 * 1.5), rel=1e-3)


# ------------------------------------------------------------------ the verdict


def one_law(name, rng, n, m):
    """Two samples of one law: heavy tails, imbalanced classes, many classes, one feature."""
    draw = {
        "t3": lambda k: (rng.standard_t(3, size=(k, 10)), rng.integers(3, size=k)),
        "log-normal": lambda k: (np.exp(rng.normal(size=(k, 4))), rng.integers(3, size=k)),
        "imbalanced": lambda k: (rng.normal(size=(k, 5)), (rng.random(k) < 0.1).astype(int)),
        "50 classes": lambda k: (rng.normal(size=(k, 5)), rng.integers(50, size=k)),
        "one feature": lambda k: (rng.normal(size=(k, 1)), rng.integers(2, size=k)),
    }[name]
    return draw(n), draw(m)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["t3", "log-normal", "imbalanced", "50 classes", "one feature"])
@pytest.mark.parametrize("sizes", [(80, 80), (150, 30)])
def test_samples_of_one_law_are_called_farther_at_the_stated_rate(name, sizes):
    """5 %: of 40 pairs, 8 or more beyond noise have a chance of 0.1 %; heavy tails once had 34 to 65 %."""
    beyond = 0
    for seed in range(40):
        pair = one_law(name, np.random.default_rng([seed, *sizes]), *sizes)
        beyond += not sotdd.distance(*pair, n_projections=128, seed=seed, noise_floor=True).within_noise
    assert beyond < 8


def test_splits_and_data_are_measured_alike(pair):
    """The data as one of the splits: through the same projections, by the plain mean, so their ranks compare."""
    found = sotdd.distance(*pair, n_projections=128, noise_floor=True)
    plain = np.sqrt(np.mean(found.per_projection * found.weights))
    ratio = found.noise.distances / found.value
    plan = Plan.of_pair(open_pair(*pair), (0, 1), 59, int(found.fingerprint, 16), (2.0,))
    x, y = (np.concatenate(parts) for parts in zip(*pair, strict=True))
    recipe = sotdd.Projections.fit(open_pair(*pair), n_projections=128, tilt=True)
    left, right = ((x[side.index], y[side.index]) for side in plan.draw(7))
    by_hand = sotdd.distance(left, right, projections=recipe)
    assert recipe.fingerprint == found.fingerprint
    assert ratio[7] == pytest.approx(np.sqrt(np.mean(by_hand.per_projection * by_hand.weights)) / plain, rel=1e-5)
    assert found.noise_floor == pytest.approx(np.sqrt(np.mean(found.noise.distances**2)))
    assert found.noise.spread == pytest.approx(np.std(found.noise.distances, ddof=1))


def test_what_a_p_value_says_is_what_is_borderline():
    even = np.linspace(1, 2, 59)
    verdicts = {k: NoiseFloor(even, 2, distance=even[-k] - 1e-9 if k else 3.0) for k in range(12)}
    assert [round(60 * floor.p_value) - 1 for floor in verdicts.values()] == list(range(12))
    assert [k for k, floor in verdicts.items() if floor.borderline] == [1, 2, 3, 4, 5, 6]
    assert [k for k, floor in verdicts.items() if floor.p_value <= 0.05] == [0, 1, 2]
    assert verdicts[2].distance > verdicts[2].limit(0.95) > verdicts[3].distance


# ------------------------------------------------------------------ excess


def test_excess_takes_the_noise_of_the_sizes_off(rng):
    """Two samples of one law have none, whatever their sizes; a difference has the same at any size."""
    over, excess = {60: [], 600: []}, []
    unit = sotdd.Projections.fit([sample(rng, 600), sample(rng, 600, shift=1)], n_projections=500)
    for n in 4 * (60, 600):
        parts = [sample(rng, n), sample(rng, 600), sample(rng, n, shift=1)]
        same, far = (
            sotdd.distance(parts[1], other, projections=unit, noise_floor=True) for other in (parts[0], parts[2])
        )
        excess.append(same.excess / same.excess_stderr)
        over[n].append(far.excess)
    assert abs(np.mean(excess)) < 3 / np.sqrt(len(excess))
    assert np.mean(over[60]) == pytest.approx(np.mean(over[600]), rel=0.3)


def test_a_single_point_has_no_halves(rng):
    matrix = sotdd.pairwise({name: rng.normal(size=(1, 3)) + n for n, name in enumerate(["one", "other", "third"])})
    assert matrix["one", "other"].sampling is None
    assert np.isnan(matrix.beyond_noise[0, 1])
    assert matrix.nearest("one") in ("other", "third")


def test_rank_and_limit_are_one_verdict_where_there_are_splits_enough(rng):
    for count in (19, 59, 99):
        splits = np.sort(rng.exponential(size=count))
        for distance in [*splits, *(splits + 1e-9), 0.0, 100.0]:
            floor = NoiseFloor(splits, 2, distance)
            assert floor.within == (floor.p_value > 0.05)
