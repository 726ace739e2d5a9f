"""The distance against the authors' outputs, a brute force, and the properties of a metric."""

import inspect
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

import reference
import sotdd
from sotdd.results.estimators import estimated_distance

# ------------------------------------------------------------------ the authors' outputs


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize("pair", ["01", "02", "12"])
def test_authors_linear_projections(authors, p, pair):
    known = authors("sotdd_linear")
    projections = sotdd.Projections.from_arrays(theta=known["theta"], psi=known["psi"], orders=known["orders"])
    i, j = pair
    result = sotdd.distance(
        (known[f"X{i}"], known[f"y{i}"]), (known[f"X{j}"], known[f"y{j}"]), p=p, projections=projections
    )
    np.testing.assert_allclose(result.per_projection ** (1 / p), known[f"w_p{p}_{pair}"], rtol=1e-4)


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


@given(datasets=comparison(), p=st.sampled_from([1, 1.5, 2, 3, 4.25]), seed=st.integers(0, 999), separate=st.booleans())
@settings(max_examples=150, deadline=None)
def test_brute_force_in_float64(datasets, p, seed, separate):
    a, b = datasets
    rng = np.random.default_rng(seed)
    drawn = reference.draw(rng, 5, a[0].shape[1])
    if separate:
        drawn["phi"] = rng.permutation(drawn["theta"])
    result = sotdd.distance(a, b, p=p, projections=sotdd.Projections.from_arrays(**drawn))
    expected = reference.per_projection(a, b, p=p, **drawn)
    # What float32 can tell apart: values here reach about 100.
    np.testing.assert_allclose(result.per_projection ** (1 / p), expected ** (1 / p), rtol=2e-4, atol=4e-5)
    assert result.value == pytest.approx(np.mean(expected) ** (1 / p), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize(("n", "m"), [(1500, 1500), (1500, 1100), (2000, 3), (1, 1024)])
def test_brute_force_where_rows_are_sorted_by_digits(rng, n, m):
    a = rng.normal(size=(n, 6)), rng.integers(0, 7, size=n)
    b = rng.normal(0.3, 2, size=(m, 6)), rng.integers(3, 9, size=m)
    drawn = reference.draw(rng, 6, 6)
    result = sotdd.distance(a, b, projections=sotdd.Projections.from_arrays(**drawn))
    np.testing.assert_allclose(result.per_projection, reference.per_projection(a, b, p=2, **drawn), rtol=1e-4)


def test_brute_force_with_clamp_and_own_label_directions(rng):
    a = rng.normal(size=(40, 5)), rng.integers(0, 3, size=40)
    b = rng.normal(size=(30, 5)), rng.integers(0, 2, size=30)
    drawn = {**reference.draw(rng, 70, 5), "phi": reference.draw(rng, 70, 5)["theta"], "clamp": 0.8}
    result = sotdd.distance(a, b, projections=sotdd.Projections.from_arrays(**drawn))
    np.testing.assert_allclose(result.per_projection, reference.per_projection(a, b, p=2, **drawn), rtol=1e-4)


def test_drawn_projections_and_scaling_are_what_the_definition_says(rng):
    """The whole default path: draws, pooled scaler, products, against scaled data and the same draws."""
    a = rng.normal(5, 3, size=(50, 7)), rng.integers(0, 4, size=50)
    b = rng.normal(4, 2, size=(35, 7)), rng.integers(0, 2, size=35)
    projections = sotdd.Projections.fit([a, b], n_projections=100, shared_directions=False)
    block = projections.draw(0, 100)
    pooled = np.concatenate([a[0], b[0]])
    scale = math.sqrt(pooled.var(axis=0).mean())

    def project(data):
        features = (data[0] - pooled.mean(axis=0)) / scale
        t, u = features @ block.features.theta.T, features @ block.label_features.theta.T
        powers = np.stack([u**k for k in range(block.terms.coefficients.shape[1])], axis=-1)
        values = np.einsum("nlk,lk->nl", powers, block.terms.coefficients)
        for label in set(data[1].tolist()):
            values[data[1] == label] = values[data[1] == label].mean(axis=0)
        return block.terms.weights * t + values

    pa, pb = project(a), project(b)
    expected = [reference.wasserstein(pa[:, i], pb[:, i], 2) for i in range(100)]
    result = sotdd.distance(a, b, n_projections=100, shared_directions=False)
    np.testing.assert_allclose(result.per_projection, expected, rtol=1e-4)


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
    r = sotdd.distance(x, x + v, n_projections=20_000, n_moments=1, moments=sotdd.UniformOrders(1), scale=None)
    low, high = r.interval(0.999)
    assert low < math.sqrt(25 / 3) < high


# ------------------------------------------------------------------ a metric, for fixed projections


@pytest.fixture
def three(rng):
    datasets = [
        (rng.normal(shift, 1 + shift, size=(n, 9)), rng.integers(0, classes, size=n))
        for n, shift, classes in [(1200, 0, 4), (1200, 0.5, 2), (700, 1, 7)]
    ]
    return datasets, sotdd.Projections.fit(datasets, n_projections=200)


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


def test_symmetry_with_projections_fitted_to_the_pair(three):
    (a, _, c), _ = three
    assert sotdd.distance(a, c).value == sotdd.distance(c, a).value


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


# ------------------------------------------------------------------ it sees what it should


def test_a_label_shuffle_is_seen(rng):
    labels = np.repeat([0, 1, 2], 200)
    features = rng.normal(size=(600, 4)) + 3 * labels[:, None]
    again = rng.normal(size=(600, 4)) + 3 * labels[:, None]
    same = sotdd.distance((features, labels), (again, labels)).value
    shuffled = sotdd.distance((features, labels), (again, rng.permutation(labels))).value
    assert shuffled > 5 * same


def test_moving_one_class_is_seen(rng):
    labels = np.repeat(np.arange(10), 100)
    features, again = rng.normal(size=(2, 1000, 4))
    moved = again + 2.0 * (labels == 7)[:, None]
    projections = sotdd.Projections.fit([features])
    same = sotdd.distance((features, labels), (again, labels), projections=projections).value
    assert sotdd.distance((features, labels), (moved, labels), projections=projections).value > 3 * same


# ------------------------------------------------------------------ the result


def test_result_carries_its_diagnostics(rng):
    a = rng.normal(size=(30, 4)), ["x"] * 10 + ["y"] * 20
    b = rng.normal(1, 1, size=(20, 4)), [True, False] * 10
    r = sotdd.distance(a, b, n_projections=300, seed=3, p=1.5, estimator="plain")
    assert r.value == pytest.approx(np.mean(r.per_projection) ** (1 / 1.5))
    assert float(r) == r.value
    assert (r.n_points, r.n_projections, r.p) == ((30, 20), 300, 1.5)
    assert set(r.classes[0]) == {"x", "y"}
    assert set(r.classes[1]) == {True, False}
    assert r.fingerprint == sotdd.Projections.fit([a, b], n_projections=300, seed=3).fingerprint
    assert isinstance(r.scaler, sotdd.Scaler)
    with pytest.raises(AttributeError):
        r.p = 3
    with pytest.raises(ValueError, match="read-only"):
        r.per_projection[0] = 0


def test_stderr_is_the_spread_over_seeds(rng):
    """The delta method against what it stands for: the standard deviation over many seeds."""
    a, b = rng.normal(size=(50, 3)), rng.normal(0.7, 1, size=(50, 3))
    results = [sotdd.distance(a, b, n_projections=400, seed=seed, n_moments=2) for seed in range(150)]
    spread = np.std([r.value for r in results], ddof=1)
    assert np.median([r.stderr for r in results]) == pytest.approx(spread, rel=0.25)


def test_intervals_cover(rng):
    a, b = rng.normal(size=(50, 3)), rng.normal(0.7, 1, size=(50, 3))
    truth = sotdd.distance(a, b, n_projections=200_000, seed=10**6, n_moments=2).value
    intervals = [sotdd.distance(a, b, n_projections=400, seed=seed, n_moments=2).interval(0.9) for seed in range(200)]
    covered = np.mean([low <= truth <= high for low, high in intervals])
    assert 0.82 < covered < 0.96


def test_interval_is_students(rng):
    w = np.array([1.0, 2.0, 3.0, 6.0])
    point = sotdd.LabelledData.of([[0.0]])
    low, high = estimated_distance(point, point, w, 1.0).interval(0.9)
    expected = stats.t.interval(0.9, 3, loc=3, scale=stats.sem(w))
    np.testing.assert_allclose([low, high], expected)
    assert w.flags.writeable


def test_interval_widens_with_the_level_and_stays_positive(rng):
    r = sotdd.distance(rng.normal(size=(9, 2)), rng.normal(size=(9, 2)), n_projections=4)
    wide, narrow = r.interval(0.999), r.interval(0.5)
    assert 0 <= wide[0] <= narrow[0] < r.value < narrow[1] < wide[1]
    for level in [0, 1, -1, math.nan, "much"]:
        with pytest.raises(sotdd.SotddError, match="level"):
            r.interval(level)


def test_repr_reads_well():
    def shown(value, relative_error):
        spread = 2 * relative_error * value**2 * math.sqrt(999 / 1000) * math.sqrt(1000)
        w = value**2 + spread * np.tile([1.0, -1.0], 500)
        point = sotdd.LabelledData.of([[0.0]])
        return repr(estimated_distance(point, point, w, 2.0))

    assert shown(0.507, 0.0237) == "0.507 ± 0.012 (s-OTDD, p=2, 1,000 projections)"
    assert shown(12345.6, 0.001) == "12346 ± 12 (s-OTDD, p=2, 1,000 projections)"
    assert shown(1e-9, 0.01) == "1e-09 ± 1e-11 (s-OTDD, p=2, 1,000 projections)"


def test_a_single_projection_has_no_error_estimate(rng):
    r = sotdd.distance(rng.normal(size=(5, 2)), rng.normal(size=(5, 2)), n_projections=1)
    assert math.isnan(r.stderr)
    assert "1 projection)" in repr(r)
    assert json.loads(json.dumps(r.to_dict(), allow_nan=False))["stderr"] is None


def test_to_dict_is_json(rng):
    labels = [("a", 1), math.inf, 2.5, np.int64(3), "x"]
    r = sotdd.distance((rng.normal(size=(5, 2)), labels), rng.normal(size=(4, 2)), n_projections=10)
    told = json.loads(json.dumps(r.to_dict(per_projection=True), allow_nan=False))
    assert told["value"] == r.value
    assert told["n_points"] == [5, 4]
    assert told["n_classes"] == [5, 1]
    assert told["per_projection"] == r.per_projection.tolist()
    assert "per_projection" not in r.to_dict()


# ------------------------------------------------------------------ settings


def test_signature_shows_the_defaults():
    for call in (sotdd.distance, sotdd.pairwise):
        shown = {name: repr(argument.default) for name, argument in inspect.signature(call).parameters.items()}
        assert shown["n_projections"] == "1000"
        assert shown["n_moments"] == "None"
        assert shown["scale"] == "'auto'"
        assert shown["seed"] == "0"


def test_given_projections_exclude_drawing_arguments(three):
    (a, b, _), projections = three
    for argument in [{"n_projections": 1000}, {"seed": 0}, {"scale": None}, {"directions": sotdd.Sphere()}]:
        with pytest.raises(sotdd.SotddError, match=f"together with {next(iter(argument))}"):
            sotdd.distance(a, b, projections=projections, **argument)
    assert sotdd.distance(a, b, projections=projections, p=1).p == 1


@pytest.mark.parametrize("bad", [0, -3, 2.5, "many", True, None])
def test_n_projections_must_be_a_count(bad):
    with pytest.raises(sotdd.SotddError, match="n_projections"):
        sotdd.distance([[1.0]], [[2.0]], n_projections=bad)


@pytest.mark.parametrize("bad", [0, -1, 1.5, "5", 1000, 10**9])
def test_n_moments_must_be_a_count(bad):
    with pytest.raises(sotdd.SotddError, match="n_moments"):
        sotdd.distance([[1.0]], [[2.0]], n_moments=bad)


@pytest.mark.parametrize("bad", [0, 0.99, -2, math.nan, math.inf, "2", None, True, 10**400, 1j])
def test_p_must_be_at_least_one(bad):
    with pytest.raises(sotdd.SotddError, match="p is"):
        sotdd.distance([[1.0]], [[2.0]], p=bad)


@pytest.mark.parametrize("bad", [-1, 1.5, None, "0", True, np.random.SeedSequence(4)])
def test_seed_must_be_a_seed(bad):
    with pytest.raises(sotdd.SotddError, match="seed"):
        sotdd.distance([[1.0]], [[2.0]], seed=bad)


def test_other_settings_are_checked():
    a, b = [[1.0]], [[2.0]]
    for argument, said in [
        ({"scale": "minmax"}, "scale is 'minmax'"),
        ({"directions": "sphere"}, "directions must be .*, not 'sphere'"),
        ({"shared_directions": "no"}, "shared_directions is 'no'"),
        ({"moments": sotdd.ZeroTruncatedPoisson}, "not the class ZeroTruncatedPoisson itself"),
        ({"moments": sotdd.Moments(3)}, "moments must be"),
        ({"moments": "poisson"}, "rates"),
        ({"moments": [1.0, -2.0]}, "rates"),
        ({"moments": [1.0, 2.0], "n_moments": 3}, "2 rates for 3 moments"),
        ({"label_law": 3}, "label_law must be .*, not 3"),
        ({"label_law": sotdd.Moments(), "n_moments": 3}, "label_law is given together"),
        ({"progress": "bar"}, "progress is 'bar'"),
        ({"projections": "mine"}, "projections is a str"),
        ({"scale": sotdd.Scaler(np.zeros(3), 1.0)}, "scaler is for 3 features"),
    ]:
        with pytest.raises(sotdd.SotddError, match=said):
            sotdd.distance(a, b, **argument)


def test_projections_for_other_features_are_refused():
    projections = sotdd.Projections.fit([np.zeros((3, 2))])
    with pytest.raises(sotdd.SotddError, match="3 features but the projections are for 2"):
        sotdd.distance(np.zeros((3, 3)), np.zeros((3, 3)), projections=projections)


# ------------------------------------------------------------------ overflow


def test_overflow_of_moments_names_the_order():
    x = np.array([[0.0], [1e9]])
    with pytest.raises(sotdd.SotddError, match=r"overflow: order \d+ of projected values as large as 1e\+09.*pooled"):
        sotdd.distance(x, x, scale=None)
    assert sotdd.distance(x, x + 1e8).value > 0


def test_overflow_of_features_is_told_from_overflow_of_moments():
    x = np.array([[0.0], [1e300]])
    with pytest.raises(sotdd.SotddError, match="too large for float32"):
        sotdd.distance(x, x, scale=None)
    assert sotdd.distance(x, x / 2).value > 0


def test_powers_that_leave_float64_are_told():
    one = sotdd.Projections.from_arrays(theta=[[1.0]], psi=[[1.0, 0.0]], orders=[[1]])
    x = np.array([[0.0], [1e30]])
    with pytest.raises(sotdd.SotddError, match="p=20 overflows"):
        sotdd.distance(x, -x, projections=one, p=20)
    with pytest.raises(sotdd.SotddError, match="p=100 underflows"):
        sotdd.distance([[0.0]], [[1e-4]], projections=one, p=100)


def test_large_powers_keep_their_error():
    """Squares of W_p^p would leave float64 here."""
    two = sotdd.Projections.from_arrays(theta=[[1.0], [0.9]], psi=[[1.0, 0.0]] * 2, orders=[[1], [1]])
    for size in (3e-4, 3e4):
        result = sotdd.distance([[0.0]], [[size]], projections=two, p=50)
        assert 0.9 * size < result.value <= size
        assert 0 < result.stderr < size
        assert str(result)


def test_features_that_vanish_are_told(rng):
    x = rng.normal(size=(5, 2)) * 1e-60
    with pytest.raises(sotdd.SotddError, match="too small for float32"):
        sotdd.distance(x, 2 * x, scale=None)
    assert sotdd.distance(x, 2 * x).value > 0


def test_rounding_that_matters_is_told(rng):
    """An outlier makes moments so large that the features beside them are rounded away in float32."""
    a = rng.normal(size=(500, 5))
    a[0] = 200
    b = a.copy()
    b[1:] += 0.05 * rng.normal(size=(499, 5))
    labels = rng.integers(3, size=500)
    assert "float32 rounding" in sotdd.distance((a, labels), (b, labels), label_law="paper").remarks[0]
    assert not any("float32" in said for said in sotdd.distance((a, labels), (b, labels)).remarks)  # moments are cut
    assert sotdd.distance((a[1:], labels[1:]), (b[1:], labels[1:])).remarks == ()
    assert not any("float32" in said for said in sotdd.distance((a, labels), (a, labels)).remarks)


def test_points_that_float32_cannot_tell_apart_are_told(rng):
    a, b = rng.normal(size=(2, 50, 4)) + 1e9
    lost = sotdd.distance(a, b, scale=None, moments=sotdd.UniformOrders(1))
    assert lost.remarks
    assert sotdd.distance(a, b).remarks == ()
    assert sotdd.distance(np.full((5, 2), 3.0), np.full((5, 2), 3.0), scale=None).remarks == ()


def test_more_projections_than_memory():
    with pytest.raises(sotdd.SotddError, match="do not fit in memory"):
        sotdd.distance([[1.0]], [[2.0]], n_projections=10**15)


# ------------------------------------------------------------------ progress


def test_progress_is_reported(rng):
    calls = []
    sotdd.distance(
        rng.normal(size=(5, 2)),
        rng.normal(size=(5, 2)),
        n_projections=1200,
        progress=lambda done, total: calls.append((done, total)),
    )
    assert calls == [(512, 1200), (1024, 1200), (1200, 1200)]


def test_progress_bar_is_drawn_on_standard_error(rng, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    sotdd.distance(rng.normal(size=(5, 2)), rng.normal(size=(5, 2)), progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Projecting" in shown.err
