"""Seeded training of small networks on data that lie on the device."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from experiments.lib.bars import track

Prepare = Callable[[Tensor], Tensor]


def seeded(seed: int) -> torch.Generator:
    """Seed what torch draws by itself, and return a generator for what is drawn here."""
    torch.manual_seed(seed)
    return torch.Generator().manual_seed(seed)


def fit(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    epochs: int,
    seed: int,
    title: str,
    rate: float = 1e-3,
    batch: int = 256,
    prepare: Prepare = lambda x: x,
    parameters: Iterable[nn.Parameter] | None = None,
) -> None:
    """Adam with a cosine schedule on cross-entropy; ``prepare`` turns a batch into what the model takes.

    On a GPU convolutions and products run in bfloat16.
    """
    generator = seeded(seed)
    trained = list(model.parameters() if parameters is None else parameters)
    fused = {"fused": True} if x.is_cuda else {}
    optimiser = torch.optim.AdamW(trained, lr=rate, weight_decay=1e-4, **fused)
    steps = epochs * -(-len(y) // batch)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, max(1, steps))
    model.train()
    for _ in track(range(epochs), title):
        order = torch.randperm(len(y), generator=generator).to(x.device)
        for rows in order.split(batch):
            with torch.autocast(x.device.type, torch.bfloat16, enabled=x.is_cuda):
                loss = nn.functional.cross_entropy(model(prepare(x[rows])), y[rows])
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            schedule.step()
    model.eval()


@torch.no_grad()
def apply(model: Callable[[Tensor], Tensor], x: Tensor, prepare: Prepare = lambda x: x, batch: int = 1024) -> Tensor:
    """What the model makes of x, batch by batch, in float32."""
    found = []
    for part in x.split(batch):
        with torch.autocast(x.device.type, torch.bfloat16, enabled=x.is_cuda):
            found.append(model(prepare(part)).float())
    return torch.cat(found)


def scores(logits: Tensor, truth: Tensor) -> dict[str, float]:
    """Accuracy, and F1, precision and recall averaged over classes."""
    return class_scores(logits.argmax(dim=1).cpu().numpy(), truth.cpu().numpy())


def class_scores(predicted: NDArray[np.integer], truth: NDArray[np.integer]) -> dict[str, float]:
    """The same from labels; a class that is never predicted has precision zero."""
    classes = np.unique(truth)
    right = np.array([np.sum((predicted == c) & (truth == c)) for c in classes], float)
    called = np.array([np.sum(predicted == c) for c in classes], float)
    there = np.array([np.sum(truth == c) for c in classes], float)
    precision, recall = right / np.maximum(called, 1), right / there
    f1 = 2 * right / (called + there)
    return {
        "accuracy": float(np.mean(predicted == truth)),
        "f1": float(f1.mean()),
        "precision": float(precision.mean()),
        "recall": float(recall.mean()),
    }
