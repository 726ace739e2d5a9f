"""A reference that batches are tested against later, one by one or as a series."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import check_choice, check_count, check_flag, check_order
from sotdd.basics.errors import SotddError
from sotdd.basics.files import write_whole
from sotdd.basics.progress import Progress, reporting
from sotdd.basics.streams import Stream, generator
from sotdd.basics.text import counted
from sotdd.engines.chance import usable_costs
from sotdd.engines.splits import Splits
from sotdd.inputs import open_dataset
from sotdd.inputs.column_names import in_order, meets_by_position, taken_by_position
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.measure.distance import ORDER, distance, projections_for
from sotdd.measure.drift_monitor import DriftMonitor, limit_for
from sotdd.measure.drift_reading import Reading
from sotdd.measure.drift_values import Commonest
from sotdd.measure.permutation import DRAWING, Shuffles, sampled, seed_and_settings
from sotdd.measure.statistics import LabelNames, Scope
from sotdd.projections.directions import Directions, Drawn
from sotdd.projections.drawing import DRAWING as MANY
from sotdd.projections.drawing import DrawingSettings, shows_drawing
from sotdd.projections.draws import BLOCK
from sotdd.projections.recipe import Projections
from sotdd.results.distance import Distance
from sotdd.results.estimators import estimated_distance
from sotdd.results.two_sample import TwoSampleTest
from sotdd.sketches.levels import QUANTILES, Levels
from sotdd.sketches.making import sketch_opened
from sotdd.sketches.sketch import Sketch

if TYPE_CHECKING:
    from sotdd.engines.cpu.splits import Pool

# A batch is compared with at most this many times its points, or with this many if that is more: beyond that, all
# noise is the batch's own.
_ENOUGH_TIMES = 20
_ENOUGH = 1000


# Features and projections beyond this many spreads are cut to it. They are a difference in any case, and their powers
# stay within float64.
FARTHEST = 1e12


@dataclass(frozen=True, eq=False)
class Projected:
    """Points under every projection, before label terms, in their own order: what can be tested without features.

    Attributes
    ----------
    rows
        (L, n) feature projections.
    label_rows
        (L, n) those made for labels; None where ``rows`` serve both.
    classes, codes
        The labels, and the index of every point's label among them.
    """

    rows: NDArray[np.float32]
    label_rows: NDArray[np.float32] | None
    classes: tuple[Hashable, ...]
    codes: NDArray[np.integer]

    @classmethod
    def of(cls, data: LabelledData, projections: Projections) -> Projected:
        """Project a dataset on the processor; values however large are brought within range, not refused."""
        blocks = [projections.draw(start, start + BLOCK) for start in range(0, projections.n_projections, BLOCK)]
        rows = _projected(data, projections, [block.features for block in blocks])
        for_labels = [block.label_features for block in blocks if block.label_features is not None]
        label_rows = _projected(data, projections, for_labels) if for_labels else None
        return cls(rows, label_rows, data.classes, np.array(data.codes))

    @property
    def n_points(self) -> int:
        """How many points there are."""
        return len(self.codes)

    def take(self, index: NDArray[np.integer]) -> Projected:
        """Some of the points."""
        label_rows = None if self.label_rows is None else self.label_rows[:, index]
        return Projected(self.rows[:, index], label_rows, self.classes, self.codes[index])


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
        What a reader should know, such as that points were sampled, or which columns were left out.
    name
        What the reference is called.
    reading
        How it was opened, and so how batches are: the same columns of tables, the same labels.
    sketch
        What `distance` measures by where it was asked for; None where it goes by the projections of the test.
    commonest
        How often each feature has its commonest value, by which ``sotdd check`` finds features that are stuck.

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
    name: str = "reference"
    reading: Reading = field(default_factory=Reading)
    sketch: Sketch | None = None
    commonest: Commonest | None = None

    @classmethod
    @shows_drawing(DRAWING)
    def fit(
        cls,
        data: Dataset,
        *,
        p: float = ORDER,
        projections: Projections | None = None,
        label_names: LabelNames = "ignore",
        max_points: int | None = 20_000,
        with_sketch: bool = False,
        **drawing: Unpack[DrawingSettings],
    ) -> DriftReference:
        """Project a reference, and keep that.

        Parameters
        ----------
        data
            The reference. Options of a path, such as ``"train.csv::label=kind"``, go for batches too.
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
        with_sketch
            Whether to keep a sketch of all points too, through 1,000 projections. It makes `distance` several
            times as exact, as `sotdd reference` does.
        """
        p = check_order(p)
        names: LabelNames = check_choice(label_names, "label_names", get_args(LabelNames))
        seed, settings = seed_and_settings(drawing, projections)
        opened = open_dataset(data, name="reference")
        [reference], remarks = sampled([opened], max_points, seed)
        recipe, [reference] = projections_for([reference], projections, settings, drawing=DRAWING)
        recipe = recipe.evenly()
        said = (*remarks, *opened.remarks)
        name = data.name if isinstance(data, LabelledData) else "reference"
        name = str(data) if isinstance(data, (str, PathLike)) else name  # a path is a name
        sketch = _sketched(opened, settings, projections) if check_flag(with_sketch, "with_sketch") else None
        points = Projected.of(reference, recipe)
        reading = Reading.of(data, opened)
        return cls(points, recipe, p, names, seed, said, name, reading, sketch, Commonest.of(reference))

    def save(self, path: str | PathLike[str]) -> None:
        """Write one file, whole or not at all, without pickle; it holds projected values and labels, no features."""
        from sotdd.measure.drift_file import to_bytes

        write_whole(path, to_bytes(self))

    @classmethod
    def load(cls, path: str | PathLike[str], projections: Projections | None = None) -> DriftReference:
        """Read a file that `save` wrote; pass projections only if they use laws of your own.

        Examples
        --------
        >>> import numpy as np, sotdd, tempfile
        >>> x = np.random.default_rng(0).normal(size=(300, 4))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sotdd.DriftReference.fit(x).save(f"{folder}/train.ref")
        ...     sotdd.DriftReference.load(f"{folder}/train.ref")
        DriftReference(300 points in 1 class, 128 projections)
        """
        from sotdd.measure.drift_file import read

        return read(path, projections)

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

    def test(self, batch: Dataset, *, n_permutations: int = 499, progress: Progress = None) -> TwoSampleTest:
        """Say whether a batch may be a sample of the reference's source.

        Parameters
        ----------
        batch
            Any number of points, labelled as the reference is. Of a table, only the columns of the reference are
            read; one that lacks a column is refused.
        n_permutations
            How many shuffles; the smallest p-value is 1 / (n_permutations + 1).
        progress
            True for a bar, or a function of (done, total).
        """
        from sotdd.engines.cpu.engine import CpuEngine

        count = check_count(n_permutations, "n_permutations")
        data = self.opened(batch)
        seen = Projected.of(data, self.projections)
        kept = self._enough_for(seen.n_points)
        splits = Splits.of([kept, seen], (kept.n_points, seen.n_points), count + 1, self.seed, actual=True)
        scope = Scope.of(splits.n_classes, self.label_names)
        with reporting(progress, "Shuffling") as report, CpuEngine() as engine:
            shuffles = Shuffles(splits, scope, self.p, self.projections.n_projections, engine, report)
            self._deal_out(kept, seen, shuffles.add)
            return shuffles.verdict("combined", self.projections, self._remarks_on(data))

    def distance(self, batch: Dataset) -> Distance:
        """How far a batch is from all points of the reference, in units of the reference's spread.

        By the sketch where one is kept; otherwise what `sotdd.distance` gives through ``projections`` with
        ``estimator="plain"``, where points too far to measure are brought within range.

        Examples
        --------
        >>> import numpy as np, sotdd
        >>> rng = np.random.default_rng(0)
        >>> reference = sotdd.DriftReference.fit(rng.normal(size=(300, 4)), with_sketch=True)
        >>> reference.distance(rng.normal(1, 1, size=(200, 4)))
        0.8379 ± 0.0041, beyond noise (floor 0.097) (s-OTDD, p=2, 1,000 projections)
        """
        from sotdd.engines.cpu.engine import CpuEngine

        data = self.opened(batch)
        if self.sketch is not None:
            return replace(distance(self.sketch, data, p=self.p), remarks=self._remarks_on(data))
        seen = Projected.of(data, self.projections)
        splits = Splits.of([self.points, seen], (self.n_points, seen.n_points), 1, self.seed, actual=True)
        costs: list[Any] = []
        with CpuEngine() as engine:
            self._deal_out(self.points, seen, lambda pool: costs.append(engine.split_costs(pool, splits, [self.p])))
            kept = usable_costs(engine.collect(costs), self.p)[:, 0, 0]
        recipe = self.projections
        return estimated_distance(
            self.points, data, kept, self.p, fingerprint=recipe.fingerprint, scaler=recipe.scaler,
            columns=recipe.columns, remarks=self._remarks_on(data),
        )  # fmt: skip

    def opened(self, batch: Dataset, **asked: Any) -> LabelledData:  # noqa: ANN401  # settings of open_dataset
        """A batch as it is tested: opened as the reference was unless asked otherwise, with its columns in order."""
        data = in_order(self.reading.opened(batch, **asked), self.projections.columns, "the reference")
        self.projections.check(data)
        self.reading.refuse_half_labelled(data, len(self.classes))
        return data

    def monitor(self, run_length: int = 200) -> DriftMonitor:
        """Watch a series of batches, with one false alarm in ``run_length`` batches on average; see `DriftMonitor`."""
        if check_count(run_length, "run_length") < 2:
            raise SotddError(f"run_length is {run_length}: expected at least 2 batches to a false alarm.")
        return DriftMonitor(self, run_length, limit_for(run_length))

    def _enough_for(self, batch_size: int) -> Projected:
        """As much of the reference as a batch of this size needs, chosen at random."""
        enough = max(_ENOUGH, _ENOUGH_TIMES * batch_size)
        if self.n_points <= enough:
            return self.points
        chosen = generator(self.seed, Stream.REFERENCE, batch_size).choice(self.n_points, enough, replace=False)
        return self.points.take(np.sort(chosen))

    def _deal_out(self, kept: Projected, seen: Projected, take: Callable[[Pool], object]) -> None:
        """Hand on the points of both, pooled, under some projections at a time."""
        from sotdd.engines.cpu.splits import Pool

        for start in range(0, self.projections.n_projections, BLOCK):
            block = self.projections.draw(start, start + BLOCK)
            part = slice(start, start + len(block))
            rows = np.concatenate([kept.rows[part], seen.rows[part]], axis=1)
            label_rows = None
            if kept.label_rows is not None and seen.label_rows is not None:
                label_rows = np.concatenate([kept.label_rows[part], seen.label_rows[part]], axis=1)
            take(Pool(rows, label_rows, block.terms))

    def _remarks_on(self, batch: LabelledData) -> tuple[str, ...]:
        """Remarks on both, on how features are scaled, and on how the columns of a batch were matched."""
        scaler, columns = self.projections.scaler, self.projections.columns
        scaled = () if scaler is None else scaler.remarks
        met = meets_by_position(batch, columns)
        matched = (taken_by_position(batch.name, columns is not None),) if met else ()
        own = [f"{batch.name}: {remark}" for remark in batch.remarks if remark not in self.remarks]
        return (*self.remarks, *scaled, *matched, *own)


def _projected(data: LabelledData, projections: Projections, drawn: list[Drawn]) -> NDArray[np.float32]:
    from sotdd.engines.cpu.verbs import project, scaled
    from sotdd.engines.cpu.workers import Workers
    from sotdd.kernels import rows as kernels

    rows = np.empty((projections.n_projections, data.n_points), np.float32)

    def work(block: slice) -> None:
        with np.errstate(all="ignore"):
            points = np.clip(scaled(data.rows(block), projections.scaler, data.name), -FARTHEST, FARTHEST)
        for number, part in enumerate(drawn):
            start = number * BLOCK
            out = rows[start : start + BLOCK, block]
            projection = np.empty(out.shape, np.float32)
            project(points, part, BLOCK, projection)
            kernels.clamp_rows(projection, part.clamp or FARTHEST if isinstance(part, Directions) else FARTHEST)
            out[...] = projection

    with Workers() as workers:
        workers.each(work, data.blocks())
    return rows


def _sketched(data: LabelledData, settings: dict[str, Any], projections: Projections | None) -> Sketch:
    """A sketch of the reference through as many projections as distances have, drawn as the others are."""
    if projections is None:
        asked = {name: value for name, value in settings.items() if name != "n_projections"}
        projections = MANY.but(asked).fit([data], tilt=True)
    return sketch_opened(data, projections, Levels(QUANTILES))
