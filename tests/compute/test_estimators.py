"""The controlled estimator: unbiased, with intervals that hold, the same however the work is cut."""

import math
from itertools import pairwise

import numpy as np
import pytest

import sotdd
from laws import Medians
from sotdd.compute.class_moments import MomentAccumulator, _mean_power, control_pairs
from sotdd.compute.cpu_engine import CpuEngine
from sotdd.compute.estimators import FEWEST_FITTED, ControlVariates, estimates
from sotdd.compute.kernels import rows as row_kernels
from sotdd.compute.numpy_engine import NumpyEngine
from sotdd.compute.slices import slice_datasets
from sotdd.inputs import open_pair
from sotdd.projections import ImportanceSampled
from sotdd.projections.maps import count_orders

torch_engine = pytest.importorskip("sotdd.compute.torch.engine")


@pytest.fixture(scope="module")
def pair():
    """Two labelled datasets with a mean far from each other and a few strong directions: a heavy tail."""
    rng = np.random.default_rng(5)
    scales = np.r_[4.0, 2.0, np.ones(18)]
    a = rng.normal(size=(150, 20)) * scales, rng.integers(0, 3, size=150)
    b = rng.normal(size=(120, 20)) * scales + np.r_[3.0, np.zeros(19)], rng.integers(0, 5, size=120)
    return a, b


FACTORIALS = np.array([math.factorial(k) for k in range(9)])


# ------------------------------------------------------------------ the parts


@pytest.mark.parametrize("cut", [math.inf, 1.0])
def test_class_moments_against_slow_code(rng, cut):
    source, order = rng.normal(size=(3, 40)).astype(np.float32), rng.permutation(40)
    offsets, rows = np.array([0, 7, 8, 40]), np.empty((3, 40), np.float32)
    own, weights, further = rng.normal(size=(3, 5)), rng.normal(size=(3, 2, 1)), rng.normal(size=(3, 2, 12))
    further[:, :, 2:7:2] = 0.0
    places, values = np.empty((3, 3, 2)), np.empty((3, 5))
    made = np.zeros((3, 10, 3))
    for which, first, second in ((slice(1), own[:, :1], own[:, None]), (slice(1, None), weights[:, :, 0], further)):
        count_orders(first, second, made[:, :, which])
    how = made, own[:, 0].copy(), own
    spare = np.empty(40, np.float32), np.empty(40), np.empty(90), np.empty(15), np.empty(9 * row_kernels.ROOM)
    out = rows, places.reshape(-1), values, np.empty((3, 0))
    row_kernels.group_rows(source, order, offsets.astype(np.uint64), cut, *how, *out, *spare)
    np.testing.assert_array_equal(rows, source[:, order])
    for line in range(3):
        by_point = np.empty((40, 9))
        for first, last in pairwise(offsets):
            members = rows[line, first:last].astype(np.float64)
            inside = np.clip(members, -cut, cut)
            moments = [np.mean(inside**k) / math.factorial(k) for k in range(1, 9)]
            by_point[first:last] = [members.mean(), *moments]
        everything = rows[line].astype(np.float64)
        even = [np.mean(everything**k) / math.factorial(k) for k in (2, 4, 6)]
        np.testing.assert_allclose(values[line], [everything.mean(), np.mean(by_point[:, 0] ** 2), *even], rtol=1e-9)
        placed = [own[line, 0] * everything + by_point[:, 1:5] @ (own[line] * FACTORIALS[:5])[1:]]
        for weight, drawn in zip(weights[line, :, 0], further[line], strict=True):  # orders beyond 8 are left out
            placed.append(weight * everything + by_point[:, 1:] @ (drawn[:9] * FACTORIALS)[1:])
        np.testing.assert_allclose(places[line], [(one.mean(), one.std()) for one in placed], rtol=1e-6)


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize("engine", [CpuEngine, lambda: torch_engine.TorchEngine("cpu"), NumpyEngine])
def test_the_gaussian_cost_is_that_of_the_projected_points(pair, p, engine):
    """Its mean and variance are those of the placed points, whatever the polynomial."""
    data = open_pair(*pair)
    recipe = sotdd.Projections.fit(data, n_projections=64, moments=sotdd.projections.UniformOrders(8))
    with engine() as active:
        slices = next(slice_datasets(data, recipe, active, class_moments=True))
        moments = [active.collect([found]) for found in slices.gaussian_moments]
    for found in moments:
        found[:, 1:] = 0.0  # further samples of nothing have a cost of zero
    out = np.empty((64, 3))
    row_kernels.gaussian_gaps(*moments, float(p), out)
    first, second = (np.asarray(rows).astype(np.float64) for rows in slices.rows)
    gaps, roots = first.mean(axis=1) - second.mean(axis=1), first.std(axis=1) - second.std(axis=1)
    np.testing.assert_allclose(out[:, 0], (gaps**2 + roots**2) ** (p / 2), rtol=1e-3, atol=1e-7)
    np.testing.assert_allclose(out[:, 1], np.abs(gaps) ** p, rtol=1e-3, atol=1e-7)
    np.testing.assert_allclose(out[:, 2], (first.var(axis=1) + second.var(axis=1)) ** (p / 2), rtol=1e-3)


def test_weighted_tilted_directions_have_the_means_of_uniform_ones(rng):
    basis = np.linalg.qr(rng.normal(size=(5, 2)))[0].T
    drawn = ImportanceSampled(basis, np.array([2.0, 1.3])).draw(rng, 200_000, 5)
    assert drawn.importance.max() <= 2.0 * 1.3 + 1e-9
    for values, known in [
        (np.ones(200_000), 1.0),
        ((drawn.theta @ basis[0]) ** 2, 1 / 5),
        ((drawn.theta @ basis[0]) ** 4, _mean_power(2, 5)),
        (drawn.theta[:, 1] ** 6, _mean_power(3, 5)),
    ]:
        weighted = drawn.importance * values
        assert np.mean(weighted) == pytest.approx(known, abs=4.5 * np.std(weighted) / math.sqrt(200_000))


def test_a_tilt_finds_the_strong_directions_and_leaves_isotropic_data_alone(rng):
    strong = sotdd.LabelledData.of(rng.normal(size=(500, 30)) * np.r_[5.0, np.ones(29)])
    found = ImportanceSampled.fit([strong], None, sotdd.projections.Sphere())
    assert abs(found.basis[0, 0]) > 0.99
    assert found.stretch[0] > 1.5
    assert found.stretch[1] < 1.1
    np.testing.assert_allclose(found.basis @ found.basis.T, np.eye(6), atol=1e-7)  # kept in float32
    even = ImportanceSampled.fit(
        [sotdd.LabelledData.of(np.r_[np.eye(4), -np.eye(4)])], None, sotdd.projections.Sphere()
    )
    np.testing.assert_allclose(even.stretch, 1)


def test_every_control_has_mean_zero(pair):
    data = open_pair(*pair)
    recipe = sotdd.Projections.fit(data, n_projections=20_000, tilt=True)
    with CpuEngine() as active:
        moments, importance = MomentAccumulator(recipe), []
        for slices in slice_datasets(data, recipe, active, class_moments=True):
            moments.add(slices)
            importance.append(slices.block.importance)
    columns = control_pairs(moments.result(), np.concatenate(importance), [(0, 1)], 2.0)[0].columns
    errors = columns.std(axis=0) / math.sqrt(len(columns))
    assert columns.shape[1] == 3 + 2 + 2 * 4
    assert np.all(np.abs(columns.mean(axis=0)) < 4.5 * errors)


def test_coefficients_are_never_fitted_to_the_costs_they_correct(rng):
    """With pure noise as costs and as controls, many fits of many columns stay unbiased."""
    found = []
    for _ in range(200):
        columns = rng.normal(size=(FEWEST_FITTED, 12))
        costs = 1 + (columns**2).sum(axis=1) * columns[:, 0]  # a nonlinear dependence biases an ordinary fit
        found.extend(estimates(costs[None], [ControlVariates(columns, labels=False, directions=True)]))
    means = np.array([one.unit * one.mean for one in found])
    assert abs(means.mean() - 1) < 4 * means.std() / math.sqrt(200)


# ------------------------------------------------------------------ the whole


@pytest.mark.slow
@pytest.mark.parametrize("p", [1, 2, 3])
def test_it_agrees_with_very_many_plain_projections(pair, p):
    plain = sotdd.distance(*pair, p=p, n_projections=30_000, seed=1, estimator="plain")
    controlled = sotdd.distance(*pair, p=p, n_projections=8_000, seed=2)
    assert controlled.estimator == "controlled (labels and directions)"
    assert abs(plain.value - controlled.value) < 4 * math.hypot(plain.stderr, controlled.stderr)


@pytest.mark.slow
def test_means_over_seeds_are_unbiased_and_intervals_cover(pair):
    truth = sotdd.distance(*pair, n_projections=50_000, seed=999)
    found = [sotdd.distance(*pair, n_projections=512, seed=seed) for seed in range(120)]
    values = np.array([one.value for one in found])
    assert abs(values.mean() - truth.value) < 4 * values.std() / math.sqrt(len(values)) + 2 * truth.stderr
    assert np.median([one.stderr for one in found]) == pytest.approx(values.std(), rel=0.25)
    covered = np.mean([low <= truth.value <= high for low, high in (one.interval() for one in found)])
    assert 0.90 <= covered <= 0.99
    assert np.mean([one.reliable for one in found]) > 0.9
    plain = [sotdd.distance(*pair, n_projections=512, seed=seed, estimator="plain") for seed in range(40)]
    assert values.std() < np.std([one.value for one in plain]) / 3


def test_a_heavy_tail_is_told(pair):
    r = sotdd.distance(*pair, n_projections=300, estimator="plain")
    assert not r.reliable
    assert r.unreliable.kind == "heavy tail"
    assert r.to_dict()["reliable"] is False
    even = sotdd.distance(np.eye(3), np.eye(3) + 1, n_projections=4000, estimator="plain", n_moments=1)
    assert even.reliable
    assert "unreliable" not in even.to_dict()


def test_both_orders_give_the_same(pair):
    assert sotdd.distance(*pair).value == sotdd.distance(*pair[::-1]).value


def test_weights_and_costs_make_up_the_plain_mean(pair):
    recipe = sotdd.Projections.fit(open_pair(*pair), n_projections=500, tilt=True)
    r = sotdd.distance(*pair, projections=recipe, estimator="plain")
    assert r.estimator == "plain"
    assert r.value == pytest.approx(np.mean(r.weights * r.per_projection) ** 0.5)
    assert sotdd.distance(*pair, n_projections=500).fingerprint == recipe.fingerprint
    assert len(r.to_dict(per_projection=True)["weights"]) == 500


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({}, "controlled (labels and directions)"),
        ({"label_law": Medians()}, "controlled (directions)"),
        ({"label_directions": "own"}, "controlled (directions)"),
        ({"directions": sotdd.projections.Hadamard()}, "controlled (labels and directions)"),
        ({"directions": sotdd.projections.Orthogonal()}, "controlled (labels)"),
        ({"directions": sotdd.projections.Convolution((4, 5))}, "controlled (labels)"),
        ({"moments": sotdd.projections.UniformOrders(4)}, "controlled (labels and directions)"),
        ({"directions": sotdd.projections.Orthogonal(), "label_law": Medians()}, "plain"),
    ],
)
def test_what_cannot_be_controlled_is_left_plain_and_said(pair, settings, name):
    r = sotdd.distance(*pair, n_projections=2000, **settings)
    plain = sotdd.distance(*pair, n_projections=4000, seed=1, estimator="plain", **settings)
    assert r.estimator == name
    assert abs(r.value - plain.value) < 4 * math.hypot(r.stderr, plain.stderr)
    if name == "plain":
        assert r.value == sotdd.distance(*pair, n_projections=2000, estimator="plain", **settings).value


# ------------------------------------------------------------------ as many as it takes


def test_projections_are_drawn_until_the_error_is_met(pair):
    r = sotdd.distance(*pair, rel_tol=0.005)
    assert r.stderr <= 0.005 * r.value
    assert r.n_projections % 64 == 0
    assert not r.remarks
    same = sotdd.distance(*pair, n_projections=r.n_projections)
    assert r.value == pytest.approx(same.value, rel=1e-6)
    assert r.fingerprint == same.fingerprint
    rough = sotdd.distance(*pair, rel_tol=0.5)
    assert rough.n_projections == 512
    assert sotdd.distance(*pair, rel_tol=0.5, n_projections=100).n_projections == 128


def test_what_is_not_reached_is_said(pair):
    r = sotdd.distance(*pair, rel_tol=1e-6, max_projections=1000)
    assert r.n_projections == 1000
    assert "1,000 projections did not reach rel_tol=1e-06" in repr(r)


def test_given_projections_have_no_more_to_draw(pair):
    recipe = sotdd.Projections.fit(open_pair(*pair), n_projections=64)
    with pytest.raises(sotdd.SotddError, match="rel_tol is given together with projections"):
        sotdd.distance(*pair, projections=recipe, rel_tol=0.1)
    given = sotdd.Projections.from_arrays(theta=[[1.0]], psi=[[1.0, 0.0]], orders=[[1]])
    with pytest.raises(sotdd.SotddError, match="cannot be continued"):
        given.from_block(1, 64)


def test_weights_are_left_out_where_a_mean_is_not_taken(rng):
    x, y = rng.normal(size=(60, 4)) * [3, 1, 1, 1], rng.integers(2, size=60)
    tilted = sotdd.Projections.fit([(x, y)], n_projections=64, tilt=True)
    assert tilted.weighted
    even = tilted.evenly()
    assert not even.weighted
    assert even.fingerprint == sotdd.Projections.fit([(x, y)], n_projections=64, tilt=False).fingerprint
    assert sotdd.test((x, y), (x, y), projections=tilted, n_permutations=9).fingerprint == even.fingerprint


def test_the_same_points_under_other_labels_do_not_hang_on_last_bits(rng):
    """Gaps between means are rounding then; a control made of rounding was fitted to the costs."""
    x = rng.normal(size=(300, 5))
    y, wrong = np.where(x[:, 0] > 0, 1, 0), rng.integers(3, size=300)
    projections = sotdd.Projections.fit([x], n_projections=512)
    one = sotdd.distance((x, y), (x, wrong), projections=projections).value
    again = rng.permutation(300)  # the same datasets, their sums in another order
    other = sotdd.distance((x, y), (x[again], wrong[again]), projections=projections).value
    assert other == pytest.approx(one, rel=1e-6)


def test_few_projections_are_left_plain_where_coefficients_would_be_fitted_alone(pair):
    names = [sotdd.distance(*pair, n_projections=64, label_law=law).estimator for law in ("quantiles", "moments")]
    assert names == ["plain", "controlled (labels and directions)"]
