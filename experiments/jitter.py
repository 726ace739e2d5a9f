"""Random changes of colour, one draw for every picture, on any device."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

# Red, green and blue to brightness and two axes of colour, and back.
_TO_YIQ = ((0.299, 0.587, 0.114), (0.5959, -0.2746, -0.3213), (0.2115, -0.5227, 0.3112))
_GREY = (0.299, 0.587, 0.114)


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
        bright, contrast, saturation = (
            (1 + strength * drawn[:, place])[:, None, None, None]
            for place, strength in enumerate((self.brightness, self.contrast, self.saturation))
        )
        shown = (x.float() / 255 * bright).clamp(0, 1)
        level = _grey(shown).mean(dim=(1, 2), keepdim=True)
        shown = (level + (shown - level) * contrast).clamp(0, 1)
        grey = _grey(shown)
        shown = (grey + (shown - grey) * saturation).clamp(0, 1)
        shown = turned(shown, drawn[:, 3] * self.hue).clamp(0, 1)
        return (shown * 255).round().to(torch.uint8)


def _grey(x: Tensor) -> Tensor:
    return (x * torch.tensor(_GREY, device=x.device)).sum(dim=3, keepdim=True)


def turned(x: Tensor, turns: Tensor) -> Tensor:
    """Turn the colours of each picture around grey, by parts of the whole circle."""
    to = torch.tensor(_TO_YIQ, device=x.device)
    angle = 2 * torch.pi * turns
    cos, sin, zero, one = angle.cos(), angle.sin(), torch.zeros_like(angle), torch.ones_like(angle)
    rows = torch.stack([one, zero, zero, zero, cos, -sin, zero, sin, cos], dim=1).view(-1, 3, 3)
    whole = torch.linalg.inv(to) @ rows @ to  # (n, 3, 3)
    return torch.einsum("nhwc,ndc->nhwd", x, whole)
