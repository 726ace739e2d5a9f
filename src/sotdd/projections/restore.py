"""Projections made again from their recipe, as a saved sketch holds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sotdd.basics.errors import SotddError
from sotdd.projections.convolution import Convolution
from sotdd.projections.directions import DirectionLaw, Hadamard, Orthogonal, Sphere, Tilted
from sotdd.projections.draws import Laws
from sotdd.projections.labels import ClassQuantiles, LabelLaw
from sotdd.projections.moments import MomentLaw, Moments, UniformOrders, ZeroTruncatedPoisson
from sotdd.projections.recipe import Projections
from sotdd.projections.scaler import Scaler

Settings = Mapping[str, Any]


def restored(recipe: Settings, scaler: Scaler | None, fingerprint: str, tilt: Tilted | None = None) -> Projections:
    """The projections that a recipe and a fingerprint belong to, or an error that says why they cannot be had.

    Laws of a user's own and arrays that were given are known by name or by hash only; a ``tilt`` that was learnt from
    data comes beside the recipe.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> from sotdd.projections.restore import restored
    >>> original = sotdd.Projections.fit([np.eye(3)], n_projections=64, seed=5)
    >>> again = restored(original.recipe(), original.scaler, original.fingerprint, original.tilt)
    >>> again.fingerprint == original.fingerprint
    True
    """
    tilted = tilt is not None and dict(tilt.describe()) == dict(recipe["directions"])
    directions = tilt if tilted and tilt is not None else _directions(recipe["directions"])
    label = _label_law(recipe["label"])
    first_block = recipe.get("first_block", 0)
    laws = Laws(recipe["n_features"], directions, label, recipe["shared_directions"], recipe["seed"], first_block)
    columns = tuple(recipe["columns"]) if "columns" in recipe else None
    projections = Projections(recipe["n_features"], recipe["n_projections"], laws, scaler, columns)
    if projections.fingerprint != fingerprint:
        raise SotddError("its projections come out differently when drawn with the libraries installed here")
    return projections


def _directions(settings: Settings) -> DirectionLaw:
    match settings.get("law"):
        case "sphere":
            return Sphere()
        case "hadamard":
            return Hadamard()
        case "orthogonal":
            return Orthogonal()
        case "convolution":
            layers = [((high, wide), (down, right)) for high, wide, down, right in settings["layers"]]
            return Convolution(tuple(settings["image_shape"]), layers, settings["clamp"], settings["channels"])
    raise _unknown(settings)


def _label_law(settings: Settings) -> LabelLaw:
    match settings.get("law"):
        case "moments":
            return Moments(settings["n_moments"], _orders(settings["orders"]), settings["cut"])
        case "class quantiles":
            return ClassQuantiles(settings["levels"], settings["weight"])
    raise _unknown(settings)


def _orders(settings: Settings) -> MomentLaw:
    match settings.get("law"):
        case "zero-truncated Poisson":
            return ZeroTruncatedPoisson(settings["rates"], settings.get("max_order"))
        case "uniform orders":
            return UniformOrders(settings["max_order"])
    raise _unknown(settings)


def _unknown(settings: Settings) -> SotddError:
    name = settings.get("law") or "a law of its own"
    return SotddError(f"its projections ({name}) cannot be drawn from their description alone")
