"""Reduces a page's widget state to the labs that the page shows, with each text only once and minified scripts.

A notebook stores every widget that was ever created, each with the whole text of its script.

Nearly every page has practices, but few pages have one on the first screen. Their script is a separate file, which a
page fetches when its first practice is near the viewport, and which a browser caches for the next page: see mount.js.
Separate files also contain the large values of later labs on a page, such as the attention weights of a real model, and
values that only some readers request, such as the weights of earlier checkpoints.
"""

import hashlib
import json
import re
from functools import cache
from pathlib import Path

from minify_html import minify

STATE = "application/vnd.jupyter.widget-state+json"
VIEW = re.compile(r'"model_id":\s*"(\w+)"')
LABS_IN_FILES = {"transformer_lab.labs.practice.Practice": "practice-lab.js"}
LARGE_STATE = 40_000  # characters of JSON
TRAITS_ON_DEMAND = {
    "transformer_lab.labs.whole.WholeLab": "checkpoints"
}  # lists whose entries a page fetches one by one, on demand


@cache
def minify_script(script):
    """Return a minified module; a parser is needed because spaces in template literals matter."""
    page = minify(f"<script type=module>{script}</script>", minify_js=True)
    return page.partition(">")[2].removesuffix("</script>")


def address_of(file, text):
    """Return a file's address with a hash of the text, so that a browser does not use an outdated cached version."""
    return f"{file}?v={hashlib.sha256(text.encode()).hexdigest()[:8]}"


def split_off_files(state, move_large_values=True):
    """Return a lab's state, with ``{"file": address}`` for values fetched later, and a dict from address to file.

    Each entry of a trait in ``TRAITS_ON_DEMAND`` is stored in its own file; if ``move_large_values`` is true, so is
    every value larger than ``LARGE_STATE``.
    """
    kind, files = state.get("_anywidget_id", ""), {}

    def move_to_file(name, text):
        # Two labs of the same kind have different values, so the address of a value depends on its text.
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]
        address = address_of(f"{kind.split('.')[-2]}-{name}-{digest}.js", text)
        files[address] = text
        return {"file": address}

    file_references = {}
    for name, value in state.items() if kind else ():
        if name == TRAITS_ON_DEMAND.get(kind):
            file_references[name] = [move_to_file(name, json.dumps(entry)) for entry in value]
        elif move_large_values and name not in ("_esm", "_css") and len(text := json.dumps(value)) > LARGE_STATE:
            file_references[name] = move_to_file(name, text)
    return {**state, **file_references}, files


def trim_states(data, shown_models):
    """Return the states of the widgets ``shown_models``, in the order of the page, and a dict from address to file.

    A text that an earlier widget also has becomes ``{"as": that widget's id}``, and a text in a file becomes ``{"file":
    the file's address}``.
    """
    states, first_model, files = {}, {}, {}
    for model in (model for model in data["state"] if model in shown_models):
        is_first = model == shown_models[0]  # the first is drawn at once
        state, value_files = split_off_files(data["state"][model]["state"], move_large_values=not is_first)
        files |= value_files
        for name in ("_esm", "_css"):
            text = state.get(name)
            if text and first_model.setdefault(text, model) != model:
                state[name] = {"as": first_model[text]}
            elif text and name == "_esm":
                state[name] = minify_script(text)
                if file := LABS_IN_FILES.get(state.get("_anywidget_id")):
                    address = address_of(file, text)
                    files[address], state[name] = state[name], {"file": address}
        states[model] = {**data["state"][model], "state": state}
    return {**data, "state": states}, files


def keep_shown_widgets(app, pagename, templatename, context, doctree):
    for script in context.get("script_files", []):
        attributes = getattr(script, "attributes", {})
        if attributes.get("type") == STATE:
            data, files = trim_states(json.loads(attributes["body"]), VIEW.findall(context["body"]))
            attributes["body"] = json.dumps(data).replace("</", "<\\/")
            write_files(files, Path(app.outdir) / "_static")


def write_files(files, folder):
    """Write script files that pass a lab's code to mount.js, because a page opened from disk cannot fetch text."""
    for address, text in files.items():
        script = f"(window.labScripts ??= {{}})[{json.dumps(address)}] = {json.dumps(text)};\n"
        (folder / address.partition("?")[0]).write_text(script, "utf-8")


def setup(app):
    app.connect("html-page-context", keep_shown_widgets, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
