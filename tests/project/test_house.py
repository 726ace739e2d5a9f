"""The house keeps its promises: few rooms, few layers, explained exceptions, short walks, sources opened once."""

import re
from pathlib import Path

import pytest
from benchmarks import house

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def walks():
    with house.calls() as followed:
        return {name: house.walk(call) for name, call in followed.items()}


def test_there_are_thirteen_rooms_in_ten_layers():
    assert len(house.rooms()) <= 13
    assert len(house.layers()) <= 10
    assert {room for layer in house.layers() for room in layer} >= set(house.rooms())


def test_every_exception_is_explained():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if " -> " in line]
    assert len(lines) == len(house.exceptions())
    for line in lines:
        assert re.search(r'",? # \w+', line), line


def test_imports_go_downward():
    """As import-linter says, from a count of our own: the drawing on the page is made of it."""
    level = {room: number for number, layer in enumerate(house.layers()) for room in layer}
    between = {pair for pair in house.imports() if set(pair) <= set(house.rooms())}
    assert between
    assert all(level[one] < level[other] for one, other in between)


@pytest.mark.parametrize(
    ("name", "files", "opened"),
    [
        ("distance(a, b)", 24, 2),
        ("pairwise of three", 30, 3),
        ("sketch(a).distance(sketch(b))", 34, 2),
        ("sotdd distance x.csv y.parquet", 60, 2),
    ],
)
def test_a_call_goes_through_few_files_and_opens_each_source_once(walks, name, files, opened):
    assert len(walks[name].files) <= files, sorted(walks[name].files)
    assert walks[name].opened == opened


def test_the_map_names_every_room():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for room in house.rooms():
        assert f"| `{room}/` |" in text


def test_the_map_names_files_that_there_are():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    files = {path.name for path in house.PACKAGE.rglob("*.py")}
    for line in (line for line in text.splitlines() if line.startswith("| `")):
        for name in re.findall(r"`([\w/]+\.py)`", line):
            assert name.rpartition("/")[2] in files, line


def test_no_module_stands_where_a_call_is_expected():
    """``import sotdd.distance`` gave a function once."""
    import sotdd

    beside = {path.stem for path in house.PACKAGE.glob("*.py")} | set(house.rooms())
    calls = {name for name in sotdd.__all__ if callable(getattr(sotdd, name))}
    assert not beside & calls
