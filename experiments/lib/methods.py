"""Every distance that the experiments compare, each by the paper's definition: one place to say how it is computed."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

import sotdd

Dataset: TypeAlias = tuple[NDArray[np.generic], NDArray[np.generic]]

SOTDD = "s-OTDD"
EXACT = "OTDD (exact)"
GAUSSIAN = "OTDD (Gaussian)"
WTE = "WTE"
CHSW = "CHSW"
METHODS = (SOTDD, EXACT, GAUSSIAN, WTE, CHSW)
# OTDD (exact) without its sampling floor.
DIFFERENCE = "OTDD (debiased)"
SQUARES = "OTDD (debiased, squares)"


@dataclass(frozen=True)
class Method:
    """A distance and its settings.

    Attributes
    ----------
    name
        One of METHODS, DIFFERENCE or SQUARES.
    n_projections, n_moments
        Of the sliced distances, and of s-OTDD.
    image_shape
        (height, width) or (height, width, channels) for convolution projections; None for linear ones.
    clamp
        Where the values of convolution projections are cut; the authors' code cuts them at 5.
    scale
        Of s-OTDD: "pooled", for every call anew; or what is subtracted from every feature and what it is then divided
        by; or a scaler, which is one unit for all calls.
    max_points
        Of OTDD without its floor: how many points each of its transports has.
    """

    name: str
    n_projections: int = 10_000
    n_moments: int = 5
    image_shape: tuple[int, ...] | None = None
    clamp: float | None = 5.0
    scale: str | tuple[float, float] | sotdd.Scaler = "pooled"
    max_points: int | None = None


# The mean and the spread of MNIST's pixels, by which the authors' loader scales every *NIST set.
AUTHORS_SCALE = (0.1307 * 255, 0.3081 * 255)


@dataclass(frozen=True)
class Measured:
    """Distances by pair of names, and the seconds they took together."""

    values: Mapping[tuple[str, str], float]
    seconds: float


def measure(method: Method, datasets: Mapping[str, Dataset], *, seed: int = 0, device: str = "cpu") -> Measured:
    """Distances between every two datasets; WTE and CHSW place the labels of all of them together."""
    began = time.perf_counter()
    n_features = math.prod(next(iter(datasets.values()))[0].shape[1:])
    matrix = sotdd.pairwise(datasets, **_settings(method, n_features, seed, device))  # type: ignore[arg-type]
    values = {(a, b): matrix[a, b].value for a, b in combinations(datasets, 2)}
    return Measured(values, time.perf_counter() - began)


def by_projections(
    method: Method, a: Dataset, b: Dataset, counts: Sequence[int], *, seed: int = 0, device: str = "cpu"
) -> dict[int, float]:
    """A sliced distance by its first projections, for each of these counts up to all of them."""
    settings = _settings(method, math.prod(a[0].shape[1:]), seed, device)
    powers = sotdd.pairwise({"a": a, "b": b}, **settings)["a", "b"].per_projection  # type: ignore[arg-type]
    return {count: float(np.mean(powers[:count])) ** 0.5 for count in counts}


def _settings(method: Method, n_features: int, seed: int, device: str) -> dict[str, object]:
    # Everything is said, defaults of the package included: the paper's label law, plain Monte Carlo.
    if method.name == SOTDD:
        rates = tuple(float(rate) for rate in range(1, method.n_moments + 1))
        shape = method.image_shape
        return {
            "n_projections": method.n_projections,
            "label_law": sotdd.projections.Moments(
                method.n_moments, sotdd.projections.ZeroTruncatedPoisson(rates), cut=None
            ),
            "directions": sotdd.projections.Sphere()
            if shape is None
            else sotdd.projections.Convolution(shape, "auto", method.clamp, "last"),
            "scale": _scaler(n_features, *method.scale) if isinstance(method.scale, tuple) else method.scale,
            "p": 2.0,
            "estimator": "plain",
            "seed": seed,
            "device": device,
        }
    if method.name == CHSW:
        return {"method": "chsw", "n_projections": method.n_projections, "p": 2.0, "seed": seed}
    if method.name == WTE:
        return {"method": "wte", "seed": seed}
    if method.name in (DIFFERENCE, SQUARES):
        form = "difference" if method.name == DIFFERENCE else "powers"
        return {"method": "otdd", "p": 2.0, "seed": seed, "debias": form, "max_points": method.max_points}
    inner = {EXACT: "exact", GAUSSIAN: "gaussian"}[method.name]
    return {"method": "otdd", "inner": inner, "p": 2.0, "seed": seed}


def _scaler(n_features: int, centre: float, spread: float) -> sotdd.Scaler:
    return sotdd.Scaler(np.full(n_features, centre), spread)
