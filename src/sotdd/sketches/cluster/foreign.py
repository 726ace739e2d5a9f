"""Whether the processes of a cluster can do the work: a worker without this package dies of the first task.

Workers that restart would do so for ever, and the call would never return. So all are asked first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from sotdd.basics.checks import first_line
from sotdd.basics.errors import SotddError
from sotdd.basics.text import counted
from sotdd.basics.version import __version__

# Dask's own types are not checked, since it is optional.
Client = Any

# An expression, not a function of ours: that could only be asked where this package is.
_QUESTION = "__import__('sotdd').__version__"
# How many seconds all have to answer; the first import of a package from a network drive is slow.
_PATIENCE = 60
# How many seconds a cluster without workers may take to start one.
_ARRIVAL = 300


def refuse_foreign_processes(client: Client) -> None:
    """Refuse a cluster whose scheduler or workers lack this package, or have another version of it."""
    answers = _asked(client)
    if not answers:
        _wait_for_one(client)
        answers = _asked(client)
    _refuse_foreign(answers, "worker")
    try:
        _refuse_foreign({"": client.run_on_scheduler(eval, _QUESTION)}, "scheduler")
    except ImportError as error:
        _refuse_foreign({"": error}, "scheduler")


def _asked(client: Client) -> Mapping[str, object]:
    """What each worker says, or why it could not."""
    try:
        answers: Mapping[str, object] = client.run(eval, _QUESTION, on_error="return", callback_timeout=_PATIENCE)
    except TimeoutError:
        raise SotddError(
            f"the workers of the cluster did not all answer within {_PATIENCE} s: check that they are running, and "
            "that the client can reach them."
        ) from None
    return answers


def _wait_for_one(client: Client) -> None:
    """Wait for a worker; clusters that adapt to their work start one for a task."""
    task = client.submit(eval, "1", pure=False)
    try:
        task.result(timeout=_ARRIVAL)
    except TimeoutError:
        raise SotddError(
            f"the cluster has no workers, and none came within {_ARRIVAL} s: start some, or wait for them with "
            "client.wait_for_workers(1)."
        ) from None
    finally:
        task.release()


def _refuse_foreign(answers: Mapping[str, object], who: str) -> None:
    """Name how many of those who answered cannot do the work, and why."""
    reasons: Counter[str] = Counter()
    for answer in answers.values():
        if isinstance(answer, Exception):
            reasons[f"cannot import sotdd ({type(answer).__name__}: {first_line(answer)})"] += 1
        elif answer != __version__:
            reasons[f"imported sotdd {answer}"] += 1
    if not reasons:
        return
    told = (f"{_of_all(count, len(answers), who)} {reason}" for reason, count in reasons.most_common(3))
    raise SotddError(f"{', '.join(told)}: install sotdd {__version__}, as here, on every machine of the cluster.")


def _of_all(count: int, total: int, who: str) -> str:
    return f"the {who}" if total == 1 else f"{count:,} of {counted(total, who)}"
