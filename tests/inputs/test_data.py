"""Arrays, labels, bunches and odd objects as datasets: what is taken, and what is refused in one line."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn import datasets as toys

import sotdd
from inputs.helpers import N, frame_of, refusal, same
from inputs.items import pairs
from sotdd import LabelledData, open_dataset
from sotdd.basics.remarks import Remark
from sotdd.inputs import open_pair


def test_dtypes_and_shapes_make_no_difference(rng):
    a, b = rng.integers(0, 2, size=(2, 40, 6))
    expected = sotdd.distance(a.astype(float), b.astype(float), n_projections=64).value
    for dtype in ("u1", "i2", "i8", "f2", "f4", "g", "?", ">f4", ">i2"):
        found = sotdd.distance(a.astype(dtype), b.astype(dtype), n_projections=64)
        assert found.value == pytest.approx(expected, rel=1e-6), dtype
    assert sotdd.distance(a.reshape(40, 3, 2, 1), b.reshape(40, 3, 2, 1), n_projections=64).value == expected
    assert LabelledData.of(a[:, 0]).n_features == 1


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
        [True, False, True, False],
        np.array([b"d", b"c", b"d", b"c"]),
        np.array(["2020", "2021", "2020", "2021"], "datetime64[Y]"),
        [("a", 1), ("b", 2), ("a", 1), ("b", 2)],
        [1, "1", 1, "1"],
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
    order = data.group()
    assert labels[order].tolist() == sorted(labels.tolist())
    assert np.diff(data.offsets).tolist() == data.counts.tolist()


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
    ({"X": good}, "dict"),
    ((good, [0, 1, 2], 3), "tuple of 3"),
    ((None, [0, 1, 2]), "features of dataset 'a' are None"),
    ((good, None), "labels of dataset 'a' are None"),
    ((good, [0, 1]), "2 entries but features have 3 rows"),
    ((good, "abc"), "labels of dataset 'a' are 'abc'"),
    ((good, np.zeros((3, 1))), r"\(3, 1\)"),
    ((good, [Decimal("sNaN"), Decimal("NaN"), complex("nan")]), "no rows with a label"),
    ((good, [([],)] * 3), "tuple in row 0"),
    ((good, sp.eye(3)), "dia_matrix"),
    ((good, torch.zeros(3).to_sparse()), "labels of dataset 'a'"),
    (torch.zeros(3, 2, device="meta"), "torch.float32 on meta"),
    (torch.zeros(3, 2).to_sparse(), "sparse"),
    (torch.zeros(3, 2, dtype=torch.complex64), "complex"),
    (np.zeros((0, 3)), r"\(0, 3\)"),
    ([], "at least one point"),
    (np.array([["a", "b"]]), "dtype <U1"),
    ([[1.0, 2.0], [3.0]], "do not form an array"),
    (np.ma.masked_array(good, mask=[[True, False], [False, False], [False, False]]), "masked"),
    (holes, r"first \(nan\) in row 31,207, feature 1"),
    (np.zeros((3, 3)), "'b' has 2 features but dataset 'a' has 3"),
]


@pytest.mark.parametrize(("source", "said"), REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_refused_with_one_line(source, said):
    with pytest.raises(sotdd.SotddError, match=said) as caught:
        sotdd.distance(source, good)
    assert "\n" not in str(caught.value)


def test_arrays_and_options(xy):
    x, y = xy
    same(open_dataset((x, y), label="auto"), xy)
    assert open_dataset(x).classes == ("all",)
    assert open_dataset((x, y), label=None).classes == ("all",)
    data = open_dataset(xy, name="animals")
    assert open_dataset(data, name="animals") is open_dataset(data) is open_pair(data, xy)[0] is data
    assert open_dataset(data, name="others").name == "others"


def test_what_scikit_learn_loads():
    assert open_dataset(toys.load_iris(return_X_y=True)).counts.tolist() == [50, 50, 50]
    assert "is a Bunch: expected (features, labels)" in refusal(toys.load_iris())
    assert "bins=10" in refusal(toys.load_diabetes(return_X_y=True))
    assert open_dataset(toys.load_diabetes(return_X_y=True), bins=4).counts.min() > 100


def test_encoders_of_rows(xy, folder):
    x, y = xy
    frame_of(xy).to_parquet("t.parquet", row_group_size=70)
    for source in [(x, y), "t.parquet::label=species", pairs(x, y)]:
        same(open_dataset(source, encoder=lambda batch: batch[:, :2] * 3), (x[:, :2] * 3, y))
        same(open_dataset(source, encoder=lambda batch: torch.tensor(batch) + 1), (x + 1, y))
    assert "encoder made a ndarray of shape (3, 4)" in refusal((x, y), encoder=lambda batch: batch[:3])
    assert "encoder failed" in refusal((x, y), encoder=lambda batch: batch @ np.ones(3))


@pytest.mark.parametrize(
    "options",
    [
        {"label": 1.5}, {"features": []}, {"features": "x"}, {"label": "x"}, {"split": "train"},
        {"image_size": (1, 2, 3)}, {"image_size": 0}, {"image_mode": "CMYK"},
        {"image_mode": np.ones(2)}, {"encoder": 3}, {"bins": 0}, {"max_points": 0}, {"max_points": 2.5}, {"seed": -1},
        {"table": "x"},
        {"na_values": "x"}, {"missing": "x"}, {"one_hot": 1}, {"exclude": 5},
        {"separator": ";"},
    ],
    ids=str,
)  # fmt: skip
def test_options_that_mean_nothing(options):
    assert next(iter(options)) in refusal((np.eye(3), [0, 1, 2]), **options)


def test_sizes_and_bins_have_bounds():
    images, points = (np.zeros((4, 3, 3), np.uint8), [1, 2] * 2), (np.zeros((60, 2)), np.arange(60))
    for too_many in (10_001, 10**5000):
        assert "10,000" in refusal(images, image_size=too_many)
        assert "10,000" in refusal(points, bins=too_many)
    assert len(open_dataset(points, bins=10_000).classes) == 60


@given(
    st.one_of(
        st.none(),
        st.integers(),
        st.text().filter(lambda text: text.strip("/.~") != ""),  # ".." would be searched for images
        st.binary(),
        st.dictionaries(st.text(), st.integers()),
        st.lists(st.one_of(st.none(), st.integers(), st.floats(), st.text(), st.lists(st.floats()))),
        st.tuples(st.lists(st.lists(st.floats(), max_size=2), max_size=3), st.lists(st.one_of(st.none(), st.floats()))),
        hnp.arrays(hnp.scalar_dtypes(), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)),
    )
)
@settings(max_examples=200)
def test_odd_input_is_a_dataset_or_refused(source):
    """Nothing but a dataset or a SotddError comes out, whatever goes in."""
    try:
        data = open_dataset(source)
    except sotdd.SotddError:
        return
    assert data.n_points >= 1
    assert data.n_features >= 1
    assert int(data.counts.sum()) == data.n_points


def test_max_points_is_a_seeded_sample(xy, folder):
    x, y = xy
    frame_of(xy).to_parquet("t.parquet")
    frame_of(xy).to_csv("t.csv", index=False)
    np.savez("t.npz", X=x, y=y)
    sources = [(x, y), "t.parquet::label=species", "t.csv::label=species", "t.npz", pairs(x, y),
               torch.utils.data.DataLoader(pairs(x, y), batch_size=32)]  # fmt: skip
    samples = [open_dataset(source, max_points=40, seed=3) for source in sources]
    taken = [np.concatenate([data.rows(block) for block in data.blocks()]) for data in samples]
    place = {tuple(row): number for number, row in enumerate(x)}
    for data, rows in zip(samples, taken, strict=True):
        np.testing.assert_array_equal(rows, taken[0])
        numbers = [place[tuple(row)] for row in rows]
        assert numbers == sorted(set(numbers))
        assert [data.classes[code] for code in data.codes] == y[numbers].tolist()
    assert max(numbers) > 200  # not the head
    other = open_dataset((x, y), max_points=40, seed=4)
    assert not np.array_equal(other.rows(slice(None)), taken[0])
    assert open_dataset((x, y), max_points=10**6).n_points == N
    assert open_dataset((x, np.arange(N)), max_points=5).counts.tolist() == [1] * 5  # without the other classes
    assert open_dataset("t.csv::label=species,max_points=40,seed=3", max_points=9).n_points == 40


def test_regression_targets(xy, folder):
    x, _ = xy
    y = np.random.default_rng(1).gamma(2.0, size=N)
    assert "bins=10" in refusal((x, y))
    opened = open_dataset((x, y), bins=10)
    assert opened.counts.tolist() == [30] * 10
    edges = np.quantile(y, np.linspace(0, 1, 11))
    np.testing.assert_array_equal(opened.codes, np.minimum(np.searchsorted(edges, y, side="right") - 1, 9))
    pd.DataFrame({"x": x[:, 0], "y": y}).to_csv("r.csv", index=False)
    assert open_dataset("r.csv::bins=3").counts.tolist() == [100] * 3
    assert "bins=10" in refusal("r.csv", label="y")
    assert len(open_dataset((x, np.repeat(np.arange(30.0), 10))).classes) == 30  # floats that are classes
    assert len(open_dataset((x, np.zeros(N)), bins=5).classes) == 1
    wide = 1.7e308 * np.linspace(-1, 1, 60)
    assert open_dataset((x[:60], wide), bins=3).counts.tolist() == [20, 20, 20]
    for source, said in ((xy, "bins"), (x, "bins"), ((x[:60], [10**400 + row for row in range(60)]), "float64")):
        assert said in refusal(source, bins=3)


def test_missing_labels(xy, folder):
    x, y = xy
    holes = y.astype(object)
    holes[[3, 70]] = None
    frame = frame_of((x, holes)).rename(columns={"species": "label"})
    frame.to_csv("t.csv", index=False)
    frame.to_parquet("t.parquet", row_group_size=50)
    masked = np.ma.array(y, mask=[place in (3, 70) for place in range(N)])
    for source in [(x, holes), (x, masked), "t.csv", "t.parquet", pairs(x, holes), frame, pl.from_pandas(frame)]:
        assert "2 labels" in refusal(source, missing="error")
        for missing in ("mean", "drop"):
            opened = open_dataset(source, missing=missing)
            same(opened, (np.delete(x, [3, 70], axis=0), np.delete(y, [3, 70])))
            assert opened.remarks[-1] == Remark("labels missing", rows=2)
    dates = np.array(["2020", "NaT", "2021"], "datetime64[Y]")
    for labels in (np.array([np.nan, 2.0, 1.0]), pd.Series(["x", pd.NA, "y"], dtype="string"), dates):
        assert "1 label that is missing" in refusal((x[:3], labels), missing="error")
        assert open_dataset((x[:3], labels)).n_points == 2
    assert "no rows" in refusal((x, [None] * N), missing="drop")


def test_names_of_classes_that_are_documents_are_refused(xy, folder):
    x, labels = xy[0][:60], ["k" * 1001, "b", "c"] * 20
    frame = pd.DataFrame(x, columns=list("abcd")).assign(y=labels)
    frame.to_parquet("long.parquet")
    for source in ((x, labels), (x, np.array(labels)), frame, "long.parquet", pairs(x, labels)):
        assert "1,001" in refusal(source)
    assert open_dataset((x[:4], ["k" * 1000, "b"] * 2)).classes == ("k" * 1000, "b")
