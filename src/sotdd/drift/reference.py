"""A reference that batches are tested against later, one by one or as a series."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, Unpack, get_args

import numpy as np

from sotdd.basics.checks import Received, check_choice, check_count, check_flag, check_level, check_order
from sotdd.basics.display import Progress, report_progress
from sotdd.basics.errors import SotddError
from sotdd.basics.files import write_whole
from sotdd.basics.randomness import Stream, generator
from sotdd.basics.remarks import Remark, Remarks, join_remarks
from sotdd.basics.text import say_count
from sotdd.compute.comparison import PairCosts
from sotdd.compute.distance import Distance
from sotdd.compute.engine import ProjectedPoints
from sotdd.compute.estimators import estimate_distance
from sotdd.compute.resampling import Indices, KeepPools, pool_groups
from sotdd.compute.run import choose_engine, run
from sotdd.drift.changes import Changes, find_changes
from sotdd.drift.columns import ReferenceColumns, Sides, pool_columns, spread_rows
from sotdd.drift.monitor import USUAL_SHIFT, DriftMonitor, find_limit
from sotdd.drift.reading import BatchReading
from sotdd.inputs import open_dataset
from sotdd.inputs.agreement import meets_by_position, order_columns
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.inputs.opening import split_reading
from sotdd.inputs.streamed import StreamedFeatures
from sotdd.measure.dependence import remark_on_rows
from sotdd.measure.distance import ORDER, distance, fit_projections
from sotdd.measure.permutations import Permutations
from sotdd.measure.statistics import LabelNames
from sotdd.measure.two_sample import DRAWING, TwoSampleTest, permute, sample_datasets, split_seed
from sotdd.projections.drawing import DRAWING as MANY
from sotdd.projections.drawing import CallSettings, show_drawing
from sotdd.projections.recipe import Projections
from sotdd.projections.scaler import Scaler
from sotdd.sketches.quantiles import QUANTILES, Levels
from sotdd.sketches.sketch import Sketch
from sotdd.sketches.sketching import sketch_opened

# A batch is compared with at most this many times its points, or with this many if that is more: beyond that, all
# noise is the batch's own.
_ENOUGH_TIMES = 20
_ENOUGH = 1000

# Points farther than this many spreads are brought that near. They are a difference in any case, and their powers stay
# within float64.
FARTHEST = 1e12


@dataclass(frozen=True, eq=False)
class DriftReference(Received):
    """A reference dataset, kept as projections, to test batches of any size against.

    It holds projected values and labels, and every column in at most 128 steps. A test permutes the points of reference
    and batch between the two, as `sotdd.test` does, so its level holds for any distribution and any two sizes, on
    average over references: one that happens to be unlike its source alarms more often, another less. If it has twenty
    times the points of a batch, that hardly matters.

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
        Of the permutations.
    remarks
        What a reader should know, such as that points were sampled, or which columns were left out.
    name
        What the reference is called.
    reading
        How it was opened, and so how batches are: the same columns of tables, the same labels.
    sketch
        What `distance` measures by where it was asked for; None where it goes by the projections of the test.
    columns
        What is kept of every column, by which `find_changes` says what changed; None for very many features.

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

    points: ProjectedPoints
    projections: Projections
    p: float
    label_names: LabelNames
    seed: int
    remarks: Remarks = ()
    name: str = "reference"
    reading: BatchReading = field(default_factory=BatchReading)
    sketch: Sketch | None = None
    columns: ReferenceColumns | None = None

    @classmethod
    @show_drawing(DRAWING)
    def fit(
        cls,
        data: Dataset,
        *,
        p: float = ORDER,
        projections: Projections | None = None,
        label_names: LabelNames = "ignore",
        max_points: int | None = 20_000,
        with_sketch: bool = False,
        device: str = "auto",
        **drawing: Unpack[CallSettings],
    ) -> DriftReference:
        """Project a dataset and keep it as a reference.

        Parameters
        ----------
        data
            The reference. How it is read, by options of a path such as ``"train.csv::label=kind"`` or by settings of
            `sotdd.open_dataset`, goes for batches too.
        p
            The order of transport of the distance; the test judges by 1 and 2.
        n_projections, n_moments, moments, label_law, directions, scale
            As in `sotdd.test`.
        seed
            Of permutations and samples and, unless ``projections`` are given, of the projections.
        projections
            What to see it through, in place of those settings.
        label_names
            "match" if a class is the same only under the same name; see `sotdd.test`.
        groups, blocks
            Which rows belong together, as in `sotdd.test`; batches are read alike.
        max_points
            Keep a random sample of this many points, where there are more; None to keep all.
        with_sketch
            Whether to keep a sketch of all points too, through 1,000 projections of the same laws. It makes `distance`
            several times as exact, as `sotdd reference` does.
        device
            As in `sotdd.distance`.
        """
        p = check_order(p)
        names: LabelNames = check_choice(label_names, "label_names", get_args(LabelNames))
        how, drawn = split_reading(drawing)
        seed, settings = split_seed(drawn, projections)
        opened = open_dataset(data, name="reference", **how)
        recipe, [opened] = fit_projections([opened], projections, settings, drawing=DRAWING)
        recipe = recipe.evenly()
        [reference], remarks = sample_datasets([opened], max_points, seed)
        name = data.name if isinstance(data, LabelledData) else "reference"
        name = str(data) if isinstance(data, (str, PathLike)) else name  # a path is a name
        sketch = None
        if check_flag(with_sketch, "with_sketch"):
            many = recipe
            if projections is None:  # the same and further ones, as many as distances have
                many = replace(recipe, n_projections=max(recipe.n_projections, MANY.n_projections))
            sketch = sketch_opened(opened, many, Levels(QUANTILES), device)
        said = join_remarks(remarks, opened.remarks, (remark.of(name) for remark in remark_on_rows(opened)))
        reading = BatchReading.of(data, opened, how)
        near, kept = _bring_near(reference, recipe.scaler), KeepPools((0,))
        with choose_engine(device, [near], recipe.n_projections) as engine:
            run([near], recipe, engine, [kept])
        rows = np.concatenate([pool.values() for pool in kept.pools])
        points = ProjectedPoints(reference.name, rows, reference.classes, np.array(reference.codes), reference.groups)
        return cls(points, recipe, p, names, seed, said, name, reading, sketch, ReferenceColumns.of(reference))

    def save(self, path: str | PathLike[str]) -> None:
        """Write one file, whole or not at all, without pickle; treat it as you treat the data it was made of."""
        from sotdd.drift.file import pack_reference

        write_whole(path, pack_reference(self))

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
        from sotdd.drift.file import read_reference

        return read_reference(path, projections)

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
        size = f"{say_count(self.n_points, 'point')} in {say_count(len(self.classes), 'class', 'classes')}"
        seen_through = say_count(self.projections.n_projections, "projection")
        return f"DriftReference({size}, {seen_through})" + "".join(f"; {remark}" for remark in self.remarks)

    def test(
        self,
        batch: Dataset,
        *,
        n_permutations: int = 499,
        level: float | None = None,
        device: str = "auto",
        progress: Progress = None,
    ) -> TwoSampleTest:
        """Say whether a batch may be a sample of the reference's source.

        Parameters
        ----------
        batch
            Any number of points, labelled as the reference is. Of a table, only the columns of the reference are
            read; one that lacks a column is refused.
        n_permutations
            How many permutations, at most, as in `sotdd.test`; the smallest p-value is 1 / (n_permutations + 1).
        level
            The level that decides, if there is one, as in `sotdd check`: the test ends as soon as its verdict there is
            clear. With p ≥ 0.5 after 39 permutations, p ≥ 0.2 after 99, or p ≥ 0.15 after 10 / level, it passes. If
            none of 10 / level permutations is as far, it rejects with a p-value of a tenth of the level, which is
            added to every p-value that comes later. So the level holds exactly.
        device
            As in `sotdd.distance`.
        progress
            True for a bar, or a function of (done, total).
        """
        count = check_count(n_permutations, "n_permutations")
        limit = None if level is None else check_level(level, such_as=0.05)
        data = self.open_batch(batch)
        points, sides, _ = self._put_beside(data)
        whole = bool(sides) and len(sides[0].codes) == points.n_points + data.n_points
        with_names = self.label_names == "match" and len(self.classes) > 1
        columns = pool_columns(sides, with_names) if whole else None
        pair = points, _bring_near(data, self.projections.scaler)
        engine = choose_engine(device, [pair[1]], self.projections.n_projections)
        with report_progress(progress, "Permuting") as report, engine as active:
            how = self.projections, self.p, self.seed, active, columns
            measured = Permutations(pair, *how, label_names=self.label_names)
            return permute(measured, count, remarks=self._remark_on(data), report=report, level=limit)

    def distance(self, batch: Dataset, *, device: str = "auto") -> Distance:
        """How far a batch is from all points of the reference, in units of the reference's spread.

        By the sketch where one is kept; otherwise what `sotdd.distance` gives through ``projections`` with
        ``estimator="plain"``, where points too far to measure are brought within range.

        Examples
        --------
        >>> import numpy as np, sotdd
        >>> rng = np.random.default_rng(0)
        >>> reference = sotdd.DriftReference.fit(rng.normal(size=(300, 4)), with_sketch=True)
        >>> reference.distance(rng.normal(1, 1, size=(200, 4)))
        0.8379 ± 0.0043, beyond noise (floor 0.109) (s-OTDD, p=2, 1,000 projections)
        """
        data, recipe = self.open_batch(batch), self.projections
        if self.sketch is not None:
            found = distance(self.sketch, data, p=self.p, device=device)
            return replace(found, remarks=self._remark_on(data))
        pair = self.points, _bring_near(data, recipe.scaler)
        with choose_engine(device, [pair[1]], recipe.n_projections) as engine:
            costs = PairCosts([(0, 1)], self.p, engine)
            run(pair, recipe, engine, [costs])
            costs.collect()
            [mean] = costs.estimate()
        return estimate_distance(
            self.points, data, costs.costs[0], self.p, fingerprint=recipe.fingerprint, scaler=recipe.scaler,
            columns=recipe.columns, remarks=self._remark_on(data), known=mean,
        )  # fmt: skip

    def find_changes(self, batch: Dataset, *, level: float = 0.05) -> Changes:
        """Say which columns of a batch changed, by how much, which pairs of them, and which classes moved.

        Where nothing has drifted, any column is named with a chance of ``level``, however many columns there are; and
        any pair or class with the same chance. The verdict is that of `test`, which sees all columns together.

        Examples
        --------
        >>> import numpy as np, sotdd
        >>> rng = np.random.default_rng(0)
        >>> reference = sotdd.DriftReference.fit(rng.normal(size=(1000, 3)))
        >>> reference.find_changes(rng.normal([0, 0.5, 0], 1, size=(300, 3)))
        column     what changed  reference → batch   share      p
        feature 1  moved         mean 0.028 → 0.514  100 %  0.001
        """
        data, limit = self.open_batch(batch), check_level(level, such_as=0.05)
        _, sides, groups = self._put_beside(data)
        n_kept = 0 if self.columns is None else len(self.columns.codes)
        return find_changes(sides, groups, n_kept, self.projections, self.p, limit, self.seed)

    def open_batch(self, batch: Dataset, **asked: Any) -> LabelledData:  # noqa: ANN401  # settings of open_dataset
        """Open a batch as it is tested: as the reference was unless asked otherwise, with its columns in order."""
        centre = None if self.projections.scaler is None else self.projections.scaler.centre
        opened = self.reading.open_batch(batch, **asked)
        data = order_columns(opened, self.projections.columns, "the reference", centre)
        self.projections.check(data)
        self.reading.refuse_half_labelled(data, len(self.classes))
        return data

    def monitor(self, run_length: int = 200) -> DriftMonitor:
        """Watch a series of batches, with one false alarm in ``run_length`` batches on average; see `DriftMonitor`."""
        if check_count(run_length, "run_length") < 2:
            raise SotddError(f"run_length is {run_length}: expected at least 2 batches to a false alarm.")
        return DriftMonitor(self, run_length, find_limit(run_length, USUAL_SHIFT))

    def _put_beside(self, batch: LabelledData) -> tuple[ProjectedPoints, list[Sides], Indices | None]:
        """As much of the reference as a batch needs, chosen at random; its columns beside those of the batch; groups.

        The columns, and the groups of their rows, are of fewer rows if there are very many values.
        """
        points, columns, size = self.points, self.columns, batch.n_points
        enough = max(_ENOUGH, _ENOUGH_TIMES * size)
        if self.n_points > enough:
            chosen = np.sort(generator(self.seed, Stream.REFERENCE, size).choice(self.n_points, enough, replace=False))
            points = points.take(chosen)
            if columns is not None and len(columns.codes) == self.n_points:
                columns = replace(columns, codes=columns.codes[chosen])
        if columns is None:
            return points, [], None
        of_points = points if len(columns.codes) == points.n_points else self.points
        pair = [part.groups for part in (of_points, batch)]
        some = [None if one is None else one[spread_rows(len(one), batch.n_features)] for one in pair]
        sides = columns.put_beside(batch)
        sizes = len(columns.codes), len(spread_rows(size, batch.n_features))
        return points, sides, pool_groups(some, sizes)

    def _remark_on(self, batch: LabelledData) -> Remarks:
        """Remarks on both, on how features are scaled, and on how the columns of a batch were matched."""
        scaler, columns = self.projections.scaler, self.projections.columns
        matched = []
        if meets_by_position(batch, columns):
            matched = [Remark("matched by position", name=batch.name, projections_have_names=columns is not None)]
        found = (*batch.remarks, *remark_on_rows(batch))
        own = [remark.of(batch.name) for remark in found if remark not in self.remarks]
        return join_remarks(self.remarks, () if scaler is None else scaler.remarks, matched, own)


def _bring_near(data: LabelledData, scaler: Scaler | None) -> LabelledData:
    """A dataset with values however large brought within range: they are tested, not refused."""
    centre, scale = (0.0, 1.0) if scaler is None else (scaler.centre, scaler.scales)
    with np.errstate(over="ignore"):
        farthest = FARTHEST / math.sqrt(data.n_features) * scale  # so that no projection is farther
        low, high = (np.broadcast_to(centre + sign * farthest, data.n_features) for sign in (-1, 1))
    for block in data.blocks():
        rows = data.rows(block)
        if (rows < low).any() or (rows > high).any():
            shape, cut = (data.n_points, data.n_features), lambda rows: np.clip(data.rows(rows), low, high, dtype=float)
            return replace(data, features=StreamedFeatures(data.name, shape, np.float64, cut))
    return data
