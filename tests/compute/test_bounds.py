"""With ``NUMBA_BOUNDSCHECK=1`` loops refuse what lies outside their arrays: CI opens crafted files that way once."""

import os
import subprocess
import sys
import textwrap

import pytest

# Without bounds checks this reads memory that is not its own, so it runs in a process that has them.
BEYOND = """
    from dataclasses import replace
    import numpy as np, sotdd
    from sotdd.projections.compiling import kernel, step

    @step
    def part(row, index):
        return row[index]

    @kernel
    def direct(row):
        return row[len(row) + 3]

    @kernel
    def inlined(row):
        return part(row, len(row) + 3)

    x = np.random.default_rng(0).normal(size=(90, 3))
    whole = sotdd.sketch(x, sotdd.Projections.fit([x], n_projections=200), n_quantiles=8)
    cut = replace(whole, quantiles=whole.quantiles[:1].copy())  # as a file could once have it
    for call in (lambda: direct(np.zeros(4)), lambda: inlined(np.zeros(4)), lambda: whole.distance(cut)):
        try:
            call()
        except IndexError as error:
            print(error)
"""


@pytest.mark.slow
def test_bounds_checks_are_in_force_where_they_are_asked_for(tmp_path):
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    (tmp_path / "beyond.py").write_text(textwrap.dedent(BEYOND))  # a file, since the cache wants one
    done = subprocess.run(
        [sys.executable, str(tmp_path / "beyond.py")], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["index is out of bounds"] * 3


@pytest.mark.slow
@pytest.mark.skipif("NUMBA_BOUNDSCHECK" not in os.environ, reason="for the run of CI that checks bounds")
def test_this_run_checks_bounds():
    import numpy as np

    from sotdd.projections.compiling import step

    with pytest.raises(IndexError):
        step(lambda row: row[len(row)])(np.zeros(4))
