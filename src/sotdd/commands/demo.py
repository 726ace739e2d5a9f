"""The command ``sotdd demo``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from sotdd.commands import options as o
from sotdd.commands.matrix import refuse_matrix_report, write_report
from sotdd.commands.matrix_table import print_matrix
from sotdd.commands.terminal import bar_wanted, console, print_json, say, say_note, working_on

EXAMPLES = o.examples("sotdd demo", "sotdd demo --report demo.html", "sotdd demo --n-projections 5000 --json")


def demo_command(
    report: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Also write the result as a web page, which works offline.")
    ] = None,
    n_projections: o.Projections = None,
    seed: o.Seed = None,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Compare handwritten digits with variants of them, and with pictures of stripes."""
    began = time.perf_counter()
    if report is not None:
        refuse_matrix_report(report)
    with working_on("Loading (the first run on a machine compiles for a few seconds) …", quiet):
        import sotdd
        from sotdd import demo

        datasets = {name: sotdd.open_dataset(source, name=name) for name, source in demo.datasets().items()}
    bar = bar_wanted(quiet)
    matrix = sotdd.pairwise(datasets, progress=bar, **o.chosen(n_projections=n_projections, seed=seed))
    if report is not None:
        write_report(matrix, report, list(datasets.values()), bar)
    if as_json:
        print_json({**matrix.to_dict(), **({} if report is None else {"report": str(report)})})
        return
    if not quiet:
        say("Six datasets", "bold")
        for name, meaning in demo.STORY.items():
            say(f"  {name:<12} {meaning}")
        say("\nDistances (s-OTDD)", "bold")
    print_matrix(matrix, errors=False)
    if quiet:
        return
    say("")
    for name in matrix.names:
        say(f"  nearest to {name:<12} {matrix.nearest(name)}")
    say("\nHow to read it", "bold")
    for sentence in demo.reading(matrix):
        console().print(f"  {sentence}")
    say_note(f"\n{len(matrix.distances)} distances in {time.perf_counter() - began:.1f} s, no model trained.")
    if report is not None:
        say(f"wrote {report}", "bold")
