"""What changed in a table apart from how its values are distributed: its columns, and rows that are there twice.

Everything is a remark, made of names and numbers. What may happen by chance in few rows, such as a rare value that does
not occur, is no change: it is reported only if its probability is below one in a thousand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.remarks import Remark, Remarks
from sotdd.inputs.data import LabelledData
from sotdd.inputs.schema import KINDS, Feature, LeftOut, remark_retyped
from sotdd.measure.columns import Column, number_rows
from sotdd.measure.relations import CHANCE, add_doubt, count_common, tail_of_count

# With fewer rows, columns that were left out say nothing by being constant or empty.
_FEWEST = 10
# Dates moved if more than this share of their range is outside of that of the reference.
_OUTSIDE = 0.5


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
    found = (*_compare_values(columns), *_compare_rows(columns, with_groups=batch.groups is not None))
    if known is None or own is None:
        return found
    held = {name: LeftOut("numbers" if kind == "number" else "categories") for name, kind in own.kinds.items()}
    held |= own.left_out
    left_out = [(name, left, held[name]) for name, left in known.left_out.items() if name in held]
    emptied = []  # columns that lost all of their values
    for column in columns:
        before, now = column.split(column.known)
        gaps = int(np.count_nonzero(~before))
        if not now.any() and before.any() and _is_rare(gaps, len(before), len(now), len(columns)):
            emptied.append(column.name)
    emptied += [
        name for name, before, now in left_out if now.why == "empty" != before.why and batch.n_points >= _FEWEST
    ]
    dropped = [name for name in (*known.left_out, *filter(None, [known.label])) if name not in own.names]
    extra = [name for name in own.names if name not in known.names]
    names = {"extra columns": extra, "dropped columns": dropped, "emptied columns": emptied}
    return (
        *(Remark(kind, columns=tuple(some)) for kind, some in names.items() if some),
        *(remark_retyped(one.name, KINDS[known.kinds[one.name]], LeftOut("numbers")) for one in columns
          if known.kinds.get(one.name, "number") != "number" and _holds_numbers(one)),
        *found,
        *(remark for one in left_out for remark in _compare_left_out(*one, batch.n_points)),
    )  # fmt: skip


def _holds_numbers(column: Column) -> bool:
    """Whether a column of categories or truth values holds numbers now: none of its values was there before."""
    before, now = (set(side.tolist()) for side in column.sides)
    if column.is_number:
        return not now <= {0.0, 1.0}
    try:
        return bool(now) and not before & now and bool(np.isfinite([float(column.texts[code]) for code in now]).all())
    except ValueError:
        return False


def _compare_values(columns: Sequence[Column]) -> Iterator[Remark]:
    """Columns that lost all values but one, or have new ones."""
    for column in columns:
        if column.kind == "label":
            continue
        before, now = column.sides
        distinct = np.unique(now)
        new = [] if column.is_number else sorted({*distinct.tolist()} - {*before.tolist()})
        if new and len(new) < len(distinct):
            named = tuple(Feature(column.name, "value", column.texts[value]).name for value in new)
            yield Remark("new values", owner="the reference", values=named)
        if len(distinct) == 1 and len(np.unique(before)) > 1:
            value, often = distinct[0], int(np.count_nonzero(before == distinct[0]))
            if _is_rare(often, len(before), len(now) - 1, len(columns)):
                text = f"{float(value):.6g}" if column.is_number else column.texts[int(value)]
                yield Remark("constant column", column=column.name, value=text)


def _is_rare(count: int, n_points: int, times: int, tests: int) -> bool:
    """Whether what ``count`` of some points have is hardly ever had by this many others in a row."""
    return bool(((count + 1) / (n_points + 1)) ** times <= CHANCE / tests)


def _compare_left_out(column: str, before: LeftOut, now: LeftOut, n_points: int) -> Iterator[Remark]:
    """A column that is no feature: what it holds, whether it is constant, and where dates lie."""
    if now.why != "empty" and (before.why == "empty" or (before.why == "date") != (now.why == "date")):
        yield remark_retyped(column, before.why, now)
    elif now.constant is not None and before.constant is None and n_points >= _FEWEST:
        yield Remark("constant column", column=column, value=now.constant)
    if before.first is None or now.first is None:
        return
    (low, high), (first, last) = (
        [int(np.datetime64(end, "us").astype(np.int64)) for end in (one.first, one.last)] for one in (before, now)
    )
    inside = min(high, last) - max(low, first)
    if inside < 0 or inside < (1 - _OUTSIDE) * (last - first):
        yield Remark("dates moved", column=column, before=(before.first, before.last), after=(now.first, now.last))


# ------------------------------------------------------------------ rows


def _compare_rows(columns: Sequence[Column], *, with_groups: bool) -> Iterator[Remark]:
    """Rows that repeat others more often than in the reference, and rows that stand in the reference too.

    Rows are equal if they are equal in all columns, as far as float32 tells.
    """
    if not columns:
        return
    codes = number_rows(columns)
    first, second = columns[0].split(codes)
    before, now = (np.bincount(side, minlength=codes.max() + 1) for side in (first, second))
    n, m = int(before.sum()), int(now.sum())
    size, repeats = min(n, m), n - int(np.count_nonzero(before))
    expected = _count_repeats(before, size) + add_doubt(repeats) * size / n
    more = tail_of_count(_count_repeats(now, size), size, expected / size)
    if not with_groups and more <= CHANCE:
        yield Remark("more rows repeat", repeated=m - int(np.count_nonzero(now)), rows=m, before=repeats, before_rows=n)
    found, _, p_value = count_common(first, second)
    if p_value <= CHANCE:
        yield Remark("rows of reference", found=found, rows=m)


def _count_repeats(counts: NDArray[np.int64], size: int) -> float:
    """How many of this many rows are equal to an earlier one on average, where these are chosen of all rows."""
    return float(size - np.sum(1 - (1 - size / counts.sum()) ** counts))
