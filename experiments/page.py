"""The page that sets every result beside the paper's: python -m experiments.page [--results DIR] [--output FILE].

All numbers come from the CSV files: ours from the results, the paper's from paper.csv.
"""

from __future__ import annotations

import argparse
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.correlate import Correlation
from experiments.options import HERE, ROOT, Options
from experiments.verdicts import WORDS, beside_paper, drawn, number, reported, said


@dataclass(frozen=True)
class Line:
    """One line of a table: what, the paper's number and ours, and a word on both."""

    what: str
    paper: str
    here: str
    verdict: str = ""


@dataclass(frozen=True)
class Section:
    """What the page says of an experiment: its claims stand in the table on top, the rest is folded below."""

    title: str
    command: str
    sizes: str
    claims: list[Line]
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


def seeds(rows: Sequence[Mapping[str, str]], *keys: str) -> str:
    """How many seeds there are of each place that the keys name: "3", or "2 to 3" where some places have fewer."""
    found: dict[tuple[str, ...], set[str]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), set()).add(row["seed"])
    counts = {len(there) for there in found.values()}
    return f"{min(counts)}" if len(counts) == 1 else f"{min(counts)} to {max(counts)}"


def coefficient(row: Mapping[str, str], name: str) -> Correlation:
    """A correlation as a summary's row holds it."""
    return Correlation(*(float(row[column]) for column in (name, f"{name}_low", f"{name}_high")))


def compared(what: str, experiment: str, quantity: str, here: Correlation) -> Line:
    """A correlation beside the paper's, with a word on both where the paper has a number."""
    verdict = "" if reported(experiment, quantity) is None else beside_paper(experiment, quantity, here)
    return Line(what, said(experiment, quantity), str(here), verdict)


def claimed(what: str, experiment: str, quantity: str, here: Correlation) -> Line:
    """The same, short enough for the table on top."""
    return Line(what, number(experiment, quantity), str(here), beside_paper(experiment, quantity, here))


def written(sections: list[Section], pictures: str) -> str:
    """The page as Markdown."""
    first, *more = remarks("introduction")
    parts = ["# The paper, reproduced", first, _claims(sections), _meaning(sections), *more]
    for section in sections:
        parts += [
            f"## {section.title}",
            f"![{section.title}]({pictures}/{section.picture or section.command + '.png'})",
            _folded(f"All numbers: {len(section.lines)} lines", _table(section)),
            _folded("How it was run, and what differs from the paper", _conditions(section)),
        ]
    return "\n\n".join(parts) + "\n"


def _claims(sections: list[Section]) -> str:
    """The table on top."""
    table = ["| experiment | paper | here | |", "|---|---|---|---|"]
    for section in sections:
        for place, line in enumerate(section.claims):
            # The name of an experiment stands once, before the first of its claims.
            title = f"[{section.title}](#{anchor(section.title)}): " if place == 0 else ""
            here = re.sub(
                r"\[.*?\]", lambda found: found[0].replace(" ", "\u00a0"), line.here
            )  # an interval on one line
            table.append(f"| {title}{line.what} | {line.paper} | {here} | **{line.verdict}** |")
    return "\n".join(table)


def _meaning(sections: list[Section]) -> str:
    """What the words of the last column mean, those that are used."""
    used = {line.verdict for section in sections for line in (*section.claims, *section.lines)}
    return "\n".join(f"- *{word}*: {meaning}." for word, meaning in WORDS.items() if word in used)


def _table(section: Section) -> str:
    """Without the columns that nothing stands in."""
    columns = {"": "what", "paper": "paper", "here": "here", " ": "verdict"}
    shown = {
        head: name
        for head, name in columns.items()
        if name in ("what", "here") or any(getattr(line, name) not in ("", "–") for line in section.lines)
    }
    table = ["| " + " | ".join(shown) + " |", "|" + "---|" * len(shown)]
    table += ["| " + " | ".join(getattr(line, name) for name in shown.values()) + " |" for line in section.lines]
    figures = drawn(section.command)
    note = f"The paper draws this and gives no numbers: {', '.join(figures)}." if figures else ""
    return "\n".join(table) + (f"\n\n{note}" if note else "")


def _conditions(section: Section) -> str:
    listed = "\n".join(f"- {text}" for text in section.differs)
    return f"`python -m experiments.{section.command}`\n\nSizes and seeds: {section.sizes}\n\n{listed}"


def _folded(title: str, text: str) -> str:
    return f"<details>\n<summary>{title}</summary>\n\n{text}\n\n</details>"


def anchor(title: str) -> str:
    """What a heading is linked by."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


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
