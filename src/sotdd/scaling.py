"""One affine map for every dataset that is compared together."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sotdd.data import LabelledData
from sotdd.errors import SotddError

# A spread this small beside the mean is rounding in the sums: the data are constant.
_ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class Scaler:
    """Subtracts a centre and divides by one scalar, so that moments stay moderate.

    One scalar, not one per feature: the geometry of the data is kept, and distances come
    out in units of the pooled data's own spread.

    Attributes
    ----------
    centre
        What is subtracted, one number per feature.
    scale
        What everything is divided by.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> scaler = sotdd.Scaler(np.array([1.0, 2.0]), 2.0)
    >>> scaler
    Scaler(2 features, scale 2)
    """

    centre: NDArray[np.float64]
    scale: float

    def __post_init__(self) -> None:
        """Check and freeze the numbers."""
        try:
            centre = np.array(self.centre, np.float64)
            scale = float(self.scale)
        except (TypeError, ValueError) as error:
            raise SotddError("a Scaler needs an array of numbers as centre and a number as scale.") from error
        if centre.ndim != 1 or not np.isfinite(centre).all():
            raise SotddError(f"a Scaler's centre has shape {centre.shape}: expected one finite number per feature.")
        if not (math.isfinite(scale) and scale > 0 and math.isfinite(1 / scale)):
            raise SotddError(f"a Scaler's scale is {scale}: expected a positive number.")
        centre.flags.writeable = False
        object.__setattr__(self, "centre", centre)
        object.__setattr__(self, "scale", scale)

    @classmethod
    def fit(cls, datasets: Sequence[LabelledData]) -> Scaler:
        """Pool the points of all datasets: their mean, and their spread averaged over directions.

        The mean over uniform directions of the variance of a projection is the trace of the
        covariance divided by the number of features; the scale is its square root. Constant
        data get scale 1.
        """
        magnitude = max(data.magnitude() for data in datasets)
        mean, variation, points = _pooled(datasets, 1.0 / magnitude)
        spread = math.sqrt(variation / (points * mean.size))
        if spread <= _ROUNDING * float(np.max(np.abs(mean))):
            spread = 0.0
        centre, scale = mean * magnitude, spread * magnitude
        if not (np.isfinite(centre).all() and math.isfinite(scale) and (scale == 0 or math.isfinite(1 / scale))):
            raise SotddError(
                f"features as large as {magnitude:.3g} cannot be scaled in float64: bring them to a usual range first."
            )
        return cls(centre, scale or 1.0)

    def __repr__(self) -> str:
        """Size and scale, for people."""
        return f"Scaler({self.centre.size:,} features, scale {self.scale:.6g})"

    def fingerprint(self) -> str:
        """A short name for exactly these numbers."""
        return hashlib.sha256(self.centre.tobytes() + np.float64(self.scale).tobytes()).hexdigest()[:16]

    def to_dict(self) -> dict[str, object]:
        """A summary as JSON: the scale, and a fingerprint of scale and centre."""
        return {"scale": self.scale, "fingerprint": self.fingerprint()}


def _pooled(datasets: Sequence[LabelledData], unit: float) -> tuple[NDArray[np.float64], float, int]:
    """Mean, summed squared deviations and number of all points, in units of 1 / ``unit``.

    Each dataset is summed on its own and the sums are joined afterwards, so that two datasets
    give the same numbers in either order.
    """
    parts = [_moments(data, unit) for data in datasets]
    points = sum(count for _, _, count in parts)
    mean = sum(part_mean * (count / points) for part_mean, _, count in parts)
    mean = np.asarray(mean, np.float64)
    variation = sum(
        part_variation + count * float(np.sum((part_mean - mean) ** 2)) for part_mean, part_variation, count in parts
    )
    return mean, variation, points


def _moments(data: LabelledData, unit: float) -> tuple[NDArray[np.float64], float, int]:
    """Mean (d,), summed squared deviations and count of one dataset, joined block by block.

    Chan's update keeps the digits that sums of squares would lose on features far from zero.
    """
    from sotdd import kernels

    mean = np.zeros(data.n_features)
    block_mean = np.empty(data.n_features)
    variation = 0.0
    count = 0
    for block in data.blocks():
        rows = data.rows(block)
        kernels.block_mean(rows, unit, block_mean)
        gap = block_mean - mean
        total = count + len(rows)
        variation += kernels.block_deviation(rows, unit, block_mean)
        variation += float(gap @ gap) * count * len(rows) / total
        mean += gap * (len(rows) / total)
        count = total
    return mean, variation, count
