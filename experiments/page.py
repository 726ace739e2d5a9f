"""The page that sets every result beside the paper's: python -m experiments.page [--results DIR] [--output FILE].

All numbers come from the CSV files: ours from the results, the paper's from paper.csv.
"""

from __future__ import annotations

import argparse
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.correlate import Correlation
from experiments.options import HERE, ROOT, Options
from experiments.store import read


@dataclass(frozen=True)
class Line:
    """One line of a table: what, the paper's number and ours."""

    what: str
    paper: str
    here: str
    verdict: str = ""


@dataclass(frozen=True)
class Section:
    """What the page says of an experiment."""

    title: str
    command: str
    sizes: str
    lines: list[Line]
    differs: list[str]
    picture: str = ""  # named as the command unless said


def remarks(experiment: str) -> list[str]:
    """What differs from the paper and why, in words."""
    with (HERE / "remarks.toml").open("rb") as file:
        found: list[str] = tomllib.load(file)[experiment]
    return [" ".join(text.split()) for text in found]


def one(rows: Sequence[Mapping[str, str]], **wanted: object) -> Mapping[str, str] | None:
    """The first row that agrees with what is wanted."""
    found = (row for row in rows if all(row[name] == str(value) for name, value in wanted.items()))
    return next(found, None)


def reported(experiment: str, quantity: str) -> tuple[float, float] | None:
    """The paper's number, as the range that its pages give; None where it only draws it."""
    row = _entry(experiment, quantity)
    return (float(row["low"]), float(row["high"])) if row["low"] else None


def _entry(experiment: str, quantity: str) -> Mapping[str, str]:
    rows = [row for row in read(HERE / "paper.csv") if (row["experiment"], row["quantity"]) == (experiment, quantity)]
    if len(rows) != 1:
        raise ValueError(f"paper.csv has {len(rows)} lines for {experiment}, {quantity}: expected one.")
    return rows[0]


def said(experiment: str, quantity: str) -> str:
    """The same in words, with where it stands."""
    found = reported(experiment, quantity)
    where = _entry(experiment, quantity)["where"]
    if found is None:
        return where
    low, high = (f"{value:,.2f}" if abs(value) < 10 else f"{value:,.0f}" for value in found)
    return f"{low} ({where})" if low == high else f"{low} to {high} ({where})"


def coefficient(row: Mapping[str, str], name: str) -> Correlation:
    """A correlation as a summary's row holds it."""
    return Correlation(*(float(row[column]) for column in (name, f"{name}_low", f"{name}_high")))


def compared(what: str, experiment: str, quantity: str, here: Correlation) -> Line:
    """A correlation beside the paper's, and whether the interval holds the paper's."""
    paper = reported(experiment, quantity)
    verdict = ""
    if paper is not None:
        inside = paper[0] <= here.high and here.low <= paper[1]
        verdict = "the interval holds the paper's" if inside else "the interval does not hold the paper's"
    return Line(what, said(experiment, quantity), str(here), verdict)


def written(sections: list[Section], pictures: str) -> str:
    """The page as Markdown."""
    parts = ["# The paper, reproduced", *remarks("introduction")]
    for section in sections:
        table = ["| | paper | here | |", "|---|---|---|---|"]
        table += [f"| {line.what} | {line.paper} | {line.here} | {line.verdict} |" for line in section.lines]
        parts += [
            f"## {section.title}",
            f"`python -m experiments.{section.command}`",
            "\n".join(table),
            f"Sizes and seeds: {section.sizes}",
            "What differs, and why:",
            "\n".join(f"- {text}" for text in section.differs),
            f"![{section.title}]({pictures}/{section.picture or section.command + '.png'})",
        ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Write the page."""
    from experiments.reports import SECTIONS

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=Options.results)
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "reproduction.md")
    given = parser.parse_args()
    generate(given.results, given.output, [section(given.results) for section in SECTIONS])


def generate(results: Path, output: Path, sections: list[Section]) -> None:
    """Write the page beside what it shows."""
    output.parent.mkdir(parents=True, exist_ok=True)
    pictures = Path(os.path.relpath(results.resolve(), output.resolve().parent)).as_posix()
    output.write_text(written(sections, pictures), encoding="utf-8")


if __name__ == "__main__":
    main()
