"""What a dataset is made of: the mixture of other datasets that is most like it, and what none of them explains.

Along a fixed projection the distribution function of a mixture is the weighted sum of those of its parts. So the mean
over projections of ∫ (F_T − Σ w_i F_i)² dt, an energy distance, is a quadratic form in the weights w, whose minimum
over the simplex is a small quadratic program. The integral is a sum over thresholds that all datasets share: it is as
linear, so that thresholds cost no bias. Each sample adds its own noise to the diagonal, which is subtracted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import Result, SotddError, UnknownSetting, check_count, check_level, make_frame, picture
from sotdd.basics.remarks import Remark, Remarks, Verdict, join_remarks
from sotdd.basics.resources import Progress, Stream, check_fits, generator, report_progress, serial_blas
from sotdd.basics.text import align_rows, join_names, json_label, say_count
from sotdd.compute.comparison import remark_on_features
from sotdd.compute.engine import choose_engine
from sotdd.compute.mixtures import LEVEL, Distributions, Values, fit_mixture
from sotdd.compute.slices import ProjectedPoints, project_datasets
from sotdd.inputs import name_sources, open_all, open_dataset
from sotdd.inputs.agreement import match_columns
from sotdd.inputs.data import LabelledData, cut_range
from sotdd.inputs.opening import open_alike, split_reading
from sotdd.measure.comparison import MOST_POINTS, split_seed
from sotdd.measure.distance import fit_projections
from sotdd.projections.maps import describe_overflow
from sotdd.projections.settings import CallSettings, ProjectionSettings, show_settings
from sotdd.sketches.saved_projections import Given, SavedProjections
from sotdd.sketches.sketch import Sketch
from sotdd.sketches.sketching import Comparable, read_sketch, require_projections

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Doubles = NDArray[np.float64]

# Weights depend little on the choice of projections: the same are used for all datasets.
DRAWING = ProjectionSettings(n_projections=500)
_OF_LABELS = ("n_moments", "moments", "label_law", "label_directions")

# Rows are divided into at most this many parts, whose differences say how far off weights may be.
_PARTS = 25
# Smaller datasets say too little of their own noise.
_FEWEST = 10
# Projections of sketches that are looked at together.
_CHUNK = 128


@dataclass(frozen=True)
class SourceGroup(Result):
    """Sources that noise cannot tell apart: the sum of their weights is known better than each.

    Attributes
    ----------
    names
        The sources.
    weight, stderr
        The sum of their weights, and its standard error.
    """

    names: tuple[str, ...]
    weight: float
    stderr: float


@dataclass(frozen=True)
class LeftOver(Result):
    """What no mixture of the sources explains.

    Attributes
    ----------
    share
        About how much of the target is like none of the sources, if that part is as far from the mixture as they are:
        a part that is farther counts for more than its rows.
    p_value
        How often samples of the mixture itself are as far from it; from single sketches an upper bound below 0.2.
    verdict
        `Verdict.DRIFT` where that is below 5 %: something is left over.
    """

    share: float
    p_value: float
    verdict: Verdict

    def __str__(self) -> str:
        """In words."""
        if self.verdict is Verdict.PASSED:
            return f"left over: within noise (p = {self.p_value:.2g})"
        far = f"about {100 * self.share:.0f} % of it, if as far from the mixture as the sources are"
        return f"left over: beyond noise (p = {self.p_value:.2g}); {far}"


@dataclass(frozen=True, eq=False)
class Mixture(Result):
    """Which mixture of sources is most like a target.

    Attributes
    ----------
    target
        What the target is called.
    names
        The sources, in the order in which they were given.
    weights
        (S,) the share of each, at least 0 and together 1.
    stderr
        (S,) their standard errors.
    groups
        Sources that cannot be told apart, see `SourceGroup`.
    left_over
        What no mixture explains, see `LeftOver`.
    n_points
        The size of the target, and then those of the sources.
    n_projections, fingerprint
        Which projections were used.
    remarks
        What a reader should know, such as that errors are bounds.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> draw = lambda centre, n: rng.normal(centre, 1, size=(n, 4))
    >>> target = np.concatenate([draw(0, 300), draw(2, 100)])
    >>> found = sotdd.mix(target, {"low": draw(0, 400), "high": draw(2, 400), "far": draw(-3, 400)})
    >>> found.weights.round(2).tolist(), found.left_over.verdict.value
    ([0.75, 0.25, 0.0], 'passed')
    """

    target: str
    names: tuple[str, ...]
    weights: Doubles
    stderr: Doubles
    groups: tuple[SourceGroup, ...]
    left_over: LeftOver
    n_points: tuple[int, ...]
    n_projections: int
    fingerprint: str
    remarks: Remarks = ()

    @property
    def explained(self) -> float:
        """The share of the target that the mixture explains: all but what is left over."""
        return 1 - self.left_over.share

    def interval(self, level: float = 0.95) -> Doubles:
        """Intervals (S, 2) of the weights, within 0 and 1."""
        from scipy.stats import t

        width = t.ppf((1 + check_level(level)) / 2, _PARTS - 1) * self.stderr
        ends: Doubles = np.clip(np.column_stack([self.weights - width, self.weights + width]), 0.0, 1.0)
        first = int(np.argmax(self.weights))
        if self.weights[first] == 1:  # it has what the others may have
            ends[first, 0] = 1 - np.delete(ends[:, 1], first).max()
        return ends

    def __len__(self) -> int:
        """How many sources there are."""
        return len(self.names)

    def __getitem__(self, name: str) -> float:
        """The weight of a source, by name."""
        if name not in self.names:
            raise SotddError(f"there is no source {name!r} here: the names are {join_names(self.names)}.")
        return float(self.weights[self.names.index(name)])

    @property
    def order(self) -> list[int]:
        """The numbers of the sources, the largest weight first."""
        return list(np.argsort(-self.weights, kind="stable"))

    @property
    def rows(self) -> list[list[str]]:
        """The cells of the table, header first, the largest weight first."""
        ends = [f"{100 * low:.1f} to {100 * high:.1f} %" for low, high in self.interval().tolist()]
        cells = zip(self.names, self.weights.tolist(), ends, self.n_points[1:], strict=True)
        rows = [[name, f"{100 * weight:.1f} %", end, f"{n:,}"] for name, weight, end, n in cells]
        return [["source", "weight", "95 % interval", "points"], *(rows[place] for place in self.order)]

    @property
    def sentences(self) -> list[str]:
        """What is left over, and which sources cannot be told apart."""
        apart = (
            f"noise cannot tell apart {join_names(one.names)}: together "
            f"{100 * one.weight:.1f} % ± {100 * one.stderr:.1f}"
            for one in self.groups
        )
        return [str(self.left_over), *apart]

    def __repr__(self) -> str:
        """A table of weights, and what to know of it."""
        return "\n".join([*align_rows(self.rows, (1, 2, 3)), *self.sentences, *map(str, self.remarks)])

    def to_pandas(self) -> pd.DataFrame:
        """A frame of pandas with a row for every source, in the order in which they were given."""
        low, high = self.interval().T
        numbers = {"weight": self.weights, "stderr": self.stderr, "low": low, "high": high}
        return make_frame({**numbers, "n_points": self.n_points[1:]}, index=self.names)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the weights as bars, the largest on top, with their errors; returns matplotlib's axes."""
        return picture("mixture")(self, ax)

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON values."""
        left = self.left_over
        sources = zip(self.names, self.weights.tolist(), self.stderr.tolist(), self.interval().tolist(), strict=True)
        return {
            "target": self.target,
            "n_points": self.n_points[0],
            "sources": [
                {"name": name, "weight": weight, "stderr": stderr, "low": low, "high": high, "n_points": n}
                for (name, weight, stderr, (low, high)), n in zip(sources, self.n_points[1:], strict=True)
            ],
            "groups": [{"names": list(one.names), "weight": one.weight, "stderr": one.stderr} for one in self.groups],
            "explained": self.explained,
            "left_over": {"share": left.share, "p_value": left.p_value, "verdict": left.verdict.value},
            "n_projections": self.n_projections,
            "fingerprint": self.fingerprint,
            **({"remarks": [remark.to_dict() for remark in self.remarks]} if self.remarks else {}),
        }


@show_settings(DRAWING, without=_OF_LABELS)
def mix(
    target: Comparable,
    sources: Mapping[str, Comparable | Sequence[Sketch]] | Sequence[Comparable] | Comparable,
    *,
    projections: Given | None = None,
    max_points: int | None = MOST_POINTS,
    device: str = "auto",
    progress: Progress = None,
    **drawing: Unpack[CallSettings],
) -> Mixture:
    """Say which mixture of sources is most like a target, with errors, and what none of them explains.

    It looks at features alone: a class term of a mixture is not the mixture of class terms. The answer is the mixture
    most like the target, not the best to train on.

    Parameters
    ----------
    target
        A dataset, as in `distance`, or a `Sketch`.
    sources
        Two datasets or more by name, or a list of them; some may be sketches, or lists of sketches of random parts of
        one source, from which its error is known. Or one labelled dataset, whose classes are then the sources: the
        weights are the shares of its classes in the target, and what is left over says whether anything else changed.
    n_projections, directions, scale, seed
        As in `distance`.
    projections
        As in `distance`. Sketches bring their own.
    max_points
        Use a random sample of this many points of each dataset, where there are more.
    groups, blocks
        Which rows belong together, as in `sotdd.open_dataset`: errors then come from whole groups.
    label, exclude, missing and others
        How tables are read, as in `sotdd.open_dataset`. Labels are no features.
    device, progress
        As in `distance`.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(1)
    >>> ours, theirs = rng.normal(0, 1, size=(500, 3)), rng.normal(2, 1, size=(500, 3))
    >>> batch = np.concatenate([rng.normal(0, 1, size=(280, 3)), rng.normal(2, 1, size=(120, 3))])
    >>> sotdd.mix(batch, {"ours": ours, "theirs": theirs})
    source  weight   95 % interval  points
    ours    70.1 %  64.2 to 76.0 %     500
    theirs  29.9 %  24.0 to 35.8 %     500
    left over: within noise (p = 0.87)
    """
    reading, drawn = split_reading(drawing)
    if given := [name for name in _OF_LABELS if name in drawn]:
        raise UnknownSetting(f"a mixture looks at features alone and has no setting {', '.join(given)}: leave it out.")
    seed, settings = split_seed(drawn, projections)
    reading |= {"max_points": None if max_points is None else check_count(max_points, "max_points"), "seed": seed}
    sides = [_Side.of(name, source, seed) for name, source in _open_sources(target, sources, reading)]
    sketches = [one for side in sides for one in side.sketches]
    data = [side.data for side in sides if side.data is not None]
    if not sketches:
        recipe, data = fit_projections(data, projections, settings, drawing=DRAWING)
        through = SavedProjections.of(recipe)
    elif chosen := [*drawn, *(["projections"] if projections is not None else [])]:
        raise SotddError(f"{', '.join(chosen)} cannot be chosen beside sketches, which bring their own: leave it out.")
    else:
        through = sketches[0].through
        for other in sketches[1:]:
            through.refuse_other(other.through, f"sketches {sketches[0].name!r} and {other.name!r}")
        data = [require_projections(sketches[0], part).align(part) for part in data]
    by_labels = any(len(one.classes) > 1 and one.class_terms.any() for one in sketches)
    if by_labels:
        _refuse_mixed_labels(sketches, data)
    found = _read_distributions(sides, data, through, by_labels, device, progress)
    with serial_blas.hold():
        fit = fit_mixture(found)
    groups = (SourceGroup(tuple(sides[1 + one].name for one in some), *total) for some, *total in fit.groups)
    verdict = Verdict.DRIFT if fit.p_value < LEVEL else Verdict.PASSED
    return Mixture(
        sides[0].name,
        tuple(side.name for side in sides[1:]),
        fit.weights,
        fit.stderr,
        tuple(groups),
        LeftOver(fit.share, fit.p_value, verdict),
        tuple(side.n_points for side in sides),
        len(found.roots),
        through.fingerprint,
        _gather_remarks(sides, data, through, by_labels),
    )


# ------------------------------------------------------------------ what is read


@dataclass(frozen=True, eq=False)
class _Side:
    """The target or a source: rows, dealt to parts (n,), or sketches of its parts."""

    name: str
    data: LabelledData | None
    sketches: tuple[Sketch, ...]
    parts: NDArray[np.int64]

    @classmethod
    def of(cls, name: str, source: LabelledData | tuple[Sketch, ...], seed: int) -> _Side:
        """Deal rows to parts, whole groups of them where rows belong together; refuse too few."""
        rows, sketches = (None, source) if isinstance(source, tuple) else (source, ())
        n_points = sum(one.n_points for one in sketches) if rows is None else rows.n_points
        if n_points < _FEWEST:
            raise SotddError(
                f"{name!r} has {say_count(n_points, 'point')}: a mixture needs at least {_FEWEST} of the target and of "
                "each source."
            )
        if rows is None:
            return cls(name, None, sketches, np.zeros(0, np.int64))
        keys = np.arange(n_points) if rows.groups is None else np.unique(rows.groups, return_inverse=True)[1]
        count = int(keys.max()) + 1
        if count == 1:
            raise SotddError(f"all rows of {name!r} are one group: errors need several groups.")
        order = generator(seed, Stream.MIXTURE_PARTS, count).permutation(count)
        return cls(name, rows, (), (order % min(count, _PARTS))[keys])

    @property
    def sizes(self) -> NDArray[np.integer]:
        """How many points each part has."""
        return np.array([one.n_points for one in self.sketches]) if self.data is None else np.bincount(self.parts)

    @property
    def n_points(self) -> int:
        """How many points there are."""
        return int(self.sizes.sum())

    def take(self, part: slice, points: Iterator[ProjectedPoints], scales: bool, by_labels: bool) -> list[Values]:
        """The values along some projections: of the next of the projected points, or of the sketches.

        Sketches hold the feature projections times weights, shifted by the label terms of their classes.
        """
        if self.data is None:
            shifts = [0.0 if by_labels else one.class_terms[part, :1] for one in self.sketches]
            edges = [None if one.exact else one.levels.edges for one in self.sketches]
            each = zip(self.sketches, shifts, edges, strict=True)
            return [
                Values(one.quantiles[part] - shift, np.zeros(one.n_quantiles, np.int64), e) for one, shift, e in each
            ]
        own = next(points)
        rows = own.fetch()
        finite = np.isfinite(rows).all(axis=1)
        if not finite.all():
            raise describe_overflow(self.name, part.start + int(np.argmin(finite)))
        return [Values(rows * own.terms.weights[:, None].astype(np.float32) if scales else rows, self.parts)]


def _open_sources(
    target: Any,  # noqa: ANN401  # anything
    sources: Any,  # noqa: ANN401  # anything
    reading: Mapping[str, Any],
) -> list[tuple[str, LabelledData | tuple[Sketch, ...]]]:
    """The target and its sources by name, opened; of one labelled dataset its classes."""
    named = name_sources(sources if isinstance(sources, (Mapping, list)) else [sources], Sketch)
    [(name, first)] = name_sources([target], Sketch)
    name = "target" if name == "0" else name
    while any(name == other for other, _ in named):
        name = f"{name} (target)"
    read = {name: _read_sketches(one) for name, one in [(name, first), *named]}
    if len(named) == 1:
        first, only = read.values()
        return _open_classes(name, first, only, reading)
    rows = {name: one for name, one in read.items() if not _is_sketched(one)}
    opened = dict(zip(rows, open_all(rows, **reading), strict=True)) if rows else {}
    return [(name, opened.get(name, one)) for name, one in read.items()]


def _read_sketches(source: Any) -> Any:  # noqa: ANN401  # anything
    """A sketch, or a list of them, as a tuple; anything else as it is."""
    if isinstance(source, list) and source and all(isinstance(read_sketch(one), Sketch) for one in source):
        return tuple(map(read_sketch, source))
    read = read_sketch(source)
    return (read,) if isinstance(read, Sketch) else read


def _open_classes(
    name: str,
    target: Any,  # noqa: ANN401  # anything
    source: Any,  # noqa: ANN401  # anything
    reading: Mapping[str, Any],
) -> list[tuple[str, LabelledData | tuple[Sketch, ...]]]:
    """The target and the classes of a labelled dataset. The target is read by its columns, and needs no labels."""
    data = None if _is_sketched(source) else open_dataset(source, **reading)
    if data is None or len(data.classes) < 2:
        raise SotddError(
            "there is only one source: name two or more, or one with labels, whose classes are then the sources."
        )
    if not _is_sketched(target):
        if not isinstance(target, LabelledData):
            is_table = data.schema is not None and not isinstance(target, tuple)
            target = open_alike(target, data.schema, name=name, **{**reading, **({"label": None} if is_table else {})})
        target, data = match_columns([target, data])
    names = [str(json_label(label)) for label in data.classes]
    classes = [data.take(np.flatnonzero(data.codes == code)) for code in range(len(names))]
    return [(name, target), *zip(names, classes, strict=True)]


def _is_sketched(source: object) -> bool:
    return isinstance(source, tuple) and len(source) > 0 and isinstance(source[0], Sketch)


def _refuse_mixed_labels(sketches: Sequence[Sketch], data: Sequence[LabelledData]) -> None:
    """Refuse sketches with labels in them beside rows, or beside sketches without labels."""
    rich = next(one for one in sketches if len(one.classes) > 1)
    bare = [one.name for one in sketches if any(remark.kind == "no labels" for remark in one.remarks)]
    if bare or data:
        others = f"sketch {bare[0]!r} has no labels" if bare else "rows are compared by features alone"
        raise SotddError(f"sketch {rich.name!r} has labels in it but {others}: sketch all alike", use={"label": None})


def _read_distributions(
    sides: Sequence[_Side],
    data: Sequence[LabelledData],
    through: SavedProjections,
    by_labels: bool,
    device: str,
    progress: Progress,
) -> Distributions:
    """Walk over all projections, a few at a time."""
    known = next((one for side in sides for one in side.sketches), None)
    count = through.require_projections("these").n_projections if known is None else known.n_projections
    n_bytes = Distributions.count_bytes(sum(len(side.sizes) for side in sides), len(sides), count)
    check_fits(n_bytes, "distribution functions of all parts", "n_projections", count)
    grouped = [side.data is not None and side.data.groups is not None for side in sides]
    found = Distributions([side.sizes for side in sides], count, grouped)
    alone = [replace(one, classes=("",), codes=np.zeros(one.n_points, np.int64)) for one in data]
    with report_progress(progress, "Mixing") as report, choose_engine(device, data, count) as engine:
        chunks: Iterable[tuple[slice, Doubles, list[ProjectedPoints]]]
        if known is not None and not alone:
            chunks = ((part, known.weights[part], []) for part in cut_range(count, _CHUNK))
        else:
            recipe = through.require_projections("these sketches")
            chunks = ((one[0].part, one[0].weights, one) for one in project_datasets(alone, recipe, engine))
        for part, weights, points in chunks:
            rest = iter(points)
            samples = [side.take(part, rest, known is not None, by_labels) for side in sides]
            found.add(part, weights, samples, engine.workers.each)
            report(part.stop, count)
    found.calibrate()
    return found


def _gather_remarks(
    sides: Sequence[_Side], data: Sequence[LabelledData], through: SavedProjections, by_labels: bool
) -> Remarks:
    """What a reader should know; that there are no labels is no news here."""
    bounded = tuple(side.name for side in sides if len(side.sizes) == 1)
    own = [Remark("errors at most", names=bounded)] if bounded else []
    own += [Remark("labels in sketches")] if by_labels else []
    of_rows = remark_on_features(data, through.require_projections("these sketches")) if data else ()
    of_sketches = [one.remarks for side in sides for one in side.sketches]
    return tuple(one for one in join_remarks(own, of_rows, *of_sketches) if one.kind != "no labels")
