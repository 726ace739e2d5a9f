"""What datasets have to share to be compared: columns, labels or none, one cut of targets into classes.

Columns that have names are matched by name, whatever their order in each dataset. Tables that are compared agree on
which of their columns are features, and on what these hold. Of a column of categories, every value that any of them has
is a feature.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.remarks import Remark, Remarks, join_remarks, say_why
from sotdd.basics.text import join_names, say_count
from sotdd.inputs.data import LabelledData, same_features, take_columns
from sotdd.inputs.labels import cut, find_edges
from sotdd.inputs.origin import Names, Why
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
    """The datasets with their columns in one order, that of the first dataset whose columns have names.

    Datasets without names are taken by position. A column of categories is left out of all where one dataset has too
    many values in it; one that holds numbers in one dataset and something else in another is refused.

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
    for column in dict.fromkeys(column for data in tables for column in data.origin.left_out):
        datasets = _agree_on(column, datasets)
    first = next((data for data in datasets if data.columns is not None), None)
    if first is None or first.columns is None:
        return list(datasets)
    columns = _add_values(first.columns, datasets)
    return [order_columns(data, columns, f"dataset {first.name!r}") for data in datasets]


def order_columns(data: LabelledData, columns: Names | None, owner: str) -> LabelledData:
    """A dataset with its columns in this order; refuse one that has other columns than ``owner``, and name them.

    Values of categories that are not among the columns count as none of them. Of the columns nothing is known but
    their names, so those that begin like ``city=`` are values of this dataset's city.
    """
    if columns is None or data.columns is None or data.columns == columns:
        return data
    left_out, one_hot = data.origin.left_out, data.origin.one_hot
    for column in columns:
        base = next((base for base in left_out if column == base or column.startswith(f"{base}=")), None)
        if base is not None and column not in data.columns:
            raise _other_kind(base, owner, data, column != base, left_out[base])
    wanted = {base: dict.fromkeys(name for name in columns if name.startswith(f"{base}=")) for base in one_hot}
    new = [name for base, names in one_hot.items() if wanted[base] for name in names if name not in wanted[base]]
    zero = [name for names in wanted.values() for name in names]
    known = [name for name in data.columns if name not in set(new)] if new else data.columns
    find_places(columns, tuple(dict.fromkeys([*known, *zero])), f"dataset {data.name!r}", owner)
    positions = {column: position for position, column in enumerate(data.columns)}
    features = take_columns(data.features, [positions.get(column, -1) for column in columns])
    origin = replace(data.origin, one_hot={base: tuple(names) for base, names in wanted.items()})
    said = [Remark("new values", owner=owner, values=tuple(new))] if new else []
    return replace(data, features=features, columns=columns, origin=origin.also(*said))


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


def find_category(name: str, one_hot: Mapping[str, Names]) -> str | None:
    """The column of categories that a feature is a value of."""
    return next((column for column, names in one_hot.items() if name in names), None)


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
    why, other = next(iter(reasons.items()))
    categories = all(column in data.origin.one_hot for data in using)
    if categories and len(reasons) == 1 and isinstance(why, int):  # too many of them
        return [_leave_out(data, column, why) if data in using else data for data in datasets]
    raise _other_kind(column, f"dataset {using[0].name!r}", other, column in using[0].origin.one_hot, why)


def _leave_out(data: LabelledData, column: str, why: Why) -> LabelledData:
    """The dataset without a column of categories."""
    assert data.columns is not None
    one_hot = dict(data.origin.one_hot)
    values = set(one_hot.pop(column))
    places = [place for place, name in enumerate(data.columns) if name not in values]
    if not places:
        raise SotddError(f"dataset {data.name!r} has no feature besides {column!r}: name the features with features=.")
    origin = replace(data.origin, left_out={**data.origin.left_out, column: why}, one_hot=one_hot)
    columns = tuple(data.columns[place] for place in places)
    return replace(data, features=take_columns(data.features, places), columns=columns, origin=origin)


def _add_values(columns: Names, datasets: Sequence[LabelledData]) -> Names:
    """The columns of the first table, with every value that a category has in any of the datasets."""
    values: dict[str, set[str]] = {}
    for data in datasets:
        for base, names in data.origin.one_hot.items():
            values.setdefault(base, set()).update(names)
    bases = {name: base for base, names in values.items() for name in names}
    parts = [sorted(values[bases[column]]) if column in bases else [column] for column in columns]
    return tuple(dict.fromkeys(name for part in parts for name in part))


def _other_kind(column: str, owner: str, other: LabelledData, as_values: bool, why: Why) -> SotddError:
    if as_values and why == "text":
        return SotddError(
            f"column {column!r} is one feature per value in {owner}, not in {other.name!r}: open both with one_hot=."
        )
    held = f"{other.name!r} ({say_why(why)})"
    return SotddError(
        f"column {column!r} is a feature of {owner} but not of dataset {held}: exclude it, or read it alike."
    )


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


def refuse_half_labelled(datasets: Sequence[LabelledData]) -> None:
    """Refuse to compare data that have labels with data that have none, unless one class was asked for.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> x, y = np.zeros((4, 2)), [0, 0, 1, 1]
    >>> sotdd.distance(sotdd.open_dataset(x, label=None), (x, y), n_projections=8).n_points
    (4, 4)
    >>> sotdd.distance(x, (x, y))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    sotdd.basics.errors.SotddError: dataset 'a' has no labels but dataset 'b' has 2 classes: give labels to both, ...
    """
    bare = next((data for data in datasets if not data.origin.labelled), None)
    rich = next((data for data in datasets if data.origin.labelled and len(data.classes) > 1), None)
    if bare is None or rich is None:
        return
    same_features(datasets)  # which would be the first thing to put right
    classes = say_count(len(rich.classes), "class", "classes")
    raise SotddError(
        f"dataset {bare.name!r} has no labels but dataset {rich.name!r} has {classes}: give labels to both, or say "
        f"that all of {bare.name!r} is one class with sotdd.open_dataset(..., label=None)."
    )


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
