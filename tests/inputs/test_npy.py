"""NumPy's own files: larger than memory, hostile, and of the wrong kind."""

import os
import pickle
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest

from inputs.helpers import npy_bytes, refusal
from sotdd import open_dataset


def test_values_that_are_not_finite_are_found(folder):
    x = np.zeros((1000, 3), np.float32)
    x[700, 1] = np.nan
    np.save("x.npy", x)
    assert "(nan) in row 700, feature 1" in refusal("x.npy", label=None)


def test_headers_that_lie(folder):
    for shape, data in [((10, 3), b"\0" * 100), ((10**9, 10**6), b"\0" * 800), ((2, 3), b"\0" * 480), ((), b"\0" * 8)]:
        (folder / "x.npy").write_bytes(npy_bytes(shape, data=data))
        assert "x.npy" in refusal("x.npy", label=None)
        with zipfile.ZipFile("x.npz", "w") as archive:
            archive.writestr("X.npy", npy_bytes(shape, data=data))
        assert "x.npz" in refusal("x.npz")


def test_zip_bombs_are_refused(folder, monkeypatch):
    """The header is honest, the ratio is not that of data."""
    monkeypatch.setattr("sotdd.inputs.loaders.files._LARGE", 1 << 20)
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
    (folder / "raw.npy").write_bytes(pickle.dumps(Trap()))
    for text in ["x.npy::label=", "x.npz", "y.npz", "good.npy::label=x.npy", "raw.npy::label="]:
        assert "objects" in refusal(text) or "cannot read" in refusal(text)
    assert not (folder / "trapped").exists()


def test_arrays_of_the_wrong_kind(folder):
    np.save("x.npy", np.zeros((5, 3)))
    np.save("y.npy", np.zeros(4, int))
    np.save("complex.npy", np.zeros((2, 2), complex))
    np.save("none.npy", np.zeros((0, 3)))
    for version in ((2, 0), (3, 0)):
        with open(f"{version[0]}.npy", "wb") as file:
            np.lib.format.write_array(file, np.zeros((5, 3)), version=version)
        assert open_dataset(f"{version[0]}.npy::label=").n_points == 5
    for source, said in {
        "complex.npy::label=": "complex128",
        "none.npy::label=": "(0, 3)",
        "x.npy::label=y.npy": "4 entries but features have 5 rows",
        "x.npy": "label=",
        "x.npy::label=nowhere.npy": "nowhere.npy",
    }.items():
        assert said in refusal(source)


@pytest.mark.skipif(sys.platform != "linux", reason="a sparse file takes no room on the disk")
@pytest.mark.parametrize("fortran_order", [False, True])
def test_files_larger_than_memory_should_be_are_streamed(folder, fortran_order):
    rows, columns = 640_000, 400  # 1 GB of float32
    header = npy_bytes((rows, columns), "<f4", fortran_order=fortran_order)
    with open("huge.npy", "wb") as file:
        file.write(header)
        file.truncate(len(header) + 4 * rows * columns)
    tracemalloc.start()
    data = open_dataset("huge.npy", label=None)
    for read in (data, open_dataset("huge.npy", label=None, max_points=10_000)):
        for block in read.blocks()[::200]:
            read.rows(block)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert data.n_points == rows
    assert peak < 60e6


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
        np.testing.assert_array_equal(features[picked], x[picked])


def test_splits_in_one_file_go_by_their_names(folder):
    x = np.arange(12.0).reshape(4, 3)
    np.savez("keras.npz", x_train=x, y_train=[0, 1, 0, 1], x_test=-x, y_test=[1, 1, 0, 0])
    assert "'test', 'train': name one by split" in refusal("keras.npz")
    assert "by split" in refusal("keras.npz::split=val")
    assert open_dataset("keras.npz::split=train").features[0, 1] == 1
    assert open_dataset("keras.npz", split="test").features[0, 1] == -1
    assert open_dataset("keras.npz::features=x_test,label=y_test").features[0, 1] == -1
    np.savez("one.npz", X_train=x, Y_train=[0, 1, 0, 1])
    np.savez("both.npz", X=x, y=[2, 3, 2, 3], X_train=-x, y_train=[0, 1, 0, 1])
    for text, classes in (("one.npz", (0, 1)), ("both.npz", (2, 3)), ("both.npz::split=train", (0, 1))):
        assert open_dataset(text).classes == classes
    assert "means nothing" in refusal((x, [0, 1, 0, 1]), split="train")
