"""A reference that batches are tested against later, one by one or as a series."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from sotdd.basics.checks import check_count, check_order
from sotdd.basics.memory import within_memory
from sotdd.basics.progress import Progress, reporting
from sotdd.basics.streams import Stream, generator
from sotdd.basics.text import counted
from sotdd.engines.splits import Splits
from sotdd.inputs import open_dataset
from sotdd.inputs.column_names import meets_by_position, taken_by_position
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.measure.aspects import LabelNames, Scope, check_label_names
from sotdd.measure.distance import ORDER, projections_for
from sotdd.measure.drift_monitor import DriftMonitor
from sotdd.measure.permutation import DRAWING, sampled, seed_and_settings
from sotdd.measure.projected import Projected
from sotdd.measure.shuffling import Shuffles
from sotdd.projections.drawing import DrawingSettings, shows_drawing
from sotdd.projections.recipe import Projections
from sotdd.results.two_sample import TwoSampleTest

# A batch is compared with at most this many times its points, or with this many if that is more: beyond that, all
# noise is the batch's own.
_ENOUGH_TIMES = 20
_ENOUGH = 1000


@dataclass(frozen=True, eq=False)
class DriftReference:
    """A dataset as its projections, which batches of any size are tested against.

    It holds projected values and labels, and no features. A test shuffles the points of reference and
    batch between the two, as `sotdd.test` does, so its level holds for any law and any two sizes.

    Attributes
    ----------
    points
        The reference under every projection, with the labels.
    projections
        What the reference and every batch are seen through; the scaler is the reference's own.
    p
        The order of transport of the distance.
    label_names
        Whether names of labels count, as in `sotdd.test`.
    seed
        Of the shuffles.
    remarks
        What a reader should know, such as that points were sampled.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(2000, 6))
    >>> reference = sotdd.DriftReference.fit((x, x[:, 0] > 0))
    >>> reference
    DriftReference(2,000 points in 2 classes, 128 projections)
    >>> same, moved = rng.normal(size=(100, 6)), rng.normal(0.4, 1, size=(80, 6))
    >>> reference.test((same, same[:, 0] > 0), n_permutations=199).rejects(0.05)
    False
    >>> reference.test((moved, moved[:, 0] > 0), n_permutations=199).rejects(0.05)
    True
    """

    points: Projected
    projections: Projections
    p: float
    label_names: LabelNames
    seed: int
    remarks: tuple[str, ...] = ()

    @classmethod
    @shows_drawing(DRAWING)
    @within_memory("pass a smaller max_points, or use fewer projections")
    def fit(
        cls,
        data: Dataset,
        *,
        p: float = ORDER,
        projections: Projections | None = None,
        label_names: LabelNames = "ignore",
        max_points: int | None = 20_000,
        **drawing: Unpack[DrawingSettings],
    ) -> DriftReference:
        """Project a reference, and keep that.

        Parameters
        ----------
        data
            The reference.
        p
            The order of transport of the distance; the test judges by 1 and 2.
        n_projections, n_moments, moments, label_law, directions, shared_directions, scale
            As in `sotdd.test`.
        seed
            Of shuffles and samples and, unless ``projections`` are given, of the projections.
        projections
            What to see it through, in place of those settings.
        label_names
            "match" if a class is the same only under the same name; see `sotdd.test`.
        max_points
            Keep a random sample of this many points, where there are more; None to keep all.
        """
        p, names = check_order(p), check_label_names(label_names)
        seed, settings = seed_and_settings(drawing, projections)
        [reference], remarks = sampled([open_dataset(data, name="reference")], max_points, seed)
        recipe, [reference] = projections_for([reference], projections, settings, drawing=DRAWING)
        recipe = recipe.evenly()
        return cls(Projected.of(reference, recipe), recipe, p, names, seed, remarks)

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """The labels of the reference."""
        return self.points.classes

    @property
    def n_points(self) -> int:
        """How many points are kept of it."""
        return self.points.n_points

    def __repr__(self) -> str:
        """Sizes, for people."""
        size = f"{counted(self.n_points, 'point')} in {counted(len(self.classes), 'class', 'classes')}"
        seen_through = counted(self.projections.n_projections, "projection")
        return f"DriftReference({size}, {seen_through})" + "".join(f"; {remark}" for remark in self.remarks)

    @within_memory("test fewer points at a time, or fit the reference with a smaller max_points")
    def test(self, batch: Dataset, *, n_permutations: int = 499, progress: Progress = None) -> TwoSampleTest:
        """Say whether a batch may be a sample of the reference's source.

        Parameters
        ----------
        batch
            Any number of points, labelled as the reference is.
        n_permutations
            How many shuffles; the smallest p-value is 1 / (n_permutations + 1).
        progress
            True for a bar, or a function of (done, total).
        """
        from sotdd.engines.cpu.engine import CpuEngine

        count = check_count(n_permutations, "n_permutations")
        data = self.projections.aligned(open_dataset(batch, name="batch"))
        seen = Projected.of(data, self.projections)
        kept = self._enough_for(seen.n_points)
        splits = Splits.of([kept, seen], (kept.n_points, seen.n_points), count + 1, self.seed, actual=True)
        scope = Scope.of(splits.n_classes, self.label_names)
        with reporting(progress, "Shuffling") as report, CpuEngine() as engine:
            shuffles = Shuffles(splits, scope, self.p, self.projections.n_projections, engine, report)
            self._deal_out(kept, seen, shuffles)
            return shuffles.verdict("combined", self.projections, (*self.remarks, *self._remarks_on(data)))

    def monitor(self, run_length: int = 200) -> DriftMonitor:
        """Watch a series of batches, with one false alarm in ``run_length`` batches on average; see `DriftMonitor`."""
        return DriftMonitor.begin(self, check_count(run_length, "run_length"))

    def _enough_for(self, batch_size: int) -> Projected:
        """As much of the reference as a batch of this size needs, chosen at random."""
        enough = max(_ENOUGH, _ENOUGH_TIMES * batch_size)
        if self.n_points <= enough:
            return self.points
        chosen = generator(self.seed, Stream.REFERENCE, batch_size).choice(self.n_points, enough, replace=False)
        return self.points.take(np.sort(chosen))

    def _deal_out(self, kept: Projected, seen: Projected, shuffles: Shuffles) -> None:
        from sotdd.engines.cpu.splits import Pool
        from sotdd.projections.draws import BLOCK

        for start in range(0, self.projections.n_projections, BLOCK):
            block = self.projections.draw(start, start + BLOCK)
            part = slice(start, start + len(block))
            rows = np.concatenate([kept.rows[part], seen.rows[part]], axis=1)
            label_rows = None
            if kept.label_rows is not None and seen.label_rows is not None:
                label_rows = np.concatenate([kept.label_rows[part], seen.label_rows[part]], axis=1)
            shuffles.add(Pool(rows, label_rows, block.terms))

    def _remarks_on(self, batch: LabelledData) -> tuple[str, ...]:
        """Remarks on how features are scaled, and how the columns of a batch were matched."""
        scaler, columns = self.projections.scaler, self.projections.columns
        met = meets_by_position(batch, columns)
        matched = (taken_by_position(batch.name, columns is not None),) if met else ()
        return (*(() if scaler is None else scaler.remarks), *matched)
