"""Distances in order, with ties where noise does not tell them apart."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sotdd.basics.checks import Received
from sotdd.basics.display import make_frame, picture
from sotdd.basics.errors import SotddError
from sotdd.basics.remarks import Remark, Remarks
from sotdd.basics.text import align_rows, with_error
from sotdd.compute.distance import Distance, gather_remarks

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# Differences of fewer standard errors than this are noise: a two-sided test at 5 %.
_CLEAR = 1.96

# Sizes that differ by more than this are worth a word: small samples are far from everything.
_UNEQUAL = 5


@dataclass(frozen=True, eq=False)
class Ranked(Received):
    """One line of a ranking: a dataset, how far it is, and its rank.

    Attributes
    ----------
    name
        The dataset.
    distance
        How far it is; the ranking goes by ``distance.excess`` where there is one.
    rank
        From 1 for the nearest; the same for those that are tied.
    tied
        Whether others have the same rank.
    metadata
        What a catalog keeps with the dataset; empty elsewhere.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> here = np.random.default_rng(0).normal(size=(200, 2))
    >>> line = sotdd.rank(here, {"far": here + 2, "near": here + 0.5}).lines[0]
    >>> isinstance(line, sotdd.results.Ranked), line.name, line.rank, line.tied
    (True, 'near', 1, False)
    """

    name: str
    distance: Distance
    rank: int
    tied: bool
    metadata: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Ranking(Received):
    """Datasets in order, the nearest to a target first.

    `sotdd.rank`, `DistanceMatrix.ranking` and `Catalog.nearest` return it.

    Attributes
    ----------
    target
        What the target is called.
    lines
        The candidates in order.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> here = rng.normal(size=(300, 3))
    >>> order = sotdd.rank(here, {"far": here + 2, "near": here + 0.5})
    >>> [(line.rank, line.name, line.tied) for line in order]
    [(1, 'near', False), (2, 'far', False)]
    >>> bool(order["far"].value > order["near"].value)
    True
    """

    target: str
    lines: tuple[Ranked, ...]

    @classmethod
    def of(
        cls,
        target: str,
        distances: Mapping[str, Distance],
        metadata: Mapping[str, Mapping[str, Any]] | None = None,
        k: int | None = None,
    ) -> Ranking:
        """Bring distances into order, or the k nearest; a rank is one more than how many come first and clearly nearer.

        What counts is the excess over what samples of these sizes give by chance, so that a small sample of the
        same source comes before a large one of another. Where one distance has no floor, all are compared as they are.

        Examples
        --------
        >>> import numpy as np, sotdd
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(2000, 4))
        >>> others = {"few": rng.normal(size=(50, 4)), "moved": rng.normal(0.1, 1, size=(2000, 4)), "far": x + 2}
        >>> matrix = sotdd.pairwise({"here": x, **others}, n_projections=500)
        >>> matrix.ranking("here").names
        ('few', 'moved', 'far')
        >>> bool(matrix["here", "few"].value > matrix["here", "moved"].value)
        True
        """
        by_excess = all(distance.excess is not None for distance in distances.values())
        order = sorted(distances.items(), key=lambda item: item[1].excess or 0.0 if by_excess else item[1].value)[:k]
        ranks, first = list[int](), 0
        for _, distance in order:
            while clearly_farther(distance, order[first][1]):  # than itself it is not
                first += 1
            ranks.append(1 + first)
        known = metadata or {}
        lines = (
            Ranked(name, distance, rank, ranks.count(rank) > 1, known.get(name, {}))
            for (name, distance), rank in zip(order, ranks, strict=True)
        )
        return cls(target, tuple(lines))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the candidates, the nearest first."""
        return tuple(line.name for line in self.lines)

    @property
    def nearest(self) -> str:
        """The name of the candidate that comes first; others may be tied with it."""
        return self.lines[0].name

    @property
    def remarks(self) -> Remarks:
        """What a reader should know beside the numbers."""
        distances = [line.distance for line in self.lines]
        return (*gather_remarks(distances), *_remark_on_sizes(distances))

    def __len__(self) -> int:
        """How many candidates there are."""
        return len(self.lines)

    def __iter__(self) -> Iterator[Ranked]:
        """The candidates, the nearest first."""
        return iter(self.lines)

    def __getitem__(self, name: str) -> Distance:
        """The distance of a candidate, by name."""
        for line in self.lines:
            if line.name == str(name):
                return line.distance
        raise SotddError(f"there is no candidate {name!r} here: the names are {', '.join(self.names)}.")

    def __repr__(self) -> str:
        """A table of ranks and distances, and what to know of them."""
        table = align_rows(self.rows, to_the_right=self.number_columns)
        return "\n".join([*table, *self.legend, *map(str, self.remarks)])

    @property
    def rows(self) -> list[list[str]]:
        """The cells of the table, header first; what is beyond chance, and metadata, only where they are known."""
        keys = list(dict.fromkeys(key for line in self.lines for key in line.metadata))
        header = ["rank", "candidate", "points", "distance", *["beyond chance"] * self._know_chance(), *keys]
        # Marks that only some lines have are made up for by spaces, so that numbers stay in line.
        no_tie = " " if any(line.tied for line in self.lines) else ""
        no_mark = "  " if any(line.distance.within_noise for line in self.lines) else ""
        rows = [header]
        for line in self.lines:
            one = line.distance
            cells = [f"{line.rank}{'=' if line.tied else no_tie}", line.name, f"{one.n_points[1]:,}"]
            cells.append(with_error(one.value, one.stderr) + (" ~" if one.within_noise else no_mark))
            if self._know_chance():
                cells.append(f"{max(0.0, one.excess or 0.0) ** (1 / one.p):.3g}")
            cells += ["" if line.metadata.get(key) is None else str(line.metadata[key]) for key in keys]
            rows.append(cells)
        return rows

    @property
    def number_columns(self) -> list[int]:
        """Which columns of the table hold numbers."""
        return [0, 2, 3, *([4] if self._know_chance() else [])]

    @property
    def legend(self) -> list[str]:
        """How to read the table."""
        said = {
            "beyond chance: the distance less what samples of these sizes give by chance": self._know_chance(),
            "= tied: noise does not tell them apart": any(line.tied for line in self.lines),
            "~ within noise: as near as two samples of the same data": any(
                line.distance.within_noise for line in self.lines
            ),
        }
        return [text for text, applies in said.items() if applies]

    def _know_chance(self) -> bool:
        return all(line.distance.excess is not None for line in self.lines)

    def to_pandas(self) -> pd.DataFrame:
        """A frame of pandas with a row for every candidate, the nearest first, by name."""
        rows = [
            {
                "rank": line.rank,
                "tied": line.tied,
                "distance": line.distance.value,
                "stderr": line.distance.stderr,
                "excess": line.distance.excess,
                "within_noise": line.distance.within_noise,
                "n_points": line.distance.n_points[1],
                **line.metadata,
            }
            for line in self.lines
        ]
        return make_frame(rows, index=self.names)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the distances as bars, the nearest on top, with their errors; returns matplotlib's axes."""
        return picture("ranking")(self, ax)

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON values."""
        return {
            "target": self.target,
            "ranking": [
                {"rank": line.rank, "tied": line.tied, "name": line.name, **line.distance.to_dict()}
                | ({"metadata": dict(line.metadata)} if line.metadata else {})
                for line in self.lines
            ],
        }


def clearly_farther(one: Distance, other: Distance) -> bool:
    """Whether one distance is larger than another beyond noise: of the projections, and of samples of these sizes.

    Through the same projections the differences of what each of them contributes count, in which noise
    that both share cancels; otherwise both standard errors. Distances without errors are what they are.
    """
    gap, error = _find_gap(one, other)
    floors = [distance.floor for distance in (one, other)]
    if floors[0] is not None and floors[1] is not None and _share_projections(one, other):
        gap -= floors[0].power - floors[1].power
        error = math.hypot(error, one.sampling_stderr, other.sampling_stderr)
    return gap > _CLEAR * error


def _remark_on_sizes(distances: Collection[Distance]) -> Remarks:
    """A remark where sizes differ so much that distances themselves say little."""
    sizes = [size for distance in distances for size in distance.n_points if distance.floor is not None]
    if not sizes or max(sizes) <= _UNEQUAL * min(sizes):
        return ()
    return (Remark("unequal sizes", least=min(sizes), most=max(sizes)),)


def _share_projections(one: Distance, other: Distance) -> bool:
    """Whether two distances were measured through the same projections."""
    a, b = one.contributions, other.contributions
    return a is not None and b is not None and one.fingerprint == other.fingerprint and len(a) == len(b) > 1


def _find_gap(one: Distance, other: Distance) -> tuple[float, float]:
    """By how much one is farther and the error of that; in powers of p where they share projections."""
    a, b = one.contributions, other.contributions
    if a is not None and b is not None and _share_projections(one, other):
        unit = max(float(np.abs(a).max()), float(np.abs(b).max())) or 1.0
        gaps = (a - b) / unit
        return unit * float(gaps.mean()), unit * float(np.std(gaps, ddof=1)) / math.sqrt(len(gaps))
    errors = [error for error in (one.stderr, other.stderr) if math.isfinite(error)]
    return one.value - other.value, math.hypot(*errors)
