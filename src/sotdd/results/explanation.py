"""An explanation as a value: how much of a distance is features, how much labels, and which classes make it."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import check_count, described
from sotdd.basics.errors import SotddError
from sotdd.basics.kept import kept_property
from sotdd.basics.text import json_label, json_number
from sotdd.results.class_comparison import ClassComparison
from sotdd.results.class_matching import ClassMatches, same_names
from sotdd.results.distance import Distance
from sotdd.results.drawing import picture
from sotdd.results.explanation_parts import Parts
from sotdd.results.explanation_text import Line, as_rich, as_text
from sotdd.results.feature_shares import FeatureShares
from sotdd.results.ordering import Unordered

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.console import Group


@dataclass(frozen=True, eq=False)
class Explanation(Unordered):
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
    sizes
        How many points each class has, of the one and of the other: (C,) and (C',).
    by_class
        What the projections say of the classes: their distances, how far apart the classes of
        one dataset are, what optimal transport moves between them, and what chance makes of their sizes.
    matches
        Which class is which on the other side, one to one, and how likely chance alone puts them this far apart.
    resampled
        (2, S) W_p^p between random halves of the points of each, with labels and without, through the first
        projections: how both vary together from sample to sample.
    by_feature
        Which features make the distance between the points, by name: shares, errors, and what is beyond noise.

    Examples
    --------
    The same points, labels dealt at random: the features agree, so all of the distance is labels.

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

    _instead = "take its distance"

    names: tuple[str, str]
    distance: Distance
    unlabelled: Distance
    sizes: tuple[NDArray[np.int64], NDArray[np.int64]]
    by_class: ClassComparison
    matches: ClassMatches
    resampled: NDArray[np.float64]
    by_feature: FeatureShares

    # ------------------------------------------------------------------ features and labels

    @kept_property
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

    @property
    def raw_features(self) -> float:
        """The share of W_p^p itself, noise and all, that is left when labels are forgotten; NaN at a distance of 0."""
        if self.distance.value == 0:
            return math.nan
        return float((self.unlabelled.value / self.distance.value) ** self.distance.p)

    @property
    def raw_labels(self) -> float:
        """The share of W_p^p itself, noise and all, that labels add."""
        return 1.0 - self.raw_features

    @property
    def share_stderr(self) -> float:
        """Standard error of either raw share over the choice of projections, as of a ratio of means."""
        with_labels, without = self.distance.contributions, self.unlabelled.contributions
        if with_labels is None or without is None or len(with_labels) < 2 or self.distance.value == 0:
            return math.nan
        unit = float(np.abs(with_labels).max())
        rest = (without - self.raw_features * with_labels) / unit
        return float(np.std(rest, ddof=1) / np.sqrt(len(rest)) / np.mean(with_labels / unit))

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
        first, second = (floor * sizes / sizes.sum() for sizes in self.sizes)
        return first, second

    @property
    def nearest(self) -> tuple[tuple[Hashable, ...], tuple[Hashable, ...]]:
        """For every class of the one, the nearest class of the other; and the other way round.

        Nearest beyond what chance puts between classes of their sizes: small classes are far from everything.
        """
        first, second = self.classes
        to_second, to_first = self._nearest_places
        return tuple(second[j] for j in to_second), tuple(first[i] for i in to_first)

    @kept_property
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
        return tuple((first[i], second[j]) for i, j in self.counterpart_places.items() if self.matches.differ((i, j)))

    @kept_property
    def renamed(self) -> tuple[tuple[Hashable, Hashable], ...]:
        """Counterparts of other names, where a class of the same name is there and is another beyond noise."""
        first, second = self.classes
        named = same_names(self.classes)
        by_row, by_column = dict(named), {j: (i, j) for i, j in named}
        pairs = []
        for i, j in self.counterpart_places.items():
            rivals = [(i, by_row[i])] if i in by_row else []
            rivals += [by_column[j]] if j in by_column else []
            if rivals and (i, j) not in rivals and all(self.matches.differ(rival) for rival in rivals):
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

    @kept_property
    def counterpart_places(self) -> dict[int, int]:
        """The same, as the row of each and its column."""
        of_first, of_second = self.by_class.own_excess
        apart = self.by_class.excess
        return {
            i: j
            for i, j in self.matches.pairs
            if not self.matches.differ((i, j)) or apart[i, j] < min(of_first[i], of_second[j])
        }

    # ------------------------------------------------------------------ to look at

    def __repr__(self) -> str:
        """The distance, its parts, and a table of classes."""
        return self.table()

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        from sotdd.results.notebook import explanation_html

        return explanation_html(self)

    def table(self, limit: int | None = 12) -> str:
        """All of it as plain text; of each side the classes with the largest shares, ``limit`` of them or all."""
        return as_text(self, None if limit is None else check_count(limit, "limit"))

    def __rich__(self) -> Group:
        """The same for a terminal."""
        return as_rich(self, 12)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the class distances as a heat map; returns matplotlib's axes."""
        axes: Axes = picture("explanation")(self, ax)
        return axes

    def lines(self, side: int) -> list[Line]:
        """One line per class of one side, 0 or 1, the largest share first."""
        if not isinstance(side, (int, np.integer)) or side not in (0, 1):
            raise SotddError(f"side is {described(side)}: expected 0 or 1.")
        other = 1 - side
        distances = self.class_distances if side == 0 else self.class_distances.T
        stderr = self.by_class.stderr if side == 0 else self.by_class.stderr.T
        lost, moved = self.without_counterpart[side], [pair[side] for pair in self.moved]
        lines = [
            Line(label, int(self.sizes[side][i]), self.classes[other][j], float(distances[i, j]), float(stderr[i, j]),
                 float(self.shares[side][i]), float(self.shares_by_chance[side][i]), label not in lost, label in moved)
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
            "raw_features": json_number(self.raw_features),
            "raw_labels": json_number(self.raw_labels),
            "share_stderr": json_number(self.share_stderr),
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
