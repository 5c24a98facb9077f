"""Marks sections that no later section needs; such a section begins by saying what readers miss if they skip it."""

from docutils import nodes


def is_emphasis_only(node):
    return isinstance(node, nodes.paragraph) and len(node) == 1 and isinstance(node[0], nodes.emphasis)


def mark_sections(app, doctree):
    for section in doctree.findall(nodes.section):
        line = section[1] if len(section) > 1 else None
        if line is not None and is_emphasis_only(line) and line.astext().startswith("Further: "):
            section["classes"].append("further")
            line["classes"].append("tl-what-you-miss")


def setup(app):
    app.connect("doctree-read", mark_sections)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
