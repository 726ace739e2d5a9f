"""What every engine offers: the few verbs that a comparison is made of; and which engine does the work."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from importlib.util import find_spec
from types import TracebackType
from typing import Any, Literal, Protocol, Self, TypeAlias, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import check_choice
from sotdd.basics.errors import OutOfRange, SotddError, require
from sotdd.engines.splits import Ways
from sotdd.inputs.data import LabelledData
from sotdd.inputs.tensors import DeviceFeatures
from sotdd.projections.draws import Block
from sotdd.projections.labels import LabelTerms, Quantiles, Summaries
from sotdd.projections.moments import Polynomials
from sotdd.projections.recipe import Projections
from sotdd.projections.scaler import Scaler

# Of products on a GPU: full, or faster and rougher.
Precision: TypeAlias = Literal["float32", "tf32"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


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


class Engine(Protocol):
    """Works for the time of a ``with`` block. Rows are (B, n) in a form of the engine's own.

    Attributes
    ----------
    drawn_together
        Of how many blocks further draws of label terms are made in one piece of work.
    """

    drawn_together: int

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End, and leave the process's settings as they were."""

    def views(
        self,
        datasets: Sequence[LabelledData],
        projections: Projections,
        *,
        degree: int = 0,
        before_sorting: Callable[[Any], None] | None = None,
        by_class: bool = False,
    ) -> Iterator[View]:
        """See every dataset through one chunk of projections after another.

        Class moments are taken up to ``degree``, a multiple of four; 0 for none. Before each chunk is
        handed out, ``before_sorting`` is called with its feature projections, a `Projected`. With ``by_class`` rows
        hold class after class, each sorted on its own.
        """

    def expect(self, projections: Projections) -> None:
        """Views through these projections are asked for soon: an engine that draws ahead may begin."""

    def point_sums(self, datasets: Sequence[LabelledData], scaler: Scaler | None) -> list[PointSums]:
        """Sums over the scaled points of each dataset, in float64."""

    def each(self, function: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
        """Do one piece of work per item on the engine's threads."""

    def begin(self, function: Callable[[_Item], _Result], item: _Item) -> Future[_Result]:
        """Begin one piece of work on the engine's threads."""

    def quantiles(self, rows: Any, edges: NDArray[np.float64]) -> NDArray[np.float32]:  # noqa: ANN401
        """Means (B, Q) of each sorted row over parts of probability with these edges (Q + 1,), as an array."""

    def losses(
        self,
        rows: Any,  # noqa: ANN401
        means: NDArray[np.float32],
        edges: NDArray[np.float64],
        smooth: bool,
    ) -> NDArray[np.float64]:
        """How far each sorted row is from the function of such means: the mean and the root mean square, (B, 2)."""

    def transport(self, a: Any, b: Any, p: float) -> Any:  # noqa: ANN401
        """W_p^p (B,) between each sorted row of a and of b, in a form of the engine's own."""

    def transports(self, rows: Sequence[Any], pairs: Sequence[tuple[int, int]], p: float) -> Any:  # noqa: ANN401
        """W_p^p (B, P) of every pair of datasets, from their sorted rows, in a form of the engine's own."""

    def label_places(
        self, moments: Sequence[ClassMoments], drawn: Polynomials, more: Sequence[Polynomials]
    ) -> list[Any]:
        """Of each dataset, mean and standard deviation of its projected points, (B, 1 + J, 2).

        Under the label terms drawn, and under J further draws for each projection, which come in portions of
        projections. In a form of the engine's own.
        """

    def label_controls(
        self,
        moments: Sequence[ClassMoments],
        drawn: Polynomials,
        more: Sequence[Polynomials],
        pairs: Sequence[tuple[int, int]],
        p: float,
    ) -> Any:  # noqa: ANN401
        """The Gaussian cost of every pair and its parts, less their means over further draws of label terms, (B, P, 3).

        ``more`` holds as many further draws for each projection, in portions of projections. In a form of the
        engine's own.
        """

    def direction_values(self, moments: ClassMoments) -> Any:  # noqa: ANN401
        """What direction controls are made of, (B, 5), in a form of the engine's own.

        The mean of t, the mean square of class means, and the even moments.
        """

    def split_costs(self, pool: Any, splits: Ways, orders: Sequence[float]) -> Any:  # noqa: ANN401
        """W_p^p (B, S, orders) between the two sides of each split of a pool, in a form of the engine's own."""

    def ends(self, rows: Any) -> Any:  # noqa: ANN401
        """The smallest and the largest value (B, 2) of each sorted row, in a form of the engine's own."""

    def collect(self, parts: Sequence[Any]) -> NDArray[np.float64]:
        """Put what one of these gave for one chunk after another together, as an array."""


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
        "moments=sotdd.UniformOrders(4)."
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
    if find_spec("torch") is None or not _has_driver():
        return False
    import torch

    return bool(torch.cuda.is_available())


def _has_driver() -> bool:
    try:
        ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
    except OSError:
        return False
    return True
