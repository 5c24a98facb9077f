"""Turns quotes that begin with certain bold words into remarks or admonitions.

Every client displays a quote correctly, but JupyterLab and VS Code would show GitHub's alerts (`> [!NOTE]`) as plain
text.
"""

from docutils import nodes
from sphinx.transforms import SphinxTransform


def remark(_, *children):
    """Return a quote's paragraphs in a box; the bold words with which the quote begins become the title of the box."""
    return nodes.container("", *children, classes=["tl-remember"])


ALERTS = {"Remember:": remark, "Tested:": remark, "End of the": nodes.tip}


class Alerts(SphinxTransform):
    default_priority = 300

    def apply(self):
        for quote in list(self.document.findall(nodes.block_quote)):
            bold = quote.next_node(nodes.strong)
            if bold and quote.astext().startswith(bold.astext()):
                for first_words, make_alert in ALERTS.items():
                    if bold.astext().startswith(first_words):
                        quote.replace_self(make_alert("", *quote.children))


def setup(app):
    app.add_transform(Alerts)
    return {"parallel_read_safe": True}
