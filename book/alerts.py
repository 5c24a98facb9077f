"""Quotes that begin with certain words in bold become admonitions.

A quote reads right in every client. JupyterLab and VS Code would show GitHub's alerts (`> [!NOTE]`) as plain text.
"""

from docutils import nodes
from sphinx.transforms import SphinxTransform

ALERTS = {"Remember:": nodes.note, "Tested:": nodes.note, "End of the": nodes.tip}


class Alerts(SphinxTransform):
    default_priority = 300

    def apply(self):
        for quote in list(self.document.findall(nodes.block_quote)):
            bold = quote.next_node(nodes.strong)
            if bold and quote.astext().startswith(bold.astext()):
                for words, admonition in ALERTS.items():
                    if bold.astext().startswith(words):
                        quote.replace_self(admonition("", *quote.children))


def setup(app):
    app.add_transform(Alerts)
    return {"parallel_read_safe": True}
