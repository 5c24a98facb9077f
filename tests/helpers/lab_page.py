"""Write a page for tests in a browser: it has the form of the book's pages, but contains only labs."""

import json
from pathlib import Path

from book.widget_state import minify_script

MOUNT = Path(__file__).parents[2] / "book" / "mount.js"

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Labs</title>
<style>
  :root {{ color-scheme: light }}
  :root[data-theme="dark"] {{ color-scheme: dark }}
  body {{ margin: 12px; font-family: sans-serif; background: light-dark(#fff, #121212) }}
</style>
<script type="application/vnd.jupyter.widget-state+json">{state}</script>
<script>{mount}</script>
<body>
<main>
<h1>Labs</h1>
{views}
</main>
"""


def lab_page(*labs):
    """Return the page's HTML. A lab that is passed twice has two views of one widget model."""
    models = {lab.model_id: {"model_name": "AnyModel", "state": _state(lab)} for lab in labs}
    views = "\n".join(f"<div>{_script('widget-view', {'model_id': lab.model_id})}</div>" for lab in labs)
    return PAGE.format(views=views, state=_json({"state": models}), mount=MOUNT.read_text("utf-8"))


def as_notebook(html):
    """Return the page in the form of a notebook: it stores no states of labs, and labs do not change its address."""
    tag = 'script type="application/vnd.jupyter.widget-state+json"'
    selector = "STATE = 'script[type=\"application/vnd.jupyter.widget-state+json\"]'"
    for text in (tag, selector):
        assert html.count(text) == 1
        html = html.replace(text, text.replace("widget-state", "kernel-state"))
    return html


def _state(lab):
    state = {name: value for name, value in lab.get_state().items() if name != "layout"}
    return state | {"_esm": minify_script(state["_esm"])}


def _script(kind, value):
    return f'<script type="application/vnd.jupyter.{kind}+json">{_json(value)}</script>'


def _json(value):
    # The book's pages store the keys of a dict in alphabetical order.
    return json.dumps(value, sort_keys=True).replace("</", "<\\/")
