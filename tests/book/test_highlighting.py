"""Code in a page has the colours of Pygments, and no more markup than these colours need."""

import sys

from bs4 import BeautifulSoup
from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from notebooks import ROOT

sys.path.append(str(ROOT))
from book.highlighting import ColoursOnlyFormatter, keep_short_code_on_one_line, with_indent

CODE = '''import torch

def scaled(x, *, d_head=64):
    """Return x / √d_head."""  # see above for the reason
    return x @ x.mT * d_head ** -0.5 if x is not None else f"{d_head!r:>4}"
'''


def class_of_each_letter(formatter):
    """Return each visible character of the code with the class that colours it."""
    page = BeautifulSoup(highlight(CODE, PythonLexer(), formatter), "html.parser")
    words = page.pre.find_all(string=True)
    classes = [" ".join(set(word.parent.get("class", [])) - {"tl-line"}) for word in words]
    return [(letter, name) for word, name in zip(words, classes) for letter in word if not letter.isspace()]


def test_only_uncoloured_code_loses_its_markup():
    expected, ours = class_of_each_letter(HtmlFormatter()), class_of_each_letter(ColoursOnlyFormatter())
    assert ours == [(letter, "" if name in ("n", "p", "w") else name) for letter, name in expected]
    assert {"k", "nf", "mi", "o", "sd", "c1"} <= {name for _, name in ours}


def test_a_line_that_a_phone_wraps_has_its_indent():
    assert with_indent("    <b>return</b> x\n") == "    <b>return</b> x\n"
    long = f"    <b>return</b> {'x' * 40}"
    assert with_indent(f"{long}\n") == f'<span class="tl-line" style="--in:4">{long}</span>\n'
    assert with_indent("x" * 40) == f'<span class="tl-line">{"x" * 40}</span>'


def test_short_code_in_a_text_does_not_break():
    shape, long, word = (
        nodes.literal("", "(2, 7, 5)"),
        nodes.literal("", "softmax(scores, dim=1)"),
        nodes.literal("", "q"),
    )
    keep_short_code_on_one_line(None, nodes.paragraph("", "", shape, long, word), "page")
    assert [code["classes"] for code in (shape, long, word)] == [["tl-short"], [], []]
