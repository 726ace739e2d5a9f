"""Sketches that may be shown to others: counts with noise, at a stated ε and δ; docs/privacy.md says what that means.

**Every bound holds for any row whatever**: rows are bounded here, not trusted. Projected values beyond five spreads
count in the outermost bins. The label polynomials of a row, each divided by its root mean square over a normal law, are
brought back together to a known length, block by block, and rounded to whole steps towards zero.

**The noise is OpenDP's**, on vectors of whole numbers throughout. A row changes each of the three things that are
released by no more than a known length, the root of the sum of squares. The noise follows the discrete normal law,
whose costs add up as ρ of zero-concentrated privacy, also where a later release depends on earlier noisy ones; OpenDP
says which ρ an ε and a δ allow. What is made of noisy numbers costs no further privacy.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise
from types import ModuleType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sotdd.basics.errors import SotddError, as_number, check_positive, describe, require
from sotdd.basics.remarks import Remark
from sotdd.basics.resources import check_fits
from sotdd.basics.text import say_count
from sotdd.compute.slices import ProjectedPoints
from sotdd.inputs.arrays import is_sparse, is_tensor
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.projections.labels import CUT, LabelTerms
from sotdd.projections.projections import Projections
from sotdd.sketches.builder import adds_up, check_name, open_batch
from sotdd.sketches.quantiles import QUANTILES, Levels, check_quantiles
from sotdd.sketches.saved_projections import SavedProjections, check_projections
from sotdd.sketches.sketch import Sketch
from sotdd.sketches.sums import Doubles, draw_weights, project_batch

Whole = NDArray[np.int64]

# Projected values count as at most this far from zero, in spreads of scaled data.
REACH = CUT
# Bins of each class and projection up to there, which are put together before they are released.
FINE = 1024
# Sums of label polynomials are counted in steps of this share of their spread.
STEP = 2.0**-16
# Lengths are held to this much less than the bound, so that rounding of float64 never carries them beyond it.
_WITHIN = 1 - 2.0**-40
# How long the label polynomials of a row may be together, in units of their length over a normal law.
_LABELS, _LONGEST_LABELS = 6.0, 1e4
# More bins would be finer, and noisier.
_BINS, _MOST_CLASSES = 32, 100_000
# Rows whose projections all have means below this share of their spread are the ones that the scaler was fitted on.
_CENTRED = 1e-5
# How much of the budget each release gets. Sizes of classes are single numbers, and need the least.
SHARES = {"sizes": 0.04, "sums": 0.48, "bins": 0.48}
_SMALLEST_EPSILON, _LARGEST_EPSILON, _SMALLEST_DELTA = 1e-6, 100.0, 1e-12
# Points begin where a running sum rises by more than this many standard deviations of the noise on all bins together.
# Lower, and noise is taken for points far from all others; higher, and tails are cut off, which costs less.
_BEYOND_NOISE = 0.9


class PrivateBuilder:
    """Counts rows, and releases a sketch of them with noise: (ε, δ)-differential privacy of each row.

    Rows are bounded as they are added. Exact counts stay inside until `release`, which forgets them: keep a builder
    where its rows are. The sketch compares, saves and loads like any other. Datasets are neighbours where one has a row
    more; docs/privacy.md says what is not protected. Needs ``pip install 'sotdd[private]'``.

    Parameters
    ----------
    projections
        What the data are projected by. Their scale and their tilt must come from public data, never from the rows that
        are to be protected: nothing here can hide what they say.
    classes
        All labels that there can be, known in public: which of them occur is protected.
    max_label
        What a row adds to the sums of label polynomials is brought back to this many times their length over a normal
        law. By default 6; a larger one for data with heavy tails, at more noise.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> public, x, y = rng.normal(size=(500, 3)), rng.normal(1, 1, size=(20_000, 3)), rng.integers(2, size=20_000)
    >>> projections = sotdd.Projections.fit([public], n_projections=32)
    >>> released = sotdd.PrivateBuilder(projections, classes=[0, 1]).add(x, y).release(epsilon=1, delta=1e-6)
    >>> released.classes, released.distance(sotdd.sketch((x, y), projections)).value < 0.2
    ((0, 1), True)
    """

    def __init__(self, projections: Projections, *, classes: Sequence[Hashable], max_label: float = _LABELS) -> None:
        projections = check_projections(projections)
        if not adds_up(projections):
            raise SotddError(
                "only sums of moments can be noised for privacy: fit projections with label_law='moments'."
            )
        load_opendp()  # before hours of counting
        self.projections = projections
        self.classes: tuple[Hashable, ...] = _check_classes(classes)
        self._counts: ExactCounts | None = ExactCounts(projections, self.classes, max_label)

    def __repr__(self) -> str:
        """Settings, for people; how many points there are is not said."""
        classes = say_count(len(self.classes), "class", "classes")
        return f"PrivateBuilder({classes}, {'released' if self._counts is None else 'counting'})"

    def add(self, features: Dataset, labels: ArrayLike | Sequence[Hashable] | None = None) -> Self:
        """Add a batch of arrays; its labels must be among the classes, and features alone are one class.

        Tables, files and opened datasets are refused: how they are read depends on all of their rows together, such as
        the mean that fills gaps, the bins of a target or the commonest categories.
        """
        counts = self._exact()
        points = features[0] if isinstance(features, tuple) and len(features) == 2 else features
        if not (isinstance(points, (np.ndarray, list)) or is_tensor(points) or is_sparse(points)):
            raise SotddError(
                f"{describe(points)} is read by what all of its rows have in common, so one row would change others: "
                "expected an array without gaps. Encode and fill in by public values first."
            )
        batch = open_batch(features, labels, self.projections)
        if batch is None:
            return self
        for label in batch.classes:
            if label not in self.classes:
                raise SotddError(
                    f"class {label!r} is not among classes=: list all that can occur, as public knowledge."
                )
        self._counts = None  # a batch that fails half way must not be added again: its rows would count twice
        counts.add(batch)
        self._counts = counts
        return self

    def release(self, *, epsilon: float, delta: float, name: str = "data", n_quantiles: int = QUANTILES) -> Sketch:
        """The sketch that the noise leaves of all points added; exact counts are forgotten.

        Its distances have no bound on their error, and no noise floor: a remark says what was done and about how far
        off they are. Noise cannot be seeded.

        Parameters
        ----------
        epsilon, delta
            The budget. Delta should be far below one in as many points as there are.
        name, n_quantiles
            As in `SketchBuilder`.
        """
        check_name(name)
        levels, noise, counts = check_quantiles(n_quantiles), Noise(epsilon, delta), self._exact()
        counts.refuse_own_projections()
        self._counts = None
        sizes, terms, errors = release_terms(counts, noise)
        edges = counts.edges(terms)
        noisy, variance = noise.add("bins", counts.place(terms, edges), counts.lengths()["bins"])
        sizes[0] += 0 if sizes.any() else 1
        masses = estimate_masses(noisy, variance, float(sizes.sum()))
        weights = draw_weights(self.projections)
        by_bins = estimate_shift(masses, variance, edges, levels, weights)
        off = math.hypot(by_bins, math.sqrt(np.mean(weights * errors)))
        return Sketch(
            name,
            SavedProjections.of(self.projections),
            find_mass_quantiles(masses, edges, levels),
            False,
            self.classes,
            sizes,
            terms.astype(np.float32),
            weights,
            remarks=(Remark("private", name=name, epsilon=noise.epsilon, delta=noise.delta, off=off),),
        )

    def _exact(self) -> ExactCounts:
        """The exact counts, while there are any that can be used."""
        if self._counts is None:
            raise SotddError("these rows are released, or a batch failed half way: start a new builder.")
        return self._counts


def _check_classes(classes: object) -> tuple[Hashable, ...]:
    values = classes.tolist() if isinstance(classes, np.ndarray) else classes
    if isinstance(values, Sequence) and not isinstance(values, (str, bytes)) and 0 < len(values) <= _MOST_CLASSES:
        with suppress(TypeError):  # what cannot be a label
            return tuple(dict.fromkeys(values))
    raise SotddError(
        f"is {describe(classes)}: expected a list of all labels, at most {_MOST_CLASSES:,}.", setting="classes"
    )


class ExactCounts:
    """Counts and sums of bounded rows, without noise: all are whole numbers.

    Attributes
    ----------
    sizes
        (C,) how many points each class has.
    sums
        (C, L) sums of the label polynomials over each class, in steps of `STEP` times `spreads` (L,).
    fine
        (C, L, F) counts of projected values.
    """

    def __init__(self, projections: Projections, classes: Sequence[Hashable], max_label: object = _LABELS) -> None:
        if projections.scaler is None:
            raise SotddError("these projections do not scale features, so no row is bounded: fit them with a scale.")
        self.projections: Projections = projections
        self.max_label: float = check_positive(max_label, "max_label")
        if self.max_label > _LONGEST_LABELS:
            raise SotddError(f"is {describe(max_label)}: expected at most {_LONGEST_LABELS:g}.", setting="max_label")
        shape = len(classes), projections.n_projections
        what = f"counts of {say_count(shape[0], 'class', 'classes')} × {say_count(shape[1], 'projection')}"
        check_fits(8 * FINE * shape[0] * shape[1], what, "n_projections", shape[1])
        self._blocks = [block.terms for _, block in projections.blocks()]
        self.spreads: Doubles = _measure_spreads(self._blocks)
        self.sizes: Whole = np.zeros(shape[0], np.int64)
        self.sums: Whole = np.zeros(shape, np.int64)
        self.fine: Whole = np.zeros((*shape, FINE), np.int64)
        self._totals, self._squares = np.zeros(shape[1]), np.zeros(shape[1])
        self._weights: Doubles = np.concatenate([terms.weights for terms in self._blocks])
        self._number = {label: number for number, label in enumerate(classes)}

    def lengths(self) -> dict[str, float]:
        """By how much one row more or less can change each thing that is released: the root of the sum of squares."""
        root = math.sqrt(self.projections.n_projections)
        return {"sizes": 1.0, "sums": self.max_label / STEP * root, "bins": root}

    def add(self, batch: LabelledData) -> None:
        """Count a batch whose classes are all known."""
        for label, count in zip(batch.classes, batch.counts.tolist(), strict=True):
            self.sizes[self._number[label]] += count
        project_batch(batch, self.projections, lambda some, _, points: self._count(points, some))

    def refuse_own_projections(self) -> None:
        """Refuse projections that these very rows are the centre of: scale and tilt would tell of them without noise.

        No other misuse of private rows shows in the projections.
        """
        n_points = max(1, int(self.sizes.sum()))
        centred = np.abs(self._totals) / n_points < _CENTRED * np.sqrt(self._squares / n_points)
        if n_points > 1 and centred.all():
            raise SotddError(
                "the projections were fitted on the rows that are to be protected, and would tell of them: fit them on "
                "public data."
            )

    def find_ranges(self) -> tuple[Doubles, Doubles]:
        """(L, 1) the lowest and the highest mean that a label polynomial can have."""
        places = np.linspace(-1, 1, 257)
        reached = [np.tile(places * min(terms.limit, REACH), (len(terms.weights), 1)) for terms in self._blocks]
        values = np.concatenate([_evaluate(*one) for one in zip(self._blocks, reached, strict=True)])
        return values.min(axis=1, keepdims=True), values.max(axis=1, keepdims=True)

    def edges(self, terms: Doubles) -> Doubles:
        """(L, H + 1) bins that cover all that points can be projected to, with label terms (L, C)."""
        farthest = np.abs(self._weights) * REACH
        low, high = terms.min(axis=1) - farthest, terms.max(axis=1) + farthest
        edges: Doubles = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, _BINS + 1)
        return edges

    def place(self, terms: Doubles, edges: Doubles) -> Whole:
        """Counts (L, H) of all points in bins with edges (L, H + 1), where classes have these label terms (L, C).

        Every point counts once under each projection, where the middle of its fine bin lies, and points beyond the
        edges in the outermost bins.
        """
        n_bins = edges.shape[1] - 1
        out = np.zeros((len(edges), n_bins), np.int64)
        middles = ((np.arange(FINE) + 0.5) / FINE * 2 - 1) * REACH
        for line, (weight, low, high) in enumerate(zip(self._weights, edges[:, 0], edges[:, -1], strict=True)):
            width = max(high - low, 1e-300)
            for number in range(len(self.sizes)):
                at = np.floor((weight * middles + terms[line, number] - low) / width * n_bins)
                bins = np.clip(at, 0, n_bins - 1).astype(np.int64)
                np.add.at(out[line], bins, self.fine[number, line])
        return out

    def _count(self, points: ProjectedPoints, batch: LabelledData) -> None:
        part = points.part
        rows = np.nan_to_num(points.fetch()).astype(np.float64)
        self._totals[part] += rows.sum(axis=1)
        self._squares[part] += np.einsum("bm,bm->b", rows, rows)
        of_labels = np.nan_to_num(points.fetch_label_rows()).astype(np.float64)
        values = _evaluate(points.terms, of_labels) / self.spreads[part][:, None]
        most = _WITHIN * self.max_label * math.sqrt(len(values))
        values *= np.minimum(1.0, most / np.maximum(np.sqrt(np.einsum("bm,bm->m", values, values)), 1e-300))
        steps = np.trunc(values / STEP).astype(np.int64)
        at = np.floor((rows / REACH + 1) * (FINE / 2))
        bins = np.clip(at, 0, FINE - 1).astype(np.int64) + FINE * np.arange(len(at))[:, None]
        for label, (first, last) in zip(batch.classes, pairwise(batch.offsets.tolist()), strict=True):
            number, members = self._number[label], slice(first, last)
            self.sums[number, part] += steps[:, members].sum(axis=1)
            found = np.bincount(bins[:, members].ravel(), minlength=FINE * len(at))
            self.fine[number, part] += found.reshape(len(at), FINE)


def _evaluate(terms: LabelTerms, rows: Doubles) -> Doubles:
    """What label terms are means of (B, m), of projected values (B, m), which are cut first."""
    return terms.point_terms(np.clip(rows, -REACH, REACH))


def _measure_spreads(blocks: Sequence[LabelTerms]) -> Doubles:
    """(L,) the root mean square of each label polynomial over a normal law: what its sums are counted in units of.

    The law has the spread of scaled data; no data are seen.
    """
    places = np.linspace(-6, 6, 481)
    density = np.exp(-(places**2) / 2)
    values = np.concatenate([_evaluate(terms, np.tile(places, (len(terms.weights), 1))) for terms in blocks])
    spreads = np.sqrt(values**2 @ density / density.sum())
    return np.where(spreads > 0, spreads, 1.0)


def release_terms(counts: ExactCounts, noise: Noise) -> tuple[Whole, Doubles, Doubles]:
    """Noisy sizes of classes (C,), label terms (L, C) of noisy sums, and their mean square errors (L,) over points.

    Terms are drawn towards that of all points as far as they may be noise. That is empirical Bayes: classes vary, and
    noise does by a known amount.
    """
    lengths, unit = counts.lengths(), STEP * counts.spreads
    found, size_variance = noise.add("sizes", counts.sizes, lengths["sizes"])
    steps, step_variance = noise.add("sums", counts.sums, lengths["sums"])
    sums, sizes, held = steps * unit, np.maximum(found, 1.0), np.maximum(found, 0)
    shares = held / held.sum() if held.any() else np.full(len(held), 1 / len(held))  # of points, about
    low, high = counts.find_ranges()
    raw = (sums / sizes[:, None]).T  # (L, C)
    centre = np.clip(sums.sum(axis=0)[:, None] / max(1, held.sum()), low, high)
    variances = ((step_variance * unit**2)[:, None] + centre**2 * size_variance) / sizes**2
    between = np.maximum(((raw - centre) ** 2 - variances) @ shares, 0.0)[:, None]
    drawn = np.divide(between, between + variances, out=np.zeros(variances.shape), where=between + variances > 0)
    return held, np.clip(centre + drawn * (raw - centre), low, high), (drawn * variances) @ shares


# ------------------------------------------------------------------ noise


class Noise:
    """Noise of a budget, from OpenDP and the random numbers of the operating system."""

    def __init__(self, epsilon: float, delta: float) -> None:
        self.epsilon: float = check_positive(epsilon, "epsilon", "a positive number, such as 1")
        if not _SMALLEST_EPSILON <= self.epsilon <= _LARGEST_EPSILON:
            limits = f"{_SMALLEST_EPSILON:g} to {_LARGEST_EPSILON:g}"
            raise SotddError(f"is {describe(epsilon)}: expected a number from {limits}.", setting="epsilon")
        number = as_number(delta)
        if number is None or not _SMALLEST_DELTA <= number <= 0.1:
            raise SotddError(
                f"is {describe(delta)}: expected a number from {_SMALLEST_DELTA:g} to 0.1, far below one in as many "
                "points as there are, such as 1e-6.",
                setting="delta",
            )
        self.delta: float = number

    def scale(self, name: str, length: float) -> float:
        """The standard deviation of the noise on what a row changes by this length, for its share of the budget."""
        return unit_scale(self.epsilon, self.delta) * length / math.sqrt(SHARES[name])

    def mechanism(self, name: str, length: float) -> Any:  # noqa: ANN401  # OpenDP's Measurement
        """What adds the noise; its ``map`` tells what it costs of ρ."""
        dp = load_opendp()
        numbers = dp.vector_domain(dp.atom_domain(T="i64"))
        return dp.m.make_gaussian(numbers, dp.l2_distance(T="f64"), scale=self.scale(name, length))

    def add(self, name: str, numbers: Whole, length: float) -> tuple[Whole, float]:
        """Noisy numbers, and the variance of the noise."""
        noisy = self.mechanism(name, length)(numbers.ravel().tolist())
        return np.array(noisy, np.int64).reshape(numbers.shape), self.scale(name, length) ** 2


@lru_cache(maxsize=64)
def unit_scale(epsilon: float, delta: float) -> float:
    """The least standard deviation of normal noise on one number of sensitivity 1 that keeps to a budget."""
    dp = load_opendp()
    space = dp.atom_domain(T="i64"), dp.absolute_distance(T="f64")

    def keeps(scale: float) -> bool:
        curve = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=scale)).map(1.0)
        return bool(curve.epsilon(delta) <= epsilon)

    return float(dp.binary_search(keeps, bounds=(0.05, 1e9)))


def load_opendp() -> ModuleType:
    """OpenDP, with its mechanisms switched on, or an error that says how to install it."""
    dp = require("opendp.prelude", "a private release", "'sotdd[private]'")
    dp.enable_features("contrib")  # a switch for the whole process, without which OpenDP makes no mechanism
    return dp


def estimate_masses(noisy: NDArray[np.integer], variance: float, total: float) -> Doubles:
    """Masses (L, H) that sum to ``total`` in every row, from counts (L, H) with noise of this variance.

    Noise in empty bins would be mass far from all points, which transport pays for by its distance. So the bins before
    the first and after the last that hold points beyond noise are emptied; the others are brought to the nearest counts
    that are not negative and sum to the number of points.
    """
    masses = np.zeros(noisy.shape)
    for row, out in zip(noisy.astype(np.float64), masses, strict=True):
        first = _find_first_filled(row, variance)
        last = len(row) - _find_first_filled(row[::-1], variance)
        if first >= last:  # nothing stands out
            first, last = 0, len(row)
        out[first:last] = _project_onto_simplex(row[first:last], total)
    return masses


def find_mass_quantiles(masses: Doubles, edges: Doubles, levels: Levels) -> NDArray[np.float32]:
    """Means (L, Q) over parts of probability, of masses (L, H) that lie evenly between edges (L, H + 1)."""
    out = np.empty((len(masses), levels.count), np.float32)
    for row, places, means in zip(masses, edges, out, strict=True):
        cumulative = np.concatenate([[0.0], np.cumsum(row)]) / row.sum()
        cumulative[-1] = 1.0
        moments = np.concatenate([[0.0], np.cumsum(np.diff(cumulative) * (places[1:] + places[:-1]) / 2)])
        at = np.clip(np.searchsorted(cumulative, levels.edges, side="right") - 1, 0, len(row) - 1)
        share = cumulative[at + 1] - cumulative[at]
        taken = np.clip(levels.edges - cumulative[at], 0.0, share)
        within = np.divide(taken, share, out=np.zeros_like(taken), where=share > 0)
        integral = moments[at] + taken * (places[at] + within * (places[at + 1] - places[at]) / 2)
        means[:] = np.maximum.accumulate(np.diff(integral) / levels.shares)
    return out


def estimate_shift(masses: Doubles, variance: float, edges: Doubles, levels: Levels, weights: Doubles) -> float:
    """How far noise of this variance carries masses from themselves, in W_2 over projections that count by weights.

    They are noised once more and compared, which says about how far they are from what they were before their noise.
    """
    total = float(masses[0].sum())
    again = np.rint(masses + np.sqrt(variance) * np.random.default_rng(0).standard_normal(masses.shape))
    here = find_mass_quantiles(masses, edges, levels)
    there = find_mass_quantiles(estimate_masses(again.astype(np.int64), variance, total), edges, levels)
    return float(np.sqrt(np.mean(weights * ((there - here) ** 2.0 @ levels.shares))))


def _find_first_filled(row: Doubles, variance: float) -> int:
    """Where points begin: the first bin at which the running sum is farther above its lowest than noise carries it."""
    sums = np.cumsum(row)
    risen = sums - np.minimum.accumulate(np.concatenate([[0.0], sums[:-1]]))
    found = np.flatnonzero(risen > _BEYOND_NOISE * np.sqrt(variance * len(row)))
    return int(found[0]) if found.size else 0


def _project_onto_simplex(row: Doubles, total: float) -> Doubles:
    """The nearest numbers that are not negative and have this sum: all are lowered alike, and cut at zero."""
    falling = np.sort(row)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(row) + 1)
    kept = int(np.flatnonzero(falling > excess)[-1])
    nearest: Doubles = np.maximum(row - excess[kept], 0.0)
    return nearest
