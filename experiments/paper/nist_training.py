"""LeNet-5 on every *NIST set and its head on every other, by the authors' protocol, all seeds side by side.

Pixels are scaled by MNIST's mean and spread; Adam at 1e-3 with a decay of 1e-6, batches of 64, 20 epochs; dropout in
the head. Then the convolutions are frozen and the head, which starts from the source's but for its last layer, is
trained for 10 epochs. EMNIST lies on its side, as torchvision hands it over.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from experiments.lib import data, side_by_side
from experiments.lib.options import Options, parse
from experiments.lib.side_by_side import Weights
from experiments.lib.store import Row, Unit, complete
from experiments.lib.training import class_scores

MEAN, SPREAD = 0.1307, 0.3081  # of MNIST's pixels between 0 and 1: the authors' loader scales every set by them
_RATE, _DECAY, _BATCH, _DROPOUT = 1e-3, 1e-6, 64, 0.5
_LARGE = 20_000  # sets below are trained in a stack of their own, which ends much earlier


@dataclass(frozen=True)
class Sizes:
    """How much is done."""

    seeds: int
    source_epochs: int
    head_epochs: int
    few: int  # points of a target in the scarce setting
    few_epochs: int
    points: int | None  # of each set, for training and s-OTDD
    embedded: int  # points of each set, or zero for no embedding
    slow: int  # points of each set for the slow methods
    cut: int | None  # points of each set for convolutions whose values are cut; None for all
    n_projections: int
    side: int = 224  # pixels that the embedding sees
    sets: tuple[str, ...] = data.NIST


SIZES = {
    "full": Sizes(10, 20, 10, 2000, 40, None, 0, 5000, 5000, 2000),
    "paper": Sizes(1, 20, 10, 2000, 40, None, 0, 0, None, 10_000),  # distances alone: linear against convolutions
    "gpu": Sizes(10, 20, 10, 2000, 40, None, 10_000, 5000, 5000, 10_000),
    "quick": Sizes(1, 2, 2, 500, 10, 3000, 300, 300, 300, 500, 96),
    "smallest": Sizes(2, 1, 1, 40, 1, 60, 0, 40, 40, 64, 64, ("mnist", "usps", "kmnist")),
}


@dataclass(frozen=True, eq=False)
class Task:
    """A set on the device: pictures (n, 28, 28, 1) of uint8, and labels."""

    x: Tensor
    y: Tensor
    test_x: Tensor
    test_y: Tensor

    @property
    def classes(self) -> int:
        """How many there are."""
        return int(self.y.max()) + 1


def pictures(name: str, options: Options, sizes: Sizes) -> tuple[data.Images, data.Images]:
    """Train and test part as the authors load them."""
    parts = [part.sample(sizes.points) for part in data.images(name, options.data, side=28)]
    if name == "emnist_letters":
        parts = [data.Images(np.ascontiguousarray(part.x.transpose(0, 2, 1)), part.y) for part in parts]
    return parts[0], parts[1]


def tasks(options: Options, sizes: Sizes) -> dict[str, Task]:
    """Every set."""
    found = {}
    for name in sizes.sets:
        train, test = pictures(name, options, sizes)
        arrays = (train.x[..., None], train.y, test.x[..., None], test.y)
        found[name] = Task(*(torch.from_numpy(part).to(options.device) for part in arrays))
    return found


def scaled(x: Tensor) -> Tensor:
    """Pixels of uint8 as the authors scale them."""
    return (x.float() - 255 * MEAN) / (255 * SPREAD)


def main() -> None:
    """Train."""
    train(parse(__doc__))


def train(options: Options) -> None:
    """One unit of work per target and number of its points; every set's own row trains all of the network on it."""
    sizes = SIZES[options.size]
    bench = Bench(options, sizes)
    units: list[Unit] = [{"points": points, "target": target} for points in ("all", sizes.few) for target in sizes.sets]
    complete(options.results / "nist_training.csv", units, bench.transfers, title="transfer")


class Bench:
    """All sets on one device, and the networks trained on them so far."""

    def __init__(self, options: Options, sizes: Sizes) -> None:
        self.options, self.sizes, self.device = options, sizes, options.device
        self.tasks = tasks(options, sizes)
        self.seeds = list(range(sizes.seeds))
        self.most = max(task.classes for task in self.tasks.values())
        self.layers = side_by_side.lenet(self.most)
        self._alone: dict[str, Mapping[str, Weights]] = {}

    def transfers(self, unit: Unit) -> Sequence[Row]:
        """All sources and seeds to one target."""
        began = time.perf_counter()
        target, few = str(unit["target"]), unit["points"] != "all"
        task = self.tasks[target]
        logits = {target: side_by_side.over_all(self.layers, self.alone(few)[target], task.test_x, scaled)}
        logits |= self._transferred(target, few)
        truth = task.test_y.cpu().numpy()
        rows: list[Row] = []
        for source, found in logits.items():
            predicted = found[..., : task.classes].argmax(dim=2).cpu().numpy()
            rows += [
                {"seed": seed, "source": source, **class_scores(predicted[place], truth)}
                for place, seed in enumerate(self.seeds)
            ]
        print(f"{unit['points']} points of {target}: {time.perf_counter() - began:.1f} s", flush=True)
        return rows

    # ----------------------------------------------------------------------- whole networks

    def alone(self, few: bool) -> Mapping[str, Weights]:
        """The networks of all seeds trained on each set, or on few points of it; from the cache if they are there."""
        kind = "few" if few else "all"
        if kind not in self._alone:
            path = None if self.options.cache is None else self.options.cache / f"nist_{self.options.size}_{kind}.pt"
            if path is not None and path.exists():
                self._alone[kind] = torch.load(path, map_location=self.device)
            else:
                self._alone[kind] = self._trained(few)
                if path is not None:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    torch.save(self._alone[kind], path)
        return self._alone[kind]

    def _trained(self, few: bool) -> Mapping[str, Weights]:
        found: dict[str, Weights] = {}
        large = [name for name in self.sizes.sets if not few and len(self.tasks[name].y) >= _LARGE]
        # Sets of one size lie beside each other.
        names = sorted(self.sizes.sets, key=lambda name: -len(self.tasks[name].y))
        for group in ([n for n in names if n in large], [n for n in names if n not in large]):
            if group:
                began = time.perf_counter()
                found |= self._trained_together(group, few)
                print(f"LeNet-5 on {', '.join(group)}: {time.perf_counter() - began:.1f} s", flush=True)
        return found

    def _trained_together(self, names: Sequence[str], few: bool) -> Mapping[str, Weights]:
        count = len(self.seeds)
        parts = [self.tasks[name] for name in names]
        x, y = (torch.cat([getattr(part, which) for part in parts]) for which in "xy")
        start = 0
        rows_of: list[Tensor] = []
        sizes: list[int] = []
        for task in parts:
            rows = self._some(task, few) + start  # (seeds, points)
            rows_of += list(rows)
            sizes += [rows.shape[1]] * count
            start += len(task.y)
        classes = torch.tensor([task.classes for task in parts for _ in self.seeds], device=self.device)
        weights = side_by_side.drawn(self.layers, self.seeds * len(names), self.device)
        places = torch.nn.utils.rnn.pad_sequence(rows_of, batch_first=True)  # (networks, most points)
        generator = torch.Generator(self.device).manual_seed(0)
        stream = side_by_side.batches(sizes, _BATCH, generator, self.device)

        def loss_of(_: int) -> Tensor:
            local = next(stream)
            rows = places.gather(1, local.clamp(min=0))
            logits = side_by_side.outputs(self.layers, weights, scaled(x[rows]), _DROPOUT, generator)
            return side_by_side.loss(side_by_side.masked(logits, classes), y[rows], local >= 0)

        epochs = self.sizes.few_epochs if few else self.sizes.source_epochs
        ends = [epochs * -(-size // _BATCH) for size in sizes]
        trained = side_by_side.fit(weights, loss_of, ends, rate=_RATE, decay=_DECAY)
        return {
            name: side_by_side.chosen(trained, slice(place * count, (place + 1) * count))
            for place, name in enumerate(names)
        }

    def _some(self, task: Task, few: bool) -> Tensor:
        """Rows to learn from, (seeds, points): all of them, or a few by the seed."""
        if not few or len(task.y) <= self.sizes.few:
            return torch.arange(len(task.y), device=self.device).expand(len(self.seeds), -1)
        orders = [torch.randperm(len(task.y), generator=torch.Generator().manual_seed(seed)) for seed in self.seeds]
        return torch.stack([order[: self.sizes.few] for order in orders]).to(self.device)

    # ----------------------------------------------------------------------- heads

    def _transferred(self, target: str, few: bool) -> Mapping[str, Tensor]:
        """Logits (seeds, n, classes) of the test pictures by heads on each other source's frozen convolutions."""
        task = self.tasks[target]
        sources = [name for name in self.sizes.sets if name != target]
        weights = side_by_side.joined([self.alone(few=False)[name] for name in sources])
        rows = self._some(task, few).repeat(len(sources), 1)  # (networks, points)
        frozen = self.layers[:2]
        seen = side_by_side.over_all(frozen, weights[:2], task.x, scaled)
        test = side_by_side.over_all(frozen, weights[:2], task.test_x, scaled)
        last = side_by_side.Linear(84, task.classes, last=True)
        layers = (*self.layers[2:4], last)
        # The seeds themselves drew the sources' networks: other numbers draw the new layers.
        new = side_by_side.drawn([last], [1000 + seed for seed in self.seeds] * len(sources), self.device)
        head = side_by_side.chosen(weights[2:4], slice(None)) + new
        generator = torch.Generator(self.device).manual_seed(1)
        stream = side_by_side.batches([rows.shape[1]] * len(rows), _BATCH, generator, self.device)
        networks = torch.arange(len(rows), device=self.device)[:, None]

        def loss_of(_: int) -> Tensor:
            local = next(stream)
            places = rows.gather(1, local.clamp(min=0))
            logits = side_by_side.outputs(layers, head, seen[networks, places], _DROPOUT, generator)
            return side_by_side.loss(logits, task.y[places], local >= 0)

        epochs = self.sizes.few_epochs if few else self.sizes.head_epochs
        ends = [epochs * -(-rows.shape[1] // _BATCH)] * len(rows)
        trained = side_by_side.fit(head, loss_of, ends, rate=_RATE, decay=_DECAY)
        with torch.no_grad():
            logits = side_by_side.outputs(layers, trained, test)
        return dict(zip(sources, logits.split(len(self.seeds)), strict=True))


if __name__ == "__main__":
    main()
