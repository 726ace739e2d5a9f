"""The distance between two labelled datasets, with its uncertainty."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from sotdd.data import Dataset, LabelledData
from sotdd.defaults import default, given
from sotdd.errors import SotddError
from sotdd.progress import Progress, reporting
from sotdd.projections.directions import DirectionLaw
from sotdd.projections.labels import LabelLaw
from sotdd.projections.moments import MomentLaw
from sotdd.projections.recipe import Projections
from sotdd.scaling import Scaler

if TYPE_CHECKING:
    from sotdd.engines.cpu import CpuEngine


@dataclass(frozen=True, eq=False)
class Distance:
    """A distance between two datasets, estimated from projections.

    Attributes
    ----------
    per_projection
        W_p^p under each projection; the distance is the p-th root of their mean.
    p
        The order of transport.
    n_points
        The sizes of the two datasets.
    classes
        The labels of each.
    fingerprint
        Which projections were used: distances are comparable when it is the same.
    scaler
        What was done to features first.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(size=(500, 8)), rng.normal(1, 1, size=(400, 8))
    >>> r = sotdd.distance(a, b)
    >>> r
    0.576 ± 0.021 (s-OTDD, p=2, 1,000 projections)
    >>> low, high = r.interval(0.95)
    >>> low < float(r) < high
    True
    """

    per_projection: NDArray[np.float64]
    p: float
    n_points: tuple[int, int]
    classes: tuple[tuple[Hashable, ...], tuple[Hashable, ...]]
    fingerprint: str
    scaler: Scaler | None
    method: str = field(default="s-OTDD")

    def __post_init__(self) -> None:
        """Freeze the numbers."""
        self.per_projection.flags.writeable = False

    @property
    def n_projections(self) -> int:
        """How many projections it is the mean of."""
        return len(self.per_projection)

    @property
    def value(self) -> float:
        """The distance: the p-th root of the mean of W_p^p. The paper's algorithm returns value ** p."""
        return float(np.mean(self.per_projection) ** (1 / self.p))

    @property
    def stderr(self) -> float:
        """Standard error of the value over the choice of projections, by the delta method.

        NaN for a single projection. Projections are taken as independent, which is cautious
        for orthogonal directions.
        """
        if self.value == 0:
            return 0.0
        return self._stderr_of_mean * self.value / (self.p * float(np.mean(self.per_projection)))

    @property
    def _stderr_of_mean(self) -> float:
        if self.n_projections < 2:
            return math.nan
        return float(np.std(self.per_projection, ddof=1)) / math.sqrt(self.n_projections)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """An interval that covers the distance over all projections with this confidence.

        Student's interval for the mean of W_p^p, carried to its root. It knows of the choice
        of projections only, not of the sampling of the data.
        """
        if not isinstance(level, (int, float)) or not 0 < level < 1:
            raise SotddError(f"level is {level!r}: expected a number between 0 and 1, such as 0.95.")
        if self.n_projections < 2:
            return math.nan, math.nan
        from scipy.special import stdtrit

        mean = float(np.mean(self.per_projection))
        reach = float(stdtrit(self.n_projections - 1, (1 + level) / 2)) * self._stderr_of_mean
        return max(0.0, mean - reach) ** (1 / self.p), (mean + reach) ** (1 / self.p)

    def __float__(self) -> float:
        """The value."""
        return self.value

    def __repr__(self) -> str:
        """Value and error to the digits that mean something, and how they were made."""
        projections = "1 projection" if self.n_projections == 1 else f"{self.n_projections:,} projections"
        return f"{with_error(self.value, self.stderr)} ({self.method}, p={self.p:g}, {projections})"

    def to_dict(self, *, per_projection: bool = False) -> dict[str, Any]:
        """Everything as JSON values; W_p^p of each projection only when asked for."""
        low, high = self.interval(0.95)
        result = {
            "method": self.method,
            "value": self.value,
            "stderr": _json_number(self.stderr),
            "interval_95": [_json_number(low), _json_number(high)],
            "p": self.p,
            "n_projections": self.n_projections,
            "n_points": list(self.n_points),
            "n_classes": [len(classes) for classes in self.classes],
            "classes": [[_json_label(label) for label in classes] for classes in self.classes],
            "fingerprint": self.fingerprint,
            "scaler": None if self.scaler is None else self.scaler.to_dict(),
        }
        return {**result, "per_projection": self.per_projection.tolist()} if per_projection else result


def distance(
    a: Dataset,
    b: Dataset,
    *,
    n_projections: int = default(1000),
    p: float = 2,
    n_moments: int = default(5),
    moments: MomentLaw | Sequence[float] | None = default(None),
    label: LabelLaw | None = default(None),
    directions: DirectionLaw | None = default(None),
    shared_directions: bool = default(True),
    scale: Literal["pooled"] | Scaler | None = default("pooled"),
    seed: int | np.random.Generator = default(0),
    projections: Projections | None = None,
    progress: Progress = None,
) -> Distance:
    """Say how far apart two labelled datasets are: the sliced optimal transport dataset distance.

    Parameters
    ----------
    a, b
        ``(features, labels)``, or features alone, which is one class. Features are any array of
        shape (n, ...) of real numbers, memory-mapped ones included; labels are any hashable values.
        The label sets need not have anything in common.
    n_projections
        How many projections; the error falls with its square root.
    p
        The order of transport, any real number from 1.
    n_moments, moments, label
        How many moments of a class enter and by what law their orders are drawn, or another label
        law altogether; see `Projections.fit`.
    directions, shared_directions
        The law of directions, and whether labels share them.
    scale
        "pooled" to centre and scale features by the pooled data, None for features as they are,
        or a `Scaler` to reuse.
    seed
        An integer, or a NumPy Generator.
    projections
        Projections to reuse in place of all of the above but p: results are then comparable with
        others from the same projections. They bring their own scaler.
    progress
        True for a bar, or a function of (done, total) projections.

    Returns
    -------
    Distance
        The value, its standard error and interval, and W_p^p of every projection.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(300, 5))
    >>> cats_and_dogs = np.where(x[:, 0] > 0, "cat", "dog")
    >>> birds = rng.integers(3, size=300)
    >>> sotdd.distance((x, cats_and_dogs), (x, cats_and_dogs)).value
    0.0
    >>> sotdd.distance((x, cats_and_dogs), (x, birds))
    0.0950 ± 0.0056 (s-OTDD, p=2, 1,000 projections)
    """
    datasets = [LabelledData.of(a, "a"), LabelledData.of(b, "b")]
    drawing = given(
        n_projections=n_projections,
        n_moments=n_moments,
        moments=moments,
        label=label,
        directions=directions,
        shared_directions=shared_directions,
        scale=scale,
        seed=seed,
    )
    recipe = projections_for(datasets, projections, drawing)
    per_projection = transports(datasets, [(0, 1)], recipe, p, progress)[0]
    return between(datasets[0], datasets[1], recipe, p, per_projection)


def projections_for(
    datasets: Sequence[LabelledData], projections: Projections | None, drawing: dict[str, Any]
) -> Projections:
    """Use the given projections, or draw them as asked; not both."""
    if projections is None:
        return Projections.fit(list(datasets), **drawing)
    if not isinstance(projections, Projections):
        raise SotddError(
            f"projections is a {type(projections).__name__}: expected Projections.fit(...) or from_arrays(...)."
        )
    if drawing:
        raise SotddError(
            f"projections are given together with {', '.join(drawing)}: they are drawn already, so leave that out."
        )
    for data in datasets:
        projections.check(data)
    return projections


def transports(
    datasets: Sequence[LabelledData],
    pairs: Sequence[tuple[int, int]],
    projections: Projections,
    p: float,
    progress: Progress = None,
    engine: CpuEngine | None = None,
) -> NDArray[np.float64]:
    """W_p^p (pairs, L) under every projection; each dataset is projected and sorted once."""
    from sotdd.engines.cpu import CpuEngine
    from sotdd.transport import check_order

    p = check_order(p)
    result = np.empty((len(pairs), projections.n_projections))
    with reporting(progress, "Projecting") as report, engine or CpuEngine() as active:
        for part, rows in active.views(datasets, projections):
            for k, (i, j) in enumerate(pairs):
                result[k, part] = active.transport(rows[i], rows[j], p)
            report(part.stop, projections.n_projections)
    if not np.isfinite(result).all():
        raise SotddError(f"transport to the power p={p:g} overflows: use a smaller p or scale='pooled'.")
    return result


def between(
    a: LabelledData, b: LabelledData, projections: Projections, p: float, per_projection: NDArray[np.float64]
) -> Distance:
    """Wrap W_p^p of every projection up as a distance."""
    return Distance(
        per_projection=per_projection,
        p=float(p),
        n_points=(a.n_points, b.n_points),
        classes=(a.classes, b.classes),
        fingerprint=projections.fingerprint,
        scaler=projections.scaler,
    )


def with_error(value: float, stderr: float) -> str:
    """Write a value and its error with two digits of the error: 0.507 ± 0.012."""
    if math.isnan(stderr):
        return f"{value:.4g}"
    if stderr == 0:
        return f"{value:.4g} ± 0"
    digits = 1 - math.floor(math.log10(stderr))
    if 0 <= digits <= 6 and value < 1e6:
        return f"{value:.{digits}f} ± {stderr:.{digits}f}"
    return f"{value:.4g} ± {stderr:.2g}"


def _json_number(number: float) -> float | None:
    """JSON has no NaN."""
    return None if math.isnan(number) else number


def _json_label(label: Hashable) -> str | int | float | bool:
    """Labels that JSON cannot hold are written as text."""
    if isinstance(label, np.generic):
        label = label.item()
    return label if isinstance(label, (str, int, float, bool)) else str(label)
