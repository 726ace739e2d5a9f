"""Projections: what every dataset of a comparison is projected by."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sotdd.basics.errors import SotddError, check_limit, describe
from sotdd.basics.resources import Stream, generator, kept_property, serial_blas
from sotdd.basics.text import say_count
from sotdd.inputs import open_all
from sotdd.inputs.agreement import order_columns
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.inputs.schema import Names
from sotdd.projections.directions import DirectionLaw, ExplicitDirections, Hadamard, ImportanceSampled, Law
from sotdd.projections.label_laws import LabelLaw
from sotdd.projections.labels import ExplicitMoments, LabelTerms, Moments, check_orders, moment_terms
from sotdd.projections.maps import (
    BLOCK,
    Block,
    DirectionMap,
    Directions,
    check_directions,
    check_numbers,
    count_orders,
    join_maps,
)
from sotdd.projections.rotations import FEWEST_FEATURES, HadamardDirections, Rotation, rotation_size
from sotdd.projections.scaler import Scaler

if TYPE_CHECKING:
    from sotdd.projections.settings import ProjectionKeywords

# Blocks up to this size together are sampled once and kept, for comparisons that share projections: by them these take
# a tenth less time.
_KEPT_BYTES = 64 << 20


@dataclass(frozen=True, eq=False)
class Projections:
    """How datasets are projected: the laws, the seed and the scaler. It holds no data.

    Made by `fit` or `from_arrays`. Datasets are comparable when they are projected by
    projections with the same fingerprint.

    Attributes
    ----------
    n_features, n_projections
        Their sizes, d and L.
    directions, label
        The laws that they are sampled from, or what holds explicit arrays.
    seed
        What is sampled follows from it; None for explicit arrays.
    scaler
        What is done to features first; None for nothing.
    columns
        The names of the features, where they have names: data with names are matched by them.
    shared_directions
        Whether labels are projected along the directions of features, φ = θ.
    first_block
        Where the projections begin.
    order
        Of columns with names, the feature that each coordinate of a sampled direction belongs to, so that directions
        do not depend on how columns are called and ordered; None for coordinates in the order of the features.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(size=(50, 4)), rng.normal(size=(40, 4))
    >>> projections = sotdd.Projections.fit([a, b], n_projections=200, seed=7)
    >>> projections
    Projections(200 of 4 features, tilted sphere, seed 7)
    >>> sotdd.distance(a, b, projections=projections).value == sotdd.distance(b, a, projections=projections).value
    True
    """

    n_features: int
    n_projections: int
    directions: DirectionLaw | ExplicitDirections
    label: LabelLaw | ExplicitMoments
    seed: int | None
    scaler: Scaler | None = None
    columns: Names | None = None
    shared_directions: bool = True
    first_block: int = 0
    order: tuple[int, ...] | None = None

    @classmethod
    def fit(
        cls,
        datasets: Sequence[Dataset] | Mapping[str, Dataset],
        *,
        tilt: bool = True,
        **drawing: Unpack[ProjectionKeywords],
    ) -> Projections:
        """Learn the number of features and the scaler from datasets; the rest is given.

        Parameters
        ----------
        datasets
            Those that will be compared, or a sample of them.
        n_projections
            How many projections, L. The error falls with its square root.
        n_moments
            How many moments of a class enter, k; 5 unless ``moments`` says otherwise.
        moments
            The law of their orders: `ZeroTruncatedPoisson`, `UniformOrders`, or plain rates.
            By default zero-truncated Poisson with rates 1, …, k.
        label_law
            How a class enters: "moments" (default), the paper's, cut at five spreads of scaled features, or at
            2.5 where every feature has a scale of its own; "paper", without the cut; "quantiles" for
            `ClassQuantiles`; or a label law. With the last two, neither of the two above may be given.
        directions
            The law of directions: `Hadamard` (the default from 128 features on), `Sphere` (the default below),
            `Orthogonal`, `Convolution`, your own.
        label_directions
            "shared": one direction serves a point's features and the term of its class, as in the paper's Algorithm 1
            and its authors' code. "own": terms are computed along directions φ of their own, from the same law without
            a tilt, as in the paper's definition: twice the products, and no label controls.
        scale
            "pooled": subtract the mean of all points and divide by one scalar so that the average
            projection has variance one. "features": scale every feature by its own robust spread. "arcsinh":
            then take the inverse hyperbolic sine, so that tails count by their logarithm. "auto": "arcsinh" for
            columns with names, "pooled" for arrays, images and embeddings; see `Scaler.fit`. None: the paper's raw
            definition. Or a `Scaler` to reuse.
        seed
            An integer, or a NumPy Generator from which one is drawn.
        tilt
            Whether more directions of `Sphere` or `Hadamard` are sampled near the principal directions of the
            datasets, with weights that correct for it; see `sotdd.projections.ImportanceSampled`. It makes distances a
            few times as exact, also between other datasets. Tests and references use the same laws without it.
        """
        from sotdd.projections.settings import DEFAULT_SETTINGS

        return DEFAULT_SETTINGS.but(drawing).fit(open_all(datasets), tilt=tilt)

    @classmethod
    def from_arrays(
        cls,
        *,
        theta: ArrayLike,
        psi: ArrayLike,
        orders: ArrayLike,
        phi: ArrayLike | None = None,
        clamp: float | None = None,
        cut: float | None = None,
    ) -> Projections:
        """Take explicit draws; features are not scaled.

        Parameters
        ----------
        theta
            (L, d) directions.
        psi
            (L, k + 1) weights: of the feature, then of each moment.
        orders
            (L, k) moment orders, at least 1.
        phi
            (L, d) directions of labels; None for those of ``theta``.
        clamp
            Cut projected values to ±clamp.
        cut
            Take moments of values cut to ±cut, and leave the features as they are; see `Moments`.

        Examples
        --------
        >>> import sotdd
        >>> one = sotdd.Projections.from_arrays(theta=[[1.0]], psi=[[1.0, 0.0]], orders=[[1]])
        >>> sotdd.distance([[0.0], [1.0]], [[2.0], [3.0]], projections=one).value
        2.0
        """
        arrays = [check_numbers(theta, "theta", (None, None)).copy()]
        n_projections, n_features = arrays[0].shape
        if phi is not None:
            arrays.append(check_numbers(phi, "phi", (n_projections, n_features)).copy())
        weights = check_numbers(psi, "psi", (n_projections, None)).astype(np.float64)
        powers = check_orders(check_numbers(orders, "orders", (n_projections, weights.shape[1] - 1)))
        for array in (*arrays, weights, powers):
            array.flags.writeable = False
        directions = ExplicitDirections(tuple(arrays), check_limit(clamp, "clamp"))
        moments = ExplicitMoments(weights, powers, check_limit(cut, "cut"))
        return cls(n_features, n_projections, directions, moments, None, shared_directions=phi is None)

    @classmethod
    def restore(
        cls,
        settings: Mapping[str, Any],
        scaler: Scaler | None,
        fingerprint: str,
        tilt: ImportanceSampled | None = None,
    ) -> Projections:
        """The projections that settings and a fingerprint belong to, or an error that says why they cannot be had.

        Laws of a user's own and arrays that were given are known by name or by hash only; a ``tilt`` that was learnt
        from data comes beside the settings.

        Examples
        --------
        >>> import numpy as np, sotdd
        >>> original = sotdd.Projections.fit([np.eye(3)], n_projections=64, seed=5)
        >>> again = sotdd.Projections.restore(original.recipe(), original.scaler, original.fingerprint, original.tilt)
        >>> again.fingerprint == original.fingerprint
        True
        """
        tilted = tilt is not None and dict(tilt.describe()) == dict(settings["directions"])
        known = {field.name: settings[field.name] for field in fields(cls) if field.name in settings}
        known["directions"] = tilt if tilted else Law.restore(settings["directions"])
        known |= {"label": Law.restore(settings["label"]), "scaler": scaler}
        known |= {name: tuple(settings[name]) for name in ("columns", "order") if name in settings}
        restored = cls(**known)
        if restored.fingerprint != fingerprint:
            raise SotddError("its projections come out differently when drawn with the libraries installed here")
        return restored

    def __repr__(self) -> str:
        """Sizes, law and seed, for people."""
        settings = cast("dict[str, Any]", self.recipe())
        seed = f", seed {settings['seed']}" if "seed" in settings else ""
        law = settings["directions"].get("law", "own law")
        return f"Projections({self.n_projections:,} of {say_count(self.n_features, 'feature')}, {law}{seed})"

    def draw(self, start: int, stop: int) -> Block:
        """Draw projections start, …, stop - 1; ``start`` is a multiple of 64.

        A projection is the same whatever portion it is drawn in.
        """
        whole = all(isinstance(value, (int, np.integer)) and not isinstance(value, bool) for value in (start, stop))
        if not whole or start % BLOCK or not 0 <= start < min(stop, self.n_projections):
            raise SotddError(
                f"start and stop are {describe(start)} and {describe(stop)}: expected a multiple of {BLOCK}, and more "
                f"than that, of {say_count(self.n_projections, 'projection')}."
            )
        start, stop = int(start), min(int(stop), self.n_projections)
        return self._blocks(start // BLOCK, -(-stop // BLOCK)).part(slice(stop - start))

    def blocks(self) -> Iterator[tuple[slice, Block]]:
        """Draw block after block, without any data; which projections each has, and the draws."""
        for start in range(0, self.n_projections, BLOCK):
            block = self.draw(start, start + BLOCK)
            yield slice(start, start + len(block)), block

    def _blocks(self, first: int, last: int) -> Block:
        """Whole blocks; kept for the next comparison where all blocks together are small."""
        kept = self._kept.get((first, last))
        if kept is None:
            kept = self._sample(first, last)
            small = 4 * self.n_projections * self.n_features <= _KEPT_BYTES
            if small and sum(map(len, list(self._kept.values()))) < 2 * self.n_projections:  # in one portion or two
                kept.freeze()
                self._kept[first, last] = kept
        return kept

    @serial_blas.hold()
    def _sample(self, first: int, last: int) -> Block:
        numbers = range(self.first_block + first, self.first_block + last)
        directions = [self._sample_directions(self.directions, numbers, Stream.DIRECTIONS)]
        if not self.shared_directions:  # weights are those of θ alone
            directions.append(self._sample_directions(self.evenly().directions, numbers, Stream.LABEL_DIRECTIONS))
        return Block(tuple(directions), self._sample_terms(numbers, Stream.LABEL_TERMS, BLOCK))

    def _sample_directions(
        self, law: DirectionLaw | ExplicitDirections, numbers: range, stream: Stream
    ) -> DirectionMap:
        """Sample the directions of some blocks, of which several may share a rotation."""
        if isinstance(law, ExplicitDirections):
            return Directions(law.arrays[0 if stream == Stream.DIRECTIONS else -1][_find_rows(numbers)], law.clamp)
        # A class of a user's own that derives from these may sample otherwise.
        if self.rotation_size is not None and type(law) in (Hadamard, ImportanceSampled):
            stretch = law if isinstance(law, ImportanceSampled) else None
            return HadamardDirections.sample_blocks(
                self.seed or 0, stream, numbers, self._rotations, self.n_features, stretch
            ).reorder(self.order)
        sizes, name = (BLOCK, self.n_features), type(law).__name__
        return join_maps(
            [
                check_directions(law.draw(rng, *sizes), name, *sizes).reorder(self.order)
                for rng in self._start(stream, numbers)
            ]
        )

    def _sample_terms(self, numbers: range, stream: Stream, count: int) -> LabelTerms:
        """Sample label terms, as many for each of some blocks."""
        law, name = self.label, type(self.label).__name__
        if isinstance(law, ExplicitMoments):
            rows = _find_rows(numbers)
            return moment_terms(law.psi[rows], law.orders[rows], law.cut)
        if type(law) is Moments:
            return law.sample_blocks(self._start(stream, numbers), count)
        return LabelTerms.join(
            [LabelTerms.check(law.draw(rng, count), name, count) for rng in self._start(stream, numbers)]
        )

    def _start(self, stream: Stream, numbers: range) -> list[np.random.Generator]:
        """Start the generator of each block: it follows from the seed, the purpose and the block's number alone."""
        return [generator(self.seed or 0, stream, number) for number in numbers]

    def sample_further(self, first: int, counted: NDArray[np.float64]) -> None:
        """Sample the label law again for projections from block ``first`` on: write weights of t and of the moments.

        As a `Block` has them, as many samples for each projection. The first column is left to their own terms.
        """
        first, (n_projections, _, columns) = first + self.first_block, counted.shape
        numbers, stream = range(first, first - (-n_projections // BLOCK)), Stream.MORE_LABEL_TERMS
        if type(self.label) is Moments:
            self.label.count_orders(self._start(stream, numbers), counted)
            return
        terms = self._sample_terms(numbers, stream, (columns - 1) * BLOCK).part(slice((columns - 1) * n_projections))
        shape = n_projections, columns - 1, -1
        count_orders(terms.weights.reshape(shape[:2]), terms.coefficients.reshape(shape), counted[:, :, 1:])

    @kept_property
    def _kept(self) -> dict[tuple[int, int], Block]:
        return {}

    @kept_property
    def _rotations(self) -> dict[tuple[Stream, int], Rotation]:
        return {}

    def __getstate__(self) -> dict[str, object]:
        """What is sampled again rather than copied stays behind."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_kept", "_rotations")}

    @property
    def label_key(self) -> Hashable:
        """What further samples of the label law follow from; None where they are not known to be the same again."""
        return (self.label, self.seed, self.first_block) if type(self.label) is Moments else None

    def from_block(self, first: int, n_projections: int) -> Projections:
        """``n_projections`` projections of the same laws, from block ``first`` of 64 on; there is no last one."""
        if self.seed is None:
            raise SotddError("projections given as arrays cannot be continued: fit them instead.")
        return replace(self, n_projections=n_projections, first_block=self.first_block + first)

    @property
    def uniform(self) -> bool:
        """Whether means over directions are those of uniform ones, by their weights."""
        return bool(getattr(self.directions, "uniform", False))

    @property
    def rotation_size(self) -> int | None:
        """How many projections share the work of one fast transform; None where each is projected along by itself."""
        structured = getattr(self.directions, "structured", False) and self.n_features >= FEWEST_FEATURES
        return rotation_size(self.n_features) if structured else None

    @property
    def n_directions(self) -> int:
        """How many directions a projection has: one that features and labels share, or one for each."""
        return 1 if self.shared_directions else 2

    @property
    def weighted(self) -> bool:
        """Whether projections have different weights in a mean, as those that are sampled by importance."""
        return self._blocks(0, 1).features.importance is not None

    @property
    def tilt(self) -> ImportanceSampled | None:
        """The law of directions where it was learnt from data; None for others."""
        return self.directions if isinstance(self.directions, ImportanceSampled) else None

    def evenly(self) -> Projections:
        """The same without importance sampling: directions that all have the same weight."""
        return self if self.tilt is None else replace(self, directions=self.tilt.even)

    def recipe(self) -> dict[str, object]:
        """Every setting in JSON values."""
        for law in (self.directions, self.label):
            if not isinstance(law.describe(), Mapping):
                raise SotddError(f"{type(law).__name__}.describe() must return a mapping of JSON values.")
        return {
            "n_features": self.n_features,
            "n_projections": self.n_projections,
            "directions": dict(self.directions.describe()),
            "label": dict(self.label.describe()),
            **({} if self.seed is None else {"seed": self.seed}),
            "shared_directions": self.shared_directions,
            **({"first_block": self.first_block} if self.first_block else {}),
            "scaler": None if self.scaler is None else self.scaler.to_dict(),
            **({} if self.columns is None else {"columns": list(self.columns)}),
            **({} if self.order is None else {"order": list(self.order)}),
        }

    @kept_property
    def fingerprint(self) -> str:
        """A short name for exactly these projections.

        Hashes the settings and some of the numbers drawn from them, since a seed alone does not
        promise the same draws in another version of a library. Numbers are rounded, so that machines
        whose last bits differ agree.
        """
        settings = {**self.recipe(), "scaler": None if self.scaler is None else self.scaler.fingerprint()}
        try:
            text = json.dumps(settings, sort_keys=True)
        except TypeError as error:
            raise SotddError(
                f"a law's describe() returned more than JSON values ({error}): check that method."
            ) from error
        digest = hashlib.sha256(text.encode())
        for numbers in self._list_numbers():
            digest.update(np.ascontiguousarray(numbers).tobytes())
        return digest.hexdigest()[:16]

    @kept_property
    def split_seed(self) -> int:
        """A seed for splits of the data, which names and the order of columns have no part in."""
        if self.columns is None:
            return int(self.fingerprint, 16)
        scaler = self.scaler
        if scaler is not None and self.order is not None:
            scale = scaler.scale if isinstance(scaler.scale, float) else scaler.scale[[*self.order]]
            scaler = replace(scaler, centre=scaler.centre[[*self.order]], scale=scale)
        return int(replace(self, scaler=scaler, columns=None, order=None).fingerprint, 16)

    def _list_numbers(self) -> list[NDArray[Any]]:
        """All numbers of explicit arrays; or of the first block sampled, the terms and part of a projection."""
        if isinstance(self.directions, ExplicitDirections) and isinstance(self.label, ExplicitMoments):
            return [*self.directions.arrays, self.label.psi, self.label.orders]
        block = self._blocks(0, 1)
        probe = np.linspace(-1, 1, self.n_features, dtype=np.float32)[None, :]
        directions = [drawn.sample(probe) for drawn in block.directions]
        numbers = block.terms.weights, block.terms.coefficients, *directions
        return [np.round(np.asarray(part, np.float64), 5) + 0.0 for part in numbers]  # + 0.0: there is one zero

    def check(self, data: LabelledData) -> None:
        """Refuse a dataset that these projections are not for."""
        if data.n_features != self.n_features:
            raise SotddError(
                f"dataset {data.name!r} has {say_count(data.n_features, 'feature')} but the projections are for "
                f"{self.n_features:,}: fit projections on the datasets that are compared."
            )
        self.check_shape(data.point_shape, data.name)

    def check_shape(self, point_shape: tuple[int, ...], name: str) -> None:
        """Refuse points of a shape that the law of directions is not for, where it minds that."""
        check = getattr(self.directions, "check_points", None)
        if check is not None:
            check(point_shape, name)

    def align(self, data: LabelledData) -> LabelledData:
        """A dataset with its columns in the order of these projections, or an error where it is not for them."""
        if data.columns is not None and self.columns is not None:
            centre = None if self.scaler is None else self.scaler.centre
            data = order_columns(data, self.columns, "the dataset that the projections were fitted on", centre)
        self.check(data)
        return data


def _find_rows(numbers: range) -> slice:
    """Which explicit projections some blocks have."""
    return slice(numbers.start * BLOCK, numbers.stop * BLOCK)
