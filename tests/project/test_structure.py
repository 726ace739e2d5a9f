"""Three numbers that may fall and must not creep up: public names, layers, loops over projections."""

import ast
import tomllib
from pathlib import Path

import sotdd

ROOT = Path(__file__).parents[2]
PUBLIC_NAMES = 32
LAYERS = 10
LOOPS = 17


def test_public_names():
    assert len(sotdd.__all__) <= PUBLIC_NAMES


def test_layers():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layered = next(one for one in settings["tool"]["importlinter"]["contracts"] if one["type"] == "layers")
    assert len(layered["layers"]) <= LAYERS


def test_loops_over_projections():
    """Places that go through an engine's chunks (`views`), or draw projections from some number on."""
    found = [place for path in sorted((ROOT / "src").rglob("*.py")) for place in loops(path)]
    assert 0 < len(found) <= LOOPS, found


def loops(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    only_first = {  # `projections.draw(0, …)` asks what kind of draws they are, and goes through nothing
        id(node.func) for node in ast.walk(tree)
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant)
    }  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and id(node) not in only_first:
            owner = getattr(node.value, "attr", getattr(node.value, "id", None))
            if node.attr == "views" or (node.attr == "draw" and owner == "projections"):
                yield f"{path.relative_to(ROOT)}:{node.lineno}"
