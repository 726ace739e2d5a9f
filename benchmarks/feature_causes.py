"""Which way of sharing a distance out to features names the cause: python -m benchmarks.feature_causes [--quick].

Two samples of one law, of which one column is moved, or scaled, or two are made to go together, or labels are shuffled.
Every candidate gives each column a number; it is right if the largest is that of the column changed (for a correlation,
the largest two). Ours also says what is beyond noise: how often that is the right column, and how often any other.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

import sotdd

Array = NDArray[np.float64]

CHANGES = ("moved", "scaled", "correlated")
CAUSES = (*CHANGES, "nothing", "labels")
LAWS: dict[str, Callable[[np.random.Generator, int, int], Array]] = {
    "normal": lambda rng, n, d: rng.normal(size=(n, d)),
    "heavy tails": lambda rng, n, d: rng.standard_t(2, size=(n, d)),
    "units": lambda rng, n, d: rng.normal(size=(n, d)) * 10.0 ** (np.arange(d) % 5),
    "related": lambda rng, n, d: rng.normal(size=(n, d)) + 1.5 * rng.normal(size=(n, 1)),
}


def sample(law: str, cause: str, n: int, d: int, seed: int) -> tuple[Array, Array]:
    """Two samples, of which column 0 (and 1) of the second is changed."""
    rng = np.random.default_rng([seed, n, d])
    a, b = LAWS[law](rng, n, d), LAWS[law](rng, n, d)
    spread = np.subtract(*np.quantile(a[:, 0], [0.75, 0.25])) / 1.35
    if cause == "moved":
        b[:, 0] += 0.8 * spread
    elif cause == "scaled":
        b[:, 0] *= 2.0
    elif cause == "correlated":  # the same values, of which those of column 1 follow those of column 0
        follow = 0.8 * _scores(b[:, 0]) + 0.6 * rng.normal(size=n)
        b[:, 1] = np.sort(b[:, 1])[np.argsort(np.argsort(follow))]
    return a, b


def _scores(column: Array) -> Array:
    return np.asarray((column - np.median(column)) / (np.subtract(*np.quantile(column, [0.75, 0.25])) / 1.35))


# ------------------------------------------------------------------ candidates: one number per column


def _scaled(a: Array, b: Array) -> tuple[Array, Array]:
    scaler = sotdd.Scaler.fit([a, b], "features")
    return (a - scaler.centre) / scaler.scale, (b - scaler.centre) / scaler.scale


def _theta(d: int, count: int = 64) -> Array:
    theta = np.random.default_rng(9).normal(size=(count, d))
    return np.asarray(theta / np.linalg.norm(theta, axis=1, keepdims=True))


def _cost(a: Array, b: Array, theta: Array) -> float:
    return float(np.mean((np.sort(a @ theta.T, axis=0) - np.sort(b @ theta.T, axis=0)) ** 2))


def of_plan(a: Array, b: Array) -> Array:
    """Paired points cost (θ·(x − y))² = Σ_j gap θ_j (x_j − y_j): column by column."""
    theta = _theta(a.shape[1])
    total = np.zeros(a.shape[1])
    for one in theta:
        x, y = a[np.argsort(a @ one)], b[np.argsort(b @ one)]
        total += one * np.mean(((x - y) @ one)[:, None] * (x - y), axis=0)
    return total / len(theta)


def of_marginals(a: Array, b: Array) -> Array:
    """W_2² of each column by itself."""
    return np.asarray(np.mean((np.sort(a, axis=0) - np.sort(b, axis=0)) ** 2, axis=0))


def _matched(a: Array, b: Array) -> Array:
    """The second sample with the values of the first, in its own order."""
    return np.take_along_axis(np.sort(a, axis=0), np.argsort(np.argsort(b, axis=0), axis=0), axis=0)


def of_one_matched(a: Array, b: Array) -> Array:
    """What is saved when one column gets the other's distribution."""
    theta, matched = _theta(a.shape[1]), _matched(a, b)
    whole = _cost(a, b, theta)
    return np.array([whole - _cost(a, _with(b, matched, [j]), theta) for j in range(a.shape[1])])


def of_one_left_out(a: Array, b: Array) -> Array:
    """What is saved when one column is left out of both."""
    theta = _theta(a.shape[1])
    whole, nothing = _cost(a, b, theta), np.zeros_like(a)
    return np.array([whole - _cost(_with(a, nothing, [j]), _with(b, nothing, [j]), theta) for j in range(a.shape[1])])


def of_shapley(a: Array, b: Array) -> Array:
    """What is saved when one column after another is matched, over random orders."""
    rng, d = np.random.default_rng(1), a.shape[1]
    theta, matched, total = _theta(d), _matched(a, b), np.zeros(d)
    orders = 8
    for _ in range(orders):
        now, before = b.copy(), _cost(a, b, theta)
        for j in rng.permutation(d):
            now[:, j] = matched[:, j]
            after = _cost(a, now, theta)
            total[j] += before - after
            before = after
    return total / orders


def _with(b: Array, other: Array, columns: list[int]) -> Array:
    b = b.copy()
    b[:, columns] = other[:, columns]
    return b


CANDIDATES = {
    "plan": of_plan,
    "marginals": of_marginals,
    "one matched": of_one_matched,
    "one left out": of_one_left_out,
    "Shapley": of_shapley,
}


# These measure the distance anew for every column; on larger data they are left out.
_SLOW = ("one matched", "one left out", "Shapley")
_LARGE = 50_000


# ------------------------------------------------------------------ how often each is right


def hits(law: str, cause: str, n: int, d: int, trials: int) -> dict[str, float]:
    """How often each candidate puts the column changed first, and what ours names."""
    wanted = {0, 1} if cause == "correlated" else {0}
    counts = dict.fromkeys([*CANDIDATES, "ours", "named", "others named"], 0.0)
    for seed in range(trials):
        a, b = sample(law, cause, n, d, seed)
        if cause in CHANGES:
            for name, candidate in CANDIDATES.items():
                if name in _SLOW and n * d >= _LARGE:
                    counts[name] = np.nan
                    continue
                numbers = candidate(*_scaled(a, b))
                counts[name] += set(np.argsort(-numbers)[: len(wanted)].tolist()) == wanted
        features = explained(a, b, cause, seed)
        pairs = [set(pair.names) for pair in features.pairs]
        named = {one.column for one in features.changed}
        right = {"feature 0", "feature 1"} if cause == "correlated" else {"feature 0"}
        if cause == "correlated":
            counts["ours"] += bool(pairs) and pairs[0] == right
            counts["named"] += right in pairs
            counts["others named"] += bool(named) or any(pair != right for pair in pairs)
        elif cause in ("moved", "scaled"):
            counts["ours"] += next(iter(features)).column == "feature 0"
            counts["named"] += named >= right
            counts["others named"] += bool(named - right) or features.together.changed
        else:
            counts["others named"] += bool(named) or features.together.changed
    return {name: count / trials for name, count in counts.items()}


def explained(a: Array, b: Array, cause: str, seed: int) -> sotdd.results.Changes:
    """What an explanation says of the features; its own seed is the trial's."""
    rng = np.random.default_rng(seed)
    labels = [(part[:, 0] > np.median(part[:, 0])).astype(int) for part in (a, b)]
    if cause == "labels":
        labels[1] = rng.permutation(labels[1])
    pair = [(part, codes) for part, codes in zip((a, b), labels, strict=True)]
    return sotdd.explain(*pair, n_projections=64, seed=seed, scale="features").by_feature


def main() -> None:
    """Measure and print the table of the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few trials of few settings")
    quick = parser.parse_args().quick
    header = [*CANDIDATES, "ours", "named", "others named"]
    print("| law | cause | n | d | " + " | ".join(header) + " |\n|" + "---|" * (4 + len(header)))
    for law, cause, n, d in settings(quick):
        found = hits(law, cause, n, d, 2 if quick else 4 if n == 5000 else 10)
        shown = ["–" if np.isnan(found[name]) else f"{found[name]:.0%}" for name in header]
        if cause in ("nothing", "labels"):
            shown = ["–"] * (len(header) - 1) + shown[-1:]
        print(f"| {law} | {cause} | {n:,} | {d} | " + " | ".join(shown) + " |", flush=True)


def settings(quick: bool) -> Iterator[tuple[str, str, int, int]]:
    """What is measured: normal columns at all sizes, others at one."""
    for law in LAWS:
        for cause in CAUSES:
            sizes = (50,) if quick else (50, 500, 5000) if law == "normal" and cause in CHANGES else (500,)
            for n in sizes:
                for d in (2, 10) if quick else (2, 10, 100) if len(sizes) > 1 else (10, 100):
                    yield law, cause, n, d


if __name__ == "__main__":
    main()
