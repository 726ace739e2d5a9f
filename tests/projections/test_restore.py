"""Every law, with every setting, comes back from its description: in memory, and from the file of a sketch."""

import json

import numpy as np
import pytest

import sotdd
from laws import Circles

LAWS = [
    sotdd.projections.Sphere(),
    sotdd.projections.Hadamard(),
    sotdd.projections.Orthogonal(),
    sotdd.projections.Convolution((8, 8)),
    sotdd.projections.Convolution((4, 4, 4), "stride", None, "last"),
    sotdd.projections.Convolution((1, 8, 8), clamp=0.5),
    sotdd.projections.Moments(9, cut=None),
    sotdd.projections.Moments(1, sotdd.projections.UniformOrders(3), 2.5),
    sotdd.projections.ClassQuantiles(),
    sotdd.projections.ClassQuantiles(40, 0.25),
    sotdd.projections.ZeroTruncatedPoisson((0.5, 1, 1.5, 2, 2.5)),
    sotdd.projections.ZeroTruncatedPoisson(max_order=4),
    sotdd.projections.UniformOrders(7),
]
ORDERS = (sotdd.projections.ZeroTruncatedPoisson, sotdd.projections.UniformOrders)
LABELS = (sotdd.projections.Moments, sotdd.projections.ClassQuantiles)


def settings_of(law):
    """What `Projections.fit` is told to use this law."""
    if isinstance(law, ORDERS):
        return {"label_law": sotdd.projections.Moments(5, law)}
    return {"label_law": law} if isinstance(law, LABELS) else {"directions": law}


def numbers(block):
    """All that was drawn of 64 projections."""
    clamp = -1.0 if block.features.clamp is None else block.features.clamp
    theta = [drawn.theta for drawn in block.directions]
    return theta, [clamp, block.terms.limit], block.terms.weights, block.terms.coefficients


def assert_same(one, other):
    assert one.fingerprint == other.fingerprint
    for start in (0, 64):
        for left, right in zip(numbers(one.draw(start, 128)), numbers(other.draw(start, 128)), strict=True):
            np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_a_saved_sketch_opens_as_it_was_and_sketches_more(rng, tmp_path, law):
    x, more = (rng.normal(size=(n, 64)) for n in (50, 40))
    y = rng.integers(3, size=50)
    original = sotdd.Projections.fit([x], n_projections=128, seed=11, label_directions="own", **settings_of(law))
    made = sotdd.sketch((x, y), original)
    made.save(tmp_path / "a.sotdd")
    found = sotdd.Sketch.load(tmp_path / "a.sotdd")
    assert_same(original, found.projections)
    expected = sotdd.sketch(more, original)
    np.testing.assert_array_equal(sotdd.sketch(more, found.projections).quantiles, expected.quantiles)
    assert sotdd.distance(found, more).value == made.distance(expected).value


@pytest.mark.parametrize("settings", [{"scale": None}, {"seed": 10**20}, {"label_directions": "own"}])
def test_the_rest_of_a_recipe_comes_back(rng, settings):
    original = sotdd.Projections.fit([rng.normal(size=(30, 5))], n_projections=128, **settings)
    for one in (original, original.from_block(3, 128)):
        recipe = json.loads(json.dumps(one.recipe()))
        assert_same(one, sotdd.Projections.restore(recipe, one.scaler, one.fingerprint, one.tilt))


def test_what_is_known_by_name_only_and_other_draws_are_refused(rng):
    x = rng.normal(size=(30, 5))
    own, tilted = (sotdd.Projections.fit([x], n_projections=64, **how) for how in ({"directions": Circles()}, {}))
    for original, fingerprint, tilt, said in [
        (own, own.fingerprint, None, "circles"),
        (tilted, tilted.fingerprint, None, "tilted sphere"),
        (tilted, "0" * 16, tilted.tilt, "come out differently"),
    ]:
        with pytest.raises(sotdd.SotddError, match=said):
            sotdd.Projections.restore(original.recipe(), original.scaler, fingerprint, tilt)
    label = {**tilted.recipe(), "label": {"law": "medians"}}
    with pytest.raises(sotdd.SotddError, match="medians"):
        sotdd.Projections.restore(label, tilted.scaler, tilted.fingerprint, tilted.tilt)
