"""The command ``sotdd explain``."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from sotdd.basics.text import shown
from sotdd.commands import options as o
from sotdd.commands.sources import as_text, opened_data, refuse_report
from sotdd.commands.terminal import bar_wanted, print_json, say, say_note

EXAMPLES = o.examples(
    "sotdd explain train.parquet test.parquet",
    "sotdd explain photos/::image_size=28 digits.npz --top 5",
    "sotdd explain a.npz b.npz --json > why.json",
    "sotdd explain train.csv test.csv --label kind --report why.html",
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
    label_names: o.NamesInDistance = None,
    device: o.Device = "auto",
    report: o.Report = None,
    title: o.Title = None,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Explain why two datasets are apart: features or labels, which classes, which have no counterpart."""
    began = time.perf_counter()
    if report is not None:
        refuse_report(report)
    reading = o.reading(exclude, one_hot, dates, missing)
    one, other = (
        opened_data(source, "to explain a distance with", features, label, quiet, reading) for source in (a, b)
    )
    import sotdd
    from sotdd.pictures.report import report_pair

    settings = o.chosen(
        n_projections=n_projections,
        seed=seed,
        p=p,
        label_law=label_law,
        scale=scale,
        estimator=estimator,
        label_names=label_names,
    )
    why = sotdd.explain(one, other, device=device, progress=bar_wanted(quiet), **settings)
    if report is not None:
        texts = [as_text(source, features, label, reading) for source in (a, b)]
        report_pair(why, report, [one, other], title, (texts, settings))
    if as_json:
        print_json({"a": a, "b": b, **why.to_dict(), **({} if report is None else {"report": str(report)})})
        return
    say(why.table(top))
    seconds = f"{time.perf_counter() - began:.1f} s"
    say_note(
        f"share: what the points of a class add to the cost of moving one dataset onto the other; {seconds}", quiet
    )
    if report is not None:
        say(f"wrote {shown(report)}", "bold")
