"""The commands that compare: ``sotdd distance``, ``matrix``, ``rank``, ``explain``, ``test``, ``copies``, ``demo``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

import sotdd
from sotdd.basics.errors import SotddError
from sotdd.basics.remarks import Remark, Verdict
from sotdd.basics.text import say_count, show, with_error
from sotdd.cli import options as o
from sotdd.cli.options import Opened, open_data, open_source, say_sizes
from sotdd.cli.terminal import console, make_table, print_table, say, say_note, show_work

if TYPE_CHECKING:
    from rich.table import Table

    from sotdd.results import Changes, Distance, DistanceMatrix, Explanation, Ranking, TwoSampleTest

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
    "sotdd rank mine.csv a.csv b.csv --report ranking.html",
)
MIX_EXAMPLES = o.examples(
    "sotdd mix target.csv us.sotdd eu.csv asia.parquet",
    "sotdd mix batch.csv reference.csv --label kind",
    "sotdd mix web.npz sources/*.npz --report mixture.html",
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
COPIES_EXAMPLES = o.examples(
    "sotdd copies synthetic.csv train.csv holdout.csv",
    "sotdd copies synthetic.parquet train.parquet --csv > exact.csv",
)
DEMO_EXAMPLES = o.examples("sotdd demo", "sotdd demo --report demo.html", "sotdd demo --n-projections 5000 --json")

# Marks distances that are no larger than chance gives.
_NOISE_MARK = " ~"

# Options of all commands that measure datasets.
_DATA = ("reading", "drawing", "p", "device")


@o.takes(*_DATA, "page", "rel_tol", "noise_floor", "label_names", "method", "max_points")
def distance_command(a: o.A, b: o.B, asked: o.Request) -> None:
    """Measure how far apart two labelled datasets are. Either may be a sketch (.sotdd)."""
    from sotdd.compute.matrix import Asked

    datasets = [open_source(source, asked) for source in (a, b)]
    result = sotdd.distance(*datasets, progress=asked.bar, **asked.settings)
    settings = dict(asked.settings)
    if settings.pop("rel_tol", None) is not None:  # the page says how to ask again: with all that it took
        settings["n_projections"] = result.n_projections
    texts = {data.name: asked.write_source(source) for data, source in zip(datasets, (a, b), strict=True)}
    names = (datasets[0].name, datasets[1].name)
    _write_report(sotdd.results.DistanceMatrix(names, {(0, 1): result}, asked=Asked(texts, settings)), [], asked)
    low, high = result.interval(0.95)
    interval = "" if math.isnan(low) else f"95 % interval {low:.4g} to {high:.4g} over the choice of projections"
    _print_pair(result, {"a": a, "b": b, **result.to_dict()}, datasets, asked, interval)


@o.takes(*_DATA, "page", "csv", "noise_floor", "label_names", "method", "max_points")
def matrix_command(
    sources: Annotated[
        list[str], typer.Argument(metavar="A B ...", help=f"{o.SOURCE_HELP} Sketches (.sotdd) work too.")
    ],
    asked: o.Request,
    classes: Annotated[
        bool,
        typer.Option(help="On the page, also explain the nearest pairs and the farthest, class by class."),
    ] = True,
) -> None:
    """Measure the distance between every two of several datasets, projecting each only once."""
    from sotdd.compute.distance import gather_remarks
    from sotdd.compute.matrix import Asked

    if len(sources) < 2:
        raise SotddError("only one dataset is named: name at least two to compare.")
    datasets = [open_source(source, asked) for source in sources]
    matrix = sotdd.pairwise(datasets, progress=asked.bar, **asked.settings)
    texts = {name: asked.write_source(source) for name, source in zip(matrix.names, sources, strict=True)}
    settings = {} if matrix.asked is None else matrix.asked.settings
    _write_report(replace(matrix, asked=Asked(texts, settings)), datasets if classes else [], asked)
    values = zip(matrix.names, matrix.values.tolist(), strict=True)
    asked.print(
        matrix.to_dict(),
        lambda: _print_matrix(matrix, errors=True),
        rows=[{"": name, **dict(zip(matrix.names, row, strict=True))} for name, row in values],
        remarks=gather_remarks(matrix.distances.values()),
        legend=_say_legend(list(matrix.distances.values())),
    )


@o.takes(*_DATA, "page", "csv", "noise_floor", "method", "max_points")
def rank_command(
    target: Annotated[str, typer.Argument(metavar="TARGET", help=o.SKETCH_TOO)],
    candidates: Annotated[list[str], typer.Argument(metavar="CANDIDATE ...", help="The datasets to rank.")],
    asked: o.Request,
) -> None:
    """Rank datasets by their distance from a target, nearest first: which one to start from."""
    datasets = [open_source(source, asked) for source in (target, *candidates)]
    order = sotdd.rank(datasets[0], datasets[1:], progress=asked.bar, **asked.settings)
    if asked.report is not None:
        from sotdd.reports.report import report_ranking

        texts = [asked.write_source(source) for source in (target, *candidates)]
        first, *others = datasets
        points = {one.name: one for one in others if isinstance(one, sotdd.LabelledData)}
        named = {order.target: first, **points} if isinstance(first, sotdd.LabelledData) else {}
        known = named if len(named) == len(datasets) else None  # sketches have no points to explain
        report_ranking(order, asked.report, known, asked.title, (texts[0], texts[1:], asked.settings))
    print_ranking(order, asked, {"target": target}, f"Nearest to {show(target)}: {say_sizes(datasets[0])}")


@o.takes(
    "reading", "n_projections", "scale", "seed", "device", "max_points", "page", "csv", n_projections=500,
    max_points=20_000,
)  # fmt: skip
def mix_command(
    target: Annotated[str, typer.Argument(metavar="TARGET", help=o.SKETCH_TOO)],
    sources: Annotated[
        list[str],
        typer.Argument(metavar="SOURCE ...", help="Two sources or more, or one with labels: its classes."),
    ],
    asked: o.Request,
) -> None:
    """Say how much of each source is in a dataset, with errors, and what none of them explains."""
    found = sotdd.mix(target, sources, progress=asked.bar, **asked.reading, **asked.settings)
    if asked.report is not None:
        from sotdd.reports.report import report_mixture

        texts = [asked.write_source(source) for source in (target, *sources)]
        report_mixture(found, asked.report, asked.title, (texts[0], texts[1:], asked.settings))

    def write() -> None:
        say_note(f"{show(target)}: {say_count(found.n_points[0], 'point')}", asked.quiet)
        print_table(make_table(found.rows))
        say("\n".join(found.sentences))

    numbers = found.to_dict()
    asked.print(
        numbers,
        write,
        rows=numbers["sources"],
        remarks=found.remarks,
        legend=f"{say_count(found.n_projections, 'projection')}; by features alone; the mixture most like the target "
        "need not be the best to train on",
    )


@o.takes(*_DATA, "page", "csv", "label_names", "max_points")
def explain_command(
    a: o.A,
    b: o.B,
    asked: o.Request,
    top: Annotated[
        int, typer.Option(min=1, help="How many classes of each dataset to show, those that matter most first.")
    ] = 12,
) -> None:
    """Explain why two datasets are apart: features or labels, which classes, which have no counterpart."""
    datasets = [open_data(source, asked, "to explain a distance with", asked.sample) for source in (a, b)]

    why = sotdd.explain(*datasets, progress=asked.bar, **asked.settings)
    _write_pair_report(why, datasets, asked, a, b)
    asked.print(
        {"a": a, "b": b, **why.to_dict()},
        lambda: say(replace(why, distance=replace(why.distance, remarks=())).table(top)),
        rows=[{"dataset": name, **line.to_dict()} for side, name in enumerate((a, b)) for line in why.lines(side)],
        remarks=why.distance.remarks,
        legend="share: what the points of a class add to the cost of moving one dataset onto the other",
    )


@o.takes(*_DATA, "page", "n_permutations", "max_points", "label_names", n_projections=128, max_points=20_000)
def test_command(a: o.A, b: o.B, asked: o.Request) -> None:
    """Test whether two datasets may be samples of one source, by permutations."""
    from sotdd.measure.comparison import MOST_POINTS

    most = asked.measuring.get("max_points", MOST_POINTS)
    datasets = [open_data(source, asked, "to permute", most) for source in (a, b)]

    result = sotdd.test(*datasets, progress=asked.bar, **asked.settings)
    _write_pair_report(result, datasets, asked, a, b)
    verdict = "no difference was found" if result.verdict is Verdict.PASSED else "they differ"
    numbers = {"a": a, "b": b, **result.to_dict()}
    _print_pair(result, numbers, datasets, asked, f"{verdict}, at a level of 5 %", result.changes)


@o.takes("reading", "scale", "seed", "n_permutations", "max_points", "csv", max_points=50_000)
def copies_command(
    synthetic: Annotated[str, typer.Argument(metavar="SYNTHETIC", help=o.SOURCE_HELP)],
    train: Annotated[str, typer.Argument(metavar="TRAIN", help="The data that its generator was trained on.")],
    asked: o.Request,
    holdout: Annotated[
        str | None, typer.Argument(metavar="[HOLDOUT]", help="Data of the same source that it has never seen.")
    ] = None,
) -> None:
    """Say whether synthetic data copy rows of the data that their generator was trained on.

    Exact copies are counted beside the number that chance gives. With a holdout, rows with
    small changes are found too: those of an honest generator are as often nearer to the
    holdout as to the training data.

    Exit code 0: no copies beyond chance. 1: copies. 2: too few rows to decide, or input
    that cannot be used.
    """
    sources = [source for source in (synthetic, train, holdout) if source is not None]
    datasets = [open_data(source, asked, "to compare rows of") for source in sources]
    with show_work("Looking for copies …", asked.quiet):
        found = sotdd.copies(*datasets, **asked.settings)

    def write() -> None:
        say_note("\n".join(f"{show(data.name)}: {say_sizes(data)}" for data in datasets), asked.quiet)
        say(repr(replace(found, remarks=())), found.verdict.colour)

    named = dict(zip(("synthetic", "train", "holdout"), sources, strict=False))
    asked.print({**named, **found.to_dict()}, write, rows=found.list_rows(), remarks=found.remarks)
    if found.verdict.exit_code:
        raise typer.Exit(found.verdict.exit_code)


@o.takes("drawing", "page")
def demo_command(asked: o.Request) -> None:
    """Compare handwritten digits with variants of them, and with pictures of stripes."""
    with show_work("Loading (the first run on a machine compiles for a few seconds) …", asked.quiet):
        from sotdd import demo

        datasets = {name: sotdd.open_dataset(source, name=name) for name, source in demo.datasets().items()}
    matrix = sotdd.pairwise(datasets, progress=asked.bar, **asked.settings)
    _write_report(matrix, list(datasets.values()), asked)
    asked.print(matrix.to_dict(), lambda: _tell_story(matrix, asked), legend=f"{len(matrix.distances)} distances")


def _tell_story(matrix: DistanceMatrix, asked: o.Request) -> None:
    """Print what the datasets of the demo are, the distances, and how to read them."""
    from sotdd import demo

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


def _write_pair_report(
    result: TwoSampleTest | Explanation, datasets: list[sotdd.LabelledData], asked: o.Request, *sources: str
) -> None:
    from sotdd.reports.report import report_pair

    if asked.report is not None:
        texts = [asked.write_source(source) for source in sources]
        report_pair(result, asked.report, datasets, asked.title, (texts, asked.settings))


def _print_pair(
    result: Distance | TwoSampleTest,
    numbers: dict[str, Any],
    datasets: Sequence[Opened],
    asked: o.Request,
    legend: str,
    changes: Changes | None = None,
) -> None:
    """Print a result of two datasets in one line, and what changed, between their sizes and what to know of it."""

    def write() -> None:
        say_note("\n".join(f"{show(data.name)}: {say_sizes(data)}" for data in datasets), asked.quiet)
        say(repr(replace(result, remarks=())), "bold")
        if changes is not None and changes.changed:
            print_table(make_table(changes.list_rows(names=(datasets[0].name, datasets[1].name)), left=(0, 1, 2)))
        for text in [] if changes is None else changes.say_rest():
            say(text)

    asked.print(numbers, write, remarks=result.remarks, legend=legend)


def _write_report(matrix: DistanceMatrix, datasets: Sequence[Opened], asked: o.Request) -> None:
    """Write the page, if one is wanted; classes are compared if s-OTDD was used and every dataset has its points."""
    if asked.report is None:
        return
    points = [data for data in datasets if isinstance(data, sotdd.LabelledData)]
    by_class = matrix.projections is not None and len(points) == len(matrix)
    named = dict(zip(matrix.names, points, strict=True)) if by_class else None
    sotdd.report(matrix, asked.report, datasets=named, title=asked.title, progress=asked.bar)


def _print_matrix(matrix: DistanceMatrix, *, errors: bool) -> None:
    """Print columns by name, with errors if they are wanted; or by number and without, where that is too wide."""
    print_table(*(_make_matrix_table(matrix, errors=errors and named, named=named) for named in (True, False)))


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


def print_ranking(
    order: Ranking, asked: o.Request, also: Mapping[str, Any], about: str, remarks: Sequence[Remark] = ()
) -> None:
    """Print which datasets are nearest, and how to read that; ``also`` are further numbers."""
    numbers = {**order.to_dict(), **also}

    def write() -> None:
        if not order:
            say("No entry matches.")
            return
        say_note(about, asked.quiet)
        styles = ["bold" if line.rank == 1 else "" for line in order]
        left = [column for column in range(len(order.rows[0])) if column not in order.number_columns]
        print_table(make_table(order.rows, left=left, styles=styles))
        say(order.answer)

    columns = ("rank", "tied", "name", "value", "stderr", "noise_floor", "within_noise")
    asked.print(
        numbers,
        write,
        rows=[{column: line.get(column) for column in columns} for line in numbers["ranking"]],
        remarks=(*remarks, *order.remarks),
        legend="; ".join([order.lines[0].distance.how, *order.legend]) if order.lines else None,
    )


def _say_legend(distances: Sequence[Distance]) -> str:
    """How to read a table, in one line."""
    parts = [distances[0].how]
    largest = max(distance.stderr for distance in distances)
    if math.isfinite(largest):
        parts.append(f"± one standard error over the choice of projections, up to {largest:.2g}")
    if any(distance.within_noise for distance in distances):
        parts.append("~ within noise, as near as two samples of the same data")
    return "; ".join(parts)
