"""An explanation: how much of a distance is features, how much labels, and which classes make it."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import Result, check_choice, check_count, make_frame, picture
from sotdd.basics.remarks import Verdict
from sotdd.basics.text import align_rows, join_names, json_label, json_number, say_count, show, with_error
from sotdd.compute.distance import Distance
from sotdd.measure.changes import LEVEL, Changes, TwoSampleTest
from sotdd.measure.classes import ClassComparison, Matching, Pair, find_same_names

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# Deviations of a two-sided interval of 95 %, and of a one-sided test at 5 %.
_TWO_SIDED = 1.96
_ONE_SIDED = 1.645

# Of the table of classes the last columns, whose names are the same on both sides.
_HEADER = ("distance", "match", "counterpart")

# Classes and columns that are shown unless a number is asked for.
MOST_SHOWN = 12

_WITHIN = "the distance by itself is within its noise: two samples of one source are often as far apart"


@dataclass(frozen=True)
class Parts:
    """How much of a distance beyond noise is due to features, and how much to labels.

    Attributes
    ----------
    features
        The share of the excess that is left when labels are forgotten; NaN where the whole is within noise.
    stderr
        Its standard error: over samples of these sizes, and over the choice of projections.
    whole_beyond, features_beyond, labels_beyond
        Whether the distance, what is left of it without labels, and what labels add are beyond noise.
    """

    features: float
    stderr: float
    whole_beyond: bool
    features_beyond: bool
    labels_beyond: bool

    @classmethod
    def of(cls, distance: Distance, unlabelled: Distance, resampled: NDArray[np.float64]) -> Parts:
        """Take the floors off a distance, and off the same with labels forgotten; see `Explanation.resampled`."""
        # What is below the floor is noise, and counts as nothing.
        whole, features = (max(one.excess or 0.0, 0.0) for one in (distance, unlabelled))
        beyond = distance.within_noise is False and whole > 0
        if unlabelled is distance:  # there are no labels
            return cls(1.0 if beyond else math.nan, 0.0 if beyond else math.nan, beyond, beyond, False)
        share = features / whole if beyond else math.nan
        error = _find_error(distance, unlabelled, resampled, share) / whole if beyond else math.nan
        added = whole - features > _ONE_SIDED * _find_error(distance, unlabelled, resampled, 1.0)
        return cls(share, error, beyond, unlabelled.within_noise is False, beyond and added)

    @property
    def labels(self) -> float:
        """The share that labels add."""
        return 1.0 - self.features

    @property
    def features_interval(self) -> tuple[float, float]:
        """An interval of 95 % for the share of the features."""
        reach = _TWO_SIDED * self.stderr
        return self.features - reach, self.features + reach

    @property
    def labels_interval(self) -> tuple[float, float]:
        """The same for the share of the labels."""
        low, high = self.features_interval
        return 1.0 - high, 1.0 - low


def _find_error(distance: Distance, unlabelled: Distance, resampled: NDArray[np.float64], share: float) -> float:
    """Standard error of unlabelled - share × distance, both to the power p: over samples, and over projections.

    What both have in common cancels: halves and projections are the same for both.
    """
    halves = resampled[1] - share * resampled[0]
    size = float(np.abs(halves).max()) or 1.0
    sampled = size * float(np.std(halves / size, ddof=1)) if len(halves) > 1 else 0.0
    a, b = distance.contributions, unlabelled.contributions
    if a is None or b is None or len(a) < 2:
        return sampled
    unit = float(np.abs(a).max()) or 1.0
    rest = (b - share * a) / unit
    return math.hypot(sampled, unit * float(np.std(rest, ddof=1)) / math.sqrt(len(rest)))


@dataclass(frozen=True)
class ClassLine:
    """One class of a side.

    Attributes
    ----------
    label, n_points
        Its name and its size.
    match
        The class of the other side that it is matched with, one to one; None where no class is left for it.
    nearest, distance, stderr
        The nearest class of the other side once the common shift is taken out; how far it is, shift and all.
    share, share_by_chance
        The share of W_p^p that its points carry, and what of that noise alone would give.
    counterpart, moved
        Its match, if that is the same class; and whether the two differ beyond noise.
    lost
        Whether it has no counterpart and that is no chance: a class of so few points may well be absent from a sample.
    """

    label: Hashable
    n_points: int
    match: Hashable | None
    nearest: Hashable
    distance: float
    stderr: float
    share: float
    share_by_chance: float
    counterpart: Hashable | None
    moved: bool
    lost: bool

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        labels = {"label": self.label, "match": self.match, "nearest": self.nearest, "counterpart": self.counterpart}
        named = {name: None if label is None else json_label(label) for name, label in labels.items()}
        return {**asdict(self), **named, "stderr": json_number(self.stderr)}


@dataclass(frozen=True, eq=False)
class Explanation(Result):
    """Why two datasets are as far apart as they are; what `explain` returns.

    Attributes
    ----------
    names
        What the two datasets are called.
    test
        Whether they differ at all, and which columns, pairs of columns and classes changed: what `sotdd.test` says.
    distance
        How far apart they are: what `distance` says of them, to the last bit, with its noise floor.
    unlabelled
        How far apart they are when labels are forgotten and each dataset becomes a single class, through
        the same projections and by the same estimator, with a noise floor of its own.
    by_class
        What the projections say of the classes: their distances, and what optimal transport moves between them.
    matching
        Which classes belong together, one to one, and how likely chance alone puts them this far apart.
    resampled
        (2, S) W_p^p between random halves of the points of each, with labels and without, through the first
        projections: how both vary together from sample to sample.

    Examples
    --------
    The same points, labels permuted: the features agree, so all of the distance is labels.

    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 200)
    >>> x = rng.normal(size=(400, 3)) + 3 * y[:, None]
    >>> why = sotdd.explain((x, y), (x, rng.permutation(y)), n_projections=500)
    >>> print(f"{why.features:.0%} features, {why.labels:.0%} labels")
    0% features, 100% labels
    >>> [line.counterpart for line in why.lines(0)]
    [None, None]
    """

    names: tuple[str, str]
    test: TwoSampleTest
    distance: Distance
    unlabelled: Distance
    by_class: ClassComparison
    matching: Matching
    resampled: NDArray[np.float64]

    # ------------------------------------------------------------------ features and labels

    @cached_property
    def parts(self) -> Parts:
        """Features and labels: their shares of what is beyond noise, with errors and verdicts."""
        found = Parts.of(self.distance, self.unlabelled, self.resampled)
        return Parts(math.nan, math.nan, False, False, False) if self.within_noise else found

    @property
    def within_noise(self) -> bool:
        """Whether the test finds no difference."""
        return self.test.verdict is Verdict.PASSED

    @property
    def features(self) -> float:
        """The share of what is beyond noise that is left when labels are forgotten; NaN where nothing is."""
        return self.parts.features

    @property
    def labels(self) -> float:
        """The share of what is beyond noise that labels add. Below zero where they make the datasets more alike."""
        return self.parts.labels

    @property
    def by_feature(self) -> Changes:
        """Which columns make the distance between the points: the changes of the test, with shares and errors."""
        return self.test.changes

    # ------------------------------------------------------------------ classes

    @property
    def classes(self) -> tuple[tuple[Hashable, ...], tuple[Hashable, ...]]:
        """The labels of the one and of the other, in the order of rows and columns."""
        return self.distance.classes

    @property
    def labelled(self) -> bool:
        """Whether there are classes: either dataset has several."""
        return max(map(len, self.classes)) > 1

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Rows and columns of the classes that are matched, one to one; the larger dataset has classes left over."""
        return self.matching.pairs

    @cached_property
    def counterparts(self) -> dict[int, int]:
        """Matched classes, row by column, that are the same: within noise, or nearer than other classes are."""
        apart, (first, second) = self.matching.apart, self.matching.reach
        return {i: j for i, j in self.pairs if not self._differ((i, j)) or apart[i, j] < min(first[i], second[j])}

    @cached_property
    def renamed(self) -> tuple[tuple[Hashable, Hashable], ...]:
        """Counterparts of other names, where a class of the same name is there and is another beyond noise."""
        first, second = self.classes
        named = find_same_names(self.classes)
        by_row, by_column = dict(named), {j: (i, j) for i, j in named}
        pairs = []
        for i, j in self.counterparts.items():
            rivals = [(i, by_row[i])] if i in by_row else []
            rivals += [by_column[j]] if j in by_column else []
            if rivals and (i, j) not in rivals and all(map(self._differ, rivals)):
                pairs.append((first[i], second[j]))
        return tuple(pairs)

    @property
    def p_values(self) -> dict[Pair, float]:
        """Of matched classes, and of classes of one name, how likely chance alone puts them this far apart."""
        return self.matching.p_values

    def _differ(self, pair: Pair) -> bool:
        """Whether two classes are farther apart than chance puts samples of one class."""
        return self.p_values[pair] <= LEVEL

    def lines(self, side: int) -> list[ClassLine]:
        """One line per class of one side, 0 or 1, the largest share first."""
        known, noise, whole = self.by_class, self.distance.noise, self.distance.value**self.distance.p
        turn = np.transpose if side else np.asarray
        distances, stderr, apart = turn(known.distances), turn(known.stderr), turn(self.matching.apart)
        pairs = {pair[side]: pair for pair in self.pairs}
        floor = min(noise.power / whole, 1.0) if noise is not None and whole > 0 else 0.0
        sizes, shares, others = known.sizes[side], known.shares[side], self.classes[1 - side]
        by_chance = floor * sizes / sizes.sum()  # the noise floor, by the sizes of classes
        # If the datasets are samples of one source, all k points of a class are among the n of n + m points with a
        # chance below (n / (n + m))^k: of all classes, any is called lost no more often than the level says.
        n_points, n_classes = self.distance.n_points, len(set().union(*self.classes))
        small = n_classes * (n_points[side] / sum(n_points)) ** sizes.astype(float) > LEVEL
        elsewhere, lines = set(others), []
        for i, (label, j) in enumerate(zip(self.classes[side], apart.argmin(axis=1).tolist(), strict=True)):
            match = others[pairs[i][1 - side]] if i in pairs else None
            found = i in pairs and pairs[i][0] in self.counterparts
            lines.append(
                ClassLine(
                    label, int(sizes[i]), match, others[j], float(distances[i, j]), float(stderr[i, j]),
                    float(shares[i]), float(by_chance[i]), match if found else None,
                    found and self._differ(pairs[i]), not found and (label in elsewhere or not small[i]),
                )
            )  # fmt: skip
        return sorted(lines, key=lambda line: -line.share)

    # ------------------------------------------------------------------ to look at

    def __repr__(self) -> str:
        """The test, the distance and its parts, what changed, and a table of classes."""
        return self.table()

    def table(self, limit: int | None = MOST_SHOWN) -> str:
        """All of it as plain text; of each side the classes with the largest shares, ``limit`` of them or all."""
        limit = None if limit is None else check_count(limit, "limit")
        said = f"p = {self.test.p_value:.3g}"
        said = f"no difference found, {said}" if self.within_noise else f"they differ, {said}, {self.test.say_why()}"
        first = [f"{' and '.join(map(show, self.names))}: {said}", f"distance {self.distance!r}", say_parts(self)]
        of_classes = say_changes(self) if self.labelled else []
        blocks = ["\n".join(filter(None, [*first, *of_classes])), self.by_feature.table(limit, self.names)]
        for side in (0, 1) if self.labelled else ():
            one, other = show(self.names[side]), show(self.names[1 - side])
            header = (f"class of {one}", "points", "share", "by chance", f"nearest in {other}", *_HEADER)
            lines = self.lines(side)
            table = align_rows([header, *(list_cells(line) for line in lines[:limit])], to_the_right=(1, 2, 3))
            left = len(lines) - len(table) + 1
            more = [f"… and {left:,} more"] if left else []
            blocks.append("\n".join([*table, *more, say_lost_classes(self, side)]))
        return "\n\n".join(blocks)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the class distances as a heat map; returns matplotlib's axes."""
        return picture("explanation")(self, ax)

    def to_pandas(self, of: Literal["classes", "columns"] = "classes") -> pd.DataFrame:
        """A frame of pandas with a row for every class of either dataset, or for every column that was compared."""
        if check_choice(of, "of", ("classes", "columns")) == "columns":
            return self.by_feature.to_pandas()
        rows = [{"dataset": self.names[side], **asdict(line)} for side in (0, 1) for line in self.lines(side)]
        return make_frame(rows)

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON values."""
        return {
            "names": list(self.names),
            "test": self.test.to_dict(),
            "distance": self.distance.to_dict(),
            "unlabelled": self.unlabelled.to_dict(),
            "within_noise": self.within_noise,
            "features": json_number(self.features),
            "labels": json_number(self.labels),
            "features_interval_95": [json_number(end) for end in self.parts.features_interval],
            "labels_interval_95": [json_number(end) for end in self.parts.labels_interval],
            "features_beyond_noise": self.parts.features_beyond,
            "labels_beyond_noise": self.parts.labels_beyond,
            "class_distances": self.by_class.distances.tolist(),
            "class_stderr": [[json_number(cell) for cell in row] for row in self.by_class.stderr.tolist()],
            "coupling": self.by_class.coupling.tolist(),
            "costs": self.by_class.costs.tolist(),
            "classes": [[line.to_dict() for line in self.lines(side)] for side in (0, 1)],
            "renamed": [[json_label(one), json_label(other)] for one, other in self.renamed],
        }


# ------------------------------------------------------------------ words


def say_parts(why: Explanation) -> str:
    """How much of what is beyond noise is features and how much labels; nothing where the test finds no difference."""
    parts = why.parts
    if parts.features_beyond and not parts.whole_beyond:
        return "features alone differ beyond noise; with labels, which add noise of their own, the whole is within it"
    if why.within_noise or not parts.whole_beyond:
        return "" if why.within_noise else _WITHIN
    ends = (parts.features, *parts.features_interval), (parts.labels, *parts.labels_interval)
    texts = [[f"{min(max(end, 0.0), 1.0):.0%}" for end in share] for share in ends]
    features, labels = (share if low == high else f"{share} ({low} to {high})" for share, low, high in texts)
    if not parts.labels_beyond:
        return f"of what is beyond noise, features are {features}; labels add nothing beyond noise"
    if not parts.features_beyond:
        return f"of what is beyond noise, labels are {labels}; features alone are within noise"
    return f"of what is beyond noise, features are {features} and labels {labels}"


def list_cells(line: ClassLine) -> tuple[str, ...]:
    """A class as a row of the table."""
    return (
        show(line.label),
        f"{line.n_points:,}",
        f"{line.share:.0%}",
        f"{line.share_by_chance:.0%}",
        show(line.nearest),
        with_error(line.distance, line.stderr),
        "–" if line.match is None else show(line.match),
        _say_counterpart(line),
    )


def _say_counterpart(line: ClassLine) -> str:
    """Whether its match is the same class; whether one that is not moved far or was replaced, nobody can tell."""
    if line.counterpart is not None:
        return "moved" if line.moved else "yes"
    if not line.lost:
        return "none by chance"
    return "none" if line.match is None else "moved or replaced"


def say_lost_classes(why: Explanation, side: int) -> str:
    """Which classes of one side have no counterpart: those that moved far or were replaced, and those left over."""
    lines = {line.label: line for line in why.lines(side)}
    lost = [lines[label] for label in why.classes[side] if lines[label].lost]
    if not lost:
        absent = sum(line.counterpart is None for line in lines.values())
        but = f", but for {say_count(absent, 'class', 'classes')} that chance may leave without one" if absent else ""
        return f"every class of {show(why.names[side])} has a counterpart{but}"
    changed, missing = ([line.label for line in lost if (line.match is None) is none] for none in (False, True))
    found = {"moved or replaced": changed, f"without a counterpart in {show(why.names[1 - side])}": missing}
    return "; ".join(f"{what}: {join_names(some)}" for what, some in found.items() if some) + _say_doubt(why)


def _say_doubt(why: Explanation) -> str:
    """What is said of single classes has a level of its own, which the test of all may not confirm."""
    return " (approximate: the test of both datasets does not confirm it)" if why.within_noise else ""


def say_changes(why: Explanation) -> list[str]:
    """Which classes have moved, and which names have changed, each in a sentence; none where there is nothing."""
    said = []
    moved = [
        show(line.label) if line.label == line.counterpart else f"{show(line.label)} ({show(line.counterpart)})"
        for line in why.lines(0)
        if line.moved
    ]
    if moved:
        said.append(
            f"moved beyond noise: {'class' if len(moved) == 1 else 'classes'} {join_names(moved)}{_say_doubt(why)}"
        )
    if why.renamed:
        changed = [f"{show(one)} → {show(other)}" for one, other in why.renamed]
        said.append(f"classes have changed names: {join_names(changed)}")
    return said
