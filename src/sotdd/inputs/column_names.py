"""Columns that have names are matched by name, whatever their order in each dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sotdd.basics.errors import SotddError
from sotdd.inputs.column_agreement import agreed, value_of, with_all_values, with_wanted
from sotdd.inputs.data import Features, LabelledData
from sotdd.inputs.streamed import ReorderedColumns, StreamedFeatures, reordered
from sotdd.inputs.tensors import DeviceFeatures

Names = tuple[str, ...]

# Messages list this many columns.
_SHOWN = 6


def matched(datasets: Sequence[LabelledData]) -> list[LabelledData]:
    """The datasets with their columns in one order, that of the first dataset whose columns have names.

    Datasets without names are taken by position.

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
    datasets = agreed(datasets)
    first = next((data for data in datasets if data.columns is not None), None)
    if first is None or first.columns is None:
        return list(datasets)
    columns = with_all_values(first.columns, datasets)
    return [in_order(data, columns, f"dataset {first.name!r}") for data in datasets]


def in_order(data: LabelledData, columns: Names | None, owner: str) -> LabelledData:
    """A dataset with its columns in this order; refuse one that has other columns than ``owner``, and name them.

    Columns that were taken for ids are features where they are wanted. Values of categories that are not among the
    columns count as none of them.
    """
    if columns is None or data.columns is None or data.columns == columns:
        return data
    data = with_wanted(data, columns, owner)
    assert data.columns is not None  # it is the same table
    new = [name for name in data.columns if name not in set(columns) and value_of(name, data.origin.one_hot, columns)]
    known = tuple(name for name in data.columns if name not in new)
    zero = [name for name in columns if name not in set(known) and value_of(name, data.origin.one_hot, (name,))]
    places_of(columns, (*known, *zero), f"dataset {data.name!r}", owner)
    positions = {column: position for position, column in enumerate(data.columns)}
    order = [positions.get(column, -1) for column in columns]
    origin = data.origin.also(*([f"values that {owner} does not have: {_listed_values(new)}"] if new else []))
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


def _difference(missing: Sequence[str], extra: Sequence[str], owner: str) -> str:
    if not extra:
        return f"has no {_listed(missing)}, which {owner} has"
    if not missing:
        article = "a " if len(extra) == 1 else ""
        return f"has {article}{_listed(extra)}, which {owner} does not have"
    others = ", ".join(map(repr, extra[:_SHOWN])) + _more(extra)
    return f"has no {_listed(missing)} and has {others}, which {owner} does not have"


def _listed_values(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + _more(names)


def _listed(columns: Sequence[str]) -> str:
    word = "column" if len(columns) == 1 else "columns"
    return f"{word} {', '.join(map(repr, columns[:_SHOWN]))}{_more(columns)}"


def _more(columns: Sequence[str]) -> str:
    return f" and {len(columns) - _SHOWN:,} more" if len(columns) > _SHOWN else ""


def _reordered(features: Features, order: list[int]) -> Features:
    """Features with their columns in another order; arrays and tensors are copied, the rest is reordered when read."""
    if isinstance(features, StreamedFeatures):
        return ReorderedColumns(features, order)
    if isinstance(features, DeviceFeatures):
        return DeviceFeatures(features.tensor[:, order])  # tables are never on a device, so all places are known
    return reordered(features, order)
