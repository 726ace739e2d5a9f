"""Columns that have names are matched by name, whatever their order in each dataset.

Tables that are compared agree on which of their columns are features, and on what these hold. Of a column of
categories, every value that any of them has is a feature.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sotdd.basics.errors import SotddError
from sotdd.basics.text import listed
from sotdd.inputs.data import Features, LabelledData
from sotdd.inputs.origin import TOO_MANY
from sotdd.inputs.streamed import ReorderedColumns, StreamedFeatures, reordered
from sotdd.inputs.tensors import DeviceFeatures

Names = tuple[str, ...]

# Messages list this many columns.
_SHOWN = 6


def matched(datasets: Sequence[LabelledData]) -> list[LabelledData]:
    """The datasets with their columns in one order, that of the first dataset whose columns have names.

    Datasets without names are taken by position. A column of categories is left out of all where one dataset has too
    many values in it; one that holds numbers in one dataset and something else in another is refused.

    Examples
    --------
    >>> import numpy as np
    >>> from sotdd.inputs.column_names import matched
    >>> from sotdd.inputs.data import LabelledData
    >>> one, all_of_one = np.array([[1.0, 2.0]]), np.zeros(1, int)
    >>> a = LabelledData("a", one, ("all",), all_of_one, ("age", "income"))
    >>> b = LabelledData("b", one[:, ::-1], ("all",), all_of_one, ("income", "age"))
    >>> matched([a, b])[1].features
    array([[1., 2.]])
    """
    tables = [data for data in datasets if data.columns is not None]
    for column in dict.fromkeys(column for data in tables for column in data.origin.left_out):
        datasets = _agree_on(column, datasets)
    first = next((data for data in datasets if data.columns is not None), None)
    if first is None or first.columns is None:
        return list(datasets)
    columns = _with_all_values(first.columns, datasets)
    return [in_order(data, columns, f"dataset {first.name!r}") for data in datasets]


def in_order(data: LabelledData, columns: Names | None, owner: str) -> LabelledData:
    """A dataset with its columns in this order; refuse one that has other columns than ``owner``, and name them.

    Values of categories that are not among the columns count as none of them.
    """
    if columns is None or data.columns is None or data.columns == columns:
        return data
    left_out = data.origin.left_out
    for column in columns:
        reason = left_out.get(column) or left_out.get(column.partition("=")[0])
        if reason is not None and column not in data.columns:
            raise _other_kind(column.partition("=")[0], owner, data, column not in left_out, reason)
    new = [name for name in data.columns if name not in set(columns) and value_of(name, data.origin.one_hot, columns)]
    known = tuple(name for name in data.columns if name not in new)
    zero = [name for name in columns if name not in set(known) and value_of(name, data.origin.one_hot, (name,))]
    places_of(columns, (*known, *zero), f"dataset {data.name!r}", owner)
    positions = {column: position for position, column in enumerate(data.columns)}
    order = [positions.get(column, -1) for column in columns]
    origin = data.origin.also(*([f"values that {owner} does not have: {listed(new, _SHOWN)}"] if new else []))
    return replace(data, features=_reordered(data.features, order), columns=columns, origin=origin)


def places_of(wanted: Names, own: Names, who: str, owner: str) -> list[int]:
    """The position of each wanted column among the ``own`` columns of ``who``; refuse other names."""
    positions = {column: position for position, column in enumerate(own)}
    missing = [column for column in wanted if column not in positions]
    known = set(wanted)
    extra = [column for column in own if column not in known]
    if missing or extra:
        raise SotddError(
            f"{who} {_difference(missing, extra, owner)}: give both the same columns, by renaming them or by features=."
        )
    return [positions[column] for column in wanted]


def by_position(sides: Sequence[LabelledData], columns: Names | None) -> tuple[str, ...]:
    """Remarks on the datasets whose columns have no names, where the projections or other datasets have names."""
    if columns is None and all(data.columns is None for data in sides):
        return ()
    unnamed = dict.fromkeys(data.name for data in sides if data.columns is None)
    return tuple(taken_by_position(name, True) for name in unnamed)


def meets_by_position(data: LabelledData, columns: Names | None) -> bool:
    """Whether only one of a dataset and the projections it is seen through has named columns."""
    return (data.columns is None) != (columns is None)


def taken_by_position(name: str, projections_have_names: bool) -> str:
    """The remark on a dataset whose columns are matched by position for want of names."""
    if projections_have_names:
        return f"the columns of {name!r} have no names and are matched by position"
    return f"the projections were fitted on columns without names, so those of {name!r} are matched by position"


def value_of(name: str, one_hot: Names, columns: Names) -> str | None:
    """The column of categories that a feature is a value of, if some of the columns are values of it too."""
    for base in one_hot:
        if name.startswith(f"{base}=") and any(column.startswith(f"{base}=") for column in columns):
            return base
    return None


def _agree_on(column: str, datasets: Sequence[LabelledData]) -> list[LabelledData]:
    """The datasets with a column left out of all of them that is left out of some."""
    using = [
        data
        for data in datasets
        if data.columns is not None and (column in data.columns or column in data.origin.one_hot)
    ]
    if not using:
        return list(datasets)
    reasons = {data.origin.left_out[column]: data for data in datasets if column in data.origin.left_out}
    reason, other = next(iter(reasons.items()))
    categories = all(column in data.origin.one_hot for data in using)
    if categories and len(reasons) == 1 and reason.startswith(TOO_MANY):
        return [_without(data, column, reason) if data in using else data for data in datasets]
    raise _other_kind(column, f"dataset {using[0].name!r}", other, column in using[0].origin.one_hot, reason)


def _without(data: LabelledData, column: str, reason: str) -> LabelledData:
    """The dataset without a column of categories."""
    assert data.columns is not None
    places = [place for place, name in enumerate(data.columns) if not value_of(name, (column,), (name,))]
    if not places:
        raise SotddError(f"dataset {data.name!r} has no feature besides {column!r}: name the features with features=.")
    one_hot = tuple(base for base in data.origin.one_hot if base != column)
    origin = replace(data.origin, left_out={**data.origin.left_out, column: reason}, one_hot=one_hot)
    columns = tuple(data.columns[place] for place in places)
    return replace(data, features=_reordered(data.features, places), columns=columns, origin=origin)


def _with_all_values(columns: Names, datasets: Sequence[LabelledData]) -> Names:
    """The columns of the first table, with every value that a category has in any of the datasets."""
    one_hot = {column for data in datasets for column in data.origin.one_hot}
    result: list[str] = []
    for column in columns:
        base = value_of(column, tuple(one_hot), columns)
        if base is None:
            result.append(column)
        elif not any(value_of(done, (base,), (done,)) for done in result):
            names = {
                name
                for data in datasets
                for name in data.columns or ()
                if value_of(name, data.origin.one_hot, (name,)) == base
            }
            result.extend(sorted({column, *names}))
    return tuple(result)


def _other_kind(column: str, owner: str, other: LabelledData, as_values: bool, reason: str) -> SotddError:
    if as_values and reason == "text":
        return SotddError(
            f"column {column!r} is one feature per value in {owner} but left out of dataset {other.name!r}: open both "
            "with one_hot=."
        )
    return SotddError(
        f"column {column!r} is a feature of {owner} but was left out of dataset {other.name!r} ({reason}): expected "
        "one kind of values in both, or name the columns with features= or exclude=."
    )


def _difference(missing: Sequence[str], extra: Sequence[str], owner: str) -> str:
    if not extra:
        return f"has no {_columns(missing)}, which {owner} has"
    if not missing:
        return f"has {'a ' if len(extra) == 1 else ''}{_columns(extra)}, which {owner} does not have"
    return f"has no {_columns(missing)} and has {_list(extra)}, which {owner} does not have"


def _columns(names: Sequence[str]) -> str:
    return f"{'column' if len(names) == 1 else 'columns'} {_list(names)}"


def _list(names: Sequence[str]) -> str:
    return listed([*map(repr, names)], _SHOWN)


def _reordered(features: Features, order: list[int]) -> Features:
    """Features with their columns in another order; arrays and tensors are copied, the rest is reordered when read."""
    if isinstance(features, StreamedFeatures):
        return ReorderedColumns(features, order)
    if isinstance(features, DeviceFeatures):
        return DeviceFeatures(features.tensor[:, order])  # tables are never on a device, so all places are known
    return reordered(features, order)
