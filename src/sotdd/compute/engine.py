"""What every engine does, which of them does the work, and why a projection came out unusable.

`numpy_engine` is the definition, in plain NumPy; `cpu_engine` is compiled and uses all cores; ``torch/`` is for
devices.
"""

from __future__ import annotations

import ctypes
import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, require
from sotdd.basics.resources import Workers
from sotdd.inputs.data import LabelledData
from sotdd.inputs.features import DeviceFeatures
from sotdd.projections.labels import LabelTerms
from sotdd.projections.maps import BLOCK, ORDERS, Block, describe_overflow
from sotdd.projections.projections import Projections

if TYPE_CHECKING:
    import torch

    from sotdd.compute.resampling import Marks, Plan
    from sotdd.compute.slices import ProjectedPoints, Slices

    # Rows (B, n), one per projection and a value per point, and what is made of them.
    Rows: TypeAlias = NDArray[np.float32] | torch.Tensor
    Values: TypeAlias = NDArray[np.float64] | torch.Tensor
    # Rows and values of the engine that takes them, arrays or tensors, and that engine.
    OwnRows: TypeAlias = Any
    OwnValues: TypeAlias = Any
    OwnEngine: TypeAlias = Any

Doubles = NDArray[np.float64]

_Item = TypeVar("_Item")

# The standard deviation of a normal law in terms of its median absolute deviation.
NORMAL_DEVIATION = 1.4826

# Further samples follow from the label law and the seed alone. Those of comparisons of few projections, in so many
# chunks no larger than this, are kept for the next one: to make them takes longer than a small comparison.
_KEPT, _KEPT_BYTES, _FEW = 2, 6 << 20, 1024
_kept: dict[Hashable, Doubles] = {}
# Projections that a thread samples at a time: of rotations, as many as share one of up to 1,024 features.
_TOGETHER, _TOGETHER_ROTATED = 4 * BLOCK, 16 * BLOCK

# From this many multiplications on a GPU is worth loading torch and copying data: seconds of work for a few cores.
_WORTH_A_GPU = 2e11


class LoadedData(ABC):
    """Datasets as an engine holds them, with projections to come, for one pass: see `Engine.load`."""

    ahead: ClassVar[int] = 2  # how many chunks of projections are sampled at a time

    def __init__(
        self,
        engine: OwnEngine,
        datasets: Sequence[LabelledData],
        projections: Projections,
        n_label_samples: int | None,
        by_class: Collection[int],
    ) -> None:
        self._engine, self._datasets, self._projections, self._by_class = engine, datasets, projections, by_class
        self._has_moments = n_label_samples is not None
        self._sampler = Sampler(engine.workers, projections, n_label_samples or 0)
        self._parts = self.prepare()

    @abstractmethod
    def prepare(self) -> Sequence[slice]:
        """Make the datasets ready; returns the projections of each chunk."""

    def sample(self) -> Iterator[Block]:
        """Sample θ, φ, λ and ψ a chunk at a time, ahead of the work."""
        return self._sampler.follow(self._parts, self.ahead)

    @abstractmethod
    def project(self, block: Block) -> Iterator[tuple[Block, list[tuple[OwnRows, OwnRows]]]]:
        """Project the points of every dataset: by θ, and by φ as their label terms are computed from.

        Yields the block once, or parts of it where memory is short. Rows are valid until they are sorted, or the next
        are requested. Where φ = θ both are the same.
        """

    @abstractmethod
    def sort(self, part: slice, block: Block, projected: list[tuple[OwnRows, OwnRows]]) -> Slices:
        """Add class terms to projected points and sort them; rows may be written over, and the list emptied."""

    def order_points(self, projected: Sequence[tuple[OwnRows, OwnRows]]) -> list[tuple[OwnRows, OwnRows]]:
        """These rows in the order of points, in which a device does not have them."""
        return list(projected)

    def check(self) -> None:  # noqa: B027  # nothing is left to check where every chunk was, as it was sorted
        """Refuse what was not finite in any chunk; a device tells only now."""


class Engine(ABC):
    """Who does the arithmetic, for the time of a ``with`` block: on the processor, unless a verb is overridden.

    Attributes
    ----------
    loaded
        How it holds datasets.
    workers
        Threads, for whatever is done on the processor.
    """

    loaded: ClassVar[type[LoadedData]]

    def __init__(self, threads: int | None = None) -> None:
        self.workers: Workers = Workers(threads)

    def __enter__(self) -> Self:
        """Start threads, and keep BLAS to one."""
        self.workers.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        """Stop them, and leave every setting as it was."""
        self.workers.__exit__(*error)

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
        return self.loaded(self, datasets, projections, n_label_samples, by_class)

    @abstractmethod
    def transport(self, rows: Sequence[OwnRows], pairs: Sequence[tuple[int, int]], p: float) -> Values:
        """W_p^p (B, P) between the sorted rows of every pair of datasets."""

    @abstractmethod
    def average_parts(self, rows: OwnRows, edges: Doubles) -> NDArray[np.float32]:
        """Means (B, Q) of sorted rows over parts of probability with these edges (Q + 1,), on the host."""

    @abstractmethod
    def split_costs(self, points: ProjectedPoints, plan: Plan, marks: Marks) -> Values:
        """W_p^p (B, S, orders) between the two sides of some splits of a plan, with class terms of each side's own."""

    def join_points(self, rows: Sequence[OwnRows]) -> OwnRows:
        """The points of several datasets one after another, in new rows."""
        return np.concatenate(rows, axis=1)

    def take_points(self, rows: OwnRows, index: NDArray[np.integer]) -> OwnRows:
        """Some of the points, in new rows."""
        return np.take(rows, index, axis=1)

    def clip_outliers(self, rows: OwnRows, deviations: float) -> OwnRows:
        """Points with those farther from the median than this many deviations brought that near."""

        def clip(row: NDArray[np.float32]) -> NDArray[np.float32]:
            middle = np.median(row)
            deviation = np.median(np.abs(row - middle)) * NORMAL_DEVIATION
            farthest = deviations * deviation if deviation > 0 else np.inf
            return np.clip(row, middle - farthest, middle + farthest)

        return np.stack(self.workers.each(clip, rows))

    def fetch_rows(self, rows: OwnRows) -> NDArray[np.float32]:
        """Rows as an array on the host."""
        found: NDArray[np.float32] = rows
        return found

    def collect(self, parts: Sequence[OwnValues]) -> Doubles:
        """Values of one chunk after another, as one array on the host."""
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def each(self, function: Callable[[_Item], None], items: Sequence[_Item]) -> None:
        """Do one piece of work per item: side by side as long as there is one for every thread, then on all of them."""
        together = len(items) - len(items) % self.workers.count
        self.workers.each(function, items[:together])
        list(map(function, items[together:]))


# ------------------------------------------------------------------ projections sampled ahead of the work


class Sampler:
    """Samples projections ahead of the work.

    Parameters
    ----------
    workers
        The threads.
    projections
        What is sampled.
    n_label_samples
        How many further samples of the label law each projection gets.
    """

    def __init__(self, workers: Workers, projections: Projections, n_label_samples: int = 0) -> None:
        self._workers, self._projections, self.n_label_samples = workers, projections, n_label_samples
        self._size = _TOGETHER if projections.rotation_size is None else _TOGETHER_ROTATED
        self._begun: deque[tuple[list[Future[Block]], list[Future[None]], Doubles | None]] = deque()

    def begin(self, part: slice) -> None:
        """Begin to sample some projections, those that follow on what was begun last."""
        submit, counted = self._workers.submit, _kept.get(self._name(part))
        further: list[Future[None]] = []
        if self.n_label_samples and counted is None:
            counted = np.zeros((part.stop - part.start, ORDERS + 2, 1 + self.n_label_samples))
            for start, stop in self._cut(part, _TOGETHER):
                some = counted[start - part.start : stop - part.start]
                further.append(submit(partial(self._projections.sample_further, start // BLOCK, some)))
        blocks = [submit(partial(self._projections.draw, start, stop)) for start, stop in self._cut(part, self._size)]
        self._begun.append((blocks, further, counted))

    def _cut(self, part: slice, size: int) -> list[tuple[int, int]]:
        """Cut projections into pieces that a thread samples at a time; a single thread samples all of them."""
        size = part.stop - part.start if self._workers.count == 1 else size
        return [(start, min(start + size, part.stop)) for start in range(part.start, part.stop, size)]

    def follow(self, parts: Sequence[slice], ahead: int) -> Iterator[Block]:
        """Sample one part after another, this many begun at a time.

        The first parts may have been begun before.
        """
        for number, part in enumerate(parts):
            for later in parts[number + len(self._begun) : number + ahead]:
                self.begin(later)
            blocks, further, counted = self._begun.popleft()
            block = Block.join([begun.result() for begun in blocks])
            for begun in further:
                begun.result()
            if counted is not None:
                block = block.with_draws(counted) if further else replace(block, draws=counted)
                self._keep(block, part)
            del blocks, further, counted  # which hold what was sampled
            yield block

    def _keep(self, block: Block, part: slice) -> None:
        """Keep further samples for the next comparison, where they are small."""
        name = self._name(part)
        if name is not None and block.draws is not None and block.draws.nbytes <= _KEPT_BYTES:
            _kept[name] = block.draws
            for old in list(_kept)[:-_KEPT]:
                _kept.pop(old, None)

    def _name(self, part: slice) -> Hashable:
        """What the further samples of some projections follow from; None where they are not kept."""
        label_key = self._projections.label_key
        if not self.n_label_samples or label_key is None or self._projections.n_projections > _FEW:
            return None
        return label_key, part.start, part.stop, self.n_label_samples


# ------------------------------------------------------------------ which engine does the work


def choose_engine(
    device: str, datasets: Sequence[LabelledData], n_projections: int, threads: int | None = None
) -> Engine:
    """The engine for a ``device`` argument; on the processor with this many threads, or as many as there may be."""
    name = str(device)  # a torch.device reads as its name
    if name == "auto":
        name = _choose_device(datasets, n_projections)
    if name == "cpu":
        from sotdd.compute.cpu_engine import CpuEngine

        return CpuEngine(threads)
    if name == "numpy":
        from sotdd.compute.numpy_engine import NumpyEngine

        return NumpyEngine()
    require("torch", f"device={name!r}", "'sotdd[torch]'")
    from sotdd.compute.torch.engine import TorchEngine

    return TorchEngine(name)


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
