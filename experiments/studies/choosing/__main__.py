"""The command: python -m experiments.studies.choosing [--steps prepare train measure report]; steps resume."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch

from experiments.lib.files import default_folder
from experiments.lib.options import ROOT, Options
from experiments.studies.choosing import design, distances, pools, report
from experiments.studies.choosing.transfer import Bench

_STEPS = ("prepare", "train", "measure", "report")


def main(arguments: list[str] | None = None) -> None:
    """Do the steps that were asked for, or all of them."""
    given = _parse(arguments)
    effort, folder = design.EFFORTS[given.effort], given.results / "choosing"
    if "prepare" in given.steps:
        for domain in given.domains:
            pools.prepare(domain, given.data, given.cache, design.BASES[domain][: effort.bases])
    if "train" in given.steps:
        until = time.monotonic() + given.seconds
        benches = [Bench(domain, pools.load(domain, given.cache), effort, given.device) for domain in given.domains]
        for seed in range(effort.seeds):  # whatever is done when time is up is a smaller benchmark
            for bench in benches:
                bench.run(folder / f"{bench.domain}.csv", seed, until)
    if "measure" in given.steps:
        for domain in given.domains:
            path = folder / f"{domain}_distances.csv"
            distances.run(domain, given.cache, effort, path, given.workers)
    if "report" in given.steps:
        report.run(folder, effort.permutations)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", choices=_STEPS, nargs="*", default=_STEPS)
    parser.add_argument("--effort", choices=design.EFFORTS, default="full", help="how much is done")
    parser.add_argument("--domains", choices=design.DOMAINS, nargs="*", default=design.DOMAINS)
    parser.add_argument("--device", default="cpu", help="where networks are trained: cpu or cuda")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop training after this time")
    parser.add_argument("--workers", type=int, default=1, help="distances measured at a time")
    parser.add_argument("--data", type=Path, default=default_folder(), help="folder of the datasets")
    parser.add_argument("--cache", type=Path, default=ROOT / "build" / "choosing", help="folder of prepared examples")
    parser.add_argument("--results", type=Path, default=Options.results)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    torch.set_float32_matmul_precision("high")
    main()
