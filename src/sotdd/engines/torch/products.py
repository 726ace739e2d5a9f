"""Products at the accuracy of float32 by units that multiply halves, several times as fast as float32 itself.

A number of 24 bits is nearly the sum of two halves of 11 bits each. So a product of points and directions is three
products of halves, x₁θ₁ + x₁θ₂ + x₂θ₁, added up in float32; here as one, of points and directions three times as wide.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

# Halves go up to 65,504. The largest value of a point, and of all directions, is brought below this.
_LARGEST = 2.0**15
# Second halves are this much smaller than first ones.
_STEP = 2.0**11
# Exponents of a scale, at most.
_MOST_EXPONENT = 126

# Fewer multiplications than this are not worth to split the points for.
_WORTH_IT = 1 << 35


@dataclass(frozen=True, eq=False)
class SplitPoints:
    """Points (m, d) as halves, each point times a power of two of its own."""

    halves: torch.Tensor  # (m, 3 d): second halves, then the first ones twice
    exponents: torch.Tensor  # (m,) of those powers

    @classmethod
    def of(cls, points: torch.Tensor) -> SplitPoints:
        """Split float32 points."""
        exponents = _exponents(torch.linalg.vector_norm(points, ord=float("inf"), dim=1))
        first, second = _split(torch.ldexp(points, exponents[:, None]))
        return cls(torch.cat([second, first, first], dim=1), exponents)

    def along(self, theta: torch.Tensor) -> torch.Tensor:
        """Products (B, m) with directions (B, d)."""
        exponent = _exponents(theta.abs().amax())
        first, second = _split(torch.ldexp(theta, exponent))
        wide = torch.cat([first / _STEP, second / _STEP, first], dim=1)
        exponents = self.exponents + exponent
        back = torch.ldexp(torch.ones_like(exponents, dtype=torch.float32), -exponents)
        return _product(wide, self.halves).mul_(back)


def worth_it(theta: torch.Tensor, points: torch.Tensor) -> bool:
    """Whether there is enough to multiply, and a unit that multiplies halves and adds in float32."""
    known: list[str] = torch.ops.aten.mm.overloads()  # type: ignore[no-untyped-call]
    return theta.is_cuda and len(theta) * points.numel() >= _WORTH_IT and "dtype" in known


def _exponents(largest: torch.Tensor) -> torch.Tensor:
    """Of the powers of two that bring these largest values near to what halves can be."""
    return (torch.frexp(_LARGEST / largest).exponent - 1).clamp_(-_MOST_EXPONENT, _MOST_EXPONENT)


def _split(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Halves whose sum is nearly the values, the second ``_STEP`` times as large."""
    first = values.half()
    return first, ((values - first.float()) * _STEP).half()


def _product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Product of a (B, k) and b (m, k), multiplied as halves and added in float32."""
    return torch.mm(a, b.T, out_dtype=torch.float32) if a.is_cuda else a.float() @ b.float().T
