"""The command: python -m experiments.studies.taskweb [--size full|smallest] [--steps measure report page]."""

from __future__ import annotations

import argparse
from pathlib import Path

from experiments.lib.files import default_folder
from experiments.lib.options import ROOT, Options
from experiments.studies.taskweb import features, measures, page, report, tasks

_STEPS = ("measure", "report", "page")


def main(arguments: list[str] | None = None) -> None:
    """Embed and measure, compare with the transfers, and write the page; each step can be done alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=measures.SIZES, default="full", help="how much is done")
    parser.add_argument("--steps", choices=_STEPS, nargs="*", default=_STEPS)
    parser.add_argument("--data", type=Path, default=default_folder(), help="folder of the datasets")
    parser.add_argument("--cache", type=Path, default=ROOT / "build" / "taskweb", help="folder of embeddings")
    parser.add_argument("--results", type=Path, default=Options.results)
    parser.add_argument("--output", type=Path, default=page.PAGE, help="the page")
    given = parser.parse_args(arguments)
    sizes = measures.SIZES[given.size]
    if "measure" in given.steps:
        texts = tasks.load(given.data, sizes.texts)
        embeddings = features.embedded(texts, given.cache / "embeddings.npz")
        points = features.made(texts, embeddings)
        measures.run(points, texts, sizes, given.results / "taskweb_distances.csv")
    if "report" in given.steps:
        report.run(given.data, given.results, sizes.resamples)
    if "page" in given.steps:
        page.generate(given.results, given.output)


if __name__ == "__main__":
    main()
