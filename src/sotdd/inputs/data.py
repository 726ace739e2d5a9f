"""Labelled datasets: checked once, when they come in, and read in blocks of rows afterwards."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise as neighbours
from os import PathLike
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sotdd.basics.errors import SotddError, check_name
from sotdd.basics.remarks import Remark, Remarks, join_remarks
from sotdd.basics.text import join_names, quote, say_count
from sotdd.inputs.arrays import Labels, check_features, cut, features_and_labels, find_edges
from sotdd.inputs.features import Features, take_rows
from sotdd.inputs.schema import MISSING, Category, ColumnKind, Feature, LeftOut, Names, Schema, find_columns


class Indexed(Protocol):
    """What has rows by number, such as a torch Dataset."""

    def __getitem__(self, row: int, /) -> Any: ...  # noqa: ANN401  # a row is whatever the source makes of it


# What `distance` and its relatives take for a dataset: all that `sotdd.open_dataset` opens. That is
# (features, labels), features alone, a frame, a path, a torch or Hugging Face dataset.
Dataset: TypeAlias = """
    tuple[ArrayLike, ArrayLike | Sequence[Hashable]] | ArrayLike | LabelledData | PathLike[str] | Indexed |
    Iterable[object]
"""

# Rows are converted, checked and projected in blocks of at most this many values and this many rows.
_BLOCK_VALUES, _MOST_ROWS = 1 << 19, 512
# Fewer features than this are no pixels.
FEWEST_PIXELS = 16
# So many rows tell whether pixels are bytes, which are larger than this in any picture that is not black.
_PIXEL_ROWS, _BRIGHT = 32, 32
# How much memory sums of each class over a part of the features may take.
_CLASS_BYTES = 64 << 20


@dataclass(frozen=True, eq=False)
class Target:
    """Labels that are numbers (n,), as of a regression, which are cut into this many ``bins``."""

    values: NDArray[np.float64]
    bins: int


@dataclass(frozen=True, eq=False)
class Origin:
    """What was decided when a dataset was opened.

    Attributes
    ----------
    labelled
        Whether there are labels, or one class was asked for; False where a source simply had none.
    left_out
        The columns of the table that are no features, and why.
    categories
        The columns of categories, of which each value is a feature.
    gaps
        The columns of numbers in which values are missing, and in which rows (n,): these hold a mean, and a feature
        says so.
    remarks
        What else a reader should know.
    target
        The numbers behind the classes, where these are bins.
    groups
        (n,) which rows belong together, such as those of one person or one day; None where each is by itself.
    rows_lost, rows_read
        How many rows were left out, or could not be judged whole, for a missing value or label, and how many there
        were; zero where none was.
    rows_seen
        How many rows the source has, of which a sample may have been taken; 0 where that is not known.
    unread
        Of a table, the columns that were not asked for.
    label_column, group_column
        Of a table, the columns of labels and of groups, where there are any.
    """

    labelled: bool = True
    left_out: Mapping[str, LeftOut] = field(default_factory=dict)
    categories: Mapping[str, Category] = field(default_factory=dict)
    gaps: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    remarks: Remarks = ()
    target: Target | None = None
    groups: NDArray[np.int64] | None = None
    rows_lost: int = 0
    rows_read: int = 0
    rows_seen: int = 0
    unread: Names = ()
    label_column: str | None = None
    group_column: str | None = None

    @property
    def said(self) -> Remarks:
        """All remarks, of which the columns that were left out are one."""
        columns = {column: left.why for column, left in self.left_out.items()}
        return (*([Remark("columns left out", columns=columns)] if columns else []), *self.remarks)

    def take(self, rows: NDArray[np.integer]) -> Origin:
        """The same for some of the rows."""
        categories = {name: replace(one, codes=one.codes[rows]) for name, one in self.categories.items()}
        gaps = {name: mask[rows] for name, mask in self.gaps.items()}
        target = None if self.target is None else Target(self.target.values[rows], self.target.bins)
        groups = None if self.groups is None else self.groups[rows]
        return replace(self, categories=categories, gaps=gaps, target=target, groups=groups)

    def also(self, *remarks: Remark) -> Origin:
        """The same with further remarks."""
        return replace(self, remarks=join_remarks(self.remarks, remarks)) if remarks else self

    @property
    def missing(self) -> dict[str, NDArray[np.bool_]]:
        """The columns in which values are missing, and in which rows (n,)."""
        masks = {**self.gaps, **{name: one.codes == MISSING for name, one in self.categories.items()}}
        return {column: mask for column, mask in masks.items() if mask.any()}


@dataclass(frozen=True, eq=False)
class LabelledData:
    """Features and labels that were checked and belong together; the features stay where they are.

    Attributes
    ----------
    name
        What messages call the dataset.
    features
        The array as given, of shape (n, ...) and any real dtype, never copied whole; or a tensor on
        a device, which stays there; or `StreamedFeatures`, which are read in blocks, as those of sparse
        matrices are made dense.
    classes
        The distinct labels.
    codes
        For every row, the index of its label in ``classes``.
    columns
        The names of the features where they are columns of a table; None otherwise.
    origin
        What was decided when it was opened, such as which columns were left out.

    Examples
    --------
    >>> from sotdd.inputs.data import LabelledData
    >>> data = LabelledData.of(([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], ["cat", "dog", "cat"]))
    >>> data
    LabelledData('data': 3 points, 2 features, 2 classes)
    >>> data.classes, data.counts.tolist()
    (('cat', 'dog'), [2, 1])
    """

    name: str
    features: Features
    classes: tuple[Hashable, ...]
    codes: NDArray[np.integer]
    columns: tuple[str, ...] | None = None
    origin: Origin = Origin()

    @classmethod
    def of(cls, source: Dataset, name: str | None = None) -> LabelledData:
        """Check arrays: ``(features, labels)``, or ``features`` alone, which are one class.

        `sotdd.open_dataset` does the same with arrays, and opens much else.
        """
        check_name(name)
        if isinstance(source, LabelledData):
            return source if not name or name == source.name else replace(source, name=name)
        name = name or "data"
        features, values = features_and_labels(source, name)
        array = check_features(features, name)
        labels = Labels.one_class(len(array)) if values is None else Labels.of_classes(values, len(array), name)
        return cls(name, array, labels.classes, labels.codes, origin=Origin(labelled=values is not None))

    def __repr__(self) -> str:
        """Name and size, for people."""
        points, features = say_count(self.n_points, "point"), say_count(self.n_features, "feature")
        classes = say_count(len(self.classes), "class", "classes")
        return f"LabelledData({quote(self.name)}: {points}, {features}, {classes})"

    @property
    def remarks(self) -> Remarks:
        """What was decided for you when it was opened, such as which columns were left out."""
        return self.origin.said

    @property
    def groups(self) -> NDArray[np.int64] | None:
        """(n,) which rows belong together; None where each is by itself."""
        return self.origin.groups

    @property
    def judged(self) -> Remark | None:
        """Which columns of a table are features and which were left out, why, and for which value; None for no table.

        The facts are ``columns``, a tuple, and ``left_out``, of each column why, the value and its row.
        """
        if self.columns is None:
            return None
        table = self.table
        return Remark("columns judged", columns=table, left_out={
            column: {"why": left.why, "value": left.value, "row": left.row}
            for column, left in self.origin.left_out.items() if column not in table
        })  # fmt: skip

    @property
    def table(self) -> Names:
        """The columns of the table that features are made of; none where there is no table."""
        return tuple(dict.fromkeys(find_columns(self.columns or ())))

    @property
    def schema(self) -> Schema | None:
        """What the columns of the table are; None where there is no table."""
        if self.columns is None:
            return None
        origin, kinds = self.origin, dict[str, ColumnKind]()
        for column in self.table:
            category = origin.categories.get(column)
            if category is not None:
                kinds[column] = "category" if category.flag is None else "flag"
            elif (
                Feature(column).name in self.columns
            ):  # one that is empty here is left out, whatever features it has elsewhere
                kinds[column] = "number"
        left_out = {column: left for column, left in origin.left_out.items() if column not in kinds}
        return Schema(kinds, left_out, origin.unread, origin.label_column, origin.group_column)

    def group_features(self) -> dict[str, str | None]:
        """Of the features that are no numbers, the category that each is a value of; None for marks of gaps."""
        made = {name: Feature.of(name) for name in self.columns or ()}
        categories = self.origin.categories
        return {name: one.column if one.column in categories else None
                for name, one in made.items() if one.kind != "number"}  # fmt: skip

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many points each class has."""
        return np.bincount(self.codes, minlength=len(self.classes)).astype(np.int64)

    @property
    def offsets(self) -> NDArray[np.int64]:
        """(C + 1,) where the classes lie once points are grouped by class."""
        return np.concatenate([[0], np.cumsum(self.counts)]).astype(np.int64)

    def group(self) -> NDArray[np.int64]:
        """The points (n,) class by class, those of a class in their own order."""
        # Two bytes are sorted by digits, ten times as fast.
        narrow = self.codes.astype(np.uint16) if len(self.classes) <= 1 << 16 else self.codes
        return np.argsort(narrow, kind="stable")

    @property
    def n_points(self) -> int:
        """How many points there are."""
        return len(self.features)

    @property
    def point_shape(self) -> tuple[int, ...]:
        """The shape of one point, as it came in."""
        return self.features.shape[1:]

    @property
    def n_features(self) -> int:
        """How many numbers make up a point, whatever its shape."""
        return math.prod(self.point_shape)

    def blocks(self, most: int = _MOST_ROWS) -> list[slice]:
        """Cut the rows into blocks of at most this many, and so small that converting one takes little memory."""
        return cut_range(self.n_points, min(most, _BLOCK_VALUES // self.n_features))

    def feature_parts(self) -> list[slice]:
        """Cut the features into parts, so that sums of each class over one take little memory; usually there is one."""
        return cut_range(self.n_features, _CLASS_BYTES // (8 * len(self.classes)))

    def rows(self, block: slice | NDArray[np.integer]) -> NDArray[Any]:
        """One block of points as a matrix (rows, n_features), in the dtype it came in.

        If the compiled loops cannot read that dtype, this block is converted to float64.
        """
        matrix = np.asarray(self.features[block]).reshape(-1, self.n_features)
        if matrix.dtype.isnative and matrix.dtype in (np.uint8, np.float32, np.float64):
            return np.ascontiguousarray(matrix)
        return matrix.astype(np.float64)

    def take(self, rows: NDArray[np.integer]) -> LabelledData:
        """The points of some rows, copied; classes without a point among them are left out."""
        features, kept = take_rows(self.features, rows), Labels(self.classes, self.codes).take(rows)
        return replace(self, features=features, classes=kept.classes, codes=kept.codes, origin=self.origin.take(rows))


def cut_range(count: int, size: int) -> list[slice]:
    """Numbers from zero to ``count`` in slices of this size, or of one where that is zero."""
    edges = [*range(0, count, max(1, size)), count]
    return [slice(start, stop) for start, stop in neighbours(edges)]


# ------------------------------------------------------------------ several datasets


def same_features(datasets: Sequence[LabelledData]) -> int:
    """Return the number of features of all datasets, or refuse datasets that do not agree."""
    first = datasets[0]
    for other in datasets[1:]:
        turned = other.features.ndim == first.features.ndim == 4 and other.point_shape != first.point_shape
        if other.n_features != first.n_features or turned:
            images = min(other.features.ndim, first.features.ndim) > 2
            own, wanted = (f" ({' × '.join(map(str, data.point_shape))})" if images else "" for data in (other, first))
            how = "bring them to one shape" if images else "give all the same features."
            raise SotddError(
                f"dataset {other.name!r} has {say_count(other.n_features, 'feature')}{own} but dataset {first.name!r} "
                f"has {first.n_features:,}{wanted}: {how}",
                by=("image_size", "image_mode") if images else (),
            )
    return first.n_features


def remark_positions(sides: Sequence[LabelledData], columns: Names | None) -> Remarks:
    """Remarks on the datasets whose columns have no names, where the projections or other datasets have names."""
    if columns is None and all(data.columns is None for data in sides):
        return ()
    unnamed = dict.fromkeys(data.name for data in sides if data.columns is None)
    return tuple(remark_position(name, True) for name in unnamed)


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
        raise SotddError(f"targets are cut into {join_names(sorted(bins))} bins: cut all alike", by=("bins",))
    edges = find_edges(np.concatenate([target.values for target in known]), bins.pop())
    result = []
    for data, target in zip(datasets, targets, strict=True):
        if target is None:
            result.append(data)
            continue
        labels = cut(target.values, edges).take(None)
        result.append(replace(data, classes=labels.classes, codes=labels.codes))
    return result


def refuse_half_labelled(datasets: Sequence[LabelledData]) -> None:
    """Refuse to compare data that have labels with data that have none, unless one class was asked for."""
    bare = next((data for data in datasets if not data.origin.labelled), None)
    rich = next((data for data in datasets if data.origin.labelled and len(data.classes) > 1), None)
    if bare is None or rich is None:
        return
    same_features(datasets)  # which would be the first thing to put right
    column = rich.origin.label_column
    more = {} if column is None else {"exclude": column}
    raise half_labelled_error(bare.name, rich.name, len(rich.classes), **more)


def half_labelled_error(bare: str, rich: str, n_classes: int, **more: object) -> SotddError:
    """The error for data without labels beside data that have them, with the settings that leave these out."""
    found = f"dataset {bare!r} has no labels but dataset {rich!r} has {say_count(n_classes, 'class', 'classes')}"
    return SotddError(
        f"{found}; name the labels of both, or leave them out",
        use={"label": None, **more},
    )


def find_unlabelled(data: LabelledData) -> Remarks:
    """The remark on a dataset in which no labels were found, where they were looked for."""
    return tuple(remark for remark in data.origin.remarks if remark.kind == "no labels")


def remark_on_ranges(sides: Sequence[LabelledData]) -> Remarks:
    """A remark where some datasets hold bytes and others fractions of them, judging by the first rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sotdd.inputs.data import LabelledData
    >>> pixels = np.random.default_rng(0).integers(256, size=(10, 8, 8)).astype(np.uint8)
    >>> remark_on_ranges([LabelledData.of(pixels, "a"), LabelledData.of(pixels / 255, "b")])
    (Remark: values of 'a' go up to 255 and those of 'b' up to 1: divide the former by 255 if both are images,)
    """
    names: dict[str, str] = {}
    for side in reversed(sides):
        values = side.rows(slice(0, _PIXEL_ROWS))
        low, high = values.min(), values.max()
        if low >= 0 and _BRIGHT <= high <= 255 and (values == np.round(values)).all():
            names["bytes"] = side.name
        elif low >= -1.000001 and 0.5 < high <= 1.000001:
            names["fractions"] = side.name
    if not {"bytes", "fractions"} <= names.keys():
        return ()
    return (Remark("ranges differ", whole=names["bytes"], fractions=names["fractions"]),)
