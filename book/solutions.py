"""Adds *solutions* to the title of a page of solutions, and omits nbgrader's markers from the page's code."""

import re

from docutils import nodes
from sphinx.transforms import SphinxTransform

MARKER = re.compile(r"(?m)^ *### (BEGIN|END) SOLUTION\n?")


class Solutions(SphinxTransform):
    default_priority = 300

    def apply(self):
        if not self.env.docname.startswith("solutions/"):
            return
        title = self.document.next_node(nodes.title)
        title += nodes.Text(": solutions")
        for block in self.document.findall(nodes.literal_block):
            code = MARKER.sub("", block.astext()).rstrip("\n")
            block.rawsource = code  # the highlighter compares the whole string
            block[:] = [nodes.Text(code)]


def setup(app):
    app.add_transform(Solutions)
    return {"parallel_read_safe": True}
