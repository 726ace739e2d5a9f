"""Ctrl-C at any moment, also while libraries are loaded: one line, exit code 130, no traceback."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals as POSIX has them")

# A library that takes its time: it says when it is being loaded, and then waits to be interrupted.
WAIT = "import sys, time\nprint('loading', flush=True)\nfor _ in range(6000):\n    time.sleep(0.01)\n"
SLOW = {
    "plain": WAIT,
    "made-from-text": f"exec({WAIT!r})",  # after which Python would end by the signal, not with a code
    "guarded": f"try:\n    exec({WAIT!r})\nexcept Exception:\n    raise ImportError('no') from None",
    # Compiled code that calls back: what is raised there is printed and forgotten.
    "called-back": f"import ctypes\nctypes.CFUNCTYPE(None)(lambda: exec({WAIT!r}))()\nimport time\ntime.sleep(60)",
}


def interrupted(folder, library, content, *words):
    (folder / f"{library}.py").write_text(content)
    np.savez(folder / "a.npz", X=np.zeros((9, 2)), y=np.arange(9) % 2)
    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    child = subprocess.Popen(
        [sys.executable, "-m", "sotdd", *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert child.stdout.readline() == "loading\n"
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=60)
    return child.returncode, said


@pytest.mark.parametrize("how", SLOW)
@pytest.mark.parametrize(("library", "words"), [("typer", ["--help"]), ("numba", ["distance", "a.npz", "a.npz"])])
def test_while_a_library_is_loaded(tmp_path, how, library, words):
    assert interrupted(tmp_path, library, SLOW[how], *words) == (130, "sotdd: interrupted.\n")


def test_importing_loads_nothing_but_python():
    """So that there is next to no time in which the program cannot answer."""
    code = (
        "import sys; before = set(sys.modules); import sotdd.commands; "
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}; "
        "print(sorted(new - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['sotdd']"


def test_public_names_are_loaded_when_used():
    code = (
        "import sotdd, sys; assert 'numpy' not in sys.modules; assert set(sotdd.__all__) <= set(dir(sotdd)); "
        "print(all(getattr(sotdd, name) is not None for name in sotdd.__all__), hasattr(sotdd, 'nothing'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True False"


def test_handlers_are_put_back(run):
    before = signal.getsignal(signal.SIGINT), sys.unraisablehook
    run("--version")
    assert (signal.getsignal(signal.SIGINT), sys.unraisablehook) == before
