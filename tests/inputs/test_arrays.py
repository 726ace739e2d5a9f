"""Arrays, bunches and odd objects: what is taken, and what is refused in one line."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import datasets as toys

import sotdd
from inputs.helpers import Pairs, frame_of, refusal, same
from sotdd import open_dataset


def test_arrays_and_options(xy):
    x, y = xy
    same(open_dataset((x, y)), xy)
    same(open_dataset(open_dataset((x, y))), xy)
    assert open_dataset(x).classes == ("all",)
    assert open_dataset((x, y), label=None).classes == ("all",)
    assert open_dataset((x, y), name="animals").name == "animals"


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
    with pytest.raises(sotdd.SotddError, match="expected one row of numbers per row"):
        open_dataset((x, y), transform=lambda batch: batch[:3])
    with pytest.raises(sotdd.SotddError, match="transform failed on a batch"):
        open_dataset((x, y), transform=lambda batch: batch @ np.ones(3))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"label": 1.5}, "label is 1.5"),
        ({"features": []}, "features is a list"),
        ({"features": "x"}, "leave it out"),
        ({"label": "x"}, "leave it out"),
        ({"split": "train"}, "leave it out"),
        ({"split": np.ones(3)}, "split is a ndarray: expected the name of a split"),
        ({"broken": "skip"}, "leave it out"),
        ({"broken": "mend"}, "broken is 'mend'"),
        ({"image_size": (1, 2, 3)}, "image_size is a tuple"),
        ({"image_size": 0}, "image_size is 0"),
        ({"image_mode": "CMYK"}, "image_mode is 'CMYK'"),
        ({"transform": 3}, "transform is 3"),
        ({"bins": 0}, "bins is 0"),
        ({"max_points": 0}, "max_points is 0"),
        ({"max_points": 2.5}, "max_points is 2.5"),
        ({"seed": -1}, "seed is -1"),
        ({"drop_missing": "yes"}, "drop_missing is 'yes'"),
        ({"encoder_name": "x"}, "no encoder"),
    ],
)
def test_options_that_mean_nothing(options, said):
    assert said in refusal((np.eye(3), [0, 1, 2]), **options)


def test_a_transform_need_not_be_comparable():
    class Doubled:
        def __call__(self, rows):
            return 2 * rows

        def __ne__(self, other):
            raise TypeError("no truth to that")

        __eq__ = __ne__
        __hash__ = object.__hash__

    opened = open_dataset(np.eye(3), transform=Doubled())
    assert (opened.rows(slice(None)) == 2 * np.eye(3)).all()


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
