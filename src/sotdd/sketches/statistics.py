"""What the label term needs to know of each class, which adds up over batches, shards and parties."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Sized
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.files import read_whole, write_whole
from sotdd.basics.text import counted
from sotdd.engines.controls import Controls, Lengths, Plan
from sotdd.engines.protocol import LARGEST_TERM, ClassMoments, PointSums, View, unusable_term
from sotdd.inputs import open_dataset
from sotdd.inputs.column_names import meets_by_position
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.projections.draws import BLOCK
from sotdd.projections.labels import Quantiles
from sotdd.projections.moments import Polynomials
from sotdd.projections.recipe import Projections
from sotdd.sketches.controls import Carried
from sotdd.sketches.counting import BINS, Histograms, Portion, count_classes, for_each_portion, quantiles_of
from sotdd.sketches.levels import Levels
from sotdd.sketches.sketch import check_projections, refuse_other_recipes

Doubles = NDArray[np.float64]

# How much memory the histograms of all classes may take together.
CLASS_BYTES = 256 << 20
# How much memory sums of powers may take. With more classes nothing is carried.
_POWER_BYTES = 256 << 20
# What turns sums of t^2, t^4 and t^6 into sums of t^k / k!.
_FACTORIALS = np.array([2.0, 24.0, 720.0])


class ClassesDoNotFit(SotddError):  # noqa: N818
    """There are too many classes for each to have histograms of its own."""


class ClassStatistics:
    """How many points each class has, and what its label term is computed from.

    For moments that is the sum of the label polynomial over the class; for class quantiles it is
    histograms of its projected values.

    Class statistics are the first of two passes over data that come in batches; `SketchBuilder` makes the
    second.

    Parameters
    ----------
    projections
        What the data are projected by. Their label law must be one that can be merged over parts of a
        dataset: moments or class quantiles.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> x, y = np.random.default_rng(0).normal(size=(100, 3)), np.arange(100) % 2
    >>> projections = sotdd.Projections.fit([x], n_projections=64)
    >>> first, second = sotdd.ClassStatistics(projections), sotdd.ClassStatistics(projections)
    >>> first.add(x[:30], y[:30]).merge(second.add(x[30:], y[30:]))
    ClassStatistics(100 points, 2 classes, 64 projections)
    """

    def __init__(self, projections: Projections) -> None:
        self.terms_kind: type = _kind_of_terms(projections)
        self.projections = projections
        self.counts: dict[Hashable, int] = {}
        self.sums: dict[Hashable, NDArray[np.float64]] = {}  # (L,) of each class, for polynomials
        self.histograms: dict[Hashable, Histograms] = {}  # of each class, for quantiles
        self.powers: PowerSums = PowerSums(projections)
        self.by_position: bool = False  # whether columns could not be matched by name

    def __repr__(self) -> str:
        """Sizes, for people."""
        points, classes = counted(self.n_points, "point"), counted(len(self.counts), "class", "classes")
        return f"ClassStatistics({points}, {classes}, {counted(self.projections.n_projections, 'projection')})"

    @property
    def n_points(self) -> int:
        """How many points were added."""
        return sum(self.counts.values())

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """The labels, in an order that does not depend on how they arrived."""
        try:
            return tuple(sorted(self.counts))  # type: ignore[type-var]  # labels that cannot be compared raise
        except TypeError:
            return tuple(sorted(self.counts, key=lambda label: (type(label).__name__, str(label))))

    @property
    def counts_features(self) -> bool:
        """Whether the histograms kept for the label term also describe the features."""
        return self.terms_kind is Quantiles and self.projections.draw(0, BLOCK).label_features is None

    def add(self, features: Dataset, labels: ArrayLike | Sequence[Hashable] | None = None) -> Self:
        """Add a batch; features alone are one class."""
        batch = opened_batch(features, labels, self.projections)
        if batch is not None:
            self.add_opened(batch)
        return self

    def add_opened(self, batch: LabelledData) -> None:
        """Add a batch whose columns are in the order of the projections."""
        self.note_columns(batch)
        self.expect(counts_of(batch))
        self.powers.add_points(batch)
        for_each_portion(batch, self.projections, self.gather)

    def merge(self, other: ClassStatistics) -> Self:
        """Add the statistics of other data through the same projections."""
        refuse_unlike(self, other)
        self.expect(other.counts)
        self.merge_expected(other)
        return self

    def merge_expected(self, other: ClassStatistics) -> None:
        """Add the sums or the histograms of another, after `expect` was called with its counts."""
        self.by_position |= other.by_position
        for label, sums in other.sums.items():
            self.sums[label] += sums
        for label, histograms in other.histograms.items():
            self.histograms[label].merge(histograms)
        self.powers.merge(other.powers)

    def save(self, path: str | PathLike[str]) -> None:
        """Write a file for another machine or party to merge; it holds no data points."""
        from sotdd.sketches.file import statistics_to_bytes

        write_whole(path, statistics_to_bytes(self))

    @classmethod
    def load(cls, path: str | PathLike[str], projections: Projections | None = None) -> ClassStatistics:
        """Read a file that `save` wrote; pass projections only if they use laws of your own."""
        from sotdd.sketches.file import statistics_from_bytes

        return statistics_from_bytes(read_whole(path, "a file of class statistics"), path, projections)

    def note_columns(self, batch: LabelledData) -> None:
        """Remember whether the columns of a batch were matched by position."""
        self.by_position |= meets_by_position(batch, self.projections.columns)

    def expect(self, counts: Mapping[Hashable, int]) -> None:
        """Make room for this many more points of each class, before they are gathered."""
        _refuse_mixed([*self.counts, *counts])
        n_projections = self.projections.n_projections
        if self.terms_kind is Quantiles:
            refuse_beyond_memory(len({*self.counts, *counts}), n_projections)
        for label, count in counts.items():
            self.counts[label] = self.counts.get(label, 0) + count
            if self.terms_kind is Polynomials:
                self.sums.setdefault(label, np.zeros(n_projections))
                continue
            if label not in self.histograms:
                self.histograms[label] = Histograms.empty(n_projections)
            self.histograms[label].expect(count)
        self.powers.expect(counts)

    def gather(self, portion: Portion) -> None:
        """Add one portion to the sums or to the histograms."""
        from sotdd.engines.cpu.verbs import class_sums

        self.powers.gather(portion)
        if not isinstance(portion.terms, Polynomials):
            count_classes(self.histograms, portion, portion.label_rows)
            return
        sums = class_sums(portion.label_rows, portion.offsets, portion.terms)
        means = sums / np.diff(portion.offsets)
        fits = (np.abs(means) < LARGEST_TERM).all(axis=1)  # NaN is not smaller than anything
        if not fits.all():
            line = int(np.argmin(fits))
            largest = float(np.abs(portion.label_rows[line]).max())
            raise unusable_term("stream", largest, portion.terms, line, portion.part.start + line)
        for label, column in zip(portion.classes, sums.T, strict=True):
            self.sums[label][portion.part] += column

    def is_consistent(self) -> bool:
        """Whether every class has points and what its label term is made of, and nothing else has."""
        if not all(count > 0 for count in self.counts.values()):
            return False
        if self.terms_kind is Polynomials:
            return set(self.sums) == set(self.counts) and not self.histograms
        return not self.sums and {label: group.n_points for label, group in self.histograms.items()} == self.counts

    def terms(self) -> NDArray[np.float64]:
        """The label term of each class, (L, C)."""
        self._refuse_empty()
        if self.terms_kind is Polynomials:
            return np.stack([self.sums[label] / self.counts[label] for label in self.classes], axis=1)
        starts = range(0, self.projections.n_projections, BLOCK)
        return np.concatenate([self._quantile_terms(start) for start in starts])

    def term_errors(self) -> NDArray[np.float64]:
        """How far the label term of each class may be off, (L, C): the root mean square over draws of the label law.

        Sums are exact; quantiles come from counts in bins.
        """
        self._refuse_empty()
        if self.terms_kind is Polynomials:
            return np.zeros((self.projections.n_projections, len(self.classes)))
        starts = range(0, self.projections.n_projections, BLOCK)
        return np.concatenate([self._quantile_term_errors(start) for start in starts])

    def _refuse_empty(self) -> None:
        if not self.counts:
            raise SotddError("there are no points yet, and so no label terms: add some first.")

    def _quantile_term_errors(self, start: int) -> NDArray[np.float64]:
        """A term is Σ c_k q_k with c in any direction, and the K means q_k are off by a bin's width / √3 together."""
        terms = self.projections.draw(start, start + BLOCK).terms
        part = slice(start, start + len(terms.weights))
        lengths = np.linalg.norm(terms.numbers, axis=1) / np.sqrt(3)
        return np.stack([lengths * self.histograms[label].widths(part) for label in self.classes], axis=1)

    def _quantile_terms(self, start: int) -> NDArray[np.float64]:
        terms = self.projections.draw(start, start + BLOCK).terms
        assert isinstance(terms, Quantiles)
        part, count = slice(start, start + len(terms.weights)), len(terms.weights)
        levels = Levels(terms.levels, "even")
        unchanged = np.ones(count), np.zeros((count, 1))  # weights and shifts of the values
        means = [quantiles_of([self.histograms[label]], part, *unchanged, levels)[0] for label in self.classes]
        wide = np.stack(means, axis=1).astype(np.float64)  # (B, C, K)
        by_class: NDArray[np.float64] = np.einsum("bck,bk->bc", wide, terms.coefficients)
        return by_class


class PowerSums:
    """Sums over the points of each class: of powers of their projections, and of the points themselves.

    The sketch of a stream gets its controls from them (`sotdd.sketches.controls`).

    Attributes
    ----------
    powers
        (L, D + 1) of each class, the sum of t, and the sums of t^k / k! for k = 1, …, D with t cut as label terms
        cut it.
    totals
        (d,) of each class, the sum of its scaled points; none where directions are not controlled.
    even
        (L, 3) sums of t^2, t^4 and t^6 over all points.
    lengths
        (3,) sums of |x|^2, |x|^4 and |x|^6.
    kept
        Whether there is anything to control, and it fits.
    """

    def __init__(self, projections: Projections) -> None:
        self.plan: Plan = Plan.of(projections)
        self.projections = projections
        self.kept: bool = self.plan.degree > 0
        self.powers: dict[Hashable, Doubles] = {}
        self.totals: dict[Hashable, Doubles] = {}
        self.even: Doubles = np.zeros((projections.n_projections if self.kept else 0, 3))
        self.lengths: Doubles = np.zeros(3)

    def drop(self) -> None:
        """Keep nothing from here on."""
        self.kept, self.powers, self.totals, self.even = False, {}, {}, np.zeros((0, 3))

    def expect(self, classes: Iterable[Hashable]) -> None:
        """Make room for these classes, before any of their points are gathered."""
        if not self.kept:
            return
        count, directions = self.projections.n_projections, self.plan.dimensions is not None
        width = count * (self.plan.degree + 1) + (self.projections.n_features if directions else 0)
        new = [label for label in classes if label not in self.powers]
        if 8 * width * (len(self.powers) + len(new)) > _POWER_BYTES:
            self.drop()
            return
        for label in new:
            self.powers[label] = np.zeros((count, self.plan.degree + 1))
            if directions:
                self.totals[label] = np.zeros(self.projections.n_features)

    def add_points(self, batch: LabelledData) -> None:
        """Add the points of a batch, once for all projections."""
        from sotdd.engines.cpu.verbs import scaled
        from sotdd.kernels.moments import norm_sums

        if not self.kept or self.plan.dimensions is None:
            return
        lengths = np.zeros(3)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is found in projections
            for part in batch.feature_parts():
                by_class = np.zeros((len(batch.classes), part.stop - part.start))
                for block in batch.blocks():
                    points = scaled(batch.rows(block), self.projections.scaler, batch.name)
                    norm_sums(
                        points, batch.codes[block], lengths if part.start == 0 else lengths[:0], part.start, by_class
                    )
                for label, total in zip(batch.classes, by_class, strict=True):
                    self.totals[label][part] += total
            self.lengths += lengths

    def gather(self, portion: Portion) -> None:
        """Add the projections of some points."""
        from sotdd.kernels.moments import power_sums

        if not self.kept:
            return
        sums = np.empty((len(portion.rows), len(portion.classes), self.plan.degree + 1))
        even = np.empty((len(portion.rows), 3))
        with np.errstate(over="ignore", invalid="ignore"):
            power_sums(portion.rows, portion.offsets, portion.terms.limit, sums, even)
            self.even[portion.part] += even
            for number, label in enumerate(portion.classes):
                self.powers[label][portion.part] += sums[:, number]

    def merge(self, other: PowerSums) -> None:
        """Add the sums of another; call `expect` with its classes first."""
        if not (self.kept and other.kept):
            self.drop()
            return
        self.even += other.even
        self.lengths += other.lengths
        for mine, theirs in ((self.powers, other.powers), (self.totals, other.totals)):
            for label, sums in theirs.items():
                mine[label] += sums

    def carried(self, counts: Mapping[Hashable, int]) -> Carried | None:
        """What a sketch of all points carries; None where nothing was kept."""
        from sotdd.engines.cpu.engine import CpuEngine

        if not self.kept:
            return None
        labels = list(counts)
        sizes = np.array([counts[label] for label in labels], np.float64)
        count = self.projections.n_projections
        with np.errstate(over="ignore", invalid="ignore"):
            lengths = self._lengths(labels, sizes)
            controls = Controls(self.projections, self.plan.degree, self.plan.label, lengths)
            places, values = [], []
            with CpuEngine() as engine:
                for start in range(0, count, BLOCK):
                    part = slice(start, min(start + BLOCK, count))
                    block = self.projections.draw(start, part.stop)
                    moments = self._moments(labels, sizes, part)
                    seen = controls.seen_alone(View(part, [], block, [], [moments]), engine)
                    places += seen[0]
                    values += seen[1]
        return Carried.of(
            np.concatenate(places) if places else None,
            np.concatenate(values) if values else None,
            None if lengths is None else lengths[0],
        )

    def _lengths(self, labels: list[Hashable], sizes: Doubles) -> list[Lengths] | None:
        if self.plan.dimensions is None:
            return None
        totals = [self.totals[label] for label in labels]
        between = sum(float(total @ total) / size for total, size in zip(totals, sizes, strict=True))
        sums = PointSums(self.lengths, np.sum(totals, axis=0), between)
        return [Lengths.of(sums, int(sizes.sum()), self.plan.dimensions)]

    def _moments(self, labels: list[Hashable], sizes: Doubles, part: slice) -> ClassMoments:
        """Mean and covariance, over points, of what is known of their class."""
        shares = sizes / sizes.sum()
        means = np.stack([self.powers[label][part] for label in labels], axis=1) / sizes[:, None]  # (B, C, D + 1)
        centre = np.einsum("c,bcd->bd", shares, means)
        weighted = means * shares[:, None]
        covariance = np.matmul(weighted.transpose(0, 2, 1), means) - centre[:, :, None] * centre[:, None, :]
        return ClassMoments(centre, covariance, self.even[part] / (_FACTORIALS * sizes.sum()))


def opened_batch(
    features: Dataset, labels: ArrayLike | Sequence[Hashable] | None, projections: Projections
) -> LabelledData | None:
    """A batch as labelled data, its columns in the order of the projections; None for one without points."""
    source = features if labels is None else (features, labels)
    points, classes = source if isinstance(source, tuple) and len(source) == 2 else (source, None)
    shape = getattr(points, "shape", None)
    if isinstance(shape, tuple) and len(shape) > 1 and shape[0] == 0:
        if classes is not None and (not isinstance(classes, Sized) or len(classes)):
            raise SotddError("a batch has labels but no features: expected one label per row.")
        return None
    return projections.aligned(open_dataset(source, name="batch"))


def counts_of(batch: LabelledData) -> dict[Hashable, int]:
    """How many points of each class there are."""
    return dict(zip(batch.classes, batch.counts.tolist(), strict=True))


def refuse_unlike(one: Any, other: Any) -> None:  # noqa: ANN401  # builders or class statistics
    """Refuse to merge with another type, or with what was made through other projections."""
    if not isinstance(other, type(one)):
        raise SotddError(
            f"a {type(other).__name__} cannot be merged into a {type(one).__name__}: expected the same type."
        )
    mine, theirs = one.projections, other.projections
    refuse_other_recipes(mine.recipe(), mine.fingerprint, theirs.recipe(), theirs.fingerprint, "the parts to merge")


def refuse_beyond_memory(n_classes: int, n_projections: int) -> None:
    """Refuse more classes than can have histograms of their own."""
    if n_classes * n_projections * BINS * 4 > CLASS_BYTES:
        raise ClassesDoNotFit(
            f"histograms of {counted(n_classes, 'class', 'classes')} × {counted(n_projections, 'projection')} take "
            f"more than {CLASS_BYTES >> 20} MB: use fewer projections, or label_law='moments' in two passes "
            "(ClassStatistics, then SketchBuilder)."
        )


def _kind_of_terms(projections: Projections) -> type:
    kind = type(check_projections(projections).draw(0, BLOCK).terms)
    if kind not in (Polynomials, Quantiles):
        raise SotddError(
            "the label law of these projections does not add up over parts of a dataset: use sotdd.sketch on the "
            "whole dataset, or label_law='moments' or 'quantiles'."
        )
    return kind


def _refuse_mixed(labels: Sequence[Hashable]) -> None:
    """Refuse labels that are text in one batch and numbers in another: one class would count as two."""
    kinds = {isinstance(label, str) for label in labels}
    if len(kinds) > 1:
        text = next(label for label in labels if isinstance(label, str))
        other = next(label for label in labels if not isinstance(label, str))
        raise SotddError(
            f"labels are text in one batch ({text!r}) and not in another ({other!r}): use one type for all."
        )
