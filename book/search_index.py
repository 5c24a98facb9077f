"""The search index: the text of every section, in the order of the book."""

import json
import re
import unicodedata
from contextlib import suppress
from pathlib import Path

from docutils import nodes

LEFT_OUT = (nodes.math_block, nodes.comment, nodes.image, nodes.title, nodes.section)


SIGNS = {
    "cdot": "·",
    "times": "×",
    "le": "≤",
    "ge": "≥",
    "sum": "Σ",
    "sqrt": "√",
    "dots": "…",
    "top": "ᵀ",
    "infty": "∞",
    "approx": "≈",
}


def as_typed(tex):
    """Return an inline formula as a reader may type it: ``d_\\text{head}`` is d_head."""
    tex = re.sub(r"\\(?:text|mathrm|operatorname|mathbf|mathit)\{([^{}]*)\}", r"\1", tex)
    tex = re.sub(r"\\sqrt\{([^{}]*)\}", r"√\1", tex)
    tex = re.sub(r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r"\1/\2", tex)
    tex = re.sub(r"\\([a-zA-Z]+)", lambda command: sign(command[1]), tex)
    return re.sub(r"\\.|[{}]", "", tex)


def sign(name):
    """Return the character of a TeX command, or an empty text."""
    kind = "CAPITAL" if name[0].isupper() else "SMALL"
    with suppress(KeyError):
        return unicodedata.lookup(f"GREEK {kind} LETTER {name.removeprefix('var').upper()}")
    return SIGNS.get(name, "")


def words(node):
    """Return the visible text of a node, without its title and sections."""
    if isinstance(node, nodes.Text):
        return str(node)
    if isinstance(node, nodes.math):
        return as_typed(node.astext())
    if node.get("nb_element") == "cell_code_output":  # numbers, and states of widgets
        return ""
    if isinstance(node, nodes.raw):  # a line break
        return " "
    between = "" if isinstance(node, nodes.TextElement) else " "
    return between.join(words(child) for child in node.children if not isinstance(child, LEFT_OUT))


def sections_of(address, doctree):
    """Yield each section: its page's title, its address, its own title, its text."""
    name = doctree.next_node(nodes.title).astext()
    for section in doctree.findall(nodes.section):
        title = section.next_node(nodes.title).astext()
        top = section.parent is doctree
        yield name, address if top else f"{address}#{section['ids'][0]}", title, " ".join(words(section).split())


def pages_in_order(env):
    """Return the names of the pages, in the order of the list of pages."""
    root = env.config.root_doc
    return list(dict.fromkeys([root, *env.toctree_includes.get(root, ())]))


def write_index(app, error):
    if error or app.builder.format != "html":
        return
    found = [
        section
        for page in pages_in_order(app.env)
        for section in sections_of(app.builder.get_target_uri(page), app.env.get_doctree(page))
    ]
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    Path(app.outdir, "_static", "sections.js").write_text(f"const SECTIONS = {text};\n", "utf-8")


def setup(app):
    app.connect("build-finished", write_index)
    return {"parallel_read_safe": True}
