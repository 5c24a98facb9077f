"""Turns quotes that begin with certain bold words into remarks or admonitions.

A quote is displayed correctly in every client. JupyterLab and VS Code would show GitHub's alerts (`> [!NOTE]`) as plain
text.
"""

from docutils import nodes
from sphinx.transforms import SphinxTransform


def remark(_, *children):
    """The bold words serve as the title."""
    return nodes.container("", *children, classes=["tl-remember"])


ALERTS = {"Remember:": remark, "Tested:": remark, "End of the": nodes.tip}


class Alerts(SphinxTransform):
    default_priority = 300

    def apply(self):
        for quote in list(self.document.findall(nodes.block_quote)):
            bold = quote.next_node(nodes.strong)
            if bold and quote.astext().startswith(bold.astext()):
                for words, alert in ALERTS.items():
                    if bold.astext().startswith(words):
                        quote.replace_self(alert("", *quote.children))


def setup(app):
    app.add_transform(Alerts)
    return {"parallel_read_safe": True}
