"""What goes to an engine, what goes from it to collectors, and why a projection came out unusable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import OutOfRange, SotddError
from sotdd.basics.memory import kept_property
from sotdd.inputs.data import LabelledData
from sotdd.projections.draws import Block
from sotdd.projections.labels import Quantiles, Summaries
from sotdd.projections.moments import LabelTerms, Polynomials

if TYPE_CHECKING:
    from sotdd.compute.cpu.engine import CpuEngine
    from sotdd.compute.torch.engine import TorchEngine


# ------------------------------------------------------------------ what is seen through projections


@dataclass(frozen=True, eq=False)
class ByClass:
    """A dataset whose rows are wanted class after class, each sorted on its own; it has no class moments."""

    data: LabelledData


Seen: TypeAlias = LabelledData | ByClass


@dataclass(frozen=True, eq=False)
class Sorted:
    """All datasets through one chunk of projections.

    Attributes
    ----------
    part
        Which projections.
    rows
        Of each dataset, its sorted rows, in a form of the engine's own, valid until the next chunk.
    block
        The projections as drawn.
    terms
        Of each dataset, its class terms (B, C), in a form of the engine's own.
    places
        Of each dataset, mean and deviation of its points under the draw and under further ones, (B, 1 + J, 2), where
        further draws were asked for; in a form of the engine's own.
    values
        Of each dataset, the mean of t, the mean square of class means, and three even moments, (B, 5), where class
        moments were asked for.
    means
        Of each of these datasets, means over its scaled points: of |x|², |x|⁴ and |x|⁶, of |m|² with the mean of the
        class of each, and of the points themselves, (4 + d,).
    """

    part: slice
    rows: list[Any]
    block: Block
    terms: list[Any]
    places: list[Any]
    values: list[Any]
    means: list[Any]


# Both engines have the same verbs, each in rows (B, n) of a form of its own, for the time of a ``with`` block.
Engine: TypeAlias = "CpuEngine | TorchEngine"


@dataclass(frozen=True, eq=False)
class Pool:
    """The points of several datasets under some projections, before class terms are added.

    Attributes
    ----------
    engine
        The engine whose rows these are.
    rows
        (B, N) feature projections, one dataset after another, points in their own order.
    label_rows
        What class terms are computed from: these very rows, unless labels have directions of their own.
    terms
        How labels enter.
    cells
        What an engine keeps of the points for every plan that it splits them by.
    """

    engine: Engine
    rows: Any
    label_rows: Any
    terms: LabelTerms
    cells: dict[object, Any] = field(default_factory=dict, init=False)

    @property
    def shared(self) -> bool:
        """Whether class terms are computed from feature projections."""
        return self.label_rows is self.rows

    def values(self) -> NDArray[np.float32]:
        """The projections (B, N) as an array."""
        return self.engine.fetch_rows(self.rows)

    @kept_property
    def ranked(self) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """The projections (B, N) in order, and which point each is of."""
        order = np.concatenate(self.engine.workers.each(lambda row: np.argsort(row)[None], self.values()))
        return np.take_along_axis(self.values(), order, axis=1), order.astype(np.int32)

    def take(self, index: NDArray[np.integer]) -> Pool:
        """Some of the points."""
        return self._change(lambda rows: self.engine.take_points(rows, index))

    def bring_near(self, deviations: float) -> Pool:
        """The same points, those farther from the median than this many deviations brought that near."""
        return self._change(lambda rows: self.engine.bring_near(rows, deviations))

    def part(self, some: slice) -> Pool:
        """Some of the projections."""
        return replace(self._change(lambda rows: rows[some]), terms=self.terms.part(some))

    def _change(self, change: Callable[[Any], Any]) -> Pool:
        rows = change(self.rows)
        return replace(self, rows=rows, label_rows=rows if self.shared else change(self.label_rows))


@dataclass(frozen=True, eq=False)
class Projected:
    """All datasets through one chunk of projections, before class terms are known; valid until it is looked at.

    Attributes
    ----------
    engine
        The engine at work.
    part, block
        Which projections, and these as drawn.
    rows
        Of each dataset, its projections (B, n) by each of the directions of the block, points in their own order.
    """

    engine: Engine
    part: slice
    block: Block
    rows: list[Any]

    def pool(self, members: tuple[int, ...], count: int | None = None) -> Pool:
        """The points of some of the datasets together, under the first ``count`` projections or all."""
        parts = zip(*(self.rows[one] for one in members), strict=True)
        joined = [self.engine.join_points([rows[:count] for rows in part]) for part in parts]
        return Pool(self.engine, joined[0], joined[-1], self.block.terms.part(slice(count)))


# ------------------------------------------------------------------ why a projection came out unusable

# Class terms must fit float32 with room for the feature that is added.
LARGEST_TERM = 1e38


def describe_overflow(name: str, projection: int) -> SotddError:
    """Features that float32 products cannot hold."""
    return OutOfRange(
        f"features of dataset {name!r} are too large for float32 products (projection {projection:,} is not finite)",
        use={"scale": "pooled"},
    )


def describe_bad_term(name: str, largest: float, terms: LabelTerms, line: int, projection: int) -> SotddError:
    """A label term that is not finite or too large, at ``line`` of ``terms``; ``largest`` is the largest |t|."""
    if not np.isfinite(largest) or isinstance(terms, Quantiles):  # quantiles are means of values: these are at fault
        return describe_overflow(name, projection)
    if isinstance(terms, Summaries):
        return SotddError(
            f"the label law's summary of dataset {name!r} is not finite in projection {projection:,}: check its "
            "summary function."
        )
    assert isinstance(terms, Polynomials)
    order = int(terms.degrees[line])
    return OutOfRange(
        f"class moments of dataset {name!r} overflow: order {order} of projected values as large as {largest:.3g} "
        f"(projection {projection:,}). Use scale='pooled', bring outliers in, or take lower orders, such as "
        "moments=sotdd.projections.UniformOrders(4)."
    )


def refuse_bad_terms(
    name: str, rows: NDArray[np.float32], terms: NDArray[np.float64], drawn: LabelTerms, start: int
) -> None:
    """Refuse class terms (B, C) that rows cannot be shifted by; these rows are what the terms were computed from."""
    fits = np.abs(terms) < LARGEST_TERM  # NaN is not smaller than anything
    if not fits.all():
        line = int(np.argmin(fits.all(axis=1)))
        raise describe_bad_term(name, float(np.abs(rows[line]).max()), drawn, line, start + line)
