"""Sketches that may be shown to others: noisy from the start, at a stated ε and δ."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike

from sotdd.basics.checks import check_count, check_seed, described
from sotdd.basics.errors import SotddError
from sotdd.basics.text import counted
from sotdd.inputs.data import Dataset
from sotdd.projections.recipe import Projections
from sotdd.sketches.memory import memory_for
from sotdd.sketches.privacy import SHARES, Budget, Noise
from sotdd.sketches.private_counting import Bounds, ExactCounts, checked_terms
from sotdd.sketches.private_release import PrivateCounts
from sotdd.sketches.private_statistics import Party, PrivateStatistics, refuse_unlike
from sotdd.sketches.statistics import opened_batch

_BINS = 32
_MOST_BINS = 1 << 14
_MOST_CLASSES = 100_000


class PrivateBuilder:
    """Counts the rows of one party, and releases them with noise: (ε, δ)-differential privacy of each row.

    Rows are bounded as they are added; exact counts stay inside. `statistics` and `release` give noisy ones, once: both
    together keep to the budget, and asking again gives the same noise. What is released compares and merges like any
    other sketch. Datasets are neighbours where one has a row more; docs/privacy.md says what is not protected.

    Parameters
    ----------
    projections
        What the data are projected by. Their scale and their tilt must come from public data, never from the rows that
        are to be protected: nothing here can hide what they say.
    classes
        All labels that there can be, known in public: which of them occur is protected.
    epsilon, delta
        The budget. A delta of 0 asks for Laplace's noise, which is larger; otherwise it should be far below one in as
        many points as there are.
    max_norm
        Scaled points that are longer are brought back to this length. By default 3 + 2 √d.
    reach
        Projected values beyond ±reach count as at the end. By default 5, which is five spreads of scaled data.
    max_label
        What a row adds to the sums of label polynomials is brought back to this many times their length over a normal
        law. By default 6; a larger one for data with heavy tails, at more noise.
    n_bins
        How many bins of each projection are released. More are finer, and noisier.
    seed
        For tests only: whoever knows it can take the noise away. By default noise is drawn from the operating system.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> public, x, y = rng.normal(size=(500, 3)), rng.normal(1, 1, size=(20_000, 3)), rng.integers(2, size=20_000)
    >>> projections = sotdd.Projections.fit([public], n_projections=32)
    >>> builder = sotdd.PrivateBuilder(projections, classes=[0, 1], epsilon=1, delta=1e-6, seed=0).add(x, y)
    >>> released = builder.release()
    >>> released
    PrivateCounts(32 projections × 32 bins, ε = 1, δ = 1e-06)
    >>> released.finish("mine").distance(sotdd.sketch((x, y), projections)).value < 0.1
    True
    """

    def __init__(
        self,
        projections: Projections,
        *,
        classes: Sequence[Hashable],
        epsilon: float,
        delta: float,
        max_norm: float | None = None,
        reach: float | None = None,
        max_label: float | None = None,
        n_bins: int = _BINS,
        seed: int | None = None,
    ) -> None:
        self._projections = checked_terms(projections)
        self.budget: Budget = Budget(epsilon, delta)
        self.bounds: Bounds = Bounds.of(projections, max_norm, reach, max_label)
        self.classes: tuple[Hashable, ...] = _checked_classes(classes)
        self._n_bins = check_count(n_bins, "n_bins", _MOST_BINS)
        self._noise = Noise(self.budget, None if seed is None else check_seed(seed))
        self._exact: ExactCounts | None = ExactCounts(projections, self.classes, self.bounds)
        self._half_counted = False
        self._statistics: PrivateStatistics | None = None
        self._released: PrivateCounts | None = None

    @property
    def projections(self) -> Projections:
        """What the data are projected by."""
        return self._projections

    def __repr__(self) -> str:
        """Settings, for people; how many points there are is not said."""
        classes, state = counted(len(self.classes), "class", "classes"), "released" if self._released else "counting"
        return f"PrivateBuilder({classes}, ε = {self.budget.epsilon:g}, δ = {self.budget.delta:g}, {state})"

    def __reduce__(self) -> NoReturn:
        """Refuse copies: they would hold exact counts, and draw other noise."""
        raise SotddError("a PrivateBuilder holds exact counts and is never copied: send what release() gives.")

    @memory_for("a batch and what is counted of it", "add smaller batches, or use fewer projections")
    def add(self, features: Dataset, labels: ArrayLike | Sequence[Hashable] | None = None) -> Self:
        """Add a batch; its labels must be among the classes, and features alone are one class."""
        exact = self._counting()
        if self._statistics is not None:
            raise SotddError("statistics of these rows are released: rows cannot be added any more.")
        batch = opened_batch(features, labels, self._projections)
        if batch is None:
            return self
        known = set(self.classes)
        for label in batch.classes:
            if label not in known:
                raise SotddError(
                    f"class {label!r} is not among classes=: list all that can occur, as public knowledge."
                )
        self._half_counted = True  # to add the rest again would count some rows twice
        exact.add(batch)
        self._half_counted = False
        return self

    @memory_for("noisy class statistics", "use fewer projections")
    def statistics(self) -> PrivateStatistics:
        """Noisy statistics of each class, to be merged with those of other parties that hold parts of one dataset."""
        if self._statistics is not None:
            return self._statistics
        exact, noise, lengths = self._counting(), self._noise, self.bounds.lengths(self._projections.n_projections)
        exact.refuse_own_projections()
        sizes_scale = self.budget.scale(lengths["sizes"], SHARES["sizes"])
        sums_scale = self.budget.scale(lengths["sums"], SHARES["sums"])
        self._statistics = PrivateStatistics(
            self._projections,
            self.classes,
            self.bounds,
            (Party(noise.name(), self.budget),),
            noise.on_counts(exact.sizes, sizes_scale),
            noise.on_sums(exact.sums, sums_scale) * exact.spreads,
            self.budget.variance(sizes_scale),
            self.budget.variance(sums_scale) * exact.spreads**2,
        )
        return self._statistics

    @memory_for("noisy counts", "use fewer projections or bins")
    def release(self, together: PrivateStatistics | None = None) -> PrivateCounts:
        """Noisy counts of all points added; exact ones are forgotten.

        Parameters
        ----------
        together
            The merged statistics of all parties whose counts will be merged, this one's among them; None for a dataset
            of one party.
        """
        known = self.statistics() if together is None else together
        refuse_unlike(self.statistics(), known)
        if self._released is not None:
            if self._released.statistics is not known:
                raise SotddError("these rows are released already, by other statistics: twice would spend the budget.")
            return self._released
        own = self.statistics().parties
        if not {party.name for party in own} <= {party.name for party in known.parties}:
            raise SotddError("together lacks the statistics of this builder: merge builder.statistics() into it.")
        lengths = self.bounds.lengths(self._projections.n_projections)
        scale = self.budget.scale(lengths["bins"], SHARES["bins"])
        counts = self._counting().placed(known.terms(), known.edges(self._n_bins))
        noisy = self._noise.on_counts(counts, scale)
        self._released = PrivateCounts(known, own, noisy, self.budget.variance(scale))
        self._exact = None
        return self._released

    def _counting(self) -> ExactCounts:
        """The exact counts, while there are any that can be used."""
        if self._half_counted:
            raise SotddError("an error interrupted a batch while it was added: start again with a new builder.")
        if self._exact is None:
            raise SotddError("these rows are released: rows cannot be added any more.")
        return self._exact


def _checked_classes(classes: object) -> tuple[Hashable, ...]:
    """Distinct labels, or an error."""
    if isinstance(classes, (str, bytes)) or not isinstance(classes, (Sequence, np.ndarray, range)):
        raise SotddError(f"classes is {described(classes)}: expected a list of all labels that there can be.")
    if len(classes) > _MOST_CLASSES:
        raise SotddError(f"classes holds {len(classes):,} labels: expected at most {_MOST_CLASSES:,}.")
    values = classes.tolist() if isinstance(classes, np.ndarray) else list(classes)
    try:
        distinct = tuple(dict.fromkeys(values))
    except TypeError as error:
        raise SotddError("classes holds what cannot be a label: expected text or numbers.") from error
    if not distinct or len(distinct) < len(values):
        raise SotddError(f"classes holds {counted(len(values), 'label')}: expected at least one, and none twice.")
    return distinct
