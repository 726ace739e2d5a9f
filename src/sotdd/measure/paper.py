"""The paper to the letter: its Algorithm 1, without anything that this package adds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from sotdd.basics.defaults import default, given
from sotdd.basics.progress import Progress
from sotdd.inputs.data import Dataset
from sotdd.measure.distance import distance
from sotdd.projections.directions import DirectionLaw
from sotdd.projections.moments import MomentLaw
from sotdd.projections.recipe import Projections
from sotdd.results.distance import Distance


def paper(
    a: Dataset,
    b: Dataset,
    *,
    n_projections: int = default(1000),
    p: float = 2,
    n_moments: int = default(5),
    moments: MomentLaw | Sequence[float] | None = default(None),
    directions: DirectionLaw | None = default(None),
    shared_directions: bool = default(True),
    seed: int | np.random.Generator = default(0),
    projections: Projections | None = None,
    device: str = "auto",
    precision: Literal["float32", "tf32"] = "float32",
    progress: Progress = None,
) -> Distance:
    """Measure s-OTDD as the paper defines it: ``value ** p`` of the result is what its Algorithm 1 returns.

    A plain mean over independent projections; features as the caller scaled them; moments without a cut. The
    one cut is the authors' own, of convolution projections at ±5. `distance` scales features, cuts moments of
    heavy tails and controls the variance; what that is for is in docs/estimators.md and docs/label-terms.md.

    Parameters
    ----------
    a, b
        As in `distance`. Scale features yourself, as the authors do with pictures: moments of order ten of
        values beyond a few units make the number, or overflow.
    n_projections, p, n_moments, moments, directions, shared_directions, seed
        As in `distance`.
    projections
        Explicit draws, from `Projections.from_arrays`, in place of those settings.
    device, precision, progress
        As in `distance`.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=(200, 4)), rng.integers(3, size=200)
    >>> b = rng.normal(1, 1, size=(300, 4)), rng.integers(2, size=300)
    >>> r = sotdd.paper(a, b, n_projections=500)
    >>> algorithm_1 = r.value**r.p
    >>> bool(np.isclose(algorithm_1, r.per_projection.mean()))
    True
    """
    drawing: dict[str, Any] = given(
        n_projections=n_projections,
        n_moments=n_moments,
        moments=moments,
        directions=directions,
        shared_directions=shared_directions,
        seed=seed,
    )
    if projections is None:
        drawing |= {"label": "paper", "scale": None}
    return distance(
        a, b, p=p, projections=projections, estimator="plain", device=device, precision=precision, progress=progress,
        **drawing,
    )  # fmt: skip
