"""A report on the digits that come with the package, their relatives and a stranger.

    python examples/report_digits.py --out digits.html

Open the file in a browser and choose cells of the heat map: "shuffled" differs by labels alone, "even only" lacks five
classes, and no class of "stripes" has a counterpart.
"""

from __future__ import annotations

import argparse

import sotdd
from sotdd import demo


def main() -> None:
    """Measure, explain, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="digits.html", help="where to write the page")
    datasets = demo.datasets()
    matrix = sotdd.pairwise(datasets)
    print(
        sotdd.report(matrix, parser.parse_args().out, datasets=datasets, title="Digits, their relatives and a stranger")
    )


if __name__ == "__main__":
    main()
