"""What several test files need."""

import os
import sys
from collections import Counter
from pathlib import Path

# Tests run in several processes, which share the cores: threads of torch and of BLAS must not keep one busy while they
# wait. Without this, products of small matrices take three times as much of the processor.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")

import numpy as np
import pytest
from hypothesis import settings

# For `import reference` and `import benchmarks`.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

# The same examples in every run, unless more are asked for.
settings.register_profile("sotdd", derandomize="SOTDD_FUZZ" not in os.environ, deadline=None)
settings.load_profile("sotdd")

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Of a test with many cases, `@pytest.mark.first(n)` leaves all but the first n to the slow run."""
    seen = Counter()
    for item in items:
        if mark := item.get_closest_marker("first"):
            name = item.nodeid.partition("[")[0]
            seen[name] += 1
            if seen[name] > mark.args[0]:
                item.add_marker("slow")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(params=["cpu", "torch", "numpy"])
def device(request, monkeypatch):
    """A ``device`` for calls, one for each engine; that of torch stands in for the usual one of the processor."""
    if request.param == "torch":
        pytest.importorskip("torch")
        from sotdd.compute.torch.engine import TorchEngine

        monkeypatch.setattr("sotdd.compute.cpu_engine.CpuEngine", lambda _threads=None: TorchEngine("cpu"))
    return "numpy" if request.param == "numpy" else "cpu"


@pytest.fixture
def run(capsys, monkeypatch):
    """The command line in this process: exit code, output, errors."""
    from sotdd.cli import main

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
    return lambda name: dict(np.load(FIXTURES / "authors" / f"{name}.npz"))


@pytest.fixture
def pictures():
    """Load a small sample of a real dataset by name: mnist, fashion_mnist, kmnist or emnist_letters."""
    return lambda name: dict(np.load(FIXTURES / "pictures" / f"{name}.npz"))


@pytest.fixture(scope="session")
def data_folder(tmp_path_factory):
    """The datasets of the experiments, small."""
    import small_data

    folder = tmp_path_factory.mktemp("data")
    small_data.write(folder)
    return folder


@pytest.fixture
def small_data_by_default(data_folder, monkeypatch):
    """Let experiments and benchmarks that are not told otherwise read the small datasets."""
    monkeypatch.setenv("SOTDD_DATA", str(data_folder))
