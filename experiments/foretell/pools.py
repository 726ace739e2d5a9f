"""The sets that the recipes ask for. Sources and targets are made of different pictures and texts, always."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from experiments import data
from experiments.foretell.design import BASES, COLOUR, GREY, TARGET_BASES, TEXT, Design, Recipe
from experiments.foretell.texts import FILE, FORMS
from experiments.foretell.texts import prepare as prepare_texts

Array = NDArray[np.generic]

_FILES = {
    "mnist": "mnist", "fashion": "fashion_mnist", "kmnist": "kmnist", "usps": "usps", "letters": "emnist_letters",
    "cifar": "cifar10",
}  # fmt: skip
_SOURCE_SHARE = {GREY: 0.5, COLOUR: 0.65, TEXT: 0.32}  # of what there is of a base; the rest is for targets
_MOST = 12_000  # pictures of a base
_PARTS = ("sources", "targets")
# Tiny-ImageNet has 90 pictures of a class here: classes, not pictures, are shared out. Four groups of 35 for sources,
# three of 20 for targets, in a random order of classes.
_TINY_GROUPS = {f"tiny{group + 1}": (35 * group, 35 * group + 35) for group in range(4)} | {
    f"tiny{group + 5}": (140 + 20 * group, 160 + 20 * group) for group in range(3)
}


@dataclass(frozen=True, eq=False)
class Pool:
    """Points of one base, in every form that they have, and their labels from 0 on."""

    forms: Mapping[str, Array]
    y: NDArray[np.int64]

    def rows(self, rows: NDArray[np.integer]) -> Pool:
        """Some of them."""
        return Pool({form: x[rows] for form, x in self.forms.items()}, self.y[rows])


@dataclass(frozen=True, eq=False)
class Made:
    """A set: points as float32, and labels from 0 on."""

    recipe: Recipe
    x: NDArray[np.float32]
    y: NDArray[np.int64]

    @property
    def classes(self) -> int:
        """How many there are."""
        return int(self.y.max()) + 1


@dataclass(frozen=True, eq=False)
class Target:
    """What can be learnt from, and what is tested on."""

    train: Made
    test: Made

    def few(self, shots: int, seed: int) -> Made:
        """As many examples of each class."""
        rng = np.random.default_rng((seed, shots))
        rows = np.concatenate(
            [rng.permutation(np.flatnonzero(self.train.y == label))[:shots] for label in range(self.train.classes)]
        )
        return Made(self.train.recipe, self.train.x[rows], self.train.y[rows])


@dataclass(frozen=True, eq=False)
class Family:
    """The pools of a family, and one centre and spread for all of its values."""

    name: str
    sources: Mapping[str, Pool]
    targets: Mapping[str, Pool]
    centre: float
    spread: float

    def source(self, recipe: Recipe, design: Design) -> Made:
        """A set to train on first."""
        return self._made(recipe, self.sources, recipe.points or design.source_points)

    def target(self, recipe: Recipe, design: Design) -> Target:
        """A set to be tuned on. Test points are taken from the classes by turns, after what may be learnt from."""
        whole = self._made(recipe, self.targets, None)
        turn = np.empty(len(whole.y), np.int64)
        for label in range(whole.classes):
            mine = np.flatnonzero(whole.y == label)  # in random order already
            turn[mine] = np.arange(len(mine)) - max(design.shots)
        order = np.argsort(turn, kind="stable")
        tested = order[turn[order] >= 0][: design.test_points]
        learnt = np.setdiff1d(order, tested)
        return Target(*(Made(recipe, whole.x[rows], whole.y[rows]) for rows in (learnt, tested)))

    def _made(self, recipe: Recipe, pools: Mapping[str, Pool], points: int | None) -> Made:
        rng = np.random.default_rng(_number(recipe.name.replace("% wrong", "%")))
        form = recipe.damage if recipe.damage in FORMS else "clean"
        xs, ys, before = [], [], 0
        for base in recipe.bases:
            pool = pools[base]
            kept = _kept(recipe.classes, int(pool.y.max()) + 1)
            # The same points for every recipe of this base, classes and size: labels or damage are what differs.
            same = np.random.default_rng(_number(base))
            rows = same.permutation(np.flatnonzero(np.isin(pool.y, kept)))
            rows = rows[: None if points is None else points // len(recipe.bases)]
            xs.append(damaged(pool.forms[form][rows], recipe, self.spread, rng))
            ys.append(before + np.searchsorted(kept, pool.y[rows]))
            before += len(kept)
        x, y = np.concatenate(xs), np.concatenate(ys)
        if recipe.merged:
            y = y % recipe.merged
        wrong = rng.random(len(y)) < recipe.wrong
        y[wrong] = rng.permutation(y[wrong])
        return Made(recipe, ((x - self.centre) / self.spread).astype(np.float32), y.astype(np.int64))


def _number(name: str) -> int:
    """A seed that is the same in every run."""
    return zlib.crc32(name.encode())


def _kept(part: str, classes: int) -> NDArray[np.int64]:
    every = np.arange(classes)
    half = classes // 2
    return {
        "all": every, "even": every[::2], "odd": every[1::2], "first": every[:half], "second": every[half:],
        "three": every[1 :: max(1, classes // 3)][:3],
    }[part]  # fmt: skip


def damaged(x: Array, recipe: Recipe, spread: float, rng: np.random.Generator) -> NDArray[np.float32]:
    """Points as float32 with what the recipe does to them; pictures are (n, height, width[, 3]) from 0 to 1."""
    pictures = x.dtype == np.uint8
    found: NDArray[np.floating] = x.astype(np.float32) / np.float32(255 if pictures else 1)
    strength = recipe.strength
    if recipe.damage == "noise":
        found = found + rng.normal(0, strength * (1 if pictures else spread), found.shape)
        found = np.clip(found, 0, 1) if pictures else found
    elif recipe.damage == "blur":
        found = ndimage.gaussian_filter(found, (0, strength, strength) + (0,) * (found.ndim - 3))
    elif recipe.damage == "inverted":
        found = 1 - found
    elif recipe.damage == "turned":  # in quarter turns
        found = ndimage.rotate(found, 90 * strength, axes=(1, 2), reshape=False, order=1)
    elif recipe.damage == "faint":
        found = (1 - strength) * found + strength * found.mean()
    elif recipe.damage == "grey":
        found = np.repeat(found.mean(axis=3, keepdims=True), 3, axis=3)
    return found.astype(np.float32)


def family(name: str, folder: Path, cache: Path) -> Family:
    """Read the bases and share them out."""
    sources, targets = _texts(cache) if name == TEXT else {GREY: _grey, COLOUR: _colour}[name](folder, cache)
    # From 255 levels to 0 … 1 as `damaged` does.
    clean = [pool.forms["clean"] for pool in sources.values()]
    values = np.concatenate([np.ravel(x[:500]).astype(np.float64) / (255 if x.dtype == np.uint8 else 1) for x in clean])
    return Family(name, sources, targets, float(values.mean()), float(values.std()))


def _shared_out(pool: Pool, share: float, seed: int) -> tuple[Pool, Pool]:
    order = np.random.default_rng(seed).permutation(len(pool.y))[:_MOST]
    cut = round(share * len(order))
    return pool.rows(order[:cut]), pool.rows(order[cut:])


def prepare(name: str, folder: Path, cache: Path) -> None:
    """Keep what a family needs of its files in the cache, so that it alone can be taken to another machine."""
    if name == TEXT:
        prepare_texts(folder, cache)
    for base in {GREY: BASES[GREY], COLOUR: ("cifar",), TEXT: ()}[name]:
        halves = _pictures(base, folder, cache)
        arrays = {f"{part}_{kind}": values for part, pool in zip(_PARTS, halves, strict=True) for kind, values in (
            ("x", pool.forms["clean"]), ("y", pool.y.astype(np.uint8))
        )}  # fmt: skip
        cache.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(cache / f"foretell_{base}.npz", **arrays)  # type: ignore[arg-type]


def _pictures(base: str, folder: Path, cache: Path) -> tuple[Pool, Pool]:
    """For sources and for targets, from the cache if they are there."""
    path = cache / f"foretell_{base}.npz"
    if path.exists():
        kept = np.load(path)
        first, second = (Pool({"clean": kept[f"{part}_x"]}, kept[f"{part}_y"].astype(np.int64)) for part in _PARTS)
        return first, second
    parts = data.images(_FILES[base], folder, side=28 if base in BASES[GREY] else 32)
    pool = Pool({"clean": np.concatenate([part.x for part in parts])}, np.concatenate([part.y for part in parts]))
    grey = base in BASES[GREY]
    return _shared_out(pool, _SOURCE_SHARE[GREY if grey else COLOUR], _number(base) if grey else 0)


def _grey(folder: Path, cache: Path) -> tuple[dict[str, Pool], dict[str, Pool]]:
    halves = {base: _pictures(base, folder, cache) for base in BASES[GREY]}
    return {base: first for base, (first, _) in halves.items()}, {base: second for base, (_, second) in halves.items()}


def _colour(folder: Path, cache: Path) -> tuple[dict[str, Pool], dict[str, Pool]]:
    first, second = _pictures("cifar", folder, cache)
    sources, targets = {"cifar": first}, {"cifar": second}
    parts = data.images("tiny_imagenet", folder, side=32)
    x, y = np.concatenate([part.x for part in parts]), np.concatenate([part.y for part in parts])
    place = np.argsort(np.random.default_rng(0).permutation(200))[y]
    for base, (low, high) in _TINY_GROUPS.items():
        rows = np.flatnonzero((place >= low) & (place < high))
        held = sources if base in BASES[COLOUR] else targets
        held[base] = Pool({"clean": x[rows]}, place[rows] - low)
    return sources, {base: targets[base] for base in TARGET_BASES[COLOUR]}


def _texts(cache: Path) -> tuple[dict[str, Pool], dict[str, Pool]]:
    arrays = np.load(cache / FILE)
    sources, targets = {}, {}
    for base in BASES[TEXT]:
        forms = {form: arrays[f"{base}_{form}"].astype(np.float32) for form in FORMS}
        pool = Pool(forms, arrays[f"{base}_labels"].astype(np.int64))
        sources[base], targets[base] = _shared_out(pool, _SOURCE_SHARE[TEXT], _number(base))
    return sources, targets
