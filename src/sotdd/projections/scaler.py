"""One map for every dataset that is compared together: centre and scale, and in tables the inverse hyperbolic sine."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, Union, get_args

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, as_array, check_flag, describe, refuse_beyond_float64
from sotdd.basics.remarks import Remark, Remarks
from sotdd.basics.resources import kept_property
from sotdd.basics.text import say_count
from sotdd.inputs import open_all
from sotdd.inputs.agreement import find_places
from sotdd.inputs.data import Dataset, LabelledData, same_features
from sotdd.inputs.schema import Names
from sotdd.projections.scale_statistics import Doubles, FeatureMoments, find_spreads

Kind: TypeAlias = Literal["auto", "arcsinh", "features", "pooled"]
# What calls take as ``scale``.
Scale: TypeAlias = Union[Kind, "Scaler", None]

_Part: TypeAlias = tuple[LabelledData, FeatureMoments]


@dataclass(frozen=True, eq=False)
class Scaler:
    """Subtracts a centre and divides by a scale, so that moments stay moderate.

    One number for all features keeps the geometry of the data, which is right for pixels and embeddings; one
    number per feature makes columns with different units count alike. Either way distances come out in units of
    the data's own spread, in which every dataset counts the same, whatever its size.

    Columns of tables may have tails that are thousands of spreads long. With ``arcsinh`` they count by their
    logarithm: arcsinh is linear near zero, logarithmic far from it, smooth and one to one.

    Attributes
    ----------
    centre
        What is subtracted, one number per feature.
    scale
        What features are divided by: one number for all, or (d,) one for each.
    arcsinh
        Whether the inverse hyperbolic sine is taken of that.
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
    >>> sotdd.Scaler(np.zeros(1), 1.0, arcsinh=True).apply(np.array([[0.1], [1000.0]])).round(2).tolist()
    [[0.1], [7.6]]
    """

    centre: NDArray[np.float64]
    scale: float | NDArray[np.float64]
    columns: Names | None = None
    remarks: Remarks = ()
    arcsinh: bool = False

    def __post_init__(self) -> None:
        """Check and freeze the numbers."""
        centre = as_array(self.centre, "a Scaler's centre")
        if centre.ndim != 1 or centre.size == 0 or centre.dtype.kind not in "biuf" or not np.isfinite(centre).all():
            raise SotddError(
                f"a Scaler's centre has shape {centre.shape} and dtype {centre.dtype}: expected one finite number per "
                "feature."
            )
        centre = centre.astype(np.float64)
        centre.flags.writeable = False
        object.__setattr__(self, "centre", centre)
        object.__setattr__(self, "scale", _check_scale(self.scale, len(centre)))
        object.__setattr__(self, "arcsinh", check_flag(self.arcsinh, "arcsinh"))

    @classmethod
    def fit(cls, datasets: Sequence[Dataset] | Mapping[str, Dataset], scale: Kind = "auto") -> Scaler:
        """Learn centre and scale from all datasets, each dataset counting the same.

        Parameters
        ----------
        datasets
            Those that will be compared, or a sample of them.
        scale
            "pooled": the mean, and one scale for all features, such that the average projection has variance
            one (the root of the trace of the covariance divided by the number of features). "features": for each
            feature the mean and the standard deviation of its values brought in to its 5 % and 95 % quantiles,
            divided by what a normal law gives, so that no outlier moves them; where most values are the same, quantiles
            of the others. All features of one category share a scale, such that they weigh as one number does.
            Constant features, and constant data, get scale 1.
            "arcsinh": those of "features", then the inverse hyperbolic sine, so that tails count by their logarithm.
            "auto": "arcsinh" where a dataset has columns with names, "pooled" otherwise.
        """
        return _fit(open_all(datasets), scale)

    @property
    def kind(self) -> Literal["arcsinh", "features", "pooled"]:
        """Whether each feature has its own scale, or all have one; and whether tails count by their logarithm."""
        if self.arcsinh:
            return "arcsinh"
        return "pooled" if isinstance(self.scale, float) else "features"

    @kept_property
    def scales(self) -> NDArray[np.float64]:
        """(d,) what each feature is divided by."""
        return np.broadcast_to(np.float64(self.scale), self.centre.shape)

    @kept_property
    def inverse(self) -> NDArray[np.float64]:
        """(d,) what each feature is multiplied by."""
        return 1.0 / self.scales

    def apply(self, points: NDArray[Any]) -> NDArray[np.float64]:
        """Points (n, d) centred and scaled, in float64."""
        scaled: NDArray[np.float64] = (points - self.centre) * self.inverse
        return np.arcsinh(scaled, out=scaled) if self.arcsinh else scaled

    def invert(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """The points (n, d) that `apply` made these of."""
        return (np.sinh(points) if self.arcsinh else points) * self.scales + self.centre

    def __repr__(self) -> str:
        """Size and scale, for people."""
        each = f"each by its own scale, {self.scales.min():.3g} to {self.scales.max():.3g}"
        said = f"scale {self.scale:.6g}" if isinstance(self.scale, float) else each
        return f"Scaler({say_count(self.centre.size, 'feature')}, {said}{', then arcsinh' if self.arcsinh else ''})"

    def fingerprint(self) -> str:
        """A short name for these numbers, to a millionth of the scale: last bits may differ between machines."""
        return self._fingerprint

    @kept_property
    def _fingerprint(self) -> str:
        with np.errstate(over="ignore"):
            ratio = self.centre / self.scale
            rounded = np.round(ratio, 6) + 0.0  # + 0.0: there is one zero
        centre = np.where(np.isfinite(rounded), rounded, ratio)  # to round is to multiply first, which may overflow
        text = " ".join(f"{number:.8e}" for number in np.atleast_1d(self.scale)) + " arcsinh" * self.arcsinh
        return hashlib.sha256(centre.tobytes() + text.encode()).hexdigest()[:16]

    def to_dict(self) -> dict[str, object]:
        """A summary as JSON: what is scaled, the scale or its range, and a fingerprint of scale and centre."""
        one = self.scale if isinstance(self.scale, float) else [float(self.scale.min()), float(self.scale.max())]
        return {"kind": self.kind, "scale": one, "fingerprint": self._fingerprint}

    def in_order(self, columns: Names | None) -> Scaler:
        """The same for data whose columns are in this order, where both have names."""
        if columns is None or self.columns is None or self.columns == columns:
            return self
        order = find_places(columns, self.columns, "the scaler", "the dataset")
        scale = self.scale if isinstance(self.scale, float) else self.scale[order]
        return replace(self, centre=self.centre[order], scale=scale, columns=columns)


def find_scaler(scale: object, data: Sequence[LabelledData], *, weigh_points: bool = False) -> Scaler | None:
    """The scaler that a ``scale`` argument asks for; every dataset counts the same, or every point.

    Points count where they are permuted between datasets: what is learned must not depend on whose they are.
    """
    if scale is None:
        return None
    if isinstance(scale, Scaler):
        if scale.centre.size != data[0].n_features:
            raise SotddError(
                f"the scaler is for {say_count(scale.centre.size, 'feature')} but the data have "
                f"{data[0].n_features:,}: fit one on these data."
            )
        return scale.in_order(_names(data))
    return _fit(data, scale, weigh_points=weigh_points)


def _fit(data: Sequence[LabelledData], scale: object, *, weigh_points: bool = False) -> Scaler:
    """Learn a scaler from datasets."""
    if not isinstance(scale, str) or scale not in get_args(Kind):
        raise SotddError(
            f"is {describe(scale)}: expected 'auto', 'arcsinh', 'features', 'pooled', None or a Scaler.",
            setting="scale",
        )
    same_features(data)
    columns = _names(data)
    kind = scale if scale != "auto" else "pooled" if columns is None else "arcsinh"
    by_feature = kind != "pooled"
    moments = FeatureMoments.of_each(data)
    if not weigh_points:
        moments = [one.weigh(sum(part.n_points for part in data) / len(data)) for one in moments]
    parts = list(zip(data, moments, strict=True))
    whole, centre, spread = _pool(parts, by_feature)
    scales = np.where(spread > 0, spread, 1.0)
    refuse_beyond_float64(scales, inverse=True)
    remarks = [
        *(() if kind == "arcsinh" else _one_feature(whole, scales, columns)),
        *(() if by_feature else _one_point(parts, whole)),
        *_one_dataset(parts, whole, np.broadcast_to(scales, centre.shape), by_feature),
    ]
    return Scaler(centre, scales if by_feature else float(scales), columns, tuple(remarks), kind == "arcsinh")


def _pool(parts: Sequence[_Part], by_feature: bool) -> tuple[FeatureMoments, Doubles, float | Doubles]:
    """The moments of all points, their centre and their spread: one number, or one per feature; 0 for constant ones."""
    data, whole = [part for part, _ in parts], FeatureMoments.pool([moments for _, moments in parts])
    if not by_feature:
        return whole, whole.centre, whole.spread
    weights = [moments.weight for _, moments in parts]
    centre, spread = find_spreads(data, weights, whole.centre, whole.deviations)
    columns = _names(data) or ()
    groups = {name: of for part in data for name, of in part.group_features().items()}
    for group in set(groups.values()):
        places = [place for place, name in enumerate(columns) if name in groups and groups[name] == group]
        # The features of a category weigh as one number does; a gap is as far from a value as one spread of its column.
        spread[places] = 1.0 if group is None else math.sqrt(float(np.sum(whole.deviations[places] ** 2)))
        centre[places] = whole.centre[places]
    return whole, centre, spread


def _names(data: Sequence[LabelledData]) -> Names | None:
    """The names of the columns, which all that have names share."""
    return next((part.columns for part in data if part.columns is not None), None)


def _check_scale(scale: object, n_features: int) -> float | NDArray[np.float64]:
    """One positive number, or one per feature."""
    each = as_array(scale, "a Scaler's scale")
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        usable = each.dtype.kind in "iuf" and bool((np.isfinite(1 / each) & np.isfinite(each) & (each > 0)).all())
    if each.shape not in ((), (n_features,)) or not usable:
        raise SotddError(
            f"a Scaler's scale is {describe(scale)} of shape {each.shape}: expected one positive number that can be "
            f"divided by, or one for each of {say_count(n_features, 'feature')}."
        )
    if each.ndim == 0:
        return float(each)
    each = each.astype(np.float64)
    each.flags.writeable = False
    return each


# ------------------------------------------------------------------ what a reader should know of a scale

# More than this share of the squared spread is most of it.
_MOST = 0.5
# A point stands out if it has more than this share, and this many times its fair one: among normal points one in a
# thousand million has.
_MUCH, _TIMES = 0.03, 40
# A dataset makes the scale if others would lie this many times as far apart without it.
_FARTHER = 2.0


def _one_feature(whole: FeatureMoments, scale: Doubles, columns: Names | None) -> Iterator[Remark]:
    spreads = whole.deviations / (whole.deviations.max() or 1.0) / scale
    largest = int(np.argmax(spreads))
    share = 1 / float(np.sum((spreads / (spreads[largest] or 1.0)) ** 2) or 1.0)
    if len(spreads) >= 3 and share > _MOST:
        which = f"feature {largest:,}" if columns is None else f"column {columns[largest]!r}"
        yield Remark("one feature", feature=which, share=share, better="arcsinh" if scale.ndim else "features")


def _one_point(parts: Sequence[_Part], whole: FeatureMoments) -> Iterator[Remark]:
    weights = [moments.weight / data.n_points for data, moments in parts]  # of a point of each dataset
    shares = whole.shares_of(np.stack([moments.farthest for _, moments in parts])) * weights
    first = int(np.argmax(shares))
    share, (_, moments) = float(shares[first]), parts[first]
    if share > max(_MUCH, _TIMES * weights[first] / whole.weight):
        yield Remark("one point", point=moments.name_of_farthest, share=share, makes_the_scale=share > _MOST)


def _one_dataset(parts: Sequence[_Part], whole: FeatureMoments, scale: Doubles, by_feature: bool) -> Iterator[Remark]:
    """With two datasets there are no others that could lie farther apart."""
    if len(parts) < 3:
        return
    shares = [_share(moments, whole, scale) for _, moments in parts]
    largest = int(np.argmax(shares))
    if shares[largest] <= _MOST * sum(shares):  # the scale would not halve without it
        return
    _, _, without = _pool([part for number, part in enumerate(parts) if number != largest], by_feature)
    # How much shorter differences become that are as large as the spread of each feature.
    shrunk = math.sqrt(float(np.mean((without / scale) ** 2)))
    if 0 < shrunk < 1 / _FARTHER:
        yield Remark("one dataset", name=parts[largest][0].name, farther=1 / shrunk)


def _share(part: FeatureMoments, whole: FeatureMoments, scale: Doubles) -> float:
    """What a dataset contributes to the squared spread, features in units of their scale."""
    with np.errstate(over="ignore"):
        gap = (part.pivot - whole.pivot) + (part.mean * part.reach - whole.mean * whole.reach)
        return float(part.weight * np.sum((part.deviations / scale) ** 2 + (gap / scale) ** 2))
