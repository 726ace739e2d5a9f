"""What travels to a torch device, projections as drawn and points scaled and grouped by class, and what fits there.

Structured directions are fused by Triton, or made by products with small Hadamard matrices. One of A · B rows is the
Kronecker product of those of A and of B rows, so a transform is a few products with matrices of at most 32 rows, which
need no more memory than the points do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from sotdd.compute.torch import fused
from sotdd.compute.torch import rows as verbs
from sotdd.compute.torch.rows import Classes, Layout, Rows, Scaling, Terms, copy_array
from sotdd.inputs.data import LabelledData
from sotdd.inputs.tensors import DeviceFeatures
from sotdd.projections.blocks import BLOCK, Block
from sotdd.projections.maps import DirectionMap
from sotdd.projections.recipe import Projections
from sotdd.projections.rotations import Rotation
from sotdd.projections.scaler import Scaler

# Of the memory that is free: for datasets that stay on the device, and for one chunk's work.
_RESIDENT_SHARE = 0.4
_CHUNK_SHARE = 0.5
# On the processor the engine takes this much memory for a chunk.
_HOST_BYTES = 256 << 20
# Bytes per value of the dataset at work: projections, their sort, and the indices that torch sorts along.
_WORK_BYTES = 24
_LARGEST_CHUNK = 32 * BLOCK
# Rows of the small Hadamard matrices, at most.
_SMALL = 32
# Values of a transform that are worked on at a time.
_VALUES_ON_DEVICE, _VALUES_ON_HOST = 1 << 28, 1 << 22
# Chunks whose projections are drawn, or being drawn, when one is begun, and the memory that directions may take then.
DRAWN_AHEAD, _DRAWN_BYTES = 6, 1 << 30


@dataclass(frozen=True, eq=False)
class Uploaded:
    """Some projections on the device."""

    block: Block
    directions: list[UploadedDirections]
    terms: Terms
    draws: torch.Tensor  # (B, 10, J) what moments count by

    @classmethod
    def of(cls, block: Block, device: torch.device) -> Uploaded:
        """Copy a block of projections to the device."""
        directions, terms = (
            [UploadedDirections.of(one, device) for one in block.directions],
            Terms.of(block.terms, device),
        )
        return cls(block, directions, terms, copy_array(block.further, np.float64, device))


@dataclass(frozen=True, eq=False)
class UploadedDirections:
    """A direction map on the device: a matrix, or rows of rotations, or a map of a user's own."""

    drawn: DirectionMap
    theta: torch.Tensor | None
    rotations: list[UploadedRotation]

    @classmethod
    def of(cls, drawn: DirectionMap, device: torch.device) -> UploadedDirections:
        """Copy what it is made of."""
        rotations = [UploadedRotation.of(rotation, first, stop, device) for rotation, first, stop in drawn.rotations]
        linear = drawn.matrix if not rotations else None
        return cls(drawn, None if linear is None else copy_array(linear, np.float32, device), rotations)

    def project(self, points: torch.Tensor, kept: dict[object, torch.Tensor]) -> Rows:
        """The projections (B, m) of points (m, d); what is made of the points for all directions is ``kept``."""
        if self.rotations:
            return self._rotate(points, kept)
        if self.theta is not None:
            rows, clamp = self.theta @ points.T, self.drawn.clamp
            return rows if clamp is None else rows.clamp_(-clamp, clamp)
        if self.drawn.differentiable:
            found: Rows = self.drawn.project_tensor(points)
            return found.float()
        return torch.from_numpy(self.drawn(points.cpu().numpy())).to(points.device)

    def _rotate(self, points: torch.Tensor, kept: dict[object, torch.Tensor]) -> Rows:
        """Stretch points where directions are, and go through one rotation after another."""
        stretch = self.drawn.rotations[0][0].stretch
        if stretch is not None:
            if stretch not in kept:
                basis, further = (
                    copy_array(part, np.float32, points.device) for part in (stretch.basis, stretch.further)
                )
                kept[stretch] = torch.addmm(points, points @ basis.T, further)
            points = kept[stretch]
        rows, done = points.new_empty((len(self.drawn), len(points))), 0
        for rotation in self.rotations:
            rotation.write(points, rows[done : done + len(rotation.scales)])
            done += len(rotation.scales)
        return rows


def scale_points(data: LabelledData, block: slice, scaling: Scaling | None, device: torch.device) -> torch.Tensor:
    """Some points (m, d) on the device, float32, scaled in float64."""
    if isinstance(data.features, DeviceFeatures):
        raw: torch.Tensor = data.features.tensor[block].reshape(-1, data.n_features).to(device)
    else:
        raw = torch.from_numpy(np.require(data.rows(block), requirements=("C", "W"))).to(device)
    if scaling is None:
        return raw.to(torch.float32)
    if scaling.arcsinh:
        return ((raw - scaling.centre) * scaling.inverse).asinh_().to(torch.float32)
    # Both steps are in float64.
    return torch.mul(raw - scaling.centre, scaling.inverse, out=torch.empty(raw.shape, device=device))


def lay_out(datasets: Sequence[LabelledData], scaler: Scaler | None, device: torch.device) -> list[Layout]:
    """The datasets' classes on the device, and their points too where all of them fit, those of twins once."""
    sizes = {id(data.features): data.n_points * data.n_features for data in datasets}
    needed = sum(sizes.values())
    stays = device.type == "cuda" and 3 * 4 * needed <= _RESIDENT_SHARE * free_bytes(device)
    scaling = None
    if scaler is not None:
        centre, inverse = copy_array(np.stack([scaler.centre, scaler.inverse]), np.float64, device)
        scaling = Scaling(centre, inverse, scaler.arcsinh)
    layouts: list[Layout] = []
    for data in datasets:
        twin = next((one for one in layouts if _are_twins(one.data, data)), None)
        layouts.append(_lay_one_out(data, scaling, device, stays, twin))
    return layouts


def _are_twins(one: LabelledData, other: LabelledData) -> bool:
    """Whether two datasets are the same points in the same classes, or in one class."""
    return one.features is other.features and (one.codes is other.codes or len(other.classes) == 1)


def _lay_one_out(
    data: LabelledData, scaling: Scaling | None, device: torch.device, stays: bool, twin: Layout | None
) -> Layout:
    offsets = data.offsets
    classes = Classes.of(offsets, copy_array(offsets, np.int64, device))
    if twin is not None:  # points of one class are in any order
        return replace(twin, data=data, classes=classes, kept={})
    position = None
    if (data.codes[1:] < data.codes[:-1]).any():  # not class by class
        order = torch.argsort(copy_array(data.codes, np.int64, device), stable=True)
        position = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=device))
    points = None
    if stays:
        try:
            points = torch.empty((data.n_points, data.n_features), device=device)
            raw = data.features.tensor if isinstance(data.features, DeviceFeatures) else None
            linear = scaling if scaling is not None and not scaling.arcsinh else None
            if raw is not None and linear is not None and raw.device == device and fused.available(raw):
                fused.scale_points(
                    raw.reshape(points.shape).contiguous(), position, linear.centre, linear.inverse, points
                )
                return Layout(data, classes, position, points, scaling)
            for block in verbs.cut_rows(data):
                at = block if position is None else position[block]
                points[at] = scale_points(data, block, scaling, device)
        except torch.OutOfMemoryError:
            points = None
            give_back(device)
    return Layout(data, classes, position, points, scaling)


def find_point_norms(layout: Layout, device: torch.device) -> torch.Tensor:
    """Means over the scaled points of a dataset, (4 + d,) in float64, as `Slices` has them; kept for the next chunk."""
    if "point norms" not in layout.kept:
        counts, parts = layout.classes.edges.diff(), []
        if layout.points is not None and fused.available(layout.points) and len(layout.data.feature_parts()) == 1:
            by_class, squares = fused.sum_points(layout.points, layout.classes.edges)
            parts.append(by_class)
        else:
            squares = torch.zeros(layout.data.n_points, dtype=torch.float64, device=device)
            parts = [_sum_classes(layout, part, squares, device) for part in layout.data.feature_parts()]
        between = torch.stack([(part.square().sum(dim=1) / counts).sum() for part in parts]).sum()
        lengths = torch.stack([squares.sum(), squares.square().sum(), squares.pow(3).sum(), between])
        total = torch.cat([part.sum(dim=0) for part in parts])
        layout.kept["point norms"] = torch.cat([lengths, total]) / layout.data.n_points
    return layout.kept["point norms"]


def _sum_classes(layout: Layout, part: slice, squares: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Sums (C, …) of some features over each class; with the first ones, squared lengths of points are written too."""
    data = layout.data
    by_class = torch.zeros((len(data.classes), part.stop - part.start), dtype=torch.float64, device=device)
    for block in verbs.cut_rows(data):
        if layout.points is None:
            points = scale_points(data, block, layout.scaling, device).double()
            codes = copy_array(data.codes[block], np.int64, device)
        else:
            points, codes = layout.points[block].double(), layout.classes.codes[block]
        by_class.index_add_(0, codes, points[:, part])
        if part.start == 0:
            squares[block] = points.square_().sum(dim=1)
    return by_class


# ------------------------------------------------------------------ memory


def free_bytes(device: torch.device) -> int:
    """Memory that a chunk may take, what torch holds without using it included."""
    if device.type != "cuda":
        return _HOST_BYTES
    free, _ = torch.cuda.mem_get_info(device)
    held = torch.cuda.memory_stats_as_nested_dict(device)  # asked for once: the flat one takes half a millisecond
    reserved, used = (held[f"{kind}_bytes"]["all"]["current"] for kind in ("reserved", "allocated"))
    return int(free + reserved - used)


def fit_chunk(datasets: Sequence[LabelledData], projections: Projections, device: torch.device) -> int:
    """How many projections of all datasets fit in memory at a time: a multiple of 64, or a power of two."""
    sizes = [data.n_points for data in datasets] or [1]
    per_projection = 4 * sum(sizes) + (_WORK_BYTES + 4 * (projections.n_directions - 1)) * max(sizes)
    fitting = int(_CHUNK_SHARE * free_bytes(device)) // per_projection
    rotation_size = projections.rotation_size
    if rotation_size is not None:  # projections of a rotation share most of their work
        largest = max(_LARGEST_CHUNK, rotation_size)
        return min(largest, 1 << max(BLOCK, fitting).bit_length() - 1)
    fitting = min(fitting, _DRAWN_BYTES // (DRAWN_AHEAD * 4 * projections.n_directions * projections.n_features))
    return max(1, min(_LARGEST_CHUNK, fitting) // BLOCK) * BLOCK


def halve(size: int, device: torch.device, error: torch.OutOfMemoryError) -> int:
    """Half as many rows, after memory ran out; a single one that does not fit is torch's own error."""
    if size <= 1:
        raise error
    give_back(device)
    return size // 2


def give_back(device: torch.device) -> None:
    """Give memory that torch holds without using it back to the device."""
    if device.type == "cuda":
        torch.cuda.empty_cache()


# ------------------------------------------------------------------ structured directions


@dataclass(frozen=True, eq=False)
class UploadedRotation:
    """Some directions of a rotation, from ``first`` on, on the device."""

    signs: torch.Tensor  # (3, D)
    scales: torch.Tensor  # (B,)
    first: int

    @classmethod
    def of(cls, rotation: Rotation, first: int, stop: int, device: torch.device) -> UploadedRotation:
        """Copy what these directions need."""
        signs, scales = (copy_array(part, np.float32, device) for part in (rotation.signs, rotation.scales[first:stop]))
        return cls(signs, scales, first)

    def write(self, points: torch.Tensor, out: torch.Tensor) -> None:
        """Write the projections (B, m) of stretched points (m, d)."""
        if fused.available(points) and self.signs.shape[1] <= fused.LARGEST_ROTATION:
            fused.project_rotation(points, self.signs, self.scales, self.first, out)
            return
        for block in _cut_points(len(points), self.signs):
            out[:, block] = self._multiply(points[block]).mul_(self.scales[:, None])

    def _multiply(self, points: torch.Tensor) -> torch.Tensor:
        """Products (B, m) with bare rows of the rotation."""
        count, size = len(self.scales), self.signs.shape[1]
        z = points.new_zeros((size, len(points)))
        torch.mul(points.T, self.signs[0, : points.shape[1], None], out=z[: points.shape[1]])
        for step in (1, 2):
            z = _transform(z).mul_(self.signs[step, :, None])
        whole = 1  # the rows wanted are among these, aligned, which a smaller transform leads to
        while self.first // whole != (self.first + count - 1) // whole:
            whole *= 2
        row = self.first // whole
        chosen = _make_signs(row, size // whole, z)
        folded = (chosen @ z.view(size // whole, -1)).view(whole, -1)
        skipped = self.first - row * whole
        return _transform(folded)[skipped : skipped + count]


def _transform(z: torch.Tensor) -> torch.Tensor:
    """H times z (D, m)."""
    size, m = z.shape
    done = 1
    while done < size:
        small = min(_SMALL, size // done)
        z = (_make_hadamard(small, z) @ z.view(done, small, -1)).view(size, m)
        done *= small
    return z


def _make_hadamard(size: int, like: torch.Tensor) -> torch.Tensor:
    """The Hadamard matrix of this size."""
    rows = torch.ones((1, 1), dtype=like.dtype, device=like.device)
    while len(rows) < size:
        rows = torch.cat([torch.cat([rows, rows], 1), torch.cat([rows, -rows], 1)])
    return rows


def _make_signs(row: int, size: int, like: torch.Tensor) -> torch.Tensor:
    """One row of a Hadamard matrix."""
    signs = torch.ones(1, dtype=like.dtype, device=like.device)
    for bit in range(size.bit_length() - 1):
        signs = torch.cat([signs, -signs if row >> bit & 1 else signs])
    return signs


def _cut_points(n_points: int, signs: torch.Tensor) -> Iterator[slice]:
    count = max(1, (_VALUES_ON_DEVICE if signs.is_cuda else _VALUES_ON_HOST) // signs.shape[1])
    return (slice(start, start + count) for start in range(0, n_points, count))
