"""The permutation test: its arithmetic, its level and what it finds."""

import dataclasses
import json
import math
from itertools import combinations

import numpy as np
import pytest
import threadpoolctl

import reference
import sotdd
from sotdd.compute.resampling import Plan
from sotdd.measure.statistics import balance_costs, measure_means, measure_shares

CENTRES = 2 * np.eye(3, 6)


def sample(rng, n, *, shift=0.0, wrong=0.0, shares=(1 / 3, 1 / 3, 1 / 3), moved=0.0, names="abc"):
    """Three Gaussian classes, with what may differ."""
    codes = rng.choice(3, size=n, p=shares)
    features = rng.normal(size=(n, 6)) + CENTRES[codes]
    features[codes == 2, 3] += moved
    features[:, 4] += shift
    relabelled = rng.random(n) < wrong
    codes[relabelled] = rng.integers(3, size=int(relabelled.sum()))
    return features, np.array(list(names))[codes]


# ------------------------------------------------------------------ arithmetic


def test_the_p_value_of_a_small_case_by_all_its_splits(rng):
    """Three points against three have ten splits; thousands of shuffles meet each as often as the others."""
    a, b = (rng.normal(size=(3, 2)), [0, 0, 1]), (rng.normal(1, 1, size=(3, 2)), [1, 1, 0])
    drawn = reference.draw(rng, 5, 2)
    x, y = np.concatenate([a[0], b[0]]), np.array([*a[1], *b[1]])
    distances = []
    for left in combinations(range(6), 3):
        right = [point for point in range(6) if point not in left]
        sides = [(x[list(side)], y[list(side)]) for side in (left, right)]
        distances.append(np.mean(reference.per_projection(*sides, p=2, **drawn)) ** 0.5)
    exact = np.mean(np.array(distances) >= distances[0] * (1 - 1e-6))
    found = sotdd.test(
        a, b, projections=sotdd.Projections.from_arrays(**drawn), n_permutations=3000, statistic="distance"
    )
    assert found.distance == pytest.approx(distances[0], rel=1e-4)
    np.testing.assert_allclose(np.unique(found.null.round(4)), np.unique(np.round(distances, 4)), atol=2e-4)
    # The first shuffles may end the test.
    assert found.p_value == pytest.approx(exact, abs=4 * math.sqrt(0.25 / len(found.null)))


def test_the_statistics_are_what_they_say(rng):
    a, b = sample(rng, 40), sample(rng, 30, shift=1)
    projections = sotdd.Projections.fit([a, b], n_projections=70)
    by_distance = sotdd.test(a, b, projections=projections, n_permutations=49, statistic="distance")
    combined = sotdd.test(a, b, projections=projections, n_permutations=49)
    measured = sotdd.distance(a, b, projections=projections.evenly(), estimator="plain")
    assert by_distance.distance == by_distance.statistic == pytest.approx(measured.value, rel=1e-6)
    np.testing.assert_array_equal(by_distance.null, by_distance.null_distances)
    np.testing.assert_array_equal(by_distance.null, combined.null_distances)
    # Over the data and all shuffles, what is usual under a projection counts one.
    assert np.mean(balance_costs(rng.gamma(2, size=(70, 50)))) == pytest.approx(1)
    assert combined.judged_by == "combined"
    assert combined.effect_size == pytest.approx(
        (combined.statistic - combined.null.mean()) / combined.null.std(ddof=1)
    )
    assert combined.ratio == pytest.approx(measured.value / np.sqrt(np.mean(by_distance.null**2)))
    assert combined.quantiles([0.5])[0.5] == np.median(by_distance.null)


def test_the_same_answer_for_any_number_of_threads(rng):
    a, b = sample(rng, 40), sample(rng, 30)
    found = sotdd.test(a, b, n_permutations=99)
    with threadpoolctl.threadpool_limits(1):
        alone = sotdd.test(a, b, n_permutations=99)
    np.testing.assert_array_equal(found.null, alone.null)
    assert sotdd.test(a, b, n_permutations=99, seed=1).fingerprint != found.fingerprint
    whole = np.concatenate([a[0], b[0]])
    same_recipe = sotdd.Projections.fit([(whole, np.concatenate([a[1], b[1]]))], n_projections=128)
    given = [sotdd.test(a, b, n_permutations=99, projections=same_recipe, seed=seed) for seed in (0, 1)]
    np.testing.assert_array_equal(given[0].null, found.null)
    assert given[0].statistic != given[1].statistic  # other shuffles balance it otherwise
    assert given[0].distance == given[1].distance


def test_identical_datasets_are_never_told_apart(rng):
    a = sample(rng, 30)
    found = sotdd.test(a, a, n_permutations=50)
    assert (found.distance, found.p_value, found.rejects(0.5)) == (0, 1, False)
    constant = sotdd.test(np.ones((5, 2)), np.ones((4, 2)), n_permutations=9)
    assert constant.p_value == 1
    assert math.isnan(constant.effect_size)
    assert math.isnan(constant.ratio)
    assert json.loads(json.dumps(constant.to_dict(), allow_nan=False))["ratio"] is None


# ------------------------------------------------------------------ level and power


def test_many_permutations_end_at_a_look_where_the_others_decide_nothing():
    counts = set()
    for seed in range(16):
        rng = np.random.default_rng(seed)
        a, b = sample(rng, 60), sample(rng, 60, shift=0.2)
        first, second, asked = (sotdd.test(a, b, n_permutations=count, n_projections=4) for count in (39, 99, 499))
        count, p_value = next(
            (len(found.null), found.p_value)
            for found, settled in ((first, 0.5), (second, 0.2), (asked, 0.0))
            if found.p_value >= settled
        )
        assert (len(asked.null), asked.p_value) == (count, p_value)
        counts.add(count)
    assert counts == {39, 99, 499}
    assert sotdd.test(a, sample(rng, 60, shift=2), n_permutations=499).p_value == 1 / 500


@pytest.mark.slow
@pytest.mark.parametrize("statistic", ["combined", "distance"])
def test_the_level_is_kept(statistic):
    """300 simulations at 5 %: 15 rejections expected; fewer than 5 or more than 28 have a chance of 0.2 %."""
    rejections = 0
    for simulation in range(300):
        rng = np.random.default_rng([1, simulation])
        found = sotdd.test(
            sample(rng, 25), sample(rng, 20), n_permutations=39, n_projections=8, statistic=statistic, seed=simulation
        )
        rejections += found.rejects(0.05)
    assert 5 <= rejections <= 28


@pytest.mark.parametrize(
    "change",
    [{"shift": 1.0}, {"wrong": 0.9}, {"shares": (0.7, 0.2, 0.1)}, {"moved": 2.5}],
    ids=["feature shift", "labels shifted, features unchanged", "class imbalance", "one class replaced"],
)
def test_what_it_finds(change):
    """In four of five pairs or more; and never by new names of the same classes."""
    found = renamed = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        a, b = sample(rng, 200), sample(rng, 150, **change)
        found += sotdd.test(a, b, n_permutations=99, n_projections=64).rejects()
        renamed += sotdd.test(a, sample(rng, 150, names="xyz"), n_permutations=99, n_projections=16).rejects(0.01)
    assert found >= 4
    assert renamed == 0


# ------------------------------------------------------------------ around it


def test_what_decided_is_named_with_its_numbers(rng):
    told = []
    found = sotdd.test(
        sample(rng, 60), sample(rng, 50, shift=2), n_permutations=99, progress=lambda *now: told.append(now)
    )
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1]
    most = found.aspects[found.strongest]
    assert most.deviations == max(one.deviations for one in found.aspects.values()) > most.limit
    assert f"most by {found.strongest} ({most.deviations:.1f} deviations, by chance up to {most.limit:.1f})" in repr(
        found
    )
    quiet = dataclasses.replace(found, null=found.null + 100)
    assert (quiet.verdict, quiet.verdict.exit_code, "most by" in repr(quiet)) == ("passed", 0, False)
    written = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (written["p_value"], written["n_points"], written["n_null"]) == (0.01, [60, 50], 99)
    assert written["null_quantiles"]["0.95"] == found.quantiles([0.95])[0.95]
    assert (written["verdict"], written["decided_by"]) == ("drift", found.strongest)
    assert written["aspects"]["means"]["p_value"] == 0.01


def test_points_are_sampled_when_asked_or_where_the_other_side_is_far_smaller(rng):
    a, b = sample(rng, 300), sample(rng, 40)
    found = sotdd.test(a, b, n_permutations=19, max_points=100)
    assert found.n_points == (100, 40)
    assert "a: 100 of the 300 points were sampled" in repr(found)
    assert [remark.to_dict() for remark in found.remarks] == found.to_dict()["remarks"]
    again = sotdd.test(a, b, n_permutations=19, max_points=100)
    assert again.statistic == found.statistic
    assert sotdd.test(a, b, n_permutations=19).n_points == (300, 40)
    thinned = sotdd.test(sample(rng, 1200), b, n_permutations=19)
    assert thinned.n_points == (1000, 40)
    assert "1,000 of the 1,200 points of 'a' were sampled" in repr(thinned)


@pytest.mark.parametrize("engine", ["cpu", "torch"])
def test_points_are_brought_within_spreads_of_the_middle(rng, engine):
    rows = rng.standard_t(2, size=(5, 101)).astype(np.float32)
    middle = np.median(rows, axis=1, keepdims=True)
    spread = 1.4826 * np.median(np.abs(rows - middle), axis=1, keepdims=True)
    expected = np.clip(rows, middle - 3 * spread, middle + 3 * spread)
    if engine == "cpu":
        from sotdd.compute.cpu_engine import CpuEngine

        found = CpuEngine().clip_outliers(rows, 3.0)
    else:
        import torch

        from sotdd.compute.torch.engine import TorchEngine

        found = TorchEngine("cpu").clip_outliers(torch.tensor(rows), 3.0).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5)


# ------------------------------------------------------------------ means, classes by name, shares


def split(rng, n=30, m=22, d=4, n_classes=3):
    data = [(rng.normal(size=(k, d)), rng.integers(n_classes, size=k)) for k in (n, m)]
    plan = Plan.of_pair([sotdd.LabelledData.of(part) for part in data], (0, 1), 6, 3, (2.0,))
    plan = dataclasses.replace(plan, actual=True)
    rows = np.concatenate([part[0] for part in data]).T.astype(np.float32)
    return data, plan, rows, np.concatenate([part[1] for part in data])


def test_the_measure_means_is_hotellings_with_a_ridge(rng):
    _, plan, rows, _ = split(rng)
    wide = rows.astype(np.float64)
    spread = np.cov(wide, bias=True) + 0.01 * np.trace(np.cov(wide, bias=True)) / 4 * np.eye(4)
    for number, found in enumerate(measure_means(rows)(plan.mark_all(range(6)).astype(float))):
        left, right = (side.index for side in plan.draw(number))
        gap = wide[:, left].mean(axis=1) - wide[:, right].mean(axis=1)
        assert found == pytest.approx(30 * 22 / 52 * gap @ np.linalg.solve(spread, gap), rel=1e-6)


def test_class_means_are_compared_by_name_and_shares_too(rng):
    _, plan, rows, y = split(rng)
    wide = rows.astype(np.float64)
    within = wide - np.stack([wide[:, y == label].mean(axis=1) for label in y], axis=1)
    spread = within @ within.T / len(y)
    spread += 0.1 * np.trace(spread) / 4 * np.eye(4)
    right = plan.mark_all(range(6)).astype(float)
    of_classes, of_shares = measure_means(rows, plan.codes)(right), measure_shares(plan.codes)(right)
    for number in range(plan.count):
        left, right = (side.index for side in plan.draw(number))
        by_class = by_share = 0.0
        for label in range(3):
            one, other = left[y[left] == label], right[y[right] == label]
            gap = wide[:, one].mean(axis=1) - wide[:, other].mean(axis=1)
            by_class += len(one) * len(other) / (len(one) + len(other)) * (gap @ np.linalg.solve(spread, gap))
            by_share += (len(one) / len(left) - len(other) / len(right)) ** 2 / np.mean(y == label)
        assert of_classes[number] == pytest.approx(by_class / 3, rel=1e-6)  # of three classes
        assert of_shares[number] == pytest.approx(by_share)


def test_a_shift_across_correlated_features_is_found(rng):
    """Small in every projection, large beside the spread across them: means see it best."""
    common = rng.normal(size=(2, 150, 1))
    a, b = (common[side] + 0.05 * rng.normal(size=(150, 10)) for side in (0, 1))
    b[:, 3] += 0.1
    found = sotdd.test(a, b, n_permutations=199)
    assert found.p_value == 0.005
    assert found.strongest in ("means", "principal axes")
    assert found.aspects["means"].p_value == 0.005
    assert min(one.p_value for name, one in found.aspects.items() if name not in ("means", "principal axes")) > 0.01


def test_swapped_names_and_other_shares_are_found_by_name(rng):
    y = rng.integers(10, size=400)
    x = rng.normal(size=(400, 30)) + 3 * np.eye(10, 30)[y]
    swapped = np.where(y == 0, 1, np.where(y == 1, 0, y))
    first, second = slice(0, 200), slice(200, None)
    pair = (x[first], y[first]), (x[second], swapped[second])
    blind, named = (sotdd.test(*pair, n_permutations=199, label_names=how) for how in ("ignore", "match"))
    assert named.p_value == 0.005 < blind.p_value
    assert named.strongest == "classes by name"
    noise = rng.normal(size=(400, 30))
    labels = np.r_[rng.integers(2, size=200), (rng.random(200) < 0.75).astype(int)]
    shares = sotdd.test(
        (noise[first], labels[first]), (noise[second], labels[second]), n_permutations=199, label_names="match"
    )
    assert shares.p_value == 0.005
    assert shares.strongest == "class shares"


def test_datasets_made_to_have_every_class_are_not_called_different(rng):
    """One point of each of 100 classes on both sides: shuffles leave many classes on one side, the data none."""
    p_values = []
    for seed in range(6):
        pair = [(rng.normal(size=(100, 4)), np.arange(100)) for _ in range(2)]
        p_values.append(sotdd.test(*pair, n_permutations=39, n_projections=32, label_names="match", seed=seed).p_value)
    assert np.median(p_values) > 0.1
