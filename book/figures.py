"""Figures are loaded lazily; the page states their sizes, so nothing moves when they arrive."""

import re
from pathlib import Path
from urllib.parse import unquote

IMAGE = re.compile(r'<img (?=[^>]*src="[^"]*_images/(?P<name>[^"]+\.(?:png|svg))")(?![^>]*(?:width|height)=)')
DRAWN = re.compile(rb'<svg [^>]*?width="(\d+)" height="(\d+)"')


def size_of(head):
    """Return the width and height in the first bytes of a PNG or SVG file."""
    if drawn := DRAWN.search(head):
        return int(drawn[1]), int(drawn[2])
    return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")


def add_sizes(app, pagename, templatename, context, doctree):
    sources = {name: source for source, name in app.builder.images.items()}

    def with_size(image):
        if source := sources.get(unquote(image["name"])):
            with Path(app.srcdir, source).open("rb") as file:
                width, height = size_of(file.read(400))
            return f'<img width="{width}" height="{height}" loading="lazy" '
        return image[0]

    if "body" in context:
        context["body"] = IMAGE.sub(with_size, context["body"])


def setup(app):
    app.connect("html-page-context", add_sizes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
