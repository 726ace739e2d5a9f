"""How much error each estimator leaves for the same time, and whether its intervals hold, on real pairs.

Run with the folder of datasets and what to measure, from the root of the repository::

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.estimators DATA --replicates 100 --coverage 300

Times are processor times of whole calls in one process with one thread, so other work on the machine
does not enter.
"""

from __future__ import annotations

import argparse
import io
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, qmc

import sotdd
from sotdd.compute.comparison import compare
from sotdd.inputs import open_pair
from sotdd.inputs.data import LabelledData
from sotdd.projections import ImportanceSampled, Polynomials
from sotdd.projections.directions import unit_rows
from sotdd.projections.labels import CUT, moment_terms
from sotdd.projections.maps import Directions

Pair = tuple[tuple[NDArray[np.generic], NDArray[np.generic]], tuple[NDArray[np.generic], NDArray[np.generic]]]
Measure = Callable[[Pair, int, int], sotdd.results.Distance]


# ------------------------------------------------------------------ the pairs


def _sample(archive: Path, count: int, seed: int, size: int | None = None) -> tuple[NDArray[np.generic], ...]:
    """Random images of an archive, brought to ``size`` pixels a side where it is given."""
    from PIL import Image

    with np.load(archive) as arrays:
        labels = arrays["y_train"]
        chosen = np.random.default_rng(seed).permutation(len(labels))[:count]
        if "jpeg_train" in arrays:
            data, edges = arrays["jpeg_train"], arrays["offsets_train"]
            opened = [Image.open(io.BytesIO(data[edges[i] : edges[i + 1]].tobytes())).convert("RGB") for i in chosen]
        else:
            images = arrays["X_train"][chosen]
            opened = [Image.fromarray(image) for image in images]
    shape = opened[0].size if size is None else (size, size)
    features = np.stack([np.asarray(image.resize(shape, Image.Resampling.BILINEAR), np.float32) for image in opened])
    return features, labels[chosen]


def pairs(folder: Path, count: int) -> Iterator[tuple[str, Pair]]:
    """Pairs of real datasets by name; the last is two halves of one."""
    digits = _sample(folder / "mnist.npz", 2 * count, 0)
    first, second = ((digits[0][half], digits[1][half]) for half in (slice(count), slice(count, None)))
    yield "MNIST, USPS", (first, _sample(folder / "usps.npz", count, 1, 28))
    yield "MNIST, Fashion-MNIST", (first, _sample(folder / "fashion_mnist.npz", count, 2))
    yield "MNIST, KMNIST", (first, _sample(folder / "kmnist.npz", count, 3))
    yield "MNIST, EMNIST letters", (first, _sample(folder / "emnist_letters.npz", count, 4))
    colour = (
        _sample(folder / "cifar10.npz", count // 2, 5),
        _sample(folder / "tiny_imagenet_subset.npz", count // 2, 6, 32),
    )
    yield "CIFAR-10, Tiny-ImageNet", colour
    yield "MNIST, MNIST", (first, second)


def colour_halves(folder: Path, count: int) -> Pair:
    """Two samples of colour images."""
    images, labels = _sample(folder / "cifar10.npz", 2 * count, 5)
    return (images[:count], labels[:count]), (images[count:], labels[count:])


# ------------------------------------------------------------------ the techniques


@dataclass(frozen=True)
class SobolMoments:
    """The default label law with (ψ, λ) from scrambled Sobol' points: every draw of 64 is a net of its own."""

    n_moments: int = 5

    def describe(self) -> dict[str, object]:
        """Name the law."""
        return {"law": "moments by Sobol' points", "n_moments": self.n_moments}

    def draw(self, rng: np.random.Generator, n_projections: int) -> Polynomials:
        """Gaussians for ψ and orders for λ from the same points."""
        points = qmc.Sobol(2 * self.n_moments + 1, scramble=True, rng=rng).random(n_projections)
        points = np.clip(points, 1e-12, 1 - 1e-12)
        psi = unit_rows(norm.ppf(points[:, : self.n_moments + 1]))
        return moment_terms(psi, sotdd.projections.ZeroTruncatedPoisson().orders(points[:, self.n_moments + 1 :]), CUT)


@dataclass(frozen=True, eq=False)
class SobolSphere:
    """Uniform directions whose leading principal coordinates come from scrambled Sobol' points, a net per block."""

    tilt: ImportanceSampled

    def describe(self) -> dict[str, object]:
        """Name the law."""
        return {"law": "sphere by Sobol' points"}

    def draw(self, rng: np.random.Generator, n_projections: int, n_features: int) -> Directions:
        """Replace the coordinates along the basis of a Gaussian vector."""
        basis = self.tilt.basis
        points = qmc.Sobol(len(basis), scramble=True, rng=rng).random(n_projections)
        theta = rng.standard_normal((n_projections, n_features))
        theta += (norm.ppf(np.clip(points, 1e-12, 1 - 1e-12)) - theta @ basis.T) @ basis
        return Directions(unit_rows(theta))


def _through(pair: Pair, projections: sotdd.Projections, estimator: str) -> sotdd.results.Distance:
    return sotdd.distance(*pair, projections=projections, estimator=estimator)


def _tilted(pair: Pair, seed: int, count: int) -> sotdd.results.Distance:
    data = open_pair(*pair)
    return _through(pair, sotdd.Projections.fit(data, n_projections=count, seed=seed, tilt=True), "plain")


def _label_control(pair: Pair, seed: int, count: int) -> sotdd.results.Distance:
    data = open_pair(*pair)
    return _through(pair, sotdd.Projections.fit(data, n_projections=count, seed=seed, tilt=False), "controlled")


def _sobol(pair: Pair, seed: int, count: int, *, directions: bool) -> sotdd.results.Distance:
    data: list[LabelledData] = open_pair(*pair)
    scaler = sotdd.Scaler.fit(data)
    law = sphere = sotdd.projections.Sphere()
    if directions:
        law = SobolSphere(ImportanceSampled.fit(data, scaler, sphere))
    recipe = sotdd.Projections.fit(
        data, n_projections=count, seed=seed, label_law=SobolMoments(), directions=law, scale=scaler
    )
    return compare(data, [(0, 1)], recipe, 2.0)[0, 1]


TECHNIQUES: dict[str, Measure] = {
    "plain": lambda pair, seed, count: sotdd.distance(*pair, n_projections=count, seed=seed, estimator="plain"),
    "orthogonal directions": lambda pair, seed, count: sotdd.distance(
        *pair, n_projections=count, seed=seed, estimator="plain", directions=sotdd.projections.Orthogonal()
    ),
    "Sobol' (ψ, λ)": lambda pair, seed, count: _sobol(pair, seed, count, directions=False),
    "Sobol' (ψ, λ) and θ": lambda pair, seed, count: _sobol(pair, seed, count, directions=True),
    "label control": _label_control,
    "tilted directions": _tilted,
    "controlled": lambda pair, seed, count: sotdd.distance(*pair, n_projections=count, seed=seed),
}


# ------------------------------------------------------------------ what is measured


def reference(pair: Pair, plain: int, controlled: int) -> tuple[sotdd.results.Distance, sotdd.results.Distance]:
    """The distance by very many projections, plain and controlled."""
    return TECHNIQUES["plain"](pair, 10**6, plain), TECHNIQUES["controlled"](pair, 10**6 + 1, controlled)


def share_of_directions(pair: Pair, count: int, seed: int = 0) -> float:
    """The share of the variance of one plain cost that the direction alone makes: two label draws per direction."""
    data = open_pair(*pair)
    scaler, rng = sotdd.Scaler.fit(data), np.random.default_rng(seed)
    scaled = [((part.rows(slice(None)) - scaler.centre) / scaler.scale, part.codes) for part in data]
    theta = unit_rows(rng.standard_normal((count, data[0].n_features)))
    costs = []
    for _ in range(2):
        psi = unit_rows(rng.standard_normal((count, 6)))
        orders = sotdd.projections.ZeroTruncatedPoisson().orders(rng.random((count, 5)))
        recipe = sotdd.Projections.from_arrays(theta=theta, psi=psi, orders=orders, cut=CUT)
        costs.append(sotdd.distance(*scaled, projections=recipe).per_projection)
    return float(np.cov(*costs)[0, 1] / np.mean([np.var(cost) for cost in costs]))


def replicates(
    measure: Measure, pair: Pair, count: int, n_projections: int
) -> tuple[list[sotdd.results.Distance], float]:
    """The same distance by several seeds, and the median processor time of one."""
    measure(pair, 10**6, 64)
    found, times = [], []
    for seed in range(count):
        began = time.process_time()
        found.append(measure(pair, seed, n_projections))
        times.append(time.process_time() - began)
    return found, float(np.median(times))


def coverage(found: Sequence[sotdd.results.Distance], truth: float) -> float:
    """The share of 95 % intervals that hold the truth."""
    return float(np.mean([low <= truth <= high for low, high in (one.interval(0.95) for one in found)]))


def report(
    folder: Path, only: str, count: int, n_projections: int, seeds: int, wide_seeds: int, exact: int
) -> Iterator[str]:
    """Lines of the tables, pair by pair."""
    for name, pair in pairs(folder, count):
        if only not in name:
            continue
        plain, controlled = reference(pair, 3 * exact, exact)
        apart = (plain.value - controlled.value) / np.hypot(plain.stderr, controlled.stderr)
        yield (
            f"\n**{name}**: {controlled.value:.5f} ± {controlled.stderr:.5f}; plain {plain.value:.5f} ± "
            f"{plain.stderr:.5f}, {apart:+.1f} standard errors apart; "
            f"{100 * share_of_directions(pair, 20 * n_projections):.0f} % of the variance is the direction's\n"
        )
        yield "| | rmse, % | median error, % | time | rmse, equal time | median, equal time | coverage | reliable |"
        yield "|---|---|---|---|---|---|---|---|"
        base: tuple[float, float, float] | None = None
        for technique, measure in TECHNIQUES.items():
            wide = technique in ("plain", "controlled")
            found, took = replicates(measure, pair, wide_seeds if wide else seeds, n_projections)
            errors = np.abs([one.value - controlled.value for one in found]) / controlled.value
            rmse, middle = float(np.sqrt(np.mean(errors**2))), float(np.median(errors))
            base = base or (rmse, middle, took)
            slower = np.sqrt(took / base[2])
            held, relied = coverage(found, controlled.value), np.mean([one.reliable for one in found])
            yield (
                f"| {technique} | {100 * rmse:.2f} | {100 * middle:.2f} | {took / base[2]:.2f} "
                f"| {slower * rmse / base[0]:.2f} | {slower * middle / base[1]:.2f} "
                f"| {100 * held:.0f} % | {100 * relied:.0f} % |"
            )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="part of the name of a pair; all by default")
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--projections", type=int, default=1000)
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--coverage", type=int, default=300, help="replicates of plain and controlled")
    parser.add_argument("--exact", type=int, default=100_000, help="projections of the reference")
    asked = parser.parse_args()
    sizes = (asked.points, asked.projections, asked.replicates, asked.coverage, asked.exact)
    for line in report(asked.folder, asked.only, *sizes):
        print(line, flush=True)


if __name__ == "__main__":
    main()
