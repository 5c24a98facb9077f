"""Writes the outline of the book, with sections, minutes and questions, for the scripts of the reader's record.

The outline is a small script, ``outline.js``, since a page opened from disk can load scripts but cannot fetch other
files. Two pages also load the titles, in ``titles.js``.
"""

import json
import re
from pathlib import Path

import nbformat
from docutils import nodes
from sphinx.errors import ExtensionError

import notebooks
from reading_times import END_OF_SITTING, cells_by_section, is_further, minutes
from transformer_lab import practice
from transformer_lab.checks.hunts import tasks

PRIORITY_BEFORE, PRIORITY_AFTER = 400, 900  # before and after the scripts that every page loads
SCRIPTS = {  # scripts that only these pages load
    "index": {"titles.js": PRIORITY_BEFORE},
    "record": {
        "titles.js": PRIORITY_BEFORE,
        "record_file.js": PRIORITY_AFTER,
        "weak.js": PRIORITY_AFTER,
        "record_page.js": PRIORITY_AFTER,
    },
    "404": {"missing.js": PRIORITY_AFTER},
}
REFERENCE_SECTIONS = ("References",)  # sections in which readers only look things up
QUESTION = re.compile(r"<summary>A\. ")


def section(node, cells):
    """Return a section's id, minutes and number of questions, and three flags: counted, ends a sitting, *further*."""
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    is_counted = title_of(node) not in REFERENCE_SECTIONS
    ends_sitting = bool(END_OF_SITTING.search(text))
    flags = map(int, (is_counted, ends_sitting, is_further(cells)))
    return [node["ids"][0], max(1, round(minutes(cells))), len(QUESTION.findall(text)), *flags]


def title_of(node):
    return node.next_node(nodes.title).astext()


def sections_of(doctree):
    top = doctree.next_node(nodes.section)
    return [node for node in top.children if isinstance(node, nodes.section)]


def chapter(page, doctree, path):
    """Return the outline of a chapter, from its page and its notebook."""
    sections, cells = sections_of(doctree), cells_by_section(nbformat.read(path, 4))
    if len(sections) != len(cells):
        raise ExtensionError(f"{page} shows {len(sections)} sections, but its notebook has {len(cells)}")
    number, name = page.split("_", 1)
    return [page, [section(*pair) for pair in zip(sections, cells)], tasks(f"ch{int(number)}_{name}")]


# Every page loads the outline, so it is written as short arrays, which the script converts to objects.
OUTLINE = """const OUTLINE = (([chapters, topics, project]) => ({{
  chapters: chapters.map(([page, sections, exercises]) => ({{
    page,
    sections: sections.map(([id, minutes, questions, counts, stop, further]) => ({{
      id, minutes, questions, counts, stop, further
    }})),
    exercises,
  }})),
  topics: topics.map(([name, chapter, cases]) => ({{ name, chapter, cases }})),
  project,
}}))({});
"""


def write_outline(app, builder):
    if builder.format != "html":
        return
    paths = {path.stem: path for path in notebooks.chapters() if path.stem in app.env.found_docs}
    doctrees = {page: app.env.get_doctree(page) for page in paths}
    topics = practice.topics()
    outline = [
        [chapter(page, doctrees[page], path) for page, path in paths.items()],
        [[name, topic.chapter, len(json.loads(topic.table_json)["cases"])] for name, topic in topics.items()],
        tasks("project"),
    ]
    titles = {
        "chapters": {page: title_of(doctree) for page, doctree in doctrees.items()},
        "sections": {page: [title_of(node) for node in sections_of(doctree)] for page, doctree in doctrees.items()},
        "topics": {name: topic.title for name, topic in topics.items()},
    }
    out = Path(app.outdir, "_static")
    out.mkdir(parents=True, exist_ok=True)
    (out / "outline.js").write_text(OUTLINE.format(as_json(outline)), "utf-8")
    (out / "titles.js").write_text(f"const TITLES = {as_json(titles)};\n", "utf-8")


def as_json(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def add_script(app, pagename, templatename, context, doctree):
    if pagename in SCRIPTS:
        for name, priority in SCRIPTS[pagename].items():
            app.add_js_file(name, defer="defer", priority=priority)


def setup(app):
    app.connect("html-page-context", add_script)
    app.connect("write-started", write_outline)  # before the pages, which contain the outline's digest
    app.add_js_file("outline.js", defer="defer", priority=PRIORITY_BEFORE)
    return {"parallel_read_safe": True}
