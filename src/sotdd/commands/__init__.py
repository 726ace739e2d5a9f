"""The command line: one module for each command, which parses, calls the library and prints."""

import signal
import sys
import threading
from _thread import interrupt_main
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130  # as shells report it: 128 plus the number of the signal


def main() -> None:
    """Run the program ``sotdd``."""
    with _interruptions_end_it():
        try:
            from sotdd.commands.app import main as run  # importing sotdd.demo must not load the command line
        except (KeyboardInterrupt, SystemExit):  # while libraries are loaded, which takes a moment
            _give_up("interrupted", INTERRUPTED)
        except ModuleNotFoundError:  # a broken installation, which a traceback tells best
            raise
        except (ImportError, MemoryError) as error:
            _give_up(f"cannot begin, perhaps for want of memory ({str(error) or type(error).__name__})", 2)
        run()


@contextmanager
def _interruptions_end_it() -> Iterator[None]:
    """Turn Ctrl-C into an exit, which no library takes for anything else.

    Python ends by the signal itself, not with the code, if a KeyboardInterrupt has passed through code made from text,
    as many libraries have. And what is raised while compiled code calls Python is only printed: it is raised again.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler, hook = signal.getsignal(signal.SIGINT), sys.unraisablehook

    def again(lost: "sys.UnraisableHookArgs") -> None:
        if isinstance(lost.exc_value, SystemExit):
            threading.Timer(0.01, _interrupt).start()
        else:
            hook(lost)

    signal.signal(signal.SIGINT, _exit)
    sys.unraisablehook = again
    try:
        yield
    finally:
        sys.unraisablehook = hook
        signal.signal(signal.SIGINT, handler)


def _interrupt() -> None:
    """Interrupt the main thread, and what it waits for where the system can."""
    if hasattr(signal, "pthread_kill") and threading.main_thread().ident is not None:
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # type: ignore[arg-type]  # it is not None
    else:
        interrupt_main()


def _exit(_: int, __: FrameType | None) -> None:
    raise SystemExit(INTERRUPTED)


def _give_up(why: str, code: int) -> None:
    if sys.stderr is not None:  # it may have been closed
        sys.stderr.write(f"sotdd: {why}.\n")
    raise SystemExit(code) from None


__all__ = ["main"]
