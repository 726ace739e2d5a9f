"""Arguments and options that commands share: what each is called and what its help says, once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from sotdd.basics.errors import SotddError
from sotdd.commands.terminal import say_note

_READING = "How sources are read"
_MEASURING = "How it is measured"
_OUTPUT = "What is printed"

SOURCE_HELP = (
    "A file (.npz, .npy, .csv, .parquet, .arrow), a folder of images, or one saved by datasets (hf:DIR); options follow"
    " as in FILE::features=NAME,label=NAME."
)
SKETCH_TOO = "A dataset, as in sotdd distance, or a sketch of one (.sotdd)."


def _words(*words: str) -> Callable[[str], list[str]]:
    """Complete one of a few words on pressing Tab."""
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


def _option(panel: str, *names: str, **settings: Any) -> Any:  # noqa: ANN401  # what typer's Option takes and returns
    return typer.Option(*names, rich_help_panel=panel, **settings)


# Sources.
A = Annotated[str, typer.Argument(metavar="A", help=SOURCE_HELP)]
B = Annotated[str, typer.Argument(metavar="B", help="Another.")]

# How sources are read.
Features = Annotated[str | None, _option(_READING, help="Name of the features in all; several columns as a+b.")]
Label = Annotated[str | None, _option(_READING, help="Name of the labels in all; '' for one class.")]

# How it is measured.
Projections = Annotated[
    int | None,
    _option(_MEASURING, "--n-projections", help="How many projections; more is more exact.", show_default="1000"),
]
FewProjections = Annotated[
    int | None,
    _option(_MEASURING, "--n-projections", help="How many projections; time grows with them.", show_default="128"),
]
Seed = Annotated[int | None, _option(_MEASURING, help="Seed of all that is drawn.", show_default="0")]
Order = Annotated[float | None, _option(_MEASURING, "--p", help="Order of transport, from 1.", show_default="2")]
LabelLaw = Annotated[
    str | None,
    _option(
        _MEASURING,
        help="How classes enter: moments, quantiles, or paper for moments without a cut.",
        show_default="moments",
        autocompletion=_words("moments", "quantiles", "paper"),
    ),
]
Scale = Annotated[
    str | None,
    _option(
        _MEASURING,
        help="How features are scaled: features, each by its own spread; pooled, all by one; none; or auto, which is"
        " features for tables and pooled for arrays and images.",
        show_default="auto",
        autocompletion=_words("auto", "features", "pooled", "none"),
    ),
]
Estimator = Annotated[
    str | None,
    _option(
        _MEASURING,
        help="controlled, or plain: the mean over projections and no more.",
        show_default="controlled",
        autocompletion=_words("controlled", "plain"),
    ),
]
Method = Annotated[
    str,
    _option(
        _MEASURING,
        help="sotdd, or a peer: otdd, otdd-gaussian, wte, chsw, frechet, sw, mmd.",
        autocompletion=_words("sotdd", "otdd", "otdd-gaussian", "wte", "chsw", "frechet", "sw", "mmd"),
    ),
]
RelTol = Annotated[
    float | None,
    _option(
        _MEASURING,
        "--rel-tol",
        metavar="SHARE",
        help="Draw projections until the error is at most this share of the value, such as 0.01.",
    ),
]
SampledPoints = Annotated[
    int | None,
    _option(_MEASURING, "--max-points", help="Sample this many points of each, for methods that cannot take all."),
]
MaxSamples = Annotated[int | None, typer.Option("--max-samples", hidden=True)]  # the old name of --max-points
LabelNames = Annotated[
    str, typer.Option(help="ignore, or match: whether the names of labels count, or only how classes lie.")
]
NoiseFloor = Annotated[
    bool, _option(_MEASURING, "--noise-floor", help="Also say what two samples of the same data would give.")
]
Permutations = Annotated[
    int, _option(_MEASURING, "--n-permutations", help="How many times points are shuffled between the two.")
]
MaxPoints = Annotated[int | None, _option(_MEASURING, help="Test samples of this many points of each, to save time.")]
Device = Annotated[
    str,
    _option(
        _MEASURING,
        help="cpu, cuda or such as cuda:1 (with torch), or auto.",
        autocompletion=_words("auto", "cpu", "cuda"),
    ),
]

# What is printed.
Csv = Annotated[bool, _option(_OUTPUT, "--csv", help="Print the values as CSV.")]
Json = Annotated[bool, _option(_OUTPUT, "--json", help="Print one JSON object.")]
Quiet = Annotated[bool, _option(_OUTPUT, "--quiet", "-q", help="No progress bar, no notes beside the result.")]


def given(**settings: Any) -> dict[str, Any]:  # noqa: ANN401  # settings of any kind
    """Those settings that were given; the others are the library's to choose."""
    return {name: value for name, value in settings.items() if value is not None}


def sampling(max_points: int | None, max_samples: int | None) -> dict[str, Any]:
    """The setting of a sample, where one was given; its old name is told about."""
    if max_samples is None:
        return given(max_points=max_points)
    if max_points is not None:
        raise SotddError("--max-samples is the old name of --max-points, and both are given: leave --max-samples out.")
    say_note("--max-samples is called --max-points now, and will go.")
    return {"max_points": max_samples}


def scaling(scale: str | None) -> dict[str, Any]:
    """The setting of a scale, where one was given."""
    if scale is not None and scale not in ("auto", "features", "pooled", "none"):
        raise SotddError(f"--scale is {scale!r}: expected auto, features, pooled or none.")
    return {} if scale is None else {"scale": None if scale == "none" else scale}


def examples(*lines: str) -> str:
    """The end of a help text: commands to try, one per line."""
    return "\n\n".join(["[bold]Examples[/bold]", *(line.replace("[", r"\[") for line in lines)])
