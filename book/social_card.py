"""Makes the preview of a linked page: the page's description, and a picture with the page's title."""

import re
from html import escape
from pathlib import Path
from textwrap import shorten, wrap

from docutils import nodes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from book.descriptions import TITLES_AND_DESCRIPTIONS

BLUE, AMBER, INK, GREY = "#0b5cad", "#ffb454", "#1b1f24", "#565d66"
LOGO = [(0, 0, 1), (0, 1, 0.55), (1, 1, 1), (0, 2, 0.25), (1, 2, 0.55), (2, 2, None)]  # column, row, opacity


def describe(doctree):
    """Return the first paragraph that does not state the minutes; after a final colon, add the list that follows."""
    section = doctree.next_node(nodes.section)
    for paragraph in section.findall(nodes.paragraph):
        text = paragraph.astext()
        if re.search(r"\b[Aa]bout \d+ minutes\b.* · needs: ", text):
            continue
        if text.endswith(":"):
            list_items = paragraph.next_node(nodes.list_item, siblings=False, ascend=True).parent
            text = " ".join([text[:-1], *(point.astext() for point in list_items)])
        return shorten(text, 200, placeholder=" …")


def address_of(app, page):
    """Return the full address of a page; the front page's address is the site's address."""
    return app.config.html_baseurl + ("" if page == app.config.root_doc else app.builder.get_target_uri(page))


def draw_logo(axes, x, y):
    """Draw the logo, 84 pixels wide and high."""
    axes.add_patch(FancyBboxPatch((x, y), 84, 84, boxstyle="round,pad=0,rounding_size=20", fc=BLUE, ec="none"))
    for column, row, opacity in LOGO:
        corner = (x + 16 + 19 * column, y + 16 + 19 * row)
        square = {"fc": AMBER} if opacity is None else {"fc": "white", "alpha": opacity}
        axes.add_patch(FancyBboxPatch(corner, 14, 14, boxstyle="round,pad=0,rounding_size=3", ec="none", **square))


def draw_card(path, site, title, description, address):
    """Draw a card of 1200 × 630 pixels."""
    figure = Figure(figsize=(12, 6.3), dpi=100, facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, 1200), ylim=(630, 0))
    axes.axis("off")
    draw_logo(axes, 70, 70)
    axes.text(180, 112, site, size=24, color=GREY, va="center")
    axes.text(70, 235, "\n".join(wrap(title, 32)), size=42, weight="bold", color=INK, va="top", linespacing=1.15)
    axes.text(70, 520, "\n".join(wrap(description, 82)), size=17, color=GREY, va="bottom", linespacing=1.4)
    axes.text(70, 575, address, size=17, color=BLUE, va="center")
    axes.axhspan(612, 630, color=BLUE)
    figure.savefig(path)


def add_card(app, pagename, templatename, context, doctree):
    # Pages without a source, such as the search page, use the front page's card.
    source = pagename if doctree else app.config.root_doc
    site, title = app.config.html_title, app.env.titles[source].astext()
    shared_title, description = TITLES_AND_DESCRIPTIONS.get(source) or (
        title,
        describe(doctree or app.env.get_doctree(source)),
    )
    if source.startswith("solutions/"):  # its first paragraph is the same as in the assignment
        description = shorten(f"Solved, with reasons: {description}", 200, placeholder=" …")
    tags = {"og:type": "website", "og:site_name": site, "og:title": shared_title, "og:description": description}
    named_tags = {"description": description}
    if address := app.config.html_baseurl:  # a picture needs a full address
        name = f"_images/card_{source.replace('/', '_')}.png"
        path = Path(app.outdir, name)
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            draw_card(path, site, title, description, address.split("://")[1].rstrip("/"))
        tags |= {
            "og:url": address_of(app, source),
            "og:image": address + name,
            "og:image:alt": f"{title}. {description}",
            "og:image:width": "1200",
            "og:image:height": "630",
        }
        named_tags["twitter:card"] = "summary_large_image"
    lines = [f'<meta property="{key}" content="{escape(value)}" />' for key, value in tags.items()]
    lines += [f'<meta name="{key}" content="{escape(value)}" />' for key, value in named_tags.items()]
    context["metatags"] = "\n".join([context.get("metatags", ""), *lines])


def setup(app):
    app.connect("html-page-context", add_card)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
