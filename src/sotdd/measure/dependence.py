"""Whether rows look as if they depended on each other: then permutations of single rows promise too much."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sotdd.basics.remarks import Remark, Remarks
from sotdd.inputs.data import LabelledData
from sotdd.measure.columns import rank_columns
from sotdd.measure.statistics import centre_rows

# The first rows that are checked, and values in all.
_ROWS, _VALUES = 5000, 1 << 18

# Rows repeat if this share of them do, and a single column tells this share of the others apart. Where columns have few
# values, rows are equal by chance.
_REPEATED, _TOLD_APART = 0.02, 0.9

# With fewer groups in a dataset, a permutation has hardly any choice.
_FEW_GROUPS = 10

# Where more rows than this share have one value, a few others beside each other say nothing.
_MOST_EQUAL = 0.95

# The level at which neighbours are called alike, over all columns.
_LEVEL = 0.001


def remark_on_rows(data: LabelledData) -> Remarks:
    """Remarks on rows that repeat, and on neighbours that are alike; where groups are known, that they are few.

    Examples
    --------
    >>> import numpy as np
    >>> walk = np.random.default_rng(0).normal(size=(300, 2)).cumsum(axis=0)
    >>> [remark.kind for remark in remark_on_rows(LabelledData.of(walk))]
    ['neighbours alike']
    """
    if data.groups is not None:
        groups = len(np.unique(data.groups))
        return (Remark("few groups", groups=groups),) if groups < _FEW_GROUPS else ()
    columns = np.unique(np.linspace(0, data.n_features - 1, min(data.n_features, 256)).astype(int))
    rows = min(data.n_points, _ROWS, max(_VALUES // data.n_features, 64))
    table = data.rows(slice(0, rows))[:, columns]
    different = len(np.unique(table, axis=0)) if len(columns) > 1 else rows
    told_apart, repeated = max(len(np.unique(column)) for column in table.T), rows - different
    if repeated >= max(2, _REPEATED * rows) and told_apart >= max(3, _TOLD_APART * different):
        return (Remark("rows repeat", repeated=repeated, rows=rows),)
    return _remark_on_neighbours(table, columns, data)


def _remark_on_neighbours(table: NDArray[Any], columns: NDArray[np.int64], data: LabelledData) -> Remarks:
    """By ranks less their mean in the class, since rows are often sorted by class; not of what they are sorted by."""
    codes = data.codes[: len(table)]
    ranked, order = centre_rows(rank_columns(table).T, codes).T, np.argsort(codes, kind="stable")
    steps = np.diff(table[order], axis=0)[np.diff(codes[order]) == 0]
    is_sorted = (steps >= 0).all(axis=0) | (steps <= 0).all(axis=0)
    rare = [np.unique(column, return_counts=True)[1].max() > _MOST_EQUAL * len(column) for column in table.T]
    squares = np.where(rare, 0.0, np.sum(ranked**2, axis=0))
    products = np.sum(ranked[1:] * ranked[:-1], axis=0)
    correlations = np.divide(products, squares, out=np.zeros(len(columns)), where=(squares > 0) & ~is_sorted)
    most = int(np.argmax(correlations))
    if correlations[most] * np.sqrt(len(table)) < -ndtri(_LEVEL / len(columns)):
        return ()
    place = int(columns[most])
    name = f"feature {place}" if data.columns is None else data.columns[place]
    return (Remark("neighbours alike", column=name, correlation=float(correlations[most])),)
