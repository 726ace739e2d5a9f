"""Tables that are compared agree on which of their columns are features, and on what these hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sotdd.basics.errors import SotddError
from sotdd.inputs.data import LabelledData
from sotdd.inputs.origin import ID
from sotdd.inputs.streamed import ReorderedColumns, StreamedFeatures

Names = tuple[str, ...]

# How the reason begins for which a column of too many values is left out.
_TOO_MANY = "text, more than"


def agreed(datasets: Sequence[LabelledData]) -> list[LabelledData]:
    """The datasets with the same columns left out.

    An id is left out where it is one in all of them, or they are too small to tell; a column of categories, where one
    dataset has too many. A column that holds numbers in one dataset and something else in another is refused.
    """
    tables = [data for data in datasets if data.columns is not None]
    if not any(data.origin.left_out for data in tables):
        return list(datasets)
    for column in dict.fromkeys(column for data in tables for column in data.origin.left_out):
        datasets = _agreed_on(column, datasets)
    return list(datasets)


def _agreed_on(column: str, datasets: Sequence[LabelledData]) -> list[LabelledData]:
    using = [data for data in datasets if data.columns is not None and is_feature(data, column)]
    reasons = {data.origin.left_out[column]: data for data in datasets if column in data.origin.left_out}
    if not using:
        return list(datasets)
    if set(reasons) == {ID}:
        if all(column in data.origin.maybe_ids for data in using):
            return [_without(data, column, ID) if data in using else data for data in datasets]
        return [_kept(data, (column,)) if data.origin.left_out.get(column) == ID else data for data in datasets]
    too_many = next((reason for reason in reasons if reason.startswith(_TOO_MANY)), None)
    if too_many is not None and len(reasons) == 1 and all(column in data.origin.one_hot for data in using):
        return [_without(data, column, too_many) if data in using else data for data in datasets]
    reason, other = next((reason, data) for reason, data in reasons.items() if reason != ID)
    raise _other_kind(column, f"dataset {using[0].name!r}", other, column in using[0].origin.one_hot, reason)


def with_wanted(data: LabelledData, columns: Names, owner: str) -> LabelledData:
    """A dataset with those of the wanted columns that it had left out as ids, without those it was unsure about."""
    left_out = data.origin.left_out
    back = tuple(column for column in columns if left_out.get(column) == ID)
    if back:
        data = _kept(data, back)
    for column in columns:
        reason = left_out.get(column) or left_out.get(column.partition("=")[0])
        if reason is not None and reason != ID and column not in (data.columns or ()):
            raise _other_kind(column.partition("=")[0], owner, data, column not in left_out, reason)
    for column in data.origin.maybe_ids:
        if column not in columns:
            data = _without(data, column, ID)
    return data


def with_all_values(columns: Names, datasets: Sequence[LabelledData]) -> Names:
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


def value_of(name: str, one_hot: Names, columns: Names) -> str | None:
    """The column of categories that a feature is a value of, if some of the columns are values of it too."""
    for base in one_hot:
        if name.startswith(f"{base}=") and any(column.startswith(f"{base}=") for column in columns):
            return base
    return None


def is_feature(data: LabelledData, column: str) -> bool:
    """Whether a column is one of the features, or one of its values is."""
    return column in (data.columns or ()) or column in data.origin.one_hot


def _kept(data: LabelledData, columns: Names) -> LabelledData:
    """The dataset with some columns that were taken for ids."""
    if data.origin.reopened is None:
        raise SotddError(
            f"column {columns[0]!r} of dataset {data.name!r} was taken for an id and left out: open it with features=."
        )
    return replace(data.origin.reopened(columns), name=data.name)


def _without(data: LabelledData, column: str, reason: str) -> LabelledData:
    """The dataset without a column."""
    assert data.columns is not None
    gone = [column in (name, value_of(name, data.origin.one_hot, (name,))) for name in data.columns]
    places = [place for place, is_gone in enumerate(gone) if not is_gone]
    features = data.features
    origin = replace(
        data.origin,
        left_out={**data.origin.left_out, column: reason},
        one_hot=tuple(base for base in data.origin.one_hot if base != column),
        maybe_ids=tuple(maybe for maybe in data.origin.maybe_ids if maybe != column),
    )
    if not places:
        raise SotddError(f"dataset {data.name!r} has no feature besides {column!r}: name the features with features=.")
    chosen = (
        ReorderedColumns(features, places)
        if isinstance(features, StreamedFeatures)
        else np.asarray(features)[:, places]
    )
    return replace(data, features=chosen, columns=tuple(data.columns[place] for place in places), origin=origin)


def _other_kind(column: str, owner: str, other: LabelledData, as_values: bool, reason: str) -> SotddError:
    if as_values and reason == "text":
        return SotddError(
            f"column {column!r} is one feature per value in {owner} but left out of dataset {other.name!r}: open both "
            "with one_hot=."
        )
    holds = "is empty" if reason == "empty" else f"holds {reason}"
    what = "dates" if reason == "date" else "numbers"
    return SotddError(
        f"column {column!r} is a feature of {owner} but {holds} in dataset {other.name!r}: expected {what} in both, or "
        "leave it out with exclude=."
    )
