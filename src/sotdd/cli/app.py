"""The program: all commands under one name, and what it prints when one fails.

Nothing heavy is imported before a command runs, so that ``--help`` answers at once.
"""

from __future__ import annotations

import io
import os
import platform
import sys
import time
import traceback
import warnings
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, TextIO

import typer

import sotdd
from sotdd.basics import __version__
from sotdd.basics.errors import SotddError
from sotdd.cli import check, compare, sketches
from sotdd.cli import options as o
from sotdd.cli.terminal import complain, say, show_work

_COMPARE, _DECIDE, _KEEP, _SEE = "Compare", "Decide", "Keep", "Try it"

# The libraries that results depend on, listed by --version if they are installed.
_LIBRARIES = ("numpy", "scipy", "numba", "safetensors", "torch", "POT", "pyarrow", "lancedb", "dask", "jinja2")

app: typer.Typer = typer.Typer(
    name="sotdd",
    help="How far apart are labelled datasets? The sliced optimal transport dataset distance.",
    epilog="Start with: sotdd demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_versions(wanted: bool) -> None:
    if not wanted:
        return
    typer.echo(f"sotdd {__version__}\npython {platform.python_version()}")
    for name in _LIBRARIES:
        try:
            typer.echo(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Show the versions of sotdd and of the libraries it uses.",
            callback=_show_versions,
            is_eager=True,
        ),
    ] = False,
) -> None:
    pass


app.command("distance", epilog=compare.DISTANCE_EXAMPLES, rich_help_panel=_COMPARE)(compare.distance_command)
app.command("matrix", epilog=compare.MATRIX_EXAMPLES, rich_help_panel=_COMPARE)(compare.matrix_command)
app.command("rank", epilog=compare.RANK_EXAMPLES, rich_help_panel=_COMPARE)(compare.rank_command)
app.command("mix", epilog=compare.MIX_EXAMPLES, rich_help_panel=_COMPARE)(compare.mix_command)
app.command("explain", epilog=compare.EXPLAIN_EXAMPLES, rich_help_panel=_COMPARE)(compare.explain_command)
app.command("test", epilog=compare.TEST_EXAMPLES, rich_help_panel=_DECIDE)(compare.test_command)
app.command("copies", epilog=compare.COPIES_EXAMPLES, rich_help_panel=_DECIDE)(compare.copies_command)
app.command("reference", epilog=check.REFERENCE_EXAMPLES, rich_help_panel=_DECIDE)(check.reference_command)
app.command("check", epilog=check.CHECK_EXAMPLES, rich_help_panel=_DECIDE)(check.check_command)
app.command("monitor", epilog=check.MONITOR_EXAMPLES, rich_help_panel=_DECIDE)(check.monitor_command)
app.command("sketch", epilog=sketches.SKETCH_EXAMPLES, rich_help_panel=_KEEP)(sketches.sketch_command)
app.add_typer(sketches.catalog_app, rich_help_panel=_KEEP)
app.command("demo", epilog=compare.DEMO_EXAMPLES, rich_help_panel=_SEE)(compare.demo_command)

# Tables, embeddings and images: loops are compiled for each kind of number, and wide points have loops of their own;
# and enough points for the loops that sort long rows.
_KINDS = ((4, "float64"), (130, "float32"), (130, "uint8"))
_POINTS = 3000


@app.command("warm", epilog=o.examples("sotdd warm"), rich_help_panel=_SEE)
@o.takes()
def warm_command(asked: o.Request) -> None:
    """Compile now what distance, check and explain compile at their first run.

    For the image of a container, or a job of CI whose cache is kept. Compiled loops are kept in
    NUMBA_CACHE_DIR where that is set, otherwise in the user's cache.
    """
    from sotdd.projections.compiling import find_cache

    started = time.perf_counter()
    if (folder := find_cache()) is None:
        raise SotddError("no folder for compiled loops can be written: set NUMBA_CACHE_DIR to one that can.")
    with show_work("Compiling …", asked.quiet):
        _compile_loops()
    seconds = time.perf_counter() - started
    asked.print(
        {"seconds": seconds, "folder": str(folder)},
        lambda: say(f"compiled in {seconds:.1f} s, kept in {folder}"),
    )


def _compile_loops() -> None:
    """Make the calls once, for each kind of data."""
    import numpy as np

    rng = np.random.default_rng(0)
    labels = np.arange(_POINTS) % 3, rng.integers(3, size=_POINTS)  # classes of one size, and of others
    for number, (n_features, kind) in enumerate(_KINDS):
        points = (100 * rng.random((2, _POINTS, n_features))).astype(kind)
        a, b = (points[0], labels[0]), (points[1], labels[number % 2])
        sotdd.distance(a, b, n_projections=64, noise_floor=True)
        sotdd.explain(a, b, n_projections=64)
        for first, second in ((_POINTS, _POINTS), (40, 40), (40, 30)):  # few points are compared by other loops
            reference = sotdd.DriftReference.fit((a[0][:first], a[1][:first]), with_sketch=True)
            reference.test((b[0][:second], b[1][:second]), n_permutations=19)
            reference.distance((b[0][:second], b[1][:second]))


def main() -> None:
    """Run the command line.

    Exit codes: 0 for success; 1 if a check fails; 2 for input that cannot be used, with one line that says why; 70 for
    a bug in this program, which must not be taken for drift; 130 if it was interrupted.
    """
    # Standard output and error lose their reader without a word, and write out letters that they lack.
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = made = _make_robust(sys.stdout), _make_robust(sys.stderr)
    try:
        with warnings.catch_warnings():
            # Where in Python a warning was raised is of no use here.
            warnings.showwarning = lambda message, *_, **__: complain(str(message))
            app(prog_name="sotdd")
    except (MemoryError, OSError) as error:
        full = "out of memory: add ::max_points=10000 to the sources, or use fewer projections."
        complain(full if isinstance(error, MemoryError) else f"cannot write the result ({error}).")
        raise SystemExit(2) from None
    except Exception:  # noqa: BLE001  # left alone, Python would exit with 1
        traceback.print_exc()
        raise SystemExit(70) from None
    finally:
        for stream in made:
            with suppress(OSError):  # a full disk, which is reported by now
                stream.flush()
        sys.stdout, sys.stderr = before


class _Output(io.FileIO):
    """Output whose reader may leave, as in ``sotdd check a b | head``: the exit code stays that of the work."""

    def write(self, content: object) -> int:  # bytes of any kind
        try:
            return super().write(content)  # type: ignore[arg-type]
        except BrokenPipeError:
            return len(content)  # type: ignore[arg-type]


def _make_robust(stream: TextIO | None) -> TextIO:
    if stream is None:  # closed before the program began
        return open(os.devnull, "w", encoding="utf-8")
    if type(stream) is not io.TextIOWrapper:  # tests have their own
        return stream
    raw = io.BufferedWriter(_Output(stream.fileno(), "w", closefd=False))
    return io.TextIOWrapper(raw, stream.encoding, "backslashreplace", line_buffering=stream.line_buffering)
