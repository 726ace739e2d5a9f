"""The program: all commands under one name, and what it prints when one fails.

Nothing heavy is imported before a command runs, so that ``--help`` answers at once.
"""

from __future__ import annotations

import io
import sys
import traceback
import warnings
from typing import Annotated

import typer

from sotdd.basics.errors import SotddError
from sotdd.basics.memory import beyond_memory, is_out_of_memory
from sotdd.commands import (
    INTERRUPTED,
    catalog,
    check,
    demo,
    distance,
    explain,
    hub,
    matrix,
    rank,
    reference,
    sketch,
    two_sample,
)
from sotdd.commands.option_names import in_options
from sotdd.commands.pipes import readers_may_leave
from sotdd.commands.terminal import complain

_FEWER = "take samples by adding ::max_points=10000 to the sources, or use fewer projections or coarser labels"
_COMPARE, _DECIDE, _KEEP, _SEE = "Compare", "Decide", "Keep", "Try it"

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
    if wanted:
        from sotdd.commands.versions import versions

        typer.echo(versions())
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


app.command("distance", epilog=distance.EXAMPLES, rich_help_panel=_COMPARE)(distance.distance_command)
app.command("matrix", epilog=matrix.EXAMPLES, rich_help_panel=_COMPARE)(matrix.matrix_command)
app.command("rank", epilog=rank.EXAMPLES, rich_help_panel=_COMPARE)(rank.rank_command)
app.command("explain", epilog=explain.EXAMPLES, rich_help_panel=_COMPARE)(explain.explain_command)
app.command("test", epilog=two_sample.EXAMPLES, rich_help_panel=_DECIDE)(two_sample.test_command)
app.command("reference", epilog=reference.EXAMPLES, rich_help_panel=_DECIDE)(reference.reference_command)
app.command("check", epilog=check.EXAMPLES, rich_help_panel=_DECIDE)(check.check_command)
app.command("sketch", epilog=sketch.EXAMPLES, rich_help_panel=_KEEP)(sketch.sketch_command)
app.command("update", epilog=sketch.UPDATE_EXAMPLES, rich_help_panel=_KEEP)(sketch.update_command)
catalog.app.command("add-hub", epilog=hub.EXAMPLES)(hub.add_hub_command)
app.add_typer(catalog.app, rich_help_panel=_KEEP)
app.command("demo", epilog=demo.EXAMPLES, rich_help_panel=_SEE)(demo.demo_command)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning in one line: where in Python it was raised is of no use here."""
    complain(str(message))


def main() -> None:
    """Run the command line.

    Exit codes: 0 for success; 1 if a check fails; 2 for input that cannot be used, with one line that says why; 70 for
    a bug in this program, which must not be taken for drift; 130 if it was interrupted. A reader that goes away, as in
    ``sotdd check a b | head -0``, changes none of them.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that has no ± shows \xb1 rather than failing
            stream.reconfigure(errors="backslashreplace")
    with readers_may_leave():
        _run()


def _run() -> None:
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            app(prog_name="sotdd")
    except (KeyboardInterrupt, SystemExit) as end:  # typer turns an interruption into an exit
        if isinstance(end, SystemExit) and end.code != INTERRUPTED:
            raise
        complain("interrupted.")
        raise SystemExit(INTERRUPTED) from None
    except SotddError as error:
        complain(in_options(str(error)))
        raise SystemExit(2) from None
    except OSError as error:
        if is_out_of_memory(error):
            complain(str(beyond_memory("this", error, _FEWER)))
            raise SystemExit(2) from None
        complain(f"cannot write the result ({error}).")
        raise SystemExit(2) from None
    except Exception as error:  # noqa: BLE001  # left alone, Python would exit with 1
        if is_out_of_memory(error):
            complain(str(beyond_memory("this", error, _FEWER)))
            raise SystemExit(2) from None
        traceback.print_exc()
        raise SystemExit(70) from None
