"""The peers by name: one number whichever call is asked, and refusals of what a peer does not have."""

import numpy as np
import pandas as pd
import pytest

import sotdd
from sotdd.peers import METHODS
from sotdd.peers.call import settings_of

NEEDS_POT = {"otdd", "otdd-gaussian", "wte"}

# What makes a peer quick, of what it takes.
QUICK = {"n_projections": 20, "n_reference": 10, "label_dimensions": 3}


@pytest.fixture
def pair(rng):
    a = rng.normal(size=(40, 3)), np.arange(40) % 2
    b = rng.normal(1, 1, size=(30, 3)), np.arange(30) % 3
    return a, b


def quick(method):
    if method in NEEDS_POT:
        pytest.importorskip("ot", reason=f"{method} needs POT")
    return {name: value for name, value in QUICK.items() if name in settings_of(METHODS[method])}


@pytest.mark.parametrize("method", METHODS)
def test_distance_and_pairwise_agree(pair, method):
    a, b = pair
    settings = quick(method)
    alone = sotdd.distance(a, b, method=method, **settings)
    together = sotdd.pairwise({"a": a, "b": b}, method=method, **settings)
    assert alone.value == together["a", "b"].value > 0
    assert alone.method == together["a", "b"].method
    assert together.projections is None


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


@pytest.mark.parametrize("strange", [None, 5, np.zeros(2), pd.NA])
def test_what_is_no_word_is_refused_as_a_method_and_as_an_estimator(strange):
    x = np.eye(3)
    for call in (sotdd.distance, lambda a, b, **settings: sotdd.pairwise([a, b], **settings)):
        with pytest.raises(sotdd.SotddError, match=r"method is .*: expected"):
            call(x, x, method=strange)
        with pytest.raises(sotdd.SotddError, match="estimator"):
            call(x, x, method="frechet", estimator=strange)
        with pytest.raises(sotdd.SotddError, match=r"p is .*: expected|has no setting p"):
            call(x, x, method="frechet", p=strange)
