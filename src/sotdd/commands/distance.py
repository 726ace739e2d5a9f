"""The command ``sotdd distance``."""

from __future__ import annotations

import math
import time

from sotdd.commands import options as o
from sotdd.commands.option_names import in_options
from sotdd.commands.sources import opened, sizes_by_line
from sotdd.commands.terminal import bar_wanted, print_json, say, say_note

EXAMPLES = o.examples(
    "sotdd distance train.parquet test.parquet",
    "sotdd distance photos/::image_size=28 digits.npz --noise-floor",
    "sotdd distance a.csv b.csv --label kind --rel-tol 0.01",
    "sotdd distance table.csv::label=species other.csv::label=kind --json",
)


def distance_command(
    a: o.A,
    b: o.B,
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
    scale: o.Scale = None,
    estimator: o.Estimator = None,
    rel_tol: o.RelTol = None,
    noise_floor: o.NoiseFloor = False,
    label_names: o.NamesInDistance = None,
    method: o.Method = "sotdd",
    max_points: o.SampledPoints = None,
    max_samples: o.MaxSamples = None,
    device: o.Device = "auto",
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Measure how far apart two labelled datasets are. Either may be a sketch (.sotdd)."""
    began = time.perf_counter()
    reading = o.reading(exclude, one_hot, dates, missing)
    datasets = [opened(source, features, label, quiet, reading) for source in (a, b)]
    import sotdd

    settings = o.chosen(
        n_projections=n_projections, seed=seed, p=p, label_law=label_law, scale=scale, estimator=estimator,
        rel_tol=rel_tol, max_points=max_points, max_samples=max_samples, label_names=label_names,
    )  # fmt: skip
    result = sotdd.distance(
        *datasets, method=method, noise_floor=noise_floor, device=device, progress=bar_wanted(quiet), **settings
    )
    if as_json:
        print_json({"a": a, "b": b, **result.to_dict()})
        return
    say_note(sizes_by_line(datasets), quiet)
    say(in_options(repr(result)), "bold")
    seconds = f"{time.perf_counter() - began:.1f} s"
    low, high = result.interval(0.95)
    interval = "" if math.isnan(low) else f"95 % interval {low:.4g} to {high:.4g} over the choice of projections, "
    say_note(f"{interval}{seconds}", quiet)
