"""Projections made again from their recipe, as a saved sketch holds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sotdd.errors import SotddError
from sotdd.projections.class_quantiles import ClassQuantiles
from sotdd.projections.convolution import Convolution
from sotdd.projections.directions import DirectionLaw, Orthogonal, Sphere
from sotdd.projections.draws import Laws
from sotdd.projections.labels import LabelLaw, Moments
from sotdd.projections.moments import MomentLaw, UniformOrders, ZeroTruncatedPoisson
from sotdd.projections.recipe import Projections
from sotdd.scaling import Scaler

Settings = Mapping[str, Any]


def restored(recipe: Settings, scaler: Scaler | None, fingerprint: str) -> Projections:
    """The projections that a recipe and a fingerprint belong to, or an error that says why they cannot be had.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> from sotdd.projections.restore import restored
    >>> original = sotdd.Projections.fit([np.eye(3)], n_projections=64, seed=5)
    >>> again = restored(original.recipe(), original.scaler, original.fingerprint)
    >>> again.fingerprint == original.fingerprint
    True
    """
    directions = _named(_DIRECTIONS, recipe["directions"])
    label = _named(_LABELS, recipe["label"])
    if directions is None or label is None:
        laws = " and ".join(
            str(part.get("law", "a law of its own"))
            for part, law in ((recipe["directions"], directions), (recipe["label"], label))
            if law is None
        )
        raise SotddError(f"its projections ({laws}) cannot be drawn from their description alone")
    source = Laws(recipe["n_features"], directions, label, recipe["shared_directions"], recipe["seed"])
    columns = tuple(recipe["columns"]) if "columns" in recipe else None
    found = Projections(recipe["n_features"], recipe["n_projections"], source, scaler, columns)
    if found.fingerprint != fingerprint:
        raise SotddError("its projections come out otherwise when they are drawn with the libraries installed here")
    return found


def _named(makers: Mapping[str, Callable[[Settings], Any]], settings: Settings) -> Any:  # noqa: ANN401
    """The law of this description, where it is one of the package's own and nothing is left out."""
    maker = makers.get(str(settings.get("law")))
    return None if maker is None else maker(settings)


def _convolution(settings: Settings) -> DirectionLaw:
    layers = [((high, wide), (down, right)) for high, wide, down, right in settings["layers"]]
    return Convolution(tuple(settings["image_shape"]), layers, settings["clamp"], settings["channels"])


def _moments(settings: Settings) -> LabelLaw:
    orders = _named(_ORDERS, settings["orders"])
    return Moments(settings["n_moments"], orders) if orders is not None else None  # type: ignore[return-value]


_DIRECTIONS: Mapping[str, Callable[[Settings], DirectionLaw]] = {
    "sphere": lambda settings: Sphere(settings.get("ambient")),
    "orthogonal": lambda settings: Orthogonal(),
    "convolution": _convolution,
}
_LABELS: Mapping[str, Callable[[Settings], LabelLaw]] = {
    "moments": _moments,
    "class quantiles": lambda settings: ClassQuantiles(settings["levels"], settings["weight"]),
}
_ORDERS: Mapping[str, Callable[[Settings], MomentLaw]] = {
    "zero-truncated Poisson": lambda settings: ZeroTruncatedPoisson(settings["rates"]),
    "uniform orders": lambda settings: UniformOrders(settings["max_order"]),
}
