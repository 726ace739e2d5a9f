"""Two sketches compared: whether they can be, and how far apart they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import check_choice, check_order, described
from sotdd.basics.errors import OutOfRange, SotddError
from sotdd.results.distance import Distance
from sotdd.results.estimators import Estimator, estimated_distance
from sotdd.sketches.controls import Controlling
from sotdd.sketches.sketch import Sketch
from sotdd.sketches.uncertainty import error_bound, error_remark, floor_of_sketches


def distance_between(a: Sketch, b: Sketch, p: float, estimator: Estimator = "auto") -> Distance:
    """The distance of two sketches, with its error bound and its noise floor where they are known."""
    order = check_order(p)
    plain = check_choice(estimator, "estimator", get_args(Estimator)) == "plain"
    if not isinstance(b, Sketch):
        raise SotddError(f"other is {described(b)}: expected a Sketch; sotdd.distance compares one with data.")
    refuse_other_projections(a, b)
    alike_a, alike_b = _cut_alike(a, b)
    per_projection, within = _costs(alike_a, alike_b, order)
    if not np.isfinite(per_projection).all():
        raise OutOfRange(f"transport to the power p={order:g} overflows: use a smaller p.")
    scale_remarks = () if a.scaler is None else a.scaler.remarks
    controlling = None if plain else Controlling.of(a.controls, b.controls, a.importance, order)
    result = estimated_distance(
        a,
        b,
        per_projection,
        order,
        fingerprint=a.fingerprint,
        scaler=a.scaler,
        columns=a.columns,
        remarks=tuple(dict.fromkeys([*scale_remarks, *a.remarks, *b.remarks])),
        weights=a.weights,
        controls=None if controlling is None else controlling.columns,
        estimator="plain" if controlling is None else controlling.estimator,
        fitted=controlling is not None and controlling.fitted,
    )
    sized_halves = [(one.n_points, one.halves) for one in (a, b)]
    floor = floor_of_sketches(sized_halves, order, result.n_points, result.value)
    result = replace(result, noise=floor, sampling=floor)
    bound = error_bound(alike_a.lost, alike_b.lost, result.value, within, order, a.importance)
    if bound is None:
        return result
    return replace(result, sketch_error=bound[0], remarks=(*result.remarks, *error_remark(*bound, result.value)))


def refuse_other_projections(a: Sketch, b: Sketch) -> None:
    """Refuse two sketches that were made through different projections, and say how these differ."""
    refuse_other_recipes(a.recipe, a.fingerprint, b.recipe, b.fingerprint, f"sketches {a.name!r} and {b.name!r}")


def refuse_other_recipes(
    recipe_a: Mapping[str, Any], fingerprint_a: str, recipe_b: Mapping[str, Any], fingerprint_b: str, what: str
) -> None:
    """Refuse recipes whose fingerprints differ, and name the settings that do."""
    if fingerprint_a == fingerprint_b:
        return
    differences = "; ".join(
        f"{name} is {left} and {right}" for name, left, right in _differences(recipe_a, recipe_b)[:3]
    )
    reason = differences or "the settings are the same, but other versions of libraries drew other numbers from them"
    raise SotddError(f"{what} are through different projections: {reason}. Use the same for both.")


def _differences(a: Mapping[str, Any], b: Mapping[str, Any], inside: str = "") -> list[tuple[str, str, str]]:
    """Settings that differ, by name, with both values."""
    differing = []
    for name in [*a, *(name for name in b if name not in a)]:
        left, right = a.get(name), b.get(name)
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            differing += _differences(left, right, f"{name} ")
        elif left != right:
            differing.append((f"{inside}{name}", _short(left), _short(right)))
    return differing


def _short(value: object) -> str:
    text = repr(dict(value) if isinstance(value, Mapping) else value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _costs(a: Sketch, b: Sketch, p: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """W_p^p (L,) of two sketches that keep all values, or are cut alike; and what of it is within parts, for p = 2."""
    from sotdd.kernels.quantiles import compare_functions
    from sotdd.kernels.rows import Overlaps, transport_rows

    costs, within = np.empty(a.n_projections), np.zeros(a.n_projections)
    if a.exact and b.exact:
        n, m = a.n_quantiles, b.n_quantiles
        return transport_rows(a.quantiles, b.quantiles, p, None if n == m else Overlaps.of(n, m)), within
    compare_functions(a.quantiles, b.quantiles, a.levels.edges, a.levels.smooth, p, costs, within)
    return costs, within


def _cut_alike(a: Sketch, b: Sketch) -> tuple[Sketch, Sketch]:
    """Both sketches with all values, or both cut into the same parts.

    A function put together from means, compared with all values of the other, would count the chance in these as
    distance.
    """
    kept = [sketch.levels for sketch in (a, b) if not sketch.exact]
    if not kept:
        return a, b
    if len({levels.spacing for levels in kept}) > 1:
        older = a if a.spacing == "even" else b
        raise SotddError(
            f"{older.name!r} was made by an older version, which cut quantiles into other parts: sketch its data again."
        )
    levels = min(kept, key=lambda each: each.count)
    if any(each.count % levels.count for each in kept):
        raise SotddError(
            f"{a.name!r} has {a.n_quantiles:,} quantiles and {b.name!r} has {b.n_quantiles:,}: sketch both with "
            "the same number, or with one that divides the other."
        )
    return a.cut(levels), b.cut(levels)
