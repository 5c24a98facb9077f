"""At the end of a sitting, the page says that this is a good place to stop, and how long the rest takes."""

import nbformat
from docutils import nodes

import notebooks
from reading_times import stated_minutes

STOP_SENTENCE = "A good place to stop: the rest of the chapter takes about {} minutes."


def mark_ends(app, doctree, docname):
    path = next((path for path in notebooks.chapters() if path.stem == docname), None)
    ends = [tip for tip in doctree.findall(nodes.tip) if tip.astext().startswith("End of the")] if path else []
    if not ends:
        return
    minutes = stated_minutes(nbformat.read(path, 4).cells[0].source)
    for number, tip in enumerate(ends, 1):
        tip["classes"].append("tl-sitting")
        tip += nodes.paragraph("", STOP_SENTENCE.format(sum(minutes[number:])))


def setup(app):
    app.connect("doctree-resolved", mark_ends)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
