"""Optional libraries: what is missing is called missing, and loading one leaves random numbers as they were."""

import subprocess
import sys

import pytest

from sotdd.basics.errors import SotddError, require

MODULES = ["ot", "torch", "lancedb", "distributed", "plotly", "matplotlib", "pandas", "pyarrow.parquet", "narwhals"]


def test_a_missing_library_is_called_missing():
    with pytest.raises(SotddError, match=r"no_library.*pip install 'no'"):
        require("no_library", "this", "'no'")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import no_such_part", "no_such_part"),
        ("raise OSError('cannot map memory\\nand more')", "cannot map memory"),
        ("raise MemoryError", "memory"),
    ],
)
def test_a_library_that_cannot_be_loaded_is_not_called_missing(tmp_path, monkeypatch, text, why):
    (tmp_path / "strange_library.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SotddError, match=why) as refused:
        require("strange_library", "this", "strange")
    assert "not installed" not in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.slow
def test_loading_libraries_in_threads_leaves_random_numbers_as_they_were():
    """POT and rich draw one when they are imported, so `random.seed(0)` meant something else after a call."""
    code = (
        "import random, numpy as np, sotdd; from concurrent.futures import ThreadPoolExecutor\n"
        "from sotdd.basics.errors import require\n"
        "before, legacy = random.getstate(), np.random.get_state()[1].tobytes()\n"
        "with ThreadPoolExecutor(8) as threads:\n"
        f"    list(threads.map(lambda module: require(module, 'this', 'it'), ['ot'] * 8 + {MODULES}))\n"
        "x = np.random.default_rng(0).normal(size=(9, 2))\n"
        "sotdd.distance(x, x + 1, n_projections=4, progress=True)\n"
        "sotdd.explain(x, x + 1, n_projections=4, n_splits=19).table()\n"
        "assert random.getstate() == before and np.random.get_state()[1].tobytes() == legacy"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, capture_output=True)
