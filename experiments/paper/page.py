"""Write the page of our results beside the paper's: python -m experiments.paper.page [--results DIR]."""

from __future__ import annotations

import argparse
import os
import tomllib
from pathlib import Path

from experiments.lib.options import HERE, ROOT, Options
from experiments.paper import claims

PAGE = ROOT / "docs" / "reproduction.md"


def write_page(results: Path, pictures: str) -> str:
    """The page as Markdown."""
    with (HERE / "paper" / "remarks.toml").open("rb") as file:
        words = tomllib.load(file)
    parts = ["# The paper, reproduced", words["introduction"].strip(), _table(results), words["conditions"].strip()]
    for section in words["sections"]:
        text = section["text"].strip().replace("{different}", claims.compare_different(results))
        shown = [f"![{section['title']}]({pictures}/{name}.png)" for name in section["pictures"]]
        parts += [f"## {section['title']}", text, *shown]
    return "\n\n".join(parts) + "\n"


def _table(results: Path) -> str:
    """The claims, and what the verdicts mean."""
    found = claims.collect(results)
    lines = ["| figure | the paper's claim | here | verdict |", "|---|---|---|---|"]
    lines += [f"| {one.figure} | {one.paper} | {one.here} | **{one.verdict}** |" for one in found]
    used = {one.verdict for one in found}
    lines += ["", *(f"- *{word}*: {meaning}." for word, meaning in claims.WORDS.items() if word in used)]
    return "\n".join(lines)


def generate(results: Path, output: Path) -> None:
    """Write the page beside what it shows."""
    output.parent.mkdir(parents=True, exist_ok=True)
    pictures = Path(os.path.relpath(results.resolve(), output.resolve().parent)).as_posix()
    output.write_text(write_page(results, pictures), encoding="utf-8")


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=Options.results)
    parser.add_argument("--output", type=Path, default=PAGE)
    given = parser.parse_args()
    generate(given.results, given.output)


if __name__ == "__main__":
    main()
