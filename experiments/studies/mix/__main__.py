"""The command: python -m experiments.studies.mix [--steps recovery shift training report] [--quick]."""

from __future__ import annotations

import argparse
from pathlib import Path

from experiments.lib.files import default_folder
from experiments.lib.options import Options
from experiments.studies.mix import report, runs

_STEPS = {"recovery": runs.recover, "shift": runs.shift, "training": runs.train}


def main(arguments: list[str] | None = None) -> None:
    """Do the steps that were asked for, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", choices=[*_STEPS, "report"], nargs="*", default=[*_STEPS, "report"])
    parser.add_argument("--quick", action="store_true", help="one family, one seed")
    parser.add_argument("--data", type=Path, default=default_folder(), help="folder of the datasets")
    parser.add_argument("--results", type=Path, default=Options.results)
    given = parser.parse_args(arguments)
    folder = given.results / "mix"
    folder.mkdir(parents=True, exist_ok=True)
    for name, step in _STEPS.items():
        if name in given.steps:
            step(folder / f"{name}.csv", given.data, given.quick)
    if "report" in given.steps:
        report.run(folder)


if __name__ == "__main__":
    main()
