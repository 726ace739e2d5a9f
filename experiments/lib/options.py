"""What every experiment can be told on its command line."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass, field
from pathlib import Path

from experiments.lib.files import default_folder

HERE = Path(__file__).parents[1]
ROOT = HERE.parent
SIZES = ("full", "paper", "gpu", "quick", "smallest")
STEPS = ("train", "distances", "report")


@dataclass(frozen=True)
class Options:
    """Where data come from and results go, how much is done, and on what.

    Attributes
    ----------
    data
        Folder of the datasets; those that are not in it are downloaded into it.
    results
        Folder of the CSV files and pictures.
    size
        "full", what the page is made of; "paper", the paper's own sizes where an experiment has them; "gpu", the same
        networks, and distances with more points and projections; "quick", minutes on two cores; or "smallest", which
        the tests run.
    device
        Where networks are trained and s-OTDD is computed.
    workers
        How many of the slow methods run at a time.
    draw
        Whether pictures are drawn when the measuring is done.
    steps
        Which of training, distances and report are done; each goes on where it stopped.
    cache
        Folder of trained weights, from which a stopped run goes on; None to keep none.
    """

    data: Path = field(default_factory=default_folder)
    results: Path = HERE / "results"
    size: str = "full"
    device: str = "cpu"
    workers: int = 1
    draw: bool = True
    steps: tuple[str, ...] = STEPS
    cache: Path | None = None


def parse(description: str | None, arguments: list[str] | None = None) -> Options:
    """Read the command line; small runs keep away from the committed results."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, default=default_folder(), help="folder of the datasets")
    parser.add_argument("--results", type=Path, help="folder for CSV files and pictures")
    parser.add_argument("--cache", type=Path, help="folder for trained weights")
    parser.add_argument("--quick", action="store_true", help="small sizes: minutes on two cores")
    parser.add_argument("--size", choices=SIZES, default="full", help="the same with a name")
    parser.add_argument("--steps", choices=STEPS, nargs="*", default=STEPS, help="what is done")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="slow methods at a time")
    parser.add_argument("--measure-only", action="store_true", help="write the CSV files and draw nothing")
    given = parser.parse_args(arguments)
    size = "quick" if given.quick else given.size
    results = given.results or (Options.results if size == "full" else Options.results / size)
    draw = not given.measure_only
    steps = tuple(given.steps)
    return Options(given.data, results, size, given.device, given.workers, draw, steps, given.cache)
