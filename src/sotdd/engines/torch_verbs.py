"""What the torch engine does to rows, one verb each: the twins of those in ``cpu.py``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise as neighbours

import numpy as np
import torch
from numpy.typing import NDArray

from sotdd.data import LabelledData
from sotdd.engines import fused
from sotdd.engines.faults import summarised
from sotdd.errors import SotddError
from sotdd.projections.directions import Directions, Drawn
from sotdd.projections.labels import LabelTerms, Summaries
from sotdd.transport import Overlaps

# Values whose powers are taken at a time.
_SUMMARISED = 1 << 24

Rows = torch.Tensor  # (B, n) float32: one row per projection, one value per point


@dataclass(frozen=True, eq=False)
class Layout:
    """A dataset with what every chunk needs to know of it."""

    data: LabelledData
    offsets: NDArray[np.int64]  # (C + 1,) class boundaries among grouped points
    edges: torch.Tensor  # (C + 1,) the same on the device
    codes: torch.Tensor  # (n,) class of every grouped point
    position: torch.Tensor | None  # (n,) place of each point among grouped points
    points: torch.Tensor | None  # (n, d) scaled and grouped, where that fits on the device


def project(points: torch.Tensor, theta: torch.Tensor | None, drawn: Drawn) -> Rows:
    """The feature projections (B, m) of points (m, d)."""
    if theta is not None:
        return theta @ points.T
    assert not isinstance(drawn, Directions)
    return torch.from_numpy(np.asarray(drawn(points.cpu().numpy()), np.float32)).to(points.device)


def class_terms(rows: Rows, layout: Layout, terms: LabelTerms, coefficients: torch.Tensor | None) -> torch.Tensor:
    """The label term (B, C) of every class in every projection, float64."""
    if coefficients is not None:
        return class_sums(rows, layout.edges, coefficients) / layout.edges.diff()
    assert isinstance(terms, Summaries)
    host = rows.cpu().numpy()
    columns = [summarised(host[:, first:last], terms) for first, last in neighbours(layout.offsets)]
    return torch.from_numpy(np.stack(columns, axis=1)).to(rows.device)


def class_sums(rows: Rows, edges: torch.Tensor, coefficients: torch.Tensor) -> torch.Tensor:
    """Sums (B, C) of each row's polynomial over each class, in float64; edges (C + 1,) bound the classes."""
    if fused.available(rows):
        return fused.class_sums(rows, edges, coefficients)
    codes = torch.repeat_interleave(edges.diff())  # (n,) class of every point
    sums = torch.zeros((len(rows), len(edges) - 1), dtype=torch.float64, device=rows.device)
    for line in range(len(rows)):  # a row at a time: float64 copies stay small
        t = rows[line].double()
        values = coefficients[line, -1].expand_as(t)
        for order in range(coefficients.shape[1] - 2, -1, -1):
            values = values * t + coefficients[line, order]
        sums[line].index_add_(0, codes, values)
    return sums


def summarise(rows: Rows, edges: torch.Tensor, degree: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean (B, D) and covariance (B, D, D), over points, of their class's moments of orders 1, …, D, in float64."""
    counts = edges.diff()
    shares = (counts / counts.sum()).to(torch.float64)
    mean = torch.empty((len(rows), degree), dtype=torch.float64, device=rows.device)
    spread = torch.empty((len(rows), degree, degree), dtype=torch.float64, device=rows.device)
    size = max(1, _SUMMARISED // (rows.shape[1] + degree * len(counts)))
    for start in range(0, len(rows), size):  # some rows at a time: float64 copies stay small
        part = slice(start, start + size)
        by_class = _class_moments(rows[part], edges, degree)  # (b, C, D)
        mean[part] = torch.einsum("c,bcd->bd", shares, by_class)
        centred = by_class - mean[part, None]
        spread[part] = (centred * shares[:, None]).transpose(1, 2) @ centred
    return mean, spread


def _class_moments(rows: Rows, edges: torch.Tensor, degree: int) -> torch.Tensor:
    """Mean of t^k / k! over each class for k = 1, …, D, as (b, C, D)."""
    counts = edges.diff()
    if fused.available(rows):  # one power at a time is a polynomial: memory is read D times, nothing is written
        moments = []
        for order in range(1, degree + 1):
            power = torch.zeros((len(rows), order + 1), dtype=torch.float64, device=rows.device)
            power[:, order] = 1 / math.factorial(order)
            moments.append(fused.class_sums(rows, edges, power) / counts)
        return torch.stack(moments, dim=2)
    t = rows.T.double()  # (n, b): classes are runs of the first axis
    powers, moments = torch.ones_like(t), []
    for order in range(1, degree + 1):
        powers = powers * (t / order)
        moments.append(torch.segment_reduce(powers, "mean", lengths=counts, axis=0))
    return torch.stack(moments, dim=2).permute(1, 0, 2)


def place(rows: Rows, codes: torch.Tensor, weights: torch.Tensor, terms: torch.Tensor) -> None:
    """Turn grouped feature projections into data point projections: weight × t + the class's term."""
    if fused.available(rows):
        fused.place(rows, codes, weights, terms)
        return
    for line in range(len(rows)):
        rows[line] = (weights[line] * rows[line].double() + terms[line][codes.long()]).float()


def sort(rows: Rows) -> Rows:
    """Sort every row ascending."""
    return torch.sort(rows, dim=1).values


def transport_rows(a: Rows, b: Rows, p: float, steps: fused.Steps | None) -> torch.Tensor:
    """W_p^p (B,) between each sorted row of a (B, n) and of b (B, m); no steps are needed if n = m."""
    if fused.available(a):
        return fused.transport(a, b, p, steps)
    if steps is None:
        return _powered((a - b).abs_(), p).mean(dim=1)
    left, right, width = steps
    return _powered((a[:, left] - b[:, right]).abs_(), p) @ width


def steps_of(overlaps: Overlaps, device: torch.device) -> fused.Steps:
    """Overlaps as tensors on a device: left, right and width."""
    left, right = (torch.from_numpy(index).long().to(device) for index in (overlaps.left, overlaps.right))
    return left, right, torch.from_numpy(overlaps.width).to(device)


def _powered(gaps: torch.Tensor, p: float) -> torch.Tensor:
    """|gap|^p in float64."""
    wide = gaps.double()
    return wide if p == 1 else wide.square_() if p == 2 else wide.pow_(p)


def row_blocks(data: LabelledData) -> list[slice]:
    """Rows that travel to the device at a time: about 64 MB of float32."""
    count = max(1, (16 << 20) // data.n_features)
    return [slice(start, start + count) for start in range(0, data.n_points, count)]


def checked_device(device: str | torch.device) -> torch.device:
    """A torch device that is there, or an error that says which are."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise SotddError(f"device is {device!r}: expected 'auto', 'cpu', 'cuda' or such as 'cuda:1'.") from error
    if found.type == "cuda":
        if not torch.cuda.is_available():
            raise SotddError(
                f"device is {device!r} but torch {torch.__version__} finds no GPU here: use device='cpu', or install a "
                "torch with CUDA."
            )
        count = torch.cuda.device_count()
        if found.index is not None and found.index >= count:
            raise SotddError(f"device is {device!r} but there are {count} GPUs here: use cuda:0 to cuda:{count - 1}.")
    elif found.type != "cpu":
        raise SotddError(f"device is {device!r}: expected 'auto', 'cpu', 'cuda' or such as 'cuda:1'.")
    return found
