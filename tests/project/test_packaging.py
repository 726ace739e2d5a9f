"""What is shipped: files, and a light import. `.ci/package` installs and runs it; `.ci/typed` checks its types."""

import importlib.util
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import sotdd

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(not (ROOT / "pyproject.toml").is_file(), reason="not a checkout")
def test_the_wheel_and_the_sdist_hold_what_is_needed(tmp_path):
    """The wheel is built from the sdist."""
    missing = [tool for tool in ("build", "hatchling") if importlib.util.find_spec(tool) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path, ROOT]
    subprocess.run(command, capture_output=True, check=True)
    built = next(tmp_path.glob("*.tar.gz")), next(tmp_path.glob("*.whl"))
    with zipfile.ZipFile(built[1]) as wheel, tarfile.open(built[0]) as source:
        names, sources = set(wheel.namelist()), {name.partition("/")[2] for name in source.getnames()}
    package = ROOT / "src" / "sotdd"
    kept = {path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    kept = {path.relative_to(ROOT / "src").as_posix() for path in kept}
    assert {name for name in names if name.startswith("sotdd/")} == kept
    assert {name.split("/")[0] for name in names} == {"sotdd", f"sotdd-{sotdd.__version__}.dist-info"}
    assert sources >= {f"src/{name}" for name in kept} | {"pyproject.toml", "LICENSE", "tests/conftest.py"}


def test_importing_is_light():
    heavy = (
        "numba", "scipy", "torch", "pandas", "rich", "typer", "matplotlib", "pyarrow", "narwhals", "PIL", "datasets",
        "polars", "sentence_transformers", "dask", "lancedb", "jinja2", "mlflow", "sklearn", "torchmetrics",
    )  # fmt: skip
    code = f"import sys, sotdd; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_name_is_the_same_whatever_is_imported_first():
    """The module of a call's name must not take its place."""
    code = "from sotdd.gradients.flow import flow; import sotdd; print(sotdd.flow is flow, callable(sotdd.distance))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]
