"""Every public name under odd calls, and random settings beside a brute force: see `fuzz`.

``SOTDD_FUZZ=100000`` draws that many calls, and a tenth as many settings, none of which CI has drawn.
"""

import inspect
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fuzz import brute_force, calls, surface

TESTS = Path(__file__).parents[1]
ASKED = os.environ.get("SOTDD_FUZZ")
COUNT = int(ASKED or 1000)
FIRST = 0 if ASKED is None else int.from_bytes(os.urandom(4)) * 1000
SETTINGS = 400 if ASKED is None else max(400, COUNT // 10)
# Calls of one process: memory that libraries keep does not add up, and a crash costs little.
PORTION = 5000


def test_every_public_class_has_something_to_call_its_methods_on():
    assert not surface.missing(), "add them to RECEIVERS in tests/fuzz/surface.py"


def test_every_parameter_has_a_pool():
    """A new public name must say what it is to be given."""
    for target in surface.targets():
        assert target.whole or target.receivers, target.name
        for part in target.parameters:
            if part.kind is not inspect.Parameter.VAR_KEYWORD:
                assert calls.pool_of(target.name, part.name)


def test_every_name_of_the_reference_is_called():
    """docs/api.rst lists what is public; protocols and the error itself have nothing to call.

    What is for another library raises that library's errors, and is left to the tests of integrations.
    """
    text = (TESTS.parent / "docs" / "api.rst").read_text(encoding="utf-8")
    listed = set(re.findall(r"^   ([\w.]+)$", text, re.MULTILINE))
    assert len(listed) > 50
    called = {target.name for target in surface.targets()}
    called |= {name.partition(".")[0] for name in called} | surface.RESULTS
    protocols = {"DirectionLaw", "LabelLaw", "MomentLaw", "ClassSummary", "PointMap"}
    for name in {name for name in listed if not name.startswith("integrations.")} - {"SotddError"}:
        short = name.removeprefix("projections.")
        assert short in called or short.removeprefix("peers.") in called or short in protocols, name


def test_a_call_is_the_same_wherever_it_is_drawn():
    drawn = [str(calls.draw(number)) for number in range(300)]
    assert drawn == [str(calls.draw(number)) for number in range(300)]
    assert len(set(drawn)) > 200


def test_outcomes_are_judged(monkeypatch):
    """The guard itself: what must not pass does not."""
    assert calls.run_line("sotdd.distance(points(), points(5), n_projections=4)") is None
    assert calls.run_line("sotdd.distance(points(), 5)") is None  # refused, in one line
    assert "ZeroDivisionError" in calls.run_line("1 / 0")
    assert "TypeError" in calls.run_line("len(5)")
    assert calls.run_line("__import__('random').random()") == "changed random's state"
    assert calls.run_line("np.random.rand()") == "changed np.random's state"
    assert calls.run_line("torch.rand(1)") == "changed torch's random state"
    assert "Warning" in calls.run_line("__import__('warnings').warn('x')")
    assert "not JSON compliant" in calls.run_line("sotdd.Distance(nan, nan, 2, (1, 1), ((), ()), 'x')")
    assert "value -1" in calls.run_line("sotdd.Distance(-1.0, nan, 2, (1, 1), ((), ()), 'x')")
    assert "not in one line" in calls.run_line("(_ for _ in ()).throw(sotdd.SotddError(''))")
    monkeypatch.setattr(calls, "SECONDS", 0.2)
    assert "took more than" in calls.run_line("__import__('time').sleep(5)")


@pytest.mark.slow
def test_drawn_calls_return_or_refuse():
    portions = [(FIRST + start, min(PORTION, COUNT - start)) for start in range(0, COUNT, PORTION)]
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        found = [line for lines in threads.map(_portion, portions) for line in lines]
    assert not found, f"{len(found)} calls went wrong\n" + "\n".join(found[:20])


def _portion(numbers: tuple[int, int]) -> list[str]:
    """What went wrong in some calls, each with the line that makes it again."""
    done = subprocess.run(
        [sys.executable, "-m", "fuzz", *map(str, numbers)], cwd=TESTS, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
    )  # fmt: skip
    found = re.findall(r"^WRONG \d+ (.*?)END$", done.stdout, re.DOTALL | re.MULTILINE)
    lines = [text.partition("\n") for text in found]
    again = [f"cd tests && python -m fuzz {line!r}\n{what}" for line, _, what in lines]
    if "DONE " not in done.stdout:
        again.append(f"the process ended in {done.stdout.splitlines()[-1:]}\n{done.stderr[-3000:]}")
    return again


@pytest.mark.parametrize("part", range(4))
def test_random_settings_agree_with_a_brute_force(part):
    seeds = range(FIRST + part, FIRST + SETTINGS, 4)
    found = [brute_force.wrong(seed) for seed in seeds]
    assert found.count("refused") < 0.1 * len(found)
    assert [said for said in found if said not in (None, "refused")] == []
