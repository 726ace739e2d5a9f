"""The peers as calls on two datasets: what their signatures show, and what they refuse."""

import inspect

import numpy as np
import pytest

import sotdd
from sotdd import peers
from sotdd.peers import METHODS
from sotdd.peers.points import find_settings

A, B = np.arange(12.0).reshape(6, 2), np.arange(16.0).reshape(8, 2) ** 1.5


@pytest.mark.parametrize("method", ["otdd", "chsw", "frechet", "sw", "mmd"])
def test_a_call_shows_its_settings_and_measures_what_distance_does(method):
    call = peers.sliced_wasserstein if method == "sw" else getattr(peers, method)
    assert [*inspect.signature(call).parameters] == ["a", "b", *find_settings(METHODS[method])]
    assert "Parameters\n" in call.__doc__
    assert call(A, B).value == sotdd.distance(A, B, method=method).value
    with pytest.raises(TypeError, match="depth"):
        call(A, B, depth=5)


def test_the_task_embedding_is_of_several_datasets():
    embedded = peers.wte([A, B])
    assert embedded.matrix["0", "1"].value == sotdd.distance(A, B, method="wte").value
    ranked = sotdd.rank(A, [B, A + 1], method="wte")
    assert ranked["0"].value == peers.wte([A, B, A + 1]).matrix["0", "1"].value


def test_chsw_of_features_beyond_float32_is_one_line(rng):
    x = rng.normal(size=(6, 2))
    with pytest.raises(sotdd.SotddError, match="dataset 'b' are too large for float32: use scale='pooled'"):
        sotdd.peers.chsw(x, x * 1e60, n_projections=8)


@pytest.mark.parametrize("method", METHODS)
def test_what_a_peer_lacks_is_refused(pair, method):
    lacking = {"n_moments": 2, "rel_tol": 0.1, "estimator": "plain", "noise_floor": True, "label_names": "match",
               "projections": sotdd.Projections.fit(list(pair), n_projections=8)}  # fmt: skip
    for name, value in lacking.items():
        with pytest.raises(sotdd.SotddError, match=f"method '{method}' has no setting {name}: it takes"):
            sotdd.distance(*pair, method=method, **{name: value})
    with pytest.raises(sotdd.SotddError, match="device is 'cuda'"):
        sotdd.rank(pair[0], [pair[1]], method=method, device="cuda")
    with pytest.raises(sotdd.SotddError, match=f"expected one of sotdd, .*{method}"):
        sotdd.pairwise(list(pair), method="otd")
