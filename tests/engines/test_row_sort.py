"""Rows have the same bits however they are sorted; how depends on what this machine does faster."""

import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sotdd.engines.cpu import row_sort
from sotdd.engines.cpu.row_sort import RowSort, timed_limit
from sotdd.kernels.rows import SHORT_ROW, radix_sort_rows
from sotdd.kernels.sorting import sort_by_numpy

ODD = st.sampled_from([0.0, -0.0, 1e-45, -1e-45, np.inf, -np.inf, 1.0, -1.0])
FLOATS = st.floats(width=32, allow_nan=False) | ODD  # NaN is refused before it comes to this
LONG = 1 << 16


@given(hnp.arrays(np.float32, hnp.array_shapes(min_dims=2, max_dims=2, max_side=70), elements=FLOATS))
def test_both_ways_give_the_same_bits(rows):
    by_numpy, by_digits = rows.copy(), rows.copy()
    sort_by_numpy(by_numpy)
    radix_sort_rows(by_digits)
    np.testing.assert_array_equal(by_numpy.view(np.uint32), by_digits.view(np.uint32))


@pytest.mark.parametrize("n", [1024, 5000, 70_001])
def test_both_ways_on_long_rows_with_many_equal_values(rng, n):
    rows = np.round(rng.standard_normal((5, n)), 1).astype(np.float32) * rng.choice([-1, 1], size=(5, n))
    rows = rows.astype(np.float32)
    assert (rows.view(np.uint32) == 1 << 31).any()
    by_numpy, by_digits = rows.copy(), rows.copy()
    sort_by_numpy(by_numpy)
    radix_sort_rows(by_digits)
    np.testing.assert_array_equal(by_numpy.view(np.uint32), by_digits.view(np.uint32))


def sorted_long(sort, rng):
    """Enough rows for a choice to be made."""
    for _ in range(row_sort._ENOUGH // (8 * LONG)):
        rows = rng.standard_normal((8, LONG), np.float32)
        expected = np.sort(rows, axis=1)
        sort(rows)
        np.testing.assert_array_equal(rows, expected)


def kept(folder):
    return sorted(path for path in folder.iterdir() if path.name.startswith("row-sort"))


def test_the_choice_is_made_once_there_is_enough_and_kept(rng, tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(row_sort, "timed_limit", lambda: calls.append(1) or 8192)
    sort = RowSort(tmp_path)
    for n in (500, 1500):
        rows = rng.standard_normal((3, n), np.float32)
        sort(rows)
        assert (np.diff(rows) >= 0).all()
    assert not calls
    assert sort.limit == SHORT_ROW
    sorted_long(sort, rng)
    sorted_long(sort, rng)
    assert len(calls) == 1
    assert sort.limit == 8192
    [place] = kept(tmp_path)
    assert json.loads(place.read_text()) == {"limit": 8192}
    another = RowSort(tmp_path)
    sorted_long(another, rng)
    assert len(calls) == 1
    assert another.limit == 8192


@pytest.mark.parametrize("limit", [SHORT_ROW, 8192, 1 << 62])
def test_the_choice_is_used(rng, limit, monkeypatch):
    used = []
    for name in ("sort_by_numpy", "radix_sort_rows"):
        sort_so = getattr(row_sort, name)
        monkeypatch.setattr(row_sort, name, lambda rows, name=name, sort=sort_so: (used.append(name), sort(rows)))
    sort = RowSort(None)
    sort.limit = limit
    for n in (1024, 2000, 9000):
        rows = rng.standard_normal((2, n), np.float32)
        sort(rows)
        assert used.pop() == ("sort_by_numpy" if n < limit else "radix_sort_rows")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'{"limit": "1024"}',
        b'{"limit": -5}',
        b'{"limit": 1024.0}',
        b"\xff" * 40,
        b"[" * 9999,
    ],
)
def test_a_broken_file_is_timed_again(rng, tmp_path, content):
    first = RowSort(tmp_path)
    sorted_long(first, rng)
    [place] = kept(tmp_path)
    place.write_bytes(content)
    second = RowSort(tmp_path)
    sorted_long(second, rng)
    assert kept(tmp_path) == [place]
    assert json.loads(place.read_text()) == {"limit": second.limit}


@pytest.mark.parametrize("folder", ["missing", "a file", None])
def test_no_folder_to_keep_it_in(rng, tmp_path, folder):
    if folder == "a file":
        (tmp_path / folder).write_text("")
    sort = RowSort(None if folder is None else tmp_path / folder)
    sorted_long(sort, rng)
    assert sort.limit in (SHORT_ROW, *row_sort._LENGTHS, row_sort._NEVER)


def test_what_is_timed_is_a_length_or_never():
    assert timed_limit() in (SHORT_ROW, *row_sort._LENGTHS[1:], row_sort._NEVER)


def test_several_threads_settle_it_once(rng, tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(row_sort, "timed_limit", lambda: calls.append(1) or SHORT_ROW)
    sort = RowSort(tmp_path)
    threads = [threading.Thread(target=sorted_long, args=(sort, np.random.default_rng(k))) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1


_RUN = """
import sys
import numpy as np, sotdd
from sotdd.engines.cpu.row_sort import sort_rows
sort_rows.limit, sort_rows._left = int(sys.argv[1]), 0
rng = np.random.default_rng(0)
x, y = rng.normal(size=(3000, 20)).round(1), rng.integers(5, size=3000)
b = rng.normal(size=(9000, 20)) + 0.2, rng.integers(4, size=9000)
print(sotdd.distance((x, y), b, n_projections=128).value.hex(), sotdd.test((x, y), b, n_permutations=9).p_value)
print(sotdd.sketch((x, y), sotdd.Projections.fit([x]).evenly()).quantiles.tobytes().hex()[::501])
"""


@pytest.mark.slow
def test_results_do_not_depend_on_the_choice():
    runs = [
        subprocess.run([sys.executable, "-c", _RUN, str(limit)], env=os.environ, capture_output=True, check=True).stdout
        for limit in (SHORT_ROW, 1 << 62)
    ]
    assert runs[0]
    assert runs[0] == runs[1]
