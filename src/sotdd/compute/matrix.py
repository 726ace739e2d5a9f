"""The results for several datasets: a matrix of distances, and which datasets are nearest, as far as noise tells."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sotdd.basics.errors import Result, SotddError, make_frame, picture
from sotdd.basics.files import write_whole
from sotdd.basics.remarks import Remarks
from sotdd.basics.text import align_rows, join_names, json_number, with_error
from sotdd.compute.distance import Distance, gather_remarks
from sotdd.projections.projections import Projections

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# Differences of fewer standard errors than this are noise: a two-sided test at 5 %.
_CLEAR = 1.96


@dataclass(frozen=True, eq=False)
class Asked:
    """What a caller asked for, so that a report can say how to ask again.

    Attributes
    ----------
    sources
        Of each dataset by name, the path that it was opened from; None for data in memory.
    settings
        Those that were given, by name.
    """

    sources: Mapping[str, str | None]
    settings: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class DistanceMatrix(Result):
    """Distances between every two of several datasets, all through the same projections.

    Attributes
    ----------
    names
        The datasets, in order.
    distances
        The `Distance` of every two different ones, by their numbers (i, j) with i < j.
    projections
        What all were measured through; None for other methods than s-OTDD.
    asked
        Sources and settings as `pairwise` was given them; None for a matrix made in another way.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> m = sotdd.pairwise(
    ...     {"a": rng.normal(size=(200, 3)), "b": rng.normal(size=(200, 3)), "c": rng.normal(2, 1, size=(200, 3))},
    ...     n_projections=200,
    ... )
    >>> m.nearest("a")
    'b'
    >>> m["a", "c"].value == m["c", "a"].value > m["a", "b"].value
    True
    """

    names: tuple[str, ...]
    distances: Mapping[tuple[int, int], Distance]
    projections: Projections | None = None
    asked: Asked | None = None

    @property
    def values(self) -> NDArray[np.float64]:
        """The distances (N, N); zero on the diagonal."""
        return self._square(lambda distance: distance.value)

    @property
    def stderr(self) -> NDArray[np.float64]:
        """Their standard errors (N, N)."""
        return self._square(lambda distance: distance.stderr)

    @property
    def noise_floors(self) -> NDArray[np.float64]:
        """What two samples of each pooled pair would give (N, N); NaN where it was not asked for."""
        return self._square(lambda distance: distance.noise_floor)

    @property
    def beyond_noise(self) -> NDArray[np.float64]:
        """How much of each distance (N, N) is beyond noise; NaN where no floor was measured."""
        return self._square(lambda distance: distance.beyond_noise)

    @property
    def within_noise(self) -> NDArray[np.bool_]:
        """Which distances (N, N) are within noise, those on the diagonal included."""
        return (self._square(lambda distance: bool(distance.within_noise)) + np.eye(len(self))).astype(np.bool_)

    def __len__(self) -> int:
        """How many datasets there are."""
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        """Their names."""
        return iter(self.names)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """The values, for NumPy."""
        return np.array(self.values, dtype=dtype)

    def __getitem__(self, pair: tuple[str, str]) -> Distance:
        """The distance between two different datasets, by name."""
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise SotddError(f"a distance is looked up by two names, such as matrix['a', 'b'], not by {pair!r}.")
        i, j = sorted(self._index(name) for name in pair)
        if i == j:
            raise SotddError(f"{pair[0]!r} is at distance 0 from itself: name two different datasets.")
        return self.distances[i, j]

    def nearest(self, name: str) -> str:
        """The first of `rank`, which also has those that are not significantly different from it."""
        if len(self) < 2:
            raise SotddError("there is only one dataset: nothing is nearest to it.")
        return self.rank(name).nearest

    def rank(self, name: str) -> Ranking:
        """The others from the nearest to the farthest, as `sotdd.rank` has them."""
        index = self._index(name)
        pairs = {other: tuple(sorted((i, index))) for i, other in enumerate(self.names) if i != index}
        return Ranking.of(name, {other: self.distances[i, j] for other, (i, j) in pairs.items()})

    ranking = rank  # as it was called first

    def __repr__(self) -> str:
        """A table of values and errors, and what to know of it."""
        rows = [["", *self.names], *([name, *["0"] * len(self)] for name in self.names)]
        for (i, j), distance in self.distances.items():
            cell = with_error(distance.value, distance.stderr) + (" ~" if distance.within_noise else "")
            rows[i + 1][j + 1] = rows[j + 1][i + 1] = cell
        lines = align_rows(rows)
        if any(distance.within_noise for distance in self.distances.values()):
            lines.append("~ within noise: no farther apart than two samples of the two together")
        return "\n".join([*lines, *map(str, gather_remarks(self.distances.values()))])

    def to_dict(self) -> dict[str, Any]:
        """Names, values, errors and every distance as JSON values."""
        has_floors = any(distance.noise is not None for distance in self.distances.values())
        return {
            "names": list(self.names),
            "values": self.values.tolist(),
            "stderr": [[json_number(cell) for cell in row] for row in self.stderr.tolist()],
            **({"within_noise": self.within_noise.tolist()} if has_floors else {}),
            "settings": None if self.projections is None else self.projections.recipe(),
            "distances": [
                {"a": self.names[i], "b": self.names[j]}  # the names of columns are among the settings
                | {name: value for name, value in distance.to_dict().items() if name != "columns"}
                for (i, j), distance in self.distances.items()
            ],
        }

    def to_csv(self, path: str | PathLike[str] | None = None) -> str:
        """The values as a table with a header row and names in the first column, also written to a path if given."""
        text = io.StringIO()
        rows = ([name, *row] for name, row in zip(self.names, self.values.tolist(), strict=True))
        csv.writer(text, lineterminator="\n").writerows([["", *self.names], *rows])
        if path is not None:
            write_whole(path, text.getvalue().encode("utf-8", "backslashreplace"))
        return text.getvalue()

    def to_pandas(self) -> pd.DataFrame:
        """The values as a pandas frame with names on both sides."""
        return make_frame(self.values, index=self.names, columns=self.names)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the distances as a heat map that puts near datasets side by side; returns matplotlib's axes."""
        return picture("matrix")(self, ax)

    def map(self, ax: Axes | None = None) -> Axes:
        """Draw the datasets as points in the plane, with the stress of that map; returns matplotlib's axes."""
        return picture("map")(self, ax)

    def dendrogram(self, ax: Axes | None = None) -> Axes:
        """Draw how datasets join into groups; returns matplotlib's axes."""
        return picture("dendrogram")(self, ax)

    def _index(self, name: object) -> int:
        if str(name) not in self.names:
            raise SotddError(f"there is no dataset {name!r} here: the names are {', '.join(self.names)}.")
        return self.names.index(str(name))

    def _square(self, number: Callable[[Distance], float | None]) -> NDArray[np.float64]:
        """A number of every distance (N, N); NaN for None."""
        square = np.zeros((len(self), len(self)))
        for (i, j), distance in self.distances.items():
            value = number(distance)
            square[i, j] = square[j, i] = np.nan if value is None else value
        return square


@dataclass(frozen=True, eq=False)
class Ranked(Result):
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
class Ranking(Result):
    """Datasets in order, the nearest to a target first.

    `sotdd.rank`, `DistanceMatrix.rank` and `Catalog.nearest` return it. Its answer is ``best``: all
    candidates that are not significantly different from the first one, ``nearest``.

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

        The order is that of `find_limits`. Candidates that are not significantly different from the first come
        right after it, whatever their limits.

        Examples
        --------
        >>> import numpy as np, sotdd
        >>> rng = np.random.default_rng(0)
        >>> here, many, few = (rng.normal(size=(n, 4)) for n in (2000, 1000, 50))
        >>> order = sotdd.pairwise({"here": here, "few": few, "many": many, "far": here + 2}).rank("here")
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
        """The name of the candidate that comes first, if you need a single one; ``best`` has all that may be it."""
        return self.lines[0].name

    @property
    def best(self) -> tuple[str, ...]:
        """The names of the candidates that are not significantly different from the first, itself included."""
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
        no_mark = "  " if any(line.distance.within_noise for line in self.lines) else ""
        for line in self.lines:
            one = line.distance
            cells = [f"{line.rank}{'=' if line.tied else no_tie}", line.name, f"{one.n_points[1]:,}"]
            cells.append(with_error(one.value, one.stderr) + (" ~" if one.within_noise else no_mark))
            if self._know_noise():
                cells.append(f"{one.beyond_noise:.3g}")
            rows.append([*cells, *("" if line.metadata.get(key) is None else str(line.metadata[key]) for key in keys)])
        return rows

    @property
    def number_columns(self) -> list[int]:
        """Which columns of the table hold numbers."""
        return [0, 2, 3, 4][: 3 + self._know_noise()]

    @property
    def legend(self) -> list[str]:
        """How to read the table."""
        within, known = any(line.distance.within_noise for line in self.lines), self._know_noise()
        said = {
            "beyond noise: distance minus its expected sampling noise; the order adds one standard error": known,
            "= not significantly different": any(line.tied for line in self.lines),
            "~ within noise: as near as two samples of the same data": within,
        }
        return [text for text, applies in said.items() if applies]

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
