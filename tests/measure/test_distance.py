"""The distance against the authors' outputs, a brute force, and the properties of a metric."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import reference
import sotdd

# ------------------------------------------------------------------ the authors' outputs


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize("pair", ["01", "02", "12"])
def test_authors_linear_projections(authors, p, pair, device):
    known = authors("sotdd_linear")
    projections = sotdd.Projections.from_arrays(theta=known["theta"], psi=known["psi"], orders=known["orders"])
    i, j = pair
    a, b = ((known[f"X{k}"], known[f"y{k}"]) for k in (i, j))
    result = sotdd.distance(a, b, p=p, projections=projections, device=device)
    np.testing.assert_allclose(result.per_projection ** (1 / p), known[f"w_p{p}_{pair}"], rtol=1e-4)
    letter = sotdd.paper(a, b, p=p, projections=projections, device=device)
    assert letter.value**p == pytest.approx(np.mean(known[f"w_p{p}_{pair}"] ** p), rel=1e-4)


# ------------------------------------------------------------------ brute force

sizes = st.integers(1, 12)


@st.composite
def labelled(draw, n_features):
    n = draw(sizes)
    features = draw(
        hnp.arrays(np.float64, (n, n_features), elements=st.floats(-3, 3).map(lambda number: round(number, 6)))
    )
    return features, draw(st.lists(st.sampled_from("abcd"), min_size=n, max_size=n))


@st.composite
def comparison(draw):
    n_features = draw(st.integers(1, 4))
    return draw(labelled(n_features)), draw(labelled(n_features))


@given(datasets=comparison(), p=st.sampled_from([1, 1.5, 2, 3, 4.25]), seed=st.integers(0, 999), own=st.booleans())
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_brute_force_in_float64(device, datasets, p, seed, own):
    a, b = datasets
    drawn = reference.draw(np.random.default_rng(seed), 5, a[0].shape[1], own=own)
    result = sotdd.distance(a, b, p=p, projections=sotdd.Projections.from_arrays(**drawn), device=device)
    expected = reference.per_projection(a, b, p=p, **drawn)
    # What float32 can tell apart: values here reach about 100.
    np.testing.assert_allclose(result.per_projection ** (1 / p), expected ** (1 / p), rtol=2e-4, atol=4e-5)
    assert result.value == pytest.approx(np.mean(expected) ** (1 / p), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize(("n", "m"), [(1100, 1100), (1100, 1500), (1, 1024)])
def test_brute_force_where_rows_are_sorted_by_digits(rng, n, m, device):
    a = rng.normal(size=(n, 6)), rng.integers(0, 7, size=n)
    b = rng.normal(0.3, 2, size=(m, 6)), rng.integers(3, 9, size=m)
    drawn = reference.draw(rng, 2, 6)
    result = sotdd.distance(a, b, projections=sotdd.Projections.from_arrays(**drawn), device=device)
    np.testing.assert_allclose(result.per_projection, reference.per_projection(a, b, p=2, **drawn), rtol=1e-4)


@pytest.mark.parametrize("own", [False, True])
def test_brute_force_with_clamp(rng, own, device):
    a = rng.normal(size=(40, 5)), rng.integers(0, 3, size=40)
    b = rng.normal(size=(30, 5)), rng.integers(0, 2, size=30)
    drawn = {**reference.draw(rng, 70, 5, own=own), "clamp": 0.8}
    result = sotdd.distance(a, b, projections=sotdd.Projections.from_arrays(**drawn), device=device)
    np.testing.assert_allclose(result.per_projection, reference.per_projection(a, b, p=2, **drawn), rtol=1e-4)


@pytest.mark.parametrize("label_directions", ["shared", "own"])
def test_drawn_projections_and_scaling_are_what_the_definition_says(rng, label_directions, device):
    """The whole default path: draws, scaler, products, against scaled data and the same draws."""
    a = rng.normal(5, 3, size=(50, 7)), rng.integers(0, 4, size=50)
    b = rng.normal(4, 2, size=(35, 7)), rng.integers(0, 2, size=35)
    how = {"n_projections": 100, "label_directions": label_directions}
    block = sotdd.Projections.fit([a, b], **how).draw(0, 100)
    pooled = np.concatenate([*[a[0]] * 7, *[b[0]] * 10])  # both sides count the same
    scale = math.sqrt(pooled.var(axis=0).mean())

    def project(data):
        features = (data[0] - pooled.mean(axis=0)) / scale
        t, u = features @ block.features.theta.T, features @ block.directions[-1].theta.T
        powers = np.stack([u**k for k in range(block.terms.coefficients.shape[1])], axis=-1)
        values = np.einsum("nlk,lk->nl", powers, block.terms.coefficients)
        for label in set(data[1].tolist()):
            values[data[1] == label] = values[data[1] == label].mean(axis=0)
        return block.terms.weights * t + values

    pa, pb = project(a), project(b)
    expected = [reference.wasserstein(pa[:, i], pb[:, i], 2) for i in range(100)]
    result = sotdd.distance(a, b, device=device, **how)
    np.testing.assert_allclose(result.per_projection, expected, rtol=1e-4)


def test_label_directions_of_their_own_are_independent_and_even(rng):
    """θ leans towards the data and carries weights; φ is uniform, whatever θ is."""
    x = rng.normal(size=(400, 130)) * np.append(20, np.ones(129))
    block = sotdd.Projections.fit([x], n_projections=2000, label_directions="own").draw(0, 2000)
    theta, phi = (drawn.theta for drawn in block.directions)
    assert abs(np.mean(np.sum(theta * phi, axis=1))) < 4 / math.sqrt(2000 * 130)
    assert np.mean(theta[:, 0] ** 2) > 3 / 130
    assert np.mean(phi[:, 0] ** 2) == pytest.approx(1 / 130, rel=0.2)


# ------------------------------------------------------------------ known answers


def test_known_answer_of_a_shift_without_labels():
    """One projection that looks at the feature only sees a shift by 3 as a distance of 3."""
    one = sotdd.Projections.from_arrays(theta=[[1.0]], psi=[[1.0, 0.0]], orders=[[1]])
    assert sotdd.distance([[0.0], [1.0]], [[3.0], [4.0]], projections=one).value == 3.0


def test_known_answer_of_a_label_moment():
    """One projection that looks at the second moment only: classes {1, -1} and {2} give 1/2 and 2."""
    one = sotdd.Projections.from_arrays(theta=[[1.0]], psi=[[0.0, 1.0]], orders=[[2]])
    result = sotdd.distance(([[1.0], [-1.0]], ["x", "x"]), ([[2.0]], ["y"]), projections=one)
    assert result.value == pytest.approx(1.5)


def test_known_answer_of_the_mean_over_the_sphere():
    """Without scaling and labels far from mattering, a shift by v gives E(ψ₁θ·v + …)²; in one dimension all of it.

    With k = 1, order 1 and one class each, a point moves by (ψ₁ + ψ₂) θ·v. Its mean square is |v|²/d.
    """
    x = np.zeros((1, 3))
    v = np.array([[3.0, 0.0, 4.0]])
    r = sotdd.distance(
        x, x + v, n_projections=20_000, n_moments=1, moments=sotdd.projections.UniformOrders(1), scale=None
    )
    low, high = r.interval(0.999)
    assert low < math.sqrt(25 / 3) < high


# ------------------------------------------------------------------ a metric, for fixed projections


def test_identity(three):
    datasets, projections = three
    for data in datasets:
        assert sotdd.distance(data, data, projections=projections).value == 0.0


@pytest.mark.parametrize("p", [1, 2, 2.5])
def test_symmetry(three, p):
    (a, _, c), projections = three
    there = sotdd.distance(a, c, projections=projections, p=p)
    back = sotdd.distance(c, a, projections=projections, p=p)
    np.testing.assert_array_equal(there.per_projection, back.per_projection)
    assert sotdd.distance(a, c, n_projections=64, p=p).value == sotdd.distance(c, a, n_projections=64, p=p).value


@pytest.mark.parametrize("p", [1, 2, 3.5])
def test_triangle_inequality(three, p):
    datasets, projections = three
    values = sotdd.pairwise(datasets, projections=projections, p=p).values
    for i, j, k in [(0, 1, 2), (1, 2, 0), (2, 0, 1)]:
        assert values[i, j] <= values[i, k] + values[k, j]


def test_rows_may_come_in_any_order(three, rng):
    (a, b, _), projections = three
    order = rng.permutation(len(a[0]))
    shuffled = a[0][order], a[1][order]
    expected = sotdd.distance(a, b, projections=projections).per_projection
    np.testing.assert_allclose(sotdd.distance(shuffled, b, projections=projections).per_projection, expected, rtol=1e-5)
    assert sotdd.distance(shuffled, a, projections=projections).value < 1e-6


def test_labels_may_be_renamed(three):
    (a, b, _), projections = three
    names = np.array(["wolf", "cat", "emu", "bee"])
    expected = sotdd.distance(a, b, projections=projections).per_projection
    renamed = sotdd.distance((a[0], names[a[1]]), b, projections=projections).per_projection
    np.testing.assert_allclose(renamed, expected, rtol=1e-5)


def test_repeating_every_point_changes_nothing(three):
    (a, b, _), projections = three
    twice = np.repeat(a[0], 2, axis=0), np.repeat(a[1], 2)
    np.testing.assert_allclose(
        sotdd.distance(twice, b, projections=projections).per_projection,
        sotdd.distance(a, b, projections=projections).per_projection,
        rtol=1e-5,
    )
