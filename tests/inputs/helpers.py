"""What several tests of inputs share: a small dataset in many forms, and what refusals say."""

import io

import numpy as np
import pandas as pd
import pytest

import sotdd
from sotdd import LabelledData, open_dataset

N, D = 300, 4


def frame_of(xy):
    x, y = xy
    return pd.DataFrame({**{f"x{j}": x[:, j] for j in range(D)}, "species": y})


def same(opened, xy):
    """The dataset is the pair that went in: every number, every label."""
    x, y = xy
    assert isinstance(opened, LabelledData)
    np.testing.assert_array_equal(
        np.concatenate([opened.rows(block) for block in opened.blocks()]), x.reshape(len(x), -1)
    )
    assert [opened.classes[code] for code in opened.codes] == list(y)


def read(*arguments, **options):
    """Open a source and read all of it."""
    data = open_dataset(*arguments, **options)
    for block in data.blocks():
        data.rows(block)
    return data


def refusal(*arguments, **options):
    """What is said, which is one line."""
    with pytest.raises(sotdd.SotddError) as caught:
        read(*arguments, **options)
    said = str(caught.value)
    assert "\n" not in said
    return said


def npy_bytes(shape, dtype="<f8", data=b"", fortran_order=False):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": fortran_order, "shape": shape})
    return file.getvalue() + data
