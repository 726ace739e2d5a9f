"""What a scaler is made of, gathered from data that come in batches or lie in several places."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Self

from numpy.typing import ArrayLike

from sotdd.basics.errors import SotddError
from sotdd.inputs import open_dataset
from sotdd.inputs.column_names import in_order, places_of
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.projections.feature_moments import FeatureMoments
from sotdd.projections.row_samples import RowSample

if TYPE_CHECKING:
    from sotdd.projections.scaler import Kind, Scaler


class ScaleStatistics:
    """Means and spreads of features, and a sample of rows, which merge over batches, shards and parties.

    Parameters
    ----------
    name
        What messages call the data.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> x = np.random.default_rng(0).normal(5, [1, 10, 100], size=(3000, 3))
    >>> here, there = sotdd.ScaleStatistics(), sotdd.ScaleStatistics()
    >>> for batch in np.split(x[:2000], 4):
    ...     here = here.add(batch)
    >>> both = here + there.add(x[2000:])
    >>> both
    ScaleStatistics(3,000 points, 3 features)
    >>> both.scaler("features").scale.round()
    array([  1.,  10., 100.])
    >>> scaler = sotdd.Scaler.fit([here, there], "features")  # of several datasets that will be compared
    """

    def __init__(self, name: str = "data") -> None:
        self.name = name
        self.moments: FeatureMoments | None = None
        self.sample: RowSample | None = None
        self.columns: tuple[str, ...] | None = None

    @classmethod
    def of(cls, data: LabelledData, *, sampled: bool = True) -> ScaleStatistics:
        """Those of a dataset; the sample is what scaling each feature needs, and can be left out."""
        found = cls(data.name)
        found.moments, found.columns = FeatureMoments.of(data), data.columns
        found.sample = RowSample.of(data) if sampled else None
        return found

    @property
    def n_points(self) -> int:
        """How many points were added."""
        return 0 if self.moments is None else self.moments.n_points

    def __repr__(self) -> str:
        """Sizes, for people."""
        features = 0 if self.moments is None else self.moments.mean.size
        return f"ScaleStatistics({self.n_points:,} points, {features:,} features)"

    def add(self, features: Dataset, labels: ArrayLike | Sequence[Hashable] | None = None) -> Self:
        """Add a batch; labels are of no account."""
        batch = open_dataset(features if labels is None else (features, labels), name=self.name)
        return self.merge(ScaleStatistics.of(in_order(batch, self.columns, "what was added before")))

    def merge(self, other: ScaleStatistics) -> Self:
        """Add what another has gathered."""
        if not isinstance(other, ScaleStatistics):
            raise SotddError(f"a {type(other).__name__} cannot be merged into ScaleStatistics: expected another.")
        other = other.in_order(self.columns, "what was added before")
        if other.moments is None:
            return self
        if self.moments is None:
            self.moments, self.sample, self.columns = other.moments, other.sample, other.columns
            return self
        if self.moments.mean.size != other.moments.mean.size:
            raise SotddError(
                f"what is merged has {other.moments.mean.size:,} features but what was added before has "
                f"{self.moments.mean.size:,}: expected the same."
            )
        self.moments = FeatureMoments.pooled([self.moments, other.moments])
        both = self.sample is not None and other.sample is not None
        self.sample = self.sample.merged(other.sample) if both else None  # type: ignore[union-attr,arg-type]
        return self

    def __add__(self, other: ScaleStatistics) -> ScaleStatistics:
        """Both together, each left as it is."""
        return ScaleStatistics(self.name).merge(self).merge(other)

    def scaler(self, scale: Kind = "auto") -> Scaler:
        """The scaler for all that was added: "features", "pooled", or "auto" as in `sotdd.distance`."""
        from sotdd.projections.scaler import Scaler

        return Scaler.fit([self], scale)

    def in_order(self, columns: tuple[str, ...] | None, owner: str) -> ScaleStatistics:
        """The same with columns in this order, where both have names."""
        if columns is None or self.columns is None or self.columns == columns or self.moments is None:
            return self
        order = places_of(columns, self.columns, f"dataset {self.name!r}", owner)
        found = ScaleStatistics(self.name)
        found.moments, found.columns = self.moments.reordered(order), columns
        found.sample = None if self.sample is None else self.sample.reordered(order)
        return found
