"""Projections made again from their recipe, as a saved sketch holds it."""

from __future__ import annotations

from sotdd.basics.errors import SotddError
from sotdd.projections.class_quantiles import ClassQuantiles
from sotdd.projections.convolution import Convolution
from sotdd.projections.directions import DirectionLaw, Sphere, Tilted
from sotdd.projections.draws import Later, Laws
from sotdd.projections.hadamard import Hadamard
from sotdd.projections.labels import LabelLaw
from sotdd.projections.moments import Moments
from sotdd.projections.orthogonal import Orthogonal
from sotdd.projections.recipe import Projections
from sotdd.projections.restorable import Settings, restored_law
from sotdd.projections.scaler import Scaler


def restored(recipe: Settings, scaler: Scaler | None, fingerprint: str, tilt: Tilted | None = None) -> Projections:
    """The projections that a recipe and a fingerprint belong to, or an error that says why they cannot be had.

    Laws restore themselves. Those of a user's own and arrays that were given are known by name or by hash only; a
    ``tilt`` that was learnt from data comes beside the recipe.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> from sotdd.projections.restore import restored
    >>> original = sotdd.Projections.fit([np.eye(3)], n_projections=64, seed=5)
    >>> again = restored(original.recipe(), original.scaler, original.fingerprint, original.tilt)
    >>> again.fingerprint == original.fingerprint
    True
    """
    directions: DirectionLaw
    if tilt is not None and dict(tilt.describe()) == dict(recipe["directions"]):
        directions = tilt
    else:
        directions = restored_law(recipe["directions"], Sphere, Hadamard, Orthogonal, Convolution)
    label: LabelLaw = restored_law(recipe["label"], Moments, ClassQuantiles)
    laws = Laws(recipe["n_features"], directions, label, recipe["shared_directions"], recipe["seed"])
    source = Later(laws, recipe["first_block"]) if "first_block" in recipe else laws
    columns = tuple(recipe["columns"]) if "columns" in recipe else None
    projections = Projections(recipe["n_features"], recipe["n_projections"], source, scaler, columns)
    if projections.fingerprint != fingerprint:
        raise SotddError("its projections come out differently when drawn with the libraries installed here")
    return projections
