"""Every public call with odd arguments, and random settings beside a brute force: see `fuzz`.

``SOTDD_FUZZ=100000`` draws that many calls, and a tenth as many settings, none of which CI has drawn.
"""

import inspect
import os

import pytest

import sotdd
from fuzz import brute_force, table

ASKED = os.environ.get("SOTDD_FUZZ")
FIRST = 0 if ASKED is None else int.from_bytes(os.urandom(4)) * 1000
EACH = 15 if ASKED is None else -(-int(ASKED) // len(table.CALLS))
SETTINGS = 200 if ASKED is None else max(200, int(ASKED) // 10)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The current folder has the files that calls name."""
    before = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("fuzz"))
    table.write_files()
    yield
    os.chdir(before)


def test_every_public_function_is_in_the_table():
    functions = {f"sotdd.{name}" for name in sotdd.__all__ if inspect.isfunction(getattr(sotdd, name))}
    assert functions
    assert functions <= set(table.CALLS)


def test_outcomes_are_judged():
    """The guard itself: what must not pass does not."""
    assert table.wrong("sotdd.distance(points(), points(5), n_projections=4)") is None
    assert table.wrong("sotdd.distance(points(), 5)") is None  # refused, in one line
    assert "ZeroDivisionError" in table.wrong("1 / 0")
    assert "changed" in table.wrong("torch.rand(1)")
    assert "Warning" in table.wrong("warnings.warn('x')")
    assert "not in one line" in table.wrong("(_ for _ in ()).throw(sotdd.SotddError(''))")


@(pytest.mark.slow if ASKED is None else pytest.mark.usefixtures("folder"))
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("call", table.CALLS)
def test_odd_arguments_give_a_result_or_one_line(call):
    found = [table.wrong(table.draw(call, FIRST + number)) for number in range(EACH)]
    assert [line for line in found if line] == []


@pytest.mark.parametrize("part", range(2))
def test_random_settings_agree_with_a_brute_force(part):
    found = [brute_force.wrong(seed) for seed in range(FIRST + part, FIRST + SETTINGS, 2)]
    assert found.count("refused") < 0.1 * len(found)
    assert [said for said in found if said not in (None, "refused")] == []
