"""A browser without scripts shows a picture of each lab; a browser with scripts reserves space for the lab.

`make pictures` takes the pictures in the built book, and reads the labs' sentences and heights there.
"""

import json
import re
from html import escape
from pathlib import Path

PICTURE_LIST = Path(__file__).parent / "pictures" / "pictures.json"
VIEW = re.compile(r'<script type="application/vnd\.jupyter\.widget-view\+json">.*?</script>', re.DOTALL)
NO_SCRIPT_SENTENCE = "This figure needs JavaScript. The picture shows how it starts."


def add_pictures(app, pagename, templatename, context, doctree):
    pictures = iter(json.loads(PICTURE_LIST.read_text("utf-8")).get(pagename, []))

    def with_picture(view):
        picture, image, heights = next(pictures, None), "", ""
        if picture:
            heights = "; ".join(f"--{window}: {height}px" for window, height in picture["rooms"].items())
            source = context["pathto"](f"_static/{picture['file']}", 1)
            size = f'width="{picture["width"]}" height="{picture["height"]}"'
            image = f'<img src="{source}" {size} alt="{escape(picture["says"])}" />'
        noscript = f'<noscript><div class="lab-picture"><p>{NO_SCRIPT_SENTENCE}</p>{image}</div></noscript>'
        return f'<div class="lab-placeholder" style="{heights}">{view[0]}{noscript}</div>'

    if "body" in context:
        context["body"] = VIEW.sub(with_picture, context["body"])


def setup(app):
    app.connect("html-page-context", add_pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
