"""An explanation: how much of a distance is features, how much labels, and which classes make it."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from sotdd.basics.checks import check_count
from sotdd.basics.display import make_frame, picture
from sotdd.basics.text import json_label, json_number
from sotdd.basics.verdict import Verdict
from sotdd.compute.distance import Distance
from sotdd.measure.changes import Changes
from sotdd.measure.explanation.classes import ClassComparison, ClassLine, Pair, find_same_names
from sotdd.measure.explanation.sentences import MOST_SHOWN, describe_explanation
from sotdd.measure.statistics import LEVEL, TwoSampleTest

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

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
    test
        Whether they differ at all, and which columns, pairs of columns and classes changed: what `sotdd.test` says.
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
    pairs: tuple[Pair, ...]
    p_values: dict[Pair, float]
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

    @cached_property
    def counterparts(self) -> dict[int, int]:
        """Classes that correspond, row by column: matched, and within noise or nearer than any class of their own."""
        of_first, of_second = self.by_class.own_excess
        apart = self.by_class.excess
        return {i: j for i, j in self.pairs if not self._differ((i, j)) or apart[i, j] < min(of_first[i], of_second[j])}

    @cached_property
    def absent_by_chance(self) -> tuple[frozenset[int], frozenset[int]]:
        """Of either side, the classes that chance may leave without a counterpart.

        Their name is on the other side too, and the two do not differ beyond noise; or it is not, and they are small.
        If the datasets are samples of one source, all k points of a class are among the n of one of them with a chance
        of C(n, k) / C(n + m, k): of all classes, any is called lost no more often than the level says.
        """
        sizes = self.by_class.sizes
        first, second = (int(counts.sum()) for counts in sizes)
        n_classes = len(set(self.classes[0]) | set(self.classes[1]))
        alike = [pair for pair in find_same_names(self.classes) if not self._differ(pair)]
        found = []
        for side, size in enumerate((first, second)):
            others = set(self.classes[1 - side])
            chances = np.exp(_log_ways(size, sizes[side]) - _log_ways(first + second, sizes[side])) * n_classes
            named = zip(self.classes[side], chances.tolist(), strict=True)
            small = (i for i, (label, chance) in enumerate(named) if label not in others and chance > LEVEL)
            found.append(frozenset([*small, *(pair[side] for pair in alike)]))
        return found[0], found[1]

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

    def _differ(self, pair: Pair) -> bool:
        """Whether two classes are farther apart than chance puts samples of one class."""
        return self.p_values[pair] <= LEVEL

    def lines(self, side: int) -> list[ClassLine]:
        """One line per class of one side, 0 or 1, the largest share first."""
        known, noise, whole = self.by_class, self.distance.noise, self.distance.value**self.distance.p
        distances, stderr, excess = known.distances, known.stderr, known.excess
        pairs = {i: (i, j) for i, j in self.counterparts.items()}
        if side == 1:
            distances, stderr, excess = distances.T, stderr.T, excess.T
            pairs = {j: (i, j) for i, j in self.counterparts.items()}
        floor = min(noise.power / whole, 1.0) if noise is not None and whole > 0 else 0.0
        sizes, shares, others = known.sizes[side], known.shares[side], self.classes[1 - side]
        by_chance = floor * sizes / sizes.sum()  # the noise floor, by the sizes of classes
        by_chance_absent, partners = self.absent_by_chance[side], self.absent_by_chance[1 - side]
        lines = []
        for i, (label, j) in enumerate(zip(self.classes[side], excess.argmin(axis=1).tolist(), strict=True)):
            counterpart = others[pairs[i][1 - side]] if i in pairs else None
            told = i in pairs and not (i in by_chance_absent and pairs[i][1 - side] in partners)
            lines.append(
                ClassLine(
                    label, int(sizes[i]), others[j], float(distances[i, j]), float(stderr[i, j]), float(shares[i]),
                    float(by_chance[i]), counterpart, told and self._differ(pairs[i]),
                    i not in pairs and i not in by_chance_absent,
                )
            )  # fmt: skip
        return sorted(lines, key=lambda line: -line.share)

    # ------------------------------------------------------------------ to look at

    def __repr__(self) -> str:
        """The test, the distance and its parts, what changed, and a table of classes."""
        return self.table()

    def table(self, limit: int | None = MOST_SHOWN) -> str:
        """All of it as plain text; of each side the classes with the largest shares, ``limit`` of them or all."""
        return describe_explanation(self, None if limit is None else check_count(limit, "limit"))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the class distances as a heat map; returns matplotlib's axes."""
        return picture("explanation")(self, ax)

    def to_pandas(self) -> pd.DataFrame:
        """A frame of pandas with a row for every class of either dataset; ``by_feature`` has one of features."""
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


def _log_ways(size: int, taken: NDArray[np.int64]) -> NDArray[np.float64]:
    """Logarithms of in how many ways some of so many points can be taken one after another."""
    ways: NDArray[np.float64] = gammaln(size + 1) - gammaln(size - taken + 1)
    return ways


def _excess(distance: Distance) -> float:
    """What is beyond the floor; what is below it is noise, and counts as nothing."""
    return max(distance.excess or 0.0, 0.0)


def _error(distance: Distance, unlabelled: Distance, resampled: NDArray[np.float64], share: float) -> float:
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
