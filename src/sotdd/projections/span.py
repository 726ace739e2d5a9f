"""More features than points: datasets turned onto the space that their points span.

A direction θ uniform on the sphere of R^d meets points that span only r dimensions through their
inner products alone. So the points may be replaced by r coordinates with the same inner products,
and θ by z / √(|z|² + χ²), z Gaussian in R^r and χ² with d − r degrees of freedom: the projections
have exactly the law they had, and cost r / d of the work.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import OutOfRange, SotddError
from sotdd.basics.memory import within_memory
from sotdd.basics.text import counted
from sotdd.inputs import labelled
from sotdd.inputs.data import Dataset, Features, LabelledData, same_features
from sotdd.inputs.sparse import SparseRows
from sotdd.inputs.tensors import DeviceFeatures
from sotdd.projections.directions import Sphere
from sotdd.projections.scaler import Scale, Scaler, scaler_for

if TYPE_CHECKING:
    import torch

# Inner products are summed over this many features at a time, in float64.
_FEATURES = 4096

# A mean this many times the spread leaves inner products with too few digits.
_FAR = 1e3

# Coordinates on a device are float32, which holds features between this and its inverse.
_SMALLEST = 1e-36

# Dimensions of the span with less than this share of the largest variance are rounding.
_NEGLIGIBLE = 1e-12


@dataclass(frozen=True, eq=False)
class Span:
    """Datasets in coordinates of the space that their points span.

    Attributes
    ----------
    datasets
        By name, scaled already: pass them on with ``scale=None``.
    directions
        The law of directions that belongs to them.
    scaler
        What was done to features before.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> sotdd.onto_span([np.eye(3, 50)]).directions
    Sphere(ambient=50)
    """

    datasets: dict[str, LabelledData]
    directions: Sphere
    scaler: Scaler | None


@within_memory("use fewer points, since it holds a number for every two of them")
def onto_span(datasets: Mapping[str, Dataset] | Sequence[Dataset], *, scale: Scale = "auto") -> Span:
    """Turn datasets with more features than points onto the space that their points span.

    Distances by the returned law of directions have exactly the distribution that they have by
    `Sphere` on all features, for the price of as many features as there are points. The work is
    done where the features are: on the processor, or on the device of tensors.

    Parameters
    ----------
    datasets
        All that will be compared, by name or as a list; together fewer points than features.
    scale
        As in `sotdd.distance`.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> photos, drawings = rng.normal(size=(30, 5000)), rng.normal(0.1, 1, size=(20, 5000))
    >>> span = sotdd.onto_span({"photos": photos, "drawings": drawings})
    >>> span.datasets["photos"]
    LabelledData('photos': 30 points, 49 features, 1 class)
    >>> turned = sotdd.pairwise(span.datasets, directions=span.directions, scale=None)["photos", "drawings"]
    >>> direct = sotdd.distance(photos, drawings)
    >>> abs(turned.value - direct.value) < 4 * (turned.stderr + direct.stderr)
    True
    """
    data = labelled(datasets)
    n_features, n_points = same_features(data), sum(part.n_points for part in data)
    if n_points >= n_features:
        raise SotddError(
            f"the datasets have {counted(n_points, 'point')} together and {counted(n_features, 'feature')}: turning "
            "them onto their span saves nothing, compare them as they are."
        )
    scaler = scaler_for(scale, data)
    if scaler is None:
        _refuse_far_from_zero(data)
    tensors = [part.features.tensor for part in data if isinstance(part.features, DeviceFeatures)]
    if len(tensors) == len(data):
        coordinates: list[Features] = [DeviceFeatures(part) for part in _on_device(tensors, scaler)]
    else:
        coordinates = list(_on_host(data, scaler))
    turned = {
        part.name: LabelledData(part.name, features, part.classes, part.codes)
        for part, features in zip(data, coordinates, strict=True)
    }
    return Span(turned, Sphere(ambient=n_features), scaler)


def _refuse_far_from_zero(data: list[LabelledData]) -> None:
    """Inner products of points far from zero hold too few digits of how the points differ."""
    pooled = Scaler.fit(data, "pooled")
    if float(np.max(np.abs(pooled.centre) * pooled.inverse)) > _FAR:
        raise SotddError(
            "the points lie far from zero beside how much they differ, and scale=None keeps them there: use "
            "scale='pooled', or compare the datasets as they are."
        )


def _refuse_overflow(finite: bool) -> None:
    if not finite:
        raise OutOfRange("the scaled features are too large to be squared in float64: use scale='pooled'.")


def _unit(largest: float) -> float:
    """What features are divided by before they are multiplied: a power of two, so that no digit is lost."""
    return 2.0 ** (math.frexp(largest)[1] - 1) if largest > 0 else 1.0


def _on_host(data: Sequence[LabelledData], scaler: Scaler | None) -> list[NDArray[np.float64]]:
    """Coordinates of each dataset's points, by NumPy."""
    n_features = data[0].n_features
    flat = [_flat(part) for part in data]
    unit = _unit(max(_largest(part) for part in flat) if scaler is None else 1.0)
    products: NDArray[np.float64] = np.zeros((sum(part.n_points for part in data),) * 2)
    for start in range(0, n_features, _FEATURES):
        block = slice(start, start + _FEATURES)
        points = np.concatenate([_features(part, block) for part in flat]).astype(np.float64)
        if scaler is not None:
            points = (points - scaler.centre[block]) / scaler.scales[block]
        points /= unit
        with np.errstate(over="ignore", invalid="ignore"):  # such products are refused below
            products += points @ points.T
    _refuse_overflow(bool(np.isfinite(products).all()))
    values, vectors = np.linalg.eigh(products)
    kept = values >= max(_NEGLIGIBLE * values[-1], 0.0)
    coordinates = vectors[:, kept] * np.sqrt(values[kept]) * unit
    return np.split(coordinates, np.cumsum([part.n_points for part in data])[:-1])


def _flat(data: LabelledData) -> NDArray[Any] | SparseRows:
    """The points (n, d) of a dataset; those of a sparse matrix stay as they are."""
    if isinstance(data.features, SparseRows):
        return data.features
    return data.features[slice(None)].reshape(data.n_points, -1)


def _largest(flat: NDArray[Any] | SparseRows) -> float:
    values = flat.values if isinstance(flat, SparseRows) else flat
    return float(np.max(np.abs(values.astype(np.float64)), initial=0.0))


def _features(flat: NDArray[Any] | SparseRows, block: slice) -> NDArray[Any]:
    """Some features of all points."""
    return flat.features(block) if isinstance(flat, SparseRows) else flat[:, block]


def _on_device(tensors: Sequence[torch.Tensor], scaler: Scaler | None) -> list[torch.Tensor]:
    """The same by torch, on the device of the tensors."""
    import torch

    flat = [tensor.reshape(len(tensor), -1) for tensor in tensors]
    count, n_features = sum(map(len, flat)), flat[0].shape[1]
    unit = _unit(max(float(part.abs().max()) for part in flat) if scaler is None else 1.0)
    if not _SMALLEST < unit < 1 / _SMALLEST:
        raise SotddError(f"features as large as {unit:.3g} do not fit float32, which devices use: scale them first.")
    products = torch.zeros((count, count), dtype=torch.float64, device=flat[0].device)
    for start in range(0, n_features, _FEATURES):
        block = slice(start, start + _FEATURES)
        points = torch.cat([part[:, block] for part in flat]).double()
        if scaler is not None:
            points = (points - points.new_tensor(scaler.centre[block])) / points.new_tensor(scaler.scales[block])
        points = points / unit
        products.addmm_(points, points.T)
    _refuse_overflow(bool(products.isfinite().all()))
    values, vectors = torch.linalg.eigh(products)
    kept = values >= (_NEGLIGIBLE * values[-1]).clamp_min(0)
    coordinates = (vectors[:, kept] * values[kept].sqrt() * unit).float()
    return list(coordinates.split([len(part) for part in flat]))
