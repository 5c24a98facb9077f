"""A page holds the state of the labs that it shows, and no other, and each script and style sheet of theirs once.

A notebook notes every widget that it makes, each with the whole text of its script: one that only a loop reads, too.
"""

import json
import re

STATE = "application/vnd.jupyter.widget-state+json"
VIEW = re.compile(r'"model_id":\s*"(\w+)"')
TEXTS = ("_esm", "_css")


def lean(data, shown):
    """Return the state of the widgets ``shown``; a text that one of them has already is named as ``{"as": its id}``."""
    found, first = {}, {}
    for model in (model for model in data["state"] if model in shown):
        state = dict(data["state"][model]["state"])
        for name in TEXTS:
            if name in state and (owner := first.setdefault(state[name], model)) != model:
                state[name] = {"as": owner}
        found[model] = {**data["state"][model], "state": state}
    return {**data, "state": found}


def keep_what_is_shown(app, pagename, templatename, context, doctree):
    for file in context.get("script_files", []):
        attributes = getattr(file, "attributes", {})
        if attributes.get("type") == STATE:
            data = lean(json.loads(attributes["body"]), set(VIEW.findall(context["body"])))
            attributes["body"] = json.dumps(data).replace("</", "<\\/")


def setup(app):
    app.connect("html-page-context", keep_what_is_shown, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
