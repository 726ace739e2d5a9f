"""Values that are NaN or infinite, found on all cores and refused in one line."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.text import counted

# Blocks that a thread takes at a time.
_SHARE = 8


def refuse_non_finite_rows(rows: Callable[[slice], NDArray[Any]], blocks: Sequence[slice], name: str) -> None:
    """Refuse points, read block by block, of which some values are NaN or infinite."""

    def unsound_among(several: Sequence[slice]) -> list[slice]:
        return [block for block in several if not np.isfinite(rows(block)).all()]

    shares = [blocks[start : start + _SHARE] for start in range(0, len(blocks), _SHARE)]
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        unsound = [block for found in threads.map(unsound_among, shares) for block in found]
    if not unsound:
        return
    count, first = 0, unsound[0]
    for block in unsound:
        count += int(np.count_nonzero(~np.isfinite(rows(block))))
    part = rows(first)
    row, feature = np.argwhere(~np.isfinite(part))[0]
    raise not_finite(name, count, part[row, feature], first.start + int(row), int(feature))


def not_finite(name: str, count: int, value: object, row: int, feature: int) -> SotddError:
    """The error for values that are NaN or infinite, with where the first of them is."""
    values = counted(count, "value that is", "values that are")
    first = f"the first ({value}) in row {row:,}, feature {feature:,}"
    return SotddError(f"dataset {name!r} has {values} NaN or infinite, {first}: drop or impute them first.")
