"""Split Tiny-ImageNet: a ResNet-18 on every task, and its last layer on every other.

The tasks are twenty classes each, dealt out at random as in the paper, or families of classes. As in the authors'
scripts the statistics of batch norm are estimated anew on the target, and the last layer starts from the source's.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from experiments.lib import data, networks, side_by_side, training
from experiments.lib.options import Options, parse
from experiments.lib.store import Row, Unit, complete
from experiments.paper.families import FAMILIES

RANDOM, BY_FAMILY = "random", "families"
KINDS = (RANDOM, BY_FAMILY)
UNTRAINED = "untrained"
_CHUNK = 800  # pictures of a forward pass at a time


@dataclass(frozen=True)
class Sizes:
    """How much is done."""

    tasks: int
    classes: int
    side: int  # pixels that distances see
    seeds: int
    epochs: int
    head_epochs: int  # steps of the last layer; each sees the whole task
    points: int | None  # of each task, for s-OTDD with its values cut; None for all
    n_projections: int
    uncut_projections: int
    linear_projections: int
    width: int = 64
    most: int | None = None  # pictures of all classes together
    trained_side: int = 112  # pixels that networks see
    batch: int = 160
    family_points: int | None = None  # of each family, for s-OTDD; None for as many as of a random task
    family_projections: int | None = None  # None for all that random tasks have; a number leaves the cut out
    runs: int = 1  # of so many projections each


SIZES = {
    "full": Sizes(10, 20, 224, 3, 50, 200, 300, 2000, 50_000, 10_000, family_points=400, family_projections=500),
    "gpu": Sizes(10, 20, 224, 3, 50, 200, 300, 2000, 50_000, 10_000),
    "paper": Sizes(10, 20, 224, 0, 0, 0, None, 100_000, 0, 0, runs=5),  # distances of random tasks alone
    "quick": Sizes(4, 5, 64, 1, 3, 20, 200, 500, 500, 500, 16, 8000, 64),
    "smallest": Sizes(
        3, 2, 32, 1, 1, 1, 20, 64, 64, 64, 2, 400, 16, 8, family_points=20, family_projections=32, runs=2
    ),
}


@dataclass(frozen=True, eq=False)
class Task:
    """Some classes, on the device: pictures an eighth larger than what is cut out of them, and labels."""

    x: Tensor
    y: Tensor
    test_x: Tensor
    test_y: Tensor


def main() -> None:
    """Train."""
    options = parse(__doc__)
    train(options, KINDS)


def stem(kind: str) -> str:
    """How the files of a kind of tasks begin."""
    return "tiny" if kind == RANDOM else f"tiny_{kind}"


def classes_of(kind: str, folder: Path, sizes: Sizes) -> list[list[int]]:
    """The labels of every task."""
    if kind == RANDOM:
        dealt = np.random.default_rng(0).permutation(200)[: sizes.tasks * sizes.classes]
        return [sorted(part) for part in dealt.reshape(sizes.tasks, -1).tolist()]
    label = {name: place for place, name in enumerate(data.tiny_classes(folder))}
    families = list(FAMILIES.values())[: sizes.tasks]
    return [sorted(label[name] for name in names[: sizes.classes]) for names in families]


def split(options: Options, sizes: Sizes, kind: str, side: int) -> list[Task]:
    """The tasks, with pictures enlarged to 8/7 of the side that is cut out of them, as 256 is to 224."""
    train, test = data.images("tiny_imagenet", options.data, most=sizes.most)
    tasks = []
    for classes in classes_of(kind, options.data, sizes):
        parts: list[Tensor] = []
        for part in (train, test):
            chosen = part.rows(np.isin(part.y, classes))
            pictures = _enlarged(torch.from_numpy(chosen.x).to(options.device), side * 8 // 7)
            parts += [pictures, torch.from_numpy(np.searchsorted(classes, chosen.y)).to(options.device)]
        tasks.append(Task(*parts))
    return tasks


def _enlarged(x: Tensor, side: int) -> Tensor:
    found = []
    for part in x.split(256):
        shown = nn.functional.interpolate(part.permute(0, 3, 1, 2).float(), size=(side, side), mode="bilinear")
        found.append(shown.permute(0, 2, 3, 1).round().clamp(0, 255).to(torch.uint8).contiguous())
    return torch.cat(found)


def centred(x: Tensor, side: int) -> Tensor:
    """The middle of every picture."""
    start = (x.shape[1] - side) // 2
    return x[:, start : start + side, start : start + side]


# --------------------------------------------------------------------------- training


def train(options: Options, kinds: Sequence[str]) -> None:
    """One unit of work per seed: all sources and targets; "untrained" is a network that saw no source."""
    sizes = SIZES[options.size]
    for kind in kinds:
        bench = Bench(options, sizes, split(options, sizes, kind, sizes.trained_side))
        units: list[Unit] = [{"seed": seed} for seed in range(sizes.seeds)]
        complete(options.results / f"{stem(kind)}_training.csv", units, bench.transfers, title=f"tasks: {kind}")


class Bench:
    """All tasks on one device."""

    def __init__(self, options: Options, sizes: Sizes, tasks: Sequence[Task]) -> None:
        self.sizes, self.tasks, self.device = sizes, tasks, options.device
        torch.backends.cudnn.benchmark = True

    def transfers(self, unit: Unit) -> Sequence[Row]:
        """All sources to all targets for one seed."""
        seed = int(str(unit["seed"]))
        rows: list[Row] = []
        for source in (*range(self.sizes.tasks), None):
            began = time.perf_counter()
            model = self._network(seed)
            if source is not None:
                task = self.tasks[source]
                training.fit(
                    model, task.x, task.y, epochs=self.sizes.epochs, seed=seed, title=f"ResNet-18 on task {source}",
                    prepare=self._varied, batch=self.sizes.batch,
                )  # fmt: skip
                rows.append({"source": source, "target": source, **self._own(model, task)})
            targets = [place for place in range(self.sizes.tasks) if place != source]
            found = self._heads(model, targets, seed)
            name = UNTRAINED if source is None else source
            rows += [{"source": name, "target": t, **score} for t, score in zip(targets, found, strict=True)]
            print(f"seed {seed}, source {name}: {time.perf_counter() - began:.1f} s", flush=True)
        return rows

    def _network(self, seed: int) -> networks.ResNet18:
        training.seeded(seed)
        small = self.sizes.trained_side < 100
        model = networks.ResNet18(self.sizes.classes, small=small, width=self.sizes.width)
        return model.to(self.device, memory_format=torch.channels_last)

    def _varied(self, x: Tensor) -> Tensor:
        """Half of the pictures mirrored, all of a batch shifted alike, against learning them by heart."""
        side = self.sizes.trained_side
        down, right = torch.randint(x.shape[1] - side + 1, (2,)).tolist()
        cut = x[:, down : down + side, right : right + side]
        mirrored = torch.rand(len(x), device=x.device) < 0.5
        return networks.planes(torch.where(mirrored[:, None, None, None], cut.flip(2), cut))

    def _plain(self, x: Tensor) -> Tensor:
        return networks.planes(centred(x, self.sizes.trained_side).contiguous())

    def _own(self, model: networks.ResNet18, task: Task) -> dict[str, float]:
        """The network on the task that it was trained on."""
        test, seen = (
            training.scores(training.apply(model, x, self._plain, _CHUNK), y)["accuracy"]
            for x, y in ((task.test_x, task.test_y), (task.x, task.y))
        )
        return {"accuracy": test, "train_accuracy": seen}

    def _heads(self, model: networks.ResNet18, targets: Sequence[int], seed: int) -> list[dict[str, float]]:
        """Last layers for all targets side by side, on the frozen body with its statistics of each target."""
        seen, test = [], []
        for target in targets:
            task = self.tasks[target]
            estimate_again(model.body, [self._plain(part) for part in task.x.split(_CHUNK)])
            for found, x in ((seen, task.x), (test, task.test_x)):
                found.append(training.apply(model.body, x, self._plain, _CHUNK))
        together = torch.nn.utils.rnn.pad_sequence
        labels = together([self.tasks[target].y for target in targets], batch_first=True, padding_value=-1)
        x, y, there = together(seen, batch_first=True), labels.clamp(min=0), labels >= 0
        weight, bias = model.head.weight.detach().T, model.head.bias.detach()
        head = [(weight.expand(len(targets), -1, -1).clone(), bias.expand(len(targets), 1, -1).clone())]
        layers = (side_by_side.Linear(weight.shape[0], weight.shape[1], last=True),)

        def loss_of(_: int) -> Tensor:
            return side_by_side.loss(side_by_side.outputs(layers, head, x), y, there)

        steps = [self.sizes.head_epochs] * len(targets)
        trained = side_by_side.fit(head, loss_of, steps, rate=1e-2)
        rows = []
        for place, target in enumerate(targets):
            task = self.tasks[target]
            mine = side_by_side.chosen(trained, [place])
            scores = [
                training.scores(side_by_side.outputs(layers, mine, part[place][None])[0], truth)["accuracy"]
                for part, truth in ((test, task.test_y), (seen, task.y))
            ]
            rows.append({"accuracy": scores[0], "train_accuracy": scores[1]})
        return rows


@torch.no_grad()
def estimate_again(body: nn.Module, batches: Sequence[Tensor]) -> None:
    """Replace the running mean and variance of every batch norm by their means over these batches."""
    norms = [part for part in body.modules() if isinstance(part, nn.BatchNorm2d)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a plain mean over what follows
    body.train()
    for batch in batches:
        with torch.autocast(batch.device.type, torch.bfloat16, enabled=batch.is_cuda):
            body(batch)
    body.eval()


if __name__ == "__main__":
    main()
