"""Formulas as MathML, which browsers draw by themselves: no script, no fonts, no network."""

from __future__ import annotations

from html import escape
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.util import logging

_log = logging.getLogger(__name__)


def mathml(node: nodes.Node, as_block: bool = False) -> str:
    """The formula; one that cannot be read is a warning with its place, and shown as it was written."""
    try:
        return str(latex2mathml.tex2mathml(node.astext(), as_block=as_block))
    except MathError as error:
        _log.warning("formula: %s", error, location=node)
        return f"<code>{escape(node.astext())}</code>"


def inline(writer: Any, node: nodes.math) -> None:  # noqa: ANN401  # Sphinx's own writers
    """A formula within a line."""
    writer.body.append(mathml(node))
    raise nodes.SkipNode


def block(writer: Any, node: nodes.math_block) -> None:  # noqa: ANN401
    """A formula on lines of its own."""
    writer.body.append(f'<div class="formula">{mathml(node, as_block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:  # noqa: ANN401
    """Offer it to Sphinx as ``html_math_renderer = "mathml"``."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
