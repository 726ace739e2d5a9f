"""Projections: the recipe that every dataset of a comparison is seen through."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sotdd.basics.checks import as_array, check_limit, describe
from sotdd.basics.errors import SotddError
from sotdd.basics.memory import kept_property
from sotdd.basics.text import say_count
from sotdd.inputs import open_all
from sotdd.inputs.agreement import order_columns
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.inputs.schema import Names
from sotdd.projections.directions import Law, Tilted
from sotdd.projections.draws import BLOCK, Arrays, Block, Laws, Source
from sotdd.projections.moments import check_orders
from sotdd.projections.scaler import Scaler

if TYPE_CHECKING:
    from sotdd.projections.drawing import DrawingSettings

# Directions up to this size together are drawn once and kept, for comparisons that share projections.
_KEPT_BYTES = 64 << 20


@dataclass(frozen=True, eq=False)
class Projections:
    """How datasets are projected: the laws, the seed and the scaler. It holds no data.

    Made by `fit` or `from_arrays`. Datasets are comparable when they are seen through
    projections with the same fingerprint.

    Attributes
    ----------
    n_features, n_projections
        Their sizes, d and L.
    scaler
        What is done to features first; None for nothing.
    source
        Where the projections are drawn from.
    columns
        The names of the features, where they have names: data with names are matched by them.

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
    source: Source
    scaler: Scaler | None
    columns: Names | None = None

    @classmethod
    def fit(
        cls,
        datasets: Sequence[Dataset] | Mapping[str, Dataset],
        *,
        tilt: bool = True,
        **drawing: Unpack[DrawingSettings],
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
            Whether directions of `Sphere` or `Hadamard` lean towards the principal directions of the
            datasets, with weights that correct for it; see `sotdd.projections.Tilted`. It makes distances a few times
            as exact, also between other datasets. Other laws of directions are never tilted. Tests and
            references use the same projections without a tilt.
        """
        from sotdd.projections.drawing import DRAWING

        return DRAWING.but(drawing).fit(open_all(datasets), tilt=tilt)

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
        given = {"theta": theta} if phi is None else {"theta": theta, "phi": phi}
        directions = tuple(_matrix(rows, name) for name, rows in given.items())
        weights = _matrix(psi, "psi").astype(np.float64)
        powers = check_orders(_matrix(orders, "orders"))
        shape = directions[0].shape
        if not shape[0] == len(weights) == len(powers) or weights.shape[1] != powers.shape[1] + 1:
            raise SotddError(
                f"theta {shape}, psi {weights.shape} and orders {powers.shape} do not fit: expected "
                "(L, d), (L, k + 1) and (L, k)."
            )
        if directions[-1].shape != shape:
            raise SotddError(f"phi has shape {directions[-1].shape} but theta has {shape}: expected the same.")
        source = Arrays(directions, weights, powers, check_limit(clamp, "clamp"), check_limit(cut, "cut"))
        return cls(shape[1], shape[0], source, None)

    @classmethod
    def restore(
        cls, recipe: Mapping[str, Any], scaler: Scaler | None, fingerprint: str, tilt: Tilted | None = None
    ) -> Projections:
        """The projections that a recipe and a fingerprint belong to, or an error that says why they cannot be had.

        Laws of a user's own and arrays that were given are known by name or by hash only; a ``tilt`` that was learnt
        from data comes beside the recipe.

        Examples
        --------
        >>> import numpy as np, sotdd
        >>> original = sotdd.Projections.fit([np.eye(3)], n_projections=64, seed=5)
        >>> again = sotdd.Projections.restore(original.recipe(), original.scaler, original.fingerprint, original.tilt)
        >>> again.fingerprint == original.fingerprint
        True
        """
        tilted = tilt is not None and dict(tilt.describe()) == dict(recipe["directions"])
        settings = {field.name: recipe[field.name] for field in fields(Laws) if field.name in recipe}
        settings["directions"] = tilt if tilted else Law.restore(recipe["directions"])
        settings["label"] = Law.restore(recipe["label"])
        columns = tuple(recipe["columns"]) if "columns" in recipe else None
        restored = cls(recipe["n_features"], recipe["n_projections"], Laws(**settings), scaler, columns)
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
        if 4 * self.n_projections * self.n_features > _KEPT_BYTES:
            return self.source.blocks(first, last)
        kept = self._kept.get((first, last))
        if kept is not None:
            return kept
        block = self.source.blocks(first, last)
        block.freeze()
        if sum(len(other) for other in list(self._kept.values())) < 2 * self.n_projections:  # in one portion or two
            self._kept[first, last] = block
        return block

    @kept_property
    def _kept(self) -> dict[tuple[int, int], Block]:
        return {}

    def __getstate__(self) -> dict[str, object]:
        """What is drawn again rather than copied stays behind."""
        return {name: value for name, value in self.__dict__.items() if name != "_kept"}

    def from_block(self, first: int, n_projections: int) -> Projections:
        """``n_projections`` projections of the same laws, from block ``first`` of 64 on; there is no last one."""
        if not isinstance(self.source, Laws):
            raise SotddError("projections given as arrays cannot be continued: fit them instead.")
        source = replace(self.source, first_block=self.source.first_block + first) if first else self.source
        return replace(self, n_projections=n_projections, source=source)

    @property
    def is_sampled(self) -> bool:
        """Whether they are sampled from laws, by a seed: then more of them may follow."""
        return isinstance(self.source, Laws)

    def adapt(self, seed: int, **changes: Any) -> Projections:  # noqa: ANN401  # as `replace` takes them
        """The same laws with another seed, and perhaps for other features."""
        assert isinstance(self.source, Laws)
        source = replace(self.source, seed=seed, n_features=changes.get("n_features", self.n_features))
        return replace(self, source=source, **changes)

    def draw_further(self, first: int, counted: NDArray[np.float64]) -> None:
        """Draw the label law again for projections from block ``first`` on; see `Laws.draw_further`."""
        assert isinstance(self.source, Laws)
        self.source.draw_further(first, counted)

    @property
    def label_key(self) -> Hashable:
        """What further draws of the label law follow from; None where they are not known to be the same again."""
        laws = self.source
        return (laws.label, laws.seed, laws.first_block) if isinstance(laws, Laws) and laws.repeats else None

    @property
    def seed(self) -> int | None:
        """The seed that they are sampled by; None where they were explicit arrays."""
        return self.source.seed if isinstance(self.source, Laws) else None

    @property
    def uniform(self) -> bool:
        """Whether means over directions are those of uniform ones, by their weights."""
        return isinstance(self.source, Laws) and getattr(self.source.directions, "uniform", False)

    @property
    def turn_size(self) -> int | None:
        """How many projections share the work of one fast transform; None where each is projected along by itself."""
        return self.source.turn_size if isinstance(self.source, Laws) else None

    @property
    def n_directions(self) -> int:
        """How many directions a projection has: one that features and labels share, or one for each."""
        return 1 if self.source.shared_directions else 2

    @property
    def weighted(self) -> bool:
        """Whether projections count differently in a mean, as those do that are tilted."""
        return getattr(self._blocks(0, 1).features, "importance", None) is not None

    @property
    def tilt(self) -> Tilted | None:
        """The law of directions where it was learnt from data; None for others."""
        laws = self.source
        return laws.directions if isinstance(laws, Laws) and isinstance(laws.directions, Tilted) else None

    def evenly(self) -> Projections:
        """The same without a tilt: directions that all count the same."""
        laws = self.source
        if not isinstance(laws, Laws) or not isinstance(laws.directions, Tilted):
            return self
        return replace(self, source=replace(laws, directions=laws.directions.even))

    def recipe(self) -> dict[str, object]:
        """Every setting in JSON values."""
        return {
            "n_features": self.n_features,
            "n_projections": self.n_projections,
            **self.source.describe(),
            "scaler": None if self.scaler is None else self.scaler.to_dict(),
            **({} if self.columns is None else {"columns": list(self.columns)}),
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
        for numbers in self._sample():
            digest.update(np.ascontiguousarray(numbers).tobytes())
        return digest.hexdigest()[:16]

    def _sample(self) -> list[NDArray[Any]]:
        """All numbers of explicit arrays; or of the first block drawn, the terms and part of a projection."""
        if isinstance(self.source, Arrays):
            return [*self.source.directions, self.source.psi, self.source.orders]
        block = self._blocks(0, 1)
        probe = np.linspace(-1, 1, self.n_features, dtype=np.float32)[None, :]
        drawn = [directions.sample(probe) for directions in block.directions]
        numbers = block.terms.weights, block.terms.coefficients, *drawn
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
        check = getattr(getattr(self.source, "directions", None), "check_points", None)
        if check is not None:
            check(point_shape, name)

    def align(self, data: LabelledData) -> LabelledData:
        """A dataset with its columns in the order of these projections, or an error where it is not for them."""
        if data.columns is not None and self.columns is not None:
            centre = None if self.scaler is None else self.scaler.centre
            data = order_columns(data, self.columns, "the dataset that the projections were fitted on", centre)
        self.check(data)
        return data


def _matrix(values: ArrayLike, name: str) -> NDArray[Any]:
    matrix = as_array(values, name).copy()
    if matrix.ndim != 2 or matrix.size == 0 or matrix.dtype.kind not in "iuf":
        raise SotddError(
            f"{name} has shape {matrix.shape} and dtype {matrix.dtype}: expected a matrix of "
            "numbers, one row per projection."
        )
    if not np.isfinite(matrix).all():
        raise SotddError(f"{name} holds NaN or infinity: expected finite numbers.")
    matrix.flags.writeable = False
    return matrix
