"""Many small networks of one shape, trained side by side as one batched model.

A convolution is one product per network: all patches of its pictures times its kernels. Losses are added up; no network
shares a parameter with another and Adam works number by number, so each is trained as if it were alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

_FAR = -1e9  # the logit of a class that a network does not have
_ALIGNED = 8  # products are fast where the inner dimension is a multiple of this


@dataclass(frozen=True)
class Conv:
    """A convolution, ReLU, and the largest of every 2 × 2."""

    before: int
    after: int
    kernel: int
    padding: int = 0

    @property
    def inputs(self) -> int:
        """Numbers that one output is made of."""
        return self.before * self.kernel**2


@dataclass(frozen=True)
class Linear:
    """A linear layer, and ReLU unless it is the last."""

    before: int
    after: int
    last: bool = False

    @property
    def inputs(self) -> int:
        """Numbers that one output is made of."""
        return self.before


Layer: TypeAlias = Conv | Linear
# Of every layer the weights (networks, inputs, after) and the biases (networks, 1, after) of all networks. The inputs
# of a convolution go by row, column and channel.
Weights: TypeAlias = list[tuple[Tensor, Tensor]]


def lenet(classes: int) -> tuple[Layer, ...]:
    """LeNet-5 for pictures of 28 × 28, as the authors simplified it."""
    return (Conv(1, 6, 5), Conv(6, 16, 5), Linear(256, 120), Linear(120, 84), Linear(84, classes, last=True))


def drawn(layers: Sequence[Layer], seeds: Sequence[int], device: str, gain: float = 1.0) -> Weights:
    """New weights, one network per seed, by the law that PyTorch draws them by; a seed draws the same.

    Weights before a ReLU are multiplied by the gain.
    """
    each = []
    for seed in seeds:
        generator = torch.Generator().manual_seed(seed)
        parts = []
        for layer in layers:
            sizes = ((layer.inputs, layer.after), (1, layer.after))
            weight, bias = ((torch.rand(size, generator=generator) * 2 - 1) * layer.inputs**-0.5 for size in sizes)
            last = isinstance(layer, Linear) and layer.last
            parts.append((weight if last else weight * gain, bias))
        each.append(parts)
    return [
        tuple(torch.stack([parts[place][which] for parts in each]).to(device) for which in (0, 1))  # type: ignore[misc]
        for place in range(len(layers))
    ]


def chosen(weights: Weights, networks: Sequence[int] | slice) -> Weights:
    """Copies of some of the networks."""
    return [(weight[networks].clone(), bias[networks].clone()) for weight, bias in weights]


def joined(parts: Sequence[Weights]) -> Weights:
    """The networks of several stacks as one."""
    return [
        tuple(torch.cat([part[place][which] for part in parts]) for which in (0, 1))  # type: ignore[misc]
        for place in range(len(parts[0]))
    ]


# --------------------------------------------------------------------------- forward


def outputs(
    layers: Sequence[Layer],
    weights: Weights,
    x: Tensor,
    dropout: float = 0.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """What becomes of pictures (networks, n, h, w, channels) or rows (networks, n, before): (networks, n, after).

    Where the first dimension of x is 1, all networks see the same. Dropout is after every linear layer but the last.
    """
    for layer, (weight, bias) in zip(layers, weights, strict=True):
        if isinstance(layer, Conv):
            x = _convolved(layer, weight, bias, x)
            continue
        x = _product(x.flatten(2) if x.ndim == 5 else x, weight, bias)
        if not layer.last:
            x = functional.relu(x)
            if dropout:
                kept = torch.rand(x.shape, generator=generator, device=x.device) >= dropout
                x = x * kept / (1 - dropout)
    return x


def _convolved(layer: Conv, weight: Tensor, bias: Tensor, x: Tensor) -> Tensor:
    if layer.padding:
        x = functional.pad(x, (0, 0, *(layer.padding,) * 4))
    columns = _Columns.apply(x, layer.kernel)
    _, n, high, wide, inputs = columns.shape
    if inputs > layer.inputs:
        weight = functional.pad(weight, (0, 0, 0, inputs - layer.inputs))
    found = functional.relu(_product(columns.flatten(1, 3), weight, bias))
    # Channels lie last, which max_pool2d takes as a layout of memory: nothing is copied on the way in or out.
    shown = found.reshape(-1, high, wide, layer.after).permute(0, 3, 1, 2)
    pooled = functional.max_pool2d(shown, 2).permute(0, 2, 3, 1)
    return pooled.unflatten(0, (-1, n))


def _product(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    if len(x) == len(weight):
        return torch.baddbmm(bias, x, weight)
    found = x @ weight
    return found + bias.to(found.dtype)


class _Columns(torch.autograd.Function):
    """Every patch of (networks, n, h, w, c) as one row, with zeros up to a multiple of ``_ALIGNED``."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, kernel: int) -> Tensor:
        ctx.kernel, ctx.shape = kernel, x.shape
        patches = x.unfold(2, kernel, 1).unfold(3, kernel, 1).permute(0, 1, 2, 3, 5, 6, 4)
        size = kernel**2 * x.shape[4]
        found = x.new_zeros(*patches.shape[:4], -(-size // _ALIGNED) * _ALIGNED)
        found[..., :size].unflatten(4, (kernel, kernel, -1)).copy_(patches)
        return found

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (grad,), kernel = grads, ctx.kernel
        channels = ctx.shape[4]
        high, wide = grad.shape[2:4]
        found = grad.new_zeros(ctx.shape)
        for place in range(kernel**2):
            down, right = divmod(place, kernel)
            part = grad[..., place * channels : (place + 1) * channels]
            found[:, :, down : down + high, right : right + wide] += part
        return found, None


def masked(logits: Tensor, classes: Tensor) -> Tensor:
    """Logits (networks, n, most) in which a network's missing classes are impossible."""
    there = torch.arange(logits.shape[2], device=logits.device) < classes[:, None]
    return logits.masked_fill(~there[:, None], _FAR)


# --------------------------------------------------------------------------- training


def batches(sizes: Sequence[int], batch: int, generator: torch.Generator, device: str) -> Iterator[Tensor]:
    """Rows of every network's own set, (networks, batch), without end: shuffled anew every epoch, −1 past its end."""
    groups = [(size, sizes.count(size)) for size in dict.fromkeys(sizes)]
    if [size for size, count in groups for _ in range(count)] != list(sizes):
        raise ValueError(f"expected networks with sets of one size beside each other, got sizes {list(sizes)}.")
    orders: list[Tensor] = [torch.empty(0)] * len(groups)
    step = 0
    while True:
        parts = []
        for place, (size, count) in enumerate(groups):
            steps = -(-size // batch)
            if step % steps == 0:
                shuffled = torch.rand(count, size, generator=generator, device=device).argsort(dim=1)
                orders[place] = functional.pad(shuffled, (0, steps * batch - size), value=-1)
            start = step % steps * batch
            parts.append(orders[place][:, start : start + batch])
        yield torch.cat(parts)
        step += 1


def loss(logits: Tensor, y: Tensor, there: Tensor) -> Tensor:
    """The sum over networks of the mean cross-entropy of the points that are there, all (networks, n)."""
    each = functional.cross_entropy(logits.float().flatten(0, 1), y.flatten(), reduction="none").view(y.shape)
    return ((each * there).sum(dim=1) / there.sum(dim=1)).sum()


def fit(
    weights: Weights,
    loss_of: Callable[[int], Tensor],
    ends: Sequence[int],
    *,
    rate: float | Callable[[float], float],
    decay: float = 0.0,
) -> Weights:
    """Adam on ``loss_of`` the step; network k is taken as it is after ``ends[k]`` steps.

    A rate that is a function goes by the part of all steps that are done.
    """
    parameters = [part.requires_grad_() for pair in weights for part in pair]
    first = rate(0.0) if callable(rate) else rate
    optimiser = torch.optim.Adam(parameters, lr=first, weight_decay=decay, fused=parameters[0].is_cuda)
    kept: list[Weights | None] = [None] * len(ends)
    most = max(ends)
    for step in range(most):
        if callable(rate):
            optimiser.param_groups[0]["lr"] = rate(step / most)
        found = loss_of(step)
        optimiser.zero_grad(set_to_none=True)
        found.backward()
        optimiser.step()
        for place in (place for place, end in enumerate(ends) if end == step + 1):
            kept[place] = [(w.detach()[place, None].clone(), b.detach()[place, None].clone()) for w, b in weights]
    for part in parameters:
        part.requires_grad_(False)
    return joined([part for part in kept if part is not None])


@torch.no_grad()
def over_all(layers: Sequence[Layer], weights: Weights, x: Tensor, prepare: Callable[[Tensor], Tensor]) -> Tensor:
    """What all networks make of all points (n, …), some at a time: (networks, n, after)."""
    flat = [outputs(layers, weights, prepare(part)[None]) for part in x.split(500)]
    return torch.cat([part.flatten(2) for part in flat], dim=1)
