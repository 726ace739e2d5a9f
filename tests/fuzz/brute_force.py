"""Random settings of a distance, each beside a brute force in float64: the same projections, point by point.

What is taken from the package are the drawn numbers and the scaler. How points are projected, how classes enter and how
samples are transported is written here and in `reference` again, in the plainest way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import reference
import sotdd
from fuzz.values import Bent, Coordinates
from laws import Medians
from sotdd.projections import Directions, Polynomials, Quantiles

# Rounding of float32 in units of the largest value of a row, and relative to the distance itself.
_OF_VALUES, _OF_DISTANCE = 2e-5, 2e-4

_DTYPES = (np.float64, np.float64, np.float32, np.float16, np.uint8, np.int64, np.bool_, ">f8")


@dataclass(frozen=True, eq=False)
class Setting:
    """Two datasets, the projections that they are seen through, and the order of transport."""

    a: tuple[Any, Any]
    b: tuple[Any, Any]
    projections: sotdd.Projections
    p: float
    words: str


def draw(seed: int) -> Setting:
    """The setting of this number."""
    rng = np.random.default_rng(seed)
    d = int(rng.choice([1, 2, 4, 9]))
    a, b = (_dataset(rng, d) for _ in "ab")
    p = float(rng.choice([1, 1.5, 2, 2, 3, 7]))
    if rng.random() < 0.4:
        projections, words = _explicit(rng, d)
    else:
        projections, words = _from_laws(rng, d, [a, b])
    return Setting(a, b, projections, p, f"{words}, p={p:g}, {a[0].dtype} {a[0].shape} and {b[0].dtype} {b[0].shape}")


def _dataset(rng: np.random.Generator, d: int) -> tuple[Any, Any]:
    n = int(rng.choice([1, 2, 3, 5, 8, 13, 30]))
    x = rng.normal(rng.normal(), rng.choice([0.3, 1, 3]), size=(n, d))
    if rng.random() < 0.3:  # ties
        x = np.round(x)
    if rng.random() < 0.1:
        x[:] = x[0]
    if rng.random() < 0.15:
        x[:, 0] *= 100
    dtype = np.dtype(_DTYPES[rng.integers(len(_DTYPES))])
    x = np.clip(x, 0, 9).astype(dtype) if dtype.kind == "u" else x.astype(dtype)
    labels = rng.integers(int(rng.integers(1, 5)), size=n)
    return x, np.array(["a", "b", "c", "d"])[labels] if rng.random() < 0.3 else labels


def _explicit(rng: np.random.Generator, d: int) -> tuple[sotdd.Projections, str]:
    given = reference.draw(rng, int(rng.integers(1, 7)), d, n_moments=int(rng.integers(1, 5)))
    if rng.random() < 0.5:
        given["phi"] = reference.draw(rng, len(given["theta"]), d)["theta"]
    for name in ("clamp", "cut"):
        if rng.random() < 0.4:
            given[name] = float(rng.choice([0.5, 2.0, 5.0]))
    return sotdd.Projections.from_arrays(**given), f"explicit {[*given]}"


def _from_laws(rng: np.random.Generator, d: int, data: list[Any]) -> tuple[sotdd.Projections, str]:
    convolution = sotdd.Convolution((3, 3) if d == 9 else (d, 1), "stride", clamp=float(rng.choice([1, 5])))
    laws = {
        "directions": [None, sotdd.Sphere(), sotdd.Hadamard(), sotdd.Orthogonal(), sotdd.Sphere(d + 3),
        Coordinates(), Bent(), convolution],
        "label_law": ["moments", "moments", "paper", "quantiles", sotdd.ClassQuantiles(3, 0.5), Medians(),
                      sotdd.Moments(2, sotdd.UniformOrders(3), 1.0), sotdd.Moments(1, cut=None)],
        "shared_directions": [True, False],
        "scale": [None, "pooled", "features", "auto"],
        "tilt": [False, False, True],
    }  # fmt: skip
    chosen = {name: several[rng.integers(len(several))] for name, several in laws.items()}
    projections = sotdd.Projections.fit(
        data, n_projections=int(rng.integers(1, 7)), seed=int(rng.integers(99)), **chosen
    )
    return projections, ", ".join(f"{name}={value}" for name, value in chosen.items())


def costs(setting: Setting) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """W_p^p under every projection, what each counts by, and the largest value that each has."""
    block = setting.projections.draw(0, setting.projections.n_projections)
    sides = [_rows(side, block, setting.projections.scaler) for side in (setting.a, setting.b)]
    transported = [reference.wasserstein(x, y, setting.p) for x, y in zip(*sides, strict=True)]
    largest = [max(np.abs(x).max(), np.abs(y).max()) for x, y in zip(*sides, strict=True)]
    importance = getattr(block.features, "importance", None)
    return np.array(transported), np.ones(len(transported)) if importance is None else importance, np.array(largest)


def _rows(side: tuple[Any, Any], block: Any, scaler: sotdd.Scaler | None) -> np.ndarray:
    """Data point projections (L, n)."""
    x, y = np.asarray(side[0], np.float64), side[1]
    if scaler is not None:
        x = (x - scaler.centre) / scaler.scale
    t = _projected(x, block.features)
    for_labels = t if block.label_features is None else _projected(x, block.label_features)
    result = np.empty_like(t)
    for row in range(len(t)):
        terms = {label: _term(for_labels, np.asarray(y) == label, block.terms, row) for label in set(y.tolist())}
        for point, label in enumerate(y.tolist()):
            result[row, point] = block.terms.weights[row] * t[row, point] + terms[label]
    return result


def _projected(x: np.ndarray, drawn: Any) -> np.ndarray:
    if not isinstance(drawn, Directions):
        return np.asarray(drawn(x.astype(np.float32)), np.float64)
    values = np.array([[float(np.dot(point, theta)) for point in x] for theta in drawn.theta.astype(np.float64)])
    return values if drawn.clamp is None else np.clip(values, -drawn.clamp, drawn.clamp)


def _term(values: np.ndarray, members: np.ndarray, terms: Any, row: int) -> float:
    own = values[row, members]
    if isinstance(terms, Polynomials):
        cut = own if terms.cut is None else np.clip(own, -terms.cut, terms.cut)
        return float(sum(c * np.mean(cut**order) for order, c in enumerate(terms.coefficients[row]) if c != 0))
    if isinstance(terms, Quantiles):
        levels = terms.coefficients.shape[1]
        bins = np.repeat(np.sort(own), levels).reshape(levels, len(own)).mean(axis=1)
        return float(np.dot(terms.coefficients[row], bins))
    return float(terms.summary(values[:, members].astype(np.float32), terms.parameters)[row])


def wrong(seed: int) -> str | None:
    """What is wrong with a distance through the projections of a setting; "refused" where it was; or None."""
    setting = draw(seed)
    try:
        measured = sotdd.distance(setting.a, setting.b, projections=setting.projections, p=setting.p, estimator="plain")
    except sotdd.SotddError:
        return "refused"
    with np.errstate(all="ignore"):
        expected, importance, largest = costs(setting)
    value = float(np.mean(importance * expected)) ** (1 / setting.p)
    within = _OF_VALUES * float(np.max(largest)) * max(1.0, float(np.max(importance))) + _OF_DISTANCE * value
    if not abs(measured.value - value) <= within:
        return f"setting {seed}: {measured.value!r} is not {value!r} (within {within:.1e}): {setting.words}"
    return _wrong_loss(setting, expected * importance, within, seed)


def _wrong_loss(setting: Setting, expected: np.ndarray, within: float, seed: int) -> str | None:
    """The same for the loss in float64, where it has a gradient: it knows no maps nor summaries."""
    points = [torch.tensor(np.asarray(side[0], np.float64)) for side in (setting.a, setting.b)]
    labels = [side[1].tolist() for side in (setting.a, setting.b)]
    try:
        loss = sotdd.torch.sotdd_loss(points[0], labels[0], points[1], labels[1], setting.projections, setting.p)
    except sotdd.SotddError:
        return None
    value = float(np.mean(expected)) ** (1 / setting.p)
    if not abs(math.pow(float(loss), 1 / setting.p) - value) <= within:
        return f"loss of setting {seed}: {math.pow(float(loss), 1 / setting.p)!r} is not {value!r}: {setting.words}"
    return None
