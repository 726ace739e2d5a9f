"""Why a projection came out unusable, in the same words on every engine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import OutOfRange, SotddError
from sotdd.projections.labels import LabelTerms, Quantiles, Summaries

# Class terms must fit float32 with room for the feature that is added.
LARGEST_TERM = 1e38


def too_large(name: str, projection: int) -> SotddError:
    """Features that float32 products cannot hold."""
    return OutOfRange(
        f"features of dataset {name!r} are too large for float32 products (projection {projection:,} is not finite): "
        "divide the features by their spread, or use scale='pooled'."
    )


def unusable_term(name: str, largest: float, terms: LabelTerms, line: int, projection: int) -> SotddError:
    """A label term that is not finite or too large, at ``line`` of ``terms``; ``largest`` is the largest |t|."""
    if not np.isfinite(largest):
        return too_large(name, projection)
    if isinstance(terms, Quantiles):  # means of values that fit: only the values can be at fault
        return too_large(name, projection)
    if isinstance(terms, Summaries):
        return SotddError(
            f"the label law's summary of dataset {name!r} is not finite in projection {projection:,}: check its "
            "summary function."
        )
    order = int(terms.degrees[line])
    return OutOfRange(
        f"class moments of dataset {name!r} overflow: order {order} of projected values as large as {largest:.3g} "
        f"(projection {projection:,}). Use scale='pooled', bring outliers in, or take lower orders, such as "
        "moments=sotdd.UniformOrders(4)."
    )


def summarised(values: NDArray[np.float32], terms: Summaries) -> NDArray[np.float64]:
    """One class's terms by a user's function, held to the shape that it promised; it sees a read-only view."""
    shown = values.view()
    shown.flags.writeable = False
    result = np.asarray(terms.summary(shown, terms.parameters))
    if result.shape != (len(values),) or result.dtype.kind not in "iuf":
        raise SotddError(
            f"the label law's summary returned {result.dtype} of shape {result.shape}: expected real numbers of shape "
            f"{(len(values),)}, one per projection."
        )
    return result.astype(np.float64)
