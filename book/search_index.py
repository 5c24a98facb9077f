"""Writes the script of the search: all sections' texts in the book's order, the labs, and the search functions.

The script is ``search_index.js``. A page loads the script when its reader begins to search: see hits.js.
"""

import hashlib
import re
import sys
import unicodedata
from contextlib import suppress
from pathlib import Path

import nbformat
from docutils import nodes
from sphinx.search.en import SearchEnglish

import notebooks
from book.outline import as_json
from book.prose import title_of
from transformer_lab import labs

CHAPTERS = notebooks.ROOT / "chapters"
FIND_SCRIPT = Path(__file__).with_name("find.js")

NODES_LEFT_OUT = (nodes.math_block, nodes.comment, nodes.image, nodes.title, nodes.section)
ERROR = re.compile(r"(?m)\b[A-Z]\w*(?:Error|Warning): .*")  # a reader may paste an error into the search
LAB = re.compile(r"\blabs\.(\w+)\(")
HEADING = re.compile(r"(?m)^#{1,4} ")
ABOUT_A_LAB = re.compile(r"(?i)\blab\b|^Practice$")

TEX_CHARACTERS = {
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
    """Return an inline formula in the form in which a reader may type it: ``d_\\text{head}`` becomes d_head."""
    tex = re.sub(r"\\(?:text|mathrm|operatorname|mathbf|mathit)\{([^{}]*)\}", r"\1", tex)
    tex = re.sub(r"\\sqrt\{([^{}]*)\}", r"√\1", tex)
    tex = re.sub(r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r"\1/\2", tex)
    tex = re.sub(r"\\([a-zA-Z]+)", lambda command: character(command[1]), tex)
    return re.sub(r"\\.|[{}]", "", tex)


def character(name):
    """Return the character of a TeX command, or an empty string."""
    kind = "CAPITAL" if name[0].isupper() else "SMALL"
    with suppress(KeyError):
        return unicodedata.lookup(f"GREEK {kind} LETTER {name.removeprefix('var').upper()}")
    return TEX_CHARACTERS.get(name, "")


def visible_text(node):
    """Return the visible text of a node, without its title and sections."""
    if isinstance(node, nodes.Text):
        return str(node)
    if isinstance(node, nodes.math):
        return as_typed(node.astext())
    if node.get("nb_element") == "cell_code_output":  # numbers, widget states, and error messages
        return " ".join(ERROR.findall(node.astext()))
    if isinstance(node, nodes.raw):  # a line break
        return " "
    separator = "" if isinstance(node, nodes.TextElement) else " "
    return separator.join(visible_text(child) for child in node.children if not isinstance(child, NODES_LEFT_OUT))


def parts_of(section):
    """Return the texts of a section's paragraphs, cells and lists."""
    return [
        " ".join(visible_text(child).split()) for child in section.children if not isinstance(child, NODES_LEFT_OUT)
    ]


def sections_of(doctree, repeated=()):
    """Return each section's anchor, title and text, without the paragraphs in ``repeated``."""
    return [
        [
            "" if section.parent is doctree else section["ids"][0],
            title_of(section),
            " ".join(part for part in parts_of(section) if part and part not in repeated),
        ]
        for section in doctree.findall(nodes.section)
    ]


def pages_in_order(env):
    """Return the names of the pages, in the order of the list of pages."""
    root = env.config.root_doc
    return list(dict.fromkeys([root, *env.toctree_includes.get(root, ())]))


def repeated_paragraphs(env, page):
    """Return the paragraphs that a page of solutions repeats from its assignment."""
    if not page.startswith("solutions/"):
        return ()
    assignment = env.get_doctree(page.replace("solutions/", "assignments/"))
    return {part for section in assignment.findall(nodes.section) for part in parts_of(section)}


def pages_with_sections(env, address):
    """Return each page's title, address and sections."""
    return [
        [title_of(doctree), address(page), sections_of(doctree, repeated_paragraphs(env, page))]
        for page, doctree in ((page, env.get_doctree(page)) for page in pages_in_order(env))
    ]


def shown_labs(env):
    """For each lab on a page, yield the lab's name, the page, and the section around the lab."""
    for path in notebooks.all_notebooks():
        page = path.relative_to(CHAPTERS).with_suffix("").as_posix()
        sections, n_headings = [*env.get_doctree(page).findall(nodes.section)], 0
        for cell in nbformat.read(path, 4).cells:
            if cell.cell_type == "markdown":
                n_headings += len(HEADING.findall(cell.source))
            else:
                yield from ((name, page, sections[n_headings - 1]) for name in LAB.findall(cell.source))


def lab_rows(env, address):
    """Return, for each lab, the title of its page, and the lab's address, title and first sentence.

    If several sections show a lab, the address is preferably that of a section about the lab.
    """
    best_places = {}
    for name, page, section in shown_labs(env):
        is_about = bool(ABOUT_A_LAB.search(title_of(section)))
        if name not in best_places or is_about > best_places[name][0]:
            best_places[name] = is_about, page, section
    rows = []
    for name, (_, page, section) in best_places.items():
        title, _, text = sys.modules[getattr(labs, name).__module__].__doc__.splitlines()[0].partition(": ")
        anchor = "" if isinstance(section.parent, nodes.document) else f"#{section['ids'][0]}"
        rows.append([title_of(env.get_doctree(page)), f"{address(page)}{anchor}", title, text[0].upper() + text[1:]])
    return rows


def script(env, address):
    """Return the script: Sphinx's stemmer and stop words, the book's texts, and the search functions."""
    values = {
        "STOP_WORDS": sorted(SearchEnglish.stopwords),
        "SECTIONS": pages_with_sections(env, address),
        "LABS": lab_rows(env, address),
    }
    data = [f"const {name} = {as_json(value)};\n" for name, value in values.items()]
    return "".join([SearchEnglish.js_stemmer_code, *data, FIND_SCRIPT.read_text("utf-8")])


def write_script(app, builder):
    if builder.format != "html":
        return
    text = script(app.env, builder.get_target_uri)
    out = Path(app.outdir, "_static")
    out.mkdir(parents=True, exist_ok=True)
    (out / "search_index.js").write_text(text, "utf-8")
    # A new version has a new address, so that a browser does not use an old cached version.
    address = f"search_index.js?v={hashlib.sha256(text.encode()).hexdigest()[:8]}"
    app.add_js_file("hits.js", defer="defer", **{"data-index": address})


def setup(app):
    app.connect("write-started", write_script)
    return {"parallel_read_safe": True}
