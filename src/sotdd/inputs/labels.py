"""Labels as they were found: some missing, some of them measurements rather than classes."""

from __future__ import annotations

import logging
from collections.abc import Hashable
from dataclasses import dataclass
from itertools import pairwise as neighbours

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.inputs.class_codes import codes_with_gaps, refuse_gaps

_log = logging.getLogger("sotdd.inputs")

# Floats with more values than this, fractions among them or hardly a value twice, are measurements.
_MOST_VALUES = 20
_RARE = 5


@dataclass(frozen=True, eq=False)
class Labels:
    """The distinct labels, and for every row the index of its own; -1 where it is missing.

    Examples
    --------
    >>> from sotdd.inputs.labels import Labels
    >>> labels = Labels.of(["cat", None, "dog", "cat"], 4, "pets")
    >>> labels.classes, labels.codes.tolist()
    (('cat', 'dog'), [0, -1, 1, 0])
    """

    classes: tuple[Hashable, ...]
    codes: NDArray[np.integer]

    @classmethod
    def of(cls, values: object, n_points: int, name: str) -> Labels:
        """Number labels of any kind."""
        return cls(*codes_with_gaps(values, n_points, name))

    @classmethod
    def one_class(cls, n_points: int) -> Labels:
        """Labels for points that have none."""
        return cls(("all",), np.zeros(n_points, np.int32))

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.codes)

    def take(self, rows: NDArray[np.integer] | None) -> Labels:
        """The labels of some rows; classes that none of them has are dropped."""
        codes = self.codes if rows is None else self.codes[rows]
        present = np.bincount(codes, minlength=len(self.classes)) > 0
        if present.all():
            return Labels(self.classes, codes)
        position = np.cumsum(present, dtype=np.int32) - 1
        return Labels(tuple(self.classes[code] for code in np.flatnonzero(present)), position[codes])

    def as_classes(self, bins: int | None, name: str) -> Labels:
        """These labels, or bins of them; measurements without bins are refused."""
        if bins is not None:
            return self._binned(bins, name)
        if self._are_measurements():
            raise SotddError(
                f"labels of dataset {name!r} are floats with {len(self.classes):,} distinct values, as of a "
                "regression: pass bins=10 to sotdd.open_dataset for ten classes of equal size, or make them integers."
            )
        return self

    def wanted_rows(self, drop_missing: bool, max_rows: int | None, seed: int, name: str) -> NDArray[np.integer] | None:
        """The rows to keep, ascending: those with a label, or a sample of them; None for all."""
        if not drop_missing:
            refuse_gaps(self.codes, name)
        dropped = int(np.count_nonzero(self.codes < 0))
        if not dropped and (max_rows is None or max_rows >= len(self) > 0):
            return None
        known = np.flatnonzero(self.codes >= 0)
        if dropped:
            _log.info("%s: %s rows without a label are dropped.", name, f"{dropped:,}")
        if not len(known):
            raise SotddError(f"dataset {name!r} has no rows with a label: expected at least one.")
        if max_rows is not None and max_rows < len(known):
            return sampled(known, max_rows, seed)
        return known

    def _are_measurements(self) -> bool:
        if len(self.classes) <= _MOST_VALUES or not all(isinstance(value, float) for value in self.classes):
            return False
        fractions = any(not value.is_integer() for value in self.classes if isinstance(value, float))
        return fractions or len(self) < _RARE * len(self.classes)

    def _binned(self, bins: int, name: str) -> Labels:
        """Classes of about equal size, by quantiles."""
        if not all(isinstance(value, (int, float)) for value in self.classes):
            raise SotddError(f"labels of dataset {name!r} are not numbers: bins are for numbers only, leave it out.")
        values = np.array([*self.classes, np.nan], np.float64)[self.codes]  # -1 takes the last
        known = self.codes >= 0
        if not np.isfinite(values[known]).all():
            raise SotddError(f"labels of dataset {name!r} hold infinite numbers: drop those rows first.")
        if not known.any():
            return self
        edges = np.unique(np.quantile(values[known], np.linspace(0, 1, bins + 1)))
        codes = np.searchsorted(edges[1:-1], values, side="right")
        classes = tuple(f"{low:g} to {high:g}" for low, high in neighbours(edges))
        if len(classes) < bins:
            _log.info("%s: labels repeat so often that there are %d bins, not %d.", name, max(1, len(classes)), bins)
        return Labels(classes or (f"{edges[0]:g}",), np.where(known, codes, -1).astype(np.int32))


def sampled(rows: NDArray[np.integer], count: int, seed: int) -> NDArray[np.integer]:
    """A sample without replacement, in the order of the rows."""
    return np.sort(np.random.default_rng(seed).choice(rows, count, replace=False))
