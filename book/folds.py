"""Folds code cells on pages, and assignments and solutions in the list of pages, in plain HTML without scripts."""

import re
from html import escape

from myst_nb.sphinx_ import HideCodeCellNode

PART = re.compile(
    r'<p aria-level="2" class="caption" role="heading"><span class="caption-text">(?P<name>[^<]*)</span></p>'
    r'(?P<pages>.*?)(?=<p aria-level="2" class="caption"|\Z)',
    re.DOTALL,
)
FOLDED_PARTS = {"Assignments", "Solutions"}


def begin_cell(translator, node):
    # myst-nb puts paragraphs into the summary, which HTML does not allow, and changes the summary's accessible name.
    show_text, hide_text = (escape(node[name].replace("source", "code")) for name in ("prompt_show", "prompt_hide"))
    translator.body.append(
        f'<details class="admonition hide {" ".join(node["classes"])}">\n<summary>'
        f'<span class="collapsed admonition-title">{show_text}</span>'
        f'<span class="expanded admonition-title">{hide_text}</span></summary>\n'
    )


def end_cell(translator, node):
    translator.body.append("</details>\n")


def fold(part):
    """Return the HTML of a part of the list of pages; a fold-out is open if its part contains the current page."""
    if part["name"] not in FOLDED_PARTS:
        return part[0]
    open_attribute = " open" if 'class="current' in part["pages"] else ""
    name = f'<span aria-level="2" class="caption" role="heading">{part["name"]}</span>'
    return f'<details class="fold"{open_attribute}><summary>{name}</summary>{part["pages"]}</details>'


def fold_parts(app, pagename, templatename, context, doctree):
    write = context["generate_toctree_html"]
    context["generate_toctree_html"] = lambda *args, **settings: PART.sub(fold, str(write(*args, **settings)))


def setup(app):
    app.add_node(HideCodeCellNode, override=True, html=(begin_cell, end_cell))
    app.connect("html-page-context", fold_parts, priority=900)  # after the theme
    return {"parallel_read_safe": True, "parallel_write_safe": True}
