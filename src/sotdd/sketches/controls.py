"""What a sketch carries so that its distances are controlled as those of data are (`sotdd.engines.controls`).

*Labels.* Of each projection, the mean and the standard deviation of the projected points under the label terms that
were drawn, and under further draws of the label law. All sketches through the same projections have the same draws, so
the Gaussian cost of a pair and its mean over the label law follow from these numbers alone.

*Directions.* Of each projection, a few moments of the projected points and of their classes; and of the points, what
the means of these moments over directions follow from: mean lengths, and the mean of all points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.engines.controls import Controls, Lengths, controlled_by, pair_columns
from sotdd.engines.protocol import Engine, View
from sotdd.inputs.data import LabelledData
from sotdd.projections.draws import BLOCK
from sotdd.projections.recipe import Projections
from sotdd.results.estimators import FEWEST_FITTED

# Half a unit in the last place of float32; and what rounding may add to the squared gaps between places.
_ROUNDING = 2.0**-24
_TOLERATED = 0.01


@dataclass(frozen=True, eq=False)
class Carried:
    """What the controls of one sketch are made of.

    Attributes
    ----------
    places
        (L, 1 + J, 2) mean and standard deviation of the projected points under the label terms drawn, and under J
        further draws; None where the label law is not controlled.
    values
        (L, 5) the mean of the projected features, the mean square of their class means, and three even moments; None
        where directions are not controlled.
    lengths
        What the means of the values over directions follow from; None with them.
    """

    places: NDArray[np.float32] | None
    values: NDArray[np.float64] | None
    lengths: Lengths | None

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        for array in (self.places, self.values, None if self.lengths is None else self.lengths.mean):
            if array is not None:
                array.flags.writeable = False

    @classmethod
    def of(cls, places: NDArray[Any] | None, values: NDArray[np.float64] | None, lengths: Lengths | None) -> Carried:
        """Only what is finite: a control that overflows controls nothing."""
        with np.errstate(over="ignore"):
            narrow = None if places is None else places.astype(np.float32)
        if narrow is not None and not np.isfinite(narrow).all():
            narrow = None
        if values is None or lengths is None or not (np.isfinite(values).all() and lengths.is_finite):
            values = lengths = None
        if lengths is not None:  # as a file keeps it, so that a sketch from one gives the same numbers
            lengths = replace(lengths, mean=lengths.mean.astype(np.float32).astype(np.float64))
        return cls(narrow, values, lengths)


def weights_of(projections: Projections) -> NDArray[np.float64] | None:
    """(L,) what each projection counts by in a mean; None where all count the same."""
    if not projections.weighted:
        return None
    starts = range(0, projections.n_projections, BLOCK)
    weights = np.concatenate([projections.draw(start, start + BLOCK).importance for start in starts])
    return None if (weights == 1).all() else weights


class Carrying:
    """Gathers what a dataset's sketch carries while its projections go by."""

    def __init__(self, data: LabelledData, projections: Projections, engine: Engine) -> None:
        self._controls, self._engine = Controls.of(projections, [data], engine), engine
        self._places: list[Any] = []
        self._values: list[Any] = []

    @property
    def degree(self) -> int:
        """Orders of class moments that views should have."""
        return self._controls.degree

    def seen(self, view: View) -> None:
        """Take what one view says."""
        if self.degree:
            places, values = self._controls.seen_alone(view, self._engine)
            self._places += places
            self._values += values

    def carried(self) -> Carried | None:
        """What was gathered; None where nothing can be controlled."""
        if not self.degree:
            return None
        places, values = (self._engine.collect(parts) if parts else None for parts in (self._places, self._values))
        lengths = self._controls.lengths
        return Carried.of(places, values, None if lengths is None else lengths[0])


@dataclass(frozen=True, eq=False)
class Controlling:
    """The controls of a pair of sketches.

    Attributes
    ----------
    columns
        (L, q) controls of mean zero.
    estimator
        The name of the estimator.
    fitted
        Whether their coefficients are fitted.
    """

    columns: NDArray[np.float64]
    estimator: str
    fitted: bool

    @classmethod
    def of(cls, a: Carried | None, b: Carried | None, weights: NDArray[np.float64], p: float) -> Controlling | None:
        """What both sketches allow; None where they allow nothing."""
        if a is None or b is None:
            return None
        label = sides = None
        if a.places is not None and b.places is not None and a.places.shape == b.places.shape:
            label = _label_columns(a.places, b.places, p)
        if a.lengths is not None and b.lengths is not None:
            sides = [
                (one.lengths, one.values, one.lengths.columns(one.values, weights))
                for one in (a, b)
                if one.lengths is not None and one.values is not None
            ]
        if label is None and (sides is None or len(weights) < FEWEST_FITTED):
            return None  # directions are controlled by coefficients, which few projections cannot tell
        fitted = sides is not None
        return cls(pair_columns(label, sides, weights), controlled_by(label is not None, fitted), fitted)


def _label_columns(a: NDArray[np.float32], b: NDArray[np.float32], p: float) -> NDArray[np.float64] | None:
    """Label controls (3, L) of two sketches; None where float32 leaves too little of them.

    Under wild draws of the label law places are large, and the gap between two that are nearly the same is rounding.
    """
    from sotdd.kernels.moments import gaussian_gaps

    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    gaps, rounding = np.abs(wide_a - wide_b), _ROUNDING * np.maximum(np.abs(wide_a), np.abs(wide_b))
    with np.errstate(over="ignore"):
        if float(np.mean((gaps + rounding) ** 2)) > (1 + _TOLERATED) * float(np.mean(gaps**2)):
            return None
        columns = np.empty((len(a), 3))
        gaussian_gaps(wide_a, wide_b, p, columns)
    return np.ascontiguousarray(columns.T)
