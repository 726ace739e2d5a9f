"""Sketches through tilted directions, and with controls: as exact as the distance of the data."""

import numpy as np
import pytest

import sotdd
from sketches.cases import assert_same_controls, in_batches
from sotdd.compute import engine as sampling
from sotdd.compute.class_moments import ClassMoments


def pictures(rng, shift=0.0, n=800):
    """Points of 40 features with few strong directions, and four classes along them."""
    y = rng.integers(4, size=n)
    strong = rng.normal(size=(n, 3)) + np.stack([y, y == 1, shift + 0 * y], axis=1)
    basis = np.linalg.qr(np.random.default_rng(7).normal(size=(40, 3)))[0]
    return strong @ basis.T * 3 + rng.normal(size=(n, 40)) * 0.3, y


def table(rng, shift=0.0, n=800):
    """Log-normal columns of different sizes, two classes."""
    x = rng.lognormal(size=(n, 6)) * [1, 5, 1, 0.2, 1, 1]
    x[:, 1] *= 1 + shift
    return x, (x[:, 0] + rng.normal(size=n) > 1.5).astype(int)


def heavy(rng, shift=0.0, n=800):
    """Student's t with three degrees of freedom, one feature."""
    x = rng.standard_t(3, size=(n, 1)) + shift
    return x, (x[:, 0] > 0).astype(int)


kinds = pytest.mark.parametrize("kind", [pictures, table, heavy])


@kinds
def test_a_distance_of_sketches_is_that_of_the_data(rng, kind):
    """Value, error and estimator, where every value is kept."""
    a, b = kind(rng, n=300), kind(rng, 0.5, n=500)
    projections = sotdd.Projections.fit([a, b], n_projections=256)
    one, other = (sotdd.sketch(data, projections, n_quantiles=None) for data in (a, b))
    found, wanted = one.distance(other), sotdd.distance(a, b, projections=projections)
    assert found.estimator == wanted.estimator == "controlled (labels and directions)"
    assert found.value == pytest.approx(wanted.value, rel=1e-5)
    assert found.stderr == pytest.approx(wanted.stderr, rel=1e-3)
    assert (found.sketch_error, found.remarks) == (0.0, wanted.remarks)
    assert (found.classes, found.n_points, found.fingerprint) == (wanted.classes, wanted.n_points, wanted.fingerprint)
    np.testing.assert_array_equal(found.weights, wanted.weights)
    for p in (1, 1.5, 2, 3):
        found = one.distance(other, p, estimator="plain")
        wanted = sotdd.distance(a, b, projections=projections, p=p, estimator="plain")
        assert found.value == pytest.approx(wanted.value, rel=1e-6)
        np.testing.assert_allclose(found.per_projection, wanted.per_projection, rtol=1e-5, atol=1e-9)


@pytest.mark.slow
@kinds
def test_the_error_is_that_of_distances(rng, kind):
    """At most 1.3 times, over seeds, with a quarter of the usual quantiles and projections."""
    a, b = kind(rng), kind(rng, 0.5)
    true = sotdd.distance(a, b, n_projections=8192, seed=999).value
    of_data, of_sketches, plain = [], [], []
    for seed in range(16):
        projections = sotdd.Projections.fit([a, b], n_projections=256, seed=seed)
        one, other = (sotdd.sketch(data, projections, n_quantiles=96) for data in (a, b))
        of_data.append(sotdd.distance(a, b, n_projections=256, seed=seed).value)
        of_sketches.append(one.distance(other).value)
        even = projections.evenly()
        one, other = (sotdd.sketch(data, even, n_quantiles=96) for data in (a, b))
        plain.append(one.distance(other, estimator="plain").value)
    errors = [np.sqrt(np.mean((np.array(values) / true - 1) ** 2)) for values in (of_data, of_sketches, plain)]
    assert errors[1] < 1.3 * errors[0]
    assert errors[1] < errors[2] or kind is heavy  # in one dimension there is little to gain


def test_weighted_distances_follow_from_the_quantiles_and_are_a_metric(rng):
    """An independent mean over projections of |F - G|^p, and its weights."""
    datasets = [pictures(rng, shift, n=64) for shift in (0, 0.2, 1, -1)]
    projections = sotdd.Projections.fit(datasets, n_projections=96)
    made = [sotdd.sketch(data, projections, n_quantiles=None) for data in datasets]
    weights = np.concatenate([projections.draw(start, start + 64).importance for start in (0, 64)])
    assert weights.std() > 0.1
    for p in (1, 1.5, 2, 3):
        costs = np.mean(np.abs(made[0].quantiles.astype(float) - made[1].quantiles) ** p, axis=1)
        wanted = np.mean(weights * costs) ** (1 / p)
        assert made[0].distance(made[1], p, estimator="plain").value == pytest.approx(wanted, rel=1e-6)
    far = np.array([[a.distance(b, estimator="plain").value for b in made] for a in made])
    assert np.array_equal(far, far.T)
    assert not far.diagonal().any()
    assert (far[:, :, None] <= far[:, None, :] + far.T[None, :, :] + 1e-9).all()


@kinds
def test_streams_and_shards_carry_the_same(rng, kind):
    a, b = kind(rng), kind(rng, 0.5)
    projections = sotdd.Projections.fit([a, b], n_projections=128)
    sampling._kept.clear()
    batches = in_batches(a, [1, 30, 500])
    builders = [sotdd.SketchBuilder(projections).add(*batch) for batch in batches]
    merged = builders[2]
    for builder in (builders[0], builders[3], builders[1]):
        merged.merge(builder)
    ways = [sotdd.sketch_stream(batches, projections), merged.finish()]
    sampling._kept.clear()  # draws that one way keeps must not be what makes another right, or wrong
    whole, other = (sotdd.sketch(data, projections) for data in (a, b))
    wanted = whole.distance(other)
    for made in ways:
        assert_same_controls(made.controls, whole.controls)
        np.testing.assert_array_equal(made.weights, whole.weights)
        found = made.distance(other)
        assert found.estimator == wanted.estimator
        assert found.value == pytest.approx(wanted.value, rel=0.02)


def test_too_many_classes_carry_nothing_and_are_plain(rng, monkeypatch):
    monkeypatch.setattr("sotdd.sketches.sums.MOST_BYTES", {"controls": 100_000, "groups": 100_000})
    x, y = rng.normal(size=(400, 5)), rng.integers(40, size=400)
    projections = sotdd.Projections.fit([x], n_projections=64)
    made = sotdd.sketch_stream(in_batches((x, y), [200]), projections)
    assert made.controls is None
    assert made.halves is None
    assert made.distance(sotdd.sketch((x + 1, y), projections)).estimator == "plain"
    assert ClassMoments(np.array([[1e39]]), None, None).narrow().gaussian_moments is None  # nor does what overflows


@pytest.mark.slow
@pytest.mark.parametrize("streamed", [False, True])
def test_two_samples_of_one_source_are_rarely_beyond_noise(streamed):
    """About one in twenty: 2 in 40 are expected, and 8 or more happen once in a thousand times."""
    beyond = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        a, b = table(rng, n=300), table(rng, n=200)
        projections = sotdd.Projections.fit([a, b], n_projections=64, seed=seed)
        if streamed:
            one, other = (sotdd.sketch_stream(in_batches(data, [100]), projections) for data in (a, b))
        else:
            one, other = (sotdd.sketch(data, projections) for data in (a, b))
        beyond += not one.distance(other).within_noise
    assert beyond < 8


def test_what_differs_is_beyond_noise_and_what_does_not_has_no_excess(rng):
    projections = sotdd.Projections.fit([pictures(rng)], n_projections=256)
    one, same_law, other = (sotdd.sketch(pictures(rng, s), projections) for s in (0, 0, 0.7))
    assert one.distance(other).within_noise is False
    assert one.distance(other).excess > 4 * one.distance(other).excess_stderr
    assert abs(one.distance(same_law).excess) < 4 * one.distance(same_law).excess_stderr


def test_the_halves_of_a_stream_are_those_of_points(rng):
    """Their mean, over ways and datasets, against halves of the points themselves."""
    ratios = []
    for _ in range(8):
        a = table(rng, n=400)
        projections = sotdd.Projections.fit([a], n_projections=64)
        streamed, sorted_ = sotdd.sketch_stream(in_batches(a, [77]), projections), sotdd.sketch(a, projections)
        ratios.append(np.mean(streamed.halves**2, axis=1) / np.mean(sorted_.halves**2, axis=1))
    np.testing.assert_allclose(np.mean(ratios, axis=0), 1, atol=0.25)
