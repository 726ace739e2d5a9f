"""Where memory runs out, a call says so in one line; in a process that may have little."""

import json
import subprocess
import sys

import pytest

# More address space than is in use at the start. What the calls ask for is several times that.
SPARE = 300 << 20

CHILD = f"""
import json, resource
from pathlib import Path
import numpy as np, torch, sotdd, sotdd.peers

x = np.random.default_rng(0).normal(size=(60, 3))
small = x, np.arange(60) % 2
n = 1_200_000
many = np.random.default_rng(0).normal(size=(n, 1)).astype(np.float32), np.arange(n) % 3
# With fewer projections a batch would fit, but for the odd thread, and be shuffled 499 times.
reference = sotdd.DriftReference.fit(many[0], max_points=1000, n_projections=128)

def calls(one):
    yield "distance", lambda: sotdd.distance(one, one)
    yield "paper", lambda: sotdd.paper(one, one)
    yield "pairwise", lambda: sotdd.pairwise([one, one, one])
    yield "rank", lambda: sotdd.rank(one, [one])
    yield "test", lambda: sotdd.test(one, one, n_permutations=9)
    yield "explain", lambda: sotdd.explain(one, one, n_splits=19)
    yield "DriftReference.fit", lambda: sotdd.DriftReference.fit(one, max_points=None)
    yield "flow", lambda: sotdd.flow(one, one, steps=1)
    yield "mmd", lambda: sotdd.peers.mmd(one, one)
    yield "chsw", lambda: sotdd.peers.chsw(one, one)
    yield "sliced_wasserstein", lambda: sotdd.peers.sliced_wasserstein(one, one)

for _, call in calls(small):
    call()  # load what they need while there is room for it
drawn = [
    *calls(many),
    ("many splits", lambda: sotdd.distance(small, small, noise_floor=10**8)),
    ("many permutations", lambda: sotdd.test(small, small, n_permutations=10**8)),
    ("many projections", lambda: sotdd.distance(small, small, n_projections=10**9)),
    ("batch", lambda: reference.test(many[0], n_permutations=9)),
]
size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + {SPARE}, resource.getrlimit(resource.RLIMIT_AS)[1]))
said = {{}}
for name, call in drawn:
    try:
        said[name] = f"not refused: {{call()!r}}"
    except sotdd.SotddError as error:
        said[name] = str(error)
    except BaseException as error:
        said[name] = f"raw {{type(error).__name__}}: {{error}}"
print(json.dumps(said))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of address space are Linux's")
def test_memory_that_runs_out_is_one_line():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", CHILD], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    said = json.loads(done.stdout)
    assert len(said) == 15
    for name, line in said.items():
        assert not line.startswith(("raw", "not refused")), (name, line)
        assert "\n" not in line
