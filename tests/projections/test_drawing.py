"""The settings that projections are drawn by: shown in the signature of every call that takes them."""

import inspect
from dataclasses import fields

import pytest

import sotdd
from sotdd.projections.drawing import DRAWING, Drawing, DrawingSettings

NAMES = [field.name for field in fields(Drawing)]


def test_shown_defaults_are_those_that_are_drawn(rng):
    data = rng.normal(size=(20, 3))
    assert list(DrawingSettings.__annotations__) == NAMES
    shown = inspect.signature(sotdd.Projections.fit).parameters
    given = {setting: shown[setting].default for setting in NAMES}
    assert sotdd.Projections.fit([data], **given).fingerprint == sotdd.Projections.fit([data]).fingerprint
    tested = inspect.signature(sotdd.test).parameters["n_projections"].default
    assert sotdd.test(data, data + 1, n_permutations=9).n_projections == tested
    assert sotdd.DriftReference.fit(data).projections.n_projections == tested


def test_a_setting_that_there_is_not_is_refused():
    with pytest.raises(sotdd.SotddError, match="s-OTDD has no setting n_projection:"):
        DRAWING.but({"n_projection": 5})
