"""What several test files need."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

# For `import reference` and `import benchmarks`.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

# The same examples in every run, unless more are asked for.
settings.register_profile("sotdd", derandomize="SOTDD_FUZZ" not in os.environ, deadline=None)
settings.load_profile("sotdd")

SHARED = Path(__file__).parents[2] / "shared"


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def run(capsys, monkeypatch):
    """The command line in this process: exit code, output, errors."""
    from sotdd.commands import main

    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["sotdd", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        return (code, *capsys.readouterr())

    return command


@pytest.fixture
def authors():
    """Load inputs with the outputs of the authors' own code."""
    return lambda name: dict(np.load(_shared("fixtures") / f"{name}.npz"))


@pytest.fixture
def real_data():
    """Load a real dataset by name; flat features of the test and train parts."""
    return lambda name: dict(np.load(_shared("data") / f"{name}.npz"))


@pytest.fixture
def real_files():
    """Find a file of real data by name."""
    return lambda name: _shared("data") / name


def _shared(folder):
    path = SHARED / folder
    if not path.is_dir():
        pytest.skip(f"needs the folder shared/{folder} beside the checkout, which is not there")
    return path
