"""The public names: each has an example, and importing them costs little."""

import subprocess
import sys
from types import ModuleType

import pytest

import sotdd

CALLS = {name: getattr(sotdd, name) for name in sotdd.__all__ if name != "__version__"}
CALLS = {name: call for name, call in CALLS.items() if not isinstance(call, ModuleType)}


@pytest.mark.parametrize("name", CALLS)
def test_every_public_name_has_an_example(name):
    """Doctests run with the suite; this sees to it that there is one."""
    assert ">>>" in CALLS[name].__doc__


def test_importing_is_light():
    heavy = (
        "numba", "scipy", "torch", "pandas", "rich", "typer", "matplotlib", "pyarrow", "narwhals", "PIL", "datasets",
        "polars", "sentence_transformers", "dask", "lancedb", "plotly", "mlflow", "sklearn", "torchmetrics",
    )  # fmt: skip
    code = f"import sys, sotdd; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_name_is_the_same_whatever_is_imported_first():
    """The module of a call's name must not take its place."""
    code = "from sotdd.gradients.flow import flow; import sotdd; print(sotdd.flow is flow, callable(sotdd.distance))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]
