"""NumPy's own files: large, hostile, and of the wrong kind."""

import os
import subprocess
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pytest

import sotdd
from inputs.helpers import npy_bytes, refusal
from sotdd import open_dataset


def test_streamed_values_that_are_not_finite_are_found_when_read(folder):
    x = np.zeros((1000, 3), np.float32)
    x[700, 1] = np.nan
    np.save("x.npy", x)
    for how in ({}, {"max_points": 999}):
        data = open_dataset("x.npy", label=None, **how)
        with pytest.raises(sotdd.SotddError, match=r"\(nan\) in row 700, feature 1"):
            np.asarray(data.features)


def test_headers_that_lie(folder):
    for shape, data in [((10, 3), b"\0" * 100), ((10**9, 10**6), b"\0" * 800), ((2, 3), b"\0" * 480), ((), b"\0" * 8)]:
        (folder / "x.npy").write_bytes(npy_bytes(shape, data=data))
        said = refusal("x.npy", label=None)
        assert "x.npy" in said
        with zipfile.ZipFile("x.npz", "w") as archive:
            archive.writestr("X.npy", npy_bytes(shape, data=data))
        assert "x.npz" in refusal("x.npz")
    (folder / "x.npy").write_bytes(npy_bytes((10**9, 10**6)))
    assert "8,000,000,000,000,000 bytes" in refusal("x.npy", label=None)


def test_zip_bombs_are_refused(folder, monkeypatch):
    """The header is honest, the ratio is not that of data."""
    monkeypatch.setattr("sotdd.inputs.loaders.numpy_files._LARGE", 1 << 20)
    np.savez_compressed("bomb.npz", X=np.zeros((1 << 18, 4)))
    assert "0.0 MB" in refusal("bomb.npz")
    np.savez("honest.npz", X=np.zeros((1 << 18, 4)))
    assert open_dataset("honest.npz").n_points == 1 << 18


def test_pickles_are_never_loaded(folder):
    """What a pickle would run is not run."""

    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(folder / "trapped"),)

    np.save("x.npy", np.array([Trap()], object), allow_pickle=True)
    np.savez("x.npz", X=np.array([Trap()], object), y=[1])
    np.savez("y.npz", X=[[1.0]], y=np.array([Trap()], object))
    np.save("good.npy", np.zeros((1, 2)))
    (folder / "raw.npy").write_bytes(__import__("pickle").dumps(Trap()))
    for text in ["x.npy::label=", "x.npz", "y.npz", "good.npy::label=x.npy", "raw.npy::label="]:
        assert "objects" in refusal(text) or "cannot read" in refusal(text)
    assert not (folder / "trapped").exists()


def test_arrays_of_the_wrong_kind(folder):
    np.save("x.npy", np.zeros((5, 3)))
    np.save("y.npy", np.zeros(4, int))
    np.save("text.npy", np.array(["a", "b"]))
    np.save("complex.npy", np.zeros((2, 2), complex))
    np.save("none.npy", np.zeros((0, 3)))
    for source, said in {
        "text.npy::label=": "dtype <U1",
        "complex.npy::label=": "complex128",
        "none.npy::label=": "(0, 3)",
        "x.npy::label=y.npy": "4 entries but features have 5 rows",
        "x.npy": "label=",
        "x.npy::label=nowhere.npy": "nowhere.npy",
    }.items():
        assert said in refusal(source)


# Of this process alone: what getrusage tells of a new process begins with the peak of the one that started it.
STREAM = """
def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024

from sotdd import open_dataset
before = peak()
data = open_dataset("huge.npy", label=None)
opened = peak() - before
sample = open_dataset("huge.npy", label=None, max_points=100_000)
for read in (data, sample):
    for block in read.blocks()[::20]:
        read.rows(block)
print(data.n_points, opened, peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="sparse files and peak memory are read as Linux has them")
def test_five_gigabytes_open_at_once_and_stream(folder):
    """A sparse file takes no room on the disk; memory is that of a fresh process, read from the kernel."""
    rows, columns = 6_400_000, 200  # 5.12 GB of float32
    header = npy_bytes((rows, columns), "<f4")
    with open("huge.npy", "wb") as file:
        file.write(header)
        file.truncate(len(header) + 4 * rows * columns)
    done = subprocess.run([sys.executable, "-c", STREAM], capture_output=True, text=True, check=True)
    points, opened, streamed = map(float, done.stdout.split())
    assert points == rows
    assert opened < 100  # MB: the codes of so many points take 26
    assert streamed < 250


CUT = """
import os, shutil, sys
import numpy as np, sotdd
for keep in (0, 100, 4096, 100_000):
    path = f"{keep}-{sys.argv[1]}"
    shutil.copy(sys.argv[1], path)
    data = sotdd.open_dataset(path, label=None)
    os.truncate(path, keep)
    for rows in (slice(0, None), slice(19_995, None), np.array([19_999, 0])):
        try:
            data.features[rows]
        except sotdd.SotddError as error:
            print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not let go of open files")
@pytest.mark.parametrize("kind", ["rows.npy", "columns.npy", "batches.arrow"])
def test_a_file_cut_short_after_it_was_opened_is_one_line(rng, folder, kind):
    """A map of it would end the process."""
    x = rng.normal(size=(20_000, 6))
    np.save("rows.npy", x)
    np.save("columns.npy", np.asfortranarray(x))
    table = pa.table({f"c{j}": x[:, j] for j in range(6)})
    with pa.OSFile("batches.arrow", "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=20_000)
    done = subprocess.run([sys.executable, "-c", CUT, kind], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    for keep in (0, 100, 4096, 100_000):
        assert sum(f"{keep}-{kind}" in line for line in lines) >= 2
    assert all("shorter" in line for line in lines)


@pytest.mark.parametrize("shape", [(50,), (50, 3), (50, 3, 2), (50, 2, 3, 4)])
def test_both_orders_of_a_file_read_alike(rng, folder, shape):
    x = rng.normal(size=shape)
    np.save("rows.npy", x)
    np.save("columns.npy", np.asfortranarray(x))
    picked = rng.permutation(50)[:20]
    for path in ("rows.npy", "columns.npy"):
        features = open_dataset(path, label=None).features
        np.testing.assert_array_equal(features[:], x)
        np.testing.assert_array_equal(features[7:31], x[7:31])
        np.testing.assert_array_equal(features[9:9], x[9:9])
        np.testing.assert_array_equal(features[picked], x[picked])
