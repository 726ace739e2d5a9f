"""Projections by turns on a torch device: fused by Triton, or by products with small Hadamard matrices.

A Hadamard matrix of A · B rows is the Kronecker product of those of A and of B rows, so a transform is a few products
with matrices of at most 32 rows, which need no more memory than the points do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from sotdd.engines.torch import fused
from sotdd.projections.turns import Turn

# Rows of the small matrices, at most.
_SMALL = 32
# Values of a transform that are worked on at a time.
_VALUES_ON_DEVICE, _VALUES_ON_HOST = 1 << 28, 1 << 22


@dataclass(frozen=True, eq=False)
class UploadedTurn:
    """Some directions of a turn, from ``first`` on, on the device."""

    signs: torch.Tensor  # (3, D)
    basis: torch.Tensor  # (r, d)
    lean: torch.Tensor  # (B, r)
    scales: torch.Tensor  # (B,)
    first: int

    @classmethod
    def of(cls, turn: Turn, first: int, stop: int, device: torch.device) -> UploadedTurn:
        """Copy what these directions need."""
        parts = (turn.signs, turn.basis, turn.lean[first:stop], turn.scales[first:stop])
        together = _copied(np.concatenate([part.ravel() for part in parts]), device)
        signs, basis, lean, scales = (
            flat.view(part.shape)
            for flat, part in zip(together.split([part.size for part in parts]), parts, strict=True)  # type: ignore[no-untyped-call]
        )
        return cls(signs, basis, lean, scales, first)

    def write(self, points: torch.Tensor, out: torch.Tensor) -> None:
        """Write the projections (B, m) of points (m, d)."""
        along = self.basis @ points.T  # (r, m)
        if fused.available(points) and self.signs.shape[1] <= fused.LARGEST_TURN:
            fused.project_turn(points, self.signs, along, self.lean, self.scales, self.first, out)
            return
        for block in _blocks(len(points), self.signs):
            values = self._rows(points[block])
            values.addmm_(self.lean, along[:, block])
            out[:, block] = values.mul_(self.scales[:, None])

    def _rows(self, points: torch.Tensor) -> torch.Tensor:
        """Products (B, m) with bare rows of the turn."""
        count, size = len(self.scales), self.signs.shape[1]
        z = points.new_zeros((size, len(points)))
        torch.mul(points.T, self.signs[0, : points.shape[1], None], out=z[: points.shape[1]])
        for step in (1, 2):
            z = _transformed(z).mul_(self.signs[step, :, None])
        whole = 1  # the rows wanted are among these, aligned, which a smaller transform leads to
        while self.first // whole != (self.first + count - 1) // whole:
            whole *= 2
        row = self.first // whole
        chosen = _signs_of(row, size // whole, z)
        folded = (chosen @ z.view(size // whole, -1)).view(whole, -1)
        skipped = self.first - row * whole
        return _transformed(folded)[skipped : skipped + count]


def project(points: torch.Tensor, turns: list[UploadedTurn]) -> torch.Tensor:
    """The projections (B, m) of points (m, d)."""
    rows = points.new_empty((sum(len(turn.scales) for turn in turns), len(points)))
    done = 0
    for turn in turns:
        turn.write(points, rows[done : done + len(turn.scales)])
        done += len(turn.scales)
    return rows


def _transformed(z: torch.Tensor) -> torch.Tensor:
    """H times z (D, m)."""
    size, m = z.shape
    done = 1
    while done < size:
        small = min(_SMALL, size // done)
        z = (_hadamard(small, z) @ z.view(done, small, -1)).view(size, m)
        done *= small
    return z


def _hadamard(size: int, like: torch.Tensor) -> torch.Tensor:
    """The Hadamard matrix of this size."""
    rows = torch.ones((1, 1), dtype=like.dtype, device=like.device)
    while len(rows) < size:
        rows = torch.cat([torch.cat([rows, rows], 1), torch.cat([rows, -rows], 1)])
    return rows


def _signs_of(row: int, size: int, like: torch.Tensor) -> torch.Tensor:
    """One row of a Hadamard matrix."""
    signs = torch.ones(1, dtype=like.dtype, device=like.device)
    for bit in range(size.bit_length() - 1):
        signs = torch.cat([signs, -signs if row >> bit & 1 else signs])
    return signs


def _blocks(n_points: int, signs: torch.Tensor) -> Iterator[slice]:
    count = max(1, (_VALUES_ON_DEVICE if signs.is_cuda else _VALUES_ON_HOST) // signs.shape[1])
    return (slice(start, start + count) for start in range(0, n_points, count))


def _copied(array: NDArray[np.float32], device: torch.device) -> torch.Tensor:
    host = torch.from_numpy(np.array(array, np.float32))
    return (host.pin_memory() if device.type == "cuda" else host).to(device, non_blocking=device.type == "cuda")
