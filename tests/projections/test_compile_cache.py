"""Compiled loops are kept where they can be, by this user alone, and damaged files are compiled anew."""

import importlib
import json
import os
import pickle
import subprocess
import sys

import numba
import numpy as np
import pytest

from sotdd.projections import compiling

STEPS = """
from sotdd.projections.compiling import step

@step
def double(value):
    return 2 * value
"""

LOOPS = """
from sotdd.projections.compiling import kernel
from steps import double

def total(values):
    result = 0.0
    for value in values:
        result += double(value)
    return result
"""

# As an installation that cannot be written, without a home; even root cannot write to these.
RUN = """
import os, numpy as np, loops

def count_hits():
    loop = loops.kernel(loops.total)
    assert loop(np.arange(4.0)) == 12.0
    return sum(loop.stats.cache_hits.values())

print(count_hits(), count_hits())
[folder] = os.listdir(os.environ["TMPDIR"])
path = os.path.join(os.environ["TMPDIR"], folder)
print(oct(os.stat(path).st_mode & 0o777))
os.chmod(path, 0o777)
print(count_hits(), count_hits())
"""


@pytest.fixture
def loops(tmp_path, monkeypatch):
    (tmp_path / "steps.py").write_text(STEPS)
    (tmp_path / "loops.py").write_text(LOOPS)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("steps", "loops"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    yield importlib.import_module("loops")
    for name in ("steps", "loops"):
        sys.modules.pop(name, None)


def test_without_a_home_loops_are_kept_among_temporary_files_unless_others_can_write_there(tmp_path):
    (tmp_path / "steps.py").write_text(STEPS)
    (tmp_path / "loops.py").write_text(LOOPS)
    (tmp_path / "temporary").mkdir()
    environment = {
        name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")
    }
    environment |= {"HOME": "/dev/null", "TMPDIR": str(tmp_path / "temporary")}
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run([sys.executable, "-c", RUN], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["0 1", "0o700", "0 0"], done.stderr


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[: len(content) // 2],
        lambda content: bytes([content[0] ^ 1]) + content[1:],
        lambda content: pickle.dumps({"another": "pickle"}),
        lambda content: b"\xff\xfe" * 100,
    ],
    ids=["empty", "half", "first byte", "another pickle", "no pickle"],
)
def test_a_damaged_file_is_compiled_anew(tmp_path, loops, damage, kind):
    assert hits(loops) == 0
    [file] = (tmp_path / "cache").rglob(f"*.{kind}")
    file.write_bytes(damage(file.read_bytes()))
    assert [hits(loops), hits(loops)] == [0, 1]


def test_code_for_other_arguments_is_compiled_anew(tmp_path, loops):
    """As two processes leave it that compile a loop at the same moment, and both take the first name."""
    loop = loops.kernel(loops.total)
    assert [loop(np.arange(4.0)), loop(np.arange(4))] == [12.0, 12.0]
    floats, integers = sorted((tmp_path / "cache").rglob("*.nbc"))
    floats.write_bytes(integers.read_bytes())
    assert [hits(loops), hits(loops)] == [0, 1]


def test_many_processes_compile_at_once(tmp_path, loops):
    command = [sys.executable, "-c", "import numpy as np, loops; print(loops.kernel(loops.total)(np.arange(4.0)))"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    running = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [one.communicate()[0] for one in running] == ["12.0\n"] * 4
    assert hits(loops) == 1


def test_a_changed_step_or_compiler_is_compiled_anew(tmp_path, monkeypatch, loops):
    """A step in a file of its own, too, which Numba's cache does not look at."""
    assert [hits(loops), hits(loops)] == [0, 1]
    (tmp_path / "steps.py").write_text(STEPS.replace("2 * value", "value + value"))
    assert [hits(loops), hits(loops)] == [0, 1]
    (tmp_path / "options.py").write_text("# other options")
    monkeypatch.setattr(compiling, "_COMPILER", (str(tmp_path / "options.py"),))
    assert hits(loops) == 0


def test_loops_of_others_stay_where_numba_keeps_them(loops):
    found = numba.config.CACHE_DIR
    ours = loops.kernel(loops.total)
    theirs = numba.njit(cache=True)(loops.total)
    assert "loops-" in ours.stats.cache_path
    assert "loops-" not in theirs.stats.cache_path
    assert found == numba.config.CACHE_DIR


def hits(loops):
    loop = loops.kernel(loops.total)
    assert loop(np.arange(4.0)) == 12.0
    return sum(loop.stats.cache_hits.values())


@pytest.mark.slow
def test_warm_leaves_nothing_to_compile(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    warm = [sys.executable, "-m", "sotdd", "warm", "--json"]
    said = json.loads(subprocess.check_output(warm, env=environment))
    assert said["folder"] == str(tmp_path / "cache")
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.nbc")}
    assert files
    np.savez(tmp_path / "a.npz", X=np.random.default_rng(0).normal(size=(40, 6)), y=np.arange(40) % 3)
    for command in (["distance", "--noise-floor"], ["explain"], ["check"]):
        subprocess.check_call(
            [sys.executable, "-m", "sotdd", *command, "a.npz", "a.npz"], env=environment, cwd=tmp_path
        )
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.nbc")} == files
