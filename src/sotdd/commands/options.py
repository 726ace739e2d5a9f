"""Arguments and options that several commands share, with their help texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from sotdd.basics.errors import SotddError

_READING = "Reading the data"
_MEASURING = "Measuring"
_OUTPUT = "Output"

SOURCE_HELP = (
    "A file (.npz, .npy, .csv, .parquet, .arrow) or its URL, a folder of images, or a folder saved by Hugging Face"
    " datasets (hf:DIR). Add options as in FILE::features=NAME,label=NAME."
)
SKETCH_TOO = "A dataset, given as in sotdd distance, or a sketch of one (.sotdd)."


def _words(*words: str) -> Callable[[str], list[str]]:
    """Complete one of these words when Tab is pressed."""
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


def _option(panel: str, *names: str, **settings: Any) -> Any:  # noqa: ANN401  # what typer's Option takes and returns
    return typer.Option(*names, rich_help_panel=panel, **settings)


# Sources.
A = Annotated[str, typer.Argument(metavar="A", help=SOURCE_HELP)]
B = Annotated[str, typer.Argument(metavar="B", help="The other dataset, given the same way.")]

# Reading the data.
Features = Annotated[
    str | None,
    _option(
        _READING,
        help="Array or column that holds the features, in every source; several columns as a+b, or a pattern: 'x_*'.",
    ),
]
NewCatalog = Annotated[
    str, typer.Argument(metavar="CATALOG", help="The folder of the catalog, or its URL; created if there is none.")
]
Label = Annotated[
    str | None,
    _option(_READING, help="Array or column that holds the labels, in every source; '' puts all points in one class."),
]

Exclude = Annotated[str | None, _option(_READING, help="Columns that are no features: a+b, or a pattern: '*_id'.")]
OneHot = Annotated[
    int | None,
    _option(
        _READING,
        "--one-hot",
        metavar="N",
        help="Make a feature of every value of text columns that have at most this many values.",
    ),
]
Dates = Annotated[bool, _option(_READING, "--dates", help="Take dates as features: days since 1970.")]
Missing = Annotated[
    str | None,
    _option(
        _READING,
        help="What to do about missing values: error, drop (leave out those rows), or mean (fill in the column's).",
        show_default="error",
        autocompletion=_words("error", "drop", "mean"),
    ),
]

# Measuring.
Projections = Annotated[
    int | None,
    _option(
        _MEASURING,
        "--n-projections",
        help="How many projections; more of them give a smaller error.",
        show_default="1000",
    ),
]
FewProjections = Annotated[
    int | None,
    _option(_MEASURING, "--n-projections", help="How many projections; more of them take longer.", show_default="128"),
]
Seed = Annotated[int | None, _option(_MEASURING, help="Seed of every random draw.", show_default="0")]
Order = Annotated[float | None, _option(_MEASURING, "--p", help="Order of transport, at least 1.", show_default="2")]
LabelLaw = Annotated[
    str | None,
    _option(
        _MEASURING,
        help="How classes are summarised: moments, quantiles, or paper, which is moments without a cut.",
        show_default="moments",
        autocompletion=_words("moments", "quantiles", "paper"),
    ),
]
Scale = Annotated[
    str | None,
    _option(
        _MEASURING,
        help="How features are scaled: features (each by its own spread), pooled (all by one spread), none, or auto:"
        " features for tables, pooled for arrays and images.",
        show_default="auto",
        autocompletion=_words("auto", "features", "pooled", "none"),
    ),
]
Estimator = Annotated[
    str | None,
    _option(
        _MEASURING,
        help="controlled (smaller error), or plain: the mean over projections.",
        show_default="controlled",
        autocompletion=_words("controlled", "plain"),
    ),
]
Method = Annotated[
    str,
    _option(
        _MEASURING,
        help="sotdd, or another method: otdd, otdd-gaussian, wte, chsw, frechet, sw, mmd.",
        autocompletion=_words("sotdd", "otdd", "otdd-gaussian", "wte", "chsw", "frechet", "sw", "mmd"),
    ),
]
RelTol = Annotated[
    float | None,
    _option(
        _MEASURING,
        "--rel-tol",
        metavar="SHARE",
        help="Draw projections until the standard error is at most this share of the distance, such as 0.01.",
    ),
]
SampledPoints = Annotated[
    int | None,
    _option(
        _MEASURING,
        "--max-points",
        help="Compare samples of this many points of each dataset, for methods that cannot take them all.",
    ),
]
LabelNames = Annotated[
    str | None,
    _option(
        _MEASURING,
        "--label-names",
        help="match: classes that swap names count as a difference; ignore: only how classes lie counts.",
        show_default="ignore",
        autocompletion=_words("ignore", "match"),
    ),
]
NoiseFloor = Annotated[
    bool, _option(_MEASURING, "--noise-floor", help="Also measure how far apart two samples of the same data are.")
]
Permutations = Annotated[
    int,
    _option(_MEASURING, "--n-permutations", help="How many random permutations of the points."),
]
MaxPoints = Annotated[
    int | None, _option(_MEASURING, help="Test samples of this many points of each dataset, to save time.")
]
Device = Annotated[
    str,
    _option(
        _MEASURING,
        help="auto, cpu, or with torch cuda or cuda:1.",
        autocompletion=_words("auto", "cpu", "cuda"),
    ),
]

# Output.
Report = Annotated[
    Path | None,
    _option(_OUTPUT, metavar="FILE.html", help="Also write the result as a web page, which works offline."),
]
Title = Annotated[str | None, _option(_OUTPUT, help="The title of that page.")]
Csv = Annotated[bool, _option(_OUTPUT, "--csv", help="Print the values as CSV.")]
Json = Annotated[bool, _option(_OUTPUT, "--json", help="Print one JSON object.")]
Quiet = Annotated[bool, _option(_OUTPUT, "--quiet", "-q", help="Print the result only: no progress bar, no notes.")]


def chosen(*, scale: str | None = None, **options: Any) -> dict[str, Any]:  # noqa: ANN401  # options of any kind
    """The settings that the user chose, as the library takes them; it decides about all others.

    Examples
    --------
    >>> chosen(seed=3, p=None, scale="none")
    {'seed': 3, 'scale': None}
    """
    settings = {name: value for name, value in options.items() if value is not None}
    if scale is not None:
        if scale not in ("auto", "features", "pooled", "none"):
            raise SotddError(f"--scale is {scale!r}: expected auto, features, pooled or none.")
        settings["scale"] = None if scale == "none" else scale
    return settings


def reading(exclude: str | None, one_hot: int | None, dates: bool, missing: str | None) -> dict[str, Any]:
    """How tables are to be read, as the library takes it: what the user said, and nothing else.

    Examples
    --------
    >>> reading("id+*_at", None, False, "drop")
    {'exclude': ['id', '*_at'], 'missing': 'drop'}
    """
    asked = {"exclude": exclude and exclude.split("+"), "one_hot": one_hot, "dates": dates or None, "missing": missing}
    return {name: value for name, value in asked.items() if value is not None}


def examples(*lines: str) -> str:
    """The end of a help text: commands to try, one per line."""
    return "\n\n".join(["[bold]Examples[/bold]", *(line.replace("[", r"\[") for line in lines)])
