"""The verbs that every engine has, which engine does the work, and why a projection came out unusable.

`numpy_engine` is the definition, in plain NumPy; ``cpu/`` is compiled and uses all cores, ``torch/`` is for devices.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, require
from sotdd.basics.resources import Workers
from sotdd.inputs.data import LabelledData
from sotdd.inputs.tensors import DeviceFeatures
from sotdd.projections.blocks import Block
from sotdd.projections.recipe import Projections
from sotdd.projections.terms import LabelTerms, describe_overflow

if TYPE_CHECKING:
    import torch

    from sotdd.compute.resampling import Marks, Plan
    from sotdd.compute.slices import ProjectedPoints, Slices

    # Rows (B, n), one per projection and a value per point, and what is made of them. An engine takes only its own.
    Rows: TypeAlias = NDArray[np.float32] | torch.Tensor
    Values: TypeAlias = NDArray[np.float64] | torch.Tensor

_Item = TypeVar("_Item")

# From this many multiplications on a GPU is worth loading torch and copying data: seconds of work for a few cores.
_WORTH_A_GPU = 2e11


class LoadedData(Protocol):
    """Datasets as an engine holds them, with projections to come, for one pass."""

    def sample(self) -> Iterator[Block]:
        """Sample θ, φ, λ and ψ a chunk at a time, ahead of the work."""

    def project(self, block: Block) -> Iterator[tuple[Block, list[tuple[Rows, Rows]]]]:
        """Project the points of every dataset: by θ, and by φ as their label terms are computed from.

        Yields the block once, or parts of it where memory is short. Rows are valid until they are sorted, or the next
        are requested. Where φ = θ both are the same.
        """

    def order_points(self, projected: Sequence[tuple[Rows, Rows]]) -> list[tuple[Rows, Rows]]:
        """These rows in the order of points, in which `project` may not have them."""

    def sort(self, part: slice, block: Block, projected: list[tuple[Rows, Rows]]) -> Slices:
        """Add class terms to projected points and sort them; rows may be written over, and the list emptied."""

    def check(self) -> None:
        """Refuse what was not finite in any chunk; a device tells only now."""


class Engine(Protocol):
    """Who does the arithmetic, for the time of a ``with`` block.

    Attributes
    ----------
    workers
        Threads, for whatever is done on the processor.
    """

    workers: Workers

    def __enter__(self) -> Self:
        """Start threads."""

    def __exit__(self, *error: object) -> None:
        """Stop them, and leave every setting as it was."""

    def load(
        self,
        datasets: Sequence[LabelledData],
        projections: Projections,
        *,
        n_label_samples: int | None = None,
        by_class: Collection[int] = (),
    ) -> LoadedData:
        """Make datasets ready.

        With ``n_label_samples`` class moments are taken, under that many further samples of the label law.
        Each class of the datasets with numbers in ``by_class`` is sorted on its own, and these have no class moments.
        """

    def transport(self, rows: Sequence[Rows], pairs: Sequence[tuple[int, int]], p: float) -> Values:
        """W_p^p (B, P) between the sorted rows of every pair of datasets."""

    def average_parts(self, rows: Rows, edges: NDArray[np.float64]) -> NDArray[np.float32]:
        """Means (B, Q) of sorted rows over parts of probability with these edges (Q + 1,), on the host."""

    def find_ranges(self, rows: Rows) -> Values:
        """The smallest and the largest value (B, 2) of each sorted row."""

    def split_costs(self, points: ProjectedPoints, plan: Plan, marks: Marks) -> Values:
        """W_p^p (B, S, orders) between the two sides of some splits of a plan, with class terms of each side's own."""

    def join_points(self, rows: Sequence[Rows]) -> Rows:
        """The points of several datasets one after another, in new rows."""

    def take_points(self, rows: Rows, index: NDArray[np.integer]) -> Rows:
        """Some of the points, in new rows."""

    def clip_outliers(self, rows: Rows, deviations: float) -> Rows:
        """Points with those farther from the median than this many deviations brought that near."""

    def fetch_rows(self, rows: Rows) -> NDArray[np.float32]:
        """Rows as an array on the host."""

    def collect(self, parts: Sequence[Values]) -> NDArray[np.float64]:
        """Values of one chunk after another, as one array on the host."""

    def each(self, function: Callable[[_Item], None], items: Sequence[_Item]) -> None:
        """Do one large piece of work per item."""


# ------------------------------------------------------------------ which engine does the work


def choose_engine(
    device: str, datasets: Sequence[LabelledData], n_projections: int, threads: int | None = None
) -> Engine:
    """The engine for a ``device`` argument; on the processor with this many threads, or as many as there may be."""
    name = str(device)  # a torch.device reads as its name
    if name == "auto":
        name = _choose_device(datasets, n_projections)
    if name == "cpu":
        from sotdd.compute.cpu.engine import CpuEngine

        return cast("Engine", CpuEngine(threads))
    if name == "numpy":
        from sotdd.compute.numpy_engine import NumpyEngine

        return cast("Engine", NumpyEngine())
    require("torch", f"device={name!r}", "'sotdd[torch]'")
    from sotdd.compute.torch.engine import TorchEngine

    return cast("Engine", TorchEngine(name))


def _choose_device(datasets: Sequence[LabelledData], n_projections: int) -> str:
    """Where tensors are, or a GPU for much work, or the processor."""
    homes = {str(data.features.tensor.device) for data in datasets if isinstance(data.features, DeviceFeatures)}
    if len(homes) > 1:
        raise SotddError(f"the datasets are on {' and '.join(sorted(homes))}: move them to one device, or name one.")
    if homes:
        return homes.pop()
    work = n_projections * sum(data.n_points * data.n_features for data in datasets)
    return "cuda" if work >= _WORTH_A_GPU and _has_gpu() else "cpu"


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


# ------------------------------------------------------------------ why a projection came out unusable

# Class terms must fit float32 with room for the feature that is added.
LARGEST_TERM = 1e38


def describe_bad_term(name: str, largest: float, terms: LabelTerms, line: int, projection: int) -> SotddError:
    """A label term that is not finite or too large, at ``line`` of ``terms``; ``largest`` is the largest |t|."""
    if not np.isfinite(largest):
        return describe_overflow(name, projection)
    return terms.describe_bad(name, largest, line, projection)


def refuse_bad_terms(
    name: str, rows: NDArray[np.float32], terms: NDArray[np.float64], drawn: LabelTerms, start: int
) -> None:
    """Refuse class terms (B, C) that rows cannot be shifted by; these rows are what the terms were computed from."""
    fits = np.abs(terms) < LARGEST_TERM  # NaN is not smaller than anything
    if not fits.all():
        line = int(np.argmin(fits.all(axis=1)))
        raise describe_bad_term(name, float(np.abs(rows[line]).max()), drawn, line, start + line)
