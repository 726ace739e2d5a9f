"""Compiled loops are kept where they can be, by this user alone, and damaged files are compiled anew."""

import gc
import importlib
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sotdd.projections import compile_cache

LOOPS = """
from sotdd.projections.compiling import kernel, step

@step
def double(value):
    return 2 * value

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
    (tmp_path / "loops.py").write_text(LOOPS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "loops", raising=False)
    return importlib.import_module("loops")


def test_without_a_home_loops_are_kept_among_temporary_files_unless_others_can_write_there(tmp_path):
    (tmp_path / "loops.py").write_text(LOOPS)
    (tmp_path / "__pycache__").write_text("no folder")
    (tmp_path / "temporary").mkdir()
    environment = {
        name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")
    }
    environment |= {"HOME": "/dev/null", "TMPDIR": str(tmp_path / "temporary")}
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run([sys.executable, "-c", RUN], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["0 1", "0o700", "0 0"], done.stderr


def flip(content, place):
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[: len(content) // 2],
        lambda content: flip(content, 0),
        lambda content: flip(content, len(content) // 2),  # within the code itself
        lambda content: pickle.dumps({"another": "pickle"}),
        lambda content: b"\xff\xfe" * 100,
    ],
    ids=["empty", "half", "first byte", "middle byte", "another pickle", "no pickle"],
)
def test_a_damaged_file_is_compiled_anew(tmp_path, monkeypatch, loops, damage):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    assert hits(loops) == 0
    for file in [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]:
        file.write_bytes(damage(file.read_bytes()))
    assert [hits(loops), hits(loops)] == [0, 1]


def test_a_changed_step_or_compiler_is_compiled_anew(tmp_path, monkeypatch, loops):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    assert [hits(loops), hits(loops)] == [0, 1]
    (tmp_path / "loops.py").write_text(LOOPS.replace("2 * value", "value + value"))
    assert [hits(loops), hits(loops)] == [0, 1]
    (tmp_path / "compiling.py").write_text(Path(compile_cache.COMPILER).read_text() + "# other options")
    monkeypatch.setattr(compile_cache, "COMPILER", str(tmp_path / "compiling.py"))
    assert hits(loops) == 0


def hits(loops):
    loop = loops.kernel(loops.total)
    assert loop(np.arange(4.0)) == 12.0
    assert gc.isenabled()  # which it is not while something is compiled
    return sum(loop.stats.cache_hits.values())


@pytest.mark.slow
def test_warm_leaves_nothing_to_compile(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    warm = [sys.executable, "-m", "sotdd", "warm", "--json"]
    said = json.loads(subprocess.check_output(warm, env=environment))
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nbc")}
    assert {str(path.parent) for path in files} == set(said["folders"])
    np.savez(tmp_path / "a.npz", X=np.random.default_rng(0).normal(size=(40, 6)), y=np.arange(40) % 3)
    for command in (["distance", "--noise-floor"], ["explain"], ["check"]):
        subprocess.check_call(
            [sys.executable, "-m", "sotdd", *command, "a.npz", "a.npz"], env=environment, cwd=tmp_path
        )
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nbc")} == files
