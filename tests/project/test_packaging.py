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
SHIPPED = {
    "sotdd/py.typed",
    "sotdd/demo/digits.npz",
    "sotdd/demo/LICENSE-digits.txt",
    *(f"sotdd/pictures/page_parts/{name}" for name in ("page.html", "page.css", "page.js", "charts.js")),
}


def needs(*modules):
    """Skip where a tool is not installed."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")


def call(*arguments, **settings):
    """Run a command away from the checkout's own settings; its output."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        list(map(str, arguments)), capture_output=True, text=True, check=False, env=environment, timeout=300, **settings
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The sdist, and the wheel that is built from it."""
    if not (ROOT / "pyproject.toml").is_file():
        pytest.skip("not a checkout: there is no pyproject.toml")
    folder = tmp_path_factory.mktemp("dist")
    call(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    (source,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return source, wheel


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """A Python of its own with the wheel in it; the libraries it needs are those of this environment."""
    folder = tmp_path_factory.mktemp("environment")
    call(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    place = Path(call(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    call(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", built[1])
    # After the wheel on the path, and as a plain folder, so that an editable install of the checkout is not followed.
    libraries = Path(importlib.util.find_spec("numpy").origin).parents[1]
    (place / "libraries.pth").write_text(f"{libraries}\n", encoding="utf-8")
    return python


@needs("build", "hatchling")
def test_the_wheel_holds_what_is_needed_and_no_more(built):
    with zipfile.ZipFile(built[1]) as wheel:
        names = set(wheel.namelist())
    assert names >= SHIPPED
    assert {name.split("/")[0] for name in names} == {"sotdd", f"sotdd-{sotdd.__version__}.dist-info"}
    modules = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*.py")}
    assert {name for name in names if name.endswith(".py")} == modules
    assert not [name for name in names if "__pycache__" in name]


@needs("build", "hatchling")
def test_the_sdist_holds_the_tests_and_the_pages(built):
    with tarfile.open(built[0]) as source:
        names = {name.partition("/")[2] for name in source.getnames()}
    assert names >= {f"src/{name}" for name in SHIPPED}
    assert names >= {"pyproject.toml", "README.md", "LICENSE", "tests/project/test_packaging.py", "docs/conf.py"}


@pytest.mark.slow
@needs("build", "hatchling", "pip")
def test_the_wheel_runs_where_it_is_installed(installed, tmp_path):
    place = Path(call(installed, "-c", "import sotdd; print(sotdd.__file__)", cwd=tmp_path).strip())
    assert installed.parents[1] in place.parents
    first = call(installed, "-m", "sotdd", "--version", cwd=tmp_path).splitlines()[0]
    assert first == f"sotdd {sotdd.__version__}"
    script = installed.with_name("sotdd.exe" if os.name == "nt" else "sotdd")
    assert "Six datasets" in call(script, "demo", cwd=tmp_path)
    call(script, "demo", "--report", "page.html", "--quiet", cwd=tmp_path)
    assert (tmp_path / "page.html").stat().st_size > 100_000


def test_the_version_is_written_once():
    files = [ROOT / "pyproject.toml", *(ROOT / "src").rglob("*.py")]
    written = [path.name for path in files if f'"{sotdd.__version__}"' in path.read_text(encoding="utf-8")]
    assert written == ["version.py"]


PROGRAM = """
import numpy as np
import sotdd

x = np.zeros((4, 2))
near: sotdd.Distance = sotdd.distance((x, ["a", "b", "a", "b"]), x, n_projections=10, noise_floor=True)
low, high = near.interval(0.95)
total: float = near.value + low + high
matrix: sotdd.DistanceMatrix = sotdd.pairwise({"one": x, "two": "table.csv::label=kind"}, p=1)
names: tuple[str, ...] = tuple(matrix.names)
seen: sotdd.Sketch = sotdd.sketch(x, sotdd.Projections.fit([x]), n_quantiles=64)
verdict: float = sotdd.test(x, x).p_value
why: sotdd.Explanation = sotdd.explain(sotdd.open_dataset(x), x)
"""


@pytest.mark.slow
@needs("build", "hatchling", "pip", "mypy")
def test_a_users_program_is_type_checked(installed, tmp_path):
    """Strictly, against what is installed; and a mistake in it is found, so the hints are really read."""
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--python-executable",
        installed,
        "--cache-dir",
        tmp_path / "c",
    ]
    call(*command, tmp_path / "program.py", cwd=tmp_path)
    (tmp_path / "wrong.py").write_text("import sotdd\nn: int = sotdd.distance([[1.0]], [[2.0]], p='two')\n")
    done = subprocess.run([*map(str, command), "wrong.py"], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1
    assert "assignment" in done.stdout
    assert "arg-type" in done.stdout
