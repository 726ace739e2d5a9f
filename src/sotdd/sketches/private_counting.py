"""What a private builder counts before any noise, and by how much one row can change it.

Every bound holds for any row whatever: rows are bounded here, not trusted. A scaled point longer than ``max_norm`` is
brought back to that length. Projected values beyond ``±reach`` count in the outermost bins. The label polynomials of a
row, each divided by its root mean square over a normal law, are brought back together to a known length, block by
block.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import check_positive, described
from sotdd.basics.errors import SotddError
from sotdd.basics.text import counted
from sotdd.inputs.data import LabelledData
from sotdd.projections.draws import BLOCK
from sotdd.projections.moments import CUT, Polynomials
from sotdd.projections.recipe import Projections
from sotdd.sketches.counting import Portion, for_each_portion
from sotdd.sketches.privacy import Doubles, Lengths

# Bins of each class and projection, from -reach to reach, which are put together before they are released.
FINE = 1024
# How long the label polynomials of a row may be together, in units of their length over a normal law.
_LABELS = 6.0
# How much memory the counts of all classes may take.
_MOST_BYTES = 512 << 20
# Means nearer to the centre than this share of the spread are no chance, but for more points than there are.
_CENTRED = 1e-6
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Bounds:
    """What rows are held to, which is public.

    Attributes
    ----------
    max_norm
        The length of a scaled point.
    reach
        How far from zero projected values are told apart.
    max_label
        The root mean square of a row's label polynomials over the projections of a block, each in units of its own
        root mean square over a normal law.
    """

    max_norm: float
    reach: float
    max_label: float

    @classmethod
    def of(
        cls, projections: Projections, max_norm: object = None, reach: object = None, max_label: object = None
    ) -> Bounds:
        """Those given; or where features are scaled, those that few points of scaled data are beyond."""
        if projections.scaler is None and (max_norm is None or reach is None):
            raise SotddError("these projections do not scale features: pass max_norm= and reach=, in their own units.")
        usual = 3 + 2 * math.sqrt(projections.n_features)
        norm = usual if max_norm is None else check_positive(max_norm, "max_norm", "a positive number or None")
        width = CUT if reach is None else check_positive(reach, "reach", "a positive number or None")
        if not 1e-30 < width < 1e30:
            raise SotddError(f"reach is {described(reach)}: expected a number that float32 can hold with its square.")
        label = _LABELS if max_label is None else check_positive(max_label, "max_label", "a positive number or None")
        if label > 1e6:
            raise SotddError(f"max_label is {described(max_label)}: expected at most 1,000,000; {_LABELS:g} is usual.")
        return cls(norm, width, label)

    def lengths(self, n_projections: int) -> Mapping[str, Lengths]:
        """By how much one row more or less can change each thing that is released; sums in units of `spreads`."""
        root = math.sqrt(n_projections)
        return {
            "sizes": Lengths(1.0, 1.0),
            "sums": Lengths(self.max_label * root, self.max_label * n_projections),
            "bins": Lengths(root, float(n_projections)),
        }

    def hold(self, points: NDArray[np.float32]) -> NDArray[np.float32]:
        """Points (m, d), none of them longer than the bound."""
        finite = np.clip(np.nan_to_num(points.astype(np.float64)), -_LARGEST, _LARGEST)
        lengths = np.linalg.norm(finite, axis=1)
        shrunk = finite * np.minimum(1.0, self.max_norm / np.maximum(lengths, 1e-300))[:, None]
        held: NDArray[np.float32] = shrunk.astype(np.float32)
        return held


def checked_terms(projections: object) -> Projections:
    """Projections whose label terms are means of polynomials, or an error."""
    if not isinstance(projections, Projections):
        raise SotddError(f"projections is {described(projections)}: expected Projections.fit(...) or from_arrays(...).")
    if not isinstance(projections.draw(0, BLOCK).terms, Polynomials):
        raise SotddError("only sums of moments can be noised for privacy: fit projections with label_law='moments'.")
    return projections


def polynomials(projections: Projections, start: int) -> Polynomials:
    """The label polynomials of a block."""
    terms = projections.draw(start, start + BLOCK).terms
    assert isinstance(terms, Polynomials)
    return terms


def spreads(projections: Projections, reach: float) -> Doubles:
    """(L,) the root mean square of each label polynomial over a normal law: what its sums are counted in units of.

    The law has the spread of scaled data, a fifth of the usual reach; no data are seen.
    """
    places = np.linspace(-6, 6, 481)
    density = np.exp(-(places**2) / 2)
    blocks = []
    for start in range(0, projections.n_projections, BLOCK):
        terms = polynomials(projections, start)
        values = _values(terms, np.broadcast_to(places * reach / CUT, (len(terms.weights), places.size)), reach)
        blocks.append(np.sqrt(values**2 @ density / density.sum()))
    whole = np.concatenate(blocks)
    return np.where(whole > 0, whole, 1.0)


def _refuse_beyond_float64(projections: Projections, reach: float) -> None:
    """Refuse a reach at which squares of label polynomials overflow, which no bound would hold."""
    for start in range(0, projections.n_projections, BLOCK):
        terms = polynomials(projections, start)
        with np.errstate(over="ignore"):
            powers = min(terms.limit, reach) ** np.arange(terms.coefficients.shape[1], dtype=np.float64)
            if not (np.abs(terms.coefficients) @ np.minimum(powers, 1e200) < 1e100).all():
                raise SotddError(f"reach is {reach:g}: label terms overflow there; use a smaller one, or a cut.")


class ExactCounts:
    """Counts and sums of the rows of one party, without noise: they never leave it.

    Attributes
    ----------
    sizes
        (C,) how many points each class has.
    sums
        (C, L) sums of the label polynomials over each class, in units of their `spreads`.
    fine
        (C, L, F) counts of projected values.
    """

    def __init__(self, projections: Projections, classes: Sequence[Hashable], bounds: Bounds) -> None:
        self.projections: Projections = projections
        self.classes: tuple[Hashable, ...] = tuple(classes)
        self.bounds: Bounds = bounds
        shape = len(self.classes), projections.n_projections
        if 8 * FINE * shape[0] * shape[1] > _MOST_BYTES:
            raise SotddError(
                f"counts of {counted(shape[0], 'class', 'classes')} × {counted(shape[1], 'projection')} take more than "
                f"{_MOST_BYTES >> 20} MB: use fewer projections, which noise needs anyway."
            )
        _refuse_beyond_float64(projections, bounds.reach)
        self.spreads: Doubles = spreads(projections, bounds.reach)
        self.sizes: NDArray[np.int64] = np.zeros(shape[0], np.int64)
        self.sums: Doubles = np.zeros(shape)
        self.fine: NDArray[np.int64] = np.zeros((*shape, FINE), np.int64)
        self._total, self._squares = np.zeros(projections.n_features), 0.0
        self._number = {label: number for number, label in enumerate(self.classes)}

    def add(self, batch: LabelledData) -> None:
        """Count a batch whose classes are all known."""
        for label, count in zip(batch.classes, batch.counts.tolist(), strict=True):
            self.sizes[self._number[label]] += count
        for_each_portion(batch, self.projections, self._count, self._held)

    def refuse_own_projections(self) -> None:
        """Refuse projections that these very rows are the centre of: scale and tilt would tell of them without noise.

        No other misuse of private rows shows in the projections.
        """
        n_points = int(self.sizes.sum())
        mean, spread = np.linalg.norm(self._total) / max(n_points, 1), math.sqrt(self._squares / max(n_points, 1))
        if n_points > 1 and self.projections.scaler is not None and mean < _CENTRED * spread:
            raise SotddError(
                "the projections were fitted on the rows that are to be protected, and would tell of them: fit them on "
                "public data."
            )

    def _held(self, points: NDArray[np.float32]) -> NDArray[np.float32]:
        wide = np.clip(np.nan_to_num(points.astype(np.float64)), -_LARGEST, _LARGEST)
        self._total += wide.sum(axis=0)
        self._squares += float(np.einsum("md,md->", wide, wide))
        return self.bounds.hold(points)

    def placed(self, terms: Doubles, edges: Doubles) -> NDArray[np.int64]:
        """Counts (L, H) of all points in bins with edges (L, H + 1), where classes have these label terms (L, C).

        Every point counts once under each projection, where the middle of its fine bin lies, and points beyond the
        edges in the outermost bins.
        """
        n_bins = edges.shape[1] - 1
        out = np.zeros((len(edges), n_bins), np.int64)
        middles = ((np.arange(FINE) + 0.5) / FINE * 2 - 1) * self.bounds.reach
        starts = range(0, self.projections.n_projections, BLOCK)
        weights = np.concatenate([polynomials(self.projections, start).weights for start in starts])
        for line, (weight, low, high) in enumerate(zip(weights, edges[:, 0], edges[:, -1], strict=True)):
            width = max(high - low, 1e-300)
            for number in range(len(self.classes)):
                at = np.floor((weight * middles + terms[line, number] - low) / width * n_bins)
                bins = np.clip(at, 0, n_bins - 1).astype(np.int64)
                np.add.at(out[line], bins, self.fine[number, line])
        return out

    def _count(self, portion: Portion) -> None:
        assert isinstance(portion.terms, Polynomials)
        part, reach = portion.part, self.bounds.reach
        values = _values(portion.terms, portion.label_rows, reach) / self.spreads[part][:, None]
        most = self.bounds.max_label * math.sqrt(len(values))
        values *= np.minimum(1.0, most / np.maximum(np.sqrt(np.einsum("bm,bm->m", values, values)), 1e-300))
        at = np.floor((np.nan_to_num(portion.rows.astype(np.float64)) / reach + 1) * (FINE / 2))
        bins = np.clip(at, 0, FINE - 1).astype(np.int64) + FINE * np.arange(len(at))[:, None]
        for index, label in enumerate(portion.classes):
            number, members = self._number[label], slice(*portion.offsets[index : index + 2].tolist())
            self.sums[number, part] += values[:, members].sum(axis=1)
            found = np.bincount(bins[:, members].ravel(), minlength=FINE * len(at))
            self.fine[number, part] += found.reshape(len(at), FINE)


def _values(terms: Polynomials, rows: NDArray[np.floating], reach: float) -> Doubles:
    """The label polynomials (B, m) of projected values (B, m), which are cut first."""
    limit = min(terms.limit, reach)
    cut = np.clip(np.nan_to_num(rows.astype(np.float64)), -limit, limit)
    values = np.zeros(cut.shape)
    for column in terms.coefficients.T[::-1]:
        values *= cut
        values += column[:, None]
    return values
