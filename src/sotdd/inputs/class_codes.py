"""Labels of any kind turned into class numbers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import described, first_line
from sotdd.basics.errors import SotddError
from sotdd.inputs.tensors import host_labels, is_tensor

Classes = tuple[Hashable, ...]
Codes = NDArray[np.integer]


def class_codes(labels: object, n_points: int, name: str) -> tuple[Classes, Codes]:
    """The distinct labels of dataset ``name``, and for every row which of them it has."""
    classes, codes = codes_with_gaps(labels, n_points, name)
    refuse_gaps(codes, name)
    return classes, codes


def codes_with_gaps(labels: object, n_points: int, name: str) -> tuple[Classes, Codes]:
    """The same, where -1 stands for labels that are missing."""
    array = _label_array(labels, name)
    if array.ndim != 1:
        raise SotddError(
            f"labels of dataset {name!r} have shape {array.shape}: expected one label per row, in one dimension."
        )
    if len(array) != n_points:
        raise SotddError(
            f"labels of dataset {name!r} have {len(array):,} entries but features have {n_points:,} rows: "
            "pass one label per row."
        )
    if array.dtype.kind not in "biuUSVfcMm":
        return _codes_of_objects(array, name)
    known = ~np.isnan(array) if array.dtype.kind in "fcMm" else np.ones(len(array), bool)
    if isinstance(labels, np.ma.MaskedArray):
        known &= ~np.ma.getmaskarray(labels)
    codes = np.full(len(array), -1, np.int32)
    values, codes[known] = np.unique(array[known], return_inverse=True)
    dates = array.dtype.kind in "Mm"  # as plain values they may turn into integers
    return tuple(values if dates else values.tolist()), codes


def refuse_gaps(codes: Codes, name: str) -> None:
    """Count labels that are missing, and refuse them."""
    count = int(np.count_nonzero(codes < 0))
    if count:
        labels = "1 label that is" if count == 1 else f"{count:,} labels that are"
        raise SotddError(
            f"dataset {name!r} has {labels} missing (NaN or None): drop those rows, as sotdd.open_dataset(..., "
            "drop_missing=True) does, or name the class."
        )


def _label_array(labels: object, name: str) -> NDArray[Any]:
    """Labels as an array that keeps each label as it is: [1, "a"] must not become strings."""
    if hasattr(labels, "__array__"):
        try:
            return host_labels(labels) if is_tensor(labels) else np.asarray(labels)
        except (ValueError, TypeError, RuntimeError, NotImplementedError) as error:
            raise SotddError(f"labels of dataset {name!r} do not form an array ({first_line(error)}).") from error
    if isinstance(labels, (str, bytes, Mapping, Set)) or not hasattr(labels, "__iter__"):
        raise SotddError(f"labels of dataset {name!r} are {described(labels)}: expected one label per row.")
    entries = list(labels)
    array = np.empty(len(entries), object)
    for i, entry in enumerate(entries):
        array[i] = entry
    return array


def _codes_of_objects(array: NDArray[Any], name: str) -> tuple[Classes, Codes]:
    seen: dict[Hashable, int] = {}
    codes = np.full(len(array), -1, np.int32)
    for i, entry in enumerate(array):
        label = _plain(entry)
        if hasattr(label, "__array__") or isinstance(label, (list, set, dict)):
            kind = type(label).__name__
            raise SotddError(f"labels of dataset {name!r} hold a {kind}: expected one label per row, in one dimension.")
        if _is_missing(label):
            continue
        try:
            codes[i] = seen.setdefault(label, len(seen))
        except TypeError as error:
            raise SotddError(
                f"labels of dataset {name!r} hold a {type(label).__name__} in row {i:,}, which is not hashable: "
                "expected numbers, strings or other hashable labels."
            ) from error
    return tuple(seen), codes


def _plain(label: Any) -> Any:  # noqa: ANN401  # a label may be anything
    """Scalars of arrays and arrays of no dimension, such as a torch Dataset yields, as plain values."""
    return label.item() if getattr(label, "ndim", None) == 0 and hasattr(label, "item") else label


def _is_missing(label: object) -> bool:
    """None, pandas' NA, and all that is not equal to itself: NaN and NaT of any kind."""
    if label is None or type(label).__name__ in {"NAType", "NaTType"}:
        return True
    return bool(label != label)  # noqa: PLR0124  # this is how NaN is told
