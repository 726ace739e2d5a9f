"""What the torch engine does to points and rows, one verb each, and the projections that it does it by.

Structured directions are fused by Triton, or made by products with small Hadamard matrices. One of A · B rows is the
Kronecker product of those of A and of B rows, so a transform is a few products with matrices of at most 32 rows, which
need no more memory than the points do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import pairwise as neighbours
from typing import TypeAlias, cast

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import hadamard

from sotdd.basics.errors import SotddError
from sotdd.basics.resources import kept_property
from sotdd.basics.text import say_count
from sotdd.compute.class_moments import EVEN
from sotdd.compute.class_moments import combine_classes as combine_on_host
from sotdd.compute.kernels.rows import Overlaps
from sotdd.compute.resampling import Marks, Plan, Side
from sotdd.compute.slices import ProjectedPoints
from sotdd.compute.torch import fused
from sotdd.inputs.data import LabelledData, cut_range
from sotdd.projections.labels import find_class_terms as find_on_host
from sotdd.projections.maps import ORDERS, Block, DirectionMap
from sotdd.projections.rotations import HadamardDirections

Rows = torch.Tensor  # (B, n) float32: one row per projection, one value per point
# Makes rows (B, m) of points (m, d); what it makes of the points for all directions it keeps in the dictionary.
Map: TypeAlias = Callable[[torch.Tensor, dict[object, torch.Tensor]], Rows]

# Up to this many classes are sorted one after another.
_FEW_CLASSES = 32
# Values whose classes are sorted at a time: that takes indices twice, and sums in float64.
_CLASS_VALUES = 1 << 22
# Values whose powers are taken at a time.
_SUMMARISED = 1 << 24
# Values of splits that are worked on at a time.
_SPLIT_VALUES = 1 << 26
# Directions up to this size are pinned, so that their copy goes on beside other work.
_PINNED_BYTES = 32 << 20
# Rows of the small Hadamard matrices, at most.
_SMALL = 32
# Values of a transform that are worked on at a time.
_VALUES_ON_DEVICE, _VALUES_ON_HOST = 1 << 28, 1 << 22
_TORCH_TYPES = {np.float32: torch.float32, np.float64: torch.float64, np.int64: torch.int64}


def copy_array(array: NDArray[np.number], dtype: type[np.number], device: torch.device) -> torch.Tensor:
    """An array on the device; the copy of a small one goes on beside other work."""
    small = device.type == "cuda" and array.size * np.dtype(dtype).itemsize < _PINNED_BYTES
    with np.errstate(over="ignore"):  # found, and explained, where rows are checked
        if not small:
            return torch.from_numpy(np.array(array, dtype)).to(device)
        pinned = torch.empty(array.shape, dtype=_TORCH_TYPES[dtype], pin_memory=True)
        pinned.numpy()[...] = array
    return pinned.to(device, non_blocking=True)


@dataclass(frozen=True, eq=False)
class Classes:
    """Where classes lie among points that are grouped by class."""

    offsets: NDArray[np.int64]  # (C + 1,) class boundaries
    edges: torch.Tensor  # (C + 1,) the same on the device

    @kept_property
    def codes(self) -> torch.Tensor:
        """(n,) the class of every point."""
        # Told its size, nobody waits for it.
        return torch.repeat_interleave(self.edges.diff(), output_size=int(self.offsets[-1])).int()


def find_class_terms(rows: Rows, classes: Classes, projections: Uploaded) -> torch.Tensor:
    """The label term (B, C) of every class in every projection, float64; on the host where tensors cannot tell."""
    drawn, coefficients = projections.block.terms, projections.coefficients
    if drawn.polynomial and fused.available(rows):
        return fused.average_classes(rows, classes.edges, coefficients, drawn.limit)
    if not (drawn.binned or drawn.differentiable):
        return torch.from_numpy(find_on_host(rows.cpu().numpy(), classes.offsets, drawn)).to(rows.device)
    found = []
    for some in cut_range(len(rows), _CLASS_VALUES // rows.shape[1]):
        if drawn.binned:
            found.append(quantile_terms(sort_classes(rows[some], classes), classes.edges, coefficients[some]))
        else:
            values: torch.Tensor = drawn.part(some).evaluate_tensor(rows[some].double())
            sums = values.new_zeros((len(values), len(classes.offsets) - 1))
            found.append(sums.index_add_(1, classes.codes, values) / classes.edges.diff())
    return torch.cat(found)


def sort_classes(rows: Rows, classes: Classes) -> Rows:
    """The values of each row (B, n) sorted within each class.

    A few classes are sorted one after another. Many are sorted at once: by value, then by class,
    where the second sort keeps the order that the first made.
    """
    if len(classes.offsets) <= _FEW_CLASSES + 1:
        parts = [sort(rows[:, first:last]) for first, last in neighbours(classes.offsets)]
        return torch.cat(parts, dim=1)
    values, order = torch.sort(rows, dim=1)
    regrouped = torch.sort(classes.codes[order], dim=1, stable=True).indices
    return values.gather(1, regrouped)


def quantile_terms(rows: Rows, edges: torch.Tensor, coefficients: torch.Tensor) -> torch.Tensor:
    """Means (B, C) of each class over K equal bins times their coefficients (B, K), in float64.

    rows (B, n) are sorted within classes, which edges (C + 1,) bound. What lies before a bin's end is
    a running sum and a share of the value in which the bin ends; nothing depends on the order in which
    a device adds.
    """
    levels, sizes = coefficients.shape[1], edges.diff()
    ends = torch.arange(levels + 1, device=rows.device) * sizes[:, None]  # (C, K + 1) in units of 1 / (m K)
    within = edges[:-1, None] + ends // levels  # value in which each bin ends
    share = (ends % levels).double() / levels
    before = _sum_values(rows, within, share)  # (B, C, K + 1)
    bins = before.diff(dim=2) * (levels / sizes.double())[:, None]
    return torch.einsum("bck,bk->bc", bins, coefficients)


def _sum_values(rows: Rows, whole: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
    """Sums (B, …) of so many whole values of each row (B, n) and a share of the next, in float64."""
    wide = rows.double()
    running = torch.nn.functional.pad(wide.cumsum(dim=1), (1, 0))
    # Where all values are whole, no share of another is taken.
    return running[:, whole] + share * wide[:, whole.clamp(max=rows.shape[1] - 1)]


def shift_rows(rows: Rows, codes: torch.Tensor, weights: torch.Tensor, terms: torch.Tensor) -> None:
    """Turn grouped feature projections into data point projections: weight × t + the class's term."""
    if fused.available(rows):
        fused.shift_rows(rows, codes, weights, terms)
        return
    for some in cut_range(len(rows), _CLASS_VALUES // rows.shape[1]):
        rows[some] = weights[some, None] * rows[some].double() + terms[some][:, codes.long()]


def sort(rows: Rows) -> Rows:
    """Every row sorted ascending; the rows themselves may be overwritten."""
    return rows if fused.sort_in_place(rows) else torch.sort(rows, dim=1).values


def average_parts(rows: Rows, edges: NDArray[np.float64]) -> Rows:
    """Means (B, Q) of each sorted row (B, n) over parts of probability with these edges (Q + 1,).

    Sums up to the edges are subtracted, in float64, but for parts that lie within one point, of which there are many
    in the tails: these are that point.
    """
    n = rows.shape[1]
    places = torch.from_numpy(edges * n).to(rows.device)
    whole = places.floor().long().clamp(max=n - 1)
    share, sizes = places - whole, places.diff()
    one_point = (whole[1:] == whole[:-1]) | (places[1:] <= whole[:-1] + 1)
    means = torch.empty((len(rows), len(edges) - 1), dtype=torch.float32, device=rows.device)
    for some in cut_range(len(rows), _CLASS_VALUES // n):  # some rows at a time: float64 sums stay small
        between = _sum_values(rows[some], whole, share).diff(dim=1) / sizes
        means[some] = torch.where(one_point, rows[some][:, whole[:-1]], between)
    return means


def transport(rows: Sequence[Rows], pairs: Sequence[tuple[int, int]], p: float) -> torch.Tensor:
    """W_p^p (B, P) of every pair of datasets."""
    if fused.available(rows[0]):
        return fused.transport(rows, pairs, p)
    return torch.stack([transport_rows(rows[i], rows[j], p) for i, j in pairs], dim=1)


def transport_rows(a: Rows, b: Rows, p: float) -> torch.Tensor:
    """W_p^p (B,) between each sorted row of a (B, n) and of b (B, m)."""
    if a.shape[1] == b.shape[1]:
        return _raise_gaps((a - b).abs_(), p).mean(dim=1)
    overlaps = Overlaps.of(a.shape[1], b.shape[1])
    left, right = (torch.from_numpy(index).long().to(a.device) for index in (overlaps.left, overlaps.right))
    return _raise_gaps((a[:, left] - b[:, right]).abs_(), p) @ torch.from_numpy(overlaps.width).to(a.device)


def _raise_gaps(gaps: torch.Tensor, p: float) -> torch.Tensor:
    """|gap|^p in float64."""
    wide = gaps.double()
    return wide if p == 1 else wide.square_() if p == 2 else wide.pow_(p)


def split_costs(points: ProjectedPoints, plan: Plan, marks: Marks) -> torch.Tensor:
    """W_p^p (B, S, orders) between the two sides of some splits of a plan, for each of its orders p."""
    rows, costs = cast("Rows", points.rows), []
    uploaded, together = Uploaded.of(Block((), points.terms), rows.device), _SPLIT_VALUES // len(rows)
    for some in cut_range(len(marks), together // sum(plan.sizes)):
        drawn = [plan.list_sides(marked) for marked in marks[some]]
        how = uploaded if plan.labels else None
        a, b = (_sort_sides(points, sides, how) for sides in zip(*drawn, strict=True))  # (B · S, n) and (B · S, m)
        found = torch.cat([transport([a, b], [(0, 1)], p) for p in plan.orders], dim=1)
        costs.append(found.view(len(rows), len(drawn), len(plan.orders)))
    return torch.cat(costs, dim=1)


def _sort_sides(points: ProjectedPoints, sides: Sequence[Side], projections: Uploaded | None) -> Rows:
    """Sorted data point projections (B · S, n) of the points of some sides, each of n points.

    Without projections they are of features alone. All sides are one row for the time of the work, in which the classes
    of each side are classes of their own.
    """
    rows, label_rows = cast("Rows", points.rows), cast("Rows", points.label_rows)
    device, count, n = rows.device, len(sides), len(sides[0].index)
    starts = np.cumsum([0, *(side.offsets[-1] for side in sides)])
    offsets = np.concatenate([[0], *(side.offsets[1:] + start for side, start in zip(sides, starts, strict=False))])
    chosen = np.concatenate([side.index for side in sides])
    edges, index = torch.split(
        copy_array(np.concatenate([offsets, chosen]), np.int64, device), [len(offsets), len(chosen)]
    )
    rows = rows.index_select(1, index)
    if projections is not None:
        classes, label_rows = Classes(offsets, edges), rows if points.shared else label_rows.index_select(1, index)
        shift_rows(rows, classes.codes, projections.weights, find_class_terms(label_rows, classes, projections))
    return sort(rows.view(len(rows) * count, n))


def cut_rows(data: LabelledData) -> list[slice]:
    """Rows that travel to the device at a time: about 64 MB of float32."""
    return cut_range(data.n_points, (16 << 20) // data.n_features)


def check_device(device: str | torch.device) -> torch.device:
    """A torch device that is there, or an error."""
    if isinstance(device, str) and device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    chosen = None
    with suppress(RuntimeError, TypeError, ValueError):
        chosen = torch.device(device)
    if chosen is None or chosen.type not in ("cpu", "cuda"):
        raise SotddError(f"device is {device!r}: expected 'auto', 'cpu', 'cuda' or 'cuda:1'.")
    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if chosen.type == "cuda" and (chosen.index or 0) >= found:
        raise SotddError(f"device is {device!r} but torch {torch.__version__} finds {say_count(found, 'GPU')} here.")
    return chosen


# ------------------------------------------------------------------ class moments, for control variates


def combine_classes(rows: Rows, edges: torch.Tensor, cut: float, counted: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Gaussian moments (B, J, 2) and direction moments (B, 5), from weights (B, 10, J) of moments in label samples."""
    found, counts, is_fused = [], edges.diff(), fused.available(rows)
    width = ORDERS * len(counts) + (0 if is_fused else rows.shape[1])
    for some in cut_range(len(rows), _SUMMARISED // width):  # some rows at a time: float64 copies stay small
        if is_fused:
            found.append(fused.place_labels(rows[some], edges, cut, counted[some], _inverse_factorials(rows.device)))
        else:
            known = *_sum_powers(rows[some], counts, cut), counts, counted[some]
            gaussian, directions = combine_on_host(*(part.cpu().numpy() for part in known))
            found.append((torch.from_numpy(gaussian).to(rows.device), torch.from_numpy(directions).to(rows.device)))
    return tuple(torch.cat(parts) if len(parts) > 1 else parts[0] for parts in zip(*found, strict=True))


@cache
def _inverse_factorials(device: torch.device) -> torch.Tensor:
    """1 / k! of the powers that the fused loop sums: 1, 2, 4 and 6 without a cut, then 1, …, 8."""
    orders = (1, *EVEN, *range(1, ORDERS + 1))
    return torch.tensor([1 / math.factorial(k) for k in orders], dtype=torch.float64, device=device)


def _sum_powers(rows: Rows, counts: torch.Tensor, cut: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Sums (b, C, 9) of t, and of t^k / k! with t cut to ±cut, over each class, and (b, 3) of t², t⁴, t⁶ over all."""
    t = rows.T.double()  # (n, b): classes are runs of the first axis
    even = torch.stack([t.pow(order).sum(dim=0) for order in EVEN], dim=1)
    sums, power, t = [torch.segment_reduce(t, "sum", lengths=counts, axis=0)], torch.ones_like(t), t.clamp(-cut, cut)
    for order in range(1, ORDERS + 1):
        power = power * (t / order)
        sums.append(torch.segment_reduce(power, "sum", lengths=counts, axis=0))
    return torch.stack(sums, dim=2).permute(1, 0, 2), even


# ------------------------------------------------------------------ projections on the device


@dataclass(frozen=True, eq=False)
class Uploaded:
    """Some projections on the device."""

    block: Block
    maps: list[Map]  # of features, and of what class terms are made of, where that has directions of its own
    weights: torch.Tensor  # (B,) of features
    coefficients: torch.Tensor  # (B, q) of label terms
    draws: torch.Tensor  # (B, 10, J) the weights of moments in further samples of the label law

    @classmethod
    def of(cls, block: Block, device: torch.device) -> Uploaded:
        """Copy a block of projections to the device."""
        numbers = block.terms.weights, block.terms.coefficients, block.further
        copies = [copy_array(part, np.float64, device) for part in numbers]
        return cls(block, [_upload_map(drawn, device) for drawn in block.directions], *copies)


def _upload_map(drawn: DirectionMap, device: torch.device) -> Map:
    """Copy the rotations or the matrix of a direction map; a map of a user's own stays where it is."""
    if isinstance(drawn, HadamardDirections):
        return _upload_rotations(drawn, device)
    if drawn.matrix is not None:
        theta = copy_array(drawn.matrix, np.float32, device)
        if drawn.clamp is None:
            return lambda points, _: theta @ points.T
        clamp = float(drawn.clamp)
        return lambda points, _: (theta @ points.T).clamp_(-clamp, clamp)
    if drawn.differentiable:
        return lambda points, _: drawn.project_tensor(points).float()
    return lambda points, _: torch.from_numpy(drawn(points.cpu().numpy())).to(points.device)


def _upload_rotations(drawn: HadamardDirections, device: torch.device) -> Map:
    """Copy rotations, and how points are stretched, as directions are."""
    stretch, order, parts = drawn.stretch, drawn.order, []
    for rotation, first, stop in drawn.parts:
        scales = copy_array(rotation.scales[first:stop], np.float32, device)
        parts.append((copy_array(rotation.signs, np.float32, device), scales, first))

    def project(points: torch.Tensor, kept: dict[object, torch.Tensor]) -> Rows:
        if order is not None:
            if "order" not in kept:
                kept["order"] = points[:, order.tolist()]
            points = kept["order"]
        if stretch is not None:
            if stretch not in kept:
                basis, moves = (copy_array(part, np.float32, device) for part in (stretch.basis, stretch.moves))
                kept[stretch] = torch.addmm(points, points @ basis.T, moves)
            points = kept[stretch]
        rows, done = points.new_empty((len(drawn), len(points))), 0
        for signs, scales, first in parts:
            _rotate(points, signs, scales, first, rows[done : done + len(scales)])
            done += len(scales)
        return rows

    return project


def _rotate(points: torch.Tensor, signs: torch.Tensor, scales: torch.Tensor, first: int, out: torch.Tensor) -> None:
    """Write projections (B, m) of stretched points (m, d) by directions of a rotation, from ``first`` on.

    The rotation has signs (3, D), and these directions scales (B,).
    """
    size = signs.shape[1]
    if fused.available(points) and size <= fused.LARGEST_ROTATION:
        fused.project_rotation(points, signs, scales, first, out)
        return
    for block in cut_range(len(points), (_VALUES_ON_DEVICE if signs.is_cuda else _VALUES_ON_HOST) // size):
        out[:, block] = _multiply(points[block], signs, first, len(scales)).mul_(scales[:, None])


def _multiply(points: torch.Tensor, signs: torch.Tensor, first: int, count: int) -> torch.Tensor:
    """Products (B, m) with bare rows of a rotation."""
    size = signs.shape[1]
    z = points.new_zeros((size, len(points)))
    torch.mul(points.T, signs[0, : points.shape[1], None], out=z[: points.shape[1]])
    for step in (1, 2):
        z = _transform(z).mul_(signs[step, :, None])
    whole = 1  # the rows wanted are among these, aligned, which a smaller transform leads to
    while first // whole != (first + count - 1) // whole:
        whole *= 2
    row = first // whole
    chosen = _make_signs(row, size // whole, z)
    folded = (chosen @ z.view(size // whole, -1)).view(whole, -1)
    return _transform(folded)[first - row * whole :][:count]


def _transform(z: torch.Tensor) -> torch.Tensor:
    """H times z (D, m)."""
    size, m = z.shape
    done = 1
    while done < size:
        small = min(_SMALL, size // done)
        z = (_make_hadamard(small, z.device) @ z.view(done, small, -1)).view(size, m)
        done *= small
    return z


@cache
def _make_hadamard(size: int, device: torch.device) -> torch.Tensor:
    """The Hadamard matrix of this size."""
    return torch.from_numpy(hadamard(size, np.float32)).to(device)


def _make_signs(row: int, size: int, like: torch.Tensor) -> torch.Tensor:
    """One row of a Hadamard matrix."""
    signs = torch.ones(1, dtype=like.dtype, device=like.device)
    for bit in range(size.bit_length() - 1):
        signs = torch.cat([signs, -signs if row >> bit & 1 else signs])
    return signs
