"""What tables have to share to be compared: columns, the values of categories, one filling of gaps.

Columns that have names are matched by name, whatever their order in each dataset. Tables that are compared agree on
which of their columns are features, and on what these hold. Of a column of categories, the most frequent values of all
of them together are features; where values of a column are missing in any of them, a feature says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.remarks import Remark
from sotdd.basics.text import join_names
from sotdd.inputs.data import LabelledData
from sotdd.inputs.features import DeviceFeatures, Features, Rows, StreamedFeatures
from sotdd.inputs.schema import MISSING, OTHER, Category, Feature, LeftOut, Names, find_columns, remark_retyped

# Messages list this many columns.
_SHOWN = 6


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
    if sum(data.columns is not None for data in datasets) < 2:
        return list(datasets)
    datasets = _count_flags(datasets)
    tables = {data: data.table for data in datasets if data.columns is not None}
    first = next(iter(tables))
    used = {column for table in tables.values() for column in table}
    dropped: dict[str, LeftOut] = {}  # free text in one dataset, and categories in all others
    for data in tables:
        for column, left in data.origin.left_out.items():
            if column not in used or left.why == "empty":
                continue
            users = [user for user, table in tables.items() if column in table]
            if left.why != "free text" or any(column not in user.origin.categories for user in users):
                kind = "categories" if column in users[0].origin.categories else "numbers"
                raise _other_kind(column, f"dataset {users[0].name!r}", kind, data, left)
            dropped[column] = left
    columns = [*tables[first], *(column for column in first.origin.left_out if column in used)]
    columns = [column for column in dict.fromkeys(columns) if column not in dropped]
    for data, table in tables.items():
        empty = (column for column in columns if column in data.origin.left_out and column not in table)
        own = (*(column for column in table if column not in dropped), *empty)
        find_places(tuple(columns), own, f"dataset {data.name!r}", f"dataset {first.name!r}", data.name)
    features = list_features(columns, [*tables])
    made = [Feature.of(name) for name in features]
    lacking = {one.column for one in made if one.kind == "missing"}
    filled = {one for one in made if one.kind == "number" and one.column in lacking}
    centre = np.array([_find_mean(one, [*tables]) if one in filled else np.nan for one in made])
    return [order_columns(_leave_out(data, dropped), features, f"dataset {first.name!r}", centre) for data in datasets]


def _count_flags(datasets: Sequence[LabelledData]) -> list[LabelledData]:
    """The datasets with two opposites, such as yes and no, as 1 and 0 where another one has numbers."""
    numbers = {column for data in datasets for column in data.table if column not in data.origin.categories}
    result = []
    for data in datasets:
        origin = data.origin
        flags = {name: one for name, one in origin.categories.items() if one.flag is not None and name in numbers}
        if flags:
            categories = {name: one for name, one in origin.categories.items() if name not in flags}
            gaps = {**origin.gaps, **{name: one.codes == MISSING for name, one in flags.items()}}
            gaps = {name: mask for name, mask in gaps.items() if mask.any()}
            origin = replace(origin, categories=categories, gaps=gaps)
        result.append(replace(data, origin=origin) if flags else data)
    return result


def _leave_out(data: LabelledData, columns: Mapping[str, LeftOut]) -> LabelledData:
    """The dataset without those of these columns that it has as categories, which its origin then names."""
    own = {column: left for column, left in columns.items() if column in data.origin.categories}
    if not own:
        return data
    fewer = drop_columns(data, own)
    return replace(fewer, origin=replace(fewer.origin, left_out={**fewer.origin.left_out, **own}))


def list_features(columns: Iterable[str], datasets: Sequence[LabelledData]) -> Names:
    """The features that the columns of tables make, categories by the values that all of them have together."""
    features: list[Feature] = []
    lacking = {column for data in datasets for column in (*data.origin.missing, *data.origin.left_out)}
    whole = reversed(datasets)  # of several, errors name the first
    made = {data: map(Feature.of, data.columns or ()) for data in whole}
    numbers = {one.column: data for data, own in made.items() for one in own
               if one.kind == "number" and one.column not in data.origin.categories}  # fmt: skip
    for column in columns:
        categories = {data: data.origin.categories[column] for data in datasets if column in data.origin.categories}
        if all(one.flag is not None for one in categories.values()):
            features.append(Feature(column))
        elif column in numbers:
            other, one = next(iter(categories.items()))
            number, order = numbers[column], list(datasets)
            if order.index(other) < order.index(number):
                raise _other_kind(column, f"dataset {other.name!r}", "categories", number, LeftOut("numbers"))
            raise _other_kind(column, f"dataset {number.name!r}", "numbers", other, one.number or LeftOut("categories"))
        else:
            features += [Feature(column, "value", value) for value in _list_values([*categories.values()])]
        if column in lacking:
            features.append(Feature(column, "missing"))
    return tuple(one.name for one in features)


def _list_values(categories: Sequence[Category]) -> list[str]:
    """The values of a category that are features: in order, and last the one that stands for all others."""
    counts: Counter[str] = Counter()
    for one in categories:
        counts.update(one.count_values())
    present = sorted(counts, key=lambda value: (-counts[value], value))
    most = max(one.most for one in categories)
    return sorted(present[:most]) + ([OTHER] if len(present) > most else [])


def arrange(data: LabelledData, columns: Names, centre: NDArray[np.float64] | None = None) -> LabelledData:
    """A table with these features: its numbers, marks of its categories, and marks of what is missing.

    Values that are missing become the ``centre`` (d,) of their feature. What is not in the table is zero.
    """
    origin, n_points = data.origin, data.n_points
    own, known = {name: place for place, name in enumerate(data.columns or ())}, set(columns)
    made = [Feature.of(name) for name in columns]
    nowhere = {one.column: np.full(n_points, one.column in origin.left_out) for one in made if one.kind == "missing"}
    gaps = {column: mask for column, mask in {**nowhere, **origin.gaps}.items() if column not in origin.categories}
    order = np.full(len(columns), -1)
    marks: dict[int, tuple[NDArray[Any], NDArray[np.bool_]]] = {}
    fills: dict[int, tuple[NDArray[np.bool_], float]] = {}
    for place, one in enumerate(made):
        if one.column in origin.categories:
            category = origin.categories[one.column]
            marks[place] = category.codes, _mark_codes(category, one, known)
        elif one.kind != "number" and one.column in gaps:
            marks[place] = gaps[one.column].astype(np.int8), np.array([False, one.kind == "missing"])
        else:
            order[place] = own.get(one.name, -1)
            if one.column in gaps and centre is not None and np.isfinite(centre[place]):
                fills[place] = gaps[one.column], float(centre[place])
    dtype = np.result_type(data.features.dtype, np.float32) if fills else data.features.dtype
    taken = order[order >= 0]

    def make(rows: Rows) -> NDArray[Any]:
        source = np.asarray(data.features[rows])
        block = np.zeros((len(source), len(columns)), dtype)
        block[:, order >= 0] = source[:, taken]
        for place, (codes, is_marked) in marks.items():
            block[:, place] = is_marked[codes[rows]]
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
    return replace(data, features=features, columns=columns, origin=replace(origin, gaps=gaps))


def _mark_codes(category: Category, feature: Feature, features: Collection[str]) -> NDArray[np.bool_]:
    """Which codes of a category a feature marks; the last entry, which -1 reads, is that of values that are missing."""
    marks = np.zeros(len(category.values) + 1, bool)
    if feature.kind == "missing":
        marks[-1] = True
    elif feature.value == OTHER:
        others = (value == OTHER or feature._replace(value=value).name not in features for value in category.values)
        marks[:-1] = [*others]
    else:
        value = category.flag if feature.kind == "number" else feature.value
        if value in category.values:
            marks[category.values.index(value)] = True
    return marks


def _find_mean(feature: Feature, tables: Sequence[LabelledData]) -> float:
    """The mean of the values of a column that are there, of all tables together; NaN for categories."""
    total, count = 0.0, 0
    for data in tables:
        if data.columns is None or feature.name not in data.columns or feature.column in data.origin.categories:
            continue
        place, mask = data.columns.index(feature.name), data.origin.gaps.get(feature.column)
        for block in data.blocks():
            values = data.rows(block)[:, place].astype(np.float64)
            known = values if mask is None else values[~mask[block]]
            total, count = total + float(known.sum()), count + len(known)
    return total / count if count else np.nan


def drop_columns(data: LabelledData, columns: Collection[str]) -> LabelledData:
    """A table without some of its columns."""
    kept = tuple(name for name in data.columns or () if Feature.of(name).column not in columns)
    origin = data.origin
    categories = {name: one for name, one in origin.categories.items() if name not in columns}
    gaps = {name: mask for name, mask in origin.gaps.items() if name not in columns}
    return arrange(replace(data, origin=replace(origin, categories=categories, gaps=gaps)), kept)


def order_columns(
    data: LabelledData, columns: Names | None, owner: str, centre: NDArray[np.float64] | None = None
) -> LabelledData:
    """A dataset with these features, which ``owner`` has; refuse one that has other columns, and name them.

    Values of categories that are not among the features count as none of them, or as others where there are others.
    Values that are missing become the ``centre`` of their column, and where the owner has no feature that says so,
    their rows count as not judged whole.
    """
    if columns is None or data.columns is None:
        return data
    if data.columns == columns and (centre is None or not data.origin.gaps):
        return data
    made, table = find_columns(columns), data.table
    for name in columns:
        _refuse_other_kind(Feature.of(name), data, owner)
    empty = [column for column in made if column in data.origin.left_out and column not in table]
    find_places(tuple(dict.fromkeys(made)), (*table, *empty), f"dataset {data.name!r}", owner)
    arranged = arrange(data, columns, centre)
    known = set(columns)
    new = tuple(
        name
        for column, one in data.origin.categories.items()
        if not {Feature(column).name, Feature(column, "value", OTHER).name} & known
        for name in (Feature(column, "value", value).name for value in one.count_values())
        if name not in known
    )
    origin = arranged.origin.also(*([Remark("new values", owner=owner, values=new)] if new else []))
    unseen = {column: mask for column, mask in origin.missing.items() if Feature(column, "missing").name not in known}
    if unseen:
        lost, facts = count_gaps(unseen)
        origin = origin.also(Remark("gaps not in reference", owner=owner, **facts))
        rows_lost, rows_read = max(origin.rows_lost, facts["rows"]), max(origin.rows_read, len(lost))
        origin = replace(origin, rows_lost=rows_lost, rows_read=rows_read)
    return replace(arranged, origin=origin)


def _refuse_other_kind(feature: Feature, data: LabelledData, owner: str) -> None:
    """Refuse a table whose column holds something else than what a feature is made of."""
    column, is_number = feature.column, Feature(feature.column).name in (data.columns or ())
    left, category = data.origin.left_out.get(column), data.origin.categories.get(column)
    if left is not None and left.why != "empty" and not is_number:
        raise _other_kind(column, owner, "numbers" if feature.kind == "number" else "categories", data, left)
    if category is not None and feature.kind == "number" and category.flag is None:
        raise _other_kind(column, owner, "numbers", data, category.number or LeftOut("categories"))
    is_value = category is None and left is None and feature.kind == "value"
    is_empty = data.origin.gaps.get(column, np.zeros(1)).all()
    if is_value and not is_empty and is_number:
        raise _other_kind(column, owner, "categories", data, LeftOut("numbers"))


def count_gaps(masks: Mapping[str, NDArray[np.bool_]]) -> tuple[NDArray[np.bool_], dict[str, Any]]:
    """Which rows (n,) lack a value in any of some columns; and how many these are, as a remark says it."""
    rows = np.logical_or.reduce(list(masks.values()))
    columns = {column: int(np.count_nonzero(mask)) for column, mask in masks.items()}
    return rows, {"rows": int(np.count_nonzero(rows)), "n_points": len(rows), "columns": columns}


def find_places(wanted: Names, own: Names, who: str, owner: str, name: str = "") -> list[int]:
    """The position of each wanted column among the ``own`` columns of ``who``; refuse other names."""
    positions = {column: position for position, column in enumerate(own)}
    missing = tuple(column for column in wanted if column not in positions)
    known = set(wanted)
    extra = tuple(column for column in own if column not in known)
    if missing or extra:
        has = [f"has no column {join_names([*map(repr, missing)], _SHOWN)}"] if missing else []
        has += [f"has {join_names([*map(repr, extra)], _SHOWN)}"] if extra else []
        said = f"{who} {' and '.join(has)}, unlike {owner}: give both the same columns, by renaming them or"
        found = {"dropped columns": missing, "extra columns": extra}
        remarks = tuple(Remark(kind, name, columns=columns) for kind, columns in found.items() if columns)
        raise SotddError(said, by=("features",), remarks=remarks)
    return [positions[column] for column in wanted]


def _other_kind(column: str, owner: str, kind: str, other: LabelledData, left: LeftOut) -> SotddError:
    """The error for a column that holds something else in one dataset than this ``kind``, as in the owner."""
    example = "" if left.value is None else f" such as {left.value!r} in row {left.row:,}"
    found = f"column {column!r} is a feature of {owner} but holds {left.why}{example} in dataset {other.name!r}"
    return SotddError(
        f"{found}: leave it out, or say what means nothing,",
        by=("exclude", "na_values"),
        remarks=(remark_retyped(column, kind, left, other.name),),
    )
