"""Counts of values in bins: of the values alone, and quantiles from them within a bin."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sotdd.sketches.quantiles import BINS, Histograms, Levels, find_quantiles


def doublings(values):
    """What the values cover: the unit on either side of zero, and then every doubling, count one each."""
    sizes = np.abs(values.astype(np.float64))
    exponents = np.floor(np.log2(np.maximum(sizes, 1.0)))
    return float(np.ptp(np.sign(values) * np.where(sizes <= 1, sizes, exponents + sizes / 2**exponents)))


@settings(max_examples=100)
@given(
    st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=1, max_size=300),
    st.lists(st.integers(0, 300), max_size=3),
    st.randoms(use_true_random=False),
)
def test_counts_depend_on_the_values_alone(values, cuts, random):
    whole = Histograms.empty(1)
    whole.count(slice(0, 1), np.array([values], np.float32), 0, len(values))
    shuffled = values.copy()
    random.shuffle(shuffled)
    parts = []
    for a, b in itertools.pairwise([0, *sorted(cuts), 300]):
        part = Histograms.empty(1)
        row = np.array([shuffled[a:b]], np.float32).reshape(1, -1)
        assert part.count(slice(0, 1), row, 0, row.shape[1]) == -1
        parts.append(part)
    random.shuffle(parts)
    merged = Histograms.empty(1)
    for part in parts:
        merged += part
    np.testing.assert_array_equal(merged.counts, whole.counts)
    assert merged.low == whole.low == np.float32(min(values))
    assert merged.high == whole.high == np.float32(max(values))
    assert whole.counts.sum() == len(values)


@settings(max_examples=60)
@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=300), st.floats(-3, 3), st.floats(-5, 5))
def test_quantiles_of_counts_are_within_a_bin_of_the_sorted_values(values, weight, shift):
    row = np.array([values], np.float32)
    counted = Histograms.empty(1)
    counted.count(slice(0, 1), row, 0, row.shape[1])
    (found,), (lost,) = find_quantiles(
        [counted], slice(0, 1), np.array([weight]), np.array([[shift]]), Levels(16, smooth=False)
    )
    parts = np.repeat(np.sort(weight * row[0].astype(np.float64) + shift), 16).reshape(16, -1)
    exact = parts.mean(axis=1)
    # Bins are as wide as a doubling or the unit is long, by a power of two: at most 2.5 / 1,024 of all that they cover.
    longest = np.maximum(1.0, np.abs(np.repeat(np.sort(np.sign(weight) * row[0]), 16)).reshape(16, -1).max(axis=1))
    reach = abs(weight) * longest * doublings(row[0])
    rounding = 2e-7 * float(np.abs(parts).max()) + 1e-6
    assert (np.abs(found - exact) <= 2.5 * reach / BINS + rounding).all()
    # What is said to be lost is at least what lies between the values and what is kept of them.
    gaps = np.abs(parts - found[:, None])
    assert gaps.mean() <= lost[0] + lost[2] + rounding
    assert np.sqrt(np.mean(gaps**2)) <= lost[1] + lost[2] + rounding


def test_values_that_are_not_finite_are_found():
    rows = np.zeros((3, 5), np.float32)
    rows[1, 2] = np.nan
    assert Histograms.empty(3).count(slice(0, 3), rows, 0, 5) == 1
    rows[1, 2] = np.inf
    assert Histograms.empty(3).count(slice(0, 3), rows, 0, 5) == 1
    assert Histograms.empty(3).count(slice(0, 3), rows, 0, 2) == -1


def test_more_points_than_32_bits_count():
    full = Histograms.empty(1)
    full.counts[0, 0] = 2**32 - 10
    full.low[0] = full.high[0] = 0.0
    full.expect(20)
    assert full.count(slice(0, 1), np.zeros((1, 20), np.float32), 0, 20) == -1
    assert full.counts.sum() == 2**32 + 10
