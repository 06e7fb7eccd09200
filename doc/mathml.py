"""Formulas as MathML: drawn by the browser itself, without a script from elsewhere."""

import re

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging

logger = logging.getLogger(__name__)


# What LaTeX does by itself, told to the converter.
_REWRITE = {
    # The numbers of formulas stand at their right.
    r"\\tag\{(.*?)\}": r"\\qquad (\1)",
    r"\\math(rel|bin)\b": "",
    r"\{aligned\}": "{split}",
    r"\\arg(?![a-z])": r"\\operatorname{arg}",
    r"\\[bB]igg?[lrm]?\s*(?=\\[lr](?:ceil|floor|Vert|vert))": "",
    # Thin spaces before a function, and after it where no bracket follows.
    r"(?<=[\w}])\s*\\(?=(ln|log|exp|cosh)(?![a-z]))": r"\\,\\",
    r"\\(ln|log|exp|cosh)(_\w)?\s*(?=\w|\\(?![bB]ig|left|[,;!]))": r"\\\1\2\\, ",
}
_BAR = '<mo stretchy="false">&#x0007C;</mo>'


def to_mathml(formula, *, block):
    """MathML of a formula in LaTeX; ValueError where a command isn't understood."""
    formula = formula.strip()
    for pattern, known in _REWRITE.items():
        formula = re.sub(pattern, known, formula)
    if block:
        formula = re.sub(r"\\(min|max|sup|inf)_", r"\\\1\\limits_", formula)
        if ("\\\\" in formula or "&" in formula) and "\\begin" not in formula:
            formula = rf"\begin{{split}}{formula}\end{{split}}"
    try:
        found = convert(formula, display="block" if block else "inline")
    except Exception as error:
        raise ValueError(f"{type(error).__name__} in formula {formula!r}") from error
    unknown = re.search(r">\s*(\\[A-Za-z]+|&<)", found)
    if unknown:
        raise ValueError(f"unknown {unknown[1]} in formula {formula!r}")
    return found.replace(_BAR, _BAR.replace("<mo", '<mo lspace="0" rspace="0"'))


def _text(self, node, block):
    try:
        return to_mathml(node.astext(), block=block)
    except ValueError as error:
        logger.warning("%s", error, location=node)
        return f"<code>{self.encode(node.astext())}</code>"


def visit_inline(self, node):
    self.body.append(_text(self, node, False))
    raise nodes.SkipNode


def visit_block(self, node):
    self.body.append(f'<div class="math">{_text(self, node, True)}</div>')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(visit_inline, None),
        block_renderers=(visit_block, None),
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
