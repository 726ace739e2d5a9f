"""Noisy counts of private builders, which add up over parties, and the sketch that they make."""

from __future__ import annotations

import math
from dataclasses import dataclass
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import described
from sotdd.basics.errors import SotddError
from sotdd.basics.text import counted
from sotdd.projections.recipe import Projections
from sotdd.sketches.builder import check_name
from sotdd.sketches.controls import weights_of
from sotdd.sketches.denoising import masses_of, moved_by_noise, quantiles_of_masses
from sotdd.sketches.levels import QUANTILES, checked_levels
from sotdd.sketches.private_statistics import Party, PrivateStatistics, refuse_unlike, said, together
from sotdd.sketches.sketch import Sketch


@dataclass(frozen=True, eq=False)
class PrivateCounts:
    """Noisy counts of projected values, of one party or of several together.

    Made by `PrivateBuilder.release`.

    Attributes
    ----------
    statistics
        By whose label terms points were placed.
    parties
        Whose rows are counted.
    counts
        (L, H) noisy counts in even bins.
    variance
        The variance of the noise on each.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> projections = sotdd.Projections.fit([rng.normal(size=(500, 3))], n_projections=32)
    >>> builder = sotdd.PrivateBuilder(projections, classes=["a", "b"], epsilon=2, delta=0, seed=0)
    >>> released = builder.add(rng.normal(size=(9000, 3)), rng.choice(["a", "b"], size=9000)).release()
    >>> released.variance > 0, released.finish("mine").name
    (True, 'mine')
    """

    statistics: PrivateStatistics
    parties: tuple[Party, ...]
    counts: NDArray[np.int64]
    variance: float

    def __post_init__(self) -> None:
        """Make the array read-only."""
        self.counts.flags.writeable = False

    def __repr__(self) -> str:
        """Sizes and budgets, for people."""
        lines, bins = self.counts.shape
        return f"PrivateCounts({counted(lines, 'projection')} × {counted(bins, 'bin')}, {said(self.parties)})"

    def merge(self, other: PrivateCounts) -> PrivateCounts:
        """The counts of both, which must be of different rows and placed by the same statistics."""
        if not isinstance(other, PrivateCounts):
            raise SotddError(f"{described(other)} cannot be merged into PrivateCounts: expected PrivateCounts.")
        refuse_unlike(self.statistics, other.statistics)
        mine, theirs = self.statistics, other.statistics
        alike = np.array_equal(mine.sizes, theirs.sizes) and np.allclose(mine.sums, theirs.sums, rtol=1e-9)
        if not alike or {party.name for party in mine.parties} != {party.name for party in theirs.parties}:
            raise SotddError(
                "these counts were placed by other statistics: merge the parties' statistics first, and pass the "
                "result to release() of each."
            )
        if self.counts.shape != other.counts.shape:
            bins = f"{self.counts.shape[1]:,} and {other.counts.shape[1]:,}"
            raise SotddError(f"these counts are in {bins} bins: release both with the same n_bins.")
        parties = together(self.parties, other.parties)
        return PrivateCounts(mine, parties, self.counts + other.counts, self.variance + other.variance)

    def finish(self, name: str = "data", *, n_quantiles: int = QUANTILES) -> Sketch:
        """The sketch that the noise leaves; it compares with any other through the same projections.

        Its distances have no bound on their error, and no noise floor: a remark says what was done and about how far
        off they are.
        """
        check_name(name)
        levels, known = checked_levels(n_quantiles), self.statistics
        if {party.name for party in self.parties} != {party.name for party in known.parties}:
            raise SotddError(
                f"counts of {counted(len(self.parties), 'party', 'parties')} are placed by statistics of "
                f"{counted(len(known.parties), 'party', 'parties')}: merge the counts of all of them first."
            )
        edges = known.edges(self.counts.shape[1])
        masses = masses_of(self.counts, self.variance, known.n_points)
        sizes = np.maximum(known.sizes, 0)
        sizes[0] += 0 if sizes.any() else 1
        projections = known.projections
        weights = weights_of(projections)
        counts_by = np.ones(len(masses)) if weights is None else weights
        by_bins = moved_by_noise(masses, self.variance, edges, levels, counts_by)
        off = math.hypot(by_bins, math.sqrt(np.mean(counts_by * (known.term_variances() @ known.shares))))
        return Sketch(
            name,
            quantiles_of_masses(masses, edges, levels),
            False,
            known.classes,
            sizes,
            known.terms().astype(np.float32),
            projections.recipe(),
            projections.fingerprint,
            projections.scaler,
            projections,
            remarks=(
                f"{name!r} was noised for privacy ({said(self.parties)}): that moves its distances by up to "
                f"about {off:.2g}",
            ),
            spacing=levels.spacing,
            weights=weights,
            tilt=projections.tilt,
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write a file for others to merge or to finish; all in it is noisy."""
        from sotdd.sketches.private_file import write_private_counts

        write_private_counts(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str], projections: Projections | None = None) -> PrivateCounts:
        """Read a file that `save` wrote; pass projections only if they use laws of your own."""
        from sotdd.sketches.private_file import read_private_counts

        return read_private_counts(path, projections)
