"""A gate in words: the verdict in one sentence, what decided, and what a reader should know."""

from __future__ import annotations

from collections.abc import Sequence

from sotdd.basics.text import listed
from sotdd.measure.drift_gate import BatchVerdict, Criteria, Gate
from sotdd.pictures.explained import sentence
from sotdd.pictures.page_data import recipe_in_words

KINDS = {"passed": "passed", "drift": "drift", "unknown": "no telling"}


def verdict_of(verdicts: Sequence[BatchVerdict], reference: str, batches: Sequence[str]) -> str:
    """The verdict in one sentence."""
    by = {
        kind: [name for verdict, name in zip(verdicts, batches, strict=True) if verdict.verdict == kind]
        for kind in KINDS
    }
    if len(batches) == 1:
        return {
            "passed": f"No drift was found: {batches[0]} is like {reference}.",
            "drift": f"{batches[0]} has drifted from {reference}.",
            "unknown": f"There is no telling whether {batches[0]} has drifted from {reference}.",
        }[verdicts[0].verdict]
    if by["drift"]:
        have = "has" if len(by["drift"]) == 1 else "have"
        count = f"{len(by['drift']):,} of {len(batches):,} batches {have} drifted from {reference}"
        return f"{count}: {listed(by['drift'], most=4)}."
    if by["unknown"]:
        return (
            f"There is no telling of {len(by['unknown']):,} of {len(batches):,} batches; no drift was found in others."
        )
    return f"No drift was found: all {len(batches):,} batches are like {reference}."


def details_of(verdicts: Sequence[BatchVerdict], batches: Sequence[str]) -> list[str]:
    """What decided about the batch that stands out most, and why there is no telling of others."""
    worst = worst_of(verdicts)
    several = len(batches) > 1
    said = []
    if worst is not None:
        name = f"{batches[worst]}: " if several else ""
        messages = [outcome.message for outcome in verdicts[worst].outcomes]
        said += [f"{name}{message}." if several else sentence(message) for message in messages]
    unknown = [place for place, verdict in enumerate(verdicts) if verdict.verdict == "unknown"]
    why = [str(verdicts[place].error) for place in unknown]
    reasons = [f"{batches[place]}: {text}" for place, text in zip(unknown, why, strict=True)] if several else why
    said += [reason if several else sentence(reason) for reason in reasons[:3]]
    if len(reasons) > 3:
        said.append(f"And {len(reasons) - 3:,} more that there is no telling of.")
    return said


def worst_of(verdicts: Sequence[BatchVerdict]) -> int | None:
    """The batch that drifted most: the smallest p-value, then the largest distance; None where none drifted."""

    def rank(place: int) -> tuple[float, float]:
        verdict = verdicts[place]
        p_value = 1.0 if verdict.p_value is None else verdict.p_value
        return p_value, -float("inf") if verdict.distance is None else -verdict.distance.value

    drifted = [place for place, verdict in enumerate(verdicts) if verdict.verdict == "drift"]
    return min(drifted, key=rank) if drifted else None


def remark_on(verdict: BatchVerdict) -> str:
    """Noise and roughness, as a terminal shows them; and what went wrong."""
    said = [] if verdict.error is None else [verdict.error.rstrip(".")]
    distance = verdict.distance
    if distance is not None and distance.noise is not None:
        within = "within" if distance.within_noise else "beyond"
        said.append(f"{within} noise (floor {distance.noise.value:.3g})")
    if distance is not None and distance.unreliable is not None:
        said.append(f"rough: {distance.unreliable}")
    return "; ".join(said)


def chance_of(verdict: BatchVerdict) -> tuple[float, float] | None:
    """What chance gives, brought to the unit of the distance that is shown."""
    if verdict.test is None or verdict.distance is None:
        return None
    low, high = verdict.test.quantiles((0.05, 0.95)).values()
    unit = verdict.distance.value / verdict.test.distance if verdict.test.distance > 0 else 1.0
    return low * (unit or 1.0), high * (unit or 1.0)


def settings_of(
    gate: Gate | None, criteria: Criteria | None, verdicts: Sequence[BatchVerdict], reference: str
) -> dict[str, str]:
    """What decided, in words."""
    if criteria is None or gate is None:
        return {"reference": reference}
    drift = gate.drift
    said = {"reference": reference}
    if criteria.limit is not None:
        said["decided by the distance"] = f"at most {criteria.limit:g}"
    shared = f", shared by {criteria.n_batches:,} batches" if criteria.n_batches > 1 else ""
    if criteria.level is not None and drift is not None:
        said["decided by a test"] = f"at a level of {100 * criteria.level:g} %{shared}"
        said["shuffles"] = f"{criteria.n_permutations:,} or more"
    elif criteria.limit is None:
        said["decided by noise"] = f"at a level of 5 %{shared}"
    said["points it takes to pass"] = f"{criteria.fewest:,}"
    if drift is not None:
        said |= {"order of transport": f"p = {drift.p:g}", "names of labels": drift.label_names}
        said |= recipe_in_words(drift.projections)
    measured = next((verdict.distance for verdict in verdicts if verdict.distance is not None), None)
    if measured is not None:
        said["distance"] = measured.how
    return said
