"""One affine map for every dataset that is compared together."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias, Union

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import check_positive, described
from sotdd.basics.errors import SotddError
from sotdd.inputs import labelled, named
from sotdd.inputs.column_names import Names, places_of
from sotdd.inputs.data import Dataset, LabelledData, same_features
from sotdd.projections.feature_moments import FeatureMoments
from sotdd.projections.scale_statistics import ScaleStatistics

Kind: TypeAlias = Literal["auto", "features", "pooled"]
# What calls take as ``scale``.
Scale: TypeAlias = Union[Kind, "Scaler", None]


@dataclass(frozen=True, eq=False)
class Scaler:
    """Subtracts a centre and divides by a scale, so that moments stay moderate.

    One number for all features keeps the geometry of the data, which is right for pixels and embeddings; one
    number per feature makes columns with different units count alike. Either way distances come out in units of
    the pooled data's own spread.

    Attributes
    ----------
    centre
        What is subtracted, one number per feature.
    scale
        What features are divided by: one number for all, or (d,) one for each.
    columns
        The names of the features, where they have names.
    remarks
        What a reader should know, such as that one point makes the scale.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> sotdd.Scaler(np.array([1.0, 2.0]), 2.0)
    Scaler(2 features, scale 2)
    >>> heights_and_incomes = np.random.default_rng(0).normal([1.7, 30_000], [0.1, 9_000], size=(500, 2))
    >>> sotdd.Scaler.fit([heights_and_incomes], "features")
    Scaler(2 features, each by its own scale, 0.0956 to 8.57e+03)
    """

    centre: NDArray[np.float64]
    scale: float | NDArray[np.float64]
    columns: Names | None = None
    remarks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check and freeze the numbers."""
        centre = np.array(self.centre)
        if centre.ndim != 1 or centre.dtype.kind not in "biuf" or not np.isfinite(centre).all():
            raise SotddError(
                f"a Scaler's centre has shape {centre.shape} and dtype {centre.dtype}: expected one finite number per "
                "feature."
            )
        centre = centre.astype(np.float64)
        centre.flags.writeable = False
        object.__setattr__(self, "centre", centre)
        object.__setattr__(self, "scale", _checked_scale(self.scale, len(centre)))

    @classmethod
    def fit(
        cls,
        datasets: Sequence[Dataset] | Mapping[str, Dataset] | Sequence[ScaleStatistics],
        scale: Kind = "auto",
    ) -> Scaler:
        """Learn centre and scale from the points of all datasets, each point counting the same.

        Parameters
        ----------
        datasets
            Those that will be compared, or a sample of them, or `ScaleStatistics` of them.
        scale
            "pooled": the mean, and one scale for all features, such that the average projection has variance
            one (the root of the trace of the covariance divided by the number of features). "features": for each
            feature the mean and the standard deviation of its values brought in to its 5 % and 95 % quantiles,
            divided by what a normal law gives, so that no outlier moves them; the plain ones for features that are
            nearly always the same, such as rare flags. Constant features, and constant data, get scale 1.
            "auto": "features" where a dataset has columns with names, "pooled" otherwise.
        """
        kind, parts = _gathered(datasets, scale)
        return _fitted(cls, parts, kind == "features")

    @property
    def kind(self) -> Literal["features", "pooled"]:
        """Whether each feature has its own scale, or all have one."""
        return "pooled" if isinstance(self.scale, float) else "features"

    @cached_property
    def scales(self) -> NDArray[np.float64]:
        """(d,) what each feature is divided by."""
        return np.broadcast_to(np.float64(self.scale), self.centre.shape)

    @cached_property
    def inverse(self) -> NDArray[np.float64]:
        """(d,) what each feature is multiplied by."""
        return 1.0 / self.scales

    def __repr__(self) -> str:
        """Size and scale, for people."""
        each = f"each by its own scale, {self.scales.min():.3g} to {self.scales.max():.3g}"
        said = f"scale {self.scale:.6g}" if isinstance(self.scale, float) else each
        return f"Scaler({self.centre.size:,} features, {said})"

    def fingerprint(self) -> str:
        """A short name for these numbers, to a millionth of the scale: last bits may differ between machines."""
        with np.errstate(over="ignore"):
            ratio = self.centre / self.scale
            rounded = np.round(ratio, 6) + 0.0  # + 0.0: there is one zero
        centre = np.where(np.isfinite(rounded), rounded, ratio)  # to round is to multiply first, which may overflow
        text = " ".join(f"{number:.8e}" for number in np.atleast_1d(self.scale))
        return hashlib.sha256(centre.tobytes() + text.encode()).hexdigest()[:16]

    def to_dict(self) -> dict[str, object]:
        """A summary as JSON: what is scaled, the scale or its range, and a fingerprint of scale and centre."""
        one = self.scale if isinstance(self.scale, float) else [float(self.scale.min()), float(self.scale.max())]
        return {"kind": self.kind, "scale": one, "fingerprint": self.fingerprint()}

    def in_order(self, columns: Names | None) -> Scaler:
        """The same for data whose columns are in this order, where both have names."""
        if columns is None or self.columns is None or self.columns == columns:
            return self
        order = places_of(columns, self.columns, "the scaler", "the dataset")
        scale = self.scale if isinstance(self.scale, float) else self.scale[order]
        return replace(self, centre=self.centre[order], scale=scale, columns=columns)


def scaler_for(scale: object, data: Sequence[LabelledData]) -> Scaler | None:
    """The scaler that a ``scale`` argument asks for."""
    if scale is None:
        return None
    if isinstance(scale, Scaler):
        if scale.centre.size != data[0].n_features:
            raise SotddError(
                f"the scaler is for {scale.centre.size:,} features but the data have {data[0].n_features:,}."
            )
        return scale.in_order(_names(data))
    return Scaler.fit(list(data), scale)  # type: ignore[arg-type]  # checked there


def _gathered(datasets: object, scale: object) -> tuple[str, list[ScaleStatistics]]:
    """Which scale is meant, and what it is made of."""
    if not isinstance(scale, str) or scale not in ("auto", "features", "pooled"):
        raise SotddError(f"scale is {described(scale)}: expected 'auto', 'features', 'pooled', None or a Scaler.")
    sources = list(datasets.values()) if isinstance(datasets, Mapping) else datasets
    if isinstance(sources, list) and sources and all(isinstance(part, ScaleStatistics) for part in sources):
        parts = [ScaleStatistics(name).merge(part) for name, part in named(datasets, ScaleStatistics)]
        if any(part.moments is None for part in parts):
            raise SotddError("there are statistics of no points: add some first.")
        columns = _names(parts)
        parts = [part.in_order(columns, "the first dataset") for part in parts]
        return _chosen(scale, columns), parts
    data = labelled(datasets)  # type: ignore[arg-type]  # which refuses what is none
    same_features(data)
    kind = _chosen(scale, _names(data))
    return kind, [ScaleStatistics.of(part, sampled=kind == "features") for part in data]


def _chosen(scale: str, columns: Names | None) -> str:
    if scale != "auto":
        return scale
    return "pooled" if columns is None else "features"


def _fitted(cls: type[Scaler], parts: Sequence[ScaleStatistics], by_feature: bool) -> Scaler:
    from sotdd.projections.scale_remarks import remarks_on, spreads

    whole = FeatureMoments.pooled([part.moments for part in parts if part.moments is not None])
    if by_feature:
        samples = [part.sample for part in parts if part.sample is not None]
        centre, spread = spreads(whole, samples)
        scale: float | NDArray[np.float64] = np.where(spread > 0, spread, 1.0)
    else:
        centre, scale = whole.centre, whole.spread or 1.0
    scales = np.broadcast_to(np.float64(scale), centre.shape)
    with np.errstate(over="ignore"):
        if not np.isfinite(1 / scales).all():
            raise SotddError(
                f"features that differ by {scales.min():.3g} cannot be scaled in float64: bring them to a usual range "
                "first."
            )
    return cls(centre, scale, _names(parts), remarks_on(parts, whole, scales, by_feature))


def _names(parts: Sequence[LabelledData | ScaleStatistics]) -> Names | None:
    """The names of the columns, which all that have names share."""
    return next((part.columns for part in parts if part.columns is not None), None)


def _checked_scale(scale: object, n_features: int) -> float | NDArray[np.float64]:
    """One positive number, or one per feature."""
    if np.ndim(scale) == 0:  # type: ignore[arg-type]  # of anything
        one = check_positive(scale, "a Scaler's scale")
        with np.errstate(over="ignore"):
            usable = bool(np.isfinite(1 / np.float64(one)))
        if not usable:
            raise SotddError(f"a Scaler's scale is {one}: expected a number that can be divided by.")
        return one
    each = np.array(scale)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        usable = each.dtype.kind in "iuf" and bool((np.isfinite(1 / each) & np.isfinite(each) & (each > 0)).all())
    if each.shape != (n_features,) or not usable:
        raise SotddError(
            f"a Scaler's scale has shape {each.shape} and dtype {each.dtype}: expected one positive number, or one for "
            f"each of {n_features:,} features."
        )
    each = each.astype(np.float64)
    each.flags.writeable = False
    return each
