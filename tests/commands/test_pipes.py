"""Readers that go away, and streams that are closed: the exit code is that of the work, and nothing is spilt."""

import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes and descriptors as POSIX has them")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pipes")
    rng = np.random.default_rng(0)
    for name, shift in (("same", 0), ("again", 0), ("moved", 3)):
        np.savez(folder / f"{name}.npz", X=rng.normal(shift, 1, size=(200, 3)), y=np.arange(200) % 2)
    return folder


def shell(line, folder):
    """The program in a pipe: its exit code, and what reaches a standard error that is still open."""
    program = f"{sys.executable} -m sotdd"
    script = "set -o pipefail; " + line.replace("sotdd ", f"{program} ")
    done = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.first(4)
@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("sotdd check same.npz moved.npz | head -0", 1),
        ("sotdd check same.npz moved.npz >&- 2>&-", 1),
        ("sotdd check same.npz missing.npz 2>&1 | head -0", 2),
        ("sotdd --help | head -0", 0),
        ("sotdd check same.npz again.npz | head -0", 0),
        ("sotdd check same.npz again.npz --json | head -0", 0),
        ("sotdd check same.npz again.npz 2>&1 | head -0", 0),
        ("sotdd matrix same.npz again.npz moved.npz | head -0", 0),
        ("sotdd check same.npz again.npz >&-", 0),
        ("sotdd check same.npz moved.npz >&-", 1),
        ("sotdd check same.npz again.npz 2>&-", 0),
        ("sotdd check same.npz again.npz >&- 2>&-", 0),
        ("sotdd check same.npz missing.npz >&- 2>&-", 2),
    ],
)
def test_a_reader_that_leaves_changes_no_verdict(folder, line, code):
    assert shell(line, folder) == (code, "")


@pytest.mark.slow
def test_a_full_disk_is_no_verdict(folder):
    code, said = shell("sotdd check same.npz moved.npz --json > /dev/full", folder)
    assert code == 2
    assert "cannot write the result" in said
