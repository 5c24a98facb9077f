"""A page holds the state of the labs that it shows, and no other, and each script and style sheet once, in short.

A notebook notes every widget that it makes, each with the whole text of its script: one that only a loop reads, too.

Practices stand on nearly every page, and on few first screens. Their script lies in a file of its own, which a page
fetches when its first practice comes near, and a browser keeps for the next page: see mount.js.
"""

import hashlib
import json
import re
from functools import cache
from pathlib import Path

from minify_html import minify

STATE = "application/vnd.jupyter.widget-state+json"
VIEW = re.compile(r'"model_id":\s*"(\w+)"')
IN_FILES = {"transformer_lab.labs.practice.Practice": "practice-lab.js"}


@cache
def short(script):
    """Return a module in fewer letters, which does the same. A parser does it: in templates each space counts."""
    page = minify(f"<script type=module>{script}</script>", minify_js=True)
    return page.partition(">")[2].removesuffix("</script>")


def lean(data, shown):
    """Return the state of the widgets ``shown``, and the scripts that are to lie in files, by address.

    A text that a widget has already is named as ``{"as": its id}``, one in a file as ``{"file": its address}``.
    """
    found, first, files = {}, {}, {}
    for model in (model for model in data["state"] if model in shown):
        state = dict(data["state"][model]["state"])
        for name in ("_esm", "_css"):
            text = state.get(name)
            if text and first.setdefault(text, model) != model:
                state[name] = {"as": first[text]}
            elif text and name == "_esm":
                state[name] = short(text)
                if file := IN_FILES.get(state.get("_anywidget_id")):
                    address = f"{file}?v={hashlib.sha256(text.encode()).hexdigest()[:8]}"  # no browser keeps an old one
                    files[address], state[name] = state[name], {"file": address}
        found[model] = {**data["state"][model], "state": state}
    return {**data, "state": found}, files


def keep_what_is_shown(app, pagename, templatename, context, doctree):
    for script in context.get("script_files", []):
        attributes = getattr(script, "attributes", {})
        if attributes.get("type") == STATE:
            data, files = lean(json.loads(attributes["body"]), set(VIEW.findall(context["body"])))
            attributes["body"] = json.dumps(data).replace("</", "<\\/")
            write(files, Path(app.outdir) / "_static")


def write(files, folder):
    """Write files that hand a script's text to mount.js: a page that is opened from disk can fetch nothing as text."""
    for address, text in files.items():
        handed = f"(window.labScripts ??= {{}})[{json.dumps(address)}] = {json.dumps(text)};\n"
        (folder / address.partition("?")[0]).write_text(handed, "utf-8")


def setup(app):
    app.connect("html-page-context", keep_what_is_shown, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
