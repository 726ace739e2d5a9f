"""The settings that projections are drawn by: the same names, order and defaults in every call that takes them."""

import inspect
from dataclasses import fields

import pytest

import sotdd
from sotdd.projections.drawing import DRAWING, Drawing, DrawingSettings

NAMES = [field.name for field in fields(Drawing)]

# What a call draws unless it is told otherwise, where that is not what a distance draws.
CALLS = {
    "distance": (lambda: sotdd.distance, {}),
    "pairwise": (lambda: sotdd.pairwise, {}),
    "rank": (lambda: sotdd.rank, {}),
    "explain": (lambda: sotdd.explain, {}),
    "paper": (lambda: sotdd.paper, {}),
    "Projections.fit": (lambda: sotdd.Projections.fit, {}),
    "test": (lambda: sotdd.test, {"n_projections": 128}),
    "DriftReference.fit": (lambda: sotdd.DriftReference.fit, {"n_projections": 128}),
    "flow": (lambda: sotdd.flow, {"n_projections": 256}),
}

# The paper has no choice of these.
WITHOUT = {"paper": ("label_law", "scale")}


@pytest.mark.parametrize("name", CALLS)
def test_calls_show_the_same_settings_in_one_order_with_true_defaults(name):
    if name == "flow":
        pytest.importorskip("torch", reason="a flow needs torch")
    find, different = CALLS[name]
    parameters = inspect.signature(find()).parameters
    expected = [setting for setting in NAMES if setting not in WITHOUT.get(name, ())]
    assert [setting for setting in parameters if setting in NAMES] == expected
    assert {setting: parameters[setting].default for setting in expected} == {
        setting: different.get(setting, getattr(DRAWING, setting)) for setting in expected
    }
    assert all(parameters[setting].kind is inspect.Parameter.KEYWORD_ONLY for setting in expected)
    first = [*parameters].index(expected[0])
    assert [*parameters][first : first + len(expected)] == expected, "they stand together"
    if "p" in parameters:
        assert [*parameters][first - 1] == "p"
    others = [part.name for part in parameters.values() if part.kind is inspect.Parameter.VAR_KEYWORD]
    assert others == (["settings"] if "method" in parameters else []), "only a peer takes more than is shown"


def test_settings_have_the_names_of_a_drawing():
    assert list(DrawingSettings.__annotations__) == NAMES
    assert not DrawingSettings.__required_keys__


def test_shown_defaults_are_those_that_are_drawn(rng):
    data = rng.normal(size=(20, 3))
    shown = inspect.signature(sotdd.Projections.fit).parameters
    given = {setting: shown[setting].default for setting in NAMES}
    assert sotdd.Projections.fit([data], **given).fingerprint == sotdd.Projections.fit([data]).fingerprint
    tested = inspect.signature(sotdd.test).parameters["n_projections"].default
    assert sotdd.test(data, data + 1, n_permutations=9).n_projections == tested
    assert sotdd.DriftReference.fit(data).projections.n_projections == tested


def test_a_setting_that_there_is_not_is_refused():
    with pytest.raises(sotdd.SotddError, match="s-OTDD has no setting n_projection:"):
        DRAWING.but({"n_projection": 5})
