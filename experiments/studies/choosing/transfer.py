"""Every network trained on its source, then on every target: tuned whole, and frozen with a new linear layer."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from experiments.lib.store import Row, Unit, complete
from experiments.studies.choosing import pools, scores, stacks
from experiments.studies.choosing.design import PICTURES, SHOTS, Effort
from experiments.studies.choosing.pools import Base, Set
from experiments.studies.choosing.stacks import Linear, Weights

UNTRAINED = "untrained"  # a network that saw no source, beside the others
_SOURCE_RATE, _TUNING_RATE, _HEAD_RATE = 2e-3, 2e-3, 3e-2


@dataclass(frozen=True, eq=False)
class Trained:
    """A stack trained on the sources, and the heads it was trained with."""

    weights: Weights
    head: Weights
    classes: Tensor  # of every source


class Bench:
    """One domain on one device."""

    def __init__(self, domain: str, bases: Mapping[str, Base], effort: Effort, device: str) -> None:
        self.domain, self.bases, self.effort, self.device = domain, bases, effort, device
        self.sources = pools.sources(domain, dict(bases))
        numbers = None if domain == PICTURES else next(iter(bases.values())).pool.x.shape[1]
        self.shape = stacks.layers(numbers, effort.width)
        self.after = self.shape[-1].after
        self.networks = len(self.sources) + 1  # the last is never trained on a source
        self.trained = lru_cache(maxsize=1)(self._trained)

    def run(self, path: Path, seed: int, until: float) -> None:
        """One unit of work per target, as far as the clock allows (``time.monotonic``)."""

        def work(unit: Unit) -> Sequence[Row]:
            return self._transfers(seed, str(unit["target"])) if time.monotonic() < until else ()

        complete(path, [{"seed": seed, "target": name} for name in self.bases], work, title=f"{self.domain}, {seed}")

    # ----------------------------------------------------------------------- sources

    def _trained(self, seed: int) -> Trained:
        generator = torch.Generator(self.device).manual_seed(seed)
        sets = list(self.sources.values())
        count = len(sets)
        weights = stacks.drawn(self.shape, count, seed, self.device)
        untrained = stacks.drawn(self.shape, 1, seed, self.device)
        head = stacks.drawn([Linear(self.after, max(made.classes for made in sets))], count, seed, self.device)
        classes = torch.tensor([made.classes for made in sets], device=self.device)
        x, y = self._points(Set(np.concatenate([s.x for s in sets]), np.concatenate([s.y for s in sets])))
        sizes = torch.tensor([len(made.y) for made in sets], device=self.device)
        starts = torch.cumsum(sizes, 0) - sizes

        def batch() -> tuple[Tensor, Tensor]:
            draws = torch.rand(count, self.effort.batch, generator=generator, device=self.device) * sizes[:, None]
            rows = starts[:, None] + draws.long()
            return x[rows], y[rows]

        def logits(part: Tensor) -> Tensor:
            found = stacks.features(self.shape, weights, part, count) @ head[0][0] + head[0][1]
            return stacks.masked(found, classes)

        stacks.fit([*weights, *head], logits, batch, steps=self.effort.source_steps, rate=_SOURCE_RATE)
        joined = [
            (torch.cat([weight, first]), torch.cat([bias, second]))
            for (weight, bias), (first, second) in zip(weights, untrained, strict=True)
        ]
        return Trained(joined, head, classes)

    def _points(self, made: Set) -> tuple[Tensor, Tensor]:
        return torch.from_numpy(made.x).to(self.device), torch.from_numpy(made.y).to(self.device)

    # ----------------------------------------------------------------------- targets

    def _transfers(self, seed: int, name: str) -> Sequence[Row]:
        trained, target = self.trained(seed), self.bases[name]
        test, truth = self._points(target.test)
        tested = stacks.all_features(self.shape, trained.weights, test, self.networks)
        columns: dict[str, Sequence[float]] = {}
        for shots in SHOTS:
            x, y = self._points(target.pool.few(shots, seed))
            seen = stacks.all_features(self.shape, trained.weights, x, self.networks)
            columns[f"frozen{shots}"] = self._frozen(seen, y, tested, truth)
            columns[f"tuned{shots}"] = self._tuned(trained.weights, x, y, test, truth, seed)
        columns |= self._scores(trained, seen, y.cpu().numpy())  # from the most examples: the whole pool
        return [
            {"source": source, **{column: f"{values[row]:.4g}" for column, values in columns.items()}}
            for row, source in enumerate([*self.sources, UNTRAINED])
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

        stacks.fit([(weight, bias)], logits, lambda: (x, y), steps=self.effort.head_steps, rate=_HEAD_RATE, decay=0.1)
        with torch.no_grad():
            return stacks.accuracy(logits(test), truth).tolist()

    def _tuned(self, start: Weights, x: Tensor, y: Tensor, test: Tensor, truth: Tensor, seed: int) -> list[float]:
        """All layers and a new last one; all networks see the same batches and start from the same last layer."""
        generator = torch.Generator(self.device).manual_seed(seed)
        weights = stacks.copied(start)
        head = stacks.drawn([Linear(self.after, int(y.max()) + 1)], self.networks, seed, self.device)

        def batch() -> tuple[Tensor, Tensor]:
            rows = torch.randint(len(y), (self.effort.batch,), generator=generator, device=self.device)
            return x[rows], y[rows]

        def logits(part: Tensor) -> Tensor:
            return stacks.features(self.shape, weights, part, self.networks) @ head[0][0] + head[0][1]

        stacks.fit([*weights, *head], logits, batch, steps=self.effort.tuning_steps, rate=_TUNING_RATE)
        hidden = stacks.all_features(self.shape, weights, test, self.networks)
        return stacks.accuracy(hidden @ head[0][0] + head[0][1], truth).tolist()

    def _scores(self, trained: Trained, seen: Tensor, y: pools.Labels) -> dict[str, Sequence[float]]:
        sources = seen[:-1]  # the untrained network has no classes of its own
        logits = stacks.masked(sources @ trained.head[0][0] + trained.head[0][1], trained.classes)
        likely = torch.softmax(logits, dim=2).double().cpu().numpy()
        hidden = seen.double().cpu().numpy()
        with ThreadPoolExecutor() as pool:
            return {
                "LEEP": [*pool.map(lambda part: scores.leep(part, y), likely), float("nan")],
                "LogME": list(pool.map(lambda part: scores.logme(part, y), hidden)),
                "H-score": list(pool.map(lambda part: scores.h_score(part, y), hidden)),
            }
