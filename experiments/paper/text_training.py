"""A sentence encoder tuned on a source, and adapted to 100 examples per class of a target.

A set's own row is tuned on all of it. The authors' baseline is the row whose source is "none": the encoder adapted to
the same 100 examples per class, without a source. Reviews that two sets would share are taken apart.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from experiments.lib import data, networks, training
from experiments.lib.options import Options, parse
from experiments.lib.store import Row, Unit, complete

EMBEDDED = "text_embeddings.npz"


@dataclass(frozen=True)
class Sizes:
    """How much is done."""

    seeds: int
    source: int  # examples to tune on
    test: int
    per_class: int
    epochs: int
    adapting_epochs: int
    length: int  # tokens of a text
    points: int  # for s-OTDD
    slow_points: int  # for OTDD (exact)
    n_projections: int
    sets: tuple[str, ...] = data.TEXTS


SIZES = {
    "full": Sizes(3, 3000, 1000, 100, 2, 4, 128, 5000, 2500, 10_000),
    "gpu": Sizes(3, 3000, 1000, 100, 2, 4, 128, 5000, 2500, 10_000),
    "quick": Sizes(1, 96, 100, 10, 1, 1, 32, 200, 200, 500),
    "smallest": Sizes(1, 16, 16, 4, 1, 1, 16, 24, 24, 64, ("ag_news", "imdb", "yelp_polarity")),
}


@dataclass(frozen=True, eq=False)
class Task:
    """Token numbers and labels of a set."""

    x: Tensor
    y: Tensor
    test_x: Tensor
    test_y: Tensor

    @property
    def classes(self) -> int:
        """How many there are."""
        return int(self.y.max()) + 1

    def few(self, per_class: int, seed: int) -> tuple[Tensor, Tensor]:
        """So many examples of every class."""
        order = torch.randperm(len(self.y), generator=torch.Generator().manual_seed(seed)).to(self.y.device)
        rows = torch.cat([order[self.y[order] == c][:per_class] for c in range(self.classes)])
        return self.x[rows], self.y[rows]


def main() -> None:
    """Tune, adapt, and embed into the cache."""
    options = parse(__doc__)
    sizes = SIZES[options.size]
    encoder, tasks = load(options, sizes)
    if "distances" in options.steps:
        embeddings(options, sizes, encoder, tasks)
    if "train" in options.steps:
        train(options, sizes, encoder, tasks)


def load(options: Options, sizes: Sizes) -> tuple[torch.nn.Module, dict[str, Task]]:
    """The encoder and every set."""
    return networks.sentence_encoder(options.device), {name: _task(name, options, sizes) for name in sizes.sets}


def _task(name: str, options: Options, sizes: Sizes) -> Task:
    """The train part is for tuning and for distances alike, so take as many as the larger of them needs."""
    found = []
    parts = data.texts(name, options.data, apart=True)
    for part, most in zip(parts, (max(sizes.source, sizes.points), sizes.test), strict=True):
        # Each class alike; polarity keeps the rows of the stars that it is made of, so no test row is ever tuned on.
        rows = _balanced(part.y, most)
        chosen = part.rows(rows)
        found += [networks.tokenise(chosen.x, sizes.length), torch.from_numpy(chosen.y)]
    return Task(*(part.to(options.device) for part in found))


def _balanced(labels: np.ndarray, most: int) -> np.ndarray:
    order = np.random.default_rng(0).permutation(len(labels))
    turn = np.empty(len(labels), int)
    for label in np.unique(labels):
        mine = order[labels[order] == label]
        turn[mine] = np.arange(len(mine))
    return order[np.argsort(turn[order], kind="stable")][:most]


def train(
    options: Options,
    sizes: Sizes,
    encoder: torch.nn.Module,
    tasks: dict[str, Task],
    seeds: Sequence[int] | None = None,
) -> None:
    """One row per seed, source and target; a set's own row is tuned on all of it, "none" starts from the encoder."""

    def tuned(
        start: torch.nn.Module, x: Tensor, y: Tensor, classes: int, epochs: int, seed: int, title: str
    ) -> networks.TextClassifier:
        training.seeded(seed)
        model = networks.TextClassifier(deepcopy(start), classes).to(options.device)
        training.fit(model, x, y, epochs=epochs, seed=seed, title=title, rate=1e-4, batch=32)
        return model

    @cache
    def source_model(seed: int, name: str) -> networks.TextClassifier:
        task = tasks[name]
        rows = torch.randperm(len(task.y), generator=torch.Generator().manual_seed(seed))[: sizes.source]
        rows = rows.to(task.y.device)
        return tuned(encoder, task.x[rows], task.y[rows], task.classes, sizes.epochs, seed, f"tuning on {name}")

    def work(unit: Unit) -> Sequence[Row]:
        began = time.perf_counter()
        seed, source, target = int(str(unit["seed"])), str(unit["source"]), str(unit["target"])
        task = tasks[target]
        if source == target:
            model = source_model(seed, target)
        else:
            start = encoder if source == "none" else source_model(seed, source).encoder
            x, y = task.few(sizes.per_class, seed)
            model = tuned(start, x, y, task.classes, sizes.adapting_epochs, seed, f"{source} to {target}")
        found = training.scores(training.apply(model, task.test_x, batch=256), task.test_y)
        print(f"seed {seed}, {source} to {target}: {time.perf_counter() - began:.1f} s", flush=True)
        return [found]

    units = [
        {"seed": seed, "source": source, "target": target}
        for seed in (range(sizes.seeds) if seeds is None else seeds)
        for source in (*sizes.sets, "none")
        for target in sizes.sets
    ]
    complete(options.results / "text_training.csv", units, work, title="text transfer")


def embeddings(
    options: Options, sizes: Sizes, encoder: torch.nn.Module | None = None, tasks: Mapping[str, Task] | None = None
) -> dict[str, tuple[NDArray[np.float32], NDArray[np.int64]]]:
    """What the encoder makes of the train parts, and labels; kept in the cache, where there is one."""
    path = None if options.cache is None else options.cache / EMBEDDED
    if path is None or not path.exists():
        if encoder is None or tasks is None:
            encoder, tasks = load(options, sizes)
        embed = networks.TextClassifier(encoder, 2).to(options.device).eval().embed
        arrays: dict[str, NDArray[np.generic]] = {}
        for name, task in tasks.items():
            arrays[name] = training.apply(embed, task.x, batch=256).cpu().numpy().astype(np.float16)
            arrays[f"{name}_labels"] = task.y.cpu().numpy()
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savez(path, **arrays)  # type: ignore[arg-type]
    else:
        arrays = dict(np.load(path))
    return {name: (arrays[name].astype(np.float32), arrays[f"{name}_labels"]) for name in sizes.sets}  # type: ignore[misc]


if __name__ == "__main__":
    main()
