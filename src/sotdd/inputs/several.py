"""Several datasets at once, as the calls that compare them take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, count
from os import PathLike
from typing import Any

from sotdd.basics.checks import described
from sotdd.basics.errors import SotddError
from sotdd.inputs.column_names import matched
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.inputs.opening import open_dataset
from sotdd.inputs.sources import SourceText


def labelled(datasets: Sequence[Dataset] | Mapping[str, Dataset]) -> list[LabelledData]:
    """Open several datasets, named by their keys, by themselves or by their places; columns are matched by name."""
    return matched([open_dataset(source, name=name) for name, source in named(datasets)])


def named(datasets: object, *kinds: type) -> list[tuple[str, Any]]:
    """Sources with the names they get: their keys, names of their own, also where of these kinds, or their places."""
    if isinstance(datasets, Mapping):
        found = [(str(name), source) for name, source in datasets.items()]
    elif isinstance(datasets, list) or (
        isinstance(datasets, tuple)
        and all(isinstance(part, (tuple, LabelledData, str, PathLike, *kinds)) for part in datasets)
    ):
        found = [(_own_name(source, *kinds) or str(place), source) for place, source in enumerate(datasets)]
    else:
        raise SotddError(
            f"datasets is {described(datasets)}: expected a list such as [(X1, y1), (X2, y2)], or a dict by name."
        )
    if not found:
        raise SotddError("there are no datasets: expected at least one.")
    if isinstance(datasets, Mapping) and len({name for name, _ in found}) < len(found):
        raise SotddError(f"two datasets have the same name among {', '.join(name for name, _ in found)}: rename one.")
    return _told_apart(found)


def labelled_pair(a: Dataset, b: Dataset) -> list[LabelledData]:
    """Open two datasets, called a and b unless they have names of their own; columns are matched by name."""
    return matched([open_dataset(source, name=_own_name(source) or name) for source, name in ((a, "a"), (b, "b"))])


def _own_name(source: object, *kinds: type) -> str | None:
    """What a dataset calls itself: a path is a name, or has one among its options."""
    if isinstance(source, (LabelledData, *kinds)):
        return str(source.name)  # type: ignore[attr-defined]  # each of these kinds has one
    if isinstance(source, str):
        return str(SourceText.parse(source).options.get("name", source))
    return str(source) if isinstance(source, PathLike) else None


def _told_apart(found: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Number the names that occur again."""
    result: dict[str, Any] = {}
    for name, source in found:
        numbered = (f"{name} ({number})" for number in count(2))
        result[next(free for free in chain([name], numbered) if free not in result)] = source
    return list(result.items())
