"""What a file of another party holds, checked before anything reads it.

Anyone can write a file with a valid checksum. Compiled loops trust the shapes, the order and the signs of what they
are given, so every entry of a header and every array passes through here first.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.files import shown
from sotdd.sketches.counting import BINS, Histograms

# Neighbours that fall by less than this share of the largest value in their row are equal but for rounding.
_ROUNDING = 1e-5

# Projected values are float32.
_LARGEST = float(np.finfo(np.float32).max)

# More points than this were never counted: sums of counts stay within 64 bits.
_MOST_POINTS = 2**62


class Checked:
    """The header and the arrays of a file, handed out one by one, each held to what it must be."""

    def __init__(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], name: str) -> None:
        self._header, self._arrays, self._name = header, arrays, name

    def refused(self, what: str) -> SotddError:
        """The error for a file that holds something that it cannot."""
        return SotddError(f"{shown(self._name)} cannot be used: {what}. It was not written by sotdd; make it again.")

    def within(self, key: str) -> Checked:
        """An object in the header, with the same arrays."""
        inner = self._header.get(key)
        if not isinstance(inner, dict):
            raise self.refused(f"its {key!r} is missing")
        return Checked(inner, self._arrays, self._name)

    # ------------------------------------------------------------------ the header

    def objects(self, key: str) -> list[Checked]:
        """Objects in a list."""
        inner = self._header.get(key)
        if not isinstance(inner, list) or not all(isinstance(entry, dict) for entry in inner):
            raise self.refused(f"its {key!r} are missing")
        return [Checked(entry, self._arrays, self._name) for entry in inner]

    def has(self, key: str) -> bool:
        """Whether the header has an entry that is not null."""
        return self._header.get(key) is not None

    def text(self, key: str) -> str:
        """A text."""
        value = self._header.get(key)
        if not isinstance(value, str):
            raise self.refused(f"its {key!r} is no text")
        return value

    def one_of(self, key: str, allowed: tuple[str, ...]) -> Any:  # noqa: ANN401
        """One of some texts."""
        value = self.text(key)
        if value not in allowed:
            raise self.refused(f"its {key!r} is none that is known")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Texts; none where the entry is missing, as in files of older versions."""
        values = self._header.get(key, [])
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise self.refused(f"its {key!r} are no texts")
        return tuple(values)

    def truth(self, key: str) -> bool:
        """True or false."""
        value = self._header.get(key)
        if not isinstance(value, bool):
            raise self.refused(f"its {key!r} is neither true nor false")
        return value

    def count(self, key: str, most: int = _MOST_POINTS) -> int:
        """A whole number of at least one, and at most another."""
        number = self._whole(self._header.get(key), key, 1)
        if number > most:
            raise self.refused(f"its {key!r} is {number:,}, more than {most:,}")
        return number

    def number(self, key: str) -> float:
        """A finite number."""
        value = self._header.get(key)
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
            raise self.refused(f"its {key!r} is no number")
        return float(value)

    def labels(self, key: str = "classes") -> tuple[Hashable, ...]:
        """Labels that JSON can hold, no two the same."""
        values = self._header.get(key)
        if not isinstance(values, list) or not all(_is_label(value) for value in values):
            raise self.refused(f"its {key!r} are no labels")
        if len(set(values)) < len(values):
            raise self.refused(f"its {key!r} hold a label twice")
        return tuple(values)

    def class_counts(self, n_classes: int, key: str = "counts") -> list[int]:
        """How many points each class has."""
        values = self._header.get(key)
        if not isinstance(values, list) or len(values) != n_classes:
            raise self.refused(f"its {key!r} are not one for each class")
        return [self._whole(value, key, 0) for value in values]

    def groups(self, key: str) -> list[tuple[Hashable, int]]:
        """Groups of counted values: a label, or null for all, and how many points it has."""
        values = self._header.get(key)
        pairs = isinstance(values, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in values)
        if not pairs or not all(_is_label(label) or label is None for label, _ in values):  # type: ignore[union-attr]
            raise self.refused(f"its {key!r} are no groups of points")
        found = [(label, self._whole(size, key, 0)) for label, size in values]  # type: ignore[union-attr]
        if len({label for label, _ in found}) < len(found):
            raise self.refused(f"its {key!r} hold a group twice")
        return found

    def settings(self, key: str) -> dict[str, Any]:
        """An object of settings."""
        value = self._header.get(key)
        if not isinstance(value, dict):
            raise self.refused(f"its {key!r} is missing")
        return value

    def _whole(self, value: object, key: str, least: int) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _MOST_POINTS:
            raise self.refused(f"its {key!r} hold {value!r} where a whole number of at least {least} belongs")
        return value

    # ------------------------------------------------------------------ the arrays

    def holds(self, name: str) -> bool:
        """Whether there is an array of this name."""
        return name in self._arrays

    @property
    def counts_values(self) -> bool:
        """Whether values were counted in bins anywhere."""
        return any(name.endswith(" counts") for name in self._arrays)

    def array(self, name: str, dtypes: tuple[type, ...], shape: tuple[int | None, ...]) -> NDArray[Any]:
        """An array of one of these types and of this shape, where None stands for any size of at least one."""
        array = self._arrays.get(name)
        if array is None:
            raise self.refused(f"it has no array {name!r}")
        if not any(array.dtype == dtype for dtype in dtypes):
            raise self.refused(f"its array {name!r} has the type {array.dtype}")
        fits = array.ndim == len(shape) and all(
            size == (wanted if wanted is not None else max(size, 1))
            for size, wanted in zip(array.shape, shape, strict=True)
        )
        if not fits:
            raise self.refused(f"its array {name!r} has the shape {array.shape}")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise self.refused(f"its array {name!r} holds NaN or infinity")
        return array

    def ascending(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        """An array whose rows do not fall, beyond what rounding leaves of equal means."""
        wide = array.astype(np.float64)
        if (np.diff(wide, axis=1) < -_ROUNDING * np.abs(wide).max(axis=1, keepdims=True)).any():
            raise self.refused(f"the rows of its array {name!r} are not sorted")
        return array

    def histograms(self, key: str, name: str, n_projections: int, n_bins: int = BINS) -> dict[Hashable, Histograms]:
        """Groups of counted values, whose counts lie within their ranges and add up to their points."""
        groups = self.groups(key)
        if not groups:
            return {}
        counts = self.array(f"{name} counts", (np.uint32, np.uint64), (len(groups), n_projections, n_bins))
        low, high = self.ranges(name, (len(groups), n_projections))
        histograms = {}
        for index, (label, n_points) in enumerate(groups):
            group = Histograms(counts[index].copy(), low[index].copy(), high[index].copy(), n_points)
            if not group.is_sound():
                raise self.refused(f"the counts of its {name!r} do not fit their ranges")
            histograms[label] = group
        return histograms

    def not_negative(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        """An array without negative numbers, whose sum is no more than points can be counted."""
        if (array < 0).any():
            raise self.refused(f"its array {name!r} holds negative numbers")
        if array.dtype.kind in "iu" and float(array.sum(dtype=np.float64)) > _MOST_POINTS:
            raise self.refused(f"its array {name!r} counts more than there can be")
        return array

    def lengths(self, name: str, shape: tuple[int | None, ...]) -> NDArray[np.float64]:
        """How far projected values are apart: not negative, and no more than such values can be."""
        array = self.not_negative(name, self.array(name, (np.float64,), shape))
        if (array > 4 * _LARGEST).any():
            raise self.refused(f"its array {name!r} holds numbers beyond all projected values")
        return array

    def ranges(self, name: str, shape: tuple[int, ...]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The lowest and the highest value of rows; infinite the wrong way round where nothing was counted."""
        ends = []
        for end in ("low", "high"):
            array = self._arrays.get(f"{name} {end}")
            if array is None or array.dtype != np.float64 or array.shape != shape or np.isnan(array).any():
                raise self.refused(f"its array '{name} {end}' is missing, or none that was counted")
            ends.append(array)
        low, high = ends
        nothing = (low == np.inf) & (high == -np.inf)
        within = (np.abs(low) <= _LARGEST) & (np.abs(high) <= _LARGEST)
        if not (nothing | (within & (low <= high))).all():
            raise self.refused(f"the ranges of its {name!r} are too wide or the wrong way round")
        return low, high


def _is_label(value: object) -> bool:
    return isinstance(value, (str, int, bool)) or (isinstance(value, float) and math.isfinite(value))
