"""Sources that do not fit into memory, in a process that may really take no more: one line with what would."""

import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import sotdd
from inputs.helpers import refusal

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of memory as Linux has them")

ROWS = 2_000_000

# A small source of the same kind is opened first, so that what is left afterwards is for the data alone.
CHILD = """
import resource, sys
import numpy as np, pandas as pd, sotdd

def opened(call, size, rows, side):
    return eval(call, {"sotdd": sotdd, "np": np, "size": size, "side": side, "frame": frames[size]})

frames = {size: pd.DataFrame({"x": np.zeros(rows), "y": np.arange(rows) % 3})
          for size, rows in (("small", 300), ("big", 2_000_000))}
opened(sys.argv[1], "small", 300, 9)
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + (64 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    print("opened", opened(sys.argv[1], "big", 2_000_000, 9500))
except sotdd.SotddError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    for size, rows, side in (("small", 300, 9), ("big", ROWS, 9000)):
        features = np.zeros((rows, 8))
        np.savez(folder / f"{size}.npz", X=features, y=np.arange(rows) % 3)
        np.save(folder / f"{size}.npy", features)
        np.save(folder / f"{size}_columns.npy", np.asfortranarray(features))
        (folder / f"{size}_images" / "a").mkdir(parents=True)
        Image.fromarray(np.zeros((side, side), np.uint8)).save(folder / f"{size}_images" / "a" / "x.png")
    return folder


def limited(sources, call):
    command = [sys.executable, "-c", CHILD, call]
    done = subprocess.run(command, cwd=sources, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.removesuffix("\n")


@pytest.mark.parametrize(
    "call",
    [
        "sotdd.open_dataset(f'{size}.npz')",
        "sotdd.open_dataset(frame)",
        pytest.param("sotdd.open_dataset(f'{size}_images', image_size=side)", marks=pytest.mark.slow),
        pytest.param("sotdd.open_dataset(f'{size}_images', broken='skip')", marks=pytest.mark.slow),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(sources, call):
    said = limited(sources, call)
    assert "\n" not in said
    assert "ran out of memory" in said
    assert "max_points=" in said


@pytest.mark.parametrize("kind", ["", "_columns"])
def test_a_file_is_opened_without_reading_it(sources, kind):
    call = f"sotdd.open_dataset(f'{{size}}{kind}.npy', label=None).rows(slice(5, 9)).shape"
    assert limited(sources, call) == "opened (4, 8)"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "megabytes"),
    [(["distance", "big.npz", "big.npz"], 700)],
)
def test_the_command_line_says_it_in_one_line(sources, words, megabytes):
    script = (
        "import resource, sys; "
        f"resource.setrlimit(resource.RLIMIT_AS, ({megabytes << 20}, {megabytes << 20})); "
        "from sotdd.commands import main; main()"
    )
    command = [sys.executable, "-c", script, *words]
    done = subprocess.run(command, cwd=sources, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode in (0, 2), done.stderr
    if done.returncode:
        assert done.stderr.startswith("sotdd: ")
        assert done.stderr.count("\n") == 1


def test_sizes_and_bins_have_bounds():
    images, points = (np.zeros((4, 3, 3), np.uint8), [1, 2] * 2), (np.zeros((60, 2)), np.arange(60))
    for size in (10_001, (5, 10_001), 10**5000):
        assert "10,000" in refusal(images, image_size=size)
    for bins in (10_001, 10**5000):
        assert "10,000" in refusal(points, bins=bins)
    assert len(sotdd.open_dataset(points, bins=10_000).classes) == 60
