"""Formulas as MathML: drawn by the browser itself, without a script from elsewhere."""

import re

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)

# Commands that docutils doesn't know, by others that it does.
_MACROS = {
    r"\\(?:big|Big|bigg|Bigg)[lrm]?(?![A-Za-z])": "",
    r"\\math(?:rel|bin|op|ord)\b": "",
    r"\\tag\{(.*?)\}": r"\\qquad (\1)",
}


def to_mathml(formula, *, block):
    """MathML of a formula; a MathError says what isn't understood."""
    for pattern, known in _MACROS.items():
        formula = re.sub(pattern, known, formula)
    return latex2mathml.tex2mathml(formula, as_block=block)


def _text(self, node, block):
    try:
        return to_mathml(node.astext().strip(), block=block)
    except MathError as error:
        logger.warning("%s in %r", error, node.astext(), location=node)
        return f"<code>{self.encode(node.astext())}</code>"


def visit_inline(self, node):
    self.body.append(_text(self, node, False))
    raise nodes.SkipNode


def visit_block(self, node):
    number = f'<span class="eqno">({node["number"]})</span>' if node["number"] else ""
    self.body.append(f'<div class="math">{number}{_text(self, node, True)}</div>')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(visit_inline, None),
        block_renderers=(visit_block, None),
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
