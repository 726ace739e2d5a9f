"""Make drawn calls in a process of their own, with a limit on memory: ``python -m fuzz FIRST COUNT`` or a line.

Every call is announced before it is made, so that a crash or a hang can be told from what was announced last.
"""

# ruff: noqa: T201  # what it prints is its result

import faulthandler
import os
import resource
import sys
import tempfile
from pathlib import Path

# A hang in compiled code, which no signal interrupts, ends the process with a traceback.
STUCK = 120
# Address space beyond what is loaded at the start.
SPACE = 8 << 30


def main() -> int:
    """Report each call that went wrong; the exit code says whether one did."""
    tests = Path(__file__).parents[1]
    os.environ.setdefault("MPLBACKEND", "agg")
    sys.path[:0] = [str(tests)]
    from fuzz import values
    from fuzz.calls import draw, run, run_line, warm_up

    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        values.prepare_folder()
        _limit_memory()
        if len(sys.argv) == 2:
            found = run_line(sys.argv[1])
            print(found or "as it should be")
            return int(found is not None)
        warm_up()
        first, count = map(int, sys.argv[1:])
        for number in range(first, first + count):
            call = draw(number)
            print(f"CALL {number} {call}", flush=True)
            faulthandler.dump_traceback_later(STUCK, exit=True)
            found = run(call)
            faulthandler.cancel_dump_traceback_later()
            if found is not None:
                wrong += 1
                print(f"WRONG {number} {call}\n{found}END", flush=True)
        os.chdir("/")
    print(f"DONE {count} calls, {wrong} wrong")
    return int(wrong > 0)


def _limit_memory() -> None:
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + SPACE, resource.getrlimit(resource.RLIMIT_AS)[1]))


if __name__ == "__main__":
    sys.exit(main())
