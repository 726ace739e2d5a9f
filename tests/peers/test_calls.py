"""The peers as calls: what their signatures show, the names of their settings, and how they take old ones."""

import inspect

import numpy as np
import pytest

import sotdd
from sotdd import peers
from sotdd.peers.methods import METHODS, settings_of

ORDER = [
    "p", "n_projections", "scale", "seed", "inner", "outer", "regularisation", "debias", "bandwidth",
    "label_dimensions", "n_reference", "reference", "max_points",
]  # fmt: skip
A, B = np.arange(12.0).reshape(6, 2), np.arange(16.0).reshape(8, 2) ** 1.5


@pytest.mark.parametrize("method", METHODS)
def test_settings_have_one_order(method):
    names = settings_of(method)
    assert names == [name for name in ORDER if name in names]


@pytest.mark.parametrize("name", sorted(set(peers.__all__) - {"TaskEmbeddings", "wte"}))
def test_a_call_on_two_datasets_shows_its_settings(name):
    call = getattr(peers, name)
    parameters = inspect.signature(call).parameters
    method = "sw" if name == "sliced_wasserstein" else name
    assert [*parameters] == ["a", "b", *settings_of(method)]
    assert parameters["scale"].default is None
    assert (call.__name__, call.__module__.rpartition(".")[0]) == (name, "sotdd.peers")
    assert "Parameters\n" in call.__doc__
    assert inspect.signature(call).return_annotation == "Distance"


def test_the_task_embedding_shows_its_settings():
    assert [*inspect.signature(peers.wte).parameters] == ["datasets", *settings_of("wte")]
    assert inspect.signature(peers.wte).return_annotation == "TaskEmbeddings"


@pytest.mark.parametrize(
    "call",
    [
        lambda **settings: peers.otdd(A, B, **settings).n_points,
        lambda **settings: peers.wte([A, B], n_reference=5, **settings).matrix["0", "1"].n_points,
        lambda **settings: sotdd.pairwise([A, B], method="otdd", **settings)["0", "1"].n_points,
    ],
    ids=["otdd", "wte", "pairwise"],
)
def test_max_samples_is_the_old_name_of_max_points(call):
    with pytest.warns(FutureWarning, match="max_samples= is now called max_points=") as caught:
        assert call(max_samples=5) == (5, 5)
    assert caught[0].filename == __file__
    with pytest.raises(sotdd.SotddError, match="max_samples is the old name of max_points, and both are given"):
        call(max_samples=5, max_points=5)


def test_what_a_method_does_not_take_is_refused():
    with pytest.raises(sotdd.SotddError, match="'sw' has no setting max_samples: it takes p, n_projections, scale"):
        sotdd.pairwise([A, B], method="sw", max_samples=5)
    for name in ("max_samples", "depth"):
        with pytest.raises(sotdd.SotddError, match=f"sliced_wasserstein has no setting {name}: it takes p, n_proj"):
            peers.sliced_wasserstein(A, B, **{name: 5})
    with pytest.raises(TypeError, match="wte has no setting depth, width: it takes scale"):
        peers.wte([A, B], depth=5, width=3)


@pytest.mark.parametrize("name", sorted(set(peers.__all__) - {"TaskEmbeddings", "wte"}))
def test_sources_are_opened_once(name, monkeypatch):
    from sotdd.inputs import opening

    opened = []
    true = opening.open_dataset
    monkeypatch.setattr(opening, "open_dataset", lambda source, **how: opened.append(id(source)) or true(source, **how))
    getattr(peers, name)(A, B)
    assert opened == [id(A), id(B)]


def test_chsw_of_features_beyond_float32_is_one_line(rng):
    x = rng.normal(size=(6, 2))
    with pytest.raises(sotdd.SotddError, match="dataset 'b' are too large for float32: use scale='pooled'"):
        sotdd.peers.chsw(x, x * 1e60, n_projections=8)
