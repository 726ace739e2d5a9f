"""Features and labels as they come in: what forms arrays of finite numbers, and labels of any kind as class numbers.

No library is imported to tell what something is: its type and its methods say so.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise as neighbours
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, describe, first_line
from sotdd.basics.remarks import Remark, Remarks
from sotdd.basics.text import say_count
from sotdd.inputs.features import DeviceFeatures, Features, SparseRows, StreamedFeatures

Classes = tuple[Hashable, ...]
Codes = NDArray[np.integer]

# The name of a class has at most this many characters: a longer one is a document, or a file that was misread.
_LONGEST = 1000

# Float labels with more distinct values than this are measurements rather than classes, if any of them is
# a fraction or if the values repeat fewer than _RARE times on average.
_MOST_VALUES = 20
_RARE = 5
# Integers with more distinct values than this, or as few of each, may be measurements; only the user can tell.
_MANY_VALUES = 100


# Values are checked this many at a time.
_BLOCK_VALUES = 1 << 19

# What datasets of Hugging Face's library are called.
_HUGGINGFACE = ("Dataset", "DatasetDict", "IterableDataset", "IterableDatasetDict")
# Tables that narwhals knows.
_LIBRARIES = {"cudf", "dask", "duckdb", "ibis", "modin", "narwhals", "pandas", "polars", "pyarrow"}
_FRAMES = {"DataFrame", "DuckDBPyRelation", "LazyFrame", "RecordBatch", "Table"}


def is_frame(source: object) -> bool:
    """Whether a source is a table of a library that narwhals knows, told without importing any."""
    kind = type(source)
    return kind.__module__.split(".")[0].lstrip("_") in _LIBRARIES and kind.__name__ in _FRAMES


def is_torch_data(source: object) -> bool:
    """Whether a source is a torch Dataset or DataLoader, or of a class derived from them."""
    return any(kind.__module__.startswith("torch.utils.data") for kind in type(source).__mro__)


def is_huggingface_data(source: object) -> bool:
    """Whether a source is a dataset of Hugging Face's library."""
    return type(source).__module__.split(".")[0] == "datasets" and type(source).__name__ in _HUGGINGFACE


def is_sparse(features: object) -> bool:
    """Whether features are a sparse matrix, of SciPy or of a library whose matrices turn into SciPy's."""
    return hasattr(features, "tocsr")


def is_tensor(value: object) -> bool:
    """Whether a value is a torch tensor."""
    return type(value).__module__.split(".")[0] == "torch" and hasattr(value, "detach")


def from_tensor(tensor: Any, name: str) -> NDArray[Any] | DeviceFeatures:  # noqa: ANN401  # torch is optional
    """Features held in a tensor: an array that shares its memory, or the tensor itself if it is on a device."""
    tensor = tensor.detach()
    if str(tensor.layout) != "torch.strided":
        raise SotddError(f"features of dataset {name!r} are a sparse tensor: pass features.to_dense().")
    try:
        return host_array(tensor) if tensor.device.type == "cpu" else DeviceFeatures(_widen(tensor))
    except (TypeError, RuntimeError, NotImplementedError) as error:
        raise SotddError(
            f"{name!r} is a tensor of {tensor.dtype} on {tensor.device}: convert it, as by .float()."
        ) from error


def host_array(values: Any) -> NDArray[Any]:  # noqa: ANN401  # torch is optional
    """Whatever forms an array as one of NumPy's; tensors are brought to the host."""
    if not is_tensor(values):
        return np.asarray(values)
    array: NDArray[Any] = _widen(values.detach().cpu().resolve_neg()).numpy()
    return array


def _widen(tensor: Any) -> Any:  # noqa: ANN401  # torch is optional
    """A tensor of a dtype that NumPy has."""
    return tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor


def features_and_labels(source: object, name: str) -> tuple[object, object | None]:
    """The features and the labels of a source, with None for labels where it is features alone."""
    if source is None or isinstance(source, (str, bytes, Mapping, set, frozenset)):
        raise SotddError(f"dataset {name!r} is {describe(source)}: expected (features, labels), or features alone.")
    if isinstance(source, tuple):
        if len(source) != 2:
            raise SotddError(f"dataset {name!r} is a tuple of {len(source)}: expected the two (features, labels).")
        features, labels = source
        if labels is None:
            raise SotddError(f"labels of dataset {name!r} are None: pass one label per row, or the features alone.")
        return features, labels
    return source, None


def check_features(features: object, name: str) -> Features:
    """Features as an array of finite real numbers (n, ...), left where they are; anything else is refused."""
    array = _as_features(features, name)
    if array.ndim == 0:
        raise SotddError(f"features of dataset {name!r} are {describe(features)}: expected an array (n, ...).")
    if array.dtype.kind not in "biuf":
        raise SotddError(
            f"features of dataset {name!r} have dtype {array.dtype}: expected real numbers, or pass encoder=."
        )
    if array.size == 0:
        raise SotddError(f"features of dataset {name!r} have shape {array.shape}: expected at least one point.")
    if isinstance(array, SparseRows) and (bad := array.find_non_finite()) is not None:
        raise non_finite_error(name, *bad)
    if array.dtype.kind != "f" or isinstance(array, StreamedFeatures):
        return array  # what is streamed was checked where it comes from
    if isinstance(array, DeviceFeatures) and array.all_finite():
        return array
    size = max(1, _BLOCK_VALUES * len(array) // array.size)
    for start in range(0, len(array), size):
        refuse_non_finite(array[start : start + size], range(start, len(array)), name)
    return array


def refuse_non_finite(
    block: NDArray[Any], rows: range | NDArray[np.integer], name: str, columns: Sequence[str] | None = None
) -> None:
    """Refuse a block that holds NaN or infinities, and say where the first of them is; ``rows`` numbers its rows."""
    if block.flags.c_contiguous and block.dtype in (np.float32, np.float64):
        values = block.reshape(-1)
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(values @ values):  # which takes half the time
                return
    finite = np.isfinite(block)
    if finite.all():
        return
    row, feature = np.argwhere(~finite.reshape(len(block), -1))[0]
    value = block.reshape(len(block), -1)[row, feature]
    raise non_finite_error(name, value, int(rows[row]), int(feature) if columns is None else columns[feature])


def non_finite_error(name: str, value: object, row: int, feature: int | str) -> SotddError:
    """The error for values that are NaN or infinite, with where the first of them is."""
    which = f"column {feature!r}" if isinstance(feature, str) else f"feature {feature:,}"
    return SotddError(
        f"dataset {name!r} has values that are NaN or infinite, the first ({value}) in row {row:,}, {which}: drop them."
    )


def _as_features(features: object, name: str) -> Features:
    """Whatever forms an array as one that is read in blocks: of NumPy, sparse, or a tensor where it is on a device."""
    if isinstance(features, np.ma.MaskedArray) and np.ma.is_masked(features):
        raise SotddError(f"features of dataset {name!r} have masked values: fill or drop them first.")
    if isinstance(features, StreamedFeatures):
        return features
    if is_sparse(features):
        return SparseRows.of(features, name)
    if is_tensor(features):
        return from_tensor(features, name)
    try:
        return np.asarray(features)
    except (MemoryError, SotddError):
        raise
    except Exception as error:  # of whatever library
        raise SotddError(
            f"features of {name!r} do not form an array (n, ...) ({first_line(error)}): pass numbers."
        ) from error


class NoRows(SotddError):  # noqa: N818  # the name says what is wrong
    """Raised where every row lacks a label or a feature."""


@dataclass(frozen=True, eq=False)
class Labels:
    """The distinct labels, and for every row the index of its label among them; -1 where it is missing.

    Examples
    --------
    >>> from sotdd.inputs.arrays import Labels
    >>> labels = Labels.of(["cat", None, "dog", "cat"], 4, "pets")
    >>> labels.classes, labels.codes.tolist()
    (('cat', 'dog'), [0, -1, 1, 0])
    """

    classes: Classes
    codes: Codes

    @classmethod
    def of(cls, values: object, n_points: int, name: str) -> Labels:
        """Number the labels of dataset ``name``, one for each of its ``n_points`` rows."""
        array = _label_array(values, name)
        if array.ndim != 1:
            raise SotddError(f"labels of dataset {name!r} have shape {array.shape}: expected one label per row.")
        if len(array) != n_points:
            entries, rows = say_count(len(array), "entry", "entries"), say_count(n_points, "row", "rows")
            raise SotddError(f"labels of dataset {name!r} have {entries} but features have {rows}: pass one per row.")
        if array.dtype.kind not in "biuUSVfcMm":
            return cls(*_codes_of_objects(array, name))
        known = ~np.isnan(array) if array.dtype.kind in "fcMm" else np.ones(len(array), bool)
        if isinstance(values, np.ma.MaskedArray):
            known &= ~np.ma.getmaskarray(values)
        codes = np.full(len(array), -1, np.int32)
        distinct, codes[known] = np.unique(array[known], return_inverse=True)
        is_date = array.dtype.kind in "Mm"  # tolist() would turn some dates into integers
        return cls(tuple(distinct if is_date else distinct.tolist()), codes)

    @classmethod
    def of_classes(cls, values: object, n_points: int, name: str) -> Labels:
        """The same for labels that are classes, every one of them there; others are refused."""
        labels = cls.of(values, n_points, name)
        labels.refuse_odd(name)
        labels.refuse_missing(name)
        return labels

    @classmethod
    def in_natural_order(cls, values: list[Any], codes: Codes) -> Labels:
        """Labels from distinct values and codes, with the classes sorted if they can be; None and NaN are missing."""
        known = [code for code, value in enumerate(values) if not is_missing(value)]
        with suppress(TypeError):  # values of several types have no order
            known.sort(key=lambda code: values[code])
        position = np.full(len(values) + 1, -1, np.int32)  # codes of -1 read the last entry
        position[known] = np.arange(len(known))
        return cls(tuple(values[code] for code in known), position[codes])

    @classmethod
    def one_class(cls, n_points: int) -> Labels:
        """Labels for points that have none: one class, called "all"."""
        return cls(("all",), np.zeros(n_points, np.int32))

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.codes)

    def take(self, rows: NDArray[np.integer] | None) -> Labels:
        """The labels of some rows, or of all for None; classes without a row are dropped."""
        codes = self.codes if rows is None else self.codes[rows]
        present = np.bincount(codes, minlength=len(self.classes)) > 0
        if present.all():
            return Labels(self.classes, codes)
        position = np.cumsum(present, dtype=np.int32) - 1
        return Labels(tuple(self.classes[code] for code in np.flatnonzero(present)), position[codes])

    def refuse_odd(self, name: str) -> None:
        """Refuse labels that are measurements, as of a regression, and those too long to be the names of classes."""
        length = max((len(label) for label in self.classes if isinstance(label, (str, bytes))), default=0)
        if length > _LONGEST:
            raise SotddError(
                f"dataset {name!r} has a label of {length:,} characters: check the quotes and the label column."
            )
        if self.are_measured():
            count = len(self.classes)
            raise SotddError(
                f"labels of dataset {name!r} are floats with {count:,} values, as of a regression", use={"bins": 10}
            )

    def are_measured(self, *, even_few: bool = False) -> bool:
        """Whether these are floats as measurements are: many, or ``even_few`` fractions that hardly repeat."""
        floats = [value for value in self.classes if isinstance(value, float)]
        odd = (not all(value.is_integer() for value in floats)) + (not self._repeat)
        enough = len(self.classes) > _MOST_VALUES or (even_few and odd == 2)
        return len(floats) == len(self.classes) and odd > 0 and enough

    @property
    def _repeat(self) -> bool:
        return len(self) >= _RARE * len(self.classes)

    def remark_many(self) -> Remarks:
        """A remark on labels that are integers with so many values that they may be measurements."""
        count = len(self.classes)
        many = count > (_MANY_VALUES if self._repeat else _MOST_VALUES)
        if not many or not all(isinstance(value, (int, float)) for value in self.classes):
            return ()
        return (Remark("many classes", classes=count),)

    def as_numbers(self, decimal: str = ".") -> Labels:
        """Labels read as text: integers if all are written as such, floats if all are numbers, or text as they are."""
        texts = [str(value) for value in self.classes]
        numbers: list[Any] = []
        with suppress(ValueError):
            numbers = [float(text.replace(decimal, ".")) for text in texts]
        with suppress(ValueError):
            numbers = [int(text) for text in texts]
            if [*map(str, numbers)] != texts:  # such as 007, which is a name
                numbers = []
        if not numbers:
            return self
        classes = tuple(sorted(set(numbers)))  # 1.0 and 1.00 are one class
        position = {number: code for code, number in enumerate(classes)}
        codes = np.array([*(position[number] for number in numbers), -1], np.int32)  # codes of -1 read the last entry
        return Labels(classes, codes[self.codes])

    def refuse_missing(self, name: str) -> None:
        """Refuse labels of which some are missing, and say how many."""
        count = int(np.count_nonzero(self.codes < 0))
        if count:
            labels = say_count(count, "label that is", "labels that are")
            raise SotddError(f"dataset {name!r} has {labels} missing (NaN or None)", use={"missing": "drop"})

    def numbers(self, name: str) -> NDArray[np.float64]:
        """The labels as numbers (n,), NaN where one is missing; refuse labels that are none."""
        if not all(isinstance(value, (int, float)) for value in self.classes):
            raise SotddError(f"labels of dataset {name!r} are not numbers: bins are for numbers only, leave it out.")
        try:
            values = np.array([*self.classes, np.nan], np.float64)[self.codes]  # codes of -1 read the last entry
        except OverflowError:
            values = np.full(len(self), np.inf)
        if not np.isfinite(values[self.codes >= 0]).all():
            raise SotddError(f"labels of dataset {name!r} hold numbers that are infinite or beyond float64: drop them.")
        return values


def find_edges(values: NDArray[np.float64], bins: int) -> NDArray[np.float64]:
    """Between which numbers there are so many bins of about equal size; fewer where values repeat."""
    halves = np.quantile(values / 2, np.linspace(0, 1, bins + 1))  # halves cannot overflow
    edges: NDArray[np.float64] = 2 * np.unique(halves)
    return edges


def cut(values: NDArray[np.float64], edges: NDArray[np.float64]) -> Labels:
    """Numbers cut into bins with these edges; NaN are missing."""
    codes = np.searchsorted(edges[1:-1], values, side="right")
    classes = tuple(f"{low:g} to {high:g}" for low, high in neighbours(edges))
    return Labels(classes or (f"{edges[0]:g}",), np.where(np.isnan(values), -1, codes).astype(np.int32))


def _label_array(labels: object, name: str) -> NDArray[Any]:
    """Labels as an array that keeps each label as it is: [1, "a"] must not become strings."""
    if hasattr(labels, "__array__"):
        try:
            return host_array(labels)
        except Exception as error:
            raise SotddError(f"labels of dataset {name!r} do not form an array ({first_line(error)}).") from error
    none = SotddError(f"labels of dataset {name!r} are {describe(labels)}: expected one label per row.")
    if isinstance(labels, (str, bytes, Mapping, Set)) or not hasattr(labels, "__iter__"):
        raise none
    try:
        return np.fromiter(labels, object)  # each as it is
    except TypeError as error:  # what is computed later, and sparse matrices, only seem to have entries
        raise none from error


def _codes_of_objects(array: NDArray[Any], name: str) -> tuple[Classes, Codes]:
    seen: dict[Hashable, int] = {}
    codes = np.full(len(array), -1, np.int32)
    for i, entry in enumerate(array):
        # Scalars of arrays and arrays of no dimension, such as a torch Dataset yields, become plain values.
        label = entry.item() if getattr(entry, "ndim", None) == 0 and hasattr(entry, "item") else entry
        if hasattr(label, "__array__") or isinstance(label, (list, set, dict)):
            kind = type(label).__name__
            raise SotddError(f"labels of dataset {name!r} hold a {kind}: expected one label per row, in one dimension.")
        if is_missing(label):
            continue
        try:
            codes[i] = seen.setdefault(label, len(seen))
        except Exception as error:  # a label may be an object of the user's, which raises what it likes
            raise SotddError(
                f"labels of dataset {name!r} hold a {type(label).__name__} in row {i:,}, which is not hashable: "
                "expected numbers, strings or other hashable labels."
            ) from error
    return tuple(seen), codes


def is_missing(label: object) -> bool:
    """Whether a label is None, pandas' NA, or not equal to itself, as NaN and NaT of any kind are."""
    if label is None or type(label).__name__ in {"NAType", "NaTType"}:
        return True
    try:
        return bool(label != label)  # noqa: PLR0124  # this is how NaN is told
    except Exception:  # noqa: BLE001  # objects may refuse to be compared: a signalling NaN does, and is missing
        return hasattr(label, "is_nan") and bool(label.is_nan())
