"""What users may make; and numbers that must not creep up: public names and layers."""

import copy
import dataclasses
import pickle
import tomllib
from pathlib import Path

import pytest

import sotdd

ROOT = Path(__file__).parents[2]
PUBLIC_NAMES = 32
LAYERS = 9


def test_public_names():
    assert len(sotdd.__all__) <= PUBLIC_NAMES


def test_users_build_results_for_their_own_tests(rng):
    """A result made from its fields behaves as one that was returned; both are copied and pickled."""
    result = sotdd.distance(rng.normal(size=(9, 2)), rng.normal(size=(9, 2)), n_projections=4)
    made = sotdd.results.Distance(**{one.name: getattr(result, one.name) for one in dataclasses.fields(result)})
    for again in (made, copy.copy(result), pickle.loads(pickle.dumps(result)), dataclasses.replace(result, p=2.0)):
        assert (repr(again), again.interval(0.9)) == (repr(result), result.interval(0.9))


@pytest.mark.parametrize(
    "make",
    [
        lambda: sotdd.Scaler(None, None),
        lambda: sotdd.SketchBuilder(None),
        lambda: sotdd.PrivateBuilder(None, classes=None),
        lambda: sotdd.Catalog(None),
    ],
    ids=["Scaler", "SketchBuilder", "PrivateBuilder", "Catalog"],
)
def test_what_users_make_refuses_nothing_in_one_line(make):
    with pytest.raises(sotdd.SotddError, match=r"^[^\n]+$"):
        make()


def test_layers():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layered = next(one for one in settings["tool"]["importlinter"]["contracts"] if one["type"] == "layers")
    assert len(layered["layers"]) <= LAYERS
