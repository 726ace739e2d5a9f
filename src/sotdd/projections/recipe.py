"""Projections: the recipe that every dataset of a comparison is seen through."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sotdd.data import Dataset, LabelledData, same_features
from sotdd.errors import SotddError
from sotdd.projections.directions import DirectionLaw, Directions, Sphere
from sotdd.projections.draws import BLOCK, Arrays, Block, Recipe, Source, join_blocks
from sotdd.projections.labels import LabelLaw, Moments, check_count
from sotdd.projections.moments import MomentLaw, ZeroTruncatedPoisson
from sotdd.scaling import Scaler


@dataclass(frozen=True, eq=False)
class Projections:
    """How datasets are projected: the laws, the seed and the scaler. No data are in it.

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

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(size=(50, 4)), rng.normal(size=(40, 4))
    >>> projections = sotdd.Projections.fit([a, b], n_projections=200, seed=7)
    >>> projections
    Projections(200 of 4 features, sphere, seed 7)
    >>> sotdd.distance(a, b, projections=projections).value == sotdd.distance(b, a, projections=projections).value
    True
    """

    n_features: int
    n_projections: int
    source: Source
    scaler: Scaler | None

    @classmethod
    def fit(
        cls,
        datasets: Sequence[Dataset] | Mapping[str, Dataset],
        *,
        n_projections: int = 1000,
        n_moments: int | None = None,
        moments: MomentLaw | Sequence[float] | None = None,
        label: LabelLaw | None = None,
        directions: DirectionLaw | None = None,
        shared_directions: bool = True,
        scale: Literal["pooled"] | Scaler | None = "pooled",
        seed: int | np.random.Generator = 0,
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
        label
            A label law in place of moments; then neither of the two above may be given.
        directions
            The law of directions: `Sphere` (default), `Orthogonal`, `Convolution`, your own.
        shared_directions
            Whether one direction serves features and labels, as in the paper's Algorithm 1, or
            labels get one of their own, as in its general definition (twice the products).
        scale
            "pooled": subtract the mean of all points and divide by one scalar so that the average
            projection has variance one. None: the paper's raw definition. Or a `Scaler` to reuse.
        seed
            An integer, or a NumPy Generator from which one is drawn.
        """
        data = labelled(datasets)
        n_features = same_features(data)
        law = Sphere() if directions is None else directions
        if not isinstance(law, DirectionLaw):
            raise SotddError(
                f"directions is {_kind(law)}: expected Sphere(), Orthogonal(), Convolution(...) or an object with "
                "their methods."
            )
        recipe = Recipe(n_features, law, _label_law(label, n_moments, moments), bool(shared_directions), _key(seed))
        for part in data:
            recipe.check_points(part.point_shape, part.name)
        return cls(n_features, check_count(n_projections, "n_projections"), recipe, scaler_for(scale, data))

    @classmethod
    def from_arrays(
        cls,
        *,
        theta: ArrayLike,
        psi: ArrayLike,
        orders: ArrayLike,
        phi: ArrayLike | None = None,
        clamp: float | None = None,
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
            (L, d) directions for the labels, where they differ from ``theta``.
        clamp
            Cut projected values to ±clamp.

        Examples
        --------
        >>> import sotdd
        >>> one = sotdd.Projections.from_arrays(theta=[[1.0]], psi=[[1.0, 0.0]], orders=[[1]])
        >>> sotdd.distance([[0.0], [1.0]], [[2.0], [3.0]], projections=one).value
        2.0
        """
        directions = _matrix(theta, "theta")
        weights = _matrix(psi, "psi").astype(np.float64)
        powers = _matrix(orders, "orders")
        if not np.array_equal(powers, np.round(powers)) or powers.min() < 1:
            raise SotddError("orders must be whole numbers of at least 1.")
        if not len(directions) == len(weights) == len(powers) or weights.shape[1] != powers.shape[1] + 1:
            raise SotddError(
                f"theta {directions.shape}, psi {weights.shape} and orders {powers.shape} do not fit: expected "
                "(L, d), (L, k + 1) and (L, k)."
            )
        second = None if phi is None else _matrix(phi, "phi")
        if second is not None and second.shape != directions.shape:
            raise SotddError(f"phi has shape {second.shape} but theta has {directions.shape}: expected the same.")
        if clamp is not None and not clamp > 0:
            raise SotddError(f"clamp is {clamp!r}: expected a positive number or None.")
        source = Arrays(directions, second, weights, powers.astype(np.int64), None if clamp is None else float(clamp))
        return cls(directions.shape[1], len(directions), source, None)

    def __repr__(self) -> str:
        """Sizes, law and seed, for people."""
        settings = cast("dict[str, Any]", self.recipe())
        seed = f", seed {settings['seed']}" if "seed" in settings else ""
        law = settings["directions"].get("law", "own law")
        return f"Projections({self.n_projections:,} of {self.n_features:,} features, {law}{seed})"

    def draw(self, start: int, stop: int) -> Block:
        """Draw projections start, …, stop - 1; ``start`` is a multiple of 64.

        A projection is the same whatever portion it is drawn in.
        """
        stop = min(stop, self.n_projections)
        starts = range(start, stop, BLOCK)
        return join_blocks([self.source.block(first // BLOCK).head(min(BLOCK, stop - first)) for first in starts])

    def recipe(self) -> dict[str, object]:
        """Every setting in JSON values."""
        return {
            "n_features": self.n_features,
            "n_projections": self.n_projections,
            **self.source.describe(),
            "scaler": None if self.scaler is None else self.scaler.to_dict(),
        }

    @cached_property
    def fingerprint(self) -> str:
        """A short name for exactly these projections.

        Hashes the settings and numbers drawn from them, since a seed alone does not promise the
        same draws in another version of a library.
        """
        try:
            settings = json.dumps(self.recipe(), sort_keys=True)
        except TypeError as error:
            raise SotddError(
                f"a law describes itself by more than JSON values ({error}): check its describe method."
            ) from error
        digest = hashlib.sha256(settings.encode())
        for numbers in self._sample():
            # Six digits: the same on machines whose last bits differ.
            digest.update(np.char.mod("%.5e", np.asarray(numbers, np.float64)).tobytes())
        return digest.hexdigest()[:16]

    def _sample(self) -> list[NDArray[Any]]:
        """Some drawn numbers: all that were given, or those of the first block."""
        if isinstance(self.source, Arrays):
            arrays = self.source
            return [part for part in (arrays.theta, arrays.phi, arrays.psi, arrays.orders) if part is not None]
        block = self.source.block(0)
        terms = [block.terms.weights, block.terms.parameters]
        probe = np.linspace(-1, 1, self.n_features, dtype=np.float32)[None, :]
        features = [block.features] if block.label_features is None else [block.features, block.label_features]
        return terms + [part.theta[0] if isinstance(part, Directions) else part(probe) for part in features]

    def check(self, data: LabelledData) -> None:
        """Refuse a dataset that these projections are not for."""
        if data.n_features != self.n_features:
            raise SotddError(
                f"dataset {data.name!r} has {data.n_features:,} features but the projections are for "
                f"{self.n_features:,}: fit projections on the datasets that are compared."
            )
        self.source.check_points(data.point_shape, data.name)


def labelled(datasets: Sequence[Dataset] | Mapping[str, Dataset]) -> list[LabelledData]:
    """Check several datasets, named by their keys or their places."""
    if isinstance(datasets, Mapping):
        named = [(str(name), source) for name, source in datasets.items()]
    elif isinstance(datasets, list) or (
        isinstance(datasets, tuple) and all(isinstance(part, (tuple, LabelledData)) for part in datasets)
    ):
        named = [(str(place), source) for place, source in enumerate(datasets)]
    else:
        raise SotddError(
            f"datasets is {_kind(datasets)}: expected a list such as [(X1, y1), (X2, y2)], or a dict by name."
        )
    if not named:
        raise SotddError("there are no datasets: expected at least one.")
    return [LabelledData.of(source, name) for name, source in named]


def _label_law(label: LabelLaw | None, n_moments: int | None, moments: MomentLaw | Sequence[float] | None) -> LabelLaw:
    if label is not None:
        if n_moments is not None or moments is not None:
            raise SotddError("label is given together with n_moments or moments: give one or the other.")
        if not isinstance(label, LabelLaw):
            raise SotddError(f"label is {_kind(label)}: expected Moments(...) or an object with its methods.")
        return label
    if moments is not None and not isinstance(moments, MomentLaw):
        moments = ZeroTruncatedPoisson(moments)
    if n_moments is None:
        rates = getattr(moments, "rates", None)
        n_moments = 5 if rates is None else len(rates)
    return Moments(n_moments, ZeroTruncatedPoisson() if moments is None else moments)


def scaler_for(scale: object, data: Sequence[LabelledData]) -> Scaler | None:
    """The scaler that a ``scale`` argument asks for."""
    if scale is None:
        return None
    if isinstance(scale, Scaler):
        if scale.centre.size != data[0].n_features:
            raise SotddError(
                f"the scaler is for {scale.centre.size:,} features but the data have {data[0].n_features:,}."
            )
        return scale
    if isinstance(scale, str) and scale == "pooled":
        return Scaler.fit(data)
    raise SotddError(f"scale is {scale!r}: expected 'pooled', None or a Scaler.")


def _key(seed: object) -> int:
    """An integer that keys the draws."""
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(2**63))
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or seed < 0:
        raise SotddError(f"seed is {seed!r}: expected an integer of at least 0 or a NumPy Generator.")
    return int(seed)


def _matrix(values: ArrayLike, name: str) -> NDArray[Any]:
    try:
        matrix = np.array(values)
    except (ValueError, TypeError) as error:
        raise SotddError(f"{name} does not form an array: expected a matrix, one row per projection.") from error
    if matrix.ndim != 2 or matrix.size == 0 or matrix.dtype.kind not in "iuf":
        raise SotddError(
            f"{name} has shape {matrix.shape} and dtype {matrix.dtype}: expected a matrix of "
            "numbers, one row per projection."
        )
    if not np.isfinite(matrix).all():
        raise SotddError(f"{name} holds NaN or infinity: expected finite numbers.")
    matrix.flags.writeable = False
    return matrix


def _kind(value: object) -> str:
    return f"{value!r}" if isinstance(value, (str, int, float, type(None))) else f"a {type(value).__name__}"
