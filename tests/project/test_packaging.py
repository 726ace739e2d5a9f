"""What is shipped: built, installed where nothing else is, run, and type-checked as a user would."""

import importlib.util
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import sotdd

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "pyproject.toml").is_file(), reason="not a checkout")


def call(*arguments, **settings):
    """Run a command away from the checkout's own settings; its exit code and output."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        list(map(str, arguments)), capture_output=True, text=True, check=False, env=environment, timeout=300, **settings
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The sdist, and the wheel that is built from it."""
    missing = [tool for tool in ("build", "hatchling", "pip") if importlib.util.find_spec(tool) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    folder = tmp_path_factory.mktemp("dist")
    code, said = call(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    assert code == 0, said
    return next(folder.glob("*.tar.gz")), next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """A Python of its own with the wheel in it; the libraries it needs are those of this environment."""
    folder = tmp_path_factory.mktemp("environment")
    call(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    place = Path(call(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")[1].strip())
    call(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", built[1])
    # After the wheel on the path, and as a plain folder, so that an editable install of the checkout is not followed.
    libraries = Path(importlib.util.find_spec("numpy").origin).parents[1]
    (place / "libraries.pth").write_text(f"{libraries}\n", encoding="utf-8")
    return python


def test_the_wheel_and_the_sdist_hold_what_is_needed(built):
    with zipfile.ZipFile(built[1]) as wheel, tarfile.open(built[0]) as source:
        names, sources = set(wheel.namelist()), {name.partition("/")[2] for name in source.getnames()}
    package = ROOT / "src" / "sotdd"
    kept = {path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    kept = {path.relative_to(ROOT / "src").as_posix() for path in kept}
    assert {name for name in names if name.startswith("sotdd/")} == kept
    assert {name.split("/")[0] for name in names} == {"sotdd", f"sotdd-{sotdd.__version__}.dist-info"}
    assert sources >= {f"src/{name}" for name in kept} | {"pyproject.toml", "LICENSE", "tests/conftest.py"}


@pytest.mark.slow
def test_the_wheel_runs_where_it_is_installed(installed, tmp_path):
    """That its demo runs too is seen by ``.ci/package``, which pays for compiling it from nothing."""
    place = Path(call(installed, "-c", "import sotdd; print(sotdd.__file__)", cwd=tmp_path)[1].strip())
    assert installed.parents[1] in place.parents
    script = installed.with_name("sotdd.exe" if os.name == "nt" else "sotdd")
    assert sotdd.__version__ in call(script, "--version", cwd=tmp_path)[1]


PROGRAM = """
import numpy as np
import sotdd

x = np.zeros((4, 2))
near = sotdd.distance((x, ["a", "b", "a", "b"]), x, n_projections=10, noise_floor=True)
low, high = near.interval(0.95)
total: float = near.value + low + high
matrix = sotdd.pairwise({"one": x, "two": "table.csv::label=kind"}, p=1)
names: tuple[str, ...] = tuple(matrix.names)
seen: sotdd.Sketch = sotdd.sketch(x, sotdd.Projections.fit([x]), n_quantiles=64)
verdict: float = sotdd.test(x, x).p_value
"""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="needs mypy")
def test_a_users_program_is_type_checked(installed, tmp_path):
    """Strictly, against what is installed; and a mistake in it is found, so the hints are really read."""
    check = [sys.executable, "-m", "mypy", "--strict", "--python-executable", installed, "--cache-dir", tmp_path / "c"]
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "wrong.py").write_text("import sotdd\nn: int = sotdd.distance([[1.0]], [[2.0]], p='two')\n")
    code, said = call(*check, "program.py", cwd=tmp_path)
    assert code == 0, said
    code, said = call(*check, "wrong.py", cwd=tmp_path)
    assert code == 1
    assert "assignment" in said
    assert "arg-type" in said
