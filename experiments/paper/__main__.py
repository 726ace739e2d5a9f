"""Every experiment, one after another, and the page: python -m experiments.paper [--quick] [--device cuda]."""

from __future__ import annotations

import time

from experiments.lib.options import parse
from experiments.paper import (
    augmentation,
    correlation,
    moments,
    nist_transfer,
    page,
    projections,
    runtime,
    split_tiny_imagenet,
    text_transfer,
)

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
    """Run them; a small run has results, but no page."""
    options = parse(__doc__)
    for experiment in EXPERIMENTS:
        began = time.perf_counter()
        experiment.run(options)
        print(f"{experiment.__name__}: {time.perf_counter() - began:.0f} s", flush=True)
    if options.draw and options.size == "full":
        page.generate(options.results, page.PAGE)


if __name__ == "__main__":
    main()
