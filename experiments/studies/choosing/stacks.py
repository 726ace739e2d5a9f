"""Many small networks of one shape, trained side by side as one batched model: a stack.

All networks of a stack see the same batch (tuning on a target) or each its own (training on the sources). Their losses
are added up; none shares a parameter with another and Adam works number by number, so each is trained as if alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

_FAR = -1e9  # the logit of a class that a network does not have
_CHUNK = 250  # points of a forward pass at a time


@dataclass(frozen=True)
class Conv:
    """A convolution and ReLU."""

    before: int
    after: int
    kernel: int
    stride: int = 1
    padding: int = 0


@dataclass(frozen=True)
class Linear:
    """A linear layer and ReLU."""

    before: int
    after: int


Layer: TypeAlias = Conv | Linear
# Weights and biases of one layer of all networks: (networks × after, before, k, k) and (networks × after,) of a
# convolution, (networks, before, after) and (networks, 1, after) of a linear layer.
Weights: TypeAlias = list[tuple[Tensor, Tensor]]


def layers(numbers: int | None, width: int) -> tuple[Layer, ...]:
    """Two linear layers for points of so many numbers, three convolutions and a linear layer for 28 × 28 × 3."""
    if numbers:
        return Linear(numbers, 128), Linear(128, 64)
    return (
        Conv(3, width, 5, 2, 2), Conv(width, 2 * width, 3, 2, 1), Conv(2 * width, 4 * width, 3, 2, 1),
        Linear(64 * width, 4 * width),
    )  # fmt: skip


def drawn(shape: Sequence[Layer], networks: int, seed: int, device: str) -> Weights:
    """New weights, the same for every network: sources differ by what they were trained on, not by luck."""
    generator = torch.Generator().manual_seed(seed)
    found = []
    for layer in shape:
        size = (layer.after, layer.before, layer.kernel, layer.kernel) if isinstance(layer, Conv) else (
            1, layer.before, layer.after
        )  # fmt: skip
        inputs = layer.before * (layer.kernel**2 if isinstance(layer, Conv) else 1)
        weight = torch.randn(size, generator=generator) * (2 / inputs) ** 0.5
        bias = torch.zeros((layer.after,) if isinstance(layer, Conv) else (1, 1, layer.after))
        found.append(tuple(part.repeat(networks, *(1,) * (part.ndim - 1)).to(device) for part in (weight, bias)))
    return found  # type: ignore[return-value]


def copied(weights: Weights) -> Weights:
    """Weights that can be trained without touching these."""
    return [(weight.clone(), bias.clone()) for weight, bias in weights]


def features(shape: Sequence[Layer], weights: Weights, x: Tensor, networks: int) -> Tensor:
    """What becomes of one batch for all (n, …), or of a batch for each (networks, n, …): (networks, n, after)."""
    hidden = x
    if isinstance(shape[0], Conv):
        hidden = _convolve([layer for layer in shape if isinstance(layer, Conv)], weights, x, networks)
    for layer, (weight, bias) in zip(shape, weights, strict=True):
        if isinstance(layer, Linear):
            hidden = functional.relu(hidden @ weight + bias)
    return hidden


def _convolve(shape: Sequence[Conv], weights: Weights, x: Tensor, networks: int) -> Tensor:
    """All convolutions as products of matrices, one per network: many groups are slow on a GPU."""
    hidden = x if x.ndim == 5 else x[None]  # (networks or 1, n, h, w, channels)
    for layer, (weight, bias) in zip(shape, weights, strict=False):
        hidden = functional.pad(hidden, (0, 0, *(layer.padding,) * 4))
        patches = hidden.unfold(2, layer.kernel, layer.stride).unfold(3, layer.kernel, layer.stride)
        seen, points, *sides = patches.shape[:4]
        rows = patches.reshape(seen, points * sides[0] * sides[1], -1)
        if seen == networks:
            matrices = weight.reshape(networks, layer.after, -1).transpose(1, 2)
            found = torch.baddbmm(bias.reshape(networks, 1, -1), rows, matrices)
        else:  # one batch for all: one product
            found = torch.addmm(bias, rows[0], weight.flatten(1).T).unflatten(1, (networks, -1)).transpose(0, 1)
        hidden = functional.relu(found).reshape(networks, points, *sides, layer.after)
    return hidden.permute(0, 1, 4, 2, 3).flatten(2)


def fit(
    weights: Weights,
    logits: Callable[[Tensor], Tensor],
    batch: Callable[[], tuple[Tensor, Tensor]],
    *,
    steps: int,
    rate: float,
    decay: float = 0.0,
) -> None:
    """Adam on the cross-entropy, with a rate that falls to zero; labels are (networks, n) or (n,) for all."""
    parameters = [part.requires_grad_() for pair in weights for part in pair]
    optimiser = torch.optim.AdamW(parameters, lr=rate, weight_decay=decay, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1 - step / steps)
    for _ in range(steps):
        x, y = batch()
        found = logits(x)
        networks, points, classes = found.shape
        truth = y.expand(networks, points).reshape(-1)
        loss = functional.cross_entropy(found.reshape(-1, classes), truth, reduction="sum") / points
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        schedule.step()
    for part in parameters:
        part.requires_grad_(False)


@torch.no_grad()
def all_features(shape: Sequence[Layer], weights: Weights, x: Tensor, networks: int) -> Tensor:
    """The same for many points, some at a time."""
    return torch.cat([features(shape, weights, part, networks) for part in x.split(_CHUNK)], dim=1)


def masked(logits: Tensor, classes: Tensor) -> Tensor:
    """Logits (networks, n, most) in which a network's missing classes are impossible."""
    there = torch.arange(logits.shape[2], device=logits.device) < classes[:, None]
    return logits.masked_fill(~there[:, None], _FAR)


def accuracy(logits: Tensor, y: Tensor) -> Tensor:
    """Of every network: (networks,)."""
    return (logits.argmax(dim=2) == y).float().mean(dim=1)
