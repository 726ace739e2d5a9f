"""A distance between two datasets, with its uncertainty and the noise floor it stands on: what every method returns."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import Result, check_level, picture
from sotdd.basics.remarks import Remark, Remarks, join_remarks
from sotdd.basics.text import json_label, json_number, one_line, say_count, with_error
from sotdd.compute.resampling import TooAlike, find_distances
from sotdd.projections.scaler import Scaler

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The logarithm of the largest float, which limits of absurd levels are held to.
_LARGEST_LOG = math.log(np.finfo(np.float64).max)

# Fewer splits do not settle, with 90 % confidence, that a distance beyond all of them is beyond 5 % of all splits.
_FEWEST_COUNTED = 59

# A verdict is borderline where this level of confidence does not settle it.
_CONFIDENCE = 0.9


@dataclass(frozen=True, eq=False)
class NoiseFloor(Result):
    """Distances of random splits of the pooled data, measured as the distance itself is.

    Every split gives all points of both datasets at random to two sides of the original sizes,
    labels with their points, and class terms are computed anew on each side. Splits and data are seen
    through the same projections, all of them by plain means: if both datasets are samples of one source,
    the data are one more split, so the verdict errs as often as its level says, whatever the law.

    Attributes
    ----------
    distances
        The distance of each split, in the unit of ``distance``.
    p
        The order of transport.
    distance
        The distance that they are compared with.

    Examples
    --------
    >>> import numpy as np
    >>> from sotdd.compute.distance import NoiseFloor
    >>> floor = NoiseFloor(np.linspace(0.04, 0.06, 59), p=2, distance=0.052)
    >>> floor
    NoiseFloor(0.0503 ± 0.0059 from split to split, 59 splits)
    >>> floor.p_value, floor.borderline
    (0.4166666666666667, False)
    """

    distances: NDArray[np.float64]
    p: float
    distance: float = math.nan

    @classmethod
    def of(cls, costs: NDArray[np.float64], of_data: NDArray[np.float64], p: float, distance: float) -> NoiseFloor:
        """From W_p^p (B, S) of the first projections and every split, and (L,) of the data under all projections.

        ``distance`` is the best estimate there is for the data. What the same projections make of the splits
        and of the data is brought to its unit, so that what these projections exaggerate cancels.
        """
        plain = float(find_distances(of_data[: len(costs), None], p)[0])
        unit = distance / plain if plain > 0 and distance > 0 else 1.0
        return cls(find_distances(costs, p) * unit, p, distance)

    @classmethod
    def of_halves(
        cls, halves: Sequence[tuple[int, NDArray[np.float64]]], sizes: tuple[int, int], p: float, distance: float
    ) -> NoiseFloor | None:
        """The floor that datasets of these sizes would have, from the halves of each; None where none was halved.

        ``halves`` holds, of each of the two, its number of points and how far its halves are apart. Distances of
        samples fall with the root of 1/n + 1/m, which is 4/n for two halves.
        """
        scaled = []
        for n, apart in halves:
            half = n // 2
            scaled.append(apart * math.sqrt((1 / sizes[0] + 1 / sizes[1]) / (1 / half + 1 / (n - half))))
        return cls(np.concatenate(scaled), p, distance) if scaled else None

    @property
    def p_value(self) -> float:
        """How often a split is as far apart, the data themselves counted as one of them."""
        return (1 + int(np.count_nonzero(self.distances >= self.distance))) / (1 + len(self.distances))

    @property
    def within(self) -> bool:
        """Whether the distance is no farther than splits often are: beyond it is what 5 % of them exceed.

        By rank where there are splits enough for 5 %, which is 19; by Student's limit where there are fewer.
        """
        return self.distance <= self.limit(0.95)

    @property
    def borderline(self) -> bool:
        """Whether as many splits again might turn the verdict at 5 %.

        The share of all splits that are as far apart lies, with 90 % confidence, on both sides of 5 %. Where there are
        too few splits for their number to settle it, the distance is as far as 1 to 20 % of splits by Student's limit.
        """
        from scipy.special import betaincinv

        if len(self.distances) < _FEWEST_COUNTED:
            return self._student(0.8) < self.distance < self._student(0.99)
        count, farther = len(self.distances), int(np.count_nonzero(self.distances >= self.distance))
        tail = (1 - _CONFIDENCE) / 2
        low = float(betaincinv(farther, count - farther + 1, tail)) if farther else 0.0
        high = float(betaincinv(farther + 1, count - farther, 1 - tail)) if farther < count else 1.0
        return low < 0.05 < high

    @property
    def value(self) -> float:
        """The floor: the root of the mean of W_p^p over projections and splits."""
        unit = float(self.distances.max()) or 1.0
        return unit * math.pow(float(np.mean((self.distances / unit) ** self.p)), 1 / self.p)

    @property
    def power(self) -> float:
        """The floor to the power p: the mean of W_p^p over projections and splits."""
        return float(np.mean(self.distances**self.p))

    @property
    def spread(self) -> float:
        """Standard deviation of the distance from split to split."""
        return float(np.std(self.distances, ddof=1))

    def find_alike(self, sizes: tuple[int, int]) -> TooAlike:
        """Whether the distance is too small for samples of these sizes.

        By Student's law for cube roots of squares, which are about normal, since there are few splits.
        """
        from scipy.special import stdtr

        near, *splits = np.cbrt(np.array([self.distance, *self.distances]) ** 2)
        spread = float(np.std(splits, ddof=1)) * math.sqrt(1 + 1 / len(splits)) if len(splits) > 1 else 0.0
        p_value = float(stdtr(len(splits) - 1, (near - np.mean(splits)) / spread)) if spread > 0 else 1.0
        return TooAlike.of(np.array([self.distance, *self.distances]) ** 2, sizes, p_value)

    def limit(self, level: float = 0.95) -> float:
        """What a further split would stay below with this probability, whatever the law.

        That many of the splits, in order, are below it. Where there are too few for the level it is
        Student's prediction limit for the logarithm; for the distances themselves where one of them is zero.
        """
        share = check_level(level)
        count = len(self.distances)
        rank = math.ceil(round((count + 1) * share, 9))
        return float(np.sort(self.distances)[rank - 1]) if rank <= count else self._student(share)

    def _student(self, share: float) -> float:
        """Student's prediction limit for the logarithm of a further split."""
        from scipy.special import stdtrit

        count = len(self.distances)
        positive = bool(self.distances.min() > 0)
        draws = np.log(self.distances) if positive else self.distances
        reach = float(stdtrit(count - 1, share)) * float(np.std(draws, ddof=1)) * math.sqrt(1 + 1 / count)
        limit = float(np.mean(draws)) + reach
        return float(np.exp(min(limit, _LARGEST_LOG))) if positive else limit

    def __repr__(self) -> str:
        """Value, spread and number of splits."""
        splits = say_count(len(self.distances), "split")
        return f"NoiseFloor({self.value:.3g} ± {self.spread:.2g} from split to split, {splits})"

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON values."""
        return {
            "noise_floor": self.value,
            "noise_spread": self.spread,
            "noise_limit_95": self.limit(0.95),
            "noise_splits": len(self.distances),
            "noise_p_value": self.p_value,
            "borderline": self.borderline,
        }


@dataclass(frozen=True, eq=False)
class Distance(Result):
    """A distance between two datasets.

    Attributes
    ----------
    value
        The distance, rooted: the paper's algorithm returns ``value ** p``.
    stderr
        Standard error of the value over the choice of projections; NaN where the method has no
        such choice, or a single projection cannot tell.
    p
        The order of transport.
    n_points
        The sizes of the two datasets.
    classes
        The labels of each.
    method
        How it was measured.
    per_projection
        W_p^p under each projection; None for a method without projections.
    fingerprint
        Which projections were used: distances are comparable when it is the same.
    scaler
        What was done to features first.
    label_distances
        W_p^p between the classes of one and of the other, from methods that compute them.
    remarks
        What a reader should know beside the number, such as that points were sampled.
    noise
        What two samples of the pooled data would give, where that was requested; between sketches, what halves of
        each give, brought to these sizes.
    sampling
        What each dataset's own halves give, brought to these sizes: a rough floor that three or more datasets
        in `pairwise` have without a request for one.
    estimator
        How ``value`` was made of ``per_projection``: "plain", the mean; or "controlled", with what
        was controlled in brackets.
    weights
        The weight of each projection in that mean; None where all are one.
    contributions
        (L,) what each projection adds, with its weight and less its controls: ``value ** p`` is their
        mean; for the plain estimator they are ``per_projection``.
    unreliable
        Why the error and the interval may not hold; None where they can be relied on.
    sketch_error
        How far the value may be, at most, from what the points themselves give through the same
        projections, since sketches keep less; None where points were compared, or no bound is known.
    columns
        The names of the features, in the order of the projections; None where they have none.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(size=(500, 8)), rng.normal(1, 1, size=(400, 8))
    >>> r = sotdd.distance(a, b)
    >>> r
    0.5823 ± 0.0023 (s-OTDD, p=2, 1,000 projections)
    >>> low, high = r.interval(0.95)
    >>> low < float(r) < high
    True
    """

    value: float
    stderr: float
    p: float
    n_points: tuple[int, int]
    classes: tuple[tuple[Hashable, ...], tuple[Hashable, ...]]
    method: str
    per_projection: NDArray[np.float64] | None = None
    fingerprint: str | None = None
    scaler: Scaler | None = None
    label_distances: NDArray[np.float64] | None = None
    remarks: Remarks = ()
    noise: NoiseFloor | None = None
    estimator: str = "plain"
    weights: NDArray[np.float64] | None = None
    contributions: NDArray[np.float64] | None = None
    unreliable: Remark | None = None
    sampling: NoiseFloor | None = None
    sketch_error: float | None = None
    columns: tuple[str, ...] | None = None

    @property
    def reliable(self) -> bool:
        """Whether the error and the interval can be relied on; ``unreliable`` says why not."""
        return self.unreliable is None

    @property
    def n_projections(self) -> int | None:
        """How many projections it is the mean of; None for a method without projections."""
        return None if self.per_projection is None else len(self.per_projection)

    @property
    def scale(self) -> str:
        """How features were scaled: "arcsinh", "features", "pooled" or "none"; see `Scaler.fit`."""
        return "none" if self.scaler is None else self.scaler.kind

    @property
    def noise_floor(self) -> float | None:
        """The distance of two samples of the pooled data of these sizes; None where it was not requested."""
        return None if self.noise is None else self.noise.value

    @property
    def within_noise(self) -> bool | None:
        """Whether the distance alone is within noise: ``noise.limit(0.95)``, which 5 % of all splits exceed.

        Two samples of one source are called farther in 5 % of cases. ``noise.borderline`` says where more
        splits might turn it. Only the distance is judged: whether the datasets differ, `sotdd.test` says.
        """
        return None if self.noise is None else self.noise.within

    @property
    def too_alike(self) -> TooAlike | None:
        """Whether the distance is smaller than samples of one source make it; None where no floor was measured."""
        return None if self.noise is None else self.noise.find_alike(self.n_points)

    @property
    def excess(self) -> float | None:
        """``value ** p`` less its noise floor: what chance alone does not explain; None where no floor was measured.

        Near zero, below as often as above, for samples of one source; so it compares datasets of any sizes.
        """
        return None if self.floor is None else self.value**self.p - self.floor.power

    @property
    def beyond_noise(self) -> float | None:
        """The root of ``excess``, or 0: the distance minus its expected sampling noise, in the unit of ``value``."""
        return None if self.excess is None else max(0.0, self.excess) ** (1 / self.p)

    @property
    def excess_stderr(self) -> float | None:
        """Standard error of ``excess``: over the choice of projections, and over samples of these sizes."""
        if self.floor is None:
            return None
        by_projections = self.p * self.value ** (self.p - 1) * self.stderr if math.isfinite(self.stderr) else 0.0
        return math.hypot(self.sampling_stderr, by_projections)

    @property
    def sampling_stderr(self) -> float:
        """Standard deviation of ``value ** p`` over samples of one source; 0 where no floor was measured."""
        if self.floor is None:
            return 0.0
        powers = self.floor.distances**self.p
        return float(np.std(powers, ddof=1)) * math.sqrt(1 + 1 / len(powers))

    @property
    def floor(self) -> NoiseFloor | None:
        """The best floor there is: ``noise``, or the rough ``sampling``."""
        return self.noise if self.noise is not None else self.sampling

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """An interval that covers the distance over all projections with this confidence.

        Student's interval for the mean of W_p^p, carried to its root. It knows of the choice
        of projections only, not of the sampling of the data.
        """
        share = check_level(level)
        if self.n_projections is None or math.isnan(self.stderr):
            return math.nan, math.nan
        from scipy.special import stdtrit

        quantile = float(stdtrit(self.n_projections - 1, (1 + share) / 2))
        if self.value == 0:
            return 0.0, self.stderr * quantile ** (1 / self.p)
        reach = quantile * self.p * self.stderr / self.value  # relative, of the mean of W_p^p
        return self.value * max(0.0, 1 - reach) ** (1 / self.p), self.value * (1 + reach) ** (1 / self.p)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw it beside its noise floor, or beside what each projection gives; returns matplotlib's axes."""
        return picture("distance")(self, ax)

    def __float__(self) -> float:
        """The value."""
        return self.value

    def __repr__(self) -> str:
        """Value and error to the digits that mean something, and how they were made."""
        rough = "" if self.reliable else ", rough"
        said = [*self.remarks, *([] if self.unreliable is None else [self.unreliable])]
        return f"{with_error(self.value, self.stderr)}{rough}{self._beside_noise()} ({self.how})" + "".join(
            f"; {one_line(one)}" for one in said
        )

    @property
    def how(self) -> str:
        """How it was measured, in a few words; the scale is named only where each feature has its own."""
        said = [self.method, f"p={self.p:g}"]
        if self.n_projections is not None:
            said.append(say_count(self.n_projections, "projection"))
        if self.scale in ("features", "arcsinh"):
            said.append(f"each {'feature' if self.columns is None else 'column'} scaled")
        return ", ".join(said)

    def _beside_noise(self) -> str:
        if self.noise is None:
            return ""
        exact = self.noise.limit(0.95)
        said = with_error(exact, self.noise.spread).partition(" ")[0]
        if (self.value <= float(said)) != self.within_noise:  # few digits must not say otherwise
            said = f"{exact:.10g}"
        limit = f"95 % limit {said}"
        close = "borderline, " if self.noise.borderline else ""
        alike = "".join(f", {remark}" for remark in self.noise.find_alike(self.n_points).list_remarks())
        return f", by itself {'within' if self.within_noise else 'beyond'} noise ({close}{limit}){alike}"

    def to_dict(self, *, per_projection: bool = False) -> dict[str, Any]:
        """Everything as JSON values; W_p^p of each projection only on request."""
        low, high = self.interval(0.95)
        result: dict[str, Any] = {
            "method": self.method,
            "value": self.value,
            "stderr": json_number(self.stderr),
            "interval_95": [json_number(low), json_number(high)],
            "p": self.p,
            "n_projections": self.n_projections,
            "n_points": list(self.n_points),
            "n_classes": [len(classes) for classes in self.classes],
            "classes": [[json_label(label) for label in classes] for classes in self.classes],
            "estimator": self.estimator,
            "reliable": self.reliable,
            "fingerprint": self.fingerprint,
            "scale": self.scale,
            "scaler": None if self.scaler is None else self.scaler.to_dict(),
        }
        known = {
            "columns": None if self.columns is None else list(self.columns),
            "label_distances": None if self.label_distances is None else self.label_distances.tolist(),
            "unreliable": None if self.unreliable is None else self.unreliable.to_dict(),
            **({} if self.noise is None else {**self.noise.to_dict(), "within_noise": self.within_noise}),
            "too_alike": None if self.too_alike is None else asdict(self.too_alike),
            "excess": self.excess,
            "excess_stderr": None if self.excess_stderr is None else json_number(self.excess_stderr),
            "sketch_error": self.sketch_error,
            "remarks": [remark.to_dict() for remark in self.remarks] or None,
        }
        result |= {name: value for name, value in known.items() if value is not None}
        if per_projection:
            result["per_projection"] = None if self.per_projection is None else self.per_projection.tolist()
            result["weights"] = None if self.weights is None else self.weights.tolist()
        return result


def gather_remarks(distances: Collection[Distance]) -> Remarks:
    """What a reader should know beside the numbers, such as that points were sampled or errors are rough; each once."""
    rough = sum(not distance.reliable for distance in distances)
    of_errors = [Remark("rough errors", rough=rough, of=len(distances))] if rough else []
    return join_remarks(*(distance.remarks for distance in distances), of_errors)
