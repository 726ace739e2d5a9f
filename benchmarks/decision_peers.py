"""What others decide by: permutation tests by MMD, energy distance and classifiers, and a reference by energy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.ordinary import Dataset, Doubles, Pair
from sotdd.measure.changes import TwoSampleTest

_NEIGHBOURS = 5


def sides(sizes: tuple[int, int], count: int, rng: np.random.Generator) -> Doubles:
    """(S, N) 1 for points of the first side and 0 for the others; the data as they are, and shuffles."""
    first = np.arange(sum(sizes)) < sizes[0]
    return np.stack([first, *(rng.permutation(first) for _ in range(count))]).astype(np.float64)


def squared_distances(points: Doubles) -> Doubles:
    """(N, N) between all points."""
    squares = (points**2).sum(axis=1)
    return np.asarray(np.maximum(squares[:, None] + squares[None, :] - 2 * points @ points.T, 0.0))


def by_kernel(kernel: Doubles, dealt: Doubles) -> Doubles:
    """(S,) how far the mean embeddings of both sides are apart, squared."""
    weights = dealt / dealt.sum(axis=1, keepdims=True) - (1 - dealt) / (1 - dealt).sum(axis=1, keepdims=True)
    return np.asarray(np.einsum("sn,sn->s", weights @ kernel, weights))


def mmd(points: Doubles, dealt: Doubles) -> Doubles:
    """Maximum mean discrepancy, Gaussian kernel with the median distance as its width."""
    squared = squared_distances(points)
    return by_kernel(np.exp(-squared / (2 * np.median(squared[squared > 0]))), dealt)


def energy(points: Doubles, dealt: Doubles) -> Doubles:
    """The energy distance."""
    return by_kernel(-np.sqrt(squared_distances(points)), dealt)


def neighbours(points: Doubles, dealt: Doubles) -> Doubles:
    """How often a point and one of its five nearest neighbours are on the same side."""
    squared = squared_distances(points)
    np.fill_diagonal(squared, np.inf)
    nearest = np.argpartition(squared, _NEIGHBOURS, axis=1)[:, :_NEIGHBOURS]  # (N, 5)
    return np.asarray(np.mean(dealt[:, nearest] == dealt[:, :, None], axis=(1, 2)))


def linear(points: Doubles, dealt: Doubles) -> Doubles:
    """How often ridge regression on the side, without the point, says on which side a point is."""
    gram = points @ points.T / points.shape[1]
    hat = np.linalg.solve(gram + np.eye(len(gram)), gram)
    told = 2 * dealt - 1
    left_out = told @ hat - told * np.diag(hat)  # up to a positive factor, 1 / (1 - h)
    return np.asarray(np.mean(left_out * told > 0, axis=1))


PEERS: dict[str, Callable[[Doubles, Doubles], Doubles]] = {
    "MMD": mmd,
    "energy": energy,
    "neighbours": neighbours,
    "linear": linear,
}


def p_values(pair: Pair, n_classes: int, n_permutations: int, rng: np.random.Generator) -> dict[str, float]:
    """Of every peer on features, and "with labels" on features beside one-hot labels."""
    (features, labels), (others, of) = pair
    points = np.concatenate([features, others])
    points = points - points.mean(axis=0)
    points /= np.sqrt(np.mean(points**2))
    one_hot = np.sqrt(points.shape[1]) * np.eye(n_classes)[np.concatenate([labels, of])]
    seen = {"": points, " with labels": np.concatenate([points, one_hot - one_hot.mean(axis=0)], axis=1)}
    dealt = sides((len(labels), len(of)), n_permutations, rng)
    found = {}
    with threadpool_limits(1):  # products are too small for threads, which wait for each other on a busy machine
        for more, values in seen.items():
            for name, statistic in PEERS.items():
                of_splits = statistic(values, dealt)
                found[name + more] = float(np.mean(of_splits >= of_splits[0] - 1e-12))
    return found


@dataclass(frozen=True, eq=False)
class EnergyReference:
    """What `sotdd.DriftReference` is for batches, by the energy distance of features."""

    data: Dataset
    seed: int = 0

    def test(self, batch: Dataset, *, n_permutations: int = 99) -> TwoSampleTest:
        """Say whether a batch may be a sample of the reference's source."""
        points = np.concatenate([self.data[0], batch[0]])
        sizes = len(self.data[1]), len(batch[1])
        rng = np.random.default_rng([self.seed, int(1e6 * abs(batch[0][0, 0]))])
        with threadpool_limits(1):
            found = energy(points, sides(sizes, n_permutations, rng))
        return TwoSampleTest(
            distance=float(np.sqrt(max(0.0, found[0]))),
            null_distances=np.sqrt(np.maximum(found[1:], 0.0)),
            statistic=float(found[0]),
            null=found[1:],
            judged_by="distance",
            p=1.0,
            n_points=sizes,
            n_projections=0,
            fingerprint="energy",
        )
