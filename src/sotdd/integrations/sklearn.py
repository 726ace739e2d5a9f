"""Drift detection as an estimator of scikit-learn: fit it on a reference, then ask whether batches of rows drifted."""

# ruff: noqa: N803  # X is scikit-learn's name

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from sotdd.basics.errors import SotddError, check_count, check_level, require
from sotdd.drift.reference import DriftReference
from sotdd.inputs import open_dataset
from sotdd.measure.changes import TwoSampleTest

require("sklearn", "sotdd.integrations.sklearn", "'sotdd[sklearn]'")

from sklearn.base import BaseEstimator, OutlierMixin  # noqa: E402
from sklearn.utils import check_random_state, column_or_1d  # noqa: E402
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data  # noqa: E402

__all__ = ["DriftDetector"]

Numbers = NDArray[np.float64]


class DriftDetector(OutlierMixin, BaseEstimator):  # type: ignore[misc]  # classes of a library that is optional
    """Says whether batches of rows have drifted from the data that it was fitted on.

    Drift is a property of many rows, not of one. So rows are judged batch by batch, by the permutation test of
    `sotdd.DriftReference`, and every row gets the verdict of its batch. All rows of a call are one batch, unless
    ``batch_size`` cuts them in their order.

    Parameters
    ----------
    level
        How often a batch without drift may be called drifted.
    batch_size
        Cut the rows of a call into batches of this many; a shorter rest joins the last. None for one batch.
    n_projections, n_permutations, p, scale, label_names, max_points
        As in `sotdd.DriftReference`. There are at least as many permutations as ``level`` needs.
    random_state
        Of projections, shuffles and samples: an integer, a RandomState, or None for other numbers each time.

    Attributes
    ----------
    reference_
        The `sotdd.DriftReference` of the rows that it was fitted on. Its ``monitor()`` watches a series of batches.
    offset_
        The score below which a batch has drifted.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.pipeline import make_pipeline
    >>> from sotdd.integrations.sklearn import DriftDetector
    >>> rng = np.random.default_rng(0)
    >>> train, same, moved = rng.normal(size=(1000, 8)), rng.normal(size=(100, 8)), rng.normal(0.5, 1, size=(100, 8))
    >>> watch = make_pipeline(PCA(4), DriftDetector(batch_size=50)).fit(train)
    >>> watch.predict(np.concatenate([same, moved]))[::50]
    array([ 1,  1, -1, -1])
    """

    def __init__(
        self,
        *,
        level: float = 0.05,
        batch_size: int | None = None,
        n_projections: int = 128,
        n_permutations: int = 499,
        p: float = 2.0,
        scale: Any = "auto",  # noqa: ANN401  # as DriftReference takes it
        label_names: Literal["ignore", "match"] = "ignore",
        max_points: int | None = 20_000,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.level = level
        self.batch_size = batch_size
        self.n_projections = n_projections
        self.n_permutations = n_permutations
        self.p = p
        self.scale = scale
        self.label_names = label_names
        self.max_points = max_points
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Take these rows as the reference.

        Parameters
        ----------
        X
            (n, d) features, an array, a frame or a sparse matrix.
        y
            (n,) labels; then batches may have labels too, and what labels and features have to do with each other
            counts. None for features alone.
        """
        level = check_level(self.level, 0.05)
        if self.batch_size is not None:
            check_count(self.batch_size, "batch_size")
        features, labels = self._check_rows(X, y, reset=True)
        seed = self.random_state
        if not isinstance(seed, (int, np.integer)):
            seed = int(check_random_state(seed).randint(2**31))
        self.reference_ = DriftReference.fit(
            open_dataset(features if labels is None else (features, labels), name="reference"),
            max_points=self.max_points,
            p=self.p,
            n_projections=self.n_projections,
            scale=self.scale,
            label_names=self.label_names,
            seed=int(seed),
        )
        # A p-value that equals the level rejects, so its score must lie below.
        self.offset_ = float(np.nextafter(-ndtri(1 - level), np.inf))
        return self

    def score_samples(self, X: ArrayLike, y: ArrayLike | None = None) -> Numbers:
        """How usual the batch of each row is: the normal score of its test, with its sign turned.

        Around 0 where nothing has drifted; -3 is a batch three standard deviations of chance away.

        Parameters
        ----------
        X
            (n, d) features.
        y
            (n,) labels, if they are known and the detector was fitted with labels; None to compare features alone.
        """
        size = None if self.batch_size is None else check_count(self.batch_size, "batch_size")
        return np.concatenate([np.full(count, -_score(test)) for count, test in self._test_batches(X, y, size)])

    def decision_function(self, X: ArrayLike, y: ArrayLike | None = None) -> Numbers:
        """The scores less ``offset_``: negative for rows of batches that have drifted."""
        return self.score_samples(X, y) - self.offset_

    def predict(self, X: ArrayLike, y: ArrayLike | None = None) -> NDArray[np.int64]:
        """-1 for rows of batches that have drifted, 1 for others; parameters as in `score_samples`."""
        return np.where(self.decision_function(X, y) >= 0, 1, -1)

    def score(self, X: ArrayLike, y: ArrayLike | None = None) -> float:
        """The mean of the scores; labels count only if the detector was fitted with some."""
        check_is_fitted(self)
        return float(self.score_samples(X, y if self.reference_.data.origin.labelled else None).mean())

    def test(self, X: ArrayLike, y: ArrayLike | None = None) -> TwoSampleTest:
        """The test of all these rows as one batch: p-value, distance, and which aspect stands out."""
        return next(self._test_batches(X, y))[1]

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401  # scikit-learn's
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _test_batches(self, X: Any, y: Any, size: int | None = None) -> Iterator[tuple[int, TwoSampleTest]]:  # noqa: ANN401
        """The size and the test of each batch of this many rows, or of all rows as one."""
        check_is_fitted(self)
        features, labels = self._check_rows(X, y, reset=False)
        reference = self.reference_
        data, count = reference.data, features.shape[0]
        if labels is None:  # as if it had been fitted on features alone
            origin = replace(data.origin, labelled=False, target=None)
            data = replace(data, classes=("all",), codes=np.zeros(data.n_points, np.int32), origin=origin)
            reference = replace(reference, data=data, label_names="ignore")
        elif not data.origin.labelled:
            raise SotddError("the batch has labels but the detector was fitted without any: fit it with y too.")
        level = check_level(self.level, 0.05)  # a p-value as small takes 1 / level permutations
        most = max(check_count(self.n_permutations, "n_permutations"), math.ceil(1 / level) - 1)
        size = size or count
        for places in np.array_split(np.arange(count), size * np.arange(1, max(1, count // size))):
            batch = features[places] if labels is None else (features[places], labels[places])
            yield len(places), reference.test(batch, n_permutations=most)

    def _check_rows(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:  # noqa: ANN401  # as scikit-learn has them
        """Features and labels by scikit-learn's own checks."""
        features = validate_data(self, X, accept_sparse="csr", reset=reset)
        labels = None if y is None else column_or_1d(y, warn=True)
        check_consistent_length(features, labels)
        return features, labels


def _score(result: TwoSampleTest) -> float:
    """The normal score of a p-value; beyond the farthest permutation, deviations of chance if these are more."""
    by_rank = float(ndtri(1 - result.p_value)) if result.p_value < 1 else float(ndtri(0.5 / len(result.null)))
    if result.statistic > result.null.max() and math.isfinite(result.effect_size):
        return max(by_rank, result.effect_size)
    return by_rank
