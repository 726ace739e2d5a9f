"""Optional libraries: what is missing is called missing, and loading one leaves random numbers as they were."""

import subprocess
import sys

import pytest

from sotdd.basics.errors import SotddError, require

MODULES = ["ot", "torch", "lancedb", "distributed", "plotly", "matplotlib", "pandas", "pyarrow.parquet", "narwhals"]


def library(folder, text):
    (folder / "strange_library.py").write_text(text, encoding="utf-8")


def said(tmp_path, monkeypatch, text):
    library(tmp_path, text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SotddError) as refused:
        require("strange_library", "this", "strange")
    return str(refused.value)


def test_a_missing_library_is_called_missing():
    with pytest.raises(SotddError, match="this needs no_library, which is not installed: pip install 'no'"):
        require("no_library", "this", "'no'")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import no_such_part", "No module named 'no_such_part'"),
        ("raise ImportError('libstrange.so.1: cannot open shared object file')", "libstrange.so.1"),
        ("raise OSError('cannot map memory\\nand more')", "cannot map memory"),
        ("from math import no_such_name", "cannot import name"),
    ],
)
def test_a_library_that_cannot_be_loaded_is_not_called_missing(tmp_path, monkeypatch, text, why):
    line = said(tmp_path, monkeypatch, text)
    assert "installed but cannot be loaded" in line
    assert why in line
    assert "\n" not in line


def test_too_little_memory_is_called_that(tmp_path, monkeypatch):
    assert "too little memory to load it" in said(tmp_path, monkeypatch, "raise MemoryError")


@pytest.mark.slow
def test_loading_a_library_leaves_random_numbers_as_they_were():
    """POT and rich draw one when they are imported, so `random.seed(0)` meant something else after a call."""
    code = (
        "import random, numpy as np; from sotdd.basics.errors import require\n"
        "before, legacy = random.getstate(), np.random.get_state()[1].tobytes()\n"
        f"for module in {MODULES}:\n"
        "    require(module, 'this', 'it')\n"
        "    assert random.getstate() == before and np.random.get_state()[1].tobytes() == legacy, module"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


@pytest.mark.slow
def test_a_progress_bar_and_a_table_leave_them_too():
    code = (
        "import random, numpy as np, sotdd\n"
        "before, x = random.getstate(), np.random.default_rng(0).normal(size=(9, 2))\n"
        "sotdd.distance(x, x + 1, n_projections=4, progress=True)\n"
        "sotdd.explain(x, x + 1, n_projections=4, n_splits=19).table()\n"
        "assert random.getstate() == before"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.slow
def test_threads_that_load_a_library_together_all_get_it_whole():
    code = (
        "import random; from concurrent.futures import ThreadPoolExecutor; from sotdd.basics.errors import require\n"
        "before = random.getstate()\n"
        "with ThreadPoolExecutor(8) as threads:\n"
        "    list(threads.map(lambda _: require('ot', 'this', 'it').emd2, range(8)))\n"
        "assert random.getstate() == before"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)
