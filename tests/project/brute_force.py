"""Random settings of a distance, each beside a brute force in float64: the same projections, point by point.

What is taken from the package are the drawn numbers and the scaler. How points are projected, how classes enter and how
samples are transported is written here and in `reference` again, in the plainest way.
"""

import numpy as np

import reference
import sotdd
from laws import Circles, Medians
from sotdd import projections as law

# Rounding of float32 in units of the largest value of a row, and relative to the distance itself.
_OF_VALUES, _OF_DISTANCE = 2e-5, 2e-4

_DTYPES = (np.float64, np.float64, np.float32, np.float16, np.uint8, np.int64, np.bool_, ">f8")


def draw(seed):
    """Two datasets, the projections that they are seen through, and the order of transport."""
    rng = np.random.default_rng(seed)
    d = int(rng.choice([1, 2, 4, 9]))
    a, b = (_dataset(rng, d) for _ in "ab")
    p = float(rng.choice([1, 1.5, 2, 2, 3, 7]))
    return a, b, _explicit(rng, d) if rng.random() < 0.4 else _from_laws(rng, d, [a, b]), p


def _dataset(rng, d):
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


def _explicit(rng, d):
    given = reference.draw(rng, int(rng.integers(1, 7)), d, n_moments=int(rng.integers(1, 5)))
    for name in ("clamp", "cut"):
        if rng.random() < 0.4:
            given[name] = float(rng.choice([0.5, 2.0, 5.0]))
    return sotdd.Projections.from_arrays(**given)


def _from_laws(rng, d, data):
    convolution = law.Convolution((3, 3) if d == 9 else (d, 1), "stride", clamp=float(rng.choice([1, 5])))
    laws = {
        "directions": [None, law.Sphere(), law.Hadamard(), law.Orthogonal(), Circles(), convolution],
        "label_law": ["moments", "moments", "paper", "quantiles", law.ClassQuantiles(3, 0.5), Medians(),
                      law.Moments(2, law.UniformOrders(3), 1.0), law.Moments(1, cut=None)],
        "scale": [None, "pooled", "features", "auto"],
        "tilt": [False, False, True],
    }  # fmt: skip
    chosen = {name: several[rng.integers(len(several))] for name, several in laws.items()}
    return sotdd.Projections.fit(data, n_projections=int(rng.integers(1, 7)), seed=int(rng.integers(99)), **chosen)


def wrong(seed):
    """What is wrong with the distance of a setting; "refused" where the distance was; or None."""
    a, b, projections, p = draw(seed)
    try:
        measured = sotdd.distance(a, b, projections=projections, p=p, estimator="plain").value
    except sotdd.SotddError:
        return "refused"
    block = projections.draw(0, projections.n_projections)
    with np.errstate(all="ignore"):
        rows = [_rows(*side, block, projections.scaler) for side in (a, b)]
        costs = np.array([reference.wasserstein(x, y, p) for x, y in zip(*rows, strict=True)])
    importance = getattr(block.features, "importance", None)
    importance = np.ones(len(costs)) if importance is None else importance
    expected = float(np.mean(importance * costs)) ** (1 / p)
    largest = max(np.abs(side).max() for side in rows)
    within = _OF_VALUES * largest * max(1.0, float(np.max(importance))) + _OF_DISTANCE * expected
    return None if abs(measured - expected) <= within else f"setting {seed}: {measured!r} is not {expected!r}"


def _rows(x, y, block, scaler):
    """Data point projections (L, n)."""
    x = np.asarray(x, np.float64)
    if scaler is not None:
        x = (x - scaler.centre) / scaler.scale
    t = _project(x, block.features)
    result = np.empty_like(t)
    for row in range(len(t)):
        terms = {label: _term(t, y == label, block.terms, row) for label in set(y.tolist())}
        for point, label in enumerate(y.tolist()):
            result[row, point] = block.terms.weights[row] * t[row, point] + terms[label]
    return result


def _project(x, drawn):
    if not isinstance(drawn, law.Directions):
        return np.asarray(drawn(x.astype(np.float32)), np.float64)
    values = np.array([[float(np.dot(point, theta)) for point in x] for theta in drawn.theta.astype(np.float64)])
    return values if drawn.clamp is None else np.clip(values, -drawn.clamp, drawn.clamp)


def _term(values, members, terms, row):
    own = values[row, members]
    if isinstance(terms, law.Polynomials):
        cut = own if terms.cut is None else np.clip(own, -terms.cut, terms.cut)
        return float(sum(c * np.mean(cut**order) for order, c in enumerate(terms.coefficients[row]) if c != 0))
    if isinstance(terms, law.Quantiles):
        levels = terms.coefficients.shape[1]
        bins = np.repeat(np.sort(own), levels).reshape(levels, len(own)).mean(axis=1)
        return float(np.dot(terms.coefficients[row], bins))
    return float(terms.summary(values[:, members].astype(np.float32), terms.coefficients)[row])
