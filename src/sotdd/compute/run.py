"""The one loop over projections: datasets are projected a chunk at a time, and collectors look at what goes by.

Which engine projects them is chosen here too.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from sotdd.basics.display import Report
from sotdd.basics.errors import SotddError, require
from sotdd.compute.engine import Engine, Projected, Sorted
from sotdd.inputs.data import LabelledData
from sotdd.inputs.tensors import DeviceFeatures
from sotdd.projections.recipe import Projections

# From this many multiplications on a GPU is worth loading torch and copying data: seconds of work for a few cores.
_WORTH_A_GPU = 2e11


class Collector:
    """Looks at projected datasets as they go by, and keeps what it needs of them.

    A collector overrides one of the two methods or both; what nobody looks at is not made.

    Attributes
    ----------
    moments
        Whether it needs moments of classes.
    draws
        How often it needs the label law drawn again for each projection.
    n_projections
        How many projections it looks at, the first ones; None for all.
    """

    moments: bool = False
    draws: int = 0
    n_projections: int | None = None

    def before_sorting(self, chunk: Projected) -> None:
        """Look at feature projections, points in their own order."""

    def after_sorting(self, chunk: Sorted) -> None:
        """Look at sorted rows, class terms and the draws."""


def be_silent(done: int, total: int) -> None:
    """Report nothing."""


def run(
    datasets: Sequence[Any],
    projections: Projections,
    engine: Any,  # noqa: ANN401  # whatever has `walk` as an `Engine` has
    collectors: Sequence[Collector],
    report: Report = be_silent,
) -> None:
    """See datasets through projections, for all collectors in one pass; without datasets they see the draws alone.

    Datasets are what the engine takes: for most engines, whatever is `sotdd.compute.engine.Seen`.
    """
    early = [one for one in collectors if _overrides(one, "before_sorting")]
    late = [one for one in collectors if _overrides(one, "after_sorting")]
    limits = [one.n_projections for one in collectors]
    limit = None if None in limits else max(filter(None, limits), default=0)
    if limit is not None and limit < projections.n_projections:
        projections = replace(projections, n_projections=limit)

    def look_early(chunk: Projected) -> None:
        for one in early:
            if one.n_projections is None or chunk.part.start < one.n_projections:
                one.before_sorting(chunk)

    chunks = engine.walk(
        datasets,
        projections,
        moments=any(one.moments for one in collectors),
        draws=max((one.draws for one in collectors), default=0),
        before_sorting=look_early if early else None,
        sort=bool(late),
    )
    for chunk in chunks:
        for one in late:
            one.after_sorting(chunk)
        report(chunk.part.stop, projections.n_projections)


def _overrides(collector: Collector, method: str) -> bool:
    return getattr(type(collector), method) is not getattr(Collector, method)


# ------------------------------------------------------------------ which engine does the work


def choose_engine(
    device: str, datasets: Sequence[LabelledData], n_projections: int, threads: int | None = None
) -> Engine:
    """The engine for a ``device`` argument; on the processor with this many threads, or as many as there may be."""
    from sotdd.compute.cpu.engine import CpuEngine

    name = str(device)  # a torch.device reads as its name
    if name == "cpu":
        return CpuEngine(threads)
    if name != "auto":
        return _torch_engine(name)
    homes = {str(data.features.tensor.device) for data in datasets if isinstance(data.features, DeviceFeatures)}
    if len(homes) > 1:
        raise SotddError(f"the datasets are on {' and '.join(sorted(homes))}: move them to one device, or name one.")
    if homes:
        return _torch_engine(homes.pop())
    work = n_projections * sum(data.n_points * data.n_features for data in datasets)
    if work >= _WORTH_A_GPU and _has_gpu():
        return _torch_engine("cuda")
    return CpuEngine(threads)


def _torch_engine(device: str) -> Engine:
    require("torch", f"device={device!r}", "'sotdd[torch]'")
    from sotdd.compute.torch.engine import TorchEngine

    return TorchEngine(device)


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
