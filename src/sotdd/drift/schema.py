"""What changed in a table apart from how its values are distributed: its columns, and rows that are there twice.

Everything is a remark, made of names and numbers. What may happen by chance in few rows, such as a rare value that does
not occur, is no change: it is said only if its chance is below one in a thousand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

from sotdd.basics.remarks import Remark, Remarks
from sotdd.inputs.data import KINDS, ColumnKind, LabelledData, LeftOut, remark_retyped
from sotdd.measure.columns import Column

# How often chance alone makes one of these findings, at most.
_CHANCE = 0.001
# With fewer rows, columns that were left out say nothing by being constant or empty.
_FEWEST = 10
# Dates moved if more than this share of their range is outside of that of the reference.
_OUTSIDE = 0.5

Hashes = NDArray[np.uint64]
# Which numbers are mixed into a hash, and which one stands for a gap.
_ODD, _GAP = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)


def compare_schema(reference: LabelledData, batch: LabelledData, columns: Sequence[Column]) -> Remarks:
    """What changed from a reference to a batch that was opened alike; ``columns`` are those of both, pooled.

    Examples
    --------
    >>> import numpy as np, pyarrow, sotdd
    >>> from sotdd.inputs.agreement import match_columns
    >>> from sotdd.measure.columns import pool_columns
    >>> rng = np.random.default_rng(0)
    >>> ages, rooms = rng.normal(40, 9, 500), rng.integers(1, 5, 500)
    >>> reference = sotdd.open_dataset(pyarrow.table({"age": ages, "rooms": rooms}), label=None)
    >>> batch = sotdd.open_dataset(pyarrow.table({"age": ages[:90] + 1, "rooms": [7] * 90}), label=None)
    >>> compare_schema(reference, batch, pool_columns(match_columns([reference, batch])))
    (Remark: column 'rooms' has become constant: every value is '7',)
    """
    known, own = reference.schema, batch.schema
    found = [*_compare_values(columns), *_compare_rows(columns, with_groups=batch.groups is not None)]
    emptied = [column.name for column in columns if _is_emptied(column, len(columns))]
    if known is None or own is None:
        return tuple(found)
    extra = tuple(name for name in own.names if name not in known.names)
    dropped = tuple(name for name in (*known.left_out, *filter(None, [known.label])) if name not in own.names)
    emptied += [column for column, before in known.left_out.items() if batch.n_points >= _FEWEST
                and column in own.left_out and own.left_out[column].why == "empty" != before.why]  # fmt: skip
    names = [("extra columns", extra), ("dropped columns", dropped), ("emptied columns", tuple(emptied))]
    left_out = [(column, before, own.left_out[column]) for column, before in known.left_out.items()
                if column in own.left_out]  # fmt: skip
    return (
        *(Remark(kind, columns=some) for kind, some in names if some),
        *(remark_retyped(one.name, KINDS[known.kinds[one.name]], LeftOut("numbers")) for one in columns
          if _holds_numbers(one, known.kinds.get(one.name))),
        *found,
        *(remark for one in left_out for remark in _compare_left_out(*one, batch.n_points)),
    )  # fmt: skip


def _holds_numbers(column: Column, before: ColumnKind | None) -> bool:
    """Whether a column of categories or truth values holds numbers now: none of its values was there before."""
    if before in (None, "number"):
        return False
    values = column.numbers if column.is_number else column.codes
    first, second = (
        set(side[known].tolist()) for side, known in zip(column.split(values), column.split(column.known), strict=True)
    )
    if column.is_number:
        return not second <= {0.0, 1.0}
    return bool(second) and not first & second and all(_is_number(column.values[code]) for code in second)


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _compare_values(columns: Sequence[Column]) -> Iterator[Remark]:
    """Columns that lost all values but one, or have new ones."""
    for column in columns:
        if column.kind == "label":
            continue
        values = column.numbers if column.is_number else column.codes
        before, now = (
            side[known] for side, known in zip(column.split(values), column.split(column.known), strict=True)
        )
        distinct = np.unique(now)
        new = [] if column.is_number else sorted({*distinct.tolist()} - {*before.tolist()})
        if new and len(new) < len(distinct):
            named = tuple(f"{column.name}={column.values[value]}" for value in new)
            yield Remark("new values", owner="the reference", values=named)
        if len(distinct) == 1 and len(np.unique(before)) > 1:
            value, often = distinct[0], int(np.count_nonzero(before == distinct[0]))
            if _is_rare(often, len(before), len(now) - 1, len(columns)):
                text = f"{float(value):.6g}" if column.is_number else column.values[int(value)]
                yield Remark("constant column", column=column.name, value=text)


def _is_emptied(column: Column, tests: int) -> bool:
    """Whether a column lost all of its values."""
    before, now = column.split(column.known)
    return not now.any() and before.any() and _is_rare(int(np.count_nonzero(~before)), len(before), len(now), tests)


def _is_rare(count: int, n_points: int, times: int, tests: int) -> bool:
    """Whether what ``count`` of some points have is hardly ever had by this many others in a row."""
    return bool(((count + 1) / (n_points + 1)) ** times <= _CHANCE / tests)


def _compare_left_out(column: str, before: LeftOut, now: LeftOut, n_points: int) -> Iterator[Remark]:
    """A column that is no feature: what it holds, whether it is constant, and where dates lie."""
    if now.why != "empty" and (before.why == "empty" or (before.why == "date") != (now.why == "date")):
        yield remark_retyped(column, before.why, now)
    elif now.constant is not None and before.constant is None and n_points >= _FEWEST:
        yield Remark("constant column", column=column, value=now.constant)
    if before.first is not None and now.first is not None and _lie_outside(before, now):
        yield Remark("dates moved", column=column, before=(before.first, before.last), after=(now.first, now.last))


def _lie_outside(before: LeftOut, now: LeftOut) -> bool:
    """Whether most of a range of dates is outside of another."""
    (low, high), (first, last) = (
        [int(np.datetime64(end, "us").astype(np.int64)) for end in (one.first, one.last)] for one in (before, now)
    )
    if first == last:
        return not low <= first <= high
    return min(high, last) - max(low, first) < (1 - _OUTSIDE) * (last - first)


# ------------------------------------------------------------------ rows


def _compare_rows(columns: Sequence[Column], *, with_groups: bool) -> Iterator[Remark]:
    """Rows that repeat others more often than in the reference, and rows that stand in the reference too."""
    if not columns:
        return
    (known, before), (own, counts) = (
        np.unique(side, return_counts=True) for side in columns[0].split(_hash_rows(columns))
    )
    n, m = int(before.sum()), int(counts.sum())
    size, repeats = min(n, m), n - len(before)
    expected = _count_repeats(before, size) + _add_doubt(repeats) * size / n
    if not with_groups and _are_more(_count_repeats(counts, size), size, expected / size):
        yield Remark("more rows repeat", repeated=m - len(counts), rows=m, before=repeats, before_rows=n)
    found, alike = int(counts[np.isin(own, known)].sum()), int(before[before > 1].sum())
    if _are_more(found, m, (alike + _add_doubt(alike)) / n):
        yield Remark("rows of reference", found=found, rows=m)


def _count_repeats(counts: NDArray[np.int64], size: int) -> float:
    """How many of this many rows are equal to an earlier one on average, where these are chosen of all rows."""
    return float(size - np.sum(1 - (1 - size / counts.sum()) ** counts))


def _add_doubt(count: int) -> float:
    """How much larger a count may be in truth: three standard deviations of a count of pairs, or three for none."""
    return 3 * float(np.sqrt(2 * count)) + 3


def _are_more(found: float, of: int, share: float) -> bool:
    """Whether so many rows are more than chance makes of this share of them; a single one never is."""
    return found >= 2 and bool(bdtrc(int(found) - 1, of, min(share, 1.0)) <= _CHANCE)


def _hash_rows(columns: Sequence[Column]) -> Hashes:
    """A number (N,) for each row, the same for rows that are equal in all columns, as far as float32 tells."""
    hashes = np.full(len(columns[0].known), _ODD)
    for column in columns:
        with np.errstate(over="ignore"):
            values = (
                column.numbers.astype(np.float32) + 0 if column.is_number else column.codes
            )  # there is no minus zero
        bits = values.view(np.uint32).astype(np.uint64) if column.is_number else values.astype(np.uint64)
        mixed = (hashes ^ np.where(column.known, bits, _GAP)) * _ODD
        hashes = mixed ^ (mixed >> np.uint64(29))
    return hashes
