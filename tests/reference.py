"""An independent reading of the definition, in float64, one point at a time.

Nothing of the package is used: powers instead of polynomials, loops over classes, and
transport by repeating points until both samples have the same size.
"""

import math

import numpy as np


def wasserstein(a, b, p):
    """W_p^p between two samples: repeat each point so that both have lcm(n, m), then pair in order."""
    common = math.lcm(len(a), len(b))
    long_a = np.sort(np.repeat(np.asarray(a, np.float64), common // len(a)))
    long_b = np.sort(np.repeat(np.asarray(b, np.float64), common // len(b)))
    return float(np.mean(np.abs(long_a - long_b) ** p))


def data_point_projections(features, labels, theta, psi, orders, clamp=None, phi=None):
    """Definition 4 of the paper for one (θ, ψ, λ, φ), with φ = θ unless it is given."""
    features = np.asarray(features, np.float64).reshape(len(features), -1)
    of_feature, of_label = (
        np.array([float(np.dot(point, np.asarray(direction, np.float64))) for point in features])
        for direction in (theta, theta if phi is None else phi)
    )
    if clamp is not None:
        of_feature, of_label = np.clip(of_feature, -clamp, clamp), np.clip(of_label, -clamp, clamp)
    result = []
    for t, label in zip(of_feature, labels, strict=True):
        members = of_label[[other == label for other in labels]]
        moments = [np.mean(members**order) / math.factorial(order) for order in map(int, orders)]
        result.append(psi[0] * t + sum(weight * moment for weight, moment in zip(psi[1:], moments, strict=True)))
    return np.array(result)


def per_projection(a, b, theta, psi, orders, p, clamp=None, phi=None):
    """W_p^p under every projection."""
    phi = theta if phi is None else phi
    return np.array(
        [
            wasserstein(
                data_point_projections(*a, theta[i], psi[i], orders[i], clamp, phi[i]),
                data_point_projections(*b, theta[i], psi[i], orders[i], clamp, phi[i]),
                p,
            )
            for i in range(len(theta))
        ]
    )


def draw(rng, n_projections, n_features, n_moments=3, own=False):
    """Explicit projections for both sides of a comparison, perhaps with label directions of their own."""
    theta = rng.normal(size=(n_projections, n_features))
    psi = rng.normal(size=(n_projections, n_moments + 1))
    return {
        **({"phi": draw(rng, n_projections, n_features)["theta"]} if own else {}),
        "theta": theta / np.linalg.norm(theta, axis=1, keepdims=True),
        "psi": psi / np.linalg.norm(psi, axis=1, keepdims=True),
        "orders": rng.integers(1, 6, size=(n_projections, n_moments)),
    }


def quantile_projections(features, labels, theta, weight, coefficients, clamp=None):
    """Data point projections by the quantile term: each point of a class is repeated K times, then cut into K bins."""
    features = np.asarray(features, np.float64).reshape(len(features), -1)
    values = features @ np.asarray(theta, np.float64)
    values = values if clamp is None else np.clip(values, -clamp, clamp)
    levels = len(coefficients)
    result = []
    for t, label in zip(values, labels, strict=True):
        members = np.sort(values[[other == label for other in labels]])
        bins = np.repeat(members, levels).reshape(levels, len(members)).mean(axis=1)
        result.append(weight * t + float(np.dot(coefficients, bins)))
    return np.array(result)


def quantile_per_projection(a, b, theta, weights, coefficients, p, clamp=None):
    """W_p^p under every projection, by the quantile term."""
    sides = [
        [quantile_projections(*side, theta[i], weights[i], coefficients[i], clamp) for i in range(len(theta))]
        for side in (a, b)
    ]
    return np.array([wasserstein(x, y, p) for x, y in zip(*sides, strict=True)])


def cut_per_projection(a, b, theta, terms, cut, p=2):
    """W_p^p under every projection for points scaled already; label polynomials see values cut to ±cut."""
    costs = []
    for direction, weight, coefficients in zip(theta, terms.weights, terms.coefficients, strict=True):
        sides = []
        for features, labels in (a, b):
            t = np.asarray(features, np.float64) @ direction.astype(np.float64)
            polynomial = np.polynomial.polynomial.polyval(np.clip(t, -cut, cut), coefficients)
            shifts = {label: polynomial[labels == label].mean() for label in np.unique(labels)}
            sides.append(np.sort(weight * t + np.array([shifts[label] for label in labels])))
        costs.append(_transported(*sides, p))
    return np.array(costs)


def _transported(x, y, p):
    """W_p^p between sorted samples of any sizes: the integral over the steps of both quantile functions."""
    edges = np.union1d(np.arange(1, len(x) + 1) / len(x), np.arange(1, len(y) + 1) / len(y))
    middles = edges - np.diff(edges, prepend=0) / 2
    gaps = np.abs(x[(middles * len(x)).astype(int)] - y[(middles * len(y)).astype(int)])
    return float(np.sum(np.diff(edges, prepend=0) * gaps**p))


def bin_means(values, levels, masses=None):
    """Means of quantile functions (..., m) over bins of equal probability: differences of their integral."""
    values = np.asarray(values, np.float64)
    shares = np.ones(values.shape[-1]) if masses is None else np.asarray(masses, np.float64)
    shares = shares / shares.sum()
    ends, edges = np.cumsum([0, *shares]), np.arange(levels + 1) / levels
    return levels * np.apply_along_axis(
        lambda row: np.diff(np.interp(edges, ends, np.cumsum([0, *(row * shares)]))), -1, values
    )
