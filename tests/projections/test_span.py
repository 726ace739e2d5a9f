"""Datasets turned onto the span of their points."""

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.spatial.distance import pdist

import sotdd


@pytest.fixture
def wide(rng):
    a = rng.normal(size=(40, 10, 30)), rng.integers(0, 3, size=40)
    b = rng.normal(0.2, 1.5, size=(25, 10, 30)), rng.choice(["cat", "dog"], size=25)
    return {"a": a, "b": b}


def stacked(datasets):
    return np.concatenate([data.features.reshape(data.n_points, -1) for data in datasets.values()])


def test_distances_between_points_are_kept(wide):
    span = sotdd.onto_span(wide, scale=None)
    before = np.concatenate([x.reshape(len(x), -1) for x, _ in wide.values()])
    after = stacked(span.datasets)
    assert after.shape == (65, 65)
    np.testing.assert_allclose(after @ after.T, before @ before.T, atol=1e-8)
    np.testing.assert_allclose(pdist(after), pdist(before))
    assert span.datasets["b"].classes == ("cat", "dog")


def test_centred_points_span_one_dimension_less(wide):
    span = sotdd.onto_span(wide)
    assert stacked(span.datasets).shape == (65, 64)
    assert span.scaler.scale > 0


def test_projections_have_the_law_they_had(rng):
    """The same point, seen by directions of the whole space and by those of the span."""
    x = rng.normal(size=(3, 40))
    span = sotdd.onto_span([x], scale=None)
    turned = stacked(span.datasets)
    whole = x @ sotdd.Sphere().draw(np.random.default_rng(1), 20_000, 40).theta.T
    seen = turned @ span.directions.draw(np.random.default_rng(2), 20_000, 3).theta.T
    for before, after in zip(whole, seen, strict=True):
        assert stats.ks_2samp(before, after).pvalue > 1e-3
    assert stats.ks_2samp(whole[0] * whole[1], seen[0] * seen[1]).pvalue > 1e-3


def test_the_distance_is_the_same_within_its_error(wide):
    span = sotdd.onto_span(wide)
    found = sotdd.pairwise(span.datasets, directions=span.directions, scale=None, n_projections=20_000)["a", "b"]
    direct = sotdd.distance(*wide.values(), n_projections=20_000, seed=1)
    assert found.value == pytest.approx(direct.value, abs=4 * np.hypot(found.stderr, direct.stderr))


def test_ranks_that_are_low(rng):
    x = rng.normal(size=(20, 3)) @ rng.normal(size=(3, 500))
    assert sotdd.onto_span([x], scale=None).datasets["0"].n_features == 3


def test_it_is_done_on_the_device_of_tensors(wide):
    """The torch path, on the processor here."""
    from sotdd.projections.span import _on_device, _on_host

    data = [sotdd.LabelledData.of(source, name) for name, source in wide.items()]
    scaler = sotdd.Scaler.fit(wide)
    host = np.concatenate(_on_host(data, scaler))
    device = torch.cat(_on_device([torch.tensor(x) for x, _ in wide.values()], scaler)).numpy()
    np.testing.assert_allclose(device @ device.T, host @ host.T, atol=1e-4)


def test_bad_input(rng):
    with pytest.raises(sotdd.SotddError, match="50 points together and 5 features"):
        sotdd.onto_span([rng.normal(size=(50, 5))])
    with pytest.raises(sotdd.SotddError, match="ambient is 2 but there are 3 features"):
        sotdd.distance(np.eye(3), np.eye(3), directions=sotdd.Sphere(ambient=2))
    with pytest.raises(sotdd.SotddError, match="ambient is 0"):
        sotdd.Sphere(ambient=0)


def test_constant_data_keep_a_coordinate():
    zeros = np.zeros((5, 20))
    span = sotdd.onto_span({"a": zeros, "b": zeros})
    assert sotdd.pairwise(span.datasets, directions=span.directions, scale=None)["a", "b"].value == 0


def test_points_far_from_zero_are_refused_or_scaled(rng):
    far = rng.normal(size=(20, 100)) + 1e6
    with pytest.raises(sotdd.SotddError, match="far from zero"):
        sotdd.onto_span([far], scale=None)
    assert sotdd.onto_span([far]).datasets["0"].n_features == 19


def test_no_dataset_is_lost_by_its_name(rng):
    same = [sotdd.LabelledData.of(rng.normal(size=(3, 30)), name) for name in ("a", "a (2)", "a")]
    assert list(sotdd.onto_span(same).datasets) == ["a", "a (2)", "a (3)"]


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e200, 1e300])
@pytest.mark.parametrize("scale", [None, "pooled"])
def test_points_of_any_size_keep_their_geometry(size, scale):
    """Their inner products left float64: a warning, and coordinates that were not finite, or all zero."""
    x = np.random.default_rng(0).normal(size=(5, 30))
    one, other = (sotdd.onto_span([points], scale=scale).datasets["0"].features for points in (x, x * size))
    unit = size if scale is None else 1.0
    np.testing.assert_allclose((other / unit) @ (other / unit).T, one @ one.T, atol=1e-12)


def test_a_scaler_that_makes_points_too_large_is_refused():
    with pytest.raises(sotdd.SotddError, match="too large to be squared"):
        sotdd.onto_span([np.eye(3, 30)], scale=sotdd.Scaler(np.zeros(30), 1e-200))
