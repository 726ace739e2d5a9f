"""The commands ``sotdd explain`` and ``sotdd test``, which look at two datasets."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from sotdd.basics.text import shown
from sotdd.commands import options as o
from sotdd.commands.sources import as_text, opened_data, refuse_report, sizes_by_line
from sotdd.commands.terminal import bar_wanted, print_json, say, say_note

EXPLAIN_EXAMPLES = o.examples(
    "sotdd explain train.parquet test.parquet",
    "sotdd explain photos/::image_size=28 digits.npz --top 5",
    "sotdd explain a.npz b.npz --json > why.json",
    "sotdd explain train.csv test.csv --label kind --report why.html",
)
TEST_EXAMPLES = o.examples(
    "sotdd test train.parquet test.parquet",
    "sotdd test monday.csv tuesday.csv --label kind --max-points 5000",
    "sotdd test a.npz b.npz --n-permutations 9999 --json",
    "sotdd test train.csv test.csv --label kind --report test.html",
)


def explain_command(
    a: o.A,
    b: o.B,
    top: Annotated[
        int, typer.Option(min=1, help="How many classes of each dataset to show, those that matter most first.")
    ] = 12,
    features: o.Features = None,
    label: o.Label = None,
    exclude: o.Exclude = None,
    one_hot: o.OneHot = None,
    dates: o.Dates = False,
    missing: o.Missing = None,
    n_projections: o.Projections = None,
    seed: o.Seed = None,
    p: o.Order = None,
    label_law: o.LabelLaw = None,
    estimator: o.Estimator = None,
    scale: o.Scale = None,
    label_names: o.LabelNames = None,
    device: o.Device = "auto",
    report: o.Report = None,
    title: o.Title = None,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Explain why two datasets are apart: features or labels, which classes, which have no counterpart."""
    began = time.perf_counter()
    refuse_report(report)
    reading = o.reading(exclude, one_hot, dates, missing)
    datasets = [opened_data(source, "to explain a distance with", features, label, quiet, reading) for source in (a, b)]
    import sotdd
    from sotdd.pictures.report import report_pair

    settings = o.chosen(
        n_projections=n_projections, seed=seed, p=p, label_law=label_law, scale=scale, estimator=estimator,
        label_names=label_names,
    )  # fmt: skip
    why = sotdd.explain(*datasets, device=device, progress=bar_wanted(quiet), **settings)
    if report is not None:
        texts = [as_text(source, features, label, reading) for source in (a, b)]
        report_pair(why, report, datasets, title, (texts, settings))
    if as_json:
        print_json({"a": a, "b": b, **why.to_dict(), **({} if report is None else {"report": str(report)})})
        return
    say(why.table(top))
    share = "share: what the points of a class add to the cost of moving one dataset onto the other"
    say_note(f"{share}; {time.perf_counter() - began:.1f} s", quiet)
    if report is not None:
        say(f"wrote {shown(report)}", "bold")


def test_command(
    a: o.A,
    b: o.B,
    n_permutations: o.Permutations = 999,
    max_points: o.MaxPoints = None,
    statistic: Annotated[
        str | None,
        typer.Option(
            help="combined, balanced or distance: what is compared with its value after permutations.",
            show_default="combined",
        ),
    ] = None,
    label_names: o.LabelNames = None,
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
    refuse_report(report)
    reading = o.reading(exclude, one_hot, dates, missing)
    datasets = [opened_data(source, "to permute", features, label, quiet, reading) for source in (a, b)]
    import sotdd
    from sotdd.pictures.report import report_pair

    settings = o.chosen(
        n_permutations=n_permutations, statistic=statistic, label_names=label_names, max_points=max_points,
        n_projections=n_projections, seed=seed, p=p, label_law=label_law, scale=scale,
    )  # fmt: skip
    result = sotdd.test(*datasets, device=device, progress=bar_wanted(quiet), **settings)
    if report is not None:
        texts = [as_text(source, features, label, reading) for source in (a, b)]
        report_pair(result, report, datasets, title, (texts, settings))
    if as_json:
        print_json({"a": a, "b": b, **result.to_dict(), **({} if report is None else {"report": str(report)})})
        return
    say_note(sizes_by_line(datasets), quiet)
    say(repr(result), "bold")
    verdict = "not one source" if result.rejects(0.05) else "one source is not ruled out"
    say_note(f"{verdict}, at a level of 5 % (p = {result.p_value:.3g}), {time.perf_counter() - began:.1f} s", quiet)
    if report is not None:
        say(f"wrote {shown(report)}", "bold")
