"""The command ``sotdd monitor``, which adds up the evidence of a series of batches."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from sotdd.basics.errors import SotddError
from sotdd.basics.text import say_count
from sotdd.cli import options as o
from sotdd.cli.check import end_run, make_gate, open_batch
from sotdd.cli.terminal import show_work

EXAMPLES = o.examples(
    "sotdd monitor train.ref today.csv --log monitor.log",
    "sotdd monitor train.ref monday.csv tuesday.csv --log monitor.log --run-length 50",
)


@o.takes(
    "reading", "drawing", "p", "run_length", "n_permutations", "max_points", "label_names", "device",
    n_projections=128, max_points=20_000, n_permutations=499,
)  # fmt: skip
def monitor_command(
    reference: Annotated[
        str, typer.Argument(metavar="REFERENCE", help="A dataset, or what sotdd reference made (.ref).")
    ],
    current: Annotated[list[str], typer.Argument(metavar="BATCH...", help="Datasets, in the order they came in.")],
    log: Annotated[
        str, typer.Option(metavar="FILE", help="Where the series is kept, a line for every batch; made if it is new.")
    ],
    asked: o.Asked,
) -> None:
    """Say whether a series of batches has drifted, by the evidence of all of them.

    A drift too small for any single batch adds up. Where nothing drifts, there is
    one false alarm in --run-length batches on average. Each call goes on where the
    log ends; after an alarm the sum begins anew. Give every batch once.

    Exit code 0: no alarm. 1: an alarm, with the columns that changed. 2: a batch
    could not be judged, and is passed over.
    """
    from sotdd.drift.gate import BatchVerdict, append_lines, describe_state, open_log, resume_monitor, write_line
    from sotdd.reports.gate_page import GateRun

    open_log(log)
    gate = replace(make_gate(reference, asked), n_permutations=asked.measuring.get("n_permutations", 499))
    if gate.drift is None:
        raise SotddError(f"{reference!r} is a sketch, which has no points to permute: give the data.")
    monitor = resume_monitor(gate.drift.monitor(asked.measuring.get("run_length", 200)), log)
    verdicts = []
    for batch in current:
        try:
            opened = open_batch(gate, asked, batch)
            with show_work(f"Checking {batch} …", asked.quiet):
                verdict, monitor = gate.watch(monitor, opened, batch)
        except SotddError as error:
            verdict = BatchVerdict(batch, schema=error.remarks, error=error.say(asked.naming))
        append_lines(log, [write_line(verdict, reference, monitor=describe_state(monitor))])
        verdicts.append(verdict)
    so_far = f"{say_count(monitor.n_batches, 'batch', 'batches')} so far"
    note = f"{so_far}, {monitor.run_length:,} to a false alarm on average"
    if monitor.last is not None:
        low, high = monitor.expected
        note += f" ({low:.0f} to {high:.0f} for two of three references of this size)"
    end_run(asked, GateRun(reference, verdicts, gate=gate), more={"monitor": describe_state(monitor)}, note=note)
