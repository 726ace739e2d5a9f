"""The public names: what there is, what it says of itself, and what importing it costs."""

import subprocess
import sys
from importlib import import_module

import pytest

import sotdd

NAMES = {
    "Catalog",
    "ClassQuantiles",
    "ClassStatistics",
    "Convolution",
    "Distance",
    "DistanceMatrix",
    "DriftMonitor",
    "DriftReference",
    "Explanation",
    "Flow",
    "Hadamard",
    "LabelledData",
    "Moments",
    "NoiseFloor",
    "Orthogonal",
    "PrivateBuilder",
    "Projections",
    "Ranked",
    "Ranking",
    "ScaleStatistics",
    "Scaler",
    "Sketch",
    "SketchBuilder",
    "SketchWindow",
    "SotddError",
    "Sphere",
    "TwoSampleTest",
    "UniformOrders",
    "ZeroTruncatedPoisson",
    "cluster",
    "distance",
    "explain",
    "flow",
    "open_dataset",
    "pairwise",
    "paper",
    "peers",
    "projections",
    "rank",
    "report",
    "sketch",
    "sketch_stream",
    "test",
    "torch",
}


def test_the_public_names_are_these():
    assert set(sotdd.__all__) - {"__version__"} == NAMES
    for name in sotdd.__all__:
        assert hasattr(sotdd, name)


@pytest.mark.parametrize(
    "name", sorted(NAMES - {"cluster", "peers", "projections", "sketch", "sketch_stream", "torch"})
)
def test_every_public_name_has_an_example_that_runs(name):
    """Doctests run with the suite; this sees to it that there is one."""
    assert ">>>" in getattr(sotdd, name).__doc__


@pytest.mark.parametrize("name", sotdd.projections.__all__)
def test_every_name_of_projections_is_described(name):
    assert getattr(sotdd.projections, name).__doc__


@pytest.mark.parametrize("library", ["sklearn", "torchmetrics"])
def test_every_integration_has_an_example_that_runs(library):
    door = import_module(f"sotdd.integrations.{library}")
    assert door.__all__
    assert all(">>>" in getattr(door, name).__doc__ for name in door.__all__)


def test_importing_is_light():
    heavy = (
        "numba", "scipy", "torch", "pandas", "rich", "typer", "matplotlib", "sotdd.torch", "sotdd.peers",
        "sotdd.cluster", "pyarrow", "narwhals", "PIL", "datasets", "polars", "sentence_transformers", "dask",
        "lancedb", "plotly", "sotdd.integrations", "mlflow", "sklearn", "torchmetrics",
    )  # fmt: skip
    code = f"import sys, sotdd; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_flow_is_the_function_whatever_is_imported_first():
    """The file of that name must not take its place."""
    code = (
        "from sotdd.gradients.flow import flow; import sotdd as s, sotdd.torch; print(s.flow is flow, s.torch.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "sotdd.torch"]
