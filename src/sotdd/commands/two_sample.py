"""The command ``sotdd test``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from sotdd.basics.text import shown
from sotdd.commands import options as o
from sotdd.commands.option_names import in_options
from sotdd.commands.sources import as_text, opened_data, refuse_report, sizes_by_line
from sotdd.commands.terminal import bar_wanted, print_json, say, say_note

if TYPE_CHECKING:
    from sotdd.results.two_sample import TwoSampleTest

EXAMPLES = o.examples(
    "sotdd test train.parquet test.parquet",
    "sotdd test monday.csv tuesday.csv --label kind --max-points 5000",
    "sotdd test a.npz b.npz --n-permutations 9999 --json",
    "sotdd test train.csv test.csv --label kind --report test.html",
)


def test_command(
    a: o.A,
    b: o.B,
    n_permutations: o.Permutations = 999,
    max_points: o.MaxPoints = None,
    statistic: Annotated[
        str,
        typer.Option(
            help="combined, balanced or distance: the statistic that is compared with its value after shuffling."
        ),
    ] = "combined",
    label_names: o.LabelNames = "ignore",
    features: o.Features = None,
    label: o.Label = None,
    exclude: o.Exclude = None,
    one_hot: o.OneHot = None,
    dates: o.Dates = False,
    missing: o.Missing = None,
    n_projections: o.FewProjections = None,
    seed: o.Seed = None,
    p: o.Order = None,
    label_law: o.LabelLaw = None,
    scale: o.Scale = None,
    device: o.Device = "auto",
    report: o.Report = None,
    title: o.Title = None,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Test whether two datasets may be samples of one source, by permutations."""
    began = time.perf_counter()
    if report is not None:
        refuse_report(report)
    reading = o.reading(exclude, one_hot, dates, missing)
    datasets = [opened_data(source, "to shuffle", features, label, quiet, reading) for source in (a, b)]
    import sotdd
    from sotdd.pictures.report import report_pair

    settings = o.chosen(
        n_projections=n_projections, seed=seed, p=p, label_law=label_law, scale=scale, max_points=max_points
    )
    result = sotdd.test(
        *datasets,
        n_permutations=n_permutations,
        statistic=statistic,  # type: ignore[arg-type]  # checked there
        label_names=label_names,  # type: ignore[arg-type]  # checked there
        device=device,
        progress=bar_wanted(quiet),
        **settings,
    )
    if report is not None:
        asked = {
            **settings,
            "n_permutations": n_permutations,
            **({} if statistic == "combined" else {"statistic": statistic}),
            **({} if label_names == "ignore" else {"label_names": label_names}),
        }
        texts = [as_text(source, features, label, reading) for source in (a, b)]
        report_pair(result, report, datasets, title, (texts, asked))
    if as_json:
        print_json({"a": a, "b": b, **result.to_dict(), **({} if report is None else {"report": str(report)})})
        return
    say_note(sizes_by_line(datasets), quiet)
    say(in_options(repr(result)), "bold")
    say_note(f"{_verdict(result)}, {time.perf_counter() - began:.1f} s", quiet)
    if report is not None:
        say(f"wrote {shown(report)}", "bold")


def _verdict(result: TwoSampleTest) -> str:
    """What a p-value says, in words."""
    often = f"{100 * result.p_value:.3g} % of shuffles"
    if result.rejects(0.05):
        return f"not one source, at a level of 5 %: {often} are as far apart"
    return f"one source is not ruled out: {often} are as far apart"
