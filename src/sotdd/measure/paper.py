"""The paper to the letter: its Algorithm 1, without anything that this package adds."""

from __future__ import annotations

from typing import Unpack, cast

from sotdd.basics.errors import UnknownSetting
from sotdd.basics.memory import within_memory
from sotdd.basics.progress import Progress
from sotdd.engines.protocol import Precision
from sotdd.inputs.data import Dataset
from sotdd.measure.distance import FEWER_POINTS, ORDER, MethodSettings, distance
from sotdd.projections.directions import Sphere
from sotdd.projections.drawing import DrawingSettings, shows_drawing
from sotdd.projections.recipe import Projections
from sotdd.results.distance import Distance

# What the paper leaves to whoever prepares the data, and the label term that is its own.
_ITS_OWN: DrawingSettings = {"label_law": "paper", "scale": None}


@shows_drawing(without=tuple(_ITS_OWN))
@within_memory(FEWER_POINTS)
def paper(
    a: Dataset,
    b: Dataset,
    *,
    p: float = ORDER,
    projections: Projections | None = None,
    device: str = "auto",
    precision: Precision = "float32",
    progress: Progress = None,
    **drawing: Unpack[DrawingSettings],
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
    p, n_projections, n_moments, moments, directions, shared_directions, seed
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
    for name in _ITS_OWN:
        if name in drawing:
            raise UnknownSetting(f"the paper's definition has no setting {name}: use sotdd.distance.")
    settings = drawing if projections is not None else {"directions": Sphere(), **drawing, **_ITS_OWN}
    return distance(
        a, b, p=p, projections=projections, estimator="plain", device=device, precision=precision, progress=progress,
        **cast("MethodSettings", settings),
    )  # fmt: skip
