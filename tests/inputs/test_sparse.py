"""Sparse matrices as features: the same points as the dense array, and never that array."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

import sotdd
from inputs.helpers import refusal
from sotdd.inputs.features import SparseRows


@pytest.fixture
def counts(rng):
    """Word counts: small integers, most of them zero; a row and a column of zeros."""
    x = rng.poisson(0.2, size=(40, 30)) * rng.integers(1, 9, size=(40, 30))
    x[7] = x[:, 4] = 0
    return x


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dok", "lil", "dia"])
@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, bool])
def test_every_format_reads_as_its_array(counts, kind, dtype):
    dense = counts.astype(dtype)
    data = sotdd.open_dataset((sp.csr_array(dense).asformat(kind), np.arange(40) % 3))
    assert isinstance(data.features, SparseRows)
    assert (data.features.dtype, data.features.shape) == (dtype, (40, 30))
    np.testing.assert_array_equal(np.concatenate([data.rows(block) for block in data.blocks()]), dense)
    for rows in (slice(None), slice(3, 31, 4), np.array([39, 0, 7, 7, 12]), slice(0, 0)):
        np.testing.assert_array_equal(data.features[rows], dense[rows])


def test_rows_are_not_copied_and_the_matrix_stays_as_it_is(counts):
    old = sp.csr_matrix(counts)
    wide = sp.csr_array((old.data, old.indices.astype(np.int64), old.indptr.astype(np.int64)), counts.shape)
    for source, expected in ((old, counts), (wide, counts), (sp.coo_array([0.0, 3.0, 0.0]), [[0], [3], [0]])):
        np.testing.assert_array_equal(sotdd.open_dataset(source).features[:], expected)
    matrix = sp.csr_array(counts.astype(float))
    assert sotdd.open_dataset(matrix).features.matrix.data is matrix.data
    # Columns in any order, and one of them twice: its values add up.
    odd = sp.csr_array((np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3, 3])), shape=(2, 3))
    np.testing.assert_array_equal(sotdd.open_dataset(odd).features[:], [[2, 0, 5], [0, 0, 0]])
    assert (odd.data.tolist(), odd.indices.tolist()) == ([1, 2, 4], [2, 0, 2])


def test_samples_and_rows_without_labels_stay_sparse(counts):
    labels = np.array(["a", None, "b", "a"] * 10, object)
    for how in ({}, {"max_points": 9, "seed": 2}):
        data = sotdd.open_dataset((sp.csr_array(counts), labels), missing="drop", **how)
        dense = sotdd.open_dataset((counts, labels), missing="drop", **how)
        for found, expected in ((data, dense.features), (data.take(np.array([5, 2])), dense.features[[5, 2]])):
            assert isinstance(found.features, SparseRows)
            np.testing.assert_array_equal(found.features[:], expected)
    turned = sotdd.open_dataset(sp.csr_array(counts), encoder=lambda batch: batch[:, :3] * 2)
    np.testing.assert_array_equal(turned.features, counts[:, :3] * 2)  # which sees dense batches


def broken(**parts):
    """A CSR matrix that SciPy lets pass, with other parts than it should have."""
    matrix = sp.csr_array(np.eye(3))
    for name, values in parts.items():
        setattr(matrix, name, np.array(values))
    return matrix


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (sp.csr_array((0, 5)), "(0, 5)"),
        (sp.csr_array(np.eye(3) * 1j), "complex128"),
        (sp.csr_array(np.array([[0, 1], [np.nan, np.inf]])), "first (nan) in row 1, feature 0"),
        (broken(indices=[0, 1, 3]), "indices"),
        (broken(indices=[0, -1, 2]), "indices"),
        (broken(indptr=[0, 3, 1, 3]), "indptr"),
        (broken(data=[1.0, 2.0]), "indices"),
        (SimpleNamespace(shape=(3, 3), tocsr=list), "scipy.sparse"),  # of another library
    ],
)
def test_what_is_refused(source, said):
    assert said in refusal(source)
