"""Private statistics and counts as files, in the format of `sotdd.sketches.file`. All numbers in them are noisy."""

from __future__ import annotations

from os import PathLike

import numpy as np

from sotdd.basics.errors import SotddError
from sotdd.basics.files import write_whole
from sotdd.projections.recipe import Projections
from sotdd.sketches.builder_file import labels_as_json, packed_projections, projections_in
from sotdd.sketches.checked import Checked
from sotdd.sketches.file import Arrays, Header, content_of, packed, unpacked
from sotdd.sketches.memory import memory_for
from sotdd.sketches.privacy import Budget
from sotdd.sketches.private_counting import Bounds, checked_terms
from sotdd.sketches.private_release import PrivateCounts
from sotdd.sketches.private_statistics import Party, PrivateStatistics

_STATISTICS, _COUNTS = "private statistics", "private counts"


@memory_for("the file of private statistics", "use fewer projections")
def write_private_statistics(statistics: PrivateStatistics, path: str | PathLike[str]) -> None:
    """Write noisy class statistics."""
    write_whole(path, packed(_STATISTICS, *_put(statistics)))


@memory_for("the file of private statistics", "open it where there is more memory")
def read_private_statistics(path: str | PathLike[str], projections: Projections | None) -> PrivateStatistics:
    """Read what `write_private_statistics` wrote."""
    checked = unpacked(_STATISTICS, content_of(path, _STATISTICS), str(path))
    return _take(checked, path, projections)


@memory_for("the file of private counts", "use fewer projections")
def write_private_counts(released: PrivateCounts, path: str | PathLike[str]) -> None:
    """Write noisy counts, and the statistics that they were placed by."""
    header, arrays = _put(released.statistics)
    header |= {"counted": _packed_parties(released.parties), "variance": released.variance}
    arrays["counts"] = released.counts
    write_whole(path, packed(_COUNTS, header, arrays))


@memory_for("the file of private counts", "open it where there is more memory")
def read_private_counts(path: str | PathLike[str], projections: Projections | None) -> PrivateCounts:
    """Read what `write_private_counts` wrote."""
    checked = unpacked(_COUNTS, content_of(path, _COUNTS), str(path))
    statistics = _take(checked, path, projections)
    counts = checked.array("counts", (np.int64,), (statistics.projections.n_projections, None))
    return PrivateCounts(
        statistics, _parties(checked, "counted"), _held(checked, counts), _variance(checked, "variance")
    )


def _put(statistics: PrivateStatistics) -> tuple[Header, Arrays]:
    header, arrays = packed_projections(statistics.projections)
    header |= {
        "classes": labels_as_json(list(statistics.classes)),
        "parties": _packed_parties(statistics.parties),
        "max_norm": statistics.bounds.max_norm,
        "reach": statistics.bounds.reach,
        "max_label": statistics.bounds.max_label,
        "size_variance": statistics.size_variance,
    }
    arrays |= {"sizes": statistics.sizes, "sums": statistics.sums, "sum_variances": statistics.sum_variances}
    return header, arrays


def _take(checked: Checked, path: str | PathLike[str], projections: Projections | None) -> PrivateStatistics:
    drawn = projections_in(checked, projections, path)
    classes, count = checked.labels(), drawn.n_projections
    if not classes:
        raise checked.refused("it has no classes")
    try:
        given = (checked.number(key) for key in ("max_norm", "reach", "max_label"))
        bounds = Bounds.of(checked_terms(drawn), *given)
    except SotddError as error:
        raise checked.refused(f"its bounds cannot be ({error})") from error
    sizes = checked.array("sizes", (np.int64,), (len(classes),))
    sums = checked.array("sums", (np.float64,), (len(classes), count))
    variances = checked.lengths("sum_variances", (count,))
    if (np.abs(sums) > 1e100).any():
        raise checked.refused("its sums are beyond all that can be counted")
    parties, of_sizes = _parties(checked, "parties"), _variance(checked, "size_variance")
    return PrivateStatistics(drawn, classes, bounds, parties, _held(checked, sizes), sums, of_sizes, variances)


def _held(checked: Checked, counts: np.typing.NDArray[np.int64]) -> np.typing.NDArray[np.int64]:
    """Counts whose sums stay within 64 bits; noise may make them negative."""
    checked.not_negative("counts", np.abs(np.clip(counts, -(2**62), 2**62)))
    return counts.copy()


def _variance(checked: Checked, key: str) -> float:
    value = checked.number(key)
    if not 0 <= value < 1e100:
        raise checked.refused(f"its {key!r} is no variance")
    return value


def _packed_parties(parties: tuple[Party, ...]) -> list[Header]:
    return [{"name": party.name, "epsilon": party.budget.epsilon, "delta": party.budget.delta} for party in parties]


def _parties(checked: Checked, key: str) -> tuple[Party, ...]:
    found = []
    for entry in checked.objects(key):
        try:
            found.append(Party(entry.text("name"), Budget(entry.number("epsilon"), entry.number("delta"))))
        except SotddError as error:
            raise checked.refused(f"its {key!r} have no budget ({error})") from error
    if not found or len({party.name for party in found}) < len(found):
        raise checked.refused(f"its {key!r} are none, or the same twice")
    return tuple(found)
