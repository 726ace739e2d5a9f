"""Sketches through tilted directions, and with controls: as exact as the distance of the data."""

import numpy as np
import pytest

import sotdd
from sketches.cases import in_batches, two_passes
from sotdd.sketches.controls import Carried


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


def texts(rng, shift=0.0, n=800):
    """Unit vectors in 96 dimensions around class centres, as sentence embeddings lie; twenty classes."""
    y = rng.integers(20, size=n)
    centres = np.random.default_rng(3).normal(size=(20, 96))
    x = centres[y] + rng.normal(size=(n, 96)) + shift
    return x / np.linalg.norm(x, axis=1, keepdims=True), y


KINDS = {"pictures": pictures, "table": table, "heavy": heavy, "texts": texts}


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


def test_a_distance_of_sketches_is_that_of_the_data(rng, kind):
    """Value, error and estimator, where every value is kept."""
    a, b = kind(rng), kind(rng, 0.5)
    projections = sotdd.Projections.fit([a, b], n_projections=512)
    one, other = (sotdd.sketch(data, projections, n_quantiles=None) for data in (a, b))
    found, wanted = one.distance(other), sotdd.distance(a, b, projections=projections)
    assert found.estimator == wanted.estimator == "controlled (labels and tilted directions)"
    assert found.value == pytest.approx(wanted.value, rel=1e-5)
    assert found.stderr == pytest.approx(wanted.stderr, rel=1e-3)
    np.testing.assert_array_equal(found.weights, wanted.weights)
    plain = one.distance(other, estimator="plain").value
    assert plain == pytest.approx(sotdd.distance(a, b, projections=projections, estimator="plain").value, rel=1e-6)


@pytest.mark.slow
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


def test_plain_weighted_distances_follow_from_the_quantiles_and_the_weights(rng):
    """An independent mean over projections of |F - G|^p, and its weights."""
    a, b = pictures(rng, n=64), pictures(rng, 0.5, n=64)
    projections = sotdd.Projections.fit([a, b], n_projections=96)
    one, other = (sotdd.sketch(data, projections, n_quantiles=None) for data in (a, b))
    weights = np.concatenate([projections.draw(start, start + 64).importance for start in (0, 64)])
    assert weights.std() > 0.1
    for p in (1, 1.5, 2, 3):
        costs = np.mean(np.abs(one.quantiles.astype(float) - other.quantiles) ** p, axis=1)
        wanted = np.mean(weights * costs) ** (1 / p)
        assert one.distance(other, p, estimator="plain").value == pytest.approx(wanted, rel=1e-6)


def test_through_fixed_weighted_projections_it_is_a_metric(rng):
    datasets = [pictures(rng, shift, n=100) for shift in (0, 0.2, 1)] + [pictures(rng, -1, n=50)]
    projections = sotdd.Projections.fit(datasets, n_projections=128)
    made = [sotdd.sketch(data, projections) for data in datasets]
    far = np.array([[a.distance(b, estimator="plain").value for b in made] for a in made])
    assert np.array_equal(far, far.T)
    assert not far.diagonal().any()
    assert (far[:, :, None] <= far[:, None, :] + far.T[None, :, :] + 1e-9).all()


# ------------------------------------------------------------------ streams


def same(a: Carried, b: Carried):
    np.testing.assert_allclose(a.places, b.places, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(a.values, b.values, rtol=1e-5, atol=1e-7)
    for name in ("even", "between", "mean", "dimensions"):
        np.testing.assert_allclose(getattr(a.lengths, name), getattr(b.lengths, name), rtol=1e-6, atol=1e-8)


def test_streams_shards_and_two_passes_carry_the_same(rng, kind):
    a, b = kind(rng), kind(rng, 0.5)
    projections = sotdd.Projections.fit([a, b], n_projections=256)
    whole, other = (sotdd.sketch(data, projections) for data in (a, b))
    batches = in_batches(a, [1, 30, 500])
    builders = [sotdd.SketchBuilder(projections).add(*batch) for batch in batches]
    merged = builders[2]
    for builder in (builders[0], builders[3], builders[1]):
        merged.merge(builder)
    ways = [sotdd.sketch_stream(batches, projections), two_passes(batches, projections), merged.finish()]
    wanted = whole.distance(other)
    for made in ways:
        same(made.controls, whole.controls)
        np.testing.assert_array_equal(made.weights, whole.weights)
        found = made.distance(other)
        assert found.estimator == wanted.estimator
        assert found.value == pytest.approx(wanted.value, rel=0.02)


def test_too_many_classes_carry_nothing_and_are_plain(rng, monkeypatch):
    monkeypatch.setattr("sotdd.sketches.statistics._POWER_BYTES", 100_000)
    monkeypatch.setattr("sotdd.sketches.builder._GROUP_BYTES", 100_000)
    x, y = rng.normal(size=(400, 5)), rng.integers(40, size=400)
    projections = sotdd.Projections.fit([x], n_projections=64)
    made = sotdd.sketch_stream(in_batches((x, y), [200]), projections)
    assert made.controls is None
    assert made.halves is None
    assert made.distance(sotdd.sketch((x + 1, y), projections)).estimator == "plain"


# ------------------------------------------------------------------ files


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("features", [6, 200])
def test_a_file_keeps_tilt_weights_and_controls(rng, tmp_path, half, features):
    a, b = ((rng.normal(size=(500, features)) * np.linspace(2, 0.1, features) + c, np.arange(500) % 3) for c in (0, 1))
    projections = sotdd.Projections.fit([a, b], n_projections=256)
    one, other = (sotdd.sketch(data, projections) for data in (a, b))
    one.save(tmp_path / "one.sotdd", half=half)
    again = sotdd.Sketch.load(tmp_path / "one.sotdd")
    found, wanted = again.distance(other), one.distance(other)
    assert found.estimator == wanted.estimator == "controlled (labels and tilted directions)"
    assert found.value == pytest.approx(wanted.value, rel=1e-3 if half else 1e-7)
    assert again.projections.fingerprint == projections.fingerprint
    np.testing.assert_array_equal(again.projections.tilt.basis, projections.tilt.basis)
    # Other data can be seen through what the file describes, to the last bit.
    np.testing.assert_array_equal(sotdd.sketch(b, again.projections).quantiles, other.quantiles)


def test_a_builder_file_keeps_what_controls_are_made_of(rng, tmp_path):
    a = pictures(rng)
    projections = sotdd.Projections.fit([a], n_projections=128)
    first, second = (
        sotdd.SketchBuilder(projections).add(a[0][part], a[1][part]) for part in (slice(300), slice(300, None))
    )
    first.save(tmp_path / "first")
    second.save(tmp_path / "second")
    sotdd.SketchBuilder(projections).save(tmp_path / "empty")  # of a party without data
    loaded = [sotdd.SketchBuilder.load(tmp_path / name) for name in ("empty", "second", "first")]
    made = loaded[0].merge(loaded[1]).merge(loaded[2]).finish()
    same(made.controls, sotdd.sketch(a, projections).controls)
    assert made.halves.shape == (2, 7)
    statistics = sotdd.ClassStatistics(projections).add(*a)
    statistics.save(tmp_path / "statistics")
    again = sotdd.ClassStatistics.load(tmp_path / "statistics")
    same(sotdd.SketchBuilder(projections, again).add(*a).finish().controls, made.controls)


# ------------------------------------------------------------------ noise


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
    assert "beyond noise (floor" in repr(one.distance(other))


def test_the_halves_of_a_stream_are_those_of_points(rng):
    """Their mean, over ways and datasets, against halves of the points themselves."""
    ratios = []
    for _ in range(12):
        a = table(rng, n=400)
        projections = sotdd.Projections.fit([a], n_projections=64)
        streamed, sorted_ = sotdd.sketch_stream(in_batches(a, [77]), projections), sotdd.sketch(a, projections)
        ratios.append(np.mean(streamed.halves**2, axis=1) / np.mean(sorted_.halves**2, axis=1))
    np.testing.assert_allclose(np.mean(ratios, axis=0), 1, atol=0.25)


def test_the_torch_engine_carries_the_same(rng, monkeypatch):
    pytest.importorskip("torch")
    from sotdd.engines.torch.engine import TorchEngine

    a = pictures(rng)
    projections = sotdd.Projections.fit([a], n_projections=128)
    usual = sotdd.sketch(a, projections)
    monkeypatch.setattr("sotdd.engines.protocol.engine_for", lambda *_, **__: TorchEngine("cpu"))
    by_torch = sotdd.sketch(a, projections)
    same(by_torch.controls, usual.controls)
    np.testing.assert_allclose(by_torch.halves, usual.halves, rtol=1e-4)
