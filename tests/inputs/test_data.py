"""Datasets at the edge: what is taken, and what is refused with one clear line."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import sotdd
from sotdd import LabelledData


@pytest.mark.parametrize("dtype", ["u1", "i2", "i8", "f2", "f4", "g", "?", ">f4", ">i2"])
def test_every_real_dtype_gives_the_same_distance(rng, dtype):
    a, b = rng.integers(0, 2, size=(2, 40, 6)).astype(dtype)
    expected = sotdd.distance(a.astype(np.float64), b.astype(np.float64), n_projections=64)
    assert sotdd.distance(a, b, n_projections=64).value == pytest.approx(expected.value, rel=1e-6)


@pytest.mark.parametrize("shape", [(), (6,), (3, 2, 1)])
def test_points_of_any_shape_are_read_as_their_numbers(rng, shape):
    x = rng.normal(size=(30, *shape))
    assert LabelledData.of(x).n_features == int(np.prod(shape))
    flat = x.reshape(30, -1)
    assert sotdd.distance(x, x * 2, n_projections=64).value == sotdd.distance(flat, flat * 2, n_projections=64).value


def test_arrays_memory_maps_and_views_are_not_copied(rng, tmp_path):
    images = rng.integers(0, 256, size=(1000, 28, 28)).astype(np.uint8)
    np.save(tmp_path / "x.npy", rng.normal(size=(200, 50)))
    read_only = np.load(tmp_path / "x.npy", mmap_mode="r")
    for x in (images, read_only, read_only[:, ::2], read_only[::-1, :10], read_only[:10].T):
        assert np.shares_memory(LabelledData.of(x).features, x)
        assert sotdd.distance(x, np.array(x), n_projections=64).value == 0


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
        [True, False, True, False],
        np.array(["dog", "cat", "dog", "cat"]),
        np.array([b"d", b"c", b"d", b"c"]),
        np.array([0.5, 1.5, 0.5, 1.5]),
        np.array(["2020", "2021", "2020", "2021"], "datetime64[Y]"),
        [("a", 1), ("b", 2), ("a", 1), ("b", 2)],
        [1, "1", 1, "1"],
        pd.Series(["x", "y", "x", "y"], dtype="category"),
        (i % 2 for i in range(4)),
    ],
)
def test_labels_may_be_any_hashable(labels):
    data = LabelledData.of((np.eye(4), labels))
    assert len(data.classes) == 2
    assert data.counts.tolist() == [2, 2]
    assert data.codes[0] == data.codes[2] != data.codes[1] == data.codes[3]


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


def test_blocks_cover_every_row_once():
    for shape in [(1, 1), (511, 3), (512, 3), (513, 3), (5, 3_000_000)]:
        data = LabelledData("x", np.broadcast_to(np.uint8(0), shape), ("all",), np.zeros(shape[0], np.int32))
        rows = [row for block in data.blocks() for row in range(block.start, block.stop)]
        assert rows == list(range(shape[0]))


good = np.zeros((3, 2))
nan, inf = float("nan"), float("inf")
holes = np.zeros((300_000, 2), np.float32)
holes[31_207, 1], holes[299_999, 0] = nan, inf

REFUSED = [
    (None, "None"),
    (np.float64(5), r"5\.0"),
    ("digits.npz", "no file digits.npz"),
    ({"X": good}, "dict"),
    ((good, [0, 1, 2], 3), "tuple of 3"),
    ((None, [0, 1, 2]), "features of dataset 'a' are None"),
    ((good, None), "labels of dataset 'a' are None"),
    ((good, [0, 1]), "2 entries but features have 3 rows"),
    ((good, 7), "labels of dataset 'a' are 7"),
    ((good, "abc"), "labels of dataset 'a' are 'abc'"),
    ((good, [[0], [1], [2]]), "list"),
    ((good, np.zeros((3, 1))), r"\(3, 1\)"),
    ((good, np.array([nan, nan, 1.0])), "2 labels that are missing"),
    ((good, ["x", None, "y"]), "1 label that is missing"),
    ((good, pd.Series(["x", pd.NA, "y"], dtype="string")), "1 label that is missing"),
    ((good, np.array(["2020", "NaT", "2021"], "datetime64[Y]")), "1 label that is missing"),
    ((good, [0, Decimal("NaN"), complex("nan")]), "2 labels that are missing"),
    ((good, np.ma.array([0, 1, 2], mask=[False, True, False])), "1 label that is missing"),
    ((good, {0: 1, 1: 2, 2: 3}), "dict"),
    ((good, {0, 1, 2}), "set"),
    ((good, [torch.zeros(1), torch.zeros(1), torch.zeros(1)]), "Tensor"),
    ((good, torch.zeros(3).to_sparse()), "labels of dataset 'a'"),
    ((good, sp.eye(3)), "dia_matrix"),
    (torch.zeros(3, 2, device="meta"), "torch.float32 on meta"),
    (torch.zeros(3, 2).to_sparse(), "sparse"),
    (torch.zeros(3, 2, dtype=torch.complex64), "complex"),
    (np.zeros((0, 3)), r"\(0, 3\)"),
    (np.zeros((3, 0)), r"\(3, 0\)"),
    ([], "at least one point"),
    (np.array([["a", "b"]]), "dtype <U1"),
    (np.array([[1j]]), "dtype complex128"),
    (np.array([[{}]]), "dtype object"),
    (pd.DataFrame({"x": [1.0], "name": ["a"]}), "label="),
    ([[1.0, 2.0], [3.0]], "do not form an array"),
    (np.ma.masked_array(good, mask=[[True, False], [False, False], [False, False]]), "masked"),
    (holes, r"first \(nan\) in row 31,207, feature 1"),
    (np.array([[0.0, -inf]], np.float32), r"first \(-inf\) in row 0, feature 1"),
    (np.zeros((3, 3)), "'b' has 2 features but dataset 'a' has 3"),
]


@pytest.mark.parametrize(("source", "said"), REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_refused_with_one_line(source, said):
    with pytest.raises(sotdd.SotddError, match=said) as caught:
        sotdd.distance(source, good)
    assert "\n" not in str(caught.value)


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
@settings(max_examples=200)
def test_odd_input_is_a_dataset_or_refused(source):
    """Nothing but a dataset or a SotddError comes out, whatever goes in."""
    try:
        data = LabelledData.of(source)
    except sotdd.SotddError:
        return
    assert data.n_points >= 1
    assert data.n_features >= 1
    assert int(data.counts.sum()) == data.n_points
