"""What commands take: sources, and options of how data are read and measured and how results are printed.

Those of reading and of projections are the fields of `Reading` and `ProjectionSettings`, with what is known of them
there. A command says which it takes by `takes`, and gets what the user chose as `Request`.
"""

from __future__ import annotations

import functools
import inspect
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias, get_type_hints

import typer

import sotdd
from sotdd.basics.errors import SotddError, check_count, check_level, check_positive
from sotdd.basics.files import find_file_name, refuse_unwritable
from sotdd.basics.remarks import Naming, Remark, in_python
from sotdd.basics.text import say_count, show
from sotdd.cli.terminal import complain, print_csv, print_remarks, say, say_note, show_work, wants_bar
from sotdd.inputs.reading import DEFAULTS, OPTIONS, Option
from sotdd.inputs.sources import write_source
from sotdd.projections.settings import DEFAULT_SETTINGS

# What sketches and drift references are called.
SKETCH, REFERENCE = ".sotdd", ".ref"

SOURCE_HELP = (
    "A file (.csv, .parquet, .npz, .xlsx, .db …) or its URL, - for CSV on standard input, a folder of images"
    " or tables. Add options as in FILE::features=NAME,label=NAME."
)
SKETCH_TOO = "A dataset, given as in sotdd distance, or a sketch of one (.sotdd)."

A = Annotated[str, typer.Argument(metavar="A", help=SOURCE_HELP)]
B = Annotated[str, typer.Argument(metavar="B", help="The other dataset, in the same form.")]

# Remarks that are printed unless all are asked for.
_MOST_REMARKS = 3

# What a source is opened as.
Opened: TypeAlias = "sotdd.LabelledData | sotdd.Sketch"

# What is known of options, by name, and what they are by default.
_Known: TypeAlias = Mapping[str, tuple[Option, object]]


def _option(usual: object, help: str, *choices: str, **known: Any) -> tuple[Option, object]:  # noqa: A002, ANN401  # as `Option` has it
    return Option(help, **{"type": type(usual), **known}, choices=choices), usual


# How projections are drawn, as far as words and numbers say it; the word "none" stands for None.
_DRAWING: _Known = {
    one.name: _option(
        one.default,
        one.metadata["help"],
        *one.metadata["choices"],
        type=str if one.metadata["choices"] else int,
        parse=lambda text: None if text == "none" else text,
    )
    for one in fields(DEFAULT_SETTINGS)
    if one.metadata["choices"] or type(one.default) is int
}

# Settings of calls that are neither of reading nor of drawing.
MEASURING: _Known = {
    "p": _option(2.0, "Order of transport, at least 1."),
    "rel_tol": _option(
        None,
        "Sample projections until the standard error is at most this share of the distance, such as 0.01.",
        type=float,
        metavar="SHARE",
    ),
    "noise_floor": _option(False, "Also measure how far apart two samples of the same data would be."),
    "label_names": _option(
        "ignore",
        "ignore: class names are ignored; match: two classes that swap names are a difference.",
        *("ignore", "match"),
    ),
    "method": _option(
        "sotdd",
        "sotdd, or another method: otdd, otdd-gaussian, wte, chsw, frechet, sw, mmd.",
        *("sotdd", "otdd", "otdd-gaussian", "wte", "chsw", "frechet", "sw", "mmd"),
    ),
    "n_permutations": _option(999, "How many random permutations of the points.", take=check_count),
    "fail_above": _option(
        None, "Fail if the distance is more than this.", type=float, metavar="X", take=check_positive
    ),
    "p_value": _option(
        None,
        "Fail if a permutation test finds drift at this level, shared by all batches; 0.05 by default.",
        type=float,
        metavar="LEVEL",
        take=lambda value, name: check_level(value, 0.05, name),
    ),
    "run_length": _option(200, "Batches from one false alarm to the next, on average.", metavar="N"),
    "min_points": _option(
        10, "With fewer points a batch does not pass: it is undecided.", metavar="N", take=check_count
    ),
    "require_all_columns": _option(False, "A batch is undecided if any of its columns is left out."),
    "max_points": _option(None, OPTIONS["max_points"].help, type=int),
    "device": _option("auto", "auto, cpu, or with torch cuda or cuda:1.", *("auto", "cpu", "cuda")),
}


# Files to write beside what is printed, and in which form that is; `Request` has them as its fields.
_OUTPUT: _Known = {
    "report": _option(None, "Also write the result as a web page, which works offline.", type=str, metavar="FILE.html"),
    "title": _option(None, "The title of that page.", type=str),
    "junit": _option(None, "Also write JUnit XML, with a test case per batch.", type=str, metavar="FILE.xml"),
    "summary": _option(None, "Also write a short JSON summary to post.", type=str, metavar="FILE.json"),
    "csv": _option(False, "Print the table as CSV."),
    "json": _option(False, "Print one JSON object."),
    "verbose": _option(False, "Print all remarks, not only those that matter most."),
    "quiet": _option(False, "Print the result only: no progress bar, no notes."),
}
_SHORT = {"verbose": ("-v",), "quiet": ("-q",)}

# Every option of a command once: the heading of help it stands under, and what is known of it.
_GROUPS: dict[str, tuple[str, _Known]] = {
    "reading": (
        "Reading the data",
        {name: (one, getattr(DEFAULTS, name)) for name, one in OPTIONS.items() if one.type},
    ),
    "drawing": ("Measuring", _DRAWING),
    "measuring": ("Measuring", MEASURING),
    "output": ("Output", _OUTPUT),
}


@dataclass(frozen=True)
class Request:
    """What the user asked for beside the sources.

    Attributes
    ----------
    reading, drawing, measuring
        The settings that were chosen, as the library takes them; it decides about all others.
    naming
        How the running command calls a setting.
    report, title
        The page to write, and its title.
    junit, summary
        Further files to write, for pipelines.
    csv, json, verbose, quiet
        Whether to print a table as CSV, or one JSON object; all remarks; or the result only.
    began
        When it began, in seconds of the clock that measures time.
    """

    reading: dict[str, Any]
    drawing: dict[str, Any]
    measuring: dict[str, Any]
    naming: Naming
    report: str | None = None
    title: str | None = None
    junit: str | None = None
    summary: str | None = None
    csv: bool = False
    json: bool = False
    verbose: bool = False
    quiet: bool = False
    began: float = field(default_factory=time.perf_counter)

    @property
    def settings(self) -> dict[str, Any]:
        """All that a call of the library takes."""
        return {**self.drawing, **self.measuring}

    def choose(self, *names: str) -> dict[str, Any]:
        """Those of some settings of `measuring` that the user chose."""
        return {name: self.measuring[name] for name in names if name in self.measuring}

    @property
    def sample(self) -> int | None:
        """How many points of each source to read; all where another method takes its samples itself."""
        return self.measuring.get("max_points") if self.measuring.get("method", "sotdd") == "sotdd" else None

    @property
    def bar(self) -> bool:
        """Whether to draw progress bars."""
        return wants_bar(self.quiet)

    def print(
        self,
        numbers: dict[str, Any],
        write: Callable[[], object],
        *,
        rows: Sequence[Mapping[str, object]] = (),
        remarks: Iterable[Remark] = (),
        legend: str | None = None,
    ) -> None:
        """Print a result in the form that was asked for: JSON, CSV of its rows, or for people by ``write``."""
        if self.json:
            whole = numbers if self.report is None else {**numbers, "report": self.report}
            typer.echo(json.dumps(whole, indent=2, allow_nan=False))  # in ASCII: no code that a terminal would obey
            return
        if self.csv:
            print_csv(rows)
            return
        write()
        print_remarks(remarks, self.naming, self.quiet, None if self.verbose else _MOST_REMARKS)
        if legend is not None:
            seconds = f"{time.perf_counter() - self.began:.1f} s"
            say_note("; ".join(filter(None, (legend, seconds))), self.quiet)
        if self.report is not None:
            say(f"wrote {show(self.report)}", "bold")

    def refuse_report(self) -> None:
        """Refuse a page, or another file, that could not be written, before anything is measured."""
        if self.report is not None:
            from sotdd.reports.page import refuse_page

            refuse_page(self.report)
        for path in filter(None, (self.junit, self.summary)):
            refuse_unwritable(path)

    def write_source(self, source: str) -> str:
        """A source with what was said about reading it, as Python takes it."""
        return source if is_made(source) else write_source(source, **self.reading)

    def refuse_drawing(self, why: str) -> None:
        """Refuse settings of projections where there are some already."""
        if self.drawing:
            options = ", ".join(map(self.naming, self.drawing))
            raise SotddError(f"{options} cannot be chosen {why}: leave that out.")


def is_made(source: str, *suffixes: str) -> bool:
    """Whether a source is a sketch or a drift reference, by its name."""
    return find_file_name(source).endswith(suffixes or SKETCH)


def open_source(source: str, asked: Request) -> Opened:
    """Open a dataset, or a sample of it, or a sketch if the source is a sketch file."""
    if is_made(source):
        return replace(sotdd.Sketch.load(source), name=source)
    return open_data(source, asked, most=asked.sample)


def open_data(source: str, asked: Request, purpose: str = "", most: int | None = None) -> sotdd.LabelledData:
    """Open a dataset, or a sample of ``most`` points; refuse a sketch, which lacks points for the purpose."""
    if is_made(source):
        raise SotddError(f"{source!r} is a sketch, which has no points {purpose}: give the data.")
    with show_work(f"Reading {source} …", asked.quiet):
        reading = dict(asked.reading)
        if most is not None:
            reading |= {"max_points": most, "seed": asked.drawing.get("seed", 0)}
        return sotdd.open_dataset(source, **reading)


def say_sizes(data: Opened) -> str:
    """How many points, features and classes there are, in words."""
    features = data.recipe["n_features"] if hasattr(data, "recipe") else data.n_features
    classes = say_count(len(data.classes), "class", "classes")
    return f"{say_count(data.n_points, 'point')}, {say_count(features, 'feature')}, {classes}"


def takes(*names: str, **defaults: object) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command options, and what the user chose of them as its last argument, ``asked``.

    Parameters
    ----------
    names
        "reading" and "drawing" for all options of these, single options by name, and "page" for --report and --title.
        Every command also has --json, --verbose and --quiet.
    defaults
        Defaults that help shows where they are not the usual ones.
    """
    wanted = {*names, *(("report", "title") if "page" in names else ()), "json", "verbose", "quiet"}
    groups: dict[str, _Known] = {
        group: {name: (option, defaults.get(name, usual)) for name, (option, usual) in known.items()
                if not wanted.isdisjoint((group, name))}
        for group, (_, known) in _GROUPS.items()
    }  # fmt: skip

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = {name: one for name, one in inspect.signature(command).parameters.items() if name != "asked"}
        hints = get_type_hints(command, include_extras=True)
        parameters = [_make_parameter("context", typer.Context, inspect.Parameter.empty)]
        for group, known in groups.items():
            if group == "output":  # which help shows last
                parameters += [_make_parameter(name, hints[name], one.default) for name, one in own.items()]
            parameters += [_make_option(name, *one, _GROUPS[group][0]) for name, one in known.items()]

        @functools.wraps(command)
        def run(context: typer.Context, **given: Any) -> None:  # noqa: ANN401  # what typer parsed
            naming = name_options(context)
            try:
                chosen: dict[str, Any] = {group: _read_chosen(known, given) for group, known in groups.items()}
                output = chosen.pop("output")
                if "json" in output and "csv" in output:
                    raise SotddError("--csv and --json are both given: choose one.")
                asked = Request(**chosen, **output, naming=naming)
                if "page" in names:
                    asked.refuse_report()
                command(**{name: given[name] for name in own}, asked=asked)
            except SotddError as error:
                complain(error.say(naming))
                raise typer.Exit(2) from None

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # where typer looks
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        return run

    return decorate


def name_options(context: typer.Context) -> Naming:
    """How a command calls settings: by its options, by what follows a source, or else by their names in Python."""
    options = {one.name: max(one.opts, key=len) for one in context.command.params if one.param_type_name == "option"}

    def name(setting: str, value: object = ...) -> str:
        if setting not in options and setting in OPTIONS:
            return f"FILE::{setting}={'' if value is ... else OPTIONS[setting].write(value)}"
        if setting not in options:
            return in_python(setting, value)
        if value is ... or value is True:
            return options[setting]
        missing = "''" if setting == "label" else "none"
        return f"{options[setting]} {missing if value is None else value}"

    return name


def refuse_output(path: str, suffix: str, such_as: str) -> None:
    """Refuse a file to write that is called something else than its kind, or that cannot be written."""
    if Path(path).suffix != suffix:
        raise SotddError(f"is {path!r}: call it {(Path(path).stem or such_as) + suffix!r}.", setting="output")
    refuse_unwritable(path)


def examples(*lines: str) -> str:
    """The end of a help text: commands to try, one per line."""
    return "\n\n".join(["[bold]Examples[/bold]", *(line.replace("[", r"\[") for line in lines)])


def _read_chosen(known: _Known, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a group that were given, as the library takes them."""
    chosen = {name: given[name] for name in known if given[name] is not None and given[name] is not False}
    return {name: known[name][0].parse(value) if isinstance(value, str) else value for name, value in chosen.items()}


def _make_option(name: str, option: Option, usual: object, panel: str) -> inspect.Parameter:
    """A parameter that typer makes an option of."""
    words = option.choices
    if words and usual is None:
        usual = words[0]
    is_shown = bool(words) or (isinstance(usual, (int, float)) and not isinstance(usual, bool))
    info = typer.Option(
        f"--{name.replace('_', '-')}",
        *_SHORT.get(name, ()),
        help=option.help,
        metavar=option.metavar,
        show_default=str(usual) if is_shown else False,
        autocompletion=(lambda incomplete: [word for word in words if word.startswith(incomplete)]) if words else None,
        rich_help_panel=panel,
    )
    kind: Any = bool if option.type is bool else option.type | None if option.type else str
    return _make_parameter(name, Annotated[kind, info], False if option.type is bool else None)


def _make_parameter(name: str, kind: object, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
