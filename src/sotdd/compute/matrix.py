"""A matrix of distances: the result for several datasets."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sotdd.basics.errors import SotddError, make_frame, picture
from sotdd.basics.files import write_whole
from sotdd.basics.text import align_rows, json_number, with_error
from sotdd.compute.distance import Distance, gather_remarks
from sotdd.compute.ranking import Ranking
from sotdd.projections.projections import Projections

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


# Marks distances within noise in a table.
_NOISE = "~"


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
class DistanceMatrix:
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
        within = self._square(lambda distance: bool(distance.within_noise))
        np.fill_diagonal(within, 1)
        return within.astype(np.bool_)

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
        """Which of the others comes first in `ranking`, which also says what noise cannot tell apart from it."""
        self._index(name)
        if len(self) < 2:
            raise SotddError("there is only one dataset: nothing is nearest to it.")
        return self.ranking(name).nearest

    def ranking(self, name: str) -> Ranking:
        """The others from the nearest to the farthest, as `sotdd.rank` has them."""
        index = self._index(name)
        others = {
            other: self.distances[min(i, index), max(i, index)] for i, other in enumerate(self.names) if i != index
        }
        return Ranking.of(name, others)

    def __repr__(self) -> str:
        """A table of values and errors, and what to know of it."""
        rows = [["0" if i == j else self._cell(i, j) for j in range(len(self))] for i in range(len(self))]
        lines = align_rows([["", *self.names], *([name, *row] for name, row in zip(self.names, rows, strict=True))])
        if any(distance.within_noise for distance in self.distances.values()):
            lines.append(f"{_NOISE} within noise: no farther apart than two samples of the two together")
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
        """The values as a table with a header row and names in the first column.

        Where a path is given, they are also written there, whole or not at all.
        """
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["", *self.names])
        for name, row in zip(self.names, self.values.tolist(), strict=True):
            writer.writerow([name, *row])
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

    def _cell(self, i: int, j: int) -> str:
        distance = self.distances[min(i, j), max(i, j)]
        return with_error(distance.value, distance.stderr) + (f" {_NOISE}" if distance.within_noise else "")

    def _square(self, number: Callable[[Distance], float | None]) -> NDArray[np.float64]:
        """A number of every distance (N, N); NaN for None."""
        square = np.zeros((len(self), len(self)))
        for (i, j), distance in self.distances.items():
            value = number(distance)
            square[i, j] = square[j, i] = np.nan if value is None else value
        return square
