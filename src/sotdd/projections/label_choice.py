"""Which label law the settings of a call ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, cast

from sotdd.checks import check_law, described
from sotdd.errors import SotddError
from sotdd.projections.class_quantiles import ClassQuantiles
from sotdd.projections.labels import LabelLaw, Moments
from sotdd.projections.moments import MomentLaw, ZeroTruncatedPoisson

LabelChoice: TypeAlias = Literal["moments", "quantiles"] | LabelLaw


def label_law(
    label: LabelChoice | None, n_moments: int | None, moments: MomentLaw | Sequence[float] | None
) -> LabelLaw:
    """The law by its name or as given; moments unless another is asked for."""
    if isinstance(label, str) and label not in ("moments", "quantiles"):
        raise SotddError(f"label is {described(label)}: expected 'moments', 'quantiles' or a label law.")
    if label is None or (isinstance(label, str) and label == "moments"):
        return _moments(n_moments, moments)
    if n_moments is not None or moments is not None:
        raise SotddError("label is given together with n_moments or moments: give one or the other.")
    if isinstance(label, str):
        return ClassQuantiles()
    check_law(
        label,
        {"describe": 0, "draw": 2},
        "label must be 'moments', 'quantiles', Moments(...), ClassQuantiles(...) or an object with their methods",
    )
    return label


def _moments(n_moments: int | None, moments: MomentLaw | Sequence[float] | None) -> Moments:
    law = moments if hasattr(moments, "orders") else ZeroTruncatedPoisson(moments)
    if n_moments is None:
        rates = getattr(law, "rates", None)
        n_moments = 5 if rates is None else len(rates)
    return Moments(n_moments, cast("MomentLaw", law))
