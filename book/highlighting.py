"""Code gets markup only where it has a colour: names, commas and spaces have no markup.

Markup for names, commas and spaces would make up more than a quarter of a chapter's bytes. A line that a phone must
wrap is an element with an indent, so that its continuation is indented farther than its beginning.
"""

import re

from docutils import nodes
from pygments.formatters import HtmlFormatter
from pygments.token import Name, Punctuation, Text, Whitespace
from sphinx.highlighting import PygmentsBridge

PLAIN_TOKENS = {Name, Punctuation, Text, Whitespace}  # coloured like plain text in the light and the dark theme
MAX_PHONE_LINE = 36  # characters in a line on a phone
MAX_SHORT_CODE = 16  # characters of code that a paragraph keeps on one line, such as (2, 7, 5)


class ColoursOnlyFormatter(HtmlFormatter):
    """Pygments' HTML formatter, reduced to the classes that have a colour."""

    def _get_css_classes(self, ttype):
        return "" if ttype in PLAIN_TOKENS else super()._get_css_classes(ttype)

    def _format_lines(self, tokensource):
        for is_code, line in super()._format_lines(tokensource):
            yield is_code, with_indent(line) if is_code else line


def with_indent(line):
    code, end, _ = line.partition("\n")
    text = re.sub(r"<[^>]*>", "", code).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    if len(text) <= MAX_PHONE_LINE:
        return line
    indent = len(text) - len(text.lstrip(" "))
    style = f' style="--in:{indent}"' if indent else ""
    return f'<span class="tl-line"{style}>{code}</span>{end}'


def keep_short_code_on_one_line(app, doctree, docname):
    for code in doctree.findall(nodes.literal):
        if " " in code.astext() and len(code.astext()) <= MAX_SHORT_CODE:
            code["classes"].append("tl-short")


def setup(app):
    app.connect("doctree-resolved", keep_short_code_on_one_line)
    PygmentsBridge.html_formatter = ColoursOnlyFormatter
    return {"parallel_read_safe": True, "parallel_write_safe": True}
