"""Which label law the settings of a call ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, cast

from sotdd.basics.checks import check_law, described
from sotdd.basics.errors import SotddError
from sotdd.projections.class_quantiles import ClassQuantiles
from sotdd.projections.labels import CUT, LabelLaw, Moments
from sotdd.projections.moments import MomentLaw, ZeroTruncatedPoisson

LabelChoice: TypeAlias = Literal["moments", "quantiles", "paper"] | LabelLaw

_NAMES = ("moments", "quantiles", "paper")


def label_law(
    label: LabelChoice | None,
    n_moments: int | None,
    moments: MomentLaw | Sequence[float] | None,
    *,
    scaled: bool = True,
) -> LabelLaw:
    """The law by its name or as given; moments unless another is asked for.

    Moments are cut at five spreads where features are scaled. Features as they are have no known spread to
    cut at, so nothing is cut there, nor by the name "paper".
    """
    if isinstance(label, str) and label not in _NAMES:
        raise SotddError(f"label is {described(label)}: expected {', '.join(map(repr, _NAMES))} or a label law.")
    if label is None or (isinstance(label, str) and label in ("moments", "paper")):
        return _moments(n_moments, moments, CUT if scaled and label != "paper" else None)
    if n_moments is not None or moments is not None:
        raise SotddError("label is given together with n_moments or moments: give one or the other.")
    if isinstance(label, str):
        return ClassQuantiles()
    check_law(
        label,
        {"describe": 0, "draw": 2},
        "label must be 'moments', 'quantiles', 'paper', Moments(...), ClassQuantiles(...) or an object like those",
    )
    return label


def _moments(n_moments: int | None, moments: MomentLaw | Sequence[float] | None, cut: float | None) -> Moments:
    law = moments if hasattr(moments, "orders") else ZeroTruncatedPoisson(moments)
    if n_moments is None:
        rates = getattr(law, "rates", None)
        n_moments = 5 if rates is None else len(rates)
    return Moments(n_moments, cast("MomentLaw", law), cut)
