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

from experiments.foretell.design import COLOUR, GREY, TEXT
from experiments.foretell.texts import FEATURES

_FAR = -1e9  # the logit of a class that a network does not have
_CHUNK = 250  # points of a forward pass at a time


@dataclass(frozen=True)
class Conv:
    """A convolution and ReLU. It strides where LeNet-5 pools: half the time on a processor."""

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


def layers(family: str, width: int) -> tuple[Layer, ...]:
    """Much like LeNet-5 for grey pictures, a convolution more for coloured ones, two linear layers for texts."""
    return {
        GREY: (Conv(1, width, 5, 2, 2), Conv(width, 2 * width, 5, 3, 2), Linear(50 * width, 84)),
        COLOUR: (
            Conv(3, width, 5, 2, 2), Conv(width, 2 * width, 3, 2, 1), Conv(2 * width, 4 * width, 3, 2, 1),
            Linear(64 * width, 64),
        ),
        TEXT: (Linear(FEATURES, 128), Linear(128, 64)),
    }[family]  # fmt: skip


def drawn(shape: Sequence[Layer], networks: int, generator: torch.Generator, device: str) -> Weights:
    """New weights, the same for every network: sources differ by what they were trained on, not by luck."""
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
        convolve = by_products if x.is_cuda else by_groups
        hidden = convolve([layer for layer in shape if isinstance(layer, Conv)], weights, x, networks)
    for layer, (weight, bias) in zip(shape, weights, strict=True):
        if isinstance(layer, Linear):
            hidden = functional.relu(hidden @ weight + bias)
    return hidden


def by_groups(shape: Sequence[Conv], weights: Weights, x: Tensor, networks: int) -> Tensor:
    """All convolutions as grouped ones, which is best on a processor: (networks, n, values)."""
    own = x.ndim == 5
    groups = networks if own else 1  # of the first; afterwards every network has its own channels
    hidden = x.transpose(0, 1).flatten(1, 2) if own else x
    for layer, (weight, bias) in zip(shape, weights, strict=False):
        hidden = functional.relu(functional.conv2d(hidden, weight, bias, layer.stride, layer.padding, groups=groups))
        groups = networks
    return hidden.unflatten(1, (networks, -1)).flatten(2).transpose(0, 1)  # from (n, networks × channels, h, w)


def by_products(shape: Sequence[Conv], weights: Weights, x: Tensor, networks: int) -> Tensor:
    """The same as products of matrices, one per network: many groups are slow on a GPU."""
    hidden = (x if x.ndim == 5 else x[None]).permute(0, 1, 3, 4, 2)  # (networks or 1, n, h, w, channels)
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
