"""A sketch of parts that come and go: today's rows in, yesterday's out."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from os import PathLike
from typing import Self

from numpy.typing import ArrayLike

from sotdd.basics.checks import described
from sotdd.basics.errors import SotddError
from sotdd.basics.files import read_whole, write_whole
from sotdd.basics.text import counted, quoted
from sotdd.inputs.data import Dataset
from sotdd.projections.recipe import Projections
from sotdd.sketches.builder import SketchBuilder, check_name
from sotdd.sketches.levels import QUANTILES, Levels, checked_levels
from sotdd.sketches.sketch import Sketch
from sotdd.sketches.statistics import opened_batch, refuse_beyond_memory


class SketchWindow:
    """Parts of a dataset by name, each counted on its own, and the sketch of all of them together.

    A part that is taken out leaves nothing behind: the sketch is that of the parts that are left, to the last bit,
    but for its halves, which are random. A window is a file as a sketch is, and whatever takes a sketch file
    (`sotdd.distance`, ``sotdd check``) takes a file of a window as the sketch of its parts.

    Parameters
    ----------
    projections
        What the data are projected by.
    n_quantiles
        How many numbers the sketch keeps of each projection.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> days = {day: (rng.normal(size=(500, 3)), rng.integers(2, size=500)) for day in ("mon", "tue", "wed")}
    >>> projections = sotdd.Projections.fit([days["mon"]], n_projections=64)
    >>> window = sotdd.SketchWindow(projections)
    >>> for day, rows in days.items():
    ...     _ = window.add(day, *rows)
    >>> window.forget("mon")
    SketchWindow(2 parts: 'tue', 'wed'; 1,000 points, 64 projections)
    >>> window.finish("two days")
    Sketch('two days': 1,000 points, 2 classes, 64 projections × 384 quantiles)
    """

    def __init__(self, projections: Projections, *, n_quantiles: int = QUANTILES) -> None:
        self.levels: Levels = checked_levels(n_quantiles)
        SketchBuilder(projections)  # refuses what cannot be merged
        self.projections = projections
        self.parts: dict[str, SketchBuilder] = {}

    @property
    def n_quantiles(self) -> int:
        """How many numbers the sketch will keep of each projection."""
        return self.levels.count

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parts, oldest first."""
        return tuple(self.parts)

    @property
    def n_points(self) -> int:
        """How many points all parts have together."""
        return sum(part.n_points for part in self.parts.values())

    def __repr__(self) -> str:
        """Parts and sizes, for people."""
        named = ", ".join(quoted(name) for name in self.names[:3]) + (", …" if len(self.parts) > 3 else "")
        parts = counted(len(self.parts), "part") + (f": {named}" if named else "")
        points, projections = counted(self.n_points, "point"), counted(self.projections.n_projections, "projection")
        return f"SketchWindow({parts}; {points}, {projections})"

    def add(self, part: str, features: Dataset, labels: ArrayLike | Sequence[Hashable] | None = None) -> Self:
        """Add rows to a part, which is begun where there is none of this name; features alone are one class."""
        check_name(part)
        batch = opened_batch(features, labels, self.projections)
        if batch is None:
            return self
        known = {label for each in self.parts.values() for label in each.statistics.counts}
        refuse_beyond_memory(len(known | set(batch.classes)), self.projections.n_projections)
        builder = self.parts.get(part)
        if builder is None:
            builder = SketchBuilder(self.projections, n_quantiles=self.n_quantiles)
        builder.add_opened(batch)
        self.parts[part] = builder
        return self

    def forget(self, part: str) -> Self:
        """Take a part out."""
        check_name(part)
        if part not in self.parts:
            there = ", ".join(quoted(name) for name in self.names[:6]) or "no part at all"
            raise SotddError(f"there is no part {described(part)} to forget: there is {there}.")
        del self.parts[part]
        return self

    def finish(self, name: str = "window") -> Sketch:
        """The sketch of all parts together."""
        whole = SketchBuilder(self.projections, n_quantiles=self.n_quantiles)
        for part in self.parts.values():
            whole.merge(part)
        return whole.finish(name)

    def save(self, path: str | PathLike[str]) -> None:
        """Write one file, whole or not at all; it holds counts and sums, not data points."""
        from sotdd.sketches.file import window_to_bytes

        write_whole(path, window_to_bytes(self))

    @classmethod
    def load(cls, path: str | PathLike[str], projections: Projections | None = None) -> SketchWindow:
        """Read a file that `save` wrote; pass projections only if they use laws of your own."""
        from sotdd.sketches.file import window_from_bytes

        return window_from_bytes(read_whole(path, "a file of a window"), path, projections)
