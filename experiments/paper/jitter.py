"""Random changes of pictures, one draw for every picture, on any device: a cut, a mirror, and colours."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

# Red, green and blue to brightness and two axes of colour, and back.
_TO_YIQ = ((0.299, 0.587, 0.114), (0.5959, -0.2746, -0.3213), (0.2115, -0.5227, 0.3112))
_GREY = (0.299, 0.587, 0.114)
_LEAST_AREA, _MOST_RATIO = 0.08, 4 / 3  # of a cut, as is usual for ImageNet


@dataclass(frozen=True)
class Jitter:
    """How far brightness, contrast and saturation may go from one, and hue from zero (in turns of the circle)."""

    brightness: float
    contrast: float
    saturation: float
    hue: float

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Pictures (n, h, w, 3) of uint8, changed."""
        drawn = torch.rand((len(x), 4), generator=generator).to(x.device) * 2 - 1
        shown = changed(x.float() / 255, drawn * drawn.new_tensor(self.strengths))
        return (shown * 255).round().to(torch.uint8)

    @property
    def strengths(self) -> tuple[float, float, float, float]:
        """All four."""
        return self.brightness, self.contrast, self.saturation, self.hue


def changed(x: Tensor, amounts: Tensor) -> Tensor:
    """Pictures (n, h, w, 3) between 0 and 1 by (n, 4): brightness, contrast, saturation above one, turns of hue."""
    bright, contrast, saturation = (1 + amounts[:, place, None, None, None] for place in range(3))
    shown = (x * bright).clamp(0, 1)
    level = _grey(shown).mean(dim=(1, 2), keepdim=True)
    shown = (level + (shown - level) * contrast).clamp(0, 1)
    grey = _grey(shown)
    shown = (grey + (shown - grey) * saturation).clamp(0, 1)
    return turned(shown, amounts[:, 3]).clamp(0, 1)


def _grey(x: Tensor) -> Tensor:
    return (x * torch.tensor(_GREY, device=x.device)).sum(dim=3, keepdim=True)


def turned(x: Tensor, turns: Tensor) -> Tensor:
    """Turn the colours of each picture around grey, by parts of the whole circle."""
    to = torch.tensor(_TO_YIQ, device=x.device)
    back = torch.linalg.inv(torch.tensor(_TO_YIQ)).to(x.device)
    angle = 2 * torch.pi * turns
    cos, sin, zero, one = angle.cos(), angle.sin(), torch.zeros_like(angle), torch.ones_like(angle)
    rows = torch.stack([one, zero, zero, zero, cos, -sin, zero, sin, cos], dim=1).view(-1, 3, 3)
    whole = back @ rows @ to  # (n, 3, 3)
    return torch.einsum("nhwc,ndc->nhwd", x, whole)


def cut(x: Tensor, side: int, drawn: Tensor) -> Tensor:
    """A random part of each picture (n, h, w, 3), mirrored or not, as (n, side, side, 3); drawn is uniform, (n, 5)."""
    area = _LEAST_AREA + (1 - _LEAST_AREA) * drawn[:, 0]
    ratio = torch.exp(math.log(_MOST_RATIO) * (2 * drawn[:, 1] - 1))
    wide, high = (area * ratio).sqrt().clamp(max=1), (area / ratio).sqrt().clamp(max=1)
    right, down = (1 - wide) * (2 * drawn[:, 2] - 1), (1 - high) * (2 * drawn[:, 3] - 1)
    mirror = torch.where(drawn[:, 4] < 0.5, -1.0, 1.0)
    zero = torch.zeros_like(wide)
    maps = torch.stack([wide * mirror, zero, right, zero, high, down], dim=1).view(-1, 2, 3)
    return _sampled(x, side, maps)


def whole(x: Tensor, side: int) -> Tensor:
    """All of each picture, as (n, side, side, 3)."""
    maps = torch.eye(2, 3, device=x.device).expand(len(x), -1, -1)
    return _sampled(x, side, maps)


def _sampled(x: Tensor, side: int, maps: Tensor) -> Tensor:
    grid = functional.affine_grid(maps, [len(x), 3, side, side], align_corners=False)
    shown = functional.grid_sample(x.permute(0, 3, 1, 2), grid, padding_mode="border", align_corners=False)
    return shown.permute(0, 2, 3, 1)
