"""The pages of two datasets: whether they may be samples of one source, and why they are apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sotdd.basics.text import counted, with_error
from sotdd.pictures.data_section import data_section
from sotdd.pictures.dataset_facts import Facts
from sotdd.pictures.explained import class_sizes, drivers, said_of, sentence
from sotdd.pictures.html_parts import table
from sotdd.pictures.short_names import short_names
from sotdd.pictures.verdict_charts import chance_chart
from sotdd.pictures.verdict_code import explanation_code, test_code
from sotdd.pictures.verdict_page import Section, VerdictPage
from sotdd.results.distance import Distance
from sotdd.results.explanation import Explanation
from sotdd.results.two_sample import TwoSampleTest

# The level that verdicts of a test are stated at.
_LEVEL = 0.05


def test_page(
    test: TwoSampleTest,
    names: Sequence[str],
    facts: Sequence[Facts] = (),
    *,
    title: str | None = None,
    asked: tuple[Sequence[str], Mapping[str, Any]] | None = None,
) -> VerdictPage:
    """Whether two datasets may be samples of one source; ``asked`` are their sources and the settings of the call."""
    one, other = short_names(names)
    rejected = test.rejects(_LEVEL)
    often = f"{100 * test.p_value:.3g} % of shuffles are as far apart (p = {test.p_value:.3g})"
    if rejected:
        verdict = f"{one} and {other} are not samples of one source."
        most = test.most_by
        details = [f"At a level of 5 %: {often}{most}."]
    else:
        verdict = f"{one} and {other} may be samples of one source."
        details = [f"One source is not ruled out at a level of 5 %: {often}."]
    low, high = test.quantiles((0.05, 0.95)).values()
    details.append(
        f"They are {test.distance:.3g} apart; by chance, 90 % of shuffles are {low:.3g} to {high:.3g} apart."
    )
    chart = chance_chart(test.distance, (low, high), f"Distance {test.distance:.3g}, by chance {low:.3g} to {high:.3g}")
    note = "The band is where 90 % of distances lie after the points are shuffled between the two datasets."
    sections = [Section("The distance beside chance", chart, note), *_aspects(test), *_about(facts, (one, other))]
    settings = {
        "statistic": test.judged_by,
        "shuffles": f"{len(test.null):,}",
        "projections": f"{test.n_projections:,}",
        "order of transport": f"p = {test.p:g}",
        "fingerprint": test.fingerprint,
        **_remarks(test.remarks),
    }
    return VerdictPage(
        title or f"Are {one} and {other} of one source?",
        _sizes(test.n_points, (one, other)),
        "bad" if rejected else "good",
        verdict,
        details,
        sections,
        settings,
        "" if asked is None else test_code(*asked),
        {"a": names[0], "b": names[1], **test.to_dict()},
    )


def explanation_page(
    why: Explanation,
    names: Sequence[str],
    facts: Sequence[Facts] = (),
    *,
    title: str | None = None,
    asked: tuple[Sequence[str], Mapping[str, Any]] | None = None,
) -> VerdictPage:
    """Why two datasets are apart; ``asked`` are their sources and the settings of the call."""
    one, other = short_names(names)
    why = replace(why, names=(one, other))
    differ = "do not differ" if why.within_noise else "differ"
    apart = with_error(why.distance.value, why.distance.stderr)
    verdict = f"{one} and {other} {differ} beyond noise: they are {apart} apart."
    settings = {**_measured(why.distance), **_remarks(why.distance.remarks)}
    return VerdictPage(
        title or f"Why are {one} and {other} apart?",
        _sizes(why.distance.n_points, (one, other)),
        "good" if why.within_noise else "plain",
        verdict,
        [*said_of(why), *map(sentence, _reliability(why.distance))],
        [*drivers(why), *_about(facts, (one, other), with_sizes=False)],
        settings,
        "" if asked is None else explanation_code(*asked),
        {"a": names[0], "b": names[1], **_numbers(why)},
    )


def _aspects(test: TwoSampleTest) -> list[Section]:
    if len(test.aspects) < 2:
        return []
    rows = [(name, f"{value:.3g}") for name, value in sorted(test.aspects.items(), key=lambda item: item[1])]
    note = (
        "Order 1 sees small shifts of everything, order 2 what few points do; labels are where classes lie. Single "
        "p-values are not corrected for there being several; the p-value above is."
    )
    return [Section("What stands out", table(("what is compared", "p-value by itself"), rows, numbers=(1,)), note)]


def _about(facts: Sequence[Facts], names: Sequence[str], with_sizes: bool = True) -> list[Section]:
    if not facts:
        return []
    sizes = class_sizes(names, [dict(one.counts) for one in facts]) if with_sizes else None
    return [*([] if sizes is None else [sizes]), data_section(facts, names)]


def _sizes(n_points: Sequence[int], names: Sequence[str]) -> str:
    return ", ".join(f"{counted(count, 'point')} of {name}" for count, name in zip(n_points, names, strict=True))


def _measured(distance: Distance) -> dict[str, str]:
    said = {"method": distance.method, "order of transport": f"p = {distance.p:g}", "estimator": distance.estimator}
    if distance.n_projections is not None:
        said["projections"] = f"{distance.n_projections:,}"
    said["scaling"] = {"features": "each feature by its own spread", "pooled": "all features by one spread"}.get(
        distance.scale, "none"
    )
    return said | ({} if distance.fingerprint is None else {"fingerprint": distance.fingerprint})


def _reliability(distance: Distance) -> list[str]:
    """The noise floor and roughness, as a terminal shows them."""
    said = []
    if distance.noise is not None:
        close = ", borderline" if distance.noise.borderline else ""
        within = "within" if distance.within_noise else "beyond"
        said.append(
            f"the distance is {within} noise{close}: samples of one source would be {distance.noise.value:.3g} apart"
        )
    if distance.unreliable is not None:
        said.append(f"the error is rough: {distance.unreliable}")
    return said


def _remarks(remarks: Sequence[str]) -> dict[str, str]:
    return {"remarks": "; ".join(remarks)} if remarks else {}


def _numbers(why: Explanation) -> dict[str, Any]:
    """The numbers of an explanation without its matrices, which can be large."""
    whole = why.to_dict()
    kept = ("within_noise", "features", "labels", "counterparts", "moved", "renamed", "swapped", "without_counterpart")
    return {
        "distance": why.distance.value,
        "stderr": whole["distance"]["stderr"],
        **{name: whole[name] for name in kept},
    }
