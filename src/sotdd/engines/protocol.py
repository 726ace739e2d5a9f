"""What every engine offers: the few verbs that a comparison is made of; and which engine does the work."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import check_choice
from sotdd.basics.errors import OutOfRange, SotddError, require
from sotdd.inputs.data import LabelledData
from sotdd.inputs.tensors import DeviceFeatures
from sotdd.projections.draws import Block
from sotdd.projections.labels import LabelTerms, Quantiles, Summaries

if TYPE_CHECKING:
    from sotdd.engines.cpu.engine import CpuEngine
    from sotdd.engines.torch.engine import TorchEngine

# Of products on a GPU: full, or faster and rougher.
Precision: TypeAlias = Literal["float32", "tf32"]


@dataclass(frozen=True, eq=False)
class ClassMoments:
    """Moments of a dataset's classes under some projections, summed up over its points, in a form of the engine's own.

    What is known of a class is the mean of t, and the means of t^k / k! for k = 1, …, D with t cut as the
    label terms cut it.

    Attributes
    ----------
    mean
        (B, D + 1) mean over points of what is known of their class.
    covariance
        (B, D + 1, D + 1) its covariance over points.
    even
        (B, 3) mean over points of t^2/2!, t^4/4! and t^6/6!, without a cut.
    """

    mean: Any
    covariance: Any
    even: Any


@dataclass(frozen=True, eq=False)
class PointSums:
    """Sums over the scaled points of a dataset.

    Attributes
    ----------
    lengths
        (3,) of |x|², |x|⁴ and |x|⁶.
    total
        (d,) of the points.
    between
        Of n_c |m_c|², with the number of points and the mean of each class.
    """

    lengths: NDArray[np.float64]
    total: NDArray[np.float64]
    between: float


@dataclass(frozen=True, eq=False)
class View:
    """All datasets through one chunk of projections.

    Attributes
    ----------
    part
        Which projections.
    rows
        Of each dataset, its sorted rows, in a form of the engine's own, valid until the next chunk.
    block
        The projections as drawn.
    terms
        Of each dataset, its class terms (B, C), in a form of the engine's own.
    moments
        Of each dataset, its class moments, where they were asked for.
    """

    part: slice
    rows: list[Any]
    block: Block
    terms: list[Any]
    moments: list[ClassMoments]


class Projected(Protocol):
    """The feature projections of all datasets through one chunk, before class terms are added."""

    def pool(self, members: Sequence[int]) -> Any:  # noqa: ANN401
        """The points of some datasets together, for ``split_costs``, in a form of the engine's own."""


# Both have the same verbs, each in rows (B, n) of a form of its own, for the time of a ``with`` block.
Engine: TypeAlias = "CpuEngine | TorchEngine"


# ------------------------------------------------------------------ why a projection came out unusable

# Class terms must fit float32 with room for the feature that is added.
LARGEST_TERM = 1e38


def too_large(name: str, projection: int) -> SotddError:
    """Features that float32 products cannot hold."""
    return OutOfRange(
        f"features of dataset {name!r} are too large for float32 products (projection {projection:,} is not finite): "
        "divide the features by their spread, or use scale='pooled'."
    )


def unusable_term(name: str, largest: float, terms: LabelTerms, line: int, projection: int) -> SotddError:
    """A label term that is not finite or too large, at ``line`` of ``terms``; ``largest`` is the largest |t|."""
    if not np.isfinite(largest) or isinstance(terms, Quantiles):  # quantiles are means of values: these are at fault
        return too_large(name, projection)
    if isinstance(terms, Summaries):
        return SotddError(
            f"the label law's summary of dataset {name!r} is not finite in projection {projection:,}: check its "
            "summary function."
        )
    order = int(terms.degrees[line])
    return OutOfRange(
        f"class moments of dataset {name!r} overflow: order {order} of projected values as large as {largest:.3g} "
        f"(projection {projection:,}). Use scale='pooled', bring outliers in, or take lower orders, such as "
        "moments=sotdd.projections.UniformOrders(4)."
    )


# ------------------------------------------------------------------ which engine does the work

# Multiplications from which on a GPU is worth the loading of torch and the copying of data: some
# seconds of work for a few cores.
_WORTH_A_GPU = 2e11


def engine_for(
    device: str, datasets: Sequence[LabelledData], n_projections: int, precision: Precision = "float32"
) -> Engine:
    """The engine for a ``device`` argument."""
    check_choice(precision, "precision", get_args(Precision))
    from sotdd.engines.cpu.engine import CpuEngine

    name = str(device)  # a torch.device reads as its name
    if name == "cpu":
        return CpuEngine()
    if name != "auto":
        return _torch_engine(name, precision)
    homes = {str(data.features.tensor.device) for data in datasets if isinstance(data.features, DeviceFeatures)}
    if len(homes) > 1:
        raise SotddError(f"the datasets are on {' and '.join(sorted(homes))}: move them to one device, or name one.")
    if homes:
        return _torch_engine(homes.pop(), precision)
    work = n_projections * sum(data.n_points * data.n_features for data in datasets)
    if work >= _WORTH_A_GPU and _has_gpu():
        return _torch_engine("cuda", precision)
    return CpuEngine()


def _torch_engine(device: str, precision: Precision) -> Engine:
    require("torch", f"device={device!r}", "'sotdd[torch]'")
    from sotdd.engines.torch.engine import TorchEngine

    return TorchEngine(device, precision)


def _has_gpu() -> bool:
    """Whether torch could use a GPU; it is loaded to ask only where there is a driver for one."""
    try:
        ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
    except OSError:
        return False
    if find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())
