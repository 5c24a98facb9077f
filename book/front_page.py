"""Adds buttons for the first chapter and the lab to the front page, and turns its list of chapters into cards."""

from pathlib import Path

from docutils import nodes
from sphinx.errors import ExtensionError

from book.you_are_here import PLACES

THUMBNAILS = Path(__file__).parent / "thumbnails"
LAB_ANCHOR = "play"


def thumbnail(chapter):
    """Return a chapter's picture, which is only decoration: the chapter's question has the same content."""
    path = THUMBNAILS / f"{chapter}.svg"
    if not path.exists():
        raise ExtensionError(f"{chapter} has no picture for the front page: draw book/thumbnails/{path.name}")
    return nodes.raw("", path.read_text("utf-8").replace("<svg ", '<svg aria-hidden="true" ', 1), format="html")


def lay_out(app, doctree, docname):
    if docname != app.config.root_doc:
        return
    # The lab occupies the full width.
    app.env.metadata[docname]["html_theme.sidebar_secondary.remove"] = True
    for paragraph in list(doctree.findall(nodes.paragraph)):
        first_node, parent = paragraph[0], paragraph.parent
        chapter = isinstance(first_node, nodes.reference) and Path(first_node["refuri"]).stem
        if chapter not in PLACES:
            continue
        if isinstance(parent, nodes.section):
            parent["classes"].append("tl-front")
            paragraph["classes"].append("tl-start")
            paragraph.insert(0, nodes.reference("", "Play with it", refuri=f"#{LAB_ANCHOR}", internal=True))
            lab = next(node for node in parent.children if isinstance(node, nodes.container))
            lab["ids"].append(LAB_ANCHOR)
        if isinstance(parent, nodes.list_item):
            parent.parent["classes"] = ["tl-cards"]
            paragraph.insert(0, thumbnail(chapter))


def set_front_title(app, env):
    """Links to the front page, such as the one in the list of pages, show the book's name, not the page's heading."""
    env.titles[app.config.root_doc] = nodes.title("", app.config.html_title)


def setup(app):
    app.connect("env-updated", set_front_title)
    app.connect("doctree-resolved", lay_out)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
