"""A reference that batches are tested against later, one by one or as a series."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from sotdd.basics.errors import SotddError, check_count, check_flag, check_seed
from sotdd.basics.files import write_whole
from sotdd.basics.remarks import Remark, Remarks, join_remarks
from sotdd.basics.resources import Progress
from sotdd.basics.text import say_count
from sotdd.compute.distance import Distance
from sotdd.drift.monitor import USUAL_SHIFT, DriftMonitor, find_limit
from sotdd.drift.schema import compare_schema
from sotdd.inputs import open_dataset
from sotdd.inputs.agreement import drop_columns, match_columns
from sotdd.inputs.arrays import cut, find_edges
from sotdd.inputs.data import Dataset, LabelledData, cut_alike, refuse_half_labelled, remark_positions, same_features
from sotdd.inputs.opening import open_alike, split_reading
from sotdd.inputs.reading import OPTIONS, Reading
from sotdd.inputs.sources import parse_source, split_options
from sotdd.measure.changes import LEVEL, Changes, LabelNames, TwoSampleTest
from sotdd.measure.columns import pool_columns
from sotdd.measure.comparison import DEFAULT_SETTINGS, MOST_POINTS, Permuting, compare_pair, sample_datasets, split_seed
from sotdd.measure.distance import ORDER, distance, fit_projections
from sotdd.measure.relations import remark_on_rows
from sotdd.projections.projections import Projections
from sotdd.projections.scale_statistics import sort_features
from sotdd.projections.scaler import Scaler, find_scaler
from sotdd.projections.settings import DEFAULT_SETTINGS as MANY
from sotdd.projections.settings import CallSettings, show_settings
from sotdd.sketches.sketch import Sketch
from sotdd.sketches.sketching import sketch

# Values that are kept of a large reference, and rows at least.
_MOST_VALUES, _FEWEST_ROWS = 1 << 22, 64

# What of the options of a source goes for the batches as well. An encoder does not: a file must not name code to load.
SETTINGS = tuple(name for name, option in OPTIONS.items() if option.kept)
# Those that only text has.
_OF_TEXT = ("separator", "decimal", "encoding")


@dataclass(frozen=True, eq=False)
class DriftReference:
    """A reference dataset, kept as rows, to test batches of any size against.

    It holds a sample of its rows as they were read: at most 20,000, and about four million values. A test is
    `sotdd.test` of these rows and the batch: whatever is learned is learned from both together, so its level holds for
    any distribution and any two sizes, on average over references: one that happens to be unlike its source alarms more
    often, another less. If it has twenty times the points of a batch, that hardly matters.

    Attributes
    ----------
    data
        The rows that are kept.
    projections
        Its laws and seed are those of tests, which scale features anew by the rows that are compared; its scaler sets
        the unit of `distance`.
    p
        The order of transport of the distance.
    label_names
        Whether names of labels count, as in `sotdd.test`.
    seed
        Of the permutations.
    remarks
        What a reader should know, such as that points were sampled, or which columns were left out.
    settings
        How it was opened, and so how batches are: options of its source, such as the column of labels, by name.
    suffix
        How its file was called, since batches that are called so are written alike.
    sketch
        What `distance` measures from, if it was requested; None to measure from the rows that are kept.
    is_fixed
        Whether tests go through ``projections`` as they are, scaler and all, since the caller gave them.

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

    data: LabelledData
    projections: Projections
    p: float
    label_names: LabelNames
    seed: int
    remarks: Remarks = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    suffix: str = ""
    sketch: Sketch | None = None
    is_fixed: bool = False

    @classmethod
    @show_settings(DEFAULT_SETTINGS)
    def fit(
        cls,
        data: Dataset,
        *,
        p: float = ORDER,
        projections: Projections | None = None,
        label_names: LabelNames = "ignore",
        max_points: int | None = MOST_POINTS,
        with_sketch: bool = False,
        device: str = "auto",
        **drawing: Unpack[CallSettings],
    ) -> DriftReference:
        """Keep rows of a dataset as a reference.

        Parameters
        ----------
        data
            The reference. How it is read, by options of a path such as ``"train.csv::label=kind"`` or by settings of
            `sotdd.open_dataset`, goes for batches too.
        p
            The order of transport of the distance; the test judges by 1 and 2.
        n_projections, n_moments, moments, label_law, directions, label_directions, scale
            As in `sotdd.test`.
        seed
            Of permutations and samples and, unless ``projections`` are given, of the projections.
        projections
            What to compare through, in place of those settings. They bring their own scaler, which must not come from
            the reference or a batch alone.
        label_names
            "match" if a class is the same only under the same name; see `sotdd.test`.
        groups, blocks
            Which rows belong together, as in `sotdd.test`; batches are read alike.
        max_points
            Keep a random sample of this many points, where there are more, and of fewer where points have very many
            features; None to keep all.
        with_sketch
            Whether to keep a sketch of all points too, through 1,000 projections of the same laws. It makes `distance`
            several times as exact, as `sotdd reference` does.
        device
            As in `sotdd.distance`.
        """
        how = Permuting(p, 1, "combined", label_names, max_points)
        reading, drawn = split_reading(drawing)
        seed, settings = split_seed(drawn, projections)
        has_name = isinstance(data, (str, PathLike, LabelledData))
        opened = open_dataset(data, name=None if has_name else "reference", **reading)
        recipe, [opened] = fit_projections([opened], projections, settings, drawing=DEFAULT_SETTINGS)
        recipe = recipe.evenly()
        most = how.max_points
        if most is not None:
            most = min(most, max(_FEWEST_ROWS, _MOST_VALUES // opened.n_features))
        [kept], remarks = sample_datasets([opened], most, seed)
        rows = np.concatenate([kept.rows(block) for block in kept.blocks()])  # in memory, wherever they were
        rows = rows.reshape(kept.n_points, *kept.point_shape)
        kept = replace(kept, features=rows, origin=replace(kept.origin, remarks=()))
        made = None
        if check_flag(with_sketch, "with_sketch"):
            many = recipe
            if projections is None:  # the same and further ones, as many as distances have
                many = replace(recipe, n_projections=max(recipe.n_projections, MANY.n_projections))
            made = sketch(opened, many, device=device)
        found = join_remarks(remarks, opened.remarks, (remark.of(opened.name) for remark in remark_on_rows(opened)))
        fixed = projections is not None or isinstance(drawn.get("scale"), Scaler)
        return cls(kept, recipe, how.p, how.label_names, seed, found, sketch=made, is_fixed=fixed).opened_as(
            data, reading
        )

    def opened_as(self, source: object, requested: Mapping[str, Any] | None = None) -> DriftReference:
        """The same, whose batches are opened as this source was, by its own options and the requested ones."""
        path, own = parse_source(source) if isinstance(source, str) else ("", {})
        origin = self.data.origin
        bins = None if origin.target is None else origin.target.bins
        options = {**(requested or {}), **own, "groups": origin.group_column, "bins": bins}
        settings = {name: options[name] for name in SETTINGS if name in options}
        found = {name: value for name, value in settings.items() if value is not None or name == "label"}
        return replace(self, settings=found, suffix=Path(path).suffix.lower())

    def save(self, path: str | PathLike[str]) -> None:
        """Write one file, whole or not at all, without pickle; treat it as you treat the data it was made of."""
        from sotdd.drift.file import pack_reference

        write_whole(path, pack_reference(self), private=True)

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
    def name(self) -> str:
        """What the reference is called."""
        return self.data.name

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """The labels of the reference."""
        return self.data.classes

    @property
    def n_points(self) -> int:
        """How many points are kept of it."""
        return self.data.n_points

    @property
    def digest(self) -> str:
        """A short name for its rows."""
        rows = np.column_stack([self.data.codes, self.data.rows(slice(None)).astype(np.float64)])
        return hashlib.sha256(rows.tobytes()).hexdigest()[:16]

    def __repr__(self) -> str:
        """Sizes, for people."""
        size = f"{say_count(self.n_points, 'point')} in {say_count(len(self.classes), 'class', 'classes')}"
        seen_through = say_count(self.projections.n_projections, "projection")
        return f"DriftReference({size}, {seen_through})" + "".join(f"; {remark}" for remark in self.remarks)

    def test(
        self,
        batch: Dataset,
        *,
        n_permutations: int = 999,
        level: float = LEVEL,
        max_points: int | None = MOST_POINTS,
        seed: int | None = None,
        device: str = "auto",
        progress: Progress = None,
    ) -> TwoSampleTest:
        """Say whether a batch may be a sample of the reference's source, and what changed: `sotdd.test` of both.

        Parameters
        ----------
        batch
            Any number of points, labelled as the reference is. Of a table, only the columns of the reference are
            read; one that lacks a column is refused.
        n_permutations
            How many permutations, at most, as in `sotdd.test`; the smallest p-value is 1 / (n_permutations + 1).
        level
            The level that decides, and at which columns are named.
        max_points
            Use a random sample of this many points of the batch, where there are more.
        seed
            Of projections and permutations, in place of that of the reference.
        device
            As in `sotdd.distance`.
        progress
            True for a bar, or a function of (done, total).
        """
        how = Permuting(self.p, n_permutations, "combined", self.label_names, max_points, level)
        number = self.seed if seed is None else check_seed(seed)
        most = {} if isinstance(batch, LabelledData) else {"max_points": how.max_points}
        pair = self._put_beside(self.open_batch(batch, **most))
        return compare_pair(
            pair, partial(self._refit, seed=None if seed is None else number), how, number,
            remarks=self._remark_on(pair[1]), device=device, progress=progress,
        )  # fmt: skip

    def distance(self, batch: Dataset, *, device: str = "auto") -> Distance:
        """How far a batch is from all points of the reference, in units of the reference's spread.

        By the sketch where one is kept; otherwise what `sotdd.distance` gives for the rows that are kept, through
        ``projections`` with ``estimator="plain"``.

        Examples
        --------
        >>> import numpy as np, sotdd
        >>> rng = np.random.default_rng(0)
        >>> reference = sotdd.DriftReference.fit(rng.normal(size=(300, 4)), with_sketch=True)
        >>> reference.distance(rng.normal(1, 1, size=(200, 4)))
        0.8379 ± 0.0043, by itself beyond noise (95 % limit 0.176) (s-OTDD, p=2, 1,000 projections)
        """
        data = self._drop_others(self.open_batch(batch), with_empty=False)
        if self.data.origin.target is not None and data.origin.target is not None:  # bins of the reference
            target = self.data.origin.target
            labels = cut(data.origin.target.values, find_edges(target.values, target.bins)).take(None)
            data = replace(data, classes=labels.classes, codes=labels.codes)
        how: dict[str, Any] = {"p": self.p, "device": device}
        if self.sketch is None:
            how |= {"projections": self.projections, "estimator": "plain", "label_names": "ignore"}
        found = distance(self.data if self.sketch is None else self.sketch, data, **how)
        return replace(found, remarks=self._remark_on(data))

    def find_changes(self, batch: Dataset, *, level: float = LEVEL) -> Changes:
        """Say which columns of a batch changed, by how much, which pairs of them, and which classes: those of `test`.

        Where nothing has drifted, anything is named with a chance of at most ``level``: only if the test finds drift.

        Examples
        --------
        >>> import numpy as np, sotdd
        >>> rng = np.random.default_rng(0)
        >>> reference = sotdd.DriftReference.fit(rng.normal(size=(1000, 3)))
        >>> reference.find_changes(rng.normal([0, 0.5, 0], 1, size=(300, 3)))
        column     what changed  reference → batch   share      p
        feature 1  moved         mean 0.028 → 0.514  100 %  0.001
        """
        return self.test(batch, level=level).changes

    def open_batch(self, batch: Dataset, **requested: Any) -> LabelledData:  # noqa: ANN401  # settings of open_dataset
        """Open a batch as the reference was, or by other settings; one with other columns is refused."""
        data = open_dataset(batch, **requested) if isinstance(batch, LabelledData) else self._read(batch, requested)
        if "bins" in self.settings and data.origin.target is None:
            raise SotddError(
                f"targets of the reference are cut into bins but dataset {data.name!r} has none: open it with bins=."
            )
        data = self._drop_others(data, with_empty=not self.is_fixed)
        self._put_beside(data)
        return data

    def compare_schema(self, batch: LabelledData) -> tuple[Remark | None, Remarks]:
        """Which columns of a batch are tested and which left out, None where it is no table; and what changed in them.

        That is columns that are new, gone, empty or constant, dates, and rows that repeat.
        """
        pair = self._put_beside(batch)
        return pair[1].judged, compare_schema(self.data, batch, pool_columns(pair) or [])

    def monitor(self, run_length: int = 200) -> DriftMonitor:
        """Watch a series of batches, with one false alarm in ``run_length`` batches on average; see `DriftMonitor`."""
        if check_count(run_length, "run_length") < 2:
            raise SotddError(f"run_length is {run_length}: expected at least 2 batches to a false alarm.")
        return DriftMonitor(self, run_length, find_limit(run_length, USUAL_SHIFT))

    def _read(self, batch: Dataset, requested: Mapping[str, Any]) -> LabelledData:
        """Read a batch that is not open yet.

        Letters are read as the reference's are only where they are no UTF-8: other encodings read anything, wrongly.
        """
        is_path = isinstance(batch, (str, PathLike))
        suffix = Path(split_options(str(batch))[0]).suffix.lower() if is_path else ""
        options = {**requested, **(parse_source(batch)[1] if isinstance(batch, str) else {})}
        patterns = Reading.of(exclude=options.get("exclude", ())).exclude
        requested = {name: value for name, value in requested.items() if name != "exclude"}
        for column in self.data.table:
            if any(fnmatchcase(column, pattern) for pattern in patterns):
                raise SotddError(f"means {column!r}: make the reference without it.", setting="exclude")
        kept = [name for name in self.settings if suffix == self.suffix or name not in _OF_TEXT]
        if isinstance(batch, (tuple, np.ndarray)):  # of which hardly anything was to be chosen
            kept = [name for name in kept if name in ("bins", "blocks")]
        settings = {name: self.settings[name] for name in kept}
        if self.data.columns is not None and not self.data.origin.labelled and not isinstance(batch, tuple):
            settings.setdefault("label", None)  # of the batch alone would be refused
        settings |= {"name": None if is_path else "batch", **requested}
        encoding = settings.pop("encoding", None)
        try:
            return open_alike(batch, self.data.schema, **settings)
        except SotddError:
            if encoding is None:
                raise
            return open_alike(batch, self.data.schema, encoding=encoding, **settings)

    def _drop_others(self, batch: LabelledData, *, with_empty: bool) -> LabelledData:
        """A batch without the columns that the reference does not have, which a remark names.

        Those that have no values in the reference can be compared, but not through its own projections.
        """
        schema = self.data.schema
        if schema is None:
            return batch
        empty = {name for name, left in schema.left_out.items() if with_empty and left.why == "empty"}
        others = tuple(column for column in batch.table if column not in schema.kinds and column not in empty)
        if not others:
            return batch
        fewer = drop_columns(batch, others)
        origin = fewer.origin.also(Remark("columns not in reference", columns=others))
        return replace(fewer, origin=replace(origin, unread=(*origin.unread, *others)))

    def _put_beside(self, batch: LabelledData) -> list[LabelledData]:
        """The rows that are kept and a batch with the same features: categories and bins are those of both."""
        pair = cut_alike(match_columns([self.data, batch]))
        same_features(pair)
        refuse_half_labelled(pair)
        self.projections.check_shape(batch.point_shape, batch.name)
        return pair

    def _refit(self, pair: Sequence[LabelledData], seed: int | None) -> tuple[Projections, list[LabelledData]]:
        """The projections of a test: the laws of the reference, its seed or another, and the scale of both together."""
        recipe = self.projections
        if recipe.seed is not None and not self.is_fixed:
            d, columns = same_features(pair), pair[0].columns or pair[1].columns
            scaler = None if recipe.scaler is None else find_scaler(recipe.scaler.kind, pair, weigh_points=True)
            chosen = recipe.seed if seed is None else seed
            order = None if recipe.order is None else tuple(sort_features(pair, scaler, weigh_points=True))
            recipe = replace(recipe, n_features=d, seed=chosen, scaler=scaler, columns=columns, order=order)
        return recipe, [recipe.align(part) for part in pair]

    def _remark_on(self, batch: LabelledData) -> Remarks:
        """What a reader should know of the reference, and of a batch.

        Classes of its own matter to a reader, though not to the test unless names count.
        """
        found, known = (*batch.remarks, *remark_on_rows(batch)), {str(label) for label in self.classes}
        new = {code: str(label) for code, label in enumerate(batch.classes) if str(label) not in known}
        if new and len(known) > 1 and batch.origin.target is None:
            points = int(np.isin(batch.codes, list(new)).sum())
            found += (Remark("unknown classes", classes=tuple(new.values()), points=points, n_points=batch.n_points),)
        own = [remark.of(batch.name) for remark in found if remark not in self.remarks]
        return join_remarks(self.remarks, remark_positions([self.data, batch], None), own)
