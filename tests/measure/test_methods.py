"""The peers by name: one number whichever call is asked, and refusals of what a peer does not have."""

import numpy as np
import pandas as pd
import pytest

import sotdd
from sotdd.peers.methods import METHODS, settings_of

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
    return {name: value for name, value in QUICK.items() if name in settings_of(method)}


@pytest.mark.parametrize("method", METHODS)
def test_distance_and_pairwise_agree(pair, method):
    a, b = pair
    settings = quick(method)
    alone = sotdd.distance(a, b, method=method, **settings)
    together = sotdd.pairwise({"a": a, "b": b}, method=method, **settings)
    assert alone.value == together["a", "b"].value > 0
    assert alone.method == together["a", "b"].method
    assert together.projections is None


@pytest.mark.parametrize("call", ["distance", "pairwise", "rank"])
@pytest.mark.parametrize("method", METHODS)
def test_what_a_peer_lacks_is_refused(pair, call, method):
    a, b = pair

    def measured(**settings):
        if call == "distance":
            return sotdd.distance(a, b, method=method, **settings)
        if call == "pairwise":
            return sotdd.pairwise([a, b], method=method, **settings)
        return sotdd.rank(a, [b], method=method, **settings)

    lacking = [
        name for name in ("n_moments", "label_law", "bandwidth", "n_reference") if name not in settings_of(method)
    ]
    assert lacking
    for name in lacking:
        with pytest.raises(sotdd.SotddError, match=f"method '{method}' has no setting {name}: it takes"):
            measured(**{name: 2})
    for settings in ({"estimator": "plain"}, {"noise_floor": True}, {"projections": sotdd.Projections.fit([a, b])}):
        [name] = settings
        with pytest.raises(sotdd.SotddError, match=f"method '{method}' has no setting {name}"):
            measured(**settings)
    with pytest.raises(sotdd.SotddError, match="works on the processor only"):
        measured(device="cuda")


def test_other_names_are_refused(pair):
    with pytest.raises(sotdd.SotddError, match="method is 'otd': expected one of sotdd, otdd, otdd-gaussian"):
        sotdd.distance(*pair, method="otd")


def test_a_peer_has_no_tolerance(pair):
    with pytest.raises(sotdd.SotddError, match="method 'sw' has no setting rel_tol"):
        sotdd.distance(*pair, method="sw", rel_tol=0.1)


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
