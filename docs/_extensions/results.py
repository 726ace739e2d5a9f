"""Measured tables, from the files that hold them: ``{result} NAME TABLE``, TABLE a part of its title."""

import json
from pathlib import Path
from typing import Any

from benchmarks import history
from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

FOLDER = Path(__file__).parents[2] / "benchmarks" / "results"


class Result(SphinxDirective):
    """A table of ``benchmarks/results/NAME.json``, all of it or some ``:columns:``, and how it was measured."""

    required_arguments, optional_arguments, final_argument_whitespace = 1, 1, True
    option_spec = {"columns": directives.unchanged}  # noqa: RUF012  # as docutils has it

    def run(self) -> list[nodes.Node]:
        """Read the file when the page is built."""
        name = self.arguments[0]
        path = history.FILE if name == "history" else FOLDER / f"{name}.json"
        self.env.note_dependency(str(path))
        result = history.show(history.read()) if name == "history" else json.loads(path.read_bytes())
        head, *rows = next(table for title, table in result["tables"].items() if "".join(self.arguments[1:]) in title)
        asked = self.options.get("columns")
        shown = [head.index(name) for name in asked.split("; ")] if asked else range(len(head))
        lines = ["| " + " | ".join(row[place] for place in shown) + " |" for row in (head, *rows)]
        how = f"*Measured by `{result['command']}`, {result['date']}, commit {result['commit']}, {result['machine']}.*"
        before = self.env.temp_data.setdefault("results", set())  # of this page: how is said once
        text = [lines[0], "|---" * len(shown) + "|", *lines[1:], *(["", how] if name not in before else [])]
        before.add(name)
        node = nodes.container(classes=["measured"])
        self.state.nested_parse(StringList(text, str(path)), self.content_offset, node)
        return [node]


def setup(app: Any) -> dict[str, bool]:  # noqa: ANN401  # as the other extensions
    """Offer the directive."""
    app.add_directive("result", Result)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
