"""Whether a generator copied its training rows: exact copies, and rows nearer to the training data than a holdout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import Result, check_count, check_level, check_seed, make_frame
from sotdd.basics.remarks import Remark, Remarks, Verdict
from sotdd.basics.resources import Workers
from sotdd.basics.text import json_number, say_count
from sotdd.compute.resampling import Each, Indices, Plan
from sotdd.inputs import open_all
from sotdd.inputs.data import Dataset, LabelledData, cut_range, gather_side_remarks, refuse_half_labelled, same_features
from sotdd.inputs.reading import TableSettings
from sotdd.inputs.sampling import sample_rows
from sotdd.measure.changes import LEVEL
from sotdd.measure.columns import hash_columns, number_rows, pool_columns
from sotdd.measure.relations import count_common, remark_on_rows
from sotdd.measure.statistics import Bools, Doubles, Floats, reaches
from sotdd.projections.scaler import Scale, Scaler, find_scaler

if TYPE_CHECKING:
    import pandas as pd

# Larger datasets are sampled before nearest rows are looked for.
MOST_POINTS = 50_000

# With fewer rows in any of the datasets, nothing is decided.
_FEWEST = 10

# Rows of either side that are multiplied at a time, and permutations that are counted at a time.
_ROWS, _POOLED, _TOGETHER = 512, 512, 64

# Distances that differ by less than this share of them are equal.
_EQUAL = 1e-9

# Scaled values farther off are brought that near, so that squares stay within float32.
_FARTHEST = 1e12

# Exact copies that are written out as JSON.
_MOST_WRITTEN = 1000


@dataclass(frozen=True, eq=False)
class Copies(Result):
    """Whether synthetic data copy the rows they were trained on.

    Attributes
    ----------
    n_points
        The sizes of the synthetic data, the training data and the holdout, if there is one.
    train_rows
        (n,) for every synthetic row the first training row that it equals, in all columns and the label; -1 for none.
    by_chance
        How many rows would equal training rows by chance: as often as rows of the holdout do, or without a holdout as
        often as training rows repeat each other.
    p_value
        With a holdout, how often training rows and holdout rows that swap places are as far apart: in rows that are
        nearer to one of them, or in exact copies, whichever stands out more. That is exact if both are samples of one
        source and the synthetic rows owe nothing to either. Without, how likely so many exact copies are, at most, if
        the generator draws from the source.
    share
        The share of synthetic rows whose nearest row is of the training data, and not of as many rows of the holdout;
        ties count half. None without a holdout.
    null
        The same for rows that have swapped places.
    nearer
        (n,) for every synthetic row 1 if a training row is nearest, 0 if one of the holdout, 0.5 if both are; NaN where
        that was not looked at.
    n_compared
        How many rows of the training data were searched, and as many of the holdout.
    level
        The level of the verdict.
    remarks
        What a reader should know.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> train, holdout = rng.normal(size=(2, 300, 4))
    >>> near_copies = train[:100] + rng.normal(0, 0.01, size=(100, 4))
    >>> found = sotdd.copies(np.concatenate([near_copies, rng.normal(size=(200, 4))]), train, holdout)
    >>> found.exact, found.verdict.value, round(found.copied, 1)
    (0, 'copied', 0.3)
    """

    n_points: tuple[int, ...]
    train_rows: NDArray[np.int64]
    by_chance: float
    p_value: float
    nearer: Doubles
    share: float | None = None
    null: Doubles | None = None
    n_compared: int = 0
    level: float = LEVEL
    remarks: Remarks = ()

    @property
    def exact(self) -> int:
        """How many synthetic rows equal a training row."""
        return int(np.count_nonzero(self.train_rows >= 0))

    @property
    def copied(self) -> float:
        """About which share of the synthetic rows follow single training rows, exactly or nearly.

        Half of the rows that do not are nearer to the training data. Without a holdout, exact copies beyond chance.
        """
        exact = (self.exact - self.by_chance) / self.n_points[0]
        near = 0.0 if self.share is None else (2 * self.share - 1) * self.n_points[1] / self.n_compared
        return min(1.0, max(0.0, exact, near))

    @property
    def copied_stderr(self) -> float:
        """The standard error of that, by permutations; NaN without a holdout."""
        if self.null is None:
            return math.nan
        return 2 * float(np.std(self.null)) * self.n_points[1] / self.n_compared

    @property
    def verdict(self) -> Verdict:
        """Copied, passed, or undecided where rows are few."""
        if min(self.n_points) < _FEWEST:
            return Verdict.UNDECIDED
        return Verdict.COPIED if self.rejects(self.level) else Verdict.PASSED

    def rejects(self, level: float = LEVEL) -> bool:
        """Whether it is ruled out at this level that nothing was copied."""
        return self.p_value <= check_level(level, such_as=0.05)

    def __repr__(self) -> str:
        """The verdict, exact copies beside chance, and the share of rows that are nearer to the training data."""
        rows = say_count(self.n_points[0], "row")
        said = [f"{self.exact:,} of {rows} equal training rows, by chance about {self.by_chance:.3g}"]
        if self.share is not None and self.null is not None:
            low, high = np.quantile(self.null, (0.05, 0.95))
            said += [f"{self.share:.1%} are nearer to train than to holdout, by chance {low:.1%} to {high:.1%}"]
            if self.verdict is Verdict.COPIED:
                said += [f"about {self.copied:.0%} ± {self.copied_stderr:.0%} follow single training rows"]
        said += [f"p = {self.p_value:.3g}", *map(str, self.remarks)]
        return f"{self.verdict.value}: {'; '.join(said)}"

    def list_rows(self) -> list[dict[str, int]]:
        """The synthetic rows that equal a training row, and which one that is, counted from zero."""
        copies = np.flatnonzero(self.train_rows >= 0)
        return [{"row": row, "train_row": int(self.train_rows[row])} for row in copies.tolist()]

    def to_pandas(self) -> pd.DataFrame:
        """A frame of pandas with a line for every synthetic row: ``train_row`` and ``nearer``, as the attributes."""
        return make_frame({"train_row": self.train_rows, "nearer": self.nearer})

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON values; of very many exact copies, the first thousand."""
        result = {
            "n_points": list(self.n_points),
            "verdict": self.verdict.value,
            "p_value": self.p_value,
            "exact": self.exact,
            "exact_by_chance": self.by_chance,
            "copied": self.copied,
            "copied_stderr": json_number(self.copied_stderr),
            "rows": self.list_rows()[:_MOST_WRITTEN],
        }
        if self.share is not None and self.null is not None:
            low, high = np.quantile(self.null, (0.05, 0.95)).tolist()
            result |= {"share": self.share, "share_by_chance": [low, high], "n_compared": self.n_compared}
            result |= {"n_permutations": len(self.null)}
        return result | ({"remarks": [remark.to_dict() for remark in self.remarks]} if self.remarks else {})


def copies(
    synthetic: Dataset,
    train: Dataset,
    holdout: Dataset | None = None,
    *,
    scale: Scale = "auto",
    n_permutations: int = 999,
    max_points: int | None = MOST_POINTS,
    level: float = LEVEL,
    seed: int = 0,
    **reading: Unpack[TableSettings],
) -> Copies:
    """Say whether synthetic data copy rows of the data that their generator was trained on.

    Rows are equal if they are so in all columns, gaps, categories and the label included, as far as float32 tells.
    Copies with small changes are found with a ``holdout``: rows of the same source that the generator never saw. A
    synthetic row that follows a single training row has its nearest neighbour there; any other row has it in the
    training data or in as many rows of the holdout with the same chance, even if the generator is bad. One that is
    fitted closely to few training rows is a little nearer to them too: see `Copies.copied`.

    Parameters
    ----------
    synthetic, train, holdout
        Datasets, as in `sotdd.distance`; columns are matched by name. Labels are not used to find nearest rows.
    scale
        How features are scaled before nearest rows are looked for, as in `sotdd.distance`: learned from training and
        holdout rows together.
    n_permutations
        How often training and holdout rows swap places; the smallest p-value is 1 / (n_permutations + 1).
    max_points
        Look for the nearest rows of at most this many synthetic rows, among at most this many rows of each of the
        others. Exact copies are looked for in all rows.
    level
        The level of the verdict.
    seed
        Of samples and permutations.
    label, exclude, groups and others
        How tables are read, as in `sotdd.open_dataset`. Rows of one group swap places together.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> train, holdout, honest = np.random.default_rng(0).normal(size=(3, 400, 5))
    >>> sotdd.copies(honest, train, holdout)  # doctest: +NORMALIZE_WHITESPACE
    passed: 0 of 400 rows equal training rows, by chance about 0;
    46.5% are nearer to train than to holdout, by chance 45.5% to 54.2%; p = 0.903
    >>> sotdd.copies(np.concatenate([train[:40], honest]), train)  # doctest: +ELLIPSIS
    copied: 40 of 440 rows equal training rows, by chance about 0; p = ...; only exact copies were looked for: ...
    """
    count, level, seed = check_count(n_permutations, "n_permutations"), check_level(level, 0.05), check_seed(seed)
    most = None if max_points is None else check_count(max_points, "max_points")
    given = {"synthetic": synthetic, "train": train} | ({} if holdout is None else {"holdout": holdout})
    data = open_all(given, **reading)
    same_features(data)
    refuse_half_labelled(data)
    sizes = tuple(part.n_points for part in data)
    codes = np.split(number_rows(pool_columns(data, most=None) or []), np.cumsum(sizes)[:-1])
    train_rows = np.full(max(int(part.max()) for part in codes) + 1, -1)
    train_rows[codes[1][::-1]] = np.arange(sizes[1])[::-1]  # the first of those that are equal
    few = (Remark("few rows", rows=part.n_points).of(part.name) for part in data if part.n_points < _FEWEST)
    # Labels are a column like others here, so that there are none matters to nobody.
    remarks = (*(remark for remark in gather_side_remarks(data) if remark.kind != "no labels"), *few)
    nearer = np.full(sizes[0], np.nan)
    found = Copies(sizes, train_rows[codes[0]], 0.0, 1.0, nearer, level=level, remarks=remarks)
    if holdout is None:
        _, by_chance, p_value = count_common(codes[1], codes[0])
        return replace(found, by_chance=by_chance, p_value=p_value, remarks=(Remark("no holdout"), *remarks))
    by_chance = sizes[0] * float(np.mean(train_rows[codes[2]] >= 0))
    most = most or max(sizes)
    rows = [sample_rows(sizes[0], most, seed), *(sample_rows(size, min(most, *sizes[1:]), seed) for size in sizes[1:])]
    some = [part.take(chosen) for part, chosen in zip(data, rows, strict=True)]
    sampled = [Remark("sampled", taken=len(chosen), n_points=part.n_points, name=part.name)
               for part, chosen in zip(data, rows, strict=True) if len(chosen) < part.n_points]  # fmt: skip
    dependent = (remark.of(part.name) for part in some[1:] for remark in remark_on_rows(part))
    of_pool = np.concatenate([codes[1][rows[1]], codes[2][rows[2]]])
    is_exact = np.isin(codes[0][rows[0]], of_pool)
    plan = replace(Plan.of_pair(some, (1, 2), 0, seed, (1.0,)), actual=True)
    points = _scale_rows(some, find_scaler(scale, some[1:], weigh_points=True))
    shares, nearer[rows[0]] = _count_nearest(points, is_exact, plan, 1 + count)
    apart = [(share - share.mean()) / share.std() for share in shares if share.std() > 0]
    most_apart = np.max(apart, axis=0) if apart else np.zeros(1 + count)
    return replace(
        found,
        by_chance=by_chance,
        p_value=float(np.mean(reaches(most_apart, most_apart[0]))),
        share=float(shares[0][0]),
        null=shares[0][1:],
        n_compared=len(rows[1]),
        remarks=(*remarks, *sampled, *dependent),
    )


# ------------------------------------------------------------------ nearest rows


def _scale_rows(data: Sequence[LabelledData], scaler: Scaler | None) -> list[Floats]:
    """The scaled features (n, d) of each dataset."""
    found = []
    for part in data:
        scaled = (part.rows(block) if scaler is None else scaler.apply(part.rows(block)) for block in part.blocks())
        near = [np.clip(rows, -_FARTHEST, _FARTHEST).astype(np.float32) for rows in scaled]
        found.append(np.concatenate(near) + 0)  # there is no minus zero
    return found


def _count_nearest(points: Sequence[Floats], is_exact: Bools, plan: Plan, count: int) -> tuple[Doubles, Doubles]:
    """The shares (2, S) of rows that are nearer to the first side of each split: of all rows, and of ``is_exact`` ones.

    The first split is the data, for which the last result says it row by row. Rows that are equal are measured once.
    """
    from scipy.sparse import csr_array

    _, first, own = np.unique(hash_columns(points[0].T.view(np.uint32)), return_index=True, return_inverse=True)
    pool = np.concatenate(points[1:])
    _, places, codes = np.unique(hash_columns(pool.T.view(np.uint32)), return_index=True, return_inverse=True)
    left_at = csr_array((np.ones(len(codes), np.float32), (codes, np.arange(len(codes)))))
    sizes = np.bincount(codes)[:, None]
    weights = np.stack([np.bincount(own), np.bincount(own, weights=is_exact)])
    totals = np.maximum(weights.sum(axis=1, keepdims=True), 1)
    with Workers() as workers:
        rows, nearest = find_nearest(points[0][first], pool[places], workers.each)
        near = csr_array((np.ones(len(rows), np.float32), (rows, nearest)), shape=(len(first), len(places)))

        def count_splits(some: slice) -> tuple[Doubles, Doubles]:
            inside = left_at @ (plan.mark_all(range(some.start, some.stop)) == 0).T.astype(np.float32)
            nearer = (1 + (near @ (inside > 0) > 0) - (near @ (inside < sizes) > 0)) / 2
            return weights @ nearer / totals, nearer[:, 0]

        shares, nearer = zip(*workers.each(count_splits, cut_range(count, _TOGETHER)), strict=True)
    return np.concatenate(shares, axis=1), nearer[0][own]


def find_nearest(points: Floats, pool: Floats, each: Each = map) -> tuple[Indices, Indices]:
    """Which rows of a pool (n, d) are nearest to each of some points (m, d), as pairs of numbers; ties are several.

    Products in float32 say in which blocks of the pool that may be, and differences in float64 which rows it is.
    """
    from scipy.spatial.distance import cdist

    blocks, lengths = cut_range(len(pool), _POOLED), np.einsum("nd,nd->n", pool, pool)
    table = np.column_stack([pool, lengths]).T  # (d + 1, n)
    rounding = (pool.shape[1] + 2) * np.finfo(np.float32).eps
    reach = np.array([lengths[block].max() for block in blocks])

    def find(some: slice) -> tuple[Indices, Indices]:
        left = np.column_stack([-2 * points[some], np.ones(len(points[some]), np.float32)])
        least = np.stack([(left @ table[:, block]).min(axis=1) for block in blocks], axis=1)  # less |point|²
        doubt = rounding * (reach + np.einsum("nd,nd->n", points[some], points[some])[:, None])
        maybe = least - doubt <= (least + doubt).min(axis=1, keepdims=True)
        best, found = np.full(len(left), np.inf), []
        for number, block in enumerate(blocks):
            rows = np.flatnonzero(maybe[:, number])
            apart = cdist(points[some][rows], pool[block], "sqeuclidean")
            best[rows] = np.minimum(best[rows], apart.min(axis=1, initial=np.inf))
            near, places = np.nonzero(apart <= (1 + _EQUAL) * apart.min(axis=1, initial=np.inf, keepdims=True))
            found.append((rows[near], block.start + places, apart[near, places]))
        rows, places, apart = map(np.concatenate, zip(*found, strict=True))
        nearest = apart <= (1 + _EQUAL) * best[rows]
        return some.start + rows[nearest], places[nearest]

    pairs = each(find, cut_range(len(points), _ROWS))
    rows, places = map(np.concatenate, zip(*pairs, strict=True))
    return rows, places
