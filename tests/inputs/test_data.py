"""Datasets at the edge: what is taken, and what is refused with one clear line."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import sotdd
from sotdd import LabelledData

# ------------------------------------------------------------------ what is taken


@pytest.mark.parametrize(
    "dtype", ["u1", "i1", "i2", "u4", "i8", "f2", "f4", "f8", "g", "?", ">f4", ">f8", ">i2", "<u2"]
)
def test_every_real_dtype_gives_the_same_distance(rng, dtype):
    a, b = rng.integers(0, 2, size=(2, 40, 6)).astype(dtype)
    expected = sotdd.distance(a.astype(np.float64), b.astype(np.float64), n_projections=64)
    assert sotdd.distance(a, b, n_projections=64).value == pytest.approx(expected.value, rel=1e-6)


@pytest.mark.parametrize("shape", [(), (1,), (6,), (2, 3), (3, 2, 1)])
def test_points_of_any_shape_are_read_as_their_numbers(rng, shape):
    x = rng.normal(size=(30, *shape))
    data = LabelledData.of(x)
    assert data.n_features == int(np.prod(shape))
    flat = x.reshape(30, -1)
    assert sotdd.distance(x, x * 2, n_projections=64).value == sotdd.distance(flat, flat * 2, n_projections=64).value


def test_uint8_images_are_not_copied_whole(rng):
    images = rng.integers(0, 256, size=(1000, 28, 28)).astype(np.uint8)
    assert np.shares_memory(LabelledData.of(images).features, images)


def test_memory_maps_stay_on_disk(rng, tmp_path):
    on_disk = np.lib.format.open_memmap(tmp_path / "x.npy", mode="w+", dtype=np.float32, shape=(2000, 50))
    on_disk[:] = rng.normal(size=(2000, 50))
    on_disk.flush()
    read_only = np.load(tmp_path / "x.npy", mmap_mode="r")
    labels = rng.integers(0, 5, size=2000)
    data = LabelledData.of((read_only, labels))
    assert np.shares_memory(data.features, read_only)
    assert sotdd.distance(data, (on_disk[:900], labels[:900]), n_projections=64).value > 0
    assert sotdd.distance(data, (np.array(read_only), labels), n_projections=64).value == 0


def test_views_that_are_not_contiguous(rng):
    x = rng.normal(size=(60, 20))
    views = {"columns": x[:, ::2], "reversed": x[::-1, :10], "transposed": x[:10].T}
    for view in views.values():
        assert sotdd.distance(view, np.array(view), n_projections=64).value == 0


def test_torch_frames_and_lists(rng):
    x = rng.normal(size=(20, 3))
    y = rng.integers(0, 2, size=20)
    for features, labels in [
        (torch.tensor(x), torch.tensor(y)),
        (pd.DataFrame(x), pd.Series(y)),
        (x.tolist(), y.tolist()),
        (x, pd.Categorical(np.array(["cat", "dog"])[y])),
        (x, list(torch.tensor(y))),
        (x, torch.tensor(y, dtype=torch.bfloat16)),
        (x, torch.tensor(y, dtype=torch.float32, requires_grad=True)),
        (torch.tensor(x).neg().conj_physical().neg(), y),
        (x, np.array([torch.tensor(int(v)) for v in y] + [None], object)[:-1]),
    ]:
        assert sotdd.distance((features, labels), (x, y), n_projections=64).value < 1e-6


@pytest.mark.parametrize(
    "labels",
    [
        [0, 1, 0, 1],
        ["dog", "cat", "dog", "cat"],
        [True, False, True, False],
        np.array(["dog", "cat", "dog", "cat"]),
        np.array([b"d", b"c", b"d", b"c"]),
        np.array([0.5, 1.5, 0.5, 1.5]),
        np.array(["2020", "2021", "2020", "2021"], "datetime64[Y]"),
        [("a", 1), ("b", 2), ("a", 1), ("b", 2)],
        [1, "1", 1, "1"],
        np.array(["x", 2, "x", 2], object),
        pd.Series(["x", "y", "x", "y"]),
        pd.Series(["x", "y", "x", "y"], dtype="category"),
        (i % 2 for i in range(4)),
    ],
)
def test_labels_may_be_any_hashable(labels):
    data = LabelledData.of((np.eye(4), labels))
    assert len(data.classes) == 2
    assert data.counts.tolist() == [2, 2]
    assert data.codes[0] == data.codes[2] != data.codes[1] == data.codes[3]


def test_classes_of_one_point_and_disjoint_label_sets(rng):
    a = rng.normal(size=(7, 2)), list("abcdefg")
    b = rng.normal(size=(3, 2)), [10, 11, 10]
    assert np.isfinite(sotdd.distance(a, b).value)


@given(hnp.arrays(np.int8, st.integers(1, 60), elements=st.integers(0, 6)))
@settings(max_examples=100)
def test_grouping_brings_classes_together(labels):
    data = LabelledData.of((np.zeros((len(labels), 1)), labels))
    offsets, position = data.grouping()
    if position is None:
        assert (np.diff(labels) >= 0).all()
        grouped = labels
    else:
        grouped = np.empty_like(labels)
        grouped[position] = labels
    assert grouped.tolist() == sorted(labels.tolist())
    assert np.diff(offsets).tolist() == data.counts.tolist()


def test_blocks_cover_every_row_once(rng):
    for shape in [(1, 1), (511, 3), (512, 3), (513, 3), (5, 3_000_000)]:
        data = LabelledData("x", np.broadcast_to(np.uint8(0), shape), ("all",), np.zeros(shape[0], np.int32))
        rows = [row for block in data.blocks() for row in range(block.start, block.stop)]
        assert rows == list(range(shape[0]))


# ------------------------------------------------------------------ what is refused


class Unhashable:
    """As a slice was until Python 3.12."""

    __hash__ = None


good = np.zeros((3, 2))
nan, inf = float("nan"), float("inf")
holes = np.zeros((700, 2))
holes[650, 1], holes[699, 0] = nan, inf

REFUSED = [
    (None, "dataset 'a' is None"),
    (5, "features of dataset 'a' are 5"),
    (np.float64(5), r"features of dataset 'a' are .*5\.0"),
    ("digits.npz", "there is no file digits.npz"),
    ({"X": good}, "dataset 'a' is a dict"),
    ((good, [0, 1, 2], 3), "tuple of 3"),
    ((None, [0, 1, 2]), "features of dataset 'a' are None"),
    ((good, None), "labels of dataset 'a' are None: pass one label per row, or the features alone"),
    ((good, [0, 1]), "2 entries but features have 3 rows: pass one label per row"),
    ((good, 7), "labels of dataset 'a' are 7"),
    ((good, "abc"), "labels of dataset 'a' are 'abc'"),
    ((good, [[0], [1], [2]]), "labels of dataset 'a' hold a list"),
    ((good, np.zeros((3, 1))), r"labels of dataset 'a' have shape \(3, 1\)"),
    ((good, [0.0, nan, 1.0]), "1 label that is missing"),
    ((good, np.array([nan, nan, 1.0])), "2 labels that are missing"),
    ((good, ["x", None, "y"]), "1 label that is missing"),
    ((good, pd.Series(["x", pd.NA, "y"], dtype="string")), "1 label that is missing"),
    ((good, np.array(["2020", "NaT", "2021"], "datetime64[Y]")), "1 label that is missing"),
    ((good, np.array([{}, {}, {}])), "hold a dict"),
    ((good, [Unhashable(), 2, 3]), "not hashable"),
    ((good, {0: 1, 1: 2, 2: 3}), "labels of dataset 'a' are a dict"),
    ((good, {0, 1, 2}), "labels of dataset 'a' are a set"),
    ((good, [0, 1, np.datetime64("NaT", "s")]), "1 label that is missing"),
    ((good, [0, Decimal("NaN"), complex("nan")]), "2 labels that are missing"),
    ((good, np.ma.array([0, 1, 2], mask=[False, True, False])), "1 label that is missing"),
    ((good, [torch.zeros(1), torch.zeros(1), torch.zeros(1)]), "labels of dataset 'a' hold a Tensor"),
    ((good, torch.zeros(3).to_sparse()), "labels of dataset 'a' do not form an array"),
    (torch.zeros(3, 2, device="meta"), "a tensor of torch.float32 on meta, which cannot be read"),
    (np.zeros((0, 3)), r"shape \(0, 3\): expected at least one point"),
    (np.zeros((3, 0)), r"shape \(3, 0\): expected at least one point"),
    ([], "at least one point"),
    (np.array([["a", "b"]]), "strings"),
    (np.array([[b"a"]]), "bytes"),
    (np.array([[1j]]), "complex"),
    (np.array([[{}]]), "Python objects"),
    (np.array([["2020"]], "datetime64[Y]"), "dates"),
    (pd.DataFrame({"x": [1.0], "name": ["a"]}), "name the labels with label=COLUMN"),
    ([[1.0, 2.0], [3.0]], "do not form an array"),
    ([np.zeros((3, 2)), [0, 1, 2]], "do not form an array"),
    (np.ma.masked_array(good, mask=[[True, False], [False, False], [False, False]]), "masked"),
    (holes, r"2 values that are NaN or infinite, the first \(nan\) in row 650, feature 1"),
    (np.array([[0.0, -inf]], np.float32), r"1 value that is NaN or infinite, the first \(-inf\) in row 0, feature 1"),
    (np.array([[nan]], np.float16), "NaN"),
]


@pytest.mark.parametrize(("source", "said"), REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_refused_with_one_line(source, said):
    with pytest.raises(sotdd.SotddError, match=said) as caught:
        sotdd.distance(source, good)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("name", [5, b"x", np.zeros(2)])
def test_names_are_text(name):
    for source in (good, LabelledData.of(good)):
        with pytest.raises(sotdd.SotddError, match=r"name is .*: expected text, or None"):
            LabelledData.of(source, name)


def test_labels_that_only_seem_to_have_entries():
    from scipy.sparse import eye

    with pytest.raises(sotdd.SotddError, match="labels of dataset 'a' are a dia_matrix: expected one label per row"):
        sotdd.distance((good, eye(len(good))), good)


@pytest.mark.parametrize("cores", [1, 4])
def test_values_that_are_not_finite_are_found_on_all_cores(monkeypatch, cores):
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    large = np.zeros((45_000, 100), np.float32)
    LabelledData.of(large)
    large[[40_001, 31_207, 31_207], [3, 99, 12]] = np.nan, -np.inf, np.inf
    with pytest.raises(sotdd.SotddError, match=r"has 3 values .* the first \(inf\) in row 31,207, feature 12"):
        LabelledData.of(large)


def test_other_numbers_of_features_are_refused():
    with pytest.raises(sotdd.SotddError, match="dataset 'b' has 3 features but dataset 'a' has 2"):
        sotdd.distance(good, np.zeros((3, 3)))


@given(
    st.one_of(
        st.none(),
        st.integers(),
        st.text(),
        st.lists(st.one_of(st.none(), st.integers(), st.floats(), st.text(), st.lists(st.floats()))),
        st.tuples(st.lists(st.lists(st.floats(), max_size=2), max_size=3), st.lists(st.one_of(st.none(), st.floats()))),
        hnp.arrays(hnp.scalar_dtypes(), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)),
    )
)
@settings(max_examples=400)
def test_odd_input_is_a_dataset_or_refused(source):
    """Nothing but a dataset or a SotddError comes out, whatever goes in."""
    try:
        data = LabelledData.of(source)
    except sotdd.SotddError:
        return
    assert data.n_points >= 1
    assert data.n_features >= 1
    assert int(data.counts.sum()) == data.n_points
