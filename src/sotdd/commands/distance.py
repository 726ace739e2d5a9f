"""The command distance."""

from __future__ import annotations

import math
import time

from sotdd.commands import options as o
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
    n_projections: o.Projections = None,
    seed: o.Seed = None,
    p: o.Order = None,
    label_law: o.LabelLaw = None,
    scale: o.Scale = None,
    estimator: o.Estimator = None,
    rel_tol: o.RelTol = None,
    noise_floor: o.NoiseFloor = False,
    method: o.Method = "sotdd",
    max_points: o.SampledPoints = None,
    max_samples: o.MaxSamples = None,
    device: o.Device = "auto",
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Say how far apart two labelled datasets are; either may be a sketch (.sotdd)."""
    began = time.perf_counter()
    datasets = [opened(source, features, label, quiet) for source in (a, b)]
    import sotdd

    drawing = {**o.given(n_projections=n_projections, seed=seed, label_law=label_law), **o.scaling(scale)}
    settings = {**drawing, **o.given(p=p, estimator=estimator), **o.sampling(max_points, max_samples)}
    result = sotdd.distance(
        *datasets, method=method, rel_tol=rel_tol, noise_floor=noise_floor, device=device,
        progress=bar_wanted(quiet), **settings,
    )  # fmt: skip
    if as_json:
        print_json({"a": a, "b": b, **result.to_dict()})
        return
    say_note(sizes_by_line(datasets), quiet)
    say(repr(result), "bold")
    last = f"{time.perf_counter() - began:.1f} s"
    low, high = result.interval(0.95)
    if not math.isnan(low):
        last = f"95 % interval {low:.4g} to {high:.4g} over the choice of projections, {last}"
    say_note(last, quiet)
