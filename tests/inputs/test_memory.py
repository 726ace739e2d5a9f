"""Sources that do not fit into memory, in a process that may really take no more: one line with what would."""

import errno
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import sotdd
from inputs.helpers import refusal
from sotdd.basics.memory import available_bytes, is_out_of_memory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of memory as Linux has them")

ROWS = 2_000_000

# A small source of the same kind is opened first, so that what is left afterwards is for the data alone.
CHILD = """
import resource, sys
import numpy as np, pandas as pd, sotdd

class Points:
    def __init__(self, size): self.size = size
    def __len__(self): return 100
    def __getitem__(self, row): return np.zeros(self.size), row % 2

def wide(batch): return np.zeros((len(batch), 200_000))

def labels(rows): return np.arange(rows) % 3

def opened(call, rows, side):
    data = eval(call)
    return np.asarray(data.features) if read else data

call, read = sys.argv[1], len(sys.argv) > 2
small = call.replace("big", "small")
wide_before, wide = wide, lambda batch: np.zeros((len(batch), 2))
def prepare(rows):
    return np.zeros((rows, 2)), labels(rows), pd.DataFrame({"x": np.zeros(rows), "y": labels(rows)})

pictures = np.zeros((20, 9, 9), np.uint8)
x, codes, frame = prepare(300)
opened(small, 300, 9)
wide, rows = wide_before, 2_000_000
x, codes, frame = prepare(rows)
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + (64 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    print("opened", opened(call, rows, 9500))
except sotdd.SotddError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    for size, rows, side in (("small", 300, 9), ("big", ROWS, 9000)):
        features, codes = np.zeros((rows, 8)), np.arange(rows) % 3
        np.savez(folder / f"{size}.npz", X=features, y=codes)
        np.save(folder / f"{size}.npy", features)
        np.save(folder / f"{size}_columns.npy", np.asfortranarray(features))
        np.save(folder / f"{size}_labels.npy", np.arange(rows))
        pd.DataFrame({"x": features[:, 0], "y": codes}).to_parquet(folder / f"{size}.parquet")
        (folder / f"{size}_images" / "a").mkdir(parents=True)
        Image.fromarray(np.zeros((side, side), np.uint8)).save(folder / f"{size}_images" / "a" / "x.png")
    return folder


CALLS = {
    "npz": "sotdd.open_dataset('big.npz')",
    "image-size": "sotdd.open_dataset('big_images', image_size=side)",
    "frame": "sotdd.open_dataset(frame)",
    "npy-labels": "sotdd.open_dataset('big.npy', label='big_labels.npy')",
    "image": "sotdd.open_dataset('big_images')",
    "image-skip": "sotdd.open_dataset('big_images', broken='skip')",
    "array-size": "sotdd.open_dataset((pictures, labels(len(pictures))), image_size=side)",
    "points": "sotdd.open_dataset(Points(rows))",
    "transform": "sotdd.open_dataset((np.zeros((500, 2)), labels(500)), transform=wide)",
    "encoder": "sotdd.open_dataset((['text'] * 500, labels(500)), encoder=wide)",
    "bins": "sotdd.open_dataset((x, codes), bins=2)",
}
QUICK = ("npz", "image-size", "frame")


@pytest.mark.parametrize(
    "kind", [*QUICK, *(pytest.param(kind, marks=pytest.mark.slow) for kind in CALLS if kind not in QUICK)]
)
def test_what_does_not_fit_is_said_in_one_line(sources, kind):
    done = subprocess.run(
        [sys.executable, "-c", CHILD, CALLS[kind]],
        cwd=sources,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    said = done.stdout.removesuffix("\n")
    assert "\n" not in said
    assert "does not fit into memory" in said or "GB of memory are free" in said, said
    for wrong in ("is broken", "not installed", "expected an", "[Errno"):
        assert wrong not in said or "does not fit" in said
    assert any(word in said for word in ("max_points=", "image_size", "numpy.save"))


def test_a_file_of_columns_is_opened_without_reading_it(sources):
    call = "sotdd.open_dataset('big_columns.npy', label=None).rows(slice(5, 9)).shape"
    child = CHILD.replace("np.asarray(data.features) if read else data", "data")
    done = subprocess.run(
        [sys.executable, "-c", child, call], cwd=sources, capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.stderr, done.stdout) == ("", "opened (4, 8)\n")


def test_blocks_that_do_not_fit_are_said_in_one_line(sources):
    call = "sotdd.open_dataset('big.npy', label=None)"
    done = subprocess.run(
        [sys.executable, "-c", CHILD, call, "read"],
        cwd=sources,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "does not fit into memory" in done.stdout


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
    done = subprocess.run(
        [sys.executable, "-c", script, *words], cwd=sources, capture_output=True, text=True, check=False, timeout=120
    )
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 2), done.stderr
    if done.returncode:
        assert done.stderr.startswith("sotdd: ")
        assert done.stderr.count("\n") == 1


def test_sizes_and_bins_have_bounds():
    images, points = (np.zeros((4, 3, 3), np.uint8), [1, 2] * 2), (np.zeros((60, 2)), np.arange(60))
    for size in (10_001, (5, 10_001), 10**9, 10**30, 10**5000):
        said = refusal(images, image_size=size)
        assert said.startswith("image_size is ")
        assert said.endswith("expected at most 10,000.")
    for bins in (10_001, 10**12, 10**30, 10**5000):
        said = refusal(points, bins=bins)
        assert said.startswith("bins is ")
        assert said.endswith("expected at most 10,000.")
    assert len(sotdd.open_dataset(points, bins=10_000).classes) == 60


def test_errors_that_mean_out_of_memory():
    assert is_out_of_memory(MemoryError())
    assert is_out_of_memory(OSError(errno.ENOMEM, "Cannot allocate memory"))
    assert is_out_of_memory(RuntimeError("can't start new thread"))
    assert not is_out_of_memory(OSError(errno.ENOENT, "No such file"))
    assert not is_out_of_memory(ValueError("broken"))
    assert not is_out_of_memory(sotdd.SotddError("a file says: malloc of size 9 failed"))


def test_a_limit_of_the_user_counts_as_memory():
    script = (
        "import resource\nfrom sotdd.basics.memory import available_bytes\n"
        "pages = int(open('/proc/self/statm').read().split()[0])\n"
        "limit = pages * resource.getpagesize() + (200 << 20)\n"
        "resource.setrlimit(resource.RLIMIT_AS, (limit, limit))\nprint(available_bytes())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert 0 < int(done.stdout) <= 200 << 20
    assert available_bytes() > 200 << 20


def test_a_library_that_cannot_be_loaded_is_not_called_missing(tmp_path):
    (tmp_path / "narwhals.py").write_text("raise ImportError('libfoo.so: failed to map segment from shared object')")
    script = "import pandas, sotdd; sotdd.open_dataset(pandas.DataFrame({'x': [1.0], 'y': [1]}))"
    done = subprocess.run([sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {script}"],
                          capture_output=True, text=True, check=False, timeout=120)  # fmt: skip
    said = done.stderr.strip().splitlines()[-1]
    assert "cannot be loaded" in said
    assert "failed to map segment" in said
    assert "not installed" not in said
