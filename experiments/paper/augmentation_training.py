"""A classifier on every augmentation of Tiny-ImageNet, frozen, and a linear layer on CIFAR-10.

All augmentations of a seed are trained side by side. Every picture is cut, mirrored and changed in colour anew every
time it is seen. The strengths are an orthogonal design: those of any two changes are uncorrelated.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from experiments.lib import data, side_by_side
from experiments.lib.options import Options, parse
from experiments.lib.side_by_side import Conv, Linear, Weights
from experiments.lib.store import Row, Unit, complete
from experiments.lib.training import class_scores
from experiments.paper import jitter
from experiments.paper.jitter import Jitter

SIDE = 32
_HE = math.sqrt(6)  # the gain that keeps the spread of values through ReLU
_RATE, _HEAD_RATE, _HEAD_DECAY = 1e-3, 1e-2, 1e-3
_CHUNK = 4096


@dataclass(frozen=True)
class Sizes:
    """How much is done."""

    augmentations: int
    seeds: int
    source: int
    target: int
    epochs: int
    tuning_epochs: int  # steps of the linear layer; each sees all of the target
    points: int  # of each side
    n_projections: int
    uncut_points: int
    uncut_projections: int
    width: int = 32
    batch: int = 128


SIZES = {
    "full": Sizes(49, 3, 16_000, 5000, 20, 300, 1500, 2000, 3000, 2000),
    "gpu": Sizes(49, 3, 16_000, 5000, 20, 300, 3000, 5000, 5000, 100_000),
    "quick": Sizes(9, 1, 600, 300, 1, 20, 300, 500, 300, 500, 8, 32),
    "smallest": Sizes(9, 1, 30, 20, 1, 1, 30, 64, 30, 64, 2, 16),
}


def main() -> None:
    """Train."""
    options = parse(__doc__)
    sizes = SIZES[options.size]
    train(options, sizes, *load(options, sizes))


def strengths(count: int) -> list[Jitter]:
    """So many augmentations within the paper's ranges: rows of an orthogonal array of as few levels as give as many."""
    levels = next(n for n in range(3, 100) if n * n >= count and all(n % k for k in range(2, n)))
    first, second = np.divmod(np.arange(levels**2), levels)
    # Any two of these columns hold every pair of levels once, since the number of levels is a prime.
    table = np.stack([first, second, first + second, first + 2 * second], axis=1) % levels
    least, most = np.array([0.1, 0.1, 0.1, 0.0]), np.array([0.9, 0.9, 0.9, 0.5])
    return [Jitter(*row) for row in (least + (most - least) * table[:count] / (levels - 1)).tolist()]


def load(options: Options, sizes: Sizes) -> tuple[data.Images, data.Images, data.Images, data.Images]:
    """Tiny-ImageNet at 64 pixels to train and to test on, and CIFAR-10 likewise."""
    source, check = data.images("tiny_imagenet", options.data, most=sizes.source)
    target, test = data.images("cifar10", options.data)
    return source, check, target.sample(sizes.target), test.sample(sizes.target)


def augmented(source: data.Images, place: int, count: int, seed: int) -> Tensor:
    """One draw of the whole source by one of the augmentations: (n, 32, 32, 3) of uint8."""
    generator = torch.Generator().manual_seed(seed)
    amounts = torch.tensor(strengths(count)[place].strengths)
    found = []
    for part in torch.from_numpy(source.x).split(_CHUNK):
        shown = varied(part, amounts, generator)
        found.append((shown * 255).round().to(torch.uint8))
    return torch.cat(found)


def varied(x: Tensor, amounts: Tensor, generator: torch.Generator) -> Tensor:
    """Pictures (n, 64, 64, 3) of uint8 cut, mirrored and changed by (n, 4) or (4,): (n, 32, 32, 3) from 0 to 1."""
    drawn = torch.rand((len(x), 9), generator=generator, device=x.device)
    shown = jitter.cut(x.float() / 255, SIDE, drawn[:, :5])
    return jitter.changed(shown, (drawn[:, 5:] * 2 - 1) * amounts)


# --------------------------------------------------------------------------- training


def train(
    options: Options, sizes: Sizes, source: data.Images, check: data.Images, target: data.Images, test: data.Images
) -> None:
    """One unit of work per seed: all augmentations."""
    bench = Bench(options, sizes, source, check, target, test)
    units: list[Unit] = [{"seed": seed} for seed in range(sizes.seeds)]
    complete(options.results / "augmentation_training.csv", units, bench.trained, title="augmentation")


class Bench:
    """Source and target on one device."""

    def __init__(self, options: Options, sizes: Sizes, *parts: data.Images) -> None:
        self.sizes, self.device = sizes, options.device
        self.source, self.check, self.target, self.test = (
            (torch.from_numpy(part.x).to(self.device), torch.from_numpy(part.y).to(self.device)) for part in parts
        )
        self.designs = strengths(sizes.augmentations)
        width = sizes.width
        self.body = tuple(Conv(a, b, 3, 1) for a, b in ((3, width), (width, 2 * width), (2 * width, 4 * width)))
        self.body += (Conv(4 * width, 8 * width, 3, 1),)
        self.after = 8 * width * (SIDE // 16) ** 2
        self.whole = (*self.body, Linear(self.after, 200, last=True))

    def trained(self, unit: Unit) -> Sequence[Row]:
        """Every augmentation's network, and its linear layer on the target."""
        seed = int(str(unit["seed"]))
        began = time.perf_counter()
        weights = self._on_source(seed)
        trained = time.perf_counter()
        predicted = self._on_target(weights)
        right = self._accuracy_on_source(weights)
        print(
            f"seed {seed}: {trained - began:.1f} s on the source, {time.perf_counter() - trained:.1f} s on the target",
            flush=True,
        )
        truth = self.test[1].cpu().numpy()
        return [
            {
                "augmentation": place, "brightness": design.brightness, "contrast": design.contrast,
                "saturation": design.saturation, "hue": design.hue, **class_scores(predicted[place], truth),
                "source_accuracy": right[place],
            }
            for place, design in enumerate(self.designs)
        ]  # fmt: skip

    def _on_source(self, seed: int) -> Weights:
        sizes, count = self.sizes, len(self.designs)
        x, y = self.source
        # The same first weights for all: networks differ by their augmentation, not by luck.
        weights = side_by_side.drawn(self.whole, [seed] * count, self.device, gain=_HE)
        generator = torch.Generator(self.device).manual_seed(seed)
        amounts = torch.tensor([design.strengths for design in self.designs], device=self.device)
        stream = side_by_side.batches([len(y)] * count, sizes.batch, generator, self.device)

        def loss_of(_: int) -> Tensor:
            local = next(stream)
            rows = local.clamp(min=0)
            with torch.no_grad():
                shown = varied(x[rows].flatten(0, 1), amounts.repeat_interleave(rows.shape[1], dim=0), generator)
                shown = self._scaled(shown).unflatten(0, rows.shape)
            with torch.autocast(x.device.type, torch.bfloat16, enabled=x.is_cuda):
                logits = side_by_side.outputs(self.whole, weights, shown)
            return side_by_side.loss(logits, y[rows], local >= 0)

        steps = sizes.epochs * -(-len(y) // sizes.batch)
        return side_by_side.fit(weights, loss_of, [steps] * count, rate=lambda done: _RATE * (1 - done))

    def _scaled(self, shown: Tensor) -> Tensor:
        """From 0 to 1 as networks take it; a GPU computes in bfloat16."""
        return (shown * 2 - 1).to(torch.bfloat16 if shown.is_cuda else torch.float32)

    def _features(self, weights: Weights, x: Tensor, layers: Sequence[Conv | Linear]) -> Tensor:
        """Of pictures that nothing changes: (networks, n, after)."""

        def prepare(part: Tensor) -> Tensor:
            return self._scaled(jitter.whole(part.float() / 255, SIDE))

        with torch.autocast(x.device.type, torch.bfloat16, enabled=x.is_cuda):
            return side_by_side.over_all(layers, weights[: len(layers)], x, prepare).float()

    def _accuracy_on_source(self, weights: Weights) -> list[float]:
        x, y = self.check
        predicted = self._features(weights, x, self.whole).argmax(dim=2)
        return (predicted == y).float().mean(dim=1).tolist()

    def _on_target(self, weights: Weights) -> np.ndarray:
        """Labels of the test pictures by linear layers on frozen, standardised features: (networks, n)."""
        (x, y), count = self.target, len(self.designs)
        seen = self._features(weights, x, self.body)
        centre, spread = seen.mean(dim=1, keepdim=True), seen.std(dim=1, keepdim=True) + 1e-3
        seen = (seen - centre) / spread
        last = (Linear(self.after, 10, last=True),)
        head = [(torch.zeros(count, self.after, 10, device=self.device), torch.zeros(count, 1, 10, device=self.device))]
        truth = y.expand(count, -1)
        there = torch.ones_like(truth)

        def loss_of(_: int) -> Tensor:
            return side_by_side.loss(side_by_side.outputs(last, head, seen), truth, there)

        steps = [self.sizes.tuning_epochs] * count
        rate = lambda done: _HEAD_RATE * (1 - done)  # noqa: E731
        trained = side_by_side.fit(head, loss_of, steps, rate=rate, decay=_HEAD_DECAY)
        test = (self._features(weights, self.test[0], self.body) - centre) / spread
        return side_by_side.outputs(last, trained, test).argmax(dim=2).cpu().numpy()


if __name__ == "__main__":
    main()
