"""The command: python -m experiments.foretell [--size full|cores|smallest] [--device cuda] [--family grey …].

Work can be shared out among processes: each does some seeds (--seeds) or some measures (--measures) as a part of its
own (--part), and the step "join" puts the parts together.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch

from experiments.files import default_folder
from experiments.foretell import design, distances, parts, pools, report, texts
from experiments.foretell.transfer import Bench
from experiments.options import ROOT, Options

_STEPS = ("train", "measure", "report")
_MORE = ("prepare", "join", "pack")


def main(arguments: list[str] | None = None) -> None:
    """Train, measure distances, and write tables and pictures; each step goes on where it stopped."""
    given = _parsed(arguments)
    if given.threads:
        torch.set_num_threads(given.threads)
    size = design.SIZES[given.size]
    results = parts.folder(given.results, given.part) if given.part else given.results
    if "prepare" in given.steps:
        for name in given.family:
            pools.prepare(name, given.data, given.cache)
    for name in given.family if set(given.steps) & {"train", "measure"} else ():
        _do(name, size, results, given)
    if "join" in given.steps:
        for name in given.family:
            parts.join(given.results, name)
    if "report" in given.steps:
        report.run(given.results, size.resamples)
    if "pack" in given.steps:
        parts.pack(given.results, given.family)


def _parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=design.SIZES, default="cores", help="how much is done")
    parser.add_argument("--family", choices=design.FAMILIES, nargs="*", default=design.FAMILIES)
    parser.add_argument("--steps", choices=(*_STEPS, *_MORE), nargs="*", default=_STEPS)
    parser.add_argument("--seeds", type=int, nargs="*", help="those to train with, instead of all")
    parser.add_argument("--measures", nargs="*", help="those to take, instead of all")
    parser.add_argument("--part", help="a name: what is done is a part of the results, to be joined later")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--data", type=Path, default=default_folder(), help="folder of the datasets")
    parser.add_argument("--cache", type=Path, default=ROOT / "build" / "foretell", help="folder of prepared texts")
    parser.add_argument("--results", type=Path, default=Options.results)
    parser.add_argument("--threads", type=int, help="of a processor")
    return parser.parse_args(arguments)


def _do(name: str, size: design.Design, results: Path, given: argparse.Namespace) -> None:
    """Train and measure one family, as far as asked."""
    if name == design.TEXT:
        texts.prepare(given.data, given.cache)
    family = pools.family(name, given.data, given.cache)
    for step in ("train", "measure"):
        if step not in given.steps:
            continue
        began = time.perf_counter()
        if step == "train":
            Bench(family, size, given.device).run(results / f"foretell_{name}.csv", given.seeds)
        else:
            distances.run(family, size, results / f"foretell_{name}_distances.csv", given.measures)
        print(f"{name}, {step}: {time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
