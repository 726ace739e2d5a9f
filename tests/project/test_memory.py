"""Where memory is too short: requests that could never fit are refused at once, and the program ends in one line."""

import subprocess
import sys

import numpy as np
import pytest

import sotdd

# The program in a process that may have this much more address space than it has at its start.
PROGRAM = """
import resource, sys
from pathlib import Path
import numpy as np, sotdd
small = np.zeros((60, 3)) + np.arange(60)[:, None]
sotdd.distance(small, small)  # load what it needs while there is room for it
size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (200 << 20), resource.getrlimit(resource.RLIMIT_AS)[1]))
from sotdd.commands import main
sys.argv = ["sotdd", "distance", "many.npy::label=", "many.npy::label="]
main()
"""


@pytest.mark.parametrize(
    ("call", "setting"),
    [(sotdd.distance, "noise_floor"), (sotdd.test, "n_permutations"), (sotdd.distance, "n_projections")],
)
def test_requests_that_never_fit_are_refused(rng, call, setting):
    points = rng.normal(size=(60, 3))
    with pytest.raises(sotdd.SotddError, match=r"GB that are free: use fewer, about [\d,]+"):
        call(points, points, **{setting: 10**9})


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of address space are Linux's")
def test_the_program_ends_in_one_line(tmp_path, rng):
    np.save(tmp_path / "many.npy", rng.normal(size=(3_000_000, 4)).astype(np.float32))
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "memory" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
