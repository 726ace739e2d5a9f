"""One affine map for every dataset that is compared together."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sotdd.checks import check_positive
from sotdd.data import Dataset, LabelledData, same_features
from sotdd.errors import SotddError
from sotdd.inputs import labelled
from sotdd.tensors import DeviceFeatures


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
        scale = check_positive(self.scale, "a Scaler's scale")
        centre = np.array(self.centre)
        if centre.ndim != 1 or centre.dtype.kind not in "biuf" or not np.isfinite(centre).all():
            raise SotddError(
                f"a Scaler's centre has shape {centre.shape} and dtype {centre.dtype}: expected one finite number per "
                "feature."
            )
        if not math.isfinite(1 / scale):
            raise SotddError(f"a Scaler's scale is {scale}: expected a number that can be divided by.")
        centre = centre.astype(np.float64)
        centre.flags.writeable = False
        object.__setattr__(self, "centre", centre)
        object.__setattr__(self, "scale", scale)

    @classmethod
    def fit(cls, datasets: Sequence[Dataset] | Mapping[str, Dataset]) -> Scaler:
        """Pool the points of all datasets: their mean, and their spread averaged over directions.

        The mean over uniform directions of the variance of a projection is the trace of the
        covariance divided by the number of features; the scale is its square root. Constant
        data get scale 1.
        """
        parts = labelled(datasets)
        same_features(parts)
        # Deviations are summed from a point among the data: constant features then have none at all,
        # whatever their value. The smallest first row is the same for datasets in any order.
        pivot = np.min([data.rows(slice(0, 1))[0].astype(np.float64) for data in parts], axis=0)
        reach = max(data.reach(pivot) for data in parts)
        if not (math.isfinite(reach) and math.isfinite(1 / reach)):
            raise SotddError(
                f"features that differ by {reach:.3g} cannot be scaled in float64: bring them to a usual range first."
            )
        mean, variation, points = _pooled(parts, pivot, 1.0 / reach)
        centre = pivot + mean * reach
        scale = math.sqrt(variation / (points * mean.size)) * reach
        return cls(centre, scale or 1.0)

    def __repr__(self) -> str:
        """Size and scale, for people."""
        return f"Scaler({self.centre.size:,} features, scale {self.scale:.6g})"

    def fingerprint(self) -> str:
        """A short name for these numbers, to a millionth of the scale: last bits may differ between machines."""
        with np.errstate(over="ignore"):
            ratio = self.centre / self.scale
            rounded = np.round(ratio, 6) + 0.0  # + 0.0: there is one zero
        centre = np.where(np.isfinite(rounded), rounded, ratio)  # to round is to multiply first, which may overflow
        return hashlib.sha256(centre.tobytes() + f"{self.scale:.8e}".encode()).hexdigest()[:16]

    def to_dict(self) -> dict[str, object]:
        """A summary as JSON: the scale, and a fingerprint of scale and centre."""
        return {"scale": self.scale, "fingerprint": self.fingerprint()}


def _pooled(
    datasets: Sequence[LabelledData], pivot: NDArray[np.float64], unit: float
) -> tuple[NDArray[np.float64], float, int]:
    """Mean, summed squared deviations and number of all points, from ``pivot`` in units of 1 / ``unit``.

    Each dataset is summed on its own and the sums are joined afterwards, so that two datasets
    give the same numbers in either order.
    """
    parts = [_moments(data, pivot, unit) for data in datasets]
    points = sum(count for _, _, count in parts)
    mean = sum(part_mean * (count / points) for part_mean, _, count in parts)
    mean = np.asarray(mean, np.float64)
    variation = sum(
        part_variation + count * float(np.sum((part_mean - mean) ** 2)) for part_mean, part_variation, count in parts
    )
    return mean, variation, points


def _moments(data: LabelledData, pivot: NDArray[np.float64], unit: float) -> tuple[NDArray[np.float64], float, int]:
    """Mean (d,), summed squared deviations and count of one dataset, joined block by block.

    Chan's update keeps the digits that sums of squares would lose on features far from zero.
    """
    if isinstance(data.features, DeviceFeatures):
        return (*data.features.moments(pivot, unit), data.n_points)
    from sotdd import kernels

    mean = np.zeros(data.n_features)
    block_mean = np.empty(data.n_features)
    variation = 0.0
    count = 0
    for block in data.blocks():
        rows = data.rows(block)
        kernels.block_mean(rows, pivot, unit, block_mean)
        gap = block_mean - mean
        total = count + len(rows)
        variation += kernels.block_deviation(rows, pivot, unit, block_mean)
        variation += float(gap @ gap) * count * len(rows) / total
        mean += gap * (len(rows) / total)
        count = total
    return mean, variation, count
