"""Loops give the same bits whether they were compiled in this process or come from the cache."""

import importlib
import os
import pkgutil
import pty
import subprocess
import sys

import pytest
from numba.core.registry import CPUDispatcher

import sotdd.compute.kernels

_RUN = """
import hashlib
import numpy as np, sotdd

rng = np.random.default_rng(0)
x, y = rng.normal(size=(3000, 20)), rng.integers(5, size=3000)
a, b = (x, y), (rng.normal(size=(2500, 20)) + 0.2, rng.integers(4, size=2500))
print(sotdd.distance(a, b, n_projections=128).per_projection.tobytes().hex())
projections = sotdd.Projections.fit([a, b], n_projections=64)
sketch = sotdd.sketch(a, projections)
print(hashlib.sha256(sketch.quantiles.tobytes() + sketch.lost.tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_the_first_run_gives_the_bits_of_later_ones(tmp_path):
    """The first one says what takes long, to somebody at a terminal."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    runs, said = [], []
    for _ in range(2):
        reader, terminal = pty.openpty()
        command = [sys.executable, "-c", _RUN]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=terminal, text=True, check=True)
        os.write(terminal, b".")  # so that there is something to read
        runs.append(done.stdout)
        said.append(os.read(reader, 1000).decode())
    assert any(tmp_path.rglob("*.nbc"))  # the second run had something to load
    assert runs[0] == runs[1]
    assert ["compiling loops" in text for text in said] == [True, False]


MODULES = [module.name for module in pkgutil.iter_modules(sotdd.compute.kernels.__path__) if module.name != "triton"]


@pytest.mark.parametrize("module", MODULES)
def test_what_kernels_call_is_compiled_into_them(module):
    """A kernel that calls another has two versions of it to call, see `step`; and every loop can check its bounds."""
    names = vars(importlib.import_module(f"sotdd.compute.kernels.{module}"))
    kernels = {name: value for name, value in names.items() if isinstance(value, CPUDispatcher)}
    called = {name for kernel in kernels.values() for name in kernel.py_func.__code__.co_names if name in kernels}
    assert {name for name in called if kernels[name].targetoptions.get("inline") != "always"} == set()
    for kernel in kernels.values():  # in loops that Numba makes parallel itself, a fault is a SystemError at best
        assert not kernel.targetoptions.get("parallel")
        assert kernel.targetoptions.get("boundscheck") is not False
