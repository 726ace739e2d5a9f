"""What datasets have to share to be compared: columns, one cut of targets into classes, one filling of gaps.

Columns that have names are matched by name, whatever their order in each dataset. Tables that are compared agree on
which of their columns are features, and on what these hold. Of a column of categories, the most frequent values of all
of them together are features; where values of a column are missing in any of them, a feature says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.remarks import Remark, Remarks, join_remarks
from sotdd.basics.text import join_names
from sotdd.inputs.data import IS_MISSING, MISSING, OTHER, UNKNOWN, Category, LabelledData, LeftOut, Names
from sotdd.inputs.labels import cut, find_edges
from sotdd.inputs.streamed import Features, Rows, StreamedFeatures
from sotdd.inputs.tensors import DeviceFeatures

# Messages list this many columns.
_SHOWN = 6
# Fewer features than this are no pixels.
FEWEST_PIXELS = 16
# About this many rows, at even steps, are looked at.
_ROWS = 32
# Bytes reach beyond this in any picture that is not black.
_BRIGHT = 32
_ROUNDING = 1e-6

# Whether a dataset holds bytes or fractions of them. Matrices ask for every pair, and points on a device are far away.
_SEEN: WeakKeyDictionary[LabelledData, str] = WeakKeyDictionary()


def match_columns(datasets: Sequence[LabelledData]) -> list[LabelledData]:
    """The datasets with the same features in one order, that of the first dataset whose columns have names.

    Datasets without names are taken by position. A column of categories is left out of all where it is free text in
    one; one that holds numbers in one dataset and something else in another is refused. Values that are missing are
    the mean of all datasets together.

    Examples
    --------
    >>> import numpy as np
    >>> from sotdd.inputs.agreement import match_columns
    >>> from sotdd.inputs.data import LabelledData
    >>> one, all_of_one = np.array([[1.0, 2.0]]), np.zeros(1, int)
    >>> a = LabelledData("a", one, ("all",), all_of_one, ("age", "income"))
    >>> b = LabelledData("b", one[:, ::-1], ("all",), all_of_one, ("income", "age"))
    >>> match_columns([a, b])[1].features
    array([[1., 2.]])
    """
    tables = [data for data in datasets if data.columns is not None]
    if len(tables) < 2:
        return list(datasets)
    used = {data: dict.fromkeys(map(data.origin.find_column, data.columns or ())) for data in tables}
    left = {(column, data): why for data in tables for column, why in data.origin.left_out.items()}
    dropped: dict[str, LeftOut] = {}  # free text in one dataset, and categories in all others
    for (column, data), why in left.items():
        users = [user for user in tables if column in used[user]]
        if not users or why.why == "empty":
            continue
        if why.why != "free text" or any(column not in user.origin.categories for user in users):
            raise _other_kind(column, f"dataset {users[0].name!r}", data, why)
        dropped[column] = why
    first = tables[0]
    empty = [column for column, data in left if data is first and any(column in own for own in used.values())]
    columns = tuple(column for column in dict.fromkeys([*used[first], *empty]) if column not in dropped)
    for data in tables:
        own = [column for column in used[data] if column not in dropped]
        own += [column for column in columns if column in data.origin.left_out and column not in own]
        find_places(columns, tuple(own), f"dataset {data.name!r}", f"dataset {first.name!r}")
    features = list_features(columns, tables)
    means = {column: _find_mean(column, tables) for column in columns if f"{column}{IS_MISSING}" in features}
    return [data if data.columns is None else arrange(_leave_out(data, dropped), features, means) for data in datasets]


def list_features(columns: Iterable[str], datasets: Sequence[LabelledData]) -> Names:
    """The features that the columns of tables make, categories by the values that all of them have together."""
    origins = [one.origin for one in datasets]
    if not any(origin.categories or origin.gaps or origin.left_out for origin in origins):
        return tuple(columns)
    features: list[str] = []
    own = [set(one.columns or ()) for one in datasets]
    for column in columns:
        categories = [one.origin.categories[column] for one in datasets if column in one.origin.categories]
        masks = [one.origin.gaps[column] for one in datasets if column in one.origin.gaps]
        empty = any(column in one.origin.left_out for one in datasets)
        numbers = any(
            column in names and column not in origin.categories for names, origin in zip(own, origins, strict=True)
        )
        if not categories or all(one.flag is not None for one in categories):
            features.append(column)
        elif numbers:
            kept = next(one for one in datasets if column not in one.origin.categories)
            other = next(one for one in datasets if column in one.origin.categories)
            raise _other_kind(column, f"dataset {kept.name!r}", other, other.origin.categories[column].number)
        else:
            features += [f"{column}={value}" for value in _list_values(categories)]
        if empty or any(mask.any() for mask in masks) or any((one.codes == MISSING).any() for one in categories):
            features.append(f"{column}{IS_MISSING}")
    return tuple(dict.fromkeys(features))


def _list_values(categories: Sequence[Category]) -> list[str]:
    """The values of a category that are features: in order, and last the one that stands for all others."""
    counts: Counter[str] = Counter()
    for one in categories:
        counts.update(dict(zip(one.values, np.bincount(one.codes[one.codes >= 0]).tolist(), strict=False)))
    present = sorted((value for value in counts if counts[value]), key=lambda value: (-counts[value], value))
    most = max(one.most for one in categories)
    pooled = len(present) > most or any((one.codes == UNKNOWN).any() for one in categories)
    return sorted(present[:most]) + ([OTHER] if pooled else [])


def arrange(data: LabelledData, columns: Names, means: Mapping[str, float] | None = None) -> LabelledData:
    """A table with these features: its numbers, marks of its categories, and marks of what is missing.

    Values that are missing become the ``means`` of their columns. What is not in the table is zero.
    """
    assert data.columns is not None
    own = {name: place for place, name in enumerate(data.columns)}
    gaps, n_points = _find_gaps(data, columns), data.n_points
    order = np.full(len(columns), -1)
    marks: dict[int, tuple[NDArray[Any], list[Any]]] = {}
    fills: dict[int, tuple[NDArray[np.bool_], float]] = {}
    for place, name in enumerate(columns):
        column, base = data.origin.find_column(name), name.removesuffix(IS_MISSING)
        if (category := data.origin.categories.get(column)) is not None:
            marks[place] = category.codes, _find_codes(category, column, columns, name)
        elif base != name and base in gaps:
            marks[place] = gaps[base], [True]
        else:
            order[place] = own.get(name, -1)
            if name in gaps and means is not None and np.isfinite(means.get(name, np.nan)):
                fills[place] = gaps[name], means[name]
    dtype = np.result_type(data.features.dtype, np.float32) if fills else data.features.dtype
    taken = order[order >= 0]

    def make(rows: Rows) -> NDArray[Any]:
        source = np.asarray(data.features[rows])
        block = np.zeros((len(source), len(columns)), dtype)
        block[:, order >= 0] = source[:, taken]
        for place, (codes, wanted) in marks.items():
            block[:, place] = np.isin(codes[rows], wanted)
        for place, (mask, mean) in fills.items():
            block[mask[rows], place] = mean
        return block

    features: Features
    if isinstance(data.features, DeviceFeatures):  # of which nothing is to be made
        features = DeviceFeatures(data.features.tensor[:, order.tolist()])
    elif isinstance(data.features, (np.memmap, StreamedFeatures)):
        features = StreamedFeatures(data.name, (n_points, len(columns)), dtype, make)
    else:
        features = make(slice(None))
    return replace(data, features=features, columns=columns, origin=replace(data.origin, gaps=gaps))


def _find_gaps(data: LabelledData, columns: Names) -> dict[str, NDArray[np.bool_]]:
    """Where values of numbers are missing, also of columns in which they are missing nowhere, or throughout."""
    gaps = dict(data.origin.gaps)
    for name in columns:
        base = name.removesuffix(IS_MISSING)
        if base != name and base in columns and base not in data.origin.categories and name not in (data.columns or ()):
            gaps.setdefault(base, np.full(data.n_points, base in data.origin.left_out))
    return gaps


def _find_codes(category: Category, column: str, columns: Names, name: str) -> list[int]:
    """The codes of a category that a feature marks."""
    codes = {value: code for code, value in enumerate(category.values)}
    if name == f"{column}{IS_MISSING}":
        return [MISSING]
    if name == column:
        return [codes.get(category.flag or "", UNKNOWN)] if category.flag in codes else []
    value = name[len(column) + 1 :]
    if value != OTHER:
        return [codes[value]] if value in codes else []
    told = {other[len(column) + 1 :] for other in columns if other.startswith(f"{column}=")} - {OTHER}
    return [UNKNOWN, *(code for other, code in codes.items() if other not in told)]


def _find_mean(column: str, tables: Sequence[LabelledData]) -> float:
    """The mean of the values of a column that are there, of all tables together; NaN for categories."""
    total, count = 0.0, 0
    for data in tables:
        if data.columns is None or column not in data.columns or column in data.origin.categories:
            continue
        place, mask = data.columns.index(column), data.origin.gaps.get(column)
        for block in data.blocks():
            values = data.rows(block)[:, place].astype(np.float64)
            known = values if mask is None else values[~mask[block]]
            total, count = total + float(known.sum()), count + len(known)
    return total / count if count else np.nan


def _leave_out(data: LabelledData, columns: Mapping[str, LeftOut]) -> LabelledData:
    """The dataset without some columns of categories."""
    own = {column: left for column, left in columns.items() if column in data.origin.categories}
    if not own:
        return data
    categories = {name: one for name, one in data.origin.categories.items() if name not in own}
    return replace(data, origin=replace(data.origin, categories=categories, left_out={**data.origin.left_out, **own}))


def order_columns(
    data: LabelledData, columns: Names | None, owner: str, centre: NDArray[np.float64] | None = None
) -> LabelledData:
    """A dataset with these features, which ``owner`` has; refuse one that has other columns, and name them.

    Values of categories that are not among the features count as none of them, or as others where there are others.
    Values that are missing become the ``centre`` of their column, and where the owner has no feature that says so,
    their rows count as not judged whole.
    """
    if (
        columns is None
        or data.columns is None
        or (data.columns == columns and (centre is None or not data.origin.gaps))
    ):
        return data
    wanted = _find_wanted(data, columns, owner)
    own = dict.fromkeys(map(data.origin.find_column, data.columns))
    empty = [column for column in wanted if column in data.origin.left_out and column not in own]
    find_places(wanted, (*own, *empty), f"dataset {data.name!r}", owner)
    means = None if centre is None else dict(zip(columns, centre.tolist(), strict=True))
    arranged = arrange(data, columns, means)
    new = _find_new_values(data, set(columns))
    said = [Remark("new values", owner=owner, values=new)] if new else []
    return _remark_gaps(replace(arranged, origin=arranged.origin.also(*said)), set(columns), owner)


def _find_wanted(data: LabelledData, columns: Names, owner: str) -> Names:
    """The columns of a table that features are made of; one that holds something else is refused."""
    origin, wanted = data.origin, dict[str, None]()
    for name in columns:
        base = name.removesuffix(IS_MISSING)
        column = base if base != name and base in columns else origin.find_column(name)
        title = name if name in origin.left_out else name.partition("=")[0]
        left = origin.left_out.get(title)
        if left is not None and left.why != "empty" and column not in (data.columns or ()):
            raise _other_kind(title, owner, data, left)
        if column == name and column in origin.categories and origin.categories[column].flag is None:
            raise _other_kind(column, owner, data, origin.categories[column].number)
        wanted[column] = None
    return tuple(wanted)


def _find_new_values(data: LabelledData, known: set[str]) -> Names:
    """The values of categories that are not among the known features, where these have none for others."""
    return tuple(
        f"{column}={value}"
        for column, one in data.origin.categories.items()
        if column not in known and f"{column}={OTHER}" not in known
        for value, count in zip(one.values, np.bincount(one.codes[one.codes >= 0]).tolist(), strict=False)
        if count and f"{column}={value}" not in known
    )


def _remark_gaps(data: LabelledData, known: set[str], owner: str) -> LabelledData:
    """The same with how many rows lack a value where none of the known features says so."""
    masks = {**data.origin.gaps, **{name: one.codes == MISSING for name, one in data.origin.categories.items()}}
    unseen = {column: mask for column, mask in masks.items() if mask.any() and f"{column}{IS_MISSING}" not in known}
    if not unseen:
        return data
    lost = int(np.count_nonzero(np.logical_or.reduce(list(unseen.values()))))
    counts = {column: int(np.count_nonzero(mask)) for column, mask in unseen.items()}
    remark = Remark("gaps not in reference", owner=owner, rows=lost, n_points=data.n_points, columns=counts)
    origin, n_points = data.origin.also(remark), data.n_points
    lost, read = max(origin.rows_lost, lost), max(origin.rows_read, n_points)
    return replace(data, origin=replace(origin, rows_lost=lost, rows_read=read))


def find_places(wanted: Names, own: Names, who: str, owner: str) -> list[int]:
    """The position of each wanted column among the ``own`` columns of ``who``; refuse other names."""
    positions = {column: position for position, column in enumerate(own)}
    missing = [column for column in wanted if column not in positions]
    known = set(wanted)
    extra = [column for column in own if column not in known]
    if missing or extra:
        has = [("has no column", missing)] if missing else []
        has += [("has", extra)] if extra else []
        said = " and ".join(f"{verb} {join_names([*map(repr, names)], _SHOWN)}" for verb, names in has)
        raise SotddError(f"{who} {said}, unlike {owner}: give both the same columns, by renaming them or by features=.")
    return [positions[column] for column in wanted]


def _other_kind(column: str, owner: str, other: LabelledData, left: LeftOut | None) -> SotddError:
    why = "other values" if left is None else left.why
    example = "" if left is None or left.value is None else f" such as {left.value!r} in row {left.row:,}"
    return SotddError(
        f"column {column!r} is a feature of {owner} but holds {why}{example} in dataset {other.name!r}: exclude it, or "
        "say what means nothing by na_values=."
    )


def remark_positions(sides: Sequence[LabelledData], columns: Names | None) -> Remarks:
    """Remarks on the datasets whose columns have no names, where the projections or other datasets have names."""
    if columns is None and all(data.columns is None for data in sides):
        return ()
    unnamed = dict.fromkeys(data.name for data in sides if data.columns is None)
    return tuple(remark_position(name, True) for name in unnamed)


def meets_by_position(data: LabelledData, columns: Names | None) -> bool:
    """Whether only one of a dataset and the projections it is seen through has named columns."""
    return (data.columns is None) != (columns is None)


def remark_position(name: str, projections_have_names: bool) -> Remark:
    """The remark on a dataset whose columns are matched by position for want of names."""
    return Remark("matched by position", name=name, projections_have_names=projections_have_names)


def gather_side_remarks(sides: Sequence[LabelledData]) -> Remarks:
    """What is to be said of several datasets: once where it goes for all of them, or else with the name of each."""
    several = len({side.name for side in sides}) > 1
    shared = [remark for remark in sides[0].origin.said if all(remark in side.origin.said for side in sides)]
    own = [
        remark.of(side.name) if several else remark
        for side in sides
        for remark in side.origin.said
        if remark not in shared
    ]
    return join_remarks(shared, own)


def cut_alike(datasets: Sequence[LabelledData]) -> list[LabelledData]:
    """The datasets with targets cut into the same bins: of all of their values together.

    Bins of each dataset's own would hide that a target is larger in one of them.
    """
    targets = [data.origin.target for data in datasets]
    known = [target for target in targets if target is not None]
    if len(known) < 2:
        return list(datasets)
    bins = {target.bins for target in known}
    if len(bins) > 1:
        raise SotddError(f"targets are cut into {' and '.join(map(str, sorted(bins)))} bins: give all the same bins=.")
    edges = find_edges(np.concatenate([target.values for target in known]), bins.pop())
    result = []
    for data, target in zip(datasets, targets, strict=True):
        if target is None:
            result.append(data)
            continue
        labels = cut(target.values, edges).take(None)
        result.append(replace(data, classes=labels.classes, codes=labels.codes))
    return result


def remark_on_ranges(sides: Sequence[LabelledData]) -> Remarks:
    """A remark where some datasets hold bytes and others fractions of them.

    Examples
    --------
    >>> import numpy as np
    >>> from sotdd.inputs.data import LabelledData
    >>> pixels = np.random.default_rng(0).integers(256, size=(10, 8, 8)).astype(np.uint8)
    >>> remark_on_ranges([LabelledData.of(pixels, "a"), LabelledData.of(pixels / 255, "b")])
    (Remark: values of 'a' go up to 255 and those of 'b' up to 1: divide the former by 255 if both are images,)
    """
    for side in sides:
        if side not in _SEEN:
            _SEEN[side] = _judge(side)
    kinds = {side.name: _SEEN[side] for side in sides}
    bytes_, fractions = ([name for name, kind in kinds.items() if kind == wanted] for wanted in ("bytes", "fractions"))
    if not bytes_ or not fractions:
        return ()
    return (Remark("ranges differ", whole=bytes_[0], fractions=fractions[0]),)


def _judge(data: LabelledData) -> str:
    """Whether values are "bytes", "fractions" of them, or neither, judging by some rows."""
    if data.n_features < FEWEST_PIXELS or data.columns is not None:
        return ""
    step = max(1, data.n_points // _ROWS)
    if isinstance(data.features, (np.ndarray, DeviceFeatures)):
        rows = data.rows(slice(None, None, step))  # at once: every copy from a device is waited for
    else:
        rows = np.concatenate([data.rows(slice(place, place + 1)) for place in range(0, data.n_points, step)])
    values: NDArray[Any] = rows.astype(np.float64)
    low, high = values.min(), values.max()
    if low >= 0 and _BRIGHT <= high <= 255 and (values == np.round(values)).all():
        return "bytes"
    return "fractions" if low >= -1 - _ROUNDING and 0.5 < high <= 1 + _ROUNDING else ""
