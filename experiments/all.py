"""Every experiment, one after another, and the page: python -m experiments.all [--quick] [--device cuda]."""

from __future__ import annotations

import time

from experiments import (
    augmentation,
    correlation,
    moments,
    nist_transfer,
    page,
    projections,
    reports,
    runtime,
    split_tiny_imagenet,
    text_transfer,
)
from experiments.options import ROOT, parse

EXPERIMENTS = (
    correlation,
    runtime,
    projections,
    nist_transfer,
    moments,
    text_transfer,
    split_tiny_imagenet,
    augmentation,
)


def main() -> None:
    """Run them; a page of a small run stays beside its results."""
    options = parse(__doc__)
    for experiment in EXPERIMENTS:
        began = time.perf_counter()
        experiment.run(options)
        print(f"{experiment.__name__}: {time.perf_counter() - began:.0f} s", flush=True)
    output = (ROOT / "docs" if options.size == "full" else options.results) / "reproduction.md"
    if options.draw:
        page.generate(options.results, output, [section(options.results, options.size) for section in reports.SECTIONS])


if __name__ == "__main__":
    main()
