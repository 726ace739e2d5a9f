"""What is only received; and numbers that must not creep up: public names, layers, loops over projections."""

import ast
import copy
import dataclasses
import inspect
import pickle
import tomllib
from pathlib import Path

import pytest

import sotdd

ROOT = Path(__file__).parents[2]
PUBLIC_NAMES = 32
LAYERS = 9
DRAWS = 2


def test_public_names():
    assert len(sotdd.__all__) <= PUBLIC_NAMES


def test_nobody_makes_by_hand_what_calls_return(rng):
    """Whatever is public refuses arguments that are nothing, in one line; what was returned is copied and pickled."""
    public = {**vars(sotdd.results), **{name: getattr(sotdd, name) for name in sotdd.__all__}}
    for kind in {one for one in public.values() if isinstance(one, type)} - {sotdd.SotddError}:
        parameters = inspect.signature(kind).parameters.values()
        required = [one.name for one in parameters if one.default is one.empty]
        with pytest.raises(sotdd.SotddError, match=r"^[^\n]+$"):
            kind(**dict.fromkeys(required or ["columns"]))
    result = sotdd.distance(rng.normal(size=(9, 2)), rng.normal(size=(9, 2)), n_projections=4)
    for again in (copy.copy(result), pickle.loads(pickle.dumps(result)), dataclasses.replace(result, p=2.0)):
        assert repr(again) == repr(result)


def test_layers():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layered = next(one for one in settings["tool"]["importlinter"]["contracts"] if one["type"] == "layers")
    assert len(layered["layers"]) <= LAYERS


def test_one_loop_over_projections():
    """Chunks that an engine samples are gone through in `slices` alone; a sampler and the loss sample them."""
    loops, draws = [], []
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            owner = getattr(node.func.value, "attr", getattr(node.func.value, "id", None))
            if node.func.attr == "sample" and owner == "loaded":
                loops.append(path.relative_to(ROOT / "src/sotdd").as_posix())
            # `projections.draw(0, …)` asks what kind of draws they are, and goes through nothing
            if node.func.attr == "draw" and owner == "projections" and not isinstance(node.args[0], ast.Constant):
                draws.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert loops == ["compute/slices.py"]
    assert 0 < len(draws) <= DRAWS, draws
