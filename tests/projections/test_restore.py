"""Every law, with every setting, comes back from its description: in memory, and from the file of a sketch."""

import inspect
import json
from dataclasses import fields

import numpy as np
import pytest

import sotdd
from sotdd.projections import Directions
from sotdd.projections.restore import restored

# Of every law, values of each setting that differ from the default; a setting that is missing here fails a test.
OTHERS = {
    sotdd.Sphere: {"ambient": [100, 64]},
    sotdd.Hadamard: {"ambient": [100, 64]},
    sotdd.Orthogonal: {},
    sotdd.Convolution: {
        "image_shape": [(1, 8, 8), (4, 4, 4), (2, 32)],
        "kernels": ["stride", [((4, 4), (2, 2)), (3, 1)], [(8, 1)]],
        "clamp": [None, 0.5, 3],
        "channels": ["last"],
    },
    sotdd.Moments: {"n_moments": [1, 9], "orders": [sotdd.UniformOrders(3)], "cut": [None, 2.5]},
    sotdd.ClassQuantiles: {"levels": [1, 40], "weight": [0.0, 0.25, 3]},
    sotdd.ZeroTruncatedPoisson: {"rates": [(0.5, 1, 1.5, 2, 2.5), [9.0] * 5], "max_order": [1, 4]},
    sotdd.UniformOrders: {"max_order": [1, 7]},
}
NEEDED = {sotdd.Convolution: {"image_shape": (8, 8)}, sotdd.UniformOrders: {"max_order": 4}}
ORDERS = (sotdd.ZeroTruncatedPoisson, sotdd.UniformOrders)
LABELS = (sotdd.Moments, sotdd.ClassQuantiles)


def laws_with_settings():
    for law, others in OTHERS.items():
        needed = NEEDED.get(law, {})
        yield law(**needed)
        for name, values in others.items():
            for value in values:
                yield law(**{**needed, name: value})


def settings_of(law):
    """What `Projections.fit` is told to use this law."""
    if isinstance(law, ORDERS):
        return {"label_law": sotdd.Moments(5, law)}
    return {"label_law": law} if isinstance(law, LABELS) else {"directions": law}


def numbers(block):
    """All that was drawn of 64 projections."""
    drawn = [block.features, *([] if block.label_features is None else [block.label_features])]
    cut = [-1.0 if part.clamp is None else part.clamp for part in drawn]
    cut.append(block.terms.limit)
    return [part.theta for part in drawn], cut, block.terms.weights, block.terms.numbers


def assert_same(one, other):
    assert one.fingerprint == other.fingerprint
    for start in (0, 64):
        for left, right in zip(numbers(one.draw(start, 128)), numbers(other.draw(start, 128)), strict=True):
            np.testing.assert_array_equal(left, right)


def test_every_law_and_setting_is_among_those_tested():
    exported = [thing for thing in vars(sotdd.projections).values() if inspect.isclass(thing)]
    laws = {thing for thing in exported if hasattr(thing, "describe") and not getattr(thing, "_is_protocol", False)}
    assert laws - {sotdd.projections.Tilted} == set(OTHERS)
    for law, others in OTHERS.items():
        assert {field.name for field in fields(law)} == set(others)


@pytest.mark.parametrize("law", list(laws_with_settings()), ids=repr)
def test_a_law_comes_back_from_json(rng, law):
    x = rng.normal(size=(30, 64))
    for tilt in (False, True):
        original = sotdd.Projections.fit([x], n_projections=128, seed=11, tilt=tilt, **settings_of(law))
        recipe = json.loads(json.dumps(original.recipe()))
        assert_same(original, restored(recipe, original.scaler, original.fingerprint, original.tilt))


@pytest.mark.parametrize("law", list(laws_with_settings()), ids=repr)
def test_a_saved_sketch_opens_as_it_was_and_sketches_more(rng, tmp_path, law):
    x, more = (rng.normal(size=(n, 64)) for n in (50, 40))
    y = rng.integers(3, size=50)
    original = sotdd.Projections.fit([x], n_projections=128, seed=11, shared_directions=False, **settings_of(law))
    made = sotdd.sketch((x, y), original)
    made.save(tmp_path / "a.sotdd")
    found = sotdd.Sketch.load(tmp_path / "a.sotdd")
    assert_same(original, found.projections)
    expected = sotdd.sketch(more, original)
    np.testing.assert_array_equal(sotdd.sketch(more, found.projections).quantiles, expected.quantiles)
    assert sotdd.distance(found, more).value == made.distance(expected).value


@pytest.mark.parametrize("settings", [{"scale": None}, {"seed": 10**20}, {"shared_directions": False}])
def test_the_rest_of_a_recipe_comes_back(rng, settings):
    original = sotdd.Projections.fit([rng.normal(size=(30, 5))], n_projections=128, **settings)
    for one in (original, original.from_block(3, 128)):
        recipe = json.loads(json.dumps(one.recipe()))
        assert_same(one, restored(recipe, one.scaler, one.fingerprint, one.tilt))


class Coordinates:
    """A law of the user's own."""

    def describe(self):
        return {"law": "coordinates"}

    def draw(self, rng, n_projections, n_features):
        return Directions(np.eye(n_features)[rng.integers(n_features, size=n_projections)])


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"directions": Coordinates()}, "coordinates"), ({"tilt": True}, "tilted sphere")],
)
def test_what_is_known_by_name_only_is_refused(rng, settings, said):
    original = sotdd.Projections.fit([rng.normal(size=(30, 5))], n_projections=64, **settings)
    with pytest.raises(sotdd.SotddError, match=said):
        restored(original.recipe(), original.scaler, original.fingerprint)


def test_other_draws_are_refused(rng):
    original = sotdd.Projections.fit([rng.normal(size=(30, 5))], n_projections=64)
    with pytest.raises(sotdd.SotddError, match="come out differently"):
        restored(original.recipe(), original.scaler, "0" * 16, original.tilt)
    with pytest.raises(sotdd.SotddError, match="cannot be drawn from their description alone"):
        restored(original.recipe(), original.scaler, original.fingerprint)
