"""Exact transport on the line."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from sotdd.compute.kernels.rows import Overlaps, transport_rows

sizes = st.integers(1, 60)


@given(n=sizes, m=sizes)
@settings(max_examples=100)
def test_overlaps_are_exact(n, m):
    """Every overlap is found, none twice, and together they cover the unit interval."""
    found = Overlaps.of(n, m)
    expected = []
    for i in range(n):
        for j in range(m):
            width = min(Fraction(i + 1, n), Fraction(j + 1, m)) - max(Fraction(i, n), Fraction(j, m))
            if width > 0:
                expected.append((i, j, float(width)))
    assert list(zip(found.left, found.right, strict=True)) == [(i, j) for i, j, _ in expected]
    np.testing.assert_allclose(found.width, [width for _, _, width in expected], rtol=1e-15)


def test_overlaps_of_large_coprime_sizes():
    """Where float comparisons of i/n with j/m would go wrong."""
    n, m = 1_000_003, 999_983
    found = Overlaps.of(n, m)
    assert len(found.width) == n + m - 1
    assert found.width.min() > 0
    assert found.width.sum() == pytest.approx(1, abs=1e-12)
    assert (found.left[-1], found.right[-1]) == (n - 1, m - 1)


@given(
    a=st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=30),
    b=st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=30),
    p=st.sampled_from([1, 1.25, 2, 3, 7]),
)
@settings(max_examples=100)
def test_against_repeated_points(a, b, p):
    rows = [np.sort(np.float32([values])) for values in (a, b)]
    overlaps = None if len(a) == len(b) else Overlaps.of(len(a), len(b))
    found = transport_rows(*rows, float(p), overlaps)[0]
    assert found == pytest.approx(reference.wasserstein(np.float32(a), np.float32(b), p), rel=1e-9, abs=1e-12)
