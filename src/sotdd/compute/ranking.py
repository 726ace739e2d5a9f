"""Which datasets are nearest: all in order, and those that noise cannot tell apart from the first."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from sotdd.basics.errors import SotddError, make_frame, picture
from sotdd.basics.remarks import Remarks
from sotdd.basics.text import align_rows, join_names, with_error
from sotdd.compute.distance import Distance, gather_remarks

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# Differences of fewer standard errors than this are noise: a two-sided test at 5 %.
_CLEAR = 1.96


@dataclass(frozen=True, eq=False)
class Ranked:
    """One line of a ranking: a dataset, how far it is, and its rank.

    Attributes
    ----------
    name
        The dataset.
    distance
        How far it is.
    rank
        From 1 for the nearest; the same for those that are tied, as in 1=, 1=, 3.
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
class Ranking:
    """Datasets in order, the nearest to a target first.

    `sotdd.rank`, `DistanceMatrix.ranking` and `Catalog.nearest` return it. Its answer is ``best``: all
    candidates that noise cannot tell apart from the first one, ``nearest``.

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
        """Bring distances into order, or the k nearest; those not clearly farther than the first of a rank share it.

        The order is that of `find_limits`. Candidates that noise cannot tell apart from the first come right after it,
        whatever their limits.

        Examples
        --------
        >>> import numpy as np, sotdd
        >>> rng = np.random.default_rng(0)
        >>> here, many, few = (rng.normal(size=(n, 4)) for n in (2000, 1000, 50))
        >>> order = sotdd.pairwise({"here": here, "few": few, "many": many, "far": here + 2}).ranking("here")
        >>> [(line.rank, line.name) for line in order], order.best
        ([(1, 'many'), (1, 'few'), (3, 'far')], ('many', 'few'))
        """
        limits = dict(zip(distances, find_limits(distances.values()), strict=True))
        order = sorted(distances, key=lambda name: (limits[name], name))
        first = order[:1]
        order.sort(key=lambda name: clearly_farther(distances[name], distances[first[0]]))
        ranks = list[int]()
        for place, name in enumerate(order, 1):
            same = ranks and not clearly_farther(distances[name], distances[order[ranks[-1] - 1]])
            ranks.append(ranks[-1] if same else place)
        lines = (
            Ranked(name, distances[name], rank, ranks.count(rank) > 1, (metadata or {}).get(name, {}))
            for name, rank in zip(order[:k], ranks, strict=False)
        )
        return cls(target, tuple(lines))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the candidates, the nearest first."""
        return tuple(line.name for line in self.lines)

    @property
    def nearest(self) -> str:
        """The name of the candidate that comes first, if you need a single one; ``best`` has all that may be."""
        return self.lines[0].name

    @property
    def best(self) -> tuple[str, ...]:
        """The names of the candidates that noise cannot tell apart from the first, itself included."""
        return tuple(line.name for line in self.lines if line.rank == 1)

    @property
    def answer(self) -> str:
        """Which candidate is nearest, or which of them may be, as a sentence."""
        which = f"one of these {len(self.best)}, which noise cannot tell apart: " if len(self.best) > 1 else ""
        return f"nearest: {which}{join_names(self.best)}"

    @property
    def remarks(self) -> Remarks:
        """What a reader should know beside the numbers."""
        return gather_remarks([line.distance for line in self.lines])

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
        return "\n".join([*table, *[self.answer] * bool(self.lines), *self.legend, *map(str, self.remarks)])

    @property
    def rows(self) -> list[list[str]]:
        """The cells of the table, header first; what is beyond noise, and metadata, only where they are known."""
        keys = list(dict.fromkeys(key for line in self.lines for key in line.metadata))
        rows = [["rank", "candidate", "points", "distance", *["beyond noise"] * self._know_noise(), *keys]]
        # Marks that only some lines have are made up for by spaces, so that numbers stay in line.
        no_tie = " " if any(line.tied for line in self.lines) else ""
        no_mark = "  " if self._any_within() else ""
        for line in self.lines:
            one = line.distance
            cells = [f"{line.rank}{'=' if line.tied else no_tie}", line.name, f"{one.n_points[1]:,}"]
            cells.append(with_error(one.value, one.stderr) + (" ~" if one.within_noise else no_mark))
            if self._know_noise():
                cells.append(f"{one.beyond_noise:.3g}")
            cells += ["" if line.metadata.get(key) is None else str(line.metadata[key]) for key in keys]
            rows.append(cells)
        return rows

    @property
    def number_columns(self) -> list[int]:
        """Which columns of the table hold numbers."""
        return [0, 2, 3, 4][: 3 + self._know_noise()]

    @property
    def legend(self) -> list[str]:
        """How to read the table."""
        said = {
            "beyond noise: distance minus its expected sampling noise; the order adds one standard error": (
                self._know_noise()
            ),
            "= not significantly different": any(line.tied for line in self.lines),
            "~ within noise: as near as two samples of the same data": self._any_within(),
        }
        return [text for text, applies in said.items() if applies]

    def _any_within(self) -> bool:
        return any(line.distance.within_noise for line in self.lines)

    def _know_noise(self) -> bool:
        return all(line.distance.excess is not None for line in self.lines)

    def to_pandas(self) -> pd.DataFrame:
        """A frame of pandas with a row for every candidate, the nearest first, by name."""
        numbers = ("value", "stderr", "beyond_noise", "within_noise")
        rows = [
            {"rank": line.rank, "tied": line.tied}
            | {name: getattr(line.distance, name) for name in numbers}
            | {"n_points": line.distance.n_points[1], **line.metadata}
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
            "best": list(self.best),
            "ranking": [
                {"rank": line.rank, "tied": line.tied, "name": line.name, **line.distance.to_dict()}
                | ({"metadata": dict(line.metadata)} if line.metadata else {})
                for line in self.lines
            ],
        }


def find_limits(distances: Collection[Distance]) -> list[float]:
    """What the order goes by: the excess of every distance plus one standard error over samples of these sizes.

    Without the error small samples come first by luck, and without the floor large ones. A few halvings say little of
    one error, so its share of the floor is taken from all of them; it grows with the distance, as that of a noncentral
    chi-square does. Where one distance has no floor, all are compared as they are.
    """
    floors = [one.floor.power for one in distances if one.floor is not None]
    if len(floors) < len(distances):
        return [one.value for one in distances]
    pairs = list(zip(distances, floors, strict=True))
    share = math.sqrt(fmean([(one.sampling_stderr / floor) ** 2 for one, floor in pairs if floor > 0] or [0.0]))
    grown = [floor + 2 * (one.p - 1) * max(0.0, one.excess or 0.0) for one, floor in pairs]
    return [
        (one.excess or 0.0) + share * math.sqrt(floor * more) for (one, floor), more in zip(pairs, grown, strict=True)
    ]


def clearly_farther(one: Distance, other: Distance) -> bool:
    """Whether one distance is larger than another beyond noise: of the projections, and of samples of these sizes.

    Through the same projections the differences of what each of them contributes count, in which noise
    that both share cancels; otherwise both standard errors. Distances without errors are what they are.
    """
    a, b = one.contributions, other.contributions
    if a is None or b is None or one.fingerprint != other.fingerprint or not len(a) == len(b) > 1:
        return one.value - other.value > _CLEAR * math.hypot(*filter(math.isfinite, (one.stderr, other.stderr)))
    unit = max(float(np.abs(a).max()), float(np.abs(b).max())) or 1.0
    gaps = (a - b) / unit
    gap, error = unit * float(gaps.mean()), unit * float(np.std(gaps, ddof=1)) / math.sqrt(len(gaps))
    if one.floor is not None and other.floor is not None:
        gap -= one.floor.power - other.floor.power
        error = math.hypot(error, one.sampling_stderr, other.sampling_stderr)
    return gap > _CLEAR * error
