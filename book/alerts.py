"""GitHub's alerts (`> [!NOTE]`) become admonitions: lesson text that reads right on GitHub, in Colab and here."""

from docutils import nodes
from sphinx.transforms import SphinxTransform

ALERTS = {
    "[!NOTE]": nodes.note,
    "[!TIP]": nodes.tip,
    "[!IMPORTANT]": nodes.important,
    "[!WARNING]": nodes.warning,
    "[!CAUTION]": nodes.caution,
}


class Alerts(SphinxTransform):
    default_priority = 300

    def apply(self):
        for quote in list(self.document.findall(nodes.block_quote)):
            paragraph = quote.next_node(nodes.paragraph)
            if not paragraph or paragraph.parent is not quote:
                continue
            marker = paragraph[0].astext().strip()
            if marker not in ALERTS:
                continue
            del paragraph[:2]  # the marker and the line break after it
            content = quote.children if len(paragraph) else quote.children[1:]
            quote.replace_self(ALERTS[marker]("", *content))


def setup(app):
    app.add_transform(Alerts)
    return {"parallel_read_safe": True}
