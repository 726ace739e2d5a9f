"""The commands that pages show, with what they print: ``python tests/project/console.py`` writes it into the pages.

All blocks of a page are one session, in a folder with the tables below.
"""

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("command-line.md", "guides/drift.md", "inputs.md")
SESSION = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)


def customers(seed, n, *, older=0.0, new_city=0.0, gaps=0.01):
    """What is known of customers, and whether they left."""
    rng = np.random.default_rng(seed)
    city = np.where(rng.random(n) < new_city, "Cairo", rng.choice(["Lima", "Oslo", "Rome"], n))
    income = rng.lognormal(10, 0.4, n).round()
    return pd.DataFrame(
        {
            "age": rng.normal(40 + older, 10, n).round(1),
            "income": np.where(rng.random(n) < gaps, np.nan, income),
            "city": city,
            "churned": rng.choice(["no", "yes"], n, p=[0.8, 0.2]),
        }
    )


def write_tables(folder):
    """A reference, days like it, days unlike it, and two months with columns that do not count."""
    tables = {"train": customers(0, 2000), "monday": customers(1, 400)}
    tables["tuesday"] = customers(3, 400, older=4, new_city=0.25, gaps=0.08)
    for day in (1, 2, 3, 4):
        tables[f"day{day}"] = customers(30 + day, 200, older=0 if day < 3 else 4)
    for month, (name, n) in enumerate([("january", 300), ("february", 250)]):
        since = pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(n) // 10 + 31 * month, "D")
        notes = [f"called {k} times about {k % 7} things" for k in range(n)]
        tables[name] = customers(20 + month, n, gaps=0).assign(
            customer_id=np.arange(n) + 1000, signup=since, note=notes
        )
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False)


def call(command):
    """What the command line prints, and its exit code."""
    from sotdd.cli import main

    said, code = io.StringIO(), 0
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), mock.patch.object(sys, "argv", command):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    return said.getvalue(), code


def play(session):
    """The commands of one block, each with what it prints."""
    printed = []
    for line in session.splitlines():
        if line.startswith("$ "):
            command, _, asks_for_code = line[2:].partition("; echo ")
            said, code = call(shlex.split(command))
            said = re.sub(r"; [0-9.]+ s$", "", said, flags=re.MULTILINE)  # how long it took
            printed.append(f"{line}\n{said}" + (f"exit code {code}\n" if asks_for_code else ""))
    return "\n".join(printed)


@contextlib.contextmanager
def folder_of_tables():
    """Be in a new folder with the tables."""
    wide = mock.patch.dict(os.environ, COLUMNS="160")
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name), wide:
        write_tables(Path(name))
        yield


if __name__ == "__main__":
    for page in PAGES:
        text = (DOCS / page).read_text(encoding="utf-8")
        with folder_of_tables():
            (DOCS / page).write_text(SESSION.sub(lambda block: play(block[0]), text), encoding="utf-8")
