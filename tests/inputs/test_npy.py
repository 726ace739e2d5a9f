"""NumPy's own files: large, hostile, and of the wrong kind."""

import os
import subprocess
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pytest

import sotdd
from inputs.helpers import npy_bytes, refusal, same
from sotdd import open_dataset


def test_npz_and_npy(xy, folder):
    x, y = xy
    np.savez("a.npz", X=x, y=y)
    np.savez_compressed("b.npz", points=x, kind=y)
    np.save("x.npy", x)
    np.save("fortran.npy", np.asfortranarray(x))
    np.save("y.npy", y)
    for source in ["a.npz", "b.npz::features=points,label=kind", "x.npy::label=y.npy", "fortran.npy::label=y.npy",
                   folder / "a.npz", ("x.npy", "y.npy"), str(folder / "x.npy") + "::label=y.npy"]:  # fmt: skip
        same(open_dataset(source), xy)
    same(open_dataset(folder / "x.npy", label="y.npy"), xy)
    assert sotdd.distance("a.npz", "x.npy::label=y.npy", n_projections=64).value == 0
    assert open_dataset("x.npy::label=").classes == ("all",)


def test_streamed_values_that_are_not_finite_are_found_when_read(folder):
    x = np.zeros((1000, 3), np.float32)
    x[700, 1] = np.nan
    np.save("x.npy", x)
    data = open_dataset("x.npy", label=None)
    with pytest.raises(sotdd.SotddError, match=r"the first \(nan\) in row 700, feature 1"):
        sotdd.distance(data, np.zeros((5, 3)), n_projections=64)
    sample = open_dataset("x.npy", label=None, max_points=999)
    with pytest.raises(sotdd.SotddError, match="in row 700"):
        np.asarray(sample.features)


def test_headers_that_lie(folder):
    for shape, data in [((10, 3), b"\0" * 100), ((10**9, 10**6), b"\0" * 800), ((2, 3), b"\0" * 480), ((), b"\0" * 8)]:
        (folder / "x.npy").write_bytes(npy_bytes(shape, data=data))
        said = refusal("x.npy", label=None)
        assert "x.npy" in said
        with zipfile.ZipFile("x.npz", "w") as archive:
            archive.writestr("X.npy", npy_bytes(shape, data=data))
        assert "x.npz" in refusal("x.npz")
    assert "declares 8,000,000,000,000,000 bytes" in refusal_of(folder, (10**9, 10**6))


def refusal_of(folder, shape):
    (folder / "x.npy").write_bytes(npy_bytes(shape))
    return refusal("x.npy", label=None)


@pytest.mark.slow
def test_zip_bombs_are_refused(folder):
    """Two gigabytes of zeros in two megabytes: the header is honest, the ratio is not that of data."""
    size = 2 << 30
    block = b"\0" * (1 << 24)
    with (
        zipfile.ZipFile("bomb.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("X.npy", "w", force_zip64=True) as file,
    ):
        file.write(npy_bytes((size // 8, 1)))
        for _ in range(size // len(block)):
            file.write(block)
    assert os.path.getsize("bomb.npz") < 32 << 20
    assert "would become 2.1 GB, as a zip bomb does" in refusal("bomb.npz")


def test_archives_that_do_not_fit_are_refused_before_they_are_read(folder, monkeypatch):
    from sotdd.inputs.loaders import npy

    np.savez("x.npz", X=np.zeros((1000, 1000)))
    monkeypatch.setattr(npy, "available_bytes", lambda: 10**6)
    assert "shape (1000, 1000) of float64, 0.0 GB" in refusal("x.npz")


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


def test_wrong_types_in_arrays(folder):
    np.save("text.npy", np.array(["a", "b"]))
    assert "strings" in refusal("text.npy", label=None)
    np.save("complex.npy", np.zeros((2, 2), complex))
    assert "complex" in refusal("complex.npy", label=None)
    np.save("none.npy", np.zeros((0, 3)))
    assert "at least one point" in refusal("none.npy", label=None)
    np.save("x.npy", np.zeros((5, 3)))
    np.save("y.npy", np.zeros(4, int))
    assert "4 entries but features have 5 rows" in refusal("x.npy::label=y.npy")
    assert "name the file with the labels, x.npy::label=LABELS.npy" in refusal("x.npy")
    assert "there is no file nowhere.npy" in refusal("x.npy::label=nowhere.npy")


# Of this process alone: what getrusage tells of a new process begins with the peak of the one that started it.
PEAK = """
def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024
"""


@pytest.mark.slow
def test_five_gigabytes_open_at_once_and_stream(folder):
    """A sparse file takes no room on the disk; memory is that of a fresh process, read from the kernel."""
    if not sys.platform.startswith("linux"):
        pytest.skip("sparse files and peak memory are read as Linux has them")
    rows, columns = 6_400_000, 200  # 5.12 GB of float32
    header = npy_bytes((rows, columns), "<f4")
    try:
        with open("huge.npy", "wb") as file:
            file.write(header)
            file.truncate(len(header) + 4 * rows * columns)
    except OSError as error:
        pytest.skip(f"this disk has no room for a sparse file ({error})")
    code = f"""{PEAK}
import sotdd
from sotdd import open_dataset
before = peak()
data = open_dataset("huge.npy", label=None)
opened = peak() - before
for block in data.blocks()[:: 5]:
    data.rows(block)
sample = open_dataset("huge.npy", label=None, max_points=100_000)
for block in sample.blocks():
    sample.rows(block)
print(data.n_points, opened, peak() - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    points, opened, streamed = map(float, done.stdout.split())
    assert points == rows
    assert opened < 100  # MB: the codes of so many points take 26
    assert streamed < 250


@pytest.mark.slow
def test_a_distance_of_a_gigabyte_in_bounded_memory(folder):
    if not sys.platform.startswith("linux"):
        pytest.skip("peak memory is read as Linux has it")
    rows, columns = 50_000, 5000  # 1 GB of float32
    header = npy_bytes((rows, columns), "<f4")
    with open("large.npy", "wb") as file:
        file.write(header)
        file.truncate(len(header) + 4 * rows * columns)
        file.seek(len(header) + 4 * columns * 100)
        file.write(np.ones(columns, "<f4").tobytes())
    code = f"""{PEAK}
import sotdd, numpy as np
small = np.zeros((10, 5000), np.float32)
sotdd.distance(small, small + 1, n_projections=64)  # loads and compiles
before = peak()
found = sotdd.distance("large.npy::label=", small, n_projections=64)
print(found.value > 0, peak() - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    positive, grown = done.stdout.split()
    assert positive == "True"
    assert float(grown) < 300  # MB


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
    try:
        sotdd.distance(data, np.ones((5, 6)))
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
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    for keep in (0, 100, 4096, 100_000):
        assert sum(f"{keep}-{kind}" in line for line in lines) >= 2
    assert all("has become shorter since it was opened" in line for line in lines)


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
