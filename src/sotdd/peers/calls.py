"""The peers as calls on two datasets, or on several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sotdd.inputs import labelled, labelled_pair
from sotdd.inputs.data import Dataset
from sotdd.peers import features_only, methods
from sotdd.peers.common import Method
from sotdd.peers.label_distances import Inner
from sotdd.projections.scaler import Scale
from sotdd.results.distance import Distance
from sotdd.results.matrix import DistanceMatrix


def otdd(
    a: Dataset,
    b: Dataset,
    *,
    inner: Inner = "exact",
    outer: Literal["exact", "sinkhorn"] = "exact",
    regularisation: float | None = None,
    p: float = 2,
    max_samples: int | None = None,
    scale: Scale = None,
    seed: int = 0,
) -> Distance:
    """OTDD, the optimal transport dataset distance that s-OTDD stands in for.

    Transport with cost ‖x − x'‖^p + W_p^p(y, y'), where labels are as far apart as the features
    of their classes. The value is rooted; ``label_distances`` of the result holds W_p^p between
    classes. Time grows with the cube of the number of points, memory with its square.

    Parameters
    ----------
    a, b
        As in `sotdd.distance`.
    inner
        How far apart two classes are: "exact" transport between their points, or "gaussian", the
        Bures–Wasserstein distance of Gaussians fitted to them.
    outer
        How points are transported: "exact" by network simplex, or "sinkhorn", the debiased
        entropic divergence, iterated to convergence; a remark says so if that was not reached.
    regularisation
        Strength of the entropy, in units of the cost; by default a twentieth of the mean cost.
    p
        The order of transport.
    max_samples
        Take a random sample of at most this many points of each dataset.
    scale
        None for features as they are, or "auto", "features", "pooled" or a `Scaler` as in `sotdd.distance`.
    seed
        Seed of the sample.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> x = np.array([[0.0], [1.0]])
    >>> r = sotdd.peers.otdd((x, ["a", "b"]), (x + 3, ["a", "b"]))
    >>> r
    4.243 (OTDD, exact labels, p=2)
    >>> r.label_distances
    array([[ 9., 16.],
           [ 4.,  9.]])
    """
    return _one(
        a, b, methods.otdd, inner=inner, outer=outer, regularisation=regularisation, p=p,
        max_samples=max_samples, scale=scale, seed=seed,
    )  # fmt: skip


def chsw(
    a: Dataset,
    b: Dataset,
    *,
    n_projections: int = 1000,
    inner: Inner = "gaussian",
    label_dimensions: int = 5,
    p: float = 2,
    max_samples: int | None = None,
    scale: Scale = None,
    seed: int = 0,
) -> Distance:
    """CHSW: sliced Wasserstein on features times labels placed in hyperbolic space.

    Labels are placed on the Lorentz model by multidimensional scaling of their distances, and
    projected by horospheres. For several datasets, which then share one placement, use
    ``sotdd.pairwise(..., method="chsw")``.

    Parameters
    ----------
    a, b, n_projections, p, max_samples, scale, seed
        As in `otdd` and `sotdd.distance`.
    inner
        How far apart two classes are, as in `otdd`.
    label_dimensions
        Dimension of the hyperbolic space.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> x = np.random.default_rng(0).normal(size=(60, 3))
    >>> y = np.arange(60) % 2
    >>> sotdd.peers.chsw((x, y), (x, y)).value
    0.0
    """
    return _one(
        a, b, methods.chsw, n_projections=n_projections, inner=inner, label_dimensions=label_dimensions, p=p,
        max_samples=max_samples, scale=scale, seed=seed,
    )  # fmt: skip


def frechet(a: Dataset, b: Dataset, *, max_samples: int | None = None, scale: Scale = None, seed: int = 0) -> Distance:
    """Fréchet distance of Gaussians fitted to the features; labels are ignored.

    On Inception features its square is known as FID.

    Examples
    --------
    >>> import sotdd
    >>> sotdd.peers.frechet([[0.0], [2.0]], [[3.0], [5.0]])
    3 (Fréchet, p=2)
    """
    return _one(a, b, features_only.frechet, max_samples=max_samples, scale=scale, seed=seed)


def sliced_wasserstein(
    a: Dataset, b: Dataset, *, n_projections: int = 1000, p: float = 2, scale: Scale = None, seed: int = 0
) -> Distance:
    """Sliced Wasserstein distance of the features; labels are ignored.

    Examples
    --------
    >>> import sotdd
    >>> sotdd.peers.sliced_wasserstein([[0.0], [2.0]], [[3.0], [5.0]]).value
    3.0
    """
    return _one(a, b, features_only.sliced_wasserstein, n_projections=n_projections, p=p, scale=scale, seed=seed)


def mmd(
    a: Dataset,
    b: Dataset,
    *,
    bandwidth: float | None = None,
    max_samples: int | None = None,
    scale: Scale = None,
    seed: int = 0,
) -> Distance:
    """Maximum mean discrepancy of the features with a Gaussian kernel; labels are ignored.

    The root of the biased estimate, which is zero between a dataset and itself. The bandwidth is
    the median distance among a sample of all points unless one is given.

    Examples
    --------
    >>> import sotdd
    >>> sotdd.peers.mmd([[0.0]], [[1.0]], bandwidth=1.0)
    0.8871 (MMD, bandwidth 1, p=2)
    """
    return _one(a, b, features_only.mmd, bandwidth=bandwidth, max_samples=max_samples, scale=scale, seed=seed)


@dataclass(frozen=True, eq=False)
class TaskEmbeddings:
    """Datasets as vectors whose Euclidean distance is their WTE distance.

    Attributes
    ----------
    vectors
        (N, M × D) one row per dataset.
    reference
        (M, D) the points that every dataset was transported from: features, then label coordinates.
    matrix
        The distances between every two.
    """

    vectors: NDArray[np.float64]
    reference: NDArray[np.float64]
    matrix: DistanceMatrix


def wte(
    datasets: Sequence[Dataset] | Mapping[str, Dataset],
    *,
    inner: Inner = "gaussian",
    label_dimensions: int = 10,
    n_reference: int = 500,
    reference: NDArray[np.floating] | None = None,
    max_samples: int | None = None,
    scale: Scale = None,
    seed: int = 0,
) -> TaskEmbeddings:
    """WTE, the Wasserstein task embedding: datasets as vectors.

    Labels are placed in R^m by multidimensional scaling of their distances and appended to the
    points; each dataset is transported from one reference, and the displacement is its vector.

    Parameters
    ----------
    datasets
        Datasets by name, or a list of them. They are embedded together: labels are placed by the
        distances among all classes of all datasets.
    inner
        How far apart two classes are, as in `otdd`.
    label_dimensions
        How many coordinates a label gets.
    n_reference
        Points of the reference, drawn from a Gaussian like the data.
    reference
        A reference to use instead, (M, n_features + label_dimensions).
    max_samples, scale, seed
        As in `otdd`.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> x = np.random.default_rng(0).normal(size=(40, 2))
    >>> y = np.arange(40) % 2
    >>> embedded = sotdd.peers.wte({"here": (x, y), "there": (x + 5, y)}, n_reference=20)
    >>> embedded.vectors.shape
    (2, 240)
    """
    data = labelled(datasets)
    pairs = list(combinations(range(len(data)), 2))
    found, vectors, used = methods.embedded(
        data, pairs, inner=inner, label_dimensions=label_dimensions, n_reference=n_reference, reference=reference,
        max_samples=max_samples, scale=scale, seed=seed,
    )  # fmt: skip
    matrix = DistanceMatrix(tuple(part.name for part in data), found)
    return TaskEmbeddings(vectors.reshape(len(data), -1), used, matrix)


def _one(a: Dataset, b: Dataset, method: Method, **options: object) -> Distance:
    return method(labelled_pair(a, b), [(0, 1)], lambda done, total: None, **options)[0, 1]
