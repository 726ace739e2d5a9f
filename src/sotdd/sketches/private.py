"""Sketches that may be shown to others: counts with noise, at a stated ε and δ.

**What is promised.** Two datasets are neighbours where one has a row more than the other. What a builder releases is
(ε, δ)-differentially private: of neighbours, no set of results is more than exp(ε) times as likely with one as with the
other, but for δ.

**Every bound holds for any row whatever**: rows are bounded here, not trusted. Projected values beyond five spreads
count in the outermost bins. The label polynomials of a row, each divided by its root mean square over a normal law, are
brought back together to a known length, block by block, and rounded to whole steps towards zero.

`sotdd.sketches.noise` says how much noise is added to what.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sotdd.basics.errors import SotddError, check_positive, describe
from sotdd.basics.remarks import Remark
from sotdd.basics.resources import check_fits
from sotdd.basics.text import say_count
from sotdd.compute.slices import ProjectedPoints
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.inputs.sparse import is_sparse
from sotdd.inputs.tensors import is_tensor
from sotdd.projections.labels import CUT, LabelTerms
from sotdd.projections.projections import Projections
from sotdd.sketches.builder import adds_up, check_name, open_batch
from sotdd.sketches.noise import Noise, estimate_masses, estimate_shift, find_mass_quantiles, load_opendp
from sotdd.sketches.quantiles import QUANTILES, check_quantiles
from sotdd.sketches.saved_projections import SavedProjections, check_projections
from sotdd.sketches.sketch import Sketch
from sotdd.sketches.sums import cut_blocks, draw_weights, project_batch

Doubles = NDArray[np.float64]
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

    def __init__(
        self,
        projections: Projections,
        *,
        classes: Sequence[Hashable],
        max_label: float = _LABELS,
    ) -> None:
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
        unknown = [label for label in batch.classes if label not in self.classes]
        if unknown:
            raise SotddError(
                f"class {unknown[0]!r} is not among classes=: list all that can occur, as public knowledge."
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
        sizes, terms, variances = release_terms(counts, noise)
        edges = counts.edges(terms)
        noisy, variance = noise.add("bins", counts.place(terms, edges), counts.lengths()["bins"])
        shares, sizes = _estimate_shares(sizes), np.maximum(sizes, 0)
        sizes[0] += 0 if sizes.any() else 1
        masses = estimate_masses(noisy, variance, float(sizes.sum()))
        weights = draw_weights(self.projections)
        by_bins = estimate_shift(masses, variance, edges, levels, weights)
        off = math.hypot(by_bins, math.sqrt(np.mean(weights * (variances @ shares))))
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
        self.classes: tuple[Hashable, ...] = tuple(classes)
        self.max_label: float = check_positive(max_label, "max_label")
        if self.max_label > _LONGEST_LABELS:
            raise SotddError(f"is {describe(max_label)}: expected at most {_LONGEST_LABELS:g}.", setting="max_label")
        shape = len(self.classes), projections.n_projections
        what = f"counts of {say_count(shape[0], 'class', 'classes')} × {say_count(shape[1], 'projection')}"
        check_fits(8 * FINE * shape[0] * shape[1], what, "n_projections", shape[1])
        self.spreads: Doubles = _measure_spreads(projections)
        self.sizes: Whole = np.zeros(shape[0], np.int64)
        self.sums: Whole = np.zeros(shape, np.int64)
        self.fine: Whole = np.zeros((*shape, FINE), np.int64)
        self._totals, self._squares = np.zeros(shape[1]), np.zeros(shape[1])
        self._weights: Doubles = np.concatenate([terms.weights for terms in _draw_terms(projections)])
        self._number = {label: number for number, label in enumerate(self.classes)}

    def lengths(self) -> dict[str, float]:
        """By how much one row more or less can change each thing that is released: the root of the sum of squares."""
        root = math.sqrt(self.projections.n_projections)
        return {"sizes": 1.0, "sums": self.max_label / STEP * root, "bins": root}

    def add(self, batch: LabelledData) -> None:
        """Count a batch whose classes are all known."""
        for label, count in zip(batch.classes, batch.counts.tolist(), strict=True):
            self.sizes[self._number[label]] += count
        for points, some, _ in project_batch(batch, self.projections):
            points.engine.workers.each(partial(self._count, batch=some), cut_blocks(points))

    def refuse_own_projections(self) -> None:
        """Refuse projections that these very rows are the centre of: scale and tilt would tell of them without noise.

        No other misuse of private rows shows in the projections.
        """
        n_points = max(1, int(self.sizes.sum()))
        centred = np.abs(self._totals) / n_points < _CENTRED * np.sqrt(self._squares / n_points)
        if n_points > 1 and self.projections.scaler is not None and centred.all():
            raise SotddError(
                "the projections were fitted on the rows that are to be protected, and would tell of them: fit them on "
                "public data."
            )

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
            for number in range(len(self.classes)):
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


def _draw_terms(projections: Projections) -> list[LabelTerms]:
    """The label terms of every block."""
    return [block.terms for _, block in projections.blocks()]


def _measure_spreads(projections: Projections) -> Doubles:
    """(L,) the root mean square of each label polynomial over a normal law: what its sums are counted in units of.

    The law has the spread of scaled data; no data are seen.
    """
    places = np.linspace(-6, 6, 481)
    density = np.exp(-(places**2) / 2)
    blocks = []
    for terms in _draw_terms(projections):
        values = _evaluate(terms, np.broadcast_to(places, (len(terms.weights), places.size)))
        blocks.append(np.sqrt(values**2 @ density / density.sum()))
    whole = np.concatenate(blocks)
    return np.where(whole > 0, whole, 1.0)


def _evaluate(terms: LabelTerms, rows: Doubles) -> Doubles:
    """What label terms are means of (B, m), of projected values (B, m), which are cut first."""
    return terms.point_terms(np.clip(rows, -REACH, REACH))


def release_terms(counts: ExactCounts, noise: Noise) -> tuple[Whole, Doubles, Doubles]:
    """Noisy sizes of classes (C,), label terms (L, C) made of noisy sums, and the mean square errors of these (L, C).

    Terms are drawn towards that of all points as far as they may be noise. That is empirical Bayes: classes vary, and
    noise does by a known amount.
    """
    lengths, unit = counts.lengths(), STEP * counts.spreads
    found, size_variance = noise.add("sizes", counts.sizes, lengths["sizes"])
    steps, step_variance = noise.add("sums", counts.sums, lengths["sums"])
    sums, sizes = steps * unit, np.maximum(found, 1.0)
    low, high = (ends[:, None] for ends in _find_ranges(counts.projections))  # (L, 1)
    raw = (sums / sizes[:, None]).T  # (L, C)
    centre = np.clip(sums.sum(axis=0)[:, None] / max(1, np.maximum(found, 0).sum()), low, high)
    variances = ((step_variance * unit**2)[:, None] + centre**2 * size_variance) / sizes**2
    between = np.maximum(((raw - centre) ** 2 - variances) @ _estimate_shares(found), 0.0)[:, None]
    drawn = np.divide(between, between + variances, out=np.zeros(variances.shape), where=between + variances > 0)
    return found, np.clip(centre + drawn * (raw - centre), low, high), drawn * variances


def _estimate_shares(sizes: Whole) -> Doubles:
    """(C,) the share of points that each class has, about."""
    held = np.maximum(sizes, 0)
    return held / held.sum() if held.any() else np.full(len(sizes), 1 / len(sizes))


def _find_ranges(projections: Projections) -> tuple[Doubles, Doubles]:
    """(L,) the lowest and the highest mean that a label polynomial can have."""
    places = np.linspace(-1, 1, 257)
    blocks = [_evaluate(terms, np.tile(places * min(terms.limit, REACH), (len(terms.weights), 1)))
              for terms in _draw_terms(projections)]  # fmt: skip
    values = np.concatenate(blocks)
    return values.min(axis=1), values.max(axis=1)
