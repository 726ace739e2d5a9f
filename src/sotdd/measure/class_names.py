"""Names of classes that count: the distance of points that carry the name of their class with them.

With ``label_names="match"`` a point x of class c stands for (f x, r e_c), where x is scaled, e_c is the unit vector of
the name among all C names of the datasets compared, f² = (d + C) / d and r² = d + C. The distance is that of the plain
definition between such points: it is a metric wherever that is, and every estimator of it holds. By r, two names are as
far apart as two random points are in their features (root mean square); by f, features count as they do without names.

Targets that were cut into bins are numbers: in place of e_c stands the target itself, in units of its own spread.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.remarks import Remark
from sotdd.basics.resources import check_fits
from sotdd.compute.distance import Distance
from sotdd.inputs.data import LabelledData
from sotdd.inputs.features import StreamedFeatures, add_columns
from sotdd.projections.scaler import Scaler, find_scaler
from sotdd.projections.settings import DEFAULT_SETTINGS

# How names of classes count in a distance; "auto" is "match" for targets that were cut into bins, else "ignore".
NamesInDistance: TypeAlias = Literal["auto", "ignore", "match"]

# More names than this take minutes and gigabytes for a few ten thousand points.
_MOST_NAMES = 4096


@dataclass(frozen=True, eq=False)
class NamedClasses:
    """Datasets whose points carry the names of their classes.

    Attributes
    ----------
    features
        The datasets without names; with arcsinh their features are scaled already.
    datasets
        Their points with names, (n, d + C), still without scale.
    settings
        How to draw projections for them, with a scaler of their own.
    scaler
        That of the features alone.
    counts_targets
        Whether targets count as numbers, rather than names.
    """

    features: Sequence[LabelledData]
    datasets: list[LabelledData]
    settings: dict[str, Any]
    scaler: Scaler | None
    counts_targets: bool

    @classmethod
    def of(cls, data: Sequence[LabelledData], settings: Mapping[str, Any], projections: object) -> NamedClasses:
        """Put names beside the features of datasets that are compared."""
        if projections is not None:
            raise SotddError(
                "projections are given, which do not know names of classes: leave label_names='match' out."
            )
        d, scaler = data[0].n_features, find_scaler(settings.get("scale", "auto"), data)
        unit = 1.0 if scaler is not None else find_scaler("pooled", data).scale  # type: ignore[union-attr]  # there is one
        scaled, linear = data, scaler or Scaler(np.zeros(d), 1.0)
        if linear.arcsinh:  # features are weighed after that
            scaled = [replace(part, features=_scale_features(part, linear)) for part in data]
            linear = Scaler(np.zeros(d), 1.0)
        numbers = [part.origin.target.values[:, None] for part in data if part.origin.target is not None]
        targets = len(numbers) == len(data)
        more: Sequence[NDArray[Any]] = numbers if targets else _names(data)
        centre = np.mean([every.mean(axis=0, dtype=np.float64) for every in more], axis=0)
        spread = find_scaler("features", [LabelledData.of(every) for every in more]).scale if targets else 1.0  # type: ignore[union-attr]  # as above
        c = len(centre)
        f, r = math.sqrt((d + c) / d), math.sqrt(d + c)
        scales = np.concatenate([linear.scales / f, np.broadcast_to(spread / (r * float(unit)), c)])
        remarks = () if scaler is None else scaler.remarks
        whole = Scaler(np.concatenate([linear.centre, centre]), scales, remarks=remarks)
        law = DEFAULT_SETTINGS.but(settings).find_label_law(scaler)  # cut as the features alone would be
        drawn = {**settings, "scale": whole, "label_law": law, "n_moments": None, "moments": None}
        there = [_with(part, columns) for part, columns in zip(scaled, more, strict=True)]
        return cls(scaled, there, drawn, scaler, targets)

    def forget_names(self) -> list[LabelledData]:
        """The datasets with all names at their centre."""
        scaler: Scaler = self.settings["scale"]
        centre = scaler.centre[self.features[0].n_features :]
        return [_with(part, np.broadcast_to(centre, (part.n_points, len(centre)))) for part in self.features]

    def describe(self, distance: Distance) -> Distance:
        """A distance between these datasets, with the scaler and the columns of the features."""
        counted = Remark("targets count" if self.counts_targets else "names matched")
        columns = next((part.columns for part in self.features if part.columns is not None), None)
        return replace(distance, scaler=self.scaler, columns=columns, remarks=(counted, *distance.remarks))


def _names(data: Sequence[LabelledData]) -> list[NDArray[np.uint8]]:
    """Of each dataset e_c (n, C); the order of names does not depend on that of the datasets."""
    names = sorted({name for part in data for name in part.classes}, key=_order)
    places = {name: place for place, name in enumerate(names)}
    if len(names) > _MOST_NAMES:
        raise SotddError(
            f"is 'match' with {len(names):,} names of classes: expected at most {_MOST_NAMES:,}, since each is one "
            "more feature. Put rare classes together, or use 'ignore'.",
            setting="label_names",
        )
    n_points = sum(part.n_points for part in data)
    check_fits(8 * n_points * len(names), f"{len(names):,} names beside {n_points:,} points", "max_points", n_points)
    unit = np.eye(len(names), dtype=np.uint8)
    return [unit[[places[name] for name in part.classes]][part.codes] for part in data]


def _order(name: Hashable) -> tuple[str, str]:
    """What names are sorted by: 1, 1.0 and True are one name, whichever of them comes first."""
    whole = int(name) if isinstance(name, (bool, float)) and name == name // 1 else name
    return type(whole).__name__, str(whole)


def _scale_features(data: LabelledData, scaler: Scaler) -> StreamedFeatures:
    """Features that are scaled whenever they are read."""
    shape = data.n_points, data.n_features
    return StreamedFeatures(data.name, shape, np.float64, lambda rows: scaler.apply(data.rows(rows)))


def _with(data: LabelledData, more: NDArray[Any]) -> LabelledData:
    return replace(data, features=add_columns(data.features, more), columns=None)
