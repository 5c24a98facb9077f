"""Writes the API page: each name that ``chapters/api.md`` lists becomes an entry, made from the name's docstring.

An entry is a section, so that search and the page's table of contents list it. Sphinx's autodoc and napoleon render the
docstring, viewcode creates a page with the source code, and an entry ends with links to the chapters' sections that use
the name.
"""

import re
from functools import cache
from inspect import isclass
from textwrap import fill

import nbformat

import notebooks
import transformer_lab as tl

PAGE = "api"
NAMES_PARAGRAPH = re.compile(r"(?m)^(?:`[\w.]+`\s)+$")  # a paragraph that is nothing but names
WIDTH = 80  # characters of code in a line
MAX_LINKS = 6  # maximum number of sections that an entry links to


def lookup(name):
    """Return the package's object with a given name, such as ``softmax`` or ``plots.matrix``."""
    value = tl
    for part in name.split("."):
        value = getattr(value, part)
    return value


def entry(name):
    """Return the section about a name, as Markdown."""
    value = lookup(name)
    if isclass(value):
        body = f"```{{eval-rst}}\n.. autoclass:: transformer_lab.{name}\n   :members:\n```"
    elif callable(value):
        body = f"```{{eval-rst}}\n.. autofunction:: transformer_lab.{name}\n```"
    else:
        body = f"```python\n{fill(str(value), WIDTH, subsequent_indent='    ')}\n```"
    lines = [f"### `{name}`", body]
    if links := [f"[{number}]({link})" for number, link in sections_with(name)]:
        ellipsis = ", …" if len(links) > MAX_LINKS else ""
        lines.append(f"In the chapters: {', '.join(links[:MAX_LINKS])}{ellipsis}")
    return "\n\n".join(lines)


@cache
def chapter_sections():
    """Return ``[(number, link, text)]`` for the numbered sections of all chapters, in order."""
    sections = []
    for path in notebooks.chapters():
        for cell in nbformat.read(path, 4).cells:
            if heading := cell.cell_type == "markdown" and re.match(r"## ((\d+\.\d+) .+)", cell.source):
                anchor = re.sub(r"[^\w\- ]", "", heading[1].lower()).replace(" ", "-")
                sections.append([heading[2], f"{path.name}#{anchor}", ""])
            elif cell.cell_type == "markdown" and re.match("## ", cell.source):
                sections.append([None, None, ""])
            if sections:
                sections[-1][2] += f"{cell.source}\n\n"  # without a blank line, two quotes would become one
    return [section for section in sections if section[0]]


def sections_with(name):
    """Return ``[(number, link)]`` for the chapters' sections whose code or text names ``tl.name``."""
    word = re.compile(rf"\btl\.{re.escape(name)}\b")
    return [(number, link) for number, link, text in chapter_sections() if word.search(text)]


def skip_data(app, kind, name, member, skip, options):
    """Skip those attributes of a class that are neither methods nor properties."""
    return skip or isclass(member) or not (callable(member) or isinstance(member, property))


def names_in(paragraph):
    return re.findall(r"`([\w.]+)`", paragraph)


def write_entries(app, docname, source):
    if docname == PAGE:
        source[0] = NAMES_PARAGRAPH.sub(lambda match: "\n\n".join(map(entry, names_in(match[0]))) + "\n", source[0])


def find_public_name(app, env, node, content):
    """Resolve a docstring's reference to a name from another file: ``device`` means ``transformer_lab.device``."""
    if node.get("refdomain") == "py":
        target = f"transformer_lab.{node['reftarget']}"
        domain = env.get_domain("py")
        return domain.resolve_xref(env, node["refdoc"], app.builder, node["reftype"], target, node, content)


def setup(app):
    app.connect("source-read", write_entries)
    app.connect("autodoc-skip-member", skip_data)
    app.connect("missing-reference", find_public_name)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
