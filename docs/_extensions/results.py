"""Measured tables, from the files that hold them: ``{result} NAME TABLE``, TABLE a part of its title."""

from typing import Any

from benchmarks.status import read_results
from docutils import nodes
from sphinx.util.docutils import SphinxDirective


class Result(SphinxDirective):
    """A table of a result, all of it or some ``:columns:``, and how it was measured."""

    required_arguments, optional_arguments, final_argument_whitespace = 1, 1, True
    option_spec = {"columns": str}  # noqa: RUF012  # as docutils has it

    def run(self) -> list[nodes.Node]:
        """Read the results when the page is built."""
        self.env.note_reread()
        result = read_results()[self.arguments[0]]
        head, *rows = next(table for title, table in result["tables"].items() if "".join(self.arguments[1:]) in title)
        shown = [head.index(name) for name in self.options["columns"].split("; ")] if self.options else range(len(head))
        lines = ["| " + " | ".join(row[place] for place in shown) + " |" for row in (head, ["---"] * len(head), *rows)]
        how = f"Measured by `{result['command']}`, {result['date']}, commit {result['commit']}, {result['machine']}."
        made = self.parse_text_to_nodes("\n".join([*lines, "", how]))
        return [nodes.container("", *made, classes=["measured"])]


def setup(app: Any) -> dict[str, bool]:  # noqa: ANN401  # as the other extensions
    """Offer the directive."""
    app.add_directive("result", Result)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
