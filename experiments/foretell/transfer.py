"""Every network trained on its source, then on every target: tuned whole, and frozen with a new linear layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor

from experiments.foretell import design, scores, stacks
from experiments.foretell.design import Design
from experiments.foretell.pools import Family, Made
from experiments.foretell.stacks import Linear, Weights
from experiments.store import Row, Unit, complete

UNTRAINED = "untrained"  # a network that saw no source, beside the others
_SOURCE_RATE, _TUNING_RATE, _HEAD_RATE = 2e-3, 2e-3, 3e-2


@dataclass(frozen=True, eq=False)
class Trained:
    """A stack trained on the sources, and the heads it was trained with."""

    weights: Weights
    head: Weights
    classes: Tensor  # of every source


class Bench:
    """One family on one device."""

    def __init__(self, family: Family, size: Design, device: str) -> None:
        self.family, self.size, self.device = family, size, device
        self.recipes = design.sources(family.name, size)
        self.targets = {recipe.name: recipe for recipe in design.targets(family.name, size)}
        self.shape = stacks.layers(family.name, size.width)
        self.after = self.shape[-1].after
        self.networks = len(self.recipes) + 1  # the last is never trained on a source
        self.trained = lru_cache(maxsize=1)(self._trained)

    def run(self, path: Path, seeds: Sequence[int] | None = None) -> None:
        """One unit of work per seed and target."""
        chosen = range(self.size.seeds) if seeds is None else seeds
        units = [{"seed": seed, "target": name} for seed in chosen for name in self.targets]
        complete(path, units, self._transfers, title=f"{self.family.name}: seeds and targets")

    # ----------------------------------------------------------------------- sources

    def _trained(self, seed: int) -> Trained:
        generator = torch.Generator().manual_seed(seed)
        sets = [self.family.source(recipe, self.size) for recipe in self.recipes]
        most = max(made.classes for made in sets)
        count = len(sets)
        weights = stacks.drawn(self.shape, count, generator, self.device)
        untrained = stacks.drawn(self.shape, 1, torch.Generator().manual_seed(seed), self.device)
        head = stacks.drawn([Linear(self.after, most)], count, generator, self.device)
        classes = torch.tensor([made.classes for made in sets], device=self.device)
        x = torch.cat([self._points(made) for made in sets])
        y = torch.cat([torch.from_numpy(made.y) for made in sets]).to(self.device)
        sizes = torch.tensor([len(made.y) for made in sets])
        starts = torch.cumsum(sizes, 0) - sizes

        def batch() -> tuple[Tensor, Tensor]:
            draws = torch.rand(count, self.size.batch, generator=generator) * sizes[:, None]
            rows = (starts[:, None] + draws.long()).to(self.device)
            return x[rows], y[rows]

        def logits(part: Tensor) -> Tensor:
            found = stacks.features(self.shape, weights, part, count) @ head[0][0] + head[0][1]
            return stacks.masked(found, classes)

        stacks.fit([*weights, *head], logits, batch, steps=self.size.source_steps, rate=_SOURCE_RATE)
        joined = [
            (torch.cat([weight, first]), torch.cat([bias, second]))
            for (weight, bias), (first, second) in zip(weights, untrained, strict=True)
        ]
        return Trained(joined, head, classes)

    def _points(self, made: Made) -> Tensor:
        """On the device, pictures with their channels first."""
        x = torch.from_numpy(made.x)
        if x.ndim == 3:
            x = x[:, None]
        return (x.permute(0, 3, 1, 2) if x.shape[-1] == 3 else x).contiguous().to(self.device)

    # ----------------------------------------------------------------------- targets

    def _transfers(self, unit: Unit) -> Sequence[Row]:
        seed, name = unit["seed"], str(unit["target"])
        assert isinstance(seed, int)
        trained = self.trained(seed)
        target = self.family.target(self.targets[name], self.size)
        test, truth = self._points(target.test), torch.from_numpy(target.test.y).to(self.device)
        tested = stacks.all_features(self.shape, trained.weights, test, self.networks)
        columns: dict[str, Sequence[float]] = {}
        for shots in self.size.shots:
            few = target.few(shots, seed)
            x, y = self._points(few), torch.from_numpy(few.y).to(self.device)
            seen = stacks.all_features(self.shape, trained.weights, x, self.networks)
            columns[f"frozen{shots}"] = self._frozen(seen, y, tested, truth)
            columns[f"tuned{shots}"] = self._tuned(trained.weights, x, y, test, truth, seed)
        columns |= self._scores(trained, seen, few)  # from the most examples there are
        names = [*(recipe.name for recipe in self.recipes), UNTRAINED]
        return [
            {"source": source, **{column: f"{values[row]:.4g}" for column, values in columns.items()}}
            for row, source in enumerate(names)
        ]

    def _frozen(self, seen: Tensor, y: Tensor, tested: Tensor, truth: Tensor) -> list[float]:
        """A linear layer on standardised features."""
        centre, spread = seen.mean(dim=1, keepdim=True), seen.std(dim=1, keepdim=True) + 1e-3
        x, test = (seen - centre) / spread, (tested - centre) / spread
        classes = int(y.max()) + 1
        weight = torch.zeros(self.networks, self.after, classes, device=self.device)
        bias = torch.zeros(self.networks, 1, classes, device=self.device)

        def logits(part: Tensor) -> Tensor:
            return part @ weight + bias

        stacks.fit([(weight, bias)], logits, lambda: (x, y), steps=self.size.head_steps, rate=_HEAD_RATE, decay=0.1)
        with torch.no_grad():
            return stacks.accuracy(logits(test), truth).tolist()

    def _tuned(self, start: Weights, x: Tensor, y: Tensor, test: Tensor, truth: Tensor, seed: int) -> list[float]:
        """All layers and a new last one; all networks see the same batches and start from the same last layer."""
        generator = torch.Generator().manual_seed(seed)
        weights = stacks.copied(start)
        head = stacks.drawn([Linear(self.after, int(y.max()) + 1)], self.networks, generator, self.device)

        def batch() -> tuple[Tensor, Tensor]:
            rows = torch.randint(len(y), (self.size.batch,), generator=generator).to(self.device)
            return x[rows], y[rows]

        def logits(part: Tensor) -> Tensor:
            return stacks.features(self.shape, weights, part, self.networks) @ head[0][0] + head[0][1]

        stacks.fit([*weights, *head], logits, batch, steps=self.size.tuning_steps, rate=_TUNING_RATE)
        hidden = stacks.all_features(self.shape, weights, test, self.networks)
        return stacks.accuracy(hidden @ head[0][0] + head[0][1], truth).tolist()

    def _scores(self, trained: Trained, seen: Tensor, few: Made) -> dict[str, Sequence[float]]:
        sources = seen[:-1]  # the untrained network has no classes of its own
        logits = stacks.masked(sources @ trained.head[0][0] + trained.head[0][1], trained.classes)
        likely = torch.softmax(logits, dim=2).double().cpu().numpy()
        hidden = seen.double().cpu().numpy()
        return {
            "LEEP": [*(scores.leep(part, few.y) for part in likely), float("nan")],
            "LogME": [scores.logme(part, few.y) for part in hidden],
            "H-score": [scores.h_score(part, few.y) for part in hidden],
            "nearest mean": [scores.nearest_mean(part, few.y) for part in hidden],
        }
