"""The engine for torch devices: the twin of ``cpu_engine.py``, with the same verbs. Importing it imports torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from sotdd.compute.engine import NORMAL_DEVIATION, Engine
from sotdd.compute.resampling import Marks, Plan
from sotdd.compute.slices import ProjectedPoints
from sotdd.compute.torch import rows as verbs
from sotdd.compute.torch.loaded import Layout, TorchData, halve, lay_out
from sotdd.compute.torch.rows import Rows, copy_array
from sotdd.inputs.data import LabelledData
from sotdd.projections.scaler import Scaler

_Item = TypeVar("_Item")

# Bytes that are copied to the host faster through pinned memory; less of it is not worth holding on to.
_WORTH_PINNING = 1 << 20


class TorchEngine(Engine):
    """Projects, shifts, sorts and transports on a torch device, for the time of a ``with`` block.

    Parameters
    ----------
    device
        "cuda", "cuda:1", "cpu" or a torch device.
    chunk
        About how many projections are in memory at a time; by default what fits.
    """

    loaded = TorchData

    def __init__(self, device: str | torch.device = "cuda", chunk: int | None = None) -> None:
        super().__init__()  # its threads sample, which is done on the processor for every engine
        self.device: torch.device = verbs.check_device(device)
        self.chunk: int | None = chunk
        self._before, self.threads = "", 1
        self._kept: tuple[list[LabelledData], Scaler | None, list[Layout]] | None = None

    def __enter__(self) -> TorchEngine:
        """Start the threads that sample; make products in full float32."""
        super().__enter__()
        self.threads = self.workers.count
        self._before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("highest")
        return self

    def __exit__(self, *error: object) -> None:
        """Leave torch's settings as they were, and nothing on the device."""
        self._kept = None
        torch.set_float32_matmul_precision(self._before)
        super().__exit__(*error)

    def lay_out(self, datasets: Sequence[LabelledData], scaler: Scaler | None) -> list[Layout]:
        """The datasets on the device, kept for the next time."""
        if self._kept is not None:
            before, scale, layouts = self._kept
            same = len(before) == len(datasets) and all(a is b for a, b in zip(before, datasets, strict=True))
            if same and scale is scaler:
                return layouts
        self._kept = None  # what they take is free for the next
        layouts = lay_out(datasets, scaler, self.device)
        self._kept = list(datasets), scaler, layouts
        return layouts

    @torch.no_grad()
    def transport(self, rows: Sequence[Rows], pairs: Sequence[tuple[int, int]], p: float) -> torch.Tensor:
        """W_p^p (B, P) of every pair of datasets."""
        try:
            return verbs.transport(rows, pairs, p)
        except torch.OutOfMemoryError as error:
            middle = halve(len(rows[0]), error)
            halves = slice(0, middle), slice(middle, None)
            return torch.cat([self.transport([part[half] for part in rows], pairs, p) for half in halves])

    @torch.no_grad()
    def average_parts(self, rows: Rows, edges: NDArray[np.float64]) -> NDArray[np.float32]:
        """Means (B, Q) of each sorted row over parts of probability with these edges (Q + 1,), on the host."""
        return verbs.average_parts(rows, edges).cpu().numpy()

    @torch.no_grad()
    def each(self, function: Callable[[_Item], None], items: Sequence[_Item]) -> None:
        """Do one piece of work per item, one after another: each fills the device."""
        list(map(function, items))

    def split_costs(self, points: ProjectedPoints, plan: Plan, marks: Marks) -> torch.Tensor:
        """W_p^p (B, S, orders) between the two sides of some splits of a plan, class terms and all."""
        try:
            return verbs.split_costs(points, plan, marks)
        except torch.OutOfMemoryError as error:
            middle = halve(len(points.rows), error)
            halves = slice(0, middle), slice(middle, None)
            return torch.cat([self.split_costs(points.along(half), plan, marks) for half in halves])

    def join_points(self, rows: Sequence[Rows]) -> Rows:
        """The points of several datasets one after another."""
        return torch.cat(list(rows), dim=1)

    def take_points(self, rows: Rows, index: NDArray[np.integer]) -> Rows:
        """Some of the points."""
        return rows.index_select(1, copy_array(index, np.int64, self.device))

    def clip_outliers(self, rows: Rows, deviations: float) -> Rows:
        """Points with those farther from the median than this many deviations brought that near."""
        middle = torch.quantile(rows, 0.5, dim=1, keepdim=True)
        deviation = torch.quantile((rows - middle).abs(), 0.5, dim=1, keepdim=True) * NORMAL_DEVIATION
        reach = torch.where(deviation > 0, deviations * deviation, torch.inf)
        return torch.clamp(rows, middle - reach, middle + reach)

    def fetch_rows(self, rows: Rows) -> NDArray[np.float32]:
        """Rows of this engine as an array on the host."""
        return rows.cpu().numpy()

    def collect(self, parts: Sequence[torch.Tensor]) -> NDArray[np.float64]:
        """Bring values of one chunk after another to the host."""
        values = torch.cat(list(parts))
        large = values.is_cuda and values.nbytes >= _WORTH_PINNING
        host = torch.empty_like(values, device="cpu", pin_memory=large)
        found: NDArray[np.float64] = host.copy_(values).numpy()
        return found
