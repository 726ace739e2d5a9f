"""An explanation: how much of a distance is features, how much labels, which classes make it, and that in words."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import check_count
from sotdd.basics.display import Part, Table, as_html, as_text, picture
from sotdd.basics.text import join_names, json_label, json_number, show
from sotdd.compute.distance import Distance
from sotdd.measure.explanation.classes import ClassComparison, ClassLine, Pair, find_same_names
from sotdd.measure.explanation.features import LEVEL, FeatureShares

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Classes and features that are shown unless a number is asked for.
_MOST_SHOWN = 12

# Deviations of a two-sided interval of 95 %, and of a one-sided test at 5 %.
_TWO_SIDED = 1.96
_ONE_SIDED = 1.645


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
        whole, features = _excess(distance), _excess(unlabelled)
        beyond = distance.within_noise is False and whole > 0
        if unlabelled is distance:  # there are no labels
            return cls(1.0 if beyond else math.nan, 0.0 if beyond else math.nan, beyond, beyond, False)
        share = features / whole if beyond else math.nan
        error = _error(distance, unlabelled, resampled, share) / whole if beyond else math.nan
        added = whole - features > _ONE_SIDED * _error(distance, unlabelled, resampled, 1.0)
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


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why two datasets are as far apart as they are; what `explain` returns.

    Attributes
    ----------
    names
        What the two datasets are called.
    distance
        How far apart they are: what `distance` says of them, to the last bit, with its noise floor.
    unlabelled
        How far apart they are when labels are forgotten and each dataset becomes a single class, through
        the same projections and by the same estimator, with a noise floor of its own.
    by_class
        What the projections say of the classes: their distances, how far apart the classes of
        one dataset are, what optimal transport moves between them, and what chance makes of their sizes.
    pairs
        Rows and columns of the classes that belong together, one to one; the larger dataset has classes left over.
    p_values
        Of those pairs, and of classes of one name, how likely chance alone puts them this far apart.
    resampled
        (2, S) W_p^p between random halves of the points of each, with labels and without, through the first
        projections: how both vary together from sample to sample.
    by_feature
        Which features make the distance between the points, by name: shares, errors, and what is beyond noise.

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
    >>> why.without_counterpart
    ((0, 1), (0, 1))
    """

    names: tuple[str, str]
    distance: Distance
    unlabelled: Distance
    by_class: ClassComparison
    pairs: tuple[Pair, ...]
    p_values: dict[Pair, float]
    resampled: NDArray[np.float64]
    by_feature: FeatureShares

    # ------------------------------------------------------------------ features and labels

    @cached_property
    def parts(self) -> Parts:
        """Features and labels: their shares of what is beyond noise, with errors and verdicts."""
        return Parts.of(self.distance, self.unlabelled, self.resampled)

    @property
    def within_noise(self) -> bool:
        """Whether neither the distance, nor what is left of it without labels, is beyond noise."""
        return not (self.parts.whole_beyond or self.parts.features_beyond)

    @property
    def features(self) -> float:
        """The share of what is beyond noise that is left when labels are forgotten; NaN where nothing is."""
        return self.parts.features

    @property
    def labels(self) -> float:
        """The share of what is beyond noise that labels add. Below zero where they make the datasets more alike."""
        return self.parts.labels

    # ------------------------------------------------------------------ classes

    @property
    def classes(self) -> tuple[tuple[Hashable, ...], tuple[Hashable, ...]]:
        """The labels of the one and of the other, in the order of rows and columns."""
        return self.distance.classes

    @property
    def class_distances(self) -> NDArray[np.float64]:
        """(C, C') the sliced distance between each class of the one and of the other."""
        return self.by_class.distances

    @property
    def coupling(self) -> NDArray[np.float64]:
        """(C, C') the share of points that optimal transport moves from class to class, over all projections."""
        return self.by_class.coupling

    @property
    def shares(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The share of W_p^p that each class's points carry: (C,) and (C',), each adding up to one."""
        return self.by_class.costs.sum(axis=1), self.by_class.costs.sum(axis=0)

    @property
    def shares_by_chance(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What of these shares chance alone would give: (C,) and (C',), the noise floor by the sizes of classes."""
        noise, whole = self.distance.noise, self.distance.value**self.distance.p
        floor = min(noise.power / whole, 1.0) if noise is not None and whole > 0 else 0.0
        first, second = (floor * sizes / sizes.sum() for sizes in self.by_class.sizes)
        return first, second

    @property
    def nearest(self) -> tuple[tuple[Hashable, ...], tuple[Hashable, ...]]:
        """For every class of the one, the nearest class of the other; and the other way round.

        Nearest beyond what chance puts between classes of their sizes: small classes are far from everything.
        """
        first, second = self.classes
        to_second, to_first = self._nearest_places
        return tuple(second[j] for j in to_second), tuple(first[i] for i in to_first)

    @cached_property
    def counterparts(self) -> tuple[tuple[Hashable, Hashable], ...]:
        """Classes that correspond: matched one to one, and within noise or nearer than any class of their own."""
        first, second = self.classes
        return tuple((first[i], second[j]) for i, j in self.counterpart_places.items())

    @property
    def without_counterpart(self) -> tuple[tuple[Hashable, ...], tuple[Hashable, ...]]:
        """Classes of the one, and of the other, that correspond to none on the other side."""
        matched = self.counterpart_places
        first, second = self.classes
        taken = set(matched.values())
        return (
            tuple(label for i, label in enumerate(first) if i not in matched),
            tuple(label for j, label in enumerate(second) if j not in taken),
        )

    @property
    def moved(self) -> tuple[tuple[Hashable, Hashable], ...]:
        """Counterparts that are farther apart than chance puts two samples of one class."""
        first, second = self.classes
        return tuple((first[i], second[j]) for i, j in self.counterpart_places.items() if self._differ((i, j)))

    @cached_property
    def renamed(self) -> tuple[tuple[Hashable, Hashable], ...]:
        """Counterparts of other names, where a class of the same name is there and is another beyond noise."""
        first, second = self.classes
        named = find_same_names(self.classes)
        by_row, by_column = dict(named), {j: (i, j) for i, j in named}
        pairs = []
        for i, j in self.counterpart_places.items():
            rivals = [(i, by_row[i])] if i in by_row else []
            rivals += [by_column[j]] if j in by_column else []
            if rivals and (i, j) not in rivals and all(map(self._differ, rivals)):
                pairs.append((first[i], second[j]))
        return tuple(pairs)

    @property
    def swapped(self) -> tuple[tuple[Hashable, Hashable], ...]:
        """Pairs of names that have changed places: each is what the other was."""
        order = {label: number for number, label in enumerate(self.classes[0])}
        pairs = set(self.renamed)
        return tuple((one, other) for one, other in self.renamed if (other, one) in pairs and order[one] < order[other])

    @property
    def _nearest_places(self) -> tuple[list[int], list[int]]:
        return self.by_class.excess.argmin(axis=1).tolist(), self.by_class.excess.argmin(axis=0).tolist()

    @cached_property
    def counterpart_places(self) -> dict[int, int]:
        """The same, as the row of each and its column."""
        of_first, of_second = self.by_class.own_excess
        apart = self.by_class.excess
        return {i: j for i, j in self.pairs if not self._differ((i, j)) or apart[i, j] < min(of_first[i], of_second[j])}

    def _differ(self, pair: Pair) -> bool:
        """Whether two classes are farther apart than chance puts samples of one class."""
        return self.p_values[pair] <= LEVEL

    # ------------------------------------------------------------------ to look at

    def __repr__(self) -> str:
        """The distance, its parts, and a table of classes."""
        return self.table()

    def table(self, limit: int | None = _MOST_SHOWN) -> str:
        """All of it as plain text; of each side the classes with the largest shares, ``limit`` of them or all."""
        blocks = self._blocks(None if limit is None else check_count(limit, "limit"))
        return "\n\n".join(text for text in map(as_text, blocks) if text)

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        return as_html([part for block in self._blocks(_MOST_SHOWN) for part in block])

    def _blocks(self, limit: int | None) -> list[list[Part]]:
        """The distance and its parts; the features; a table of classes for each side."""
        first = f"{' and '.join(map(show, self.names))}: {self.distance!r}"
        blocks: list[list[Part]] = [
            [first, say_parts(self), *say_changes(self)],
            self.by_feature.parts(limit),
        ]
        for side in (0, 1):
            lines = self.lines(side)
            rows = [line.cells() for line in lines[:limit]]
            left = len(lines) - len(rows)
            table = Table([header(self, side), *rows], numbers=(1, 2, 3))
            blocks.append([table, f"… and {left:,} more" if left else "", say_lost_classes(self, side)])
        return blocks

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the class distances as a heat map; returns matplotlib's axes."""
        return picture("explanation")(self, ax)

    def lines(self, side: int) -> list[ClassLine]:
        """One line per class of one side, 0 or 1, the largest share first."""
        distances, stderr = self.class_distances, self.by_class.stderr
        if side == 1:
            distances, stderr = distances.T, stderr.T
        sizes, shares, by_chance = self.by_class.sizes[side], self.shares[side], self.shares_by_chance[side]
        lost, moved = self.without_counterpart[side], [pair[side] for pair in self.moved]
        lines = [
            ClassLine(
                label, int(sizes[i]), self.classes[1 - side][j], float(distances[i, j]), float(stderr[i, j]),
                float(shares[i]), float(by_chance[i]), label not in lost, label in moved,
            )
            for i, (label, j) in enumerate(zip(self.classes[side], self._nearest_places[side], strict=True))
        ]  # fmt: skip
        return sorted(lines, key=lambda line: -line.share)

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON values."""
        return {
            "names": list(self.names),
            "distance": self.distance.to_dict(),
            "unlabelled": self.unlabelled.to_dict(),
            "within_noise": self.within_noise,
            "features": json_number(self.features),
            "labels": json_number(self.labels),
            "features_interval_95": [json_number(end) for end in self.parts.features_interval],
            "labels_interval_95": [json_number(end) for end in self.parts.labels_interval],
            "features_beyond_noise": self.parts.features_beyond,
            "labels_beyond_noise": self.parts.labels_beyond,
            "by_feature": self.by_feature.to_dict(),
            "class_distances": self.class_distances.tolist(),
            "class_stderr": [[json_number(cell) for cell in row] for row in self.by_class.stderr.tolist()],
            "coupling": self.coupling.tolist(),
            "costs": self.by_class.costs.tolist(),
            "classes": [[line.to_dict() for line in self.lines(side)] for side in (0, 1)],
            "counterparts": _json_pairs(self.counterparts),
            "moved": _json_pairs(self.moved),
            "renamed": _json_pairs(self.renamed),
            "swapped": _json_pairs(self.swapped),
            "without_counterpart": [[json_label(label) for label in side] for side in self.without_counterpart],
        }


def _json_pairs(pairs: tuple[tuple[Hashable, Hashable], ...]) -> list[list[Any]]:
    return [[json_label(one), json_label(other)] for one, other in pairs]


def _excess(distance: Distance) -> float:
    """What is beyond the floor; what is below it is noise, and counts as nothing."""
    return max(distance.excess or 0.0, 0.0)


def _error(distance: Distance, unlabelled: Distance, resampled: NDArray[np.float64], share: float) -> float:
    """Standard error of unlabelled - share × distance, both to the power p: over samples, and over projections.

    What both have in common cancels: halves and projections are the same for both.
    """
    halves = resampled[1] - share * resampled[0]
    sampled = float(np.std(halves, ddof=1)) if len(halves) > 1 else 0.0
    a, b = distance.contributions, unlabelled.contributions
    if a is None or b is None or len(a) < 2:
        return sampled
    unit = float(np.abs(a).max()) or 1.0
    rest = (b - share * a) / unit
    return math.hypot(sampled, unit * float(np.std(rest, ddof=1)) / math.sqrt(len(rest)))


def say_parts(why: Explanation) -> str:
    """How much of what is beyond noise is features and how much labels."""
    parts = why.parts
    if why.distance.value == 0:
        return "nothing tells them apart"
    if parts.whole_beyond:
        return _shares_in_words(parts)
    if parts.features_beyond:
        return "features alone differ beyond noise; with labels, which add noise of their own, the whole is within it"
    if why.by_feature.beyond_noise or why.by_feature.together.beyond_noise:
        return "the whole is within noise: two samples of one source are often as far apart; but see below"
    return "nothing beyond noise: two samples of one source are often as far apart"


def _shares_in_words(parts: Parts) -> str:
    """The same of a distance beyond noise."""
    features, labels = _share(parts.features, parts.features_interval), _share(parts.labels, parts.labels_interval)
    if parts.labels < 0:
        return "all of what is beyond noise is features; labels add nothing to it"
    if not parts.labels_beyond:
        return f"of what is beyond noise, features are {features}; labels add nothing beyond noise"
    if not parts.features_beyond:
        return f"of what is beyond noise, labels are {labels}; features alone are within noise"
    return f"of what is beyond noise, features are {features} and labels {labels}"


def say_shares_briefly(why: Explanation) -> str:
    """The same in a few words, for the title of a picture."""
    parts = why.parts
    if not parts.whole_beyond:
        return "nothing beyond noise"
    return f"features {parts.features:.0%}, labels {parts.labels:.0%}"


def _share(share: float, interval: tuple[float, float]) -> str:
    low, high = (min(max(end, 0.0), 1.0) for end in interval)
    if low == high:
        return f"{share:.0%}"
    return f"{share:.0%} ({low:.0%} to {high:.0%})"


def say_lost_classes(why: Explanation, side: int) -> str:
    """Which classes of one side have no counterpart; where only features differ, which have moved far."""
    lost = why.without_counterpart[side]
    if lost and not why.parts.labels_beyond and set(lost) <= set(why.classes[1 - side]):
        return f"moved farther than the classes are apart: {join_names(lost)}" if side == 0 else ""
    if not lost:
        return f"every class of {show(why.names[side])} has a counterpart"
    return f"without a counterpart in {show(why.names[1 - side])}: {join_names(lost)}"


def say_changes(why: Explanation) -> list[str]:
    """Which classes have moved, and which names have changed, each in a sentence; none where there is nothing."""
    said = []
    if why.moved:
        names = [show(one) if one == other else f"{show(one)} ({show(other)})" for one, other in why.moved]
        said.append(f"moved beyond noise: {'class' if len(names) == 1 else 'classes'} {join_names(names)}")
    if why.swapped:
        said.append(
            join_names([f"{show(one)} and {show(other)}" for one, other in why.swapped]) + " have changed places"
        )
    exchanged = {*why.swapped, *((other, one) for one, other in why.swapped)}
    others = [f"{show(one)} → {show(other)}" for one, other in why.renamed if (one, other) not in exchanged]
    if others:
        said.append(f"classes have changed names: {join_names(others)}")
    return said


def header(why: Explanation, side: int) -> tuple[str, ...]:
    """The columns of the table of classes of one side."""
    one, other = show(why.names[side]), show(why.names[1 - side])
    return f"class of {one}", "points", "share", "by chance", f"nearest in {other}", "distance", "counterpart"
