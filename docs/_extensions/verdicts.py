"""Tables that end in a verdict: on a phone their rows are stacked, since the last column would lie out of sight."""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform


class StackVerdicts(SphinxTransform):
    """Give such tables a class of their own, for ``site.css``."""

    default_priority = 900

    def apply(self) -> None:
        """Look at the last word of every table's head."""
        for table in self.document.findall(nodes.table):
            if next(table.findall(nodes.thead), nodes.thead()).astext().split()[-1:] == ["verdict"]:
                table["classes"].append("verdicts")


def setup(app: Sphinx) -> dict[str, bool]:
    """Run it on every page."""
    app.add_transform(StackVerdicts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
