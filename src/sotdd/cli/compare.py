"""The commands that compare: ``sotdd distance``, ``matrix``, ``rank``, ``explain``, ``test`` and ``demo``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from sotdd.basics.errors import SotddError
from sotdd.basics.text import show, with_error
from sotdd.cli import options as o
from sotdd.cli.sources import list_sizes, open_data, open_source, refuse_report, say_sizes
from sotdd.cli.terminal import (
    console,
    make_table,
    print_csv,
    print_json,
    print_remarks,
    print_table,
    say,
    say_note,
    show_work,
)

if TYPE_CHECKING:
    from rich.table import Table

    from sotdd.compute.distance import Distance
    from sotdd.compute.matrix import DistanceMatrix
    from sotdd.compute.ranking import Ranking
    from sotdd.inputs.data import LabelledData
    from sotdd.measure.explanation.result import Explanation
    from sotdd.measure.two_sample import TwoSampleTest
    from sotdd.sketches.sketch import Sketch

DISTANCE_EXAMPLES = o.examples(
    "sotdd distance train.parquet test.parquet",
    "sotdd distance photos/::image_size=28 digits.npz --noise-floor",
    "sotdd distance a.csv b.csv --label kind --rel-tol 0.01",
    "sotdd distance table.csv::label=species other.csv::label=kind --json",
)
MATRIX_EXAMPLES = o.examples(
    "sotdd matrix mnist.npz usps.npz photos/::image_size=28",
    "sotdd matrix data/*.parquet --label species --noise-floor",
    "sotdd matrix *.npz --report report.html",
    "sotdd matrix *.sotdd --csv > distances.csv",
)
RANK_EXAMPLES = o.examples(
    "sotdd rank mine.npz data/*.npz",
    "sotdd rank mine.csv::label=kind a.parquet b.parquet --noise-floor",
    "sotdd rank mine.sotdd catalog/*.sotdd --json",
)
EXPLAIN_EXAMPLES = o.examples(
    "sotdd explain train.parquet test.parquet",
    "sotdd explain photos/::image_size=28 digits.npz --top 5",
    "sotdd explain a.npz b.npz --json > why.json",
    "sotdd explain train.csv test.csv --label kind --report why.html",
)
TEST_EXAMPLES = o.examples(
    "sotdd test train.parquet test.parquet",
    "sotdd test monday.csv tuesday.csv --label kind --max-points 5000",
    "sotdd test a.npz b.npz --n-permutations 9999 --json",
    "sotdd test train.csv test.csv --label kind --report test.html",
)
DEMO_EXAMPLES = o.examples("sotdd demo", "sotdd demo --report demo.html", "sotdd demo --n-projections 5000 --json")

# Marks distances that are no larger than chance gives; and what legends say about it.
_NOISE_MARK = " ~"
_WITHIN_NOISE = "~ within noise, as near as two samples of the same data"


@o.takes(
    "reading", "drawing", "p", "estimator", "rel_tol", "noise_floor", "label_names", "method", "max_points", "device"
)
def distance_command(a: o.A, b: o.B, asked: o.Asked) -> None:
    """Measure how far apart two labelled datasets are. Either may be a sketch (.sotdd)."""
    datasets = [open_source(source, asked) for source in (a, b)]
    import sotdd

    result = sotdd.distance(*datasets, progress=asked.bar, **asked.settings)
    if asked.json:
        print_json({"a": a, "b": b, **result.to_dict()})
        return
    say_note(list_sizes(datasets), asked.quiet)
    _print_result(result, asked)
    low, high = result.interval(0.95)
    interval = "" if math.isnan(low) else f"95 % interval {low:.4g} to {high:.4g} over the choice of projections, "
    say_note(f"{interval}{asked.seconds}", asked.quiet)


@o.takes(
    "reading",
    "drawing",
    "report",
    "title",
    "p",
    "estimator",
    "noise_floor",
    "label_names",
    "method",
    "max_points",
    "device",
)
def matrix_command(
    sources: Annotated[
        list[str], typer.Argument(metavar="A B ...", help=f"{o.SOURCE_HELP} Sketches (.sotdd) work too.")
    ],
    asked: o.Asked,
    classes: Annotated[
        bool,
        typer.Option(help="On the page, also compare every pair class by class, which takes several times as long."),
    ] = True,
    csv: Annotated[bool, typer.Option("--csv", help="Print the values as CSV.", rich_help_panel="Output")] = False,
) -> None:
    """Measure the distance between every two of several datasets, projecting each only once."""
    if len(sources) < 2:
        raise SotddError("only one dataset is named: name at least two to compare.")
    if csv and asked.json:
        raise SotddError("--csv and --json are both given: choose one.")
    refuse_report(asked, of_matrix=True)
    datasets = [open_source(source, asked) for source in sources]
    import sotdd
    from sotdd.compute.distance import gather_remarks
    from sotdd.compute.matrix import Asked

    matrix = sotdd.pairwise(datasets, progress=asked.bar, **asked.settings)
    texts = {name: asked.write_source(source) for name, source in zip(matrix.names, sources, strict=True)}
    settings = {} if matrix.asked is None else matrix.asked.settings
    _write_report(replace(matrix, asked=Asked(texts, settings)), datasets if classes else [], asked)
    if asked.json:
        print_json({**matrix.to_dict(), **asked.written})
        return
    if csv:
        print_csv(matrix.to_csv())
        return
    errors = _print_matrix(matrix, errors=True)
    print_remarks(gather_remarks(matrix.distances.values()), asked.naming, asked.quiet)
    say_note(f"{_say_matrix_legend(matrix, errors)}; {asked.seconds}", asked.quiet)
    say_written(asked)


@o.takes("reading", "drawing", "p", "estimator", "noise_floor", "method", "max_points", "device")
def rank_command(
    target: Annotated[str, typer.Argument(metavar="TARGET", help=o.SKETCH_TOO)],
    candidates: Annotated[list[str], typer.Argument(metavar="CANDIDATE ...", help="The datasets to rank.")],
    asked: o.Asked,
) -> None:
    """Rank datasets by their distance from a target, nearest first: which one to start from."""
    datasets = [open_source(source, asked) for source in (target, *candidates)]
    import sotdd

    order = sotdd.rank(datasets[0], datasets[1:], progress=asked.bar, **asked.settings)
    if asked.json:
        print_json({**order.to_dict(), "target": target})
        return
    say_note(f"Nearest to {show(target)}: {say_sizes(datasets[0])}", asked.quiet)
    print_ranking(order, asked)


@o.takes("reading", "drawing", "report", "title", "p", "estimator", "label_names", "device")
def explain_command(
    a: o.A,
    b: o.B,
    asked: o.Asked,
    top: Annotated[
        int, typer.Option(min=1, help="How many classes of each dataset to show, those that matter most first.")
    ] = 12,
) -> None:
    """Explain why two datasets are apart: features or labels, which classes, which have no counterpart."""
    refuse_report(asked)
    datasets = [open_data(source, asked, "to explain a distance with") for source in (a, b)]
    import sotdd

    why = sotdd.explain(*datasets, progress=asked.bar, **asked.settings)
    _write_pair_report(why, datasets, asked, a, b)
    if asked.json:
        print_json({"a": a, "b": b, **why.to_dict(), **asked.written})
        return
    say(replace(why, distance=replace(why.distance, remarks=())).table(top))
    print_remarks(why.distance.remarks, asked.naming, asked.quiet)
    share = "share: what the points of a class add to the cost of moving one dataset onto the other"
    say_note(f"{share}; {asked.seconds}", asked.quiet)
    say_written(asked)


@o.takes(
    "reading", "drawing", "report", "title", "p", "n_permutations", "statistic", "max_points", "label_names", "device",
    n_projections=128,
)  # fmt: skip
def test_command(a: o.A, b: o.B, asked: o.Asked) -> None:
    """Test whether two datasets may be samples of one source, by permutations."""
    refuse_report(asked)
    datasets = [open_data(source, asked, "to permute") for source in (a, b)]
    import sotdd

    result = sotdd.test(*datasets, progress=asked.bar, **asked.settings)
    _write_pair_report(result, datasets, asked, a, b)
    if asked.json:
        print_json({"a": a, "b": b, **result.to_dict(), **asked.written})
        return
    say_note(list_sizes(datasets), asked.quiet)
    _print_result(result, asked)
    verdict = "not one source" if result.rejects(0.05) else "one source is not ruled out"
    say_note(f"{verdict}, at a level of 5 % (p = {result.p_value:.3g}), {asked.seconds}", asked.quiet)
    say_written(asked)


@o.takes("drawing", "report", "title")
def demo_command(asked: o.Asked) -> None:
    """Compare handwritten digits with variants of them, and with pictures of stripes."""
    refuse_report(asked, of_matrix=True)
    with show_work("Loading (the first run on a machine compiles for a few seconds) …", asked.quiet):
        import sotdd
        from sotdd import demo

        datasets = {name: sotdd.open_dataset(source, name=name) for name, source in demo.datasets().items()}
    matrix = sotdd.pairwise(datasets, progress=asked.bar, **asked.settings)
    _write_report(matrix, list(datasets.values()), asked)
    if asked.json:
        print_json({**matrix.to_dict(), **asked.written})
        return
    if asked.quiet:
        _print_matrix(matrix, errors=False)
        return
    say("Six datasets", "bold")
    for name, meaning in demo.STORY.items():
        say(f"  {name:<12} {meaning}")
    say("\nDistances (s-OTDD)", "bold")
    _print_matrix(matrix, errors=False)
    say("\nHow to read it", "bold")
    for sentence in demo.reading(matrix):
        console().print(f"  {sentence}")
    say_note(f"\n{len(matrix.distances)} distances in {asked.seconds}, no model trained.")
    say_written(asked)


def _write_pair_report(
    result: TwoSampleTest | Explanation, datasets: list[LabelledData], asked: o.Asked, *sources: str
) -> None:
    from sotdd.reports.report import report_pair

    if asked.report is not None:
        texts = [asked.write_source(source) for source in sources]
        report_pair(result, asked.report, datasets, asked.title, (texts, asked.settings))


def _print_result(result: Distance | TwoSampleTest, asked: o.Asked) -> None:
    """Print a result in one line, and what to know of it below."""
    say(repr(replace(result, remarks=())), "bold")
    print_remarks(result.remarks, asked.naming, asked.quiet)


def say_written(asked: o.Asked) -> None:
    """Say which page was written, if one was."""
    if asked.report is not None:
        say(f"wrote {show(asked.report)}", "bold")


def _write_report(matrix: DistanceMatrix, datasets: Sequence[LabelledData | Sketch], asked: o.Asked) -> None:
    """Write the page, if one is wanted; classes are compared if s-OTDD was used and every dataset has its points."""
    import sotdd

    if asked.report is None:
        return
    points = [data for data in datasets if isinstance(data, sotdd.LabelledData)]
    by_class = matrix.projections is not None and len(points) == len(matrix)
    named = dict(zip(matrix.names, points, strict=True)) if by_class else None
    sotdd.report(matrix, asked.report, datasets=named, title=asked.title, progress=asked.bar)


def _print_matrix(matrix: DistanceMatrix, *, errors: bool) -> bool:
    """Print the first layout that fits: with errors or without, columns by name or by number.

    Returns whether errors are shown.
    """
    layouts = [(named, shown) for shown in ([True, False] if errors else [False]) for named in (True, False)]
    return layouts[print_table(*(_make_matrix_table(matrix, errors=shown, named=named) for named, shown in layouts))][1]


def _make_matrix_table(matrix: DistanceMatrix, *, errors: bool, named: bool) -> Table:
    """Distances, with near ones standing out; columns are named, or numbered like the rows."""
    from rich.text import Text

    largest = max(distance.value for distance in matrix.distances.values()) or 1.0
    no_mark = " " * len(_NOISE_MARK) if any(distance.within_noise for distance in matrix.distances.values()) else ""
    form = ".3f" if 0.1 <= largest < 1000 else ".3g"
    numbers = [str(number) for number in range(1, len(matrix) + 1)]
    names = [name if named else f"{number}  {name}" for number, name in zip(numbers, map(show, matrix), strict=True)]
    rows: list[list[str | Text]] = [[name, *[Text("·", style="dim")] * len(names)] for name in names]
    for (i, j), distance in matrix.distances.items():
        text = with_error(distance.value, distance.stderr) if errors else f"{distance.value:{form}}"
        mark = _NOISE_MARK if distance.within_noise else no_mark
        rows[i][j + 1] = rows[j][i + 1] = Text(text + mark, style="green" if distance.value < 0.3 * largest else "")
    return make_table([["", *(names if named else numbers)], *rows])


def _say_matrix_legend(matrix: DistanceMatrix, errors: bool) -> str:
    """One line that says how to read the table."""
    text = next(iter(matrix.distances.values())).how
    largest = max(distance.stderr for distance in matrix.distances.values())
    if math.isfinite(largest):
        text += f"; {'±' if errors else f'± up to {largest:.2g},'} one standard error over the choice of projections"
    if any(distance.within_noise for distance in matrix.distances.values()):
        text += f"; {_WITHIN_NOISE}"
    return text


def print_ranking(order: Ranking, asked: o.Asked) -> None:
    """Print which datasets are nearest, and how to read that."""
    rows, numbers = order.table
    styles = ["bold" if line.rank == 1 else "" for line in order]
    left = [column for column in range(len(rows[0])) if column not in numbers]
    print_table(make_table(rows, left=left, styles=styles))
    print_remarks(order.remarks, asked.naming, asked.quiet)
    say_note("; ".join([order.lines[0].distance.how, *order.legend, asked.seconds]), asked.quiet)
