"""The way in: arrays, bunches and odd objects, and the options that go with them."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import datasets as toys

import sotdd
from inputs.helpers import Pairs, frame_of, refusal, same
from sotdd import LabelledData, open_dataset
from sotdd.inputs import labelled_pair


def test_arrays_and_options(xy):
    x, y = xy
    same(open_dataset((x, y), label="auto"), xy)
    assert open_dataset(x).classes == ("all",)
    assert open_dataset((x, y), label=None).classes == ("all",)
    data = open_dataset(xy, name="animals")
    assert open_dataset(data, name="animals") is open_dataset(data) is labelled_pair(data, xy)[0] is data
    assert open_dataset(data, name="others").name == "others"


class OnlyDLPack:
    """An array that shares its memory and offers nothing else."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def test_dlpack_without_array(xy):
    x, y = xy
    opened = open_dataset((OnlyDLPack(x), y))
    same(opened, xy)
    assert np.shares_memory(opened.features, x)


def test_bunches():
    digits = toys.load_iris()
    same(open_dataset(digits), (digits.data, digits.target_names[digits.target]))
    framed = toys.load_iris(as_frame=True)
    assert open_dataset(framed).classes == ("setosa", "versicolor", "virginica")
    with pytest.raises(sotdd.SotddError, match="bins=10"):
        open_dataset(toys.load_diabetes())
    assert open_dataset(toys.load_diabetes(), bins=4).counts.min() > 100


def test_transforms(xy, folder):
    x, y = xy
    frame_of(xy).to_parquet("t.parquet", row_group_size=70)
    for source in [(x, y), "t.parquet::label=species", Pairs(x, y)]:
        same(open_dataset(source, transform=lambda batch: batch[:, :2] * 3), (x[:, :2] * 3, y))
        same(open_dataset(source, transform=lambda batch: torch.tensor(batch) + 1), (x + 1, y))
    assert "transform made shape (3, 4)" in refusal((x, y), transform=lambda batch: batch[:3])
    assert "transform failed" in refusal((x, y), transform=lambda batch: batch @ np.ones(3))


@pytest.mark.parametrize(
    "options",
    [
        {"label": 1.5}, {"features": []}, {"features": "x"}, {"label": "x"}, {"split": "train"}, {"split": np.ones(3)},
        {"broken": "skip"}, {"broken": "mend"}, {"image_size": (1, 2, 3)}, {"image_size": 0}, {"image_mode": "CMYK"},
        {"image_mode": np.ones(2)}, {"transform": 3}, {"bins": 0}, {"max_points": 0}, {"max_points": 2.5}, {"seed": -1},
        {"drop_missing": "yes"}, {"encoder_name": "x"}, {"missing": "x"}, {"one_hot": 1}, {"dates": 3}, {"exclude": 5},
        {"separator": ";"},
    ],
    ids=str,
)  # fmt: skip
def test_options_that_mean_nothing(options):
    assert next(iter(options)) in refusal((np.eye(3), [0, 1, 2]), **options)


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (np.arange(30) + 0.5, "bins=10"),
        (np.where(np.arange(30) == 4, np.nan, 1.0), "1 label that is missing"),
        (np.arange(29), "29 entries but features have 30 rows"),
    ],
)
def test_arrays_are_checked_the_same_way_wherever_they_come_in(labels, said):
    pair = np.zeros((30, 2)), labels
    with pytest.raises(sotdd.SotddError) as caught:
        LabelledData.of(pair)
    messages = {refusal(pair), refusal(pair, max_points=30), str(caught.value)}  # the second by way of a loader
    assert len(messages) == 1
    assert said in messages.pop()


def test_importing_parquet_batches_loads_no_optional_library():
    code = (
        "import sys; from sotdd.inputs import ParquetBatches; print({'pyarrow', 'torch', 'pandas'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# Folders by a lucky guess are left out: ".." would be searched for images.
TEXTS = st.text().filter(lambda text: text.strip("/.~") != "")


@given(st.one_of(TEXTS, st.binary(), st.lists(st.text()), st.dictionaries(st.text(), st.integers()), st.none()))
@settings(max_examples=200)
def test_odd_objects_are_a_dataset_or_refused(thing):
    try:
        data = open_dataset(thing)
    except sotdd.SotddError:
        return
    assert data.n_points >= 1
