"""A test of two datasets: their points are shuffled between them, through the same projections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import check_choice, check_count, check_order, check_seed
from sotdd.basics.errors import SotddError
from sotdd.basics.progress import Progress, Report, reporting
from sotdd.basics.streams import Stream, generator
from sotdd.basics.text import counted
from sotdd.engines.chance import usable_costs
from sotdd.engines.comparison import check_fits_memory, remarks_on_features
from sotdd.engines.protocol import Precision
from sotdd.engines.splits import Splits
from sotdd.inputs import labelled_pair
from sotdd.inputs.comparable import refuse_half_labelled
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.measure.distance import ORDER, projections_for
from sotdd.measure.statistics import FARTHEST, ORDERS, Aspect, LabelNames, Scope, combined, judged
from sotdd.projections.drawing import Drawing, DrawingSettings, shows_drawing
from sotdd.projections.recipe import Projections
from sotdd.results.noise import rooted_means
from sotdd.results.two_sample import Statistic, TwoSampleTest

if TYPE_CHECKING:
    from sotdd.engines.protocol import Engine

Doubles = NDArray[np.float64]

# Fewer than for a distance: the projections are the same for the data and for all shuffles, so their
# choice is no source of error here, and every one of them costs as much as all shuffles together.
DRAWING = Drawing(n_projections=128)

# Splits that are made between two reports of progress.
_BATCH = 64

# The distances of this many splits, the data included, are shown beside the verdict.
_SHOWN = 200


@shows_drawing(DRAWING)
def test(
    a: Dataset,
    b: Dataset,
    *,
    p: float = ORDER,
    projections: Projections | None = None,
    n_permutations: int = 999,
    statistic: Statistic = "combined",
    label_names: LabelNames = "ignore",
    max_points: int | None = None,
    device: str = "auto",
    precision: Precision = "float32",
    progress: Progress = None,
    **drawing: Unpack[DrawingSettings],
) -> TwoSampleTest:
    """Say whether two labelled datasets may be samples of one source: a permutation test.

    Points are shuffled between the two datasets, labels with their points, class terms are computed
    anew on each side, and the distance is measured again through the same projections. If features
    and labels of both datasets come from one joint distribution, the datasets themselves are one
    more shuffle, so the test errs in at most the stated share of cases, for any size and any law.

    The distance that is tested is the plain mean over the test's own 128 projections, since shuffles are
    judged by the same: ``distance(a, b, n_projections=128, estimator="plain")`` with the other settings
    the same. The default of `sotdd.distance` takes 1,000, leans them towards the data and controls
    them, so its number differs from this one by about the error of 128 plain projections.

    Labels are pooled by value ("cat" is "cat", 0 is not "0"). The distance itself never looks at
    their names, so the same classes under new names are not found to differ; under each other's
    names they may or may not be.

    Parameters
    ----------
    a, b
        As in `sotdd.distance`.
    p
        The order of transport.
    n_projections
        How many projections. Time grows with permutations × projections × points.
    n_moments, moments, label_law, directions, shared_directions, scale
        As in `sotdd.distance`. A scaler that is given must not come from one of the two alone.
    seed
        Of the shuffles and, unless ``projections`` are given, of the projections.
    projections
        As in `sotdd.distance`.
    n_permutations
        How many shuffles; the smallest p-value is 1 / (n_permutations + 1).
    statistic
        "combined": classes as they lie and features alone, each by p = 1 and by p = 2, and how far means differ
        beside the spread in every direction, points beyond three spreads brought that near; whatever stands
        out most counts, and every shuffle is judged in the same way, so that the level holds. "balanced":
        W_p^p alone, each projection divided by the root of what shuffles give under it. "distance": the
        distance.
    label_names
        "ignore": the names of labels never count, only how classes lie. "match": they do: means of classes of
        the same name are compared, and their shares, so that two classes that exchange their names differ.
    max_points
        Use a random sample of this many points of each dataset, where there are more.
    device, precision
        As in `sotdd.distance`.
    progress
        True for a bar, or a function of (done, total).

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(400, 5))
    >>> y = np.where(x[:, 0] > 0, "cat", "dog")
    >>> sotdd.test((x[:200], y[:200]), (x[200:], y[200:]), n_permutations=199)
    p = 0.52: distance 0.102, by chance 0.0783 to 0.137 (199 draws, 128 projections)
    >>> wrong = rng.permutation(y)
    >>> sotdd.test((x[:200], y[:200]), (x[200:], wrong[200:]), n_permutations=199)
    p = 0.025, most by labels, order 2: distance 0.136, by chance 0.0747 to 0.118 (199 draws, 128 projections)
    """
    from sotdd.engines.protocol import engine_for

    check_count(n_permutations, "n_permutations")
    p = check_order(p)
    names: LabelNames = check_choice(label_names, "label_names", get_args(LabelNames))
    judged_by: Statistic = check_choice(statistic, "statistic", get_args(Statistic))
    if names == "match" and judged_by != "combined":
        raise SotddError(f"label_names='match' is given with statistic={judged_by!r}: only 'combined' sees names.")
    seed, settings = seed_and_settings(drawing, projections)
    pair = labelled_pair(a, b)
    refuse_half_labelled(pair)
    data, remarks = sampled(pair, max_points, seed)
    recipe, data = projections_for(data, projections, settings, drawing=DRAWING)
    recipe = recipe.evenly()
    splits = Splits.of(data, (data[0].n_points, data[1].n_points), n_permutations + 1, seed, actual=True)
    scope = Scope.of(splits.n_classes, names) if judged_by == "combined" else None
    engine = engine_for(device, data, recipe.n_projections, precision)
    with reporting(progress, "Shuffling") as report, engine as active:
        shuffles = Shuffles(splits, scope, p, recipe.n_projections, active, report)
        for _ in active.views(data, recipe, before_sorting=lambda seen: shuffles.add(seen.pool((0, 1)))):
            pass
        return shuffles.verdict(judged_by, recipe, (*remarks, *remarks_on_features(data, recipe)))


def seed_and_settings(drawing: DrawingSettings, projections: Projections | None) -> tuple[int, dict[str, Any]]:
    """The seed as a number, for shuffles and samples; and settings to draw projections by it, unless some are given."""
    settings: dict[str, Any] = dict(drawing)
    seed = check_seed(settings.pop("seed", DRAWING.seed))
    return seed, settings if projections is not None else {**settings, "seed": seed}


def sampled(data: list[LabelledData], max_points: int | None, seed: int) -> tuple[list[LabelledData], tuple[str, ...]]:
    """A random sample of each dataset that has more than ``max_points``, and a remark on each sample."""
    if max_points is None:
        return data, ()
    most = check_count(max_points, "max_points")
    result, remarks = [], []
    for number, part in enumerate(data):
        if part.n_points <= most:
            result.append(part)
            continue
        rows = np.sort(generator(seed, Stream.SAMPLE, number).choice(part.n_points, most, replace=False))
        result.append(part.take(rows))
        remarks.append(f"{most:,} of the {part.n_points:,} points of {part.name!r} were sampled")
    return result, tuple(remarks)


class Shuffles:
    """Gathers the costs of splits as pools of projected points go by.

    Parameters
    ----------
    splits
        The ways to deal the points out; the first is the data.
    scope
        Which aspects are judged; None for the distance alone.
    p
        The order of the distance.
    n_projections
        How many projections all pools have together.
    engine, report
        The engine to work on, and where progress is reported.
    """

    def __init__(
        self, splits: Splits, scope: Scope | None, p: float, n_projections: int, engine: Engine, report: Report
    ) -> None:
        self._splits, self._scope, self._p = splits, scope, p
        self._engine, self._report = engine, report
        # Where aspects are judged, distances by chance are only shown, and fewer splits suffice.
        self._compared = splits if scope is None else splits.part(0, min(len(splits), _SHOWN))
        aspects = () if scope is None else scope.aspects
        self._total = n_projections * (len(self._compared) + len(splits) * len(aspects))
        what = f"{counted(len(splits), 'split')} through {counted(n_projections, 'projection')}"
        check_fits_memory(self._total * len(ORDERS), what, len(splits))
        self._distances: list[list[Any]] = [[] for _ in range(0, len(self._compared), _BATCH)]
        self._kept: dict[Aspect, list[list[Any]]] = {a: [[] for _ in range(0, len(splits), _BATCH)] for a in aspects}
        self._rows: list[NDArray[np.float32]] = []
        self._done = 0

    def add(self, pool: Any) -> None:  # noqa: ANN401  # an engine's own
        """Deal a pool out under its projections, which follow those of the pools before."""
        self._deal_out(pool, self._compared, [self._p], self._distances)
        if self._scope is not None:
            near = pool.within(FARTHEST)
            self._rows.append(near.values())
            for aspect, shown in self._scope.pools(near, self._splits.n_classes).items():
                self._deal_out(shown, self._splits, ORDERS, self._kept[aspect])

    def _deal_out(self, pool: Any, splits: Splits, orders: Sequence[float], kept: list[list[Any]]) -> None:  # noqa: ANN401
        for number, by_batch in enumerate(kept):
            batch = splits.part(number * _BATCH, (number + 1) * _BATCH)
            by_batch.append(self._engine.split_costs(pool, batch, orders))
            self._done += len(pool.rows) * len(batch)
            self._report(self._done, self._total)

    def verdict(self, by: Statistic, projections: Projections, remarks: tuple[str, ...] = ()) -> TwoSampleTest:
        """What the costs of all splits say."""
        distances = self._collected(self._distances)[:, :, 0]
        costs = {aspect: self._collected(kept) for aspect, kept in self._kept.items()}
        statistics = judged(distances, costs, self._p, by)
        if self._scope is not None:
            statistics |= self._scope.means(np.concatenate(self._rows), self._splits)
        outstanding, rooted = combined(statistics), rooted_means(distances, self._p)
        return TwoSampleTest(
            distance=float(rooted[0]),
            null_distances=rooted[1:],
            statistic=float(outstanding[0]),
            null=outstanding[1:],
            judged_by=by,
            p=self._p,
            n_points=self._splits.sizes,
            n_projections=projections.n_projections,
            fingerprint=projections.fingerprint,
            remarks=remarks,
            aspects={name: float(np.mean(values >= values[0])) for name, values in statistics.items()},
        )

    def _collected(self, kept: list[list[Any]]) -> Doubles:
        costs = np.concatenate([self._engine.collect(by_batch) for by_batch in kept], axis=1)
        return usable_costs(costs, max(self._p, *ORDERS))
